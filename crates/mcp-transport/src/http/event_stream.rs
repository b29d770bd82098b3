//! The stream of messages that a legacy server sends on its own.

use std::fmt;
use std::sync::Arc;

use super::connection::Shared;
use super::core::listen::ListenCore;
use super::core::session::SessionId;
use super::downstream::Downstream;
use super::io::open::Open;
use super::post::RequestHead;
use crate::{Error, Received};

/// A GET stream. A broken connection is opened again with the last event id: after exactly the server's `retry`, else
/// with growing, jittered delays, and only so often without progress.
///
/// Dropping it closes its socket.
pub struct EventStream {
    core: ListenCore,
    downstream: Downstream,
}

impl EventStream {
    pub(crate) fn new(
        shared: Arc<Shared>,
        core: ListenCore,
        head: RequestHead,
        connection: Open,
        session: Option<SessionId>,
    ) -> Self {
        Self { core, downstream: Downstream::new(shared, head, connection, session) }
    }

    /// The next message, borrowed until the next call. A message above the size limit is reported and skipped. After the stream was
    /// cut and reopened without an event id, [`Received::Gap`] comes first.
    ///
    /// # Errors
    ///
    /// The stream is over then, and later calls return `None`: `ConnectionLost` when the attempts to reopen it are used up,
    /// `LimitExceeded` when the server asked for too long a wait, `SessionLost`, `Unauthorized` or `Status` when it
    /// refused to reopen it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future loses nothing, and the next call goes on.
    pub async fn next(&mut self) -> Result<Option<Received<'_>>, Error> {
        if !self.downstream.advance(&mut self.core).await? {
            return Ok(None);
        }
        Ok(Some(self.core.message(&self.downstream.shared.decode_limits)))
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
