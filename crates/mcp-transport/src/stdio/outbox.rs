//! What waits to be written, who waits for it and who writes it. No I/O.
//!
//! ```text
//!                       room            a writer
//!   put() ──> the line ──────> the queue ───────> a batch ──> handed to the operating system
//!                │
//!                └── take_back(): as if it had never been there
//! ```
//!
//! Every message stands in one order from the moment it is put in: that of the calls of [`Outbox::put`]. The queue holds so many
//! bytes; what it has no room for stands in line, and moves up when the writer makes room. It is the messages that stand there
//! and not those who sent them: nobody has to be polled when its turn comes, so that nobody who is not can hold up the others.
//! Nor is anybody overtaken, however small a later message is, so that a large one does not wait for ever.
//!
//! A message in line can be taken back by whoever sent it, and then has certainly not left. One in the queue is written, whole
//! and once, whatever becomes of its sender, unless the connection ends before.
//!
//! Concurrent senders share one stream. The first that finds nobody writing becomes the *writer*: it takes everything queued
//! as one [`Batch`], writes it outside this lock, and reports how far it got. Messages that arrive meanwhile are the next
//! batch, so a burst costs one system call, not one each. A writer that the stream holds up leaves the batch where it stands
//! and the role to the connection's keeper, which goes on from the same byte. So no message is lost, torn or written twice,
//! and no sender depends on another one's future being polled.
//!
//! Positions are counted in bytes since the connection began, newlines included: a message occupies `start..end`, also where it
//! is taken back later; `handed` is how far the operating system has taken the stream. That one number answers which messages
//! were written and whether a failed one may have reached the peer.
//!
//! Nothing that belongs to others is woken or dropped here: it is given back as [`Released`], for when the lock is free.

use std::{
    collections::VecDeque,
    io::IoSlice,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Poll, Waker},
};

use bytes::Bytes;

use crate::{Error, watched::wake_each};

/// How many slices one write takes: two a message. More than this many small messages at a time are several writes.
pub(crate) const BATCH_SLICES: usize = 128;

#[derive(Debug)]
pub(crate) struct Outbox {
    queue: VecDeque<Placed>,
    /// Invariant: the queue has no room for the first of it.
    line: VecDeque<Placed>,
    max_queued_bytes: usize,
    /// The end of the newest message that was put in.
    accepted: u64,
    /// The end of the newest message that came into the queue.
    queued: u64,
    handed: u64,
    unwritten_bytes: u64,
    state: State,
    writer: Writer,
    /// Who waits for which end to be handed over, in order.
    waiters: VecDeque<((u64, Waiter), Waker)>,
    next_waiter: u64,
}

/// One of those who wait for a message; several may wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiter(u64);

/// A message and its place.
#[derive(Debug)]
pub(crate) struct Placed {
    message: Bytes,
    ticket: Ticket,
}

/// ```text
///  Open ──> Closing ──┐
///    │                ├──> Ended
///    └────> Broken ───┘
/// ```
#[derive(Debug)]
enum State {
    /// Takes messages.
    Open,
    /// Writes what is queued and takes no more; the error says so to everybody else.
    Closing(Error),
    /// A write did not succeed. Senders wait for the error that tells why the connection ended, which comes soon; where this
    /// side was closing anyway, new ones get that error.
    Broken(Option<Error>),
    /// Over; every sender gets this error.
    Ended(Error),
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    Nobody,
    Sender,
    Keeper,
}

/// Where an accepted message lies in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    start: u64,
    end: u64,
}

/// The messages a writer has taken and not fully written.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    messages: VecDeque<Placed>,
    /// Bytes of the first message (its newline included) that are written.
    offset: usize,
}

/// What a change sets free, to be let go once no lock is held: wakers and messages are others' own, and may do anything when
/// they are woken or dropped.
#[derive(Debug, Default)]
#[must_use = "somebody waits for it"]
pub(crate) struct Released {
    woken: Vec<Waker>,
    replaced: Option<Waker>,
    messages: VecDeque<Placed>,
}

impl Outbox {
    pub(crate) fn new(max_queued_bytes: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            line: VecDeque::new(),
            max_queued_bytes,
            accepted: 0,
            queued: 0,
            handed: 0,
            unwritten_bytes: 0,
            state: State::Open,
            writer: Writer::Nobody,
            waiters: VecDeque::new(),
            next_waiter: 0,
        }
    }

    /// Takes a message in, behind all that were taken in before.
    pub(crate) fn put(&mut self, message: Bytes) -> Result<Ticket, Error> {
        if let State::Closing(error) | State::Broken(Some(error)) | State::Ended(error) = &self.state {
            return Err(error.clone());
        }
        let start = self.accepted;
        let ticket = Ticket { start, end: start + message.len() as u64 + 1 };
        self.accepted = ticket.end;
        if matches!(self.state, State::Open) {
            self.line.push_back(Placed { message, ticket });
            self.move_up();
        }
        Ok(ticket)
    }

    /// Takes a message out of the line. `false`: it is not in line any more, and may leave or have left.
    pub(crate) fn take_back(&mut self, ticket: Ticket, released: &mut Released) -> bool {
        if self.is_queued(ticket) {
            return false;
        }
        if let Ok(at) = self.line.binary_search_by_key(&ticket.start, |placed| placed.ticket.start) {
            released.messages.extend(self.line.remove(at));
            self.move_up();
        }
        true
    }

    /// Whether the message is written, or never will be. Pending has `waker` woken when that changes, until `waiter`, whose name
    /// is kept there, gives up by [`forget`](Self::forget).
    pub(crate) fn poll_written(
        &mut self,
        waker: Waker,
        ticket: Ticket,
        waiter: &mut Option<Waiter>,
        released: &mut Released,
    ) -> Poll<Result<(), Error>> {
        let ready = match &self.state {
            _ if self.is_written(ticket) => Ok(()),
            State::Closing(error) | State::Broken(Some(error)) if !self.is_queued(ticket) => {
                Err(error.clone())
            }
            State::Ended(error) => Err(error.clone().with_outcome_unknown(self.has_left(ticket))),
            _ => {
                released.replaced = self.wait(ticket.end, waiter, waker);
                return Poll::Pending;
            }
        };
        released.replaced = Some(waker);
        Poll::Ready(ready)
    }

    /// Whether the message is in the queue, or was: it cannot be taken back.
    pub(crate) fn is_queued(&self, ticket: Ticket) -> bool {
        ticket.end <= self.queued
    }

    /// Whether the whole message was handed to the operating system.
    pub(crate) fn is_written(&self, ticket: Ticket) -> bool {
        self.handed >= ticket.end
    }

    /// Whether the message is written, or never will be.
    pub(crate) fn is_settled(&self, ticket: Ticket) -> bool {
        self.is_written(ticket) || self.is_dead() || (self.is_closing() && !self.is_queued(ticket))
    }

    /// Whether any byte of the message was handed to the operating system. Of one that was taken back nothing is known.
    pub(crate) fn has_left(&self, ticket: Ticket) -> bool {
        self.handed > ticket.start
    }

    /// Whether any byte of the message was handed to the operating system, or may still be.
    pub(crate) fn may_leave(&self, ticket: Ticket) -> bool {
        !self.is_dead() || self.has_left(ticket)
    }

    /// Gives up waiting for a message to be written.
    pub(crate) fn forget(&mut self, ticket: Ticket, waiter: Waiter, released: &mut Released) {
        if let Ok(at) = self.waiters.binary_search_by_key(&(ticket.end, waiter), |(key, _)| *key) {
            released.replaced = self.waiters.remove(at).map(|(_, waker)| waker);
        }
    }

    /// Makes the caller the writer if nobody is and there is something to write.
    pub(crate) fn claim(&mut self, writer: Writer) -> bool {
        let free = self.writer == Writer::Nobody && self.unwritten_bytes > 0 && !self.is_dead();
        if free {
            self.writer = writer;
        }
        free
    }

    pub(crate) fn set_writer(&mut self, writer: Writer) {
        self.writer = writer;
    }

    pub(crate) fn writer(&self) -> Writer {
        self.writer
    }

    /// Moves everything queued into an empty batch; false when there is nothing.
    pub(crate) fn take_batch(&mut self, batch: &mut Batch) -> bool {
        debug_assert!(batch.messages.is_empty(), "a batch is written to its end before the next");
        std::mem::swap(&mut self.queue, &mut batch.messages);
        !batch.messages.is_empty()
    }

    /// The operating system took `bytes` more and has the stream up to `handed` by now. Who can go on is put into `released`.
    pub(crate) fn advance(&mut self, bytes: usize, handed: u64, released: &mut Released) {
        self.unwritten_bytes = self.unwritten_bytes.saturating_sub(bytes as u64);
        self.handed = self.handed.max(handed);
        while self.waiters.front().is_some_and(|((end, _), _)| *end <= self.handed) {
            released.woken.extend(self.waiters.pop_front().map(|(_, waker)| waker));
        }
        self.move_up();
    }

    /// Takes no more messages; what is queued is still written, what stands in line is not.
    pub(crate) fn begin_close(&mut self, error: Error) -> Released {
        let mut released = Released::default();
        if matches!(self.state, State::Open) {
            self.state = State::Closing(error);
            released.messages.append(&mut self.line);
            let kept = self.waiters.partition_point(|((end, _), _)| *end <= self.queued);
            released.woken.extend(self.waiters.drain(kept..).map(|(_, waker)| waker));
        }
        released
    }

    /// A write did not succeed: nothing more can be written.
    pub(crate) fn break_off(&mut self) -> Released {
        self.state = match std::mem::replace(&mut self.state, State::Open) {
            State::Open => State::Broken(None),
            State::Closing(error) => State::Broken(Some(error)),
            state @ (State::Broken(_) | State::Ended(_)) => state,
        };
        self.writer = Writer::Nobody;
        Released { messages: self.clear(), ..Released::default() }
    }

    /// Nothing more will be written: everybody who waits gets `error`, and so do later senders, unless a later call brings
    /// an error that knows more.
    pub(crate) fn end(&mut self, error: Error) -> Released {
        self.state = State::Ended(error);
        let woken = self.waiters.drain(..).map(|(_, waker)| waker).collect();
        Released { woken, messages: self.clear(), ..Released::default() }
    }

    /// Bytes queued and not handed over.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        self.unwritten_bytes
    }

    /// Whether this side takes no more messages.
    pub(crate) fn is_closing(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// Whether nothing more can be written.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, State::Broken(_) | State::Ended(_))
    }

    /// Lets those who stand in line into the queue, in order, as far as there is room.
    fn move_up(&mut self) {
        while let Some(first) = self.line.front() {
            let bytes = first.ticket.end - first.ticket.start;
            let queued = self.unwritten_bytes;
            // One above the limit goes alone: it could never be sent otherwise.
            if queued > 0 && queued.saturating_add(bytes) > self.max_queued_bytes as u64 {
                return;
            }
            self.unwritten_bytes += bytes;
            self.queued = first.ticket.end;
            self.queue.extend(self.line.pop_front());
        }
    }

    fn clear(&mut self) -> VecDeque<Placed> {
        let mut cleared = std::mem::take(&mut self.queue);
        cleared.append(&mut self.line);
        cleared
    }

    /// Gives back the waker that the waiter had before.
    fn wait(&mut self, end: u64, waiter: &mut Option<Waiter>, waker: Waker) -> Option<Waker> {
        let waiter = *waiter.get_or_insert_with(|| {
            self.next_waiter += 1;
            Waiter(self.next_waiter)
        });
        match self.waiters.binary_search_by_key(&(end, waiter), |(key, _)| *key) {
            Ok(at) => self.waiters.get_mut(at).map(|(_, old)| std::mem::replace(old, waker)),
            Err(at) => {
                self.waiters.insert(at, ((end, waiter), waker));
                None
            }
        }
    }
}

impl Released {
    /// Wakes and drops all of it. One that panics costs no other its wake-up, nor the writer its task; the panic hook has
    /// reported it.
    pub(crate) fn let_go(mut self) {
        self.wake();
        let Self { replaced, messages, .. } = self;
        let _ = catch_unwind(AssertUnwindSafe(|| drop(replaced)));
        for placed in messages {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(placed)));
        }
    }

    /// Wakes those who can go on, and keeps the memory for the next.
    pub(crate) fn wake(&mut self) {
        wake_each(self.woken.drain(..));
    }

    pub(crate) fn wakes_nobody(&self) -> bool {
        self.woken.is_empty()
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Fills `slices` with what is next to write, each message followed by a newline; gives how many it filled.
    pub(crate) fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut skip = self.offset;
        let parts = self.messages.iter().flat_map(|placed| [&*placed.message, b"\n"]);
        let mut slots = slices.iter_mut();
        for part in parts {
            // Invariant: `offset` lies inside the first message and its newline.
            let part = if skip == 0 {
                part
            } else {
                let now = skip.min(part.len());
                skip -= now;
                part.get(now..).unwrap_or_default()
            };
            if part.is_empty() {
                continue;
            }
            let Some(slot) = slots.next() else { break };
            *slot = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Notes that `bytes` were written. Gives how far the stream is handed over.
    pub(crate) fn advance(&mut self, bytes: usize) -> u64 {
        let mut handed = 0;
        self.offset += bytes;
        while let Some(first) = self.messages.front() {
            if self.offset <= first.message.len() {
                return first.ticket.start + self.offset as u64;
            }
            self.offset -= first.message.len() + 1;
            handed = first.ticket.end;
            self.messages.pop_front();
        }
        handed
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.offset = 0;
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
