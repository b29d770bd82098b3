//! A POST whose response is under way.

use std::fmt;
use std::sync::Arc;

use super::connection::Shared;
use super::core::exchange::ExchangeCore;
use super::core::session::SessionId;
use super::downstream::Downstream;
use super::io::open::Open;
use super::post::RequestHead;
use crate::{Error, Received, Taker};

/// What comes back on one POST: messages while the response is open, then the end.
///
/// After the response to the posted request nothing more is read: the stream is closed, or its connection goes back to
/// the pool. A response stream that breaks is resumed by GET where that is allowed, after exactly the `retry` of the
/// server.
///
/// Dropping an exchange closes its socket, unless its response was read to the end. In the modern era that cancels the
/// request; in legacy revisions it does not.
pub struct Exchange {
    core: ExchangeCore,
    downstream: Downstream,
}

impl Exchange {
    pub(crate) fn new(
        shared: Arc<Shared>,
        core: ExchangeCore,
        head: RequestHead,
        connection: Open,
        session: Option<SessionId>,
    ) -> Self {
        let mut downstream = Downstream::new(shared, head, connection, session);
        if core.is_done() {
            downstream.release();
        }
        Self { core, downstream }
    }

    /// The HTTP status of the response to the POST.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.core.status().as_u16()
    }

    /// The next message, borrowed until the next call; `None` after the answer to the posted request, and at once for a
    /// notification or response that was accepted.
    ///
    /// # Errors
    ///
    /// `ConnectionLost` when the response ended before the answer and cannot be resumed, `PeerMisbehaved` when it holds
    /// none, `LimitExceeded`, `Timeout` for a message that arrives too slowly, `Status` for a refusal without a JSON-RPC error in its
    /// body (one with such an error yields that as a message, whatever its status), and the errors of
    /// [`post`](super::HttpConnection::post) for a resumption that is refused. After an error comes `None`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future loses nothing, and the next call goes on.
    pub async fn next(&mut self) -> Result<Option<Received<'_>>, Error> {
        self.next_or_take(&mut |_| false).await
    }

    /// As [`next`](Self::next), with a callback that may take the answer to the posted request before it is decoded: it is
    /// then reported as [`Received::Taken`]. The callback sees nothing else, and not the answer that opens a session.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// As for [`next`](Self::next); nothing is taken before the future is ready.
    pub async fn next_or_take(&mut self, take: Taker<'_>) -> Result<Option<Received<'_>>, Error> {
        let advanced = self.downstream.advance(&mut self.core).await;
        if let Err(error) = &advanced {
            self.downstream.shared.note_lost_session(error, self.downstream.session.as_ref());
        }
        if !advanced? {
            return Ok(None);
        }
        let shared = &self.downstream.shared;
        let (received, is_last) = self.core.message(&shared.session, &shared.decode_limits, take)?;
        if is_last {
            // Before the caller looks at the answer, so that its next call finds the connection.
            self.downstream.release();
        }
        Ok(Some(received))
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("status", &self.status()).finish_non_exhaustive()
    }
}
