//! What an exchange and an event stream have in common: bytes come from a response, and then perhaps from another one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::body::Body as _;
use tokio::time::{self, Sleep};

use super::connection::Shared;
use super::core::machine::{Machine, Step};
use super::core::session::SessionId;
use super::io::clock::now;
use super::io::jitter::jitter;
use super::io::open::{Open, Opened};
use super::post::RequestHead;
use crate::Error;

/// A state machine's way to the network: what comes down from the server.
pub(crate) struct Downstream {
    pub(crate) shared: Arc<Shared>,
    head: RequestHead,
    /// What the request carried. It is resumed in the same session: another one, opened meanwhile, does not know the stream.
    pub(crate) session: Option<SessionId>,
    source: Source,
    /// For the deadline of the core. Kept from one piece to the next: they most often have the same.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Where bytes come from now.
enum Source {
    Closed,
    Open(Open),
    /// A GET under way. Boxed: it happens seldom, and would make every exchange larger.
    Opening(Pin<Box<dyn Future<Output = Result<Opened, Error>> + Send>>),
}

impl Downstream {
    pub(crate) fn new(
        shared: Arc<Shared>,
        head: RequestHead,
        connection: Open,
        session: Option<SessionId>,
    ) -> Self {
        Self { shared, head, session, source: Source::Open(connection), timer: None }
    }

    /// Does what `core` asks for until a message is ready (`true`) or nothing more comes (`false`).
    ///
    /// Cancel safe: what is under way stays in `self`. An error closes the connection at once.
    pub(crate) async fn advance(&mut self, core: &mut (dyn Machine + Send)) -> Result<bool, Error> {
        poll_fn(|cx| self.poll_advance(core, cx)).await
    }

    /// Polled and not awaited, so that it is compiled here, once, and not wherever somebody awaits a message.
    fn poll_advance(&mut self, core: &mut dyn Machine, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        let result = ready!(self.poll_run(core, cx));
        if result.is_err() {
            self.source = Source::Closed;
        }
        Poll::Ready(result)
    }

    fn poll_run(&mut self, core: &mut dyn Machine, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        loop {
            match core.poll()? {
                Step::Done => {
                    self.release();
                    return Poll::Ready(Ok(false));
                }
                Step::Message => return Poll::Ready(Ok(true)),
                Step::Read => ready!(self.poll_read(core, cx))?,
                Step::Reopen => ready!(self.poll_reopen(core, cx))?,
                Step::Wait(at) => {
                    self.source = Source::Closed;
                    ready!(self.poll_timer(Some(at), cx));
                    core.handle_timeout(now(), jitter())?;
                }
            }
        }
    }

    fn poll_read(&mut self, core: &mut dyn Machine, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Source::Open(Open { wire, body }) = &mut self.source else {
            return Poll::Ready(core.handle_end(now(), jitter(), None));
        };
        // Known without asking the connection where the length was declared.
        if body.is_end_stream() {
            self.release();
            return Poll::Ready(core.handle_end(now(), jitter(), None));
        }
        let Poll::Ready(piece) = wire.poll_piece(body, cx) else {
            ready!(self.poll_timer(core.poll_timeout(), cx));
            return Poll::Ready(core.handle_timeout(now(), jitter()));
        };
        Poll::Ready(match piece {
            Some(Ok(piece)) => core.handle_chunk(now(), piece),
            Some(Err(error)) => {
                self.source = Source::Closed;
                core.handle_end(now(), jitter(), Some(error.into()))
            }
            None => {
                self.release();
                core.handle_end(now(), jitter(), None)
            }
        })
    }

    fn poll_reopen(&mut self, core: &mut dyn Machine, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if !matches!(self.source, Source::Opening(_)) {
            let (shared, head, session) = (Arc::clone(&self.shared), self.head.clone(), self.session.clone());
            let cursor = core.cursor().to_owned();
            let opening = async move {
                let mut outgoing = shared.get(&head, session, &cursor)?;
                let opened = shared.open(&mut outgoing, shared.config.timeouts.request_head).await?;
                Ok(opened.read_refusal(&shared.config).await)
            };
            self.source = Source::Opening(Box::pin(opening));
        }
        let Source::Opening(opening) = &mut self.source else { return Poll::Ready(Ok(())) };
        let opened = ready!(opening.as_mut().poll(cx));
        self.source = Source::Closed;
        Poll::Ready(match opened {
            Ok(opened) => {
                let result = core.handle_reopened(now(), jitter(), opened.head());
                if let Err(error) = &result {
                    self.shared.note_lost_session(error, opened.session.as_ref());
                }
                self.source = Source::Open(opened.connection);
                result
            }
            Err(error) => core.handle_reopen_failed(now(), jitter(), error),
        })
    }

    /// Ready when the deadline has come. No timer exists while there is none.
    fn poll_timer(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline.map(time::Instant::from_std) else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(time::sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(cx)
    }

    /// Gives the connection back; what is left of the response is of no interest.
    pub(crate) fn release(&mut self) {
        if let Source::Open(open) = std::mem::replace(&mut self.source, Source::Closed) {
            self.shared.pool.put(open.wire, Some(open.body));
        }
    }
}
