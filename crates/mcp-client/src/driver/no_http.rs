//! Stands in for HTTP where it is not compiled in: types that have no values, so that nothing here can ever run.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::Transmit;
use mcp_transport::{Received, Taker};
use tokio::task::AbortHandle;

use super::{Driver, OpenCall, ProgressFn};
use crate::error::Error;

/// A connection that cannot be.
#[derive(Debug)]
pub(crate) struct HttpLink(Infallible);

/// The writing half of a channel that cannot be.
#[derive(Clone, Debug)]
pub(crate) struct SseSender(Infallible);

/// The reading half of it.
#[derive(Debug)]
pub(crate) struct SseReceiver(Infallible);

/// What a request would carry.
#[derive(Clone, Debug)]
pub(crate) struct NoHead;

pub(crate) use NoHead as SessionHead;

#[expect(clippy::unused_async, reason = "the same calls as with HTTP")]
impl HttpLink {
    pub(crate) async fn exchange(
        &self,
        _: &OpenCall,
        _: Transmit,
        _: &mut Option<ProgressFn>,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) async fn deliver(&self, _: Transmit) -> Result<(), mcp_transport::Error> {
        match self.0 {}
    }

    pub(crate) async fn confirm(&self, _: &OpenCall, _: Transmit) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn post_in_order(&self, _: &Arc<Driver>, _: Transmit) {
        match self.0 {}
    }

    pub(crate) fn seek(&self, _: &Arc<Driver>) {
        match self.0 {}
    }

    pub(crate) fn takes_notices(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn post_in_background(&self, _: &Arc<Driver>, _: Transmit) {
        match self.0 {}
    }

    pub(crate) async fn background_room(&self) {
        match self.0 {}
    }

    pub(crate) async fn close(&self, _: NoHead) {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "the same calls as with HTTP")]
impl SseSender {
    pub(super) async fn send(&self, _: Bytes) -> Result<(), mcp_transport::Error> {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "the same calls as with HTTP")]
impl SseReceiver {
    pub(super) async fn recv_or_take(&mut self, _: Taker<'_>) -> Result<Received<'_>, mcp_transport::Error> {
        match self.0 {}
    }
}

/// What cannot come of a message.
pub(super) enum Posted {
    #[expect(dead_code, reason = "nothing is posted without HTTP")]
    Done(Result<(), mcp_transport::Error>),
    #[expect(dead_code, reason = "nothing is posted without HTTP")]
    GivenUp,
}

pub(super) async fn post_call(sender: &SseSender, _: &OpenCall, _: Transmit) -> Posted {
    match sender.0 {}
}

#[expect(clippy::unused_async, reason = "the same call as with HTTP")]
pub(crate) async fn spawn_stream_reader(_: &Arc<Driver>, link: &HttpLink) -> AbortHandle {
    match link.0 {}
}

impl Driver {
    #[expect(clippy::unused_self, reason = "the same call as with HTTP")]
    pub(crate) fn head(&self) -> NoHead {
        NoHead
    }
}
