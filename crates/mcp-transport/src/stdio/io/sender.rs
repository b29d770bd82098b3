//! The sending handle and the future of one message.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;

use super::{lock, shared::Shared};
use crate::{
    Error, ErrorKind,
    stdio::{
        CloseReport,
        outbox::{Room, Ticket, Writer},
    },
};

/// The sending half of a line-framed connection. Clones share one ordered stream.
///
/// Dropping the last clone closes the connection in the background, as [`close`](Self::close) does.
#[derive(Clone)]
pub struct LineSender {
    handle: Arc<Handle>,
}

/// Counts the clones: its drop is the last one's.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.begin_close();
    }
}

impl LineSender {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { handle: Arc::new(Handle { shared }) }
    }

    /// Sends one message, without its newline; resolves when all of it is handed to the operating system.
    ///
    /// Messages are written in the order in which they were queued, which is at the first poll as long as there is room
    /// ([`LineLimits::max_queued_bytes`](crate::stdio::LineLimits::max_queued_bytes)). Concurrent sends share their writes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the message either not queued or written whole, later, in its place. It never tears,
    /// delays or repeats another message. [`Sending::has_left`] tells whether the peer may have seen it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`] for a message that is empty or has a raw CR or LF in it; [`ErrorKind::Closed`] when the
    /// connection is over or being closed, with [`Error::outcome_unknown`] set when a part of the message had been written.
    pub fn send(&self, message: Bytes) -> Sending<'_> {
        Sending { shared: &self.handle.shared, message: Some(message), step: Step::New }
    }

    /// Whether any byte of a message with this place was handed to the operating system, so that the peer may have seen it.
    pub fn has_left(&self, place: Place) -> bool {
        lock(&self.handle.shared.outbox).has_left(place.0)
    }

    /// Whether the peer may have seen a message with this place, or may see it yet: one that is queued is still written while the
    /// connection is closed.
    pub fn may_leave(&self, place: Place) -> bool {
        lock(&self.handle.shared.outbox).may_leave(place.0)
    }

    /// Closes the connection: takes no more messages, writes what is queued, closes the peer's input, and sees a process to
    /// its end ([`CloseStage`](crate::stdio::CloseStage) lists the steps,
    /// [`CloseWaits`](crate::stdio::CloseWaits) bounds each).
    ///
    /// Meanwhile the owner of the receiver should go on receiving (or drop it), so that the peer is not stuck in a write;
    /// if it does not, the peer is terminated at the end of the waits. Concurrent and later callers get the same report.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop closing.
    pub async fn close(&self) -> CloseReport {
        self.handle.shared.begin_close();
        self.handle.shared.report().await
    }
}

impl fmt::Debug for LineSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineSender").finish_non_exhaustive()
    }
}

/// Where a message lies in the stream of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(Ticket);

/// The future of [`LineSender::send`].
#[must_use = "a message is queued when the future is first polled"]
pub struct Sending<'a> {
    shared: &'a Arc<Shared>,
    message: Option<Bytes>,
    step: Step,
}

/// ```text
///  New ──> InLine ──┐
///   └───────────────┴──> Queued ──> Waiting ──> Done
/// ```
///
/// No step holds the role of the stream's writer: a future that is pending and not polled for a while must not hold up others.
enum Step {
    New,
    /// Waits for room in the queue.
    InLine(Room),
    /// In the queue.
    Queued(Ticket),
    /// In the queue, and to be woken when it is written.
    Waiting(Ticket),
    Done(Option<Ticket>),
}

impl Sending<'_> {
    /// Whether any byte of the message was handed to the operating system, so that the peer may have seen it.
    pub fn has_left(&self) -> bool {
        match self.step {
            Step::New | Step::InLine(_) | Step::Done(None) => false,
            Step::Queued(ticket) | Step::Waiting(ticket) | Step::Done(Some(ticket)) => {
                lock(&self.shared.outbox).has_left(ticket)
            }
        }
    }

    /// Whether the message is in the queue, so that it goes out in its place even if this future is dropped. Before, it waits
    /// for room, and dropping the future takes it back.
    pub fn is_queued(&self) -> bool {
        matches!(self.step, Step::Queued(_) | Step::Waiting(_) | Step::Done(Some(_)))
    }

    fn check(&self) -> Result<(), Error> {
        let message = self.message.as_deref().unwrap_or_default();
        if message.is_empty() {
            return Err(Error::new(ErrorKind::Misuse, "the message is empty"));
        }
        if let Some(at) = memchr::memchr2(b'\n', b'\r', message) {
            let text = format!("the message has a raw line break at byte {at}");
            return Err(Error::new(ErrorKind::Misuse, text));
        }
        Ok(())
    }

    /// Writes what is queued, this message last, as far as the stream takes it now; the keeper does the rest.
    ///
    /// In a burst other senders are about to queue theirs: the keeper, which runs after them, writes all of it at once.
    fn write(&self, cx: &mut Context<'_>) {
        if self.shared.is_burst() || self.shared.poll_write(cx).is_pending() {
            self.shared.hand_to_keeper();
        }
    }
}

impl Sending<'_> {
    /// Ready when the message is in the queue, for who need not wait until it is written: it goes out in its place even if
    /// this future is dropped. [`LineSender::has_left`] tells later whether it did.
    ///
    /// # Errors
    ///
    /// As for [`LineSender::send`].
    pub fn poll_queued(&mut self, cx: &mut Context<'_>) -> Poll<Result<Place, Error>> {
        let mut room = match self.step {
            Step::New => {
                if let Err(error) = self.check() {
                    self.step = Step::Done(None);
                    return Poll::Ready(Err(error));
                }
                None
            }
            Step::InLine(room) => Some(room),
            Step::Queued(ticket) | Step::Waiting(ticket) | Step::Done(Some(ticket)) => {
                return Poll::Ready(Ok(Place(ticket)));
            }
            // Polled after it was ready, which a future may answer with anything but harm.
            Step::Done(None) => return Poll::Pending,
        };
        let mut outbox = lock(&self.shared.outbox);
        match outbox.poll_push(cx, &mut room, &mut self.message) {
            Poll::Ready(Ok(ticket)) => {
                self.step = Step::Queued(ticket);
                if outbox.claim(Writer::Sender) {
                    drop(outbox);
                    self.write(cx);
                }
                Poll::Ready(Ok(Place(ticket)))
            }
            Poll::Ready(Err(error)) => {
                self.step = Step::Done(None);
                Poll::Ready(Err(error))
            }
            Poll::Pending => {
                if let Some(room) = room {
                    self.step = Step::InLine(room);
                }
                Poll::Pending
            }
        }
    }
}

impl Future for Sending<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.step, Step::Done(_)) {
            return Poll::Pending;
        }
        let Place(ticket) = std::task::ready!(self.poll_queued(cx))?;
        self.step = Step::Waiting(ticket);
        let result = std::task::ready!(lock(&self.shared.outbox).poll_written(cx, ticket));
        self.step = Step::Done(Some(ticket));
        Poll::Ready(result)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        match self.step {
            Step::New | Step::Queued(_) | Step::Done(_) => {}
            Step::InLine(room) => lock(&self.shared.outbox).leave_line(room),
            Step::Waiting(ticket) => lock(&self.shared.outbox).forget(ticket),
        }
    }
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("has_left", &self.has_left()).finish_non_exhaustive()
    }
}
