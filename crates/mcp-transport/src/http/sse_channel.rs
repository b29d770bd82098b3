//! The HTTP+SSE transport of 2024-11-05, for servers that know no other.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use super::connection::Shared;
use super::core::channel::ChannelCore;
use super::core::classify::{Asked, Verdict, classify};
use super::core::exchange::ExchangeCore;
use super::core::target::Target;
use super::downstream::Downstream;
use super::exchange::Exchange;
use super::io::clock::now;
use super::io::open::{Boxed, Opened, Outgoing, Watch};
use super::post::{Departure, PostKind, RequestHead};
use crate::{Error, ErrorKind, Received, Taker};

/// The way to the server. Clones share it.
#[derive(Clone)]
pub struct SseSender {
    shared: Arc<Shared>,
    endpoint: Arc<Target>,
}

/// The way from the server: every message it sends, answers included.
///
/// Dropping it closes the stream, and with it the session.
pub struct SseReceiver {
    core: ChannelCore,
    downstream: Downstream,
}

/// Opens the event stream and waits for the `endpoint` event; `None` if the URL has no such stream.
pub(crate) async fn open_channel(shared: &Arc<Shared>) -> Result<Option<(SseSender, SseReceiver)>, Error> {
    let mut outgoing = shared.get(&RequestHead::default(), None, "")?;
    let opened = shared.open(&mut outgoing, None).await?;
    let head = opened.head();
    match classify(Asked::Listening, head.facts()) {
        Verdict::Stream => {}
        Verdict::Unauthorized => {
            return Err(head.unauthorized(shared.config.limits.max_challenge_bytes));
        }
        Verdict::Transient | Verdict::Refused => return Err(head.refusal().error(None)),
        _ => return Ok(None),
    }
    let mut core = ChannelCore::new(now(), &shared.config);
    let Opened { moved, connection, .. } = opened;
    let mut downstream = Downstream::new(Arc::clone(shared), RequestHead::default(), connection, None);
    if !downstream.advance(&mut core).await? {
        return Ok(None);
    }
    let Some(endpoint) = core.endpoint(moved.as_deref().unwrap_or(&shared.target))? else { return Ok(None) };
    let sender = SseSender { shared: Arc::clone(shared), endpoint: Arc::new(endpoint) };
    Ok(Some((sender, SseReceiver { core, downstream })))
}

impl SseSender {
    /// Posts one message and waits until the server accepted it. Its answer, if it is a request, comes by the receiver.
    ///
    /// # Errors
    ///
    /// As [`HttpConnection::post`](super::HttpConnection::post) for a notification.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket it was using. The message may have been processed.
    pub async fn send(&self, body: Bytes) -> Result<(), Error> {
        self.send_watched(body, &mut |_| true).await
    }

    /// As [`send`](Self::send), and tells `watch` where the message is, as
    /// [`HttpConnection::post_watched`](super::HttpConnection::post_watched) does.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); `Closed` where `watch` did not let the message go.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket it was using. The message may have been processed if `watch` was told last
    /// that it leaves.
    pub async fn send_watched(
        &self,
        body: Bytes,
        watch: &mut (dyn FnMut(Departure) -> bool + Send),
    ) -> Result<(), Error> {
        self.sending(body, watch).await
    }

    fn sending<'a>(&'a self, body: Bytes, watch: Watch<'a>) -> Boxed<'a, ()> {
        Box::pin(async move {
            let shared = &self.shared;
            let fields = shared.template.initialize();
            let mut outgoing = Outgoing { method: Method::POST, fields, body };
            let deadline = Some(shared.config.timeouts.head);
            let opened = shared.open_at(&self.endpoint, &mut outgoing, deadline, watch).await?;
            let mut core = ExchangeCore::new(PostKind::Notification, false, &shared.config);
            core.handle_head(now(), opened.head())?;
            let mut exchange =
                Exchange::new(Arc::clone(shared), core, RequestHead::default(), opened.connection, None);
            while exchange.next().await?.is_some() {}
            Ok(())
        })
    }
}

impl SseReceiver {
    /// The next message, borrowed until the next call. One above the size limit is reported and skipped.
    ///
    /// # Errors
    ///
    /// `ConnectionLost` when the stream ends: the session is over then. After that, kind `Closed`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future loses nothing.
    pub async fn recv(&mut self) -> Result<Received<'_>, Error> {
        self.recv_or_take(&mut |_| false).await
    }

    /// As [`recv`](Self::recv), with somebody who may take a plain answer before it is decoded: that is then
    /// [`Received::Taken`].
    ///
    /// # Errors
    ///
    /// Those of [`recv`](Self::recv).
    ///
    /// # Cancel safety
    ///
    /// As for [`recv`](Self::recv); nothing is taken before the future is ready.
    pub async fn recv_or_take(&mut self, take: Taker<'_>) -> Result<Received<'_>, Error> {
        if !self.downstream.advance(&mut self.core).await? {
            return Err(Error::new(ErrorKind::Closed, "the event stream is over"));
        }
        Ok(self.core.message(&self.downstream.shared.decode_limits, take))
    }
}

impl fmt::Debug for SseSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseSender").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl fmt::Debug for SseReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseReceiver").finish_non_exhaustive()
    }
}
