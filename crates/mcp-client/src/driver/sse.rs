//! Driving the HTTP+SSE transport of 2024-11-05: callers post their requests, one task posts what no caller waits for, one reads.

use mcp_proto::{Limits, Transmit, TransmitKind};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::OpenCall;
use super::background::Background;
use super::http::{Posted, SseSender, post_call};
use super::open_call::Sent;
use crate::error::Error;
use crate::spawning::spawn;

/// The writing half, and a queue for what no caller waits for.
#[derive(Debug)]
pub(crate) struct SseLink {
    sender: SseSender,
    background: Background,
    writer: AbortHandle,
}

impl SseLink {
    /// Must run inside a tokio runtime: starts the task that posts what no caller waits for.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there is none without HTTP"))]
    pub(crate) fn new(sender: SseSender, limits: &Limits) -> Self {
        let (background, posting) = Background::new(sender.clone(), limits);
        let writer = spawn(&Handle::current(), posting);
        Self { sender, background, writer }
    }

    /// Posts the request of a call, until the call is over.
    pub(super) async fn send(&self, call: &OpenCall, transmit: Transmit) -> Result<(), Error> {
        tokio::select! {
            biased;
            sent = self.post(call, transmit) => match sent {
                Ok(()) => Ok(()),
                Err(error) => call.failed(Sent::Request, error),
            },
            // The end of the call stays in its slot for the caller to find.
            () = call.over() => Ok(()),
        }
    }

    async fn post(&self, call: &OpenCall, transmit: Transmit) -> Result<(), mcp_transport::Error> {
        match post_call(&self.sender, call, transmit).await {
            Posted::Done(posted) => posted,
            Posted::GivenUp => Ok(()),
        }
    }

    /// Posts a message and waits until it was accepted.
    pub(super) async fn deliver(&self, transmit: Transmit) -> Result<(), mcp_transport::Error> {
        self.sender.send(transmit.message).await
    }

    pub(super) fn send_in_background(&self, transmit: Transmit) {
        match transmit.kind {
            TransmitKind::Notification => self.background.notice(transmit.message),
            _ => self.background.answer(transmit.message),
        }
    }

    pub(super) fn takes_notices(&self) -> bool {
        self.background.takes_notices()
    }

    pub(super) async fn background_room(&self) {
        self.background.room().await;
    }

    /// Posts nothing more.
    pub(crate) fn stop(&self) {
        self.writer.abort();
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.stop();
    }
}
