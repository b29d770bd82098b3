//! What an exchange and an event stream have in common: bytes come from a response, and then perhaps from another one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use tokio::time;

use super::connection::{Shared, now};
use super::core::machine::{Machine, Step};
use super::io::jitter::jitter;
use super::io::open::{Open, Opened};
use super::post::RequestHead;
use crate::Error;

/// A state machine's way to the network.
pub(crate) struct Line {
    pub(crate) shared: Arc<Shared>,
    head: RequestHead,
    source: Source,
}

/// Where bytes come from now.
enum Source {
    Closed,
    Open(Open),
    /// A GET under way. Boxed: it happens seldom, and would make every exchange larger.
    Opening(Pin<Box<dyn Future<Output = Result<Opened, Error>> + Send>>),
}

impl Line {
    pub(crate) fn new(shared: Arc<Shared>, head: RequestHead, connection: Open) -> Self {
        Self { shared, head, source: Source::Open(connection) }
    }

    /// Does what `core` asks for until a message is ready (`true`) or nothing more comes (`false`).
    ///
    /// Cancel safe: what is under way stays in `self`. An error closes the connection at once.
    pub(crate) async fn advance<M: Machine>(&mut self, core: &mut M) -> Result<bool, Error> {
        let result = self.run(core).await;
        if result.is_err() {
            self.source = Source::Closed;
        }
        result
    }

    async fn run<M: Machine>(&mut self, core: &mut M) -> Result<bool, Error> {
        loop {
            match core.poll()? {
                Step::Done => {
                    self.release();
                    return Ok(false);
                }
                Step::Message => return Ok(true),
                Step::Read => self.read(core).await?,
                Step::Reopen => self.reopen(core).await?,
                Step::Wait(at) => {
                    self.source = Source::Closed;
                    time::sleep_until(at.into()).await;
                    core.handle_timeout(now(), jitter())?;
                }
            }
        }
    }

    async fn read<M: Machine>(&mut self, core: &mut M) -> Result<(), Error> {
        let Source::Open(Open { wire, body }) = &mut self.source else {
            return core.handle_end(now(), jitter(), None);
        };
        let piece = poll_fn(|cx| wire.poll_piece(body, cx));
        let piece = match core.poll_timeout() {
            None => piece.await,
            Some(at) => match time::timeout_at(at.into(), piece).await {
                Ok(piece) => piece,
                Err(_) => return core.handle_timeout(now(), jitter()),
            },
        };
        match piece {
            Some(Ok(piece)) => core.handle_chunk(now(), piece),
            Some(Err(error)) => {
                self.source = Source::Closed;
                core.handle_end(now(), jitter(), Some(error.into()))
            }
            None => {
                self.release();
                core.handle_end(now(), jitter(), None)
            }
        }
    }

    async fn reopen<M: Machine>(&mut self, core: &mut M) -> Result<(), Error> {
        if !matches!(self.source, Source::Opening(_)) {
            let outgoing = match self.shared.get(&self.head, core.cursor()) {
                Ok(outgoing) => outgoing,
                Err(error) => return core.handle_reopen_failed(now(), jitter(), error),
            };
            let shared = Arc::clone(&self.shared);
            let deadline = shared.config.timeouts.request_head;
            let opening = async move { shared.open(outgoing, deadline).await };
            self.source = Source::Opening(Box::pin(opening));
        }
        let Source::Opening(opening) = &mut self.source else { return Ok(()) };
        let opened = opening.as_mut().await;
        self.source = Source::Closed;
        match opened {
            Ok(opened) => {
                let result = core.handle_reopened(now(), jitter(), opened.head());
                if let Err(error) = &result {
                    self.shared.note_lost_session(error, opened.session.as_ref());
                }
                self.source = Source::Open(opened.connection);
                result
            }
            Err(error) => core.handle_reopen_failed(now(), jitter(), error),
        }
    }

    /// Gives the connection back; what is left of the response is of no interest.
    pub(crate) fn release(&mut self) {
        if let Source::Open(open) = std::mem::replace(&mut self.source, Source::Closed) {
            self.shared.pool.put(open.wire, Some(open.body));
        }
    }
}
