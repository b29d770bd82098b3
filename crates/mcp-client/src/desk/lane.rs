//! What the listeners of one connection are told of its questions: one thing after another, in the order in which it happened.
//!
//! Things happen under the desk's lock and are told without it: a question would end before it was asked otherwise, and stay on the
//! screen. What is told here goes on into the events of the connection, which has a lock of its own, so that this is a second queue.

use std::sync::Arc;

use crate::event::ClientEvent;
use crate::event_queue::EventQueue;
use crate::telling::Telling;

pub(super) struct Lane {
    queue: Arc<EventQueue>,
    telling: Telling,
}

impl Lane {
    /// More than `max_waiting` do not wait while a listener holds one thread up; the oldest give way, and are counted as missed.
    pub(super) fn new(max_waiting: usize) -> Self {
        let queue = EventQueue::new(max_waiting, usize::MAX);
        Self { telling: Telling::new(queue.listen()), queue }
    }

    /// Puts an event at the end. Calls nobody, so that it may be done under the desk's lock.
    pub(super) fn put(&self, event: ClientEvent) {
        self.queue.put(event);
    }

    /// Tells everything that waits. Where another thread, or a caller of this one, is at it already, that one does.
    pub(super) fn flow(&self, tell: impl Fn(ClientEvent)) {
        self.queue.stir();
        self.telling.flow(tell);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::close_reason::CloseReason;

    #[test]
    fn a_listener_that_stands_in_the_way_costs_no_more_than_so_many_events() {
        let told_of = |max_waiting: usize, events: usize, ends: bool| {
            let (lane, told) = (Lane::new(max_waiting), Mutex::new(Vec::new()));
            (0..events).for_each(|at| lane.put(ClientEvent::ResourceUpdated { uri: at.to_string() }));
            if ends {
                lane.put(ClientEvent::Closed { reason: CloseReason::Application });
            }
            lane.flow(|event| {
                told.lock().unwrap().push(match event {
                    ClientEvent::ResourceUpdated { uri } => uri,
                    ClientEvent::Missed { events } => format!("missed {events}"),
                    ClientEvent::Closed { .. } => "closed".to_owned(),
                    other => panic!("{other:?}"),
                });
            });
            told.into_inner().unwrap()
        };
        for max_waiting in [1, 5, 1024] {
            assert_eq!(told_of(max_waiting, max_waiting - 1, false).len(), max_waiting - 1);
            assert_eq!(told_of(max_waiting, max_waiting, false).len(), max_waiting);
            let told = told_of(max_waiting, max_waiting + 5, false);
            assert_eq!((told.len(), &*told[0], &*told[1]), (max_waiting + 1, "missed 5", "5"));
        }
        assert_eq!(told_of(0, 1, false), ["0"], "one at least");
        // The end is told all the same, and last.
        assert_eq!(told_of(1, 3, true), ["missed 3", "closed"]);
    }
}
