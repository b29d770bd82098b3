//! What waits to be written, who waits for it and who writes it. No I/O.
//!
//! Concurrent senders share one stream. The first that finds nobody writing becomes the *writer*: it takes everything queued
//! as one [`Batch`], writes it outside this lock, and reports how far it got. Messages that arrive meanwhile are the next
//! batch, so a burst costs one system call, not one each. A writer that the stream holds up leaves the batch where it stands
//! and the role to the connection's keeper, which goes on from the same byte. So no message is lost, torn or written twice,
//! and no sender depends on another one's future being polled.
//!
//! Positions are counted in bytes since the connection began, newlines included: a message occupies `start..end`, and
//! `handed` is how far the operating system has taken the stream. That one number answers which messages were written and
//! whether a failed one may have reached the peer.

use std::{
    collections::VecDeque,
    io::IoSlice,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use crate::Error;

/// How many slices one write takes: two a message. More than this many small messages at a time are several writes.
pub(crate) const BATCH_SLICES: usize = 128;

#[derive(Debug)]
pub(crate) struct Outbox {
    queue: VecDeque<Bytes>,
    max_queued_bytes: usize,
    accepted: u64,
    handed: u64,
    state: State,
    writer: Writer,
    written_waiters: VecDeque<(u64, Waker)>,
    room_waiters: VecDeque<(u64, Waker)>,
    next_room: u64,
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
    /// Writes what it has and takes no more; the error says so to new senders.
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

/// A place in the line of senders that wait for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room(u64);

/// The messages a writer has taken and not fully written.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    messages: VecDeque<Bytes>,
    /// Bytes of the first message (its newline included) that are written.
    offset: usize,
}

impl Outbox {
    pub(crate) fn new(max_queued_bytes: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            max_queued_bytes,
            accepted: 0,
            handed: 0,
            state: State::Open,
            writer: Writer::Nobody,
            written_waiters: VecDeque::new(),
            room_waiters: VecDeque::new(),
            next_room: 0,
        }
    }

    /// Queues the message, in order, once there is room. Ready with its place; pending leaves the caller in line at `room`,
    /// to be left by [`leave_line`](Self::leave_line) if it gives up.
    pub(crate) fn poll_push(
        &mut self,
        cx: &Context<'_>,
        room: &mut Option<Room>,
        message: &mut Option<Bytes>,
    ) -> Poll<Result<Ticket, Error>> {
        let in_turn = match (&*room, self.room_waiters.front()) {
            (Some(room), Some((first, _))) => room.0 == *first,
            (None, None) => true,
            _ => false,
        };
        match &self.state {
            State::Closing(error) | State::Broken(Some(error)) | State::Ended(error) => {
                return Poll::Ready(Err(error.clone()));
            }
            State::Open if in_turn => {
                if let Some(taken) = message.take_if(|message| self.has_room_for(message.len())) {
                    if room.take().is_some() {
                        self.room_waiters.pop_front();
                        self.wake_first_in_line();
                    }
                    return Poll::Ready(Ok(self.push(taken)));
                }
            }
            State::Open | State::Broken(None) => {}
        }
        match room {
            Some(room) => update_waker(&mut self.room_waiters, room.0, cx.waker()),
            None => {
                self.room_waiters.push_back((self.next_room, cx.waker().clone()));
                *room = Some(Room(self.next_room));
                self.next_room += 1;
            }
        }
        Poll::Pending
    }

    /// Whether the message is written, or never will be. Pending registers the caller.
    pub(crate) fn poll_written(&mut self, cx: &Context<'_>, ticket: Ticket) -> Poll<Result<(), Error>> {
        if self.is_written(ticket) {
            return Poll::Ready(Ok(()));
        }
        if let State::Ended(error) = &self.state {
            return Poll::Ready(Err(error.clone().with_outcome_unknown(self.has_left(ticket))));
        }
        update_waker(&mut self.written_waiters, ticket.end, cx.waker());
        Poll::Pending
    }

    /// Whether the whole message was handed to the operating system.
    pub(crate) fn is_written(&self, ticket: Ticket) -> bool {
        self.handed >= ticket.end
    }

    /// Whether any byte of the message was handed to the operating system.
    pub(crate) fn has_left(&self, ticket: Ticket) -> bool {
        self.handed > ticket.start
    }

    /// Whether any byte of the message was handed to the operating system, or may still be.
    pub(crate) fn may_leave(&self, ticket: Ticket) -> bool {
        !self.is_dead() || self.has_left(ticket)
    }

    /// Gives up waiting for a message to be written; it will be all the same.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        remove_waiter(&mut self.written_waiters, ticket.end);
    }

    /// Gives up waiting for room.
    pub(crate) fn leave_line(&mut self, room: Room) {
        remove_waiter(&mut self.room_waiters, room.0);
        self.wake_first_in_line();
    }

    /// Makes the caller the writer if nobody is and there is something to write.
    pub(crate) fn claim(&mut self, writer: Writer) -> bool {
        let free = self.writer == Writer::Nobody && self.handed < self.accepted && !self.is_dead();
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

    /// The operating system took `bytes` more. The wakers of those who can go on are put into `woken`, to be woken outside
    /// the lock.
    pub(crate) fn advance(&mut self, bytes: usize, woken: &mut Vec<Waker>) {
        self.handed = self.handed.saturating_add(bytes as u64).min(self.accepted);
        while self.written_waiters.front().is_some_and(|(end, _)| *end <= self.handed) {
            woken.extend(self.written_waiters.pop_front().map(|(_, waker)| waker));
        }
        woken.extend(self.room_waiters.front().map(|(_, waker)| waker.clone()));
    }

    /// Takes no more messages; what is queued is still written.
    pub(crate) fn begin_close(&mut self, error: Error) {
        if matches!(self.state, State::Open) {
            self.state = State::Closing(error);
            self.room_waiters.drain(..).for_each(|(_, waker)| waker.wake());
        }
    }

    /// A write did not succeed: nothing more can be written.
    pub(crate) fn break_off(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Open) {
            State::Open => State::Broken(None),
            State::Closing(error) => State::Broken(Some(error)),
            state @ (State::Broken(_) | State::Ended(_)) => state,
        };
        self.queue.clear();
        self.writer = Writer::Nobody;
    }

    /// Nothing more will be written: everybody who waits gets `error`, and so do later senders, unless a later call brings
    /// an error that knows more.
    pub(crate) fn end(&mut self, error: Error) {
        self.state = State::Ended(error);
        self.queue.clear();
        self.written_waiters.drain(..).chain(self.room_waiters.drain(..)).for_each(|(_, waker)| waker.wake());
    }

    /// Bytes accepted and not handed over.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        self.accepted - self.handed
    }

    /// Whether this side takes no more messages.
    pub(crate) fn is_closing(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// Whether nothing more can be written.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, State::Broken(_) | State::Ended(_))
    }

    fn has_room_for(&self, message_bytes: usize) -> bool {
        let queued = self.unwritten_bytes();
        queued == 0
            || queued.saturating_add(message_bytes as u64).saturating_add(1) <= self.max_queued_bytes as u64
    }

    fn push(&mut self, message: Bytes) -> Ticket {
        let start = self.accepted;
        let end = start + message.len() as u64 + 1;
        self.accepted = end;
        self.queue.push_back(message);
        Ticket { start, end }
    }

    fn wake_first_in_line(&self) {
        if let Some((_, waker)) = self.room_waiters.front() {
            waker.wake_by_ref();
        }
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
        let parts = self.messages.iter().flat_map(|message| [&**message, b"\n"]);
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

    /// Notes that `bytes` were written.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
        while let Some(first) = self.messages.front()
            && self.offset > first.len()
        {
            self.offset -= first.len() + 1;
            self.messages.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.offset = 0;
    }
}

fn update_waker(waiters: &mut VecDeque<(u64, Waker)>, key: u64, waker: &Waker) {
    match waiters.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(at) => {
            if let Some((_, old)) = waiters.get_mut(at) {
                old.clone_from(waker);
            }
        }
        Err(at) => waiters.insert(at, (key, waker.clone())),
    }
}

fn remove_waiter(waiters: &mut VecDeque<(u64, Waker)>, key: u64) {
    if let Ok(at) = waiters.binary_search_by_key(&key, |(key, _)| *key) {
        waiters.remove(at);
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
