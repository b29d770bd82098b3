//! Reading a shared channel: one task for all that the server says.
//!
//! Two transports have this shape: one message a line over any byte stream, and the HTTP+SSE transport of 2024-11-05,
//! where messages are posted and everything comes back on one event stream.

use std::sync::{Arc, Weak};

use mcp_jsonrpc::PlainAnswer;
use mcp_proto::Origin;
use mcp_transport::stdio::LineReceiver;
use mcp_transport::{Received, Taker};
use tokio::task::AbortHandle;

use super::Driver;
use super::http::SseReceiver;
use crate::spawning::spawn;

/// The reading half.
#[derive(Debug)]
pub(crate) enum Receiver {
    Line(Box<LineReceiver>),
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Sse(Box<SseReceiver>),
}

impl Receiver {
    async fn receive(&mut self, take: Taker<'_>) -> Result<Received<'_>, mcp_transport::Error> {
        match self {
            Self::Line(receiver) => receiver.recv_or_take(take).await,
            Self::Sse(receiver) => receiver.recv_or_take(take).await,
        }
    }
}

/// Ends the connection with the task that reads it, whatever ended that.
struct EndsWithReader(Weak<Driver>);

impl Drop for EndsWithReader {
    fn drop(&mut self) {
        if let Some(driver) = self.0.upgrade() {
            driver.give_up();
        }
    }
}

/// Reads until the connection ends. Holds the driver weakly: a client that was dropped is not kept alive by its
/// reader.
async fn read(driver: Weak<Driver>, mut receiver: Receiver) {
    let _end = EndsWithReader(driver.clone());
    loop {
        let mut take =
            |answer: &PlainAnswer<'_>| driver.upgrade().is_some_and(|driver| driver.take(answer, None));
        let received = receiver.receive(&mut take).await;
        let Some(driver) = driver.upgrade() else { return };
        match received {
            Ok(received) => driver.handle(Origin::Channel, received),
            Err(error) => return driver.transport_ended(error),
        }
        driver.background_room().await;
    }
}

/// Starts the reading task.
pub(crate) fn spawn_reader(driver: &Arc<Driver>, receiver: Receiver) -> AbortHandle {
    spawn(&driver.runtime, read(Arc::downgrade(driver), receiver))
}
