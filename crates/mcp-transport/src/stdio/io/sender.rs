//! The sending handle and the future of one message.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, MutexGuard},
    task::{Context, Poll},
};

use bytes::Bytes;

use super::{lock, shared::Shared, signal::Flags};
use crate::{
    Error, ErrorKind,
    stdio::{
        CloseReport,
        outbox::{Outbox, Released, Ticket, Waiter, Writer},
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
    /// Messages are written in the order in which their futures were first polled, whether or not they are polled again.
    /// Messages beyond [`LineLimits::max_queued_bytes`](crate::stdio::LineLimits::max_queued_bytes) wait in line and move up
    /// by themselves. Concurrent sends share their writes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws a message that waits in line; one that is already queued is still written completely, in
    /// its place. Other messages are never torn, delayed or repeated by it. [`Sending::has_left`] says whether the peer may
    /// have seen the message.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`] for a message that is empty or has a raw CR or LF in it; [`ErrorKind::Closed`] when the
    /// connection is over or being closed, with [`Error::outcome_unknown`] set when a part of the message had been written.
    pub fn send(&self, message: Bytes) -> Sending<'_> {
        Sending { shared: &self.handle.shared, step: Step::New(message), waiter: None }
    }

    /// Holds the line, to put messages in without waiting, and to ask what became of others in one moment.
    ///
    /// While it is held nothing moves up and no writer gets at what is queued: hold it shortly, and never across an await. What is put
    /// in is written when somebody says [`write`](Self::write) or [`write_later`](Self::write_later) after it was let go.
    ///
    /// It is the guard of a lock that all of this sender takes. Until it is dropped or [freed](HeldLine::free), the same thread calls
    /// nothing else of this sender, of a clone of it or of its receiver, and polls none of their futures: that would wait for itself
    /// for ever, or panic.
    pub fn hold(&self) -> HeldLine<'_> {
        HeldLine { outbox: Some(lock(&self.handle.shared.outbox)), released: Released::default() }
    }

    /// Writes what is queued, as far as the stream takes it now; the connection's own task does the rest. In a burst that task does
    /// all of it: other senders are about to put theirs in, and it writes them at once.
    pub fn write(&self) {
        let shared = &self.handle.shared;
        if lock(&shared.outbox).claim(Writer::Sender) {
            shared.write_now();
        }
    }

    /// Has the connection's own task write what is queued. Works outside of a runtime, too.
    pub fn write_later(&self) {
        let shared = &self.handle.shared;
        let claimed = lock(&shared.outbox).claim(Writer::Keeper);
        if claimed {
            shared.signal.raise(Flags::WRITE);
        }
    }

    /// Waits until a message with this place is written, or never will be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn written(&self, place: Place) {
        // Whatever it is: it waits no longer.
        let step = Step::Watched(place.0);
        let _ = Sending { shared: &self.handle.shared, step, waiter: None }.await;
    }

    /// Whether any byte of a message with this place was handed to the operating system, so that the peer may have seen it. Means
    /// nothing for a message that was [taken back](HeldLine::take_back).
    pub fn has_left(&self, place: Place) -> bool {
        lock(&self.handle.shared.outbox).has_left(place.0)
    }

    /// Whether the peer may have seen a message with this place, or may see it yet: one that is queued is still written while the
    /// connection is closed. Means nothing for a message that was [taken back](HeldLine::take_back).
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

    /// The last bytes that the server process wrote to standard error, invalid UTF-8 replaced, whoever ended the connection. `None`
    /// until the connection is closed (until [`close`](Self::close) is done), where nothing was written, and over a byte stream.
    /// Untrusted: show it through [`Untrusted`](crate::Untrusted).
    pub fn stderr_tail(&self) -> Option<&str> {
        self.handle.shared.last_words()
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

/// The line of a connection while nothing moves in it; from [`LineSender::hold`]. A lock: what may not be called meanwhile is said
/// there.
pub struct HeldLine<'a> {
    /// `None` once it is let go.
    outbox: Option<MutexGuard<'a, Outbox>>,
    released: Released,
}

impl HeldLine<'_> {
    /// Puts a message, without its newline, behind everything that was put in or sent before. It waits for no room and is not
    /// bounded here: whoever puts bounds what waits.
    ///
    /// # Errors
    ///
    /// As for [`LineSender::send`].
    pub fn put(&mut self, message: Bytes) -> Result<Place, Error> {
        check(&message)?;
        match &mut self.outbox {
            Some(outbox) => outbox.put(message).map(Place),
            None => Err(Error::new(ErrorKind::Closed, "the line was let go")),
        }
    }

    /// Whether the message has got room, and is written whatever becomes of whoever sent it.
    pub fn is_queued(&self, place: Place) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.is_queued(place.0))
    }

    /// Whether all of the message is handed to the operating system, or never will be.
    pub fn is_settled(&self, place: Place) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| outbox.is_settled(place.0))
    }

    /// Takes a message back that waits for room: it never leaves. `false`: it has got room, and may leave or has left.
    pub fn take_back(&mut self, place: Place) -> bool {
        let Self { outbox, released } = self;
        outbox.as_mut().is_some_and(|outbox| outbox.take_back(place.0, released))
    }

    /// Lets the line go, for who holds locks of its own: messages that were taken back are dropped with this value, and dropping
    /// one may run anything. Afterwards nothing can be put in, and no place is known.
    pub fn free(&mut self) {
        self.outbox = None;
    }
}

impl Drop for HeldLine<'_> {
    fn drop(&mut self) {
        self.outbox = None;
        std::mem::take(&mut self.released).let_go();
    }
}

impl fmt::Debug for HeldLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLine").finish_non_exhaustive()
    }
}

/// The future of [`LineSender::send`].
#[must_use = "a message is put in line when the future is first polled"]
pub struct Sending<'a> {
    shared: &'a Arc<Shared>,
    step: Step,
    /// Once it waits.
    waiter: Option<Waiter>,
}

/// ```text
///  New ──> Waiting ──> Done
/// ```
///
/// No step holds the role of the stream's writer, nor a turn in line: a future that is pending and not polled for a while must not
/// hold up others.
enum Step {
    New(Bytes),
    /// In line or in the queue, and to be woken when it is written.
    Waiting(Ticket),
    /// As [`Waiting`](Self::Waiting), for a message that is not this future's own.
    Watched(Ticket),
    Done(Option<Ticket>),
}

impl Sending<'_> {
    /// Whether any byte of the message was handed to the operating system, so that the peer may have seen it.
    pub fn has_left(&self) -> bool {
        match self.step {
            Step::New(_) | Step::Done(None) => false,
            Step::Waiting(ticket) | Step::Watched(ticket) | Step::Done(Some(ticket)) => {
                lock(&self.shared.outbox).has_left(ticket)
            }
        }
    }

    /// Puts the message in line and writes what can be written.
    fn put(&self, message: Bytes) -> Result<Ticket, Error> {
        check(&message)?;
        let mut outbox = lock(&self.shared.outbox);
        let ticket = outbox.put(message)?;
        let claimed = outbox.claim(Writer::Sender);
        drop(outbox);
        if claimed {
            self.shared.write_now();
        }
        Ok(ticket)
    }
}

fn check(message: &[u8]) -> Result<(), Error> {
    if message.is_empty() {
        return Err(Error::new(ErrorKind::Misuse, "the message is empty"));
    }
    if let Some(at) = memchr::memchr2(b'\n', b'\r', message) {
        let text = format!("the message has a raw line break at byte {at}");
        return Err(Error::new(ErrorKind::Misuse, text));
    }
    Ok(())
}

impl Future for Sending<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = match std::mem::replace(&mut self.step, Step::Done(None)) {
            Step::New(message) => {
                let ticket = self.put(message)?;
                self.step = Step::Waiting(ticket);
                ticket
            }
            step @ (Step::Waiting(ticket) | Step::Watched(ticket)) => {
                self.step = step;
                ticket
            }
            // Polled after it was ready, which a future may answer with anything but harm.
            step @ Step::Done(_) => {
                self.step = step;
                return Poll::Pending;
            }
        };
        let mut released = Released::default();
        // Made before, and what it replaces dropped after: both are the caller's own.
        let waker = cx.waker().clone();
        let polled = lock(&self.shared.outbox).poll_written(waker, ticket, &mut self.waiter, &mut released);
        released.let_go();
        let result = std::task::ready!(polled);
        self.step = Step::Done(Some(ticket));
        Poll::Ready(result)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut released = Released::default();
        match self.step {
            Step::New(_) | Step::Done(_) => return,
            Step::Waiting(ticket) => {
                let mut outbox = lock(&self.shared.outbox);
                outbox.take_back(ticket, &mut released);
                self.waiter.into_iter().for_each(|waiter| outbox.forget(ticket, waiter, &mut released));
            }
            Step::Watched(ticket) => {
                let mut outbox = lock(&self.shared.outbox);
                self.waiter.into_iter().for_each(|waiter| outbox.forget(ticket, waiter, &mut released));
            }
        }
        released.let_go();
    }
}

impl fmt::Debug for Sending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("has_left", &self.has_left()).finish_non_exhaustive()
    }
}
