//! Driving a shared channel: callers write, one task reads.
//!
//! Two transports have this shape: one message a line over any byte stream, and the HTTP+SSE transport of 2024-11-05,
//! where messages are posted and everything comes back on one event stream.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use bytes::Bytes;
use mcp_jsonrpc::PlainAnswer;
use mcp_proto::{Origin, Transmit, TransmitKind};
use mcp_transport::stdio::{CloseReport, LineReceiver, LineSender, Place};
use mcp_transport::{Received, Taker};
use tokio::task::AbortHandle;

use super::background::Background;
use super::http::{SseReceiver, SseSender};
use super::{Driver, OpenCall};
use crate::error::Error;

/// The writing half, and a queue for what no caller waits for.
#[derive(Debug)]
pub(crate) struct ChannelLink {
    sender: Sender,
    background: Background,
    writer: AbortHandle,
}

/// The writing half.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    Line(LineSender),
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Sse(SseSender),
}

/// The reading half.
#[derive(Debug)]
pub(crate) enum Receiver {
    Line(Box<LineReceiver>),
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    Sse(Box<SseReceiver>),
}

impl Sender {
    pub(super) async fn send(&self, message: Bytes) -> Result<(), mcp_transport::Error> {
        match self {
            Self::Line(sender) => sender.send(message).await,
            // On the heap: a POST is many times as large as a place in a queue.
            Self::Sse(sender) => Box::pin(sender.send(message)).await,
        }
    }

    /// Takes the request of a call that is still open, and gives its place where that is in a queue. A request that waits
    /// for room there has not left, so that its call, given up by then, is not one whose outcome is unknown. One in the
    /// queue is written whatever becomes of this future: the call goes on to wait for its answer.
    async fn send_request(
        &self,
        call: &OpenCall,
        message: Bytes,
    ) -> Result<Option<Place>, mcp_transport::Error> {
        let sender = match self {
            Self::Line(sender) => sender,
            Self::Sse(sender) if call.dispatched() => {
                return Box::pin(sender.send(message)).await.map(|()| None);
            }
            Self::Sse(_) => return Ok(None),
        };
        let mut sending = sender.send(message);
        poll_fn(|context| {
            // Said before it happens: the answer may be there as soon as the request has left.
            if !call.dispatched() {
                return Poll::Ready(Ok(None));
            }
            let queued = sending.poll_queued(context);
            // Refused, nothing of it leaves either.
            if !matches!(queued, Poll::Ready(Ok(_))) {
                call.held_back();
            }
            queued.map_ok(Some)
        })
        .await
    }
}

impl Receiver {
    async fn receive(&mut self, take: Taker<'_>) -> Result<Received<'_>, mcp_transport::Error> {
        match self {
            Self::Line(receiver) => receiver.recv_or_take(take).await,
            Self::Sse(receiver) => receiver.recv_or_take(take).await,
        }
    }
}

impl ChannelLink {
    /// Must run inside a tokio runtime: starts the task that writes what no caller waits for.
    pub(crate) fn new(sender: Sender) -> Self {
        let (background, writing) = Background::new(sender.clone());
        let writer = tokio::spawn(writing).abort_handle();
        Self { sender, background, writer }
    }

    /// Has the request of a call written. A queue that is full holds up this call alone, until its deadline.
    pub(crate) async fn send(&self, call: &OpenCall, transmit: Transmit) -> Result<Option<Place>, Error> {
        tokio::select! {
            biased;
            sent = self.sender.send_request(call, transmit.message) => match sent {
                Ok(place) => Ok(place),
                Err(error) => call.failed(error).map(|()| None),
            },
            // The end of the call stays in its slot for the caller to find.
            () = call.over() => Ok(None),
        }
    }

    /// Whether the peer may have seen a request with this place, or may see it yet.
    pub(super) fn may_leave(&self, place: Place) -> bool {
        match &self.sender {
            Sender::Line(sender) => sender.may_leave(place),
            Sender::Sse(_) => true,
        }
    }

    /// Writes a message and waits until it is written.
    pub(crate) async fn deliver(&self, transmit: Transmit) -> Result<(), Error> {
        self.sender.send(transmit.message).await.map_err(Error::transport_failed)
    }

    pub(crate) fn send_in_background(&self, transmit: Transmit) {
        match transmit.kind {
            TransmitKind::Notification => self.background.notice(transmit.message),
            _ => self.background.answer(transmit.message),
        }
    }

    pub(crate) fn takes_notices(&self) -> bool {
        self.background.takes_notices()
    }

    pub(crate) async fn background_room(&self) {
        self.background.room().await;
    }

    /// Closes the channel; the report is about the child process, where there is one.
    pub(crate) async fn close(&self) -> Option<CloseReport> {
        let report = match &self.sender {
            Sender::Line(sender) => Some(sender.close().await),
            Sender::Sse(_) => None,
        };
        self.writer.abort();
        report
    }
}

impl Drop for ChannelLink {
    fn drop(&mut self) {
        self.writer.abort();
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
        let mut take = |answer: &PlainAnswer<'_>| driver.upgrade().is_some_and(|driver| driver.take(answer));
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
    tokio::spawn(read(Arc::downgrade(driver), receiver)).abort_handle()
}
