//! Driving a line connection: callers write, one task reads.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use mcp_proto::{Origin, Transmit};
use mcp_transport::stdio::{CloseReport, LineReceiver, LineSender};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{Driver, OpenCall};
use crate::error::Error;

/// Answers and notices that wait to be written. When it is full, reading pauses until the peer reads ours.
const BACKGROUND_MESSAGES: usize = 1024;

/// The writing half, and a queue for what no caller waits for.
#[derive(Debug)]
pub(crate) struct LineLink {
    sender: LineSender,
    background: mpsc::Sender<Bytes>,
    writer: AbortHandle,
}

impl LineLink {
    /// Must run inside a tokio runtime: starts the task that writes what no caller waits for.
    pub(crate) fn new(sender: LineSender) -> Self {
        let (background, mut queue) = mpsc::channel::<Bytes>(BACKGROUND_MESSAGES);
        let writing = sender.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = queue.recv().await {
                if writing.send(message).await.is_err() {
                    // The reading side learns the same and ends every call with the reason.
                    return;
                }
            }
        });
        Self { sender, background, writer: task.abort_handle() }
    }

    /// Writes the request of a call. A pipe that is full holds up this call alone, until its deadline.
    pub(crate) async fn send(&self, call: &OpenCall, transmit: Transmit) -> Result<(), Error> {
        if !call.dispatched() {
            return Ok(());
        }
        tokio::select! {
            biased;
            sent = self.sender.send(transmit.message) => match sent {
                Ok(()) => Ok(()),
                Err(error) => call.failed(error),
            },
            // The end of the call stays in its slot for the caller to find.
            () = call.over() => Ok(()),
        }
    }

    /// Writes a message and waits until it is written.
    pub(crate) async fn deliver(&self, transmit: Transmit) -> Result<(), Error> {
        self.sender.send(transmit.message).await.map_err(Error::transport_failed)
    }

    pub(crate) fn send_in_background(&self, transmit: Transmit) {
        // Reading pauses before the queue is full, so only a burst of cancellations gets here, and each of those is
        // a courtesy.
        if self.background.try_send(transmit.message).is_err() {
            tracing::debug!("a message was not sent: the background queue is full");
        }
    }

    pub(crate) async fn background_room(&self) {
        // One place is enough: one input of the peer causes one answer. An ended writer has room for ever.
        let _ = self.background.reserve().await;
    }

    pub(crate) async fn close(&self) -> CloseReport {
        let report = self.sender.close().await;
        self.writer.abort();
        report
    }
}

impl Drop for LineLink {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

/// Reads until the connection ends. Holds the driver weakly: a client that was dropped is not kept alive by its
/// reader.
pub(crate) async fn read(driver: Weak<Driver>, mut receiver: LineReceiver) {
    loop {
        let received = receiver.recv().await;
        let Some(driver) = driver.upgrade() else { return };
        match received {
            Ok(received) => driver.handle(Origin::Channel, received),
            Err(error) => return driver.transport_ended(error),
        }
        driver.background_room().await;
    }
}

/// Starts the reading task.
pub(crate) fn spawn_reader(driver: &Arc<Driver>, receiver: LineReceiver) -> AbortHandle {
    tokio::spawn(read(Arc::downgrade(driver), receiver)).abort_handle()
}
