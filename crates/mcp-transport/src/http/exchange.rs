//! A POST whose response is under way.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use tokio::time;

use super::connection::{Shared, now};
use super::core::exchange::{ExchangeCore, Step};
use super::io::jitter::jitter;
use super::io::open::{Open, Opened};
use super::post::RequestHead;
use crate::{Error, Received};

/// What comes back on one POST: messages while the response is open, then the end.
///
/// After the response to the posted request nothing more is read: the stream is closed, or its connection goes back to
/// the pool. A response stream that was cut is resumed by GET where that is allowed, after exactly the wait that the
/// server asked for.
///
/// Dropping an exchange closes its socket, unless its response was read to the end. In the modern era that cancels the
/// request; in legacy revisions it does not.
pub struct Exchange {
    shared: Arc<Shared>,
    core: ExchangeCore,
    head: RequestHead,
    source: Source,
}

/// Where bytes come from now.
pub(crate) enum Source {
    Closed,
    Open(Open),
    Opening(Opening),
}

/// A GET under way. Boxed: it happens seldom, and would make every exchange larger.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Opened, Error>> + Send>>;

impl Exchange {
    pub(crate) fn new(shared: Arc<Shared>, core: ExchangeCore, head: RequestHead, connection: Open) -> Self {
        Self { shared, core, head, source: Source::Open(connection) }
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
    /// none, `LimitExceeded`, `Timeout` for a message that drips, `Status` for a refusal without a JSON-RPC error in its
    /// body (one with such an error yields that as a message, whatever its status), and the errors of
    /// [`post`](super::HttpConnection::post) for a resumption that is refused. After an error comes `None`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future loses nothing, and the next call goes on.
    pub async fn next(&mut self) -> Result<Option<Received<'_>>, Error> {
        loop {
            match self.core.poll()? {
                Step::Done => {
                    self.release();
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
        let (received, is_last) = self.core.message(&self.shared.session, &self.shared.decode_limits)?;
        if is_last && let Source::Open(open) = std::mem::replace(&mut self.source, Source::Closed) {
            self.shared.pool.put(open.wire, Some(open.body));
        }
        Ok(Some(received))
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
            Some(Ok(piece)) => self.core.handle_chunk(now(), piece),
            Some(Err(error)) => {
                self.source = Source::Closed;
                self.core.handle_end(now(), jitter(), Some(error.into()))
            }
            None => {
                self.release();
                self.core.handle_end(now(), jitter(), None)
            }
        }
    }

    async fn reopen(&mut self) -> Result<(), Error> {
        let opening = match &mut self.source {
            Source::Opening(opening) => opening,
            source => {
                let outgoing = self.shared.get(&self.head, self.core.cursor());
                let outgoing = match outgoing {
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
                let session = self.shared.session.current();
                let result = self.core.handle_reopened(now(), jitter(), opened.head());
                if let Err(error) = &result {
                    self.shared.note_lost_session(error, session.as_ref());
                }
                self.source = Source::Open(opened.connection);
                result
            }
            Err(error) => self.core.handle_reopen_failed(now(), jitter(), error),
        }
    }

    /// Gives the connection back; what is left of the response is of no interest.
    fn release(&mut self) {
        if let Source::Open(open) = std::mem::replace(&mut self.source, Source::Closed) {
            self.shared.pool.put(open.wire, Some(open.body));
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("status", &self.status()).finish_non_exhaustive()
    }
}
