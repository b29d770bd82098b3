//! Driving one message a line: everything that is said is put on the line under the driver's lock, in the order in which the core
//! said it.
//!
//! What there is no room for stands in line, and moves up when the stream takes more: whoever sent it need not be polled for that. A
//! request in line has certainly not left. So that nobody is told otherwise, the line is held while the core is told or asked
//! anything as long as there is such a request ([`LineUse`]): before, the core hears which have got room meanwhile; after, those
//! whose calls are over are taken back.

use std::collections::VecDeque;

use mcp_jsonrpc::RequestId;
use mcp_proto::{Limits, Transmit, TransmitKind};
use mcp_transport::stdio::{CloseReport, HeldLine, LineSender, Place};

use super::state::{Outbox, State};
use super::{Driver, Link};

/// The writing half.
#[derive(Debug)]
pub(crate) struct LineLink {
    sender: LineSender,
}

/// What waits on a line. Places leave the tables when somebody looks: the stream does not tell.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Requests that had no room when they were put in, oldest first.
    requests: VecDeque<Waiting>,
    /// Messages that answer the server, oldest first.
    answers: VecDeque<Place>,
    /// Notifications, oldest first.
    notices: VecDeque<Place>,
}

#[derive(Debug)]
struct Waiting {
    place: Place,
    id: RequestId,
}

/// The line of a driver under its lock; held from the moment it is needed.
pub(super) struct LineUse<'a> {
    /// `None` where there is no line.
    link: Option<&'a LineLink>,
    held: Option<HeldLine<'a>>,
}

impl Link {
    pub(super) const fn line(&self) -> LineUse<'_> {
        match self {
            Self::Line(link) => LineUse { link: Some(link), held: None },
            Self::Http(_) | Self::Sse(_) => LineUse { link: None, held: None },
        }
    }

    /// Whether the peer may have seen a request with this place, or may see it yet; or the request has none.
    pub(super) fn may_leave(&self, place: Option<Place>) -> bool {
        match (self, place) {
            (Self::Line(link), Some(place)) => link.sender.may_leave(place),
            _ => true,
        }
    }
}

impl<'a> LineUse<'a> {
    pub(super) const fn is_used(&self) -> bool {
        self.link.is_some()
    }

    fn hold(&mut self) -> Option<&mut HeldLine<'a>> {
        let link = self.link?;
        Some(self.held.get_or_insert_with(|| link.sender.hold()))
    }

    /// Lets the line go. What is given back is to be dropped once the driver's lock is free.
    pub(super) fn finish(self) -> Option<HeldLine<'a>> {
        let mut held = self.held?;
        held.free();
        Some(held)
    }
}

impl State {
    /// Tells the core which requests have got room since it was last told.
    pub(super) fn settle_line(&mut self, line: &mut LineUse<'_>) {
        while let Some(first) = self.line.requests.front() {
            let Some(held) = line.hold() else { return };
            if !held.is_queued(first.place) {
                return;
            }
            self.core.handle_dispatched(&first.id);
            self.line.requests.pop_front();
        }
    }

    /// Takes back what nobody waits for any more.
    pub(super) fn take_back(&mut self, line: &mut LineUse<'_>) {
        if self.line.requests.is_empty() {
            return;
        }
        let Some(held) = line.hold() else { return };
        // The newest first: when the first in line is taken back those behind it move up, and of those that nobody waits for none
        // may be there any more.
        for at in (0..self.line.requests.len()).rev() {
            let is_over = |waiting: &Waiting| !self.core.is_awaited(&waiting.id);
            if self.line.requests.get(at).is_some_and(is_over)
                && let Some(waiting) = self.line.requests.remove(at)
            {
                held.take_back(waiting.place);
            }
        }
    }

    /// Puts a message on the line.
    pub(super) fn put(&mut self, transmit: Transmit, outbox: &mut Outbox<'_>, line: &mut LineUse<'_>) {
        let Some(held) = line.hold() else { return };
        let Transmit { message, kind, owner, .. } = transmit;
        if kind == TransmitKind::Notification && !self.line.takes_courtesies(held, self.core.limits()) {
            return outbox.unsent.push("a notification was not sent because the server does not read");
        }
        // Refused, the connection is at its end, and the reading side is about to learn why.
        let Ok(place) = held.put(message) else { return };
        outbox.has_put = true;
        match kind {
            TransmitKind::Request { id, .. } => {
                if let Some(slot) = owner.and_then(|call| self.slots.get_mut(&call)) {
                    slot.requests = slot.requests.saturating_add(1);
                    slot.place = Some(place);
                }
                if held.is_queued(place) {
                    self.core.handle_dispatched(&id);
                } else {
                    self.line.requests.push_back(Waiting { place, id });
                }
            }
            TransmitKind::Notification => self.line.notices.push_back(place),
            _ => self.line.answers.push_back(place),
        }
    }
}

impl Waits {
    /// Forgets what is written by now; gives how many messages wait that no call waits for.
    fn waiting(&mut self, held: &HeldLine<'_>) -> usize {
        for places in [&mut self.answers, &mut self.notices] {
            while places.front().is_some_and(|place| held.is_settled(*place)) {
                places.pop_front();
            }
        }
        self.answers.len() + self.notices.len()
    }

    fn takes_notices(&mut self, held: &HeldLine<'_>, limits: &Limits) -> bool {
        self.waiting(held) < limits.max_waiting_notices
    }

    fn takes_courtesies(&mut self, held: &HeldLine<'_>, limits: &Limits) -> bool {
        self.waiting(held) < limits.max_waiting_notices.saturating_mul(2)
    }

    /// The answer that must be written before the peer is read further.
    fn pausing(&mut self, held: &HeldLine<'_>, limits: &Limits) -> Option<Place> {
        self.waiting(held);
        let at = self.answers.len().checked_sub(limits.max_waiting_answers)?;
        self.answers.get(at).copied()
    }
}

impl Driver {
    /// Waits until the peer may be read further.
    pub(super) async fn line_room(&self, link: &LineLink) {
        loop {
            let pausing = {
                let mut state = self.lock();
                let State { core, line, .. } = &mut *state;
                if line.answers.len() < core.limits().max_waiting_answers {
                    return;
                }
                line.pausing(&link.sender.hold(), core.limits())
            };
            match pausing {
                Some(place) => link.sender.written(place).await,
                None => return,
            }
            // Whatever is written at once, the tasks that write and close have their turn.
            tokio::task::coop::consume_budget().await;
        }
    }
}

impl LineLink {
    pub(crate) const fn new(sender: LineSender) -> Self {
        Self { sender }
    }

    /// Whether the application may send notices.
    pub(super) fn takes_notices(&self, state: &mut State) -> bool {
        let State { core, line, .. } = state;
        line.takes_notices(&self.sender.hold(), core.limits())
    }

    /// Writes what was put in, as far as the stream takes it now.
    pub(super) fn write(&self) {
        self.sender.write();
    }

    /// Has the task of the connection write what was put in.
    pub(super) fn write_later(&self) {
        self.sender.write_later();
    }

    /// Writes a message and waits until it is written.
    pub(super) async fn deliver(&self, transmit: Transmit) -> Result<(), mcp_transport::Error> {
        self.sender.send(transmit.message).await
    }

    /// Closes the connection; the report is about the child process, where there is one.
    pub(crate) async fn close(&self) -> CloseReport {
        self.sender.close().await
    }

    /// What a child process wrote last to its standard error, once the connection is closed.
    pub(crate) fn stderr_tail(&self) -> Option<&str> {
        self.sender.stderr_tail()
    }
}
