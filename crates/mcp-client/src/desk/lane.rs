//! What the listeners of one connection are told of its questions: one thing after another, in the order in which it happened.
//!
//! Things happen under the desk's lock and are told without it, by whichever thread made them happen. Two threads, or a
//! listener that does something at the desk while it is told, could overtake each other: a question would end before it was
//! asked, and stay on the screen. So what happened is put into the lane under the lock, and one thread at a time takes it out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::event::ClientEvent;
use crate::event_queue::Queued as _;

pub(super) struct Lane {
    state: Mutex<Waiting>,
    /// More than this do not wait while a listener holds one thread up; the rest is counted as missed.
    max_waiting: usize,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<ClientEvent>,
    missed: u64,
    /// Somebody is taking them out.
    flows: bool,
}

impl Lane {
    pub(super) fn new(max_waiting: usize) -> Self {
        Self { state: Mutex::default(), max_waiting: max_waiting.max(1) }
    }

    /// Puts an event at the end; what nothing follows, whatever waits. Calls nobody, so that it may be done under the desk's lock.
    pub(super) fn put(&self, event: ClientEvent) {
        let mut waiting = self.lock();
        if waiting.events.len() < self.max_waiting || event.is_last() {
            waiting.events.push_back(event);
        } else {
            waiting.missed += 1;
        }
    }

    /// Tells everything that waits. Where another thread, or a caller of this one, is at it already, that one does.
    pub(super) fn flow(&self, tell: impl Fn(ClientEvent)) {
        if std::mem::replace(&mut self.lock().flows, true) {
            return;
        }
        let flowing = Flowing(self);
        loop {
            let next = {
                let mut waiting = self.lock();
                let next = waiting.next();
                if next.is_none() {
                    // Under the lock, so that whoever puts the next one in finds nobody at it.
                    waiting.flows = false;
                }
                next
            };
            match next {
                Some(event) => tell(event),
                None => return std::mem::forget(flowing),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn next(&mut self) -> Option<ClientEvent> {
        let is_missed_before = self.missed > 0 && self.events.front().is_some_and(ClientEvent::is_last);
        if !is_missed_before && let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let events = std::mem::take(&mut self.missed);
        (events > 0).then_some(ClientEvent::Missed { events })
    }
}

/// Whoever takes events out, until a panic takes them away from it.
struct Flowing<'a>(&'a Lane);

impl Drop for Flowing<'_> {
    fn drop(&mut self) {
        self.0.lock().flows = false;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::close_reason::CloseReason;

    const MAX_WAITING: usize = 1024;

    fn numbered(number: usize) -> ClientEvent {
        ClientEvent::ResourceUpdated { uri: number.to_string() }
    }

    fn note(told: &Mutex<Vec<String>>, event: ClientEvent) {
        told.lock().unwrap().push(match event {
            ClientEvent::ResourceUpdated { uri } => uri,
            ClientEvent::Missed { events } => format!("missed {events}"),
            ClientEvent::Closed { .. } => "closed".to_owned(),
            other => panic!("{other:?}"),
        });
    }

    #[test]
    fn threads_tell_in_the_order_in_which_things_happened() {
        let (lane, told, happened) = (Lane::new(MAX_WAITING), Mutex::default(), Mutex::new(0));
        // Fewer in all than may wait: a thread may be stopped in the middle of telling for as long as the others need.
        let each = MAX_WAITING / 4;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..each {
                        {
                            let mut number = happened.lock().unwrap();
                            lane.put(numbered(*number));
                            *number += 1;
                        }
                        lane.flow(|event| note(&told, event));
                    }
                });
            }
        });
        let expected: Vec<String> = (0..4 * each).map(|number| number.to_string()).collect();
        assert_eq!(told.into_inner().unwrap(), expected);
    }

    #[test]
    fn what_a_listener_causes_is_told_after_what_was_there() {
        let (lane, told) = (Lane::new(MAX_WAITING), Mutex::default());
        (1..3).for_each(|number| lane.put(numbered(number)));
        lane.flow(|event| {
            if matches!(&event, ClientEvent::ResourceUpdated { uri } if uri == "1") {
                lane.put(numbered(3));
                lane.flow(|_| panic!("told out of turn"));
            }
            note(&told, event);
        });
        assert_eq!(told.into_inner().unwrap(), ["1", "2", "3"]);
    }

    #[test]
    fn a_listener_that_stands_in_the_way_costs_no_more_than_so_many_events() {
        let told_of = |max_waiting: usize, events: usize| {
            let (lane, told) = (Lane::new(max_waiting), Mutex::default());
            (0..events).for_each(|number| lane.put(numbered(number)));
            lane.flow(|event| note(&told, event));
            told.into_inner().unwrap()
        };
        for max_waiting in [1, 5, MAX_WAITING] {
            assert_eq!(told_of(max_waiting, max_waiting - 1).len(), max_waiting - 1);
            assert_eq!(told_of(max_waiting, max_waiting).len(), max_waiting);
            let told = told_of(max_waiting, max_waiting + 5);
            assert_eq!(told.len(), max_waiting + 1);
            assert_eq!(told[max_waiting], "missed 5");
        }
        assert_eq!(told_of(0, 1), ["0"], "one at least");

        // The end is told all the same, and last.
        let (lane, told) = (Lane::new(1), Mutex::default());
        (0..3).for_each(|number| lane.put(numbered(number)));
        lane.put(ClientEvent::Closed { reason: CloseReason::Application });
        lane.flow(|event| note(&told, event));
        assert_eq!(told.into_inner().unwrap(), ["0", "missed 2", "closed"]);
    }

    #[test]
    fn a_panic_leaves_the_lane_to_the_next() {
        let (lane, told) = (Lane::new(MAX_WAITING), Mutex::default());
        (0..2).for_each(|number| lane.put(numbered(number)));
        assert!(catch_unwind(AssertUnwindSafe(|| lane.flow(|_| panic!("on purpose")))).is_err());
        lane.flow(|event| note(&told, event));
        assert_eq!(told.into_inner().unwrap(), ["1"]);
    }
}
