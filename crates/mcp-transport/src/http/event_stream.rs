//! The stream of messages that a legacy server sends on its own.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use tokio::time;

use super::connection::{Shared, now};
use super::core::exchange::Step;
use super::core::listen::ListenCore;
use super::exchange::Source;
use super::io::jitter::jitter;
use super::io::open::Open;
use super::post::RequestHead;
use crate::{Error, Received};

/// A GET stream. A broken connection is opened again with the last event id: after exactly the server's `retry`, else
/// with growing, jittered delays, and only so often without progress.
///
/// Dropping it closes its socket.
pub struct EventStream {
    shared: Arc<Shared>,
    core: ListenCore,
    head: RequestHead,
    source: Source,
}

impl EventStream {
    pub(crate) fn new(shared: Arc<Shared>, core: ListenCore, head: RequestHead, connection: Open) -> Self {
        Self { shared, core, head, source: Source::Open(connection) }
    }

    /// The next message, borrowed until the next call. A message above the size limit is reported and skipped.
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
        loop {
            match self.core.poll() {
                Step::Done => {
                    self.source = Source::Closed;
                    return Ok(None);
                }
                Step::Message => break,
                Step::Read => self.read().await?,
                Step::Reopen => self.reopen().await?,
                Step::Wait(at) => {
                    self.source = Source::Closed;
                    time::sleep_until(at.into()).await;
                    self.core.handle_timeout(now(), jitter())?;
                }
            }
        }
        Ok(Some(self.core.message(&self.shared.decode_limits)))
    }

    async fn read(&mut self) -> Result<(), Error> {
        let Source::Open(Open { wire, body }) = &mut self.source else {
            return self.core.handle_end(now(), jitter(), None);
        };
        let piece = poll_fn(|cx| wire.poll_piece(body, cx));
        let piece = match self.core.poll_timeout() {
            None => piece.await,
            Some(at) => match time::timeout_at(at.into(), piece).await {
                Ok(piece) => piece,
                Err(_) => return self.core.handle_timeout(now(), jitter()),
            },
        };
        match piece {
            Some(Ok(piece)) => {
                self.core.handle_chunk(now(), piece);
                Ok(())
            }
            Some(Err(error)) => self.core.handle_end(now(), jitter(), Some(error.into())),
            None => self.core.handle_end(now(), jitter(), None),
        }
    }

    async fn reopen(&mut self) -> Result<(), Error> {
        let opening = match &mut self.source {
            Source::Opening(opening) => opening,
            source => {
                let outgoing = match self.shared.get(&self.head, self.core.cursor()) {
                    Ok(outgoing) => outgoing,
                    Err(error) => return self.core.handle_reopen_failed(now(), jitter(), error),
                };
                let shared = Arc::clone(&self.shared);
                let deadline = shared.config.timeouts.head;
                *source =
                    Source::Opening(Box::pin(async move { shared.open(outgoing, Some(deadline)).await }));
                return Ok(());
            }
        };
        let opened = opening.as_mut().await;
        self.source = Source::Closed;
        match opened {
            Ok(opened) => {
                let result = self.core.handle_reopened(now(), jitter(), opened.head());
                self.source = Source::Open(opened.connection);
                result
            }
            Err(error) => self.core.handle_reopen_failed(now(), jitter(), error),
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}
