//! Telling a listener what happened: one event after another, in the order in which it happened.
//!
//! Things happen under a lock (the driver's, the desk's) and are told without it, by whichever thread made them happen. Two threads, or
//! a listener that uses the connection while it is told, could overtake each other: something would be told after the end of
//! the connection. So what happened is put into a queue of events under the lock, and one thread at a time takes it out. What waits
//! too long gives way as in every [`EventQueue`](crate::event_queue::EventQueue): the oldest, counted.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::ClientEvent;
use crate::event_queue::{Listener, Queued};

/// The place of a listener in a queue of events, and the turn of whoever tells it.
pub(crate) struct Telling<E: Queued = ClientEvent> {
    place: Listener<E>,
    /// Somebody is telling.
    flows: AtomicBool,
}

impl<E: Queued> Telling<E> {
    pub(crate) fn new(place: Listener<E>) -> Self {
        Self { place, flows: AtomicBool::new(false) }
    }

    /// Tells everything that waits. Where another thread, or a caller of this one, is at it already, that one does.
    pub(crate) fn flow(&self, tell: impl Fn(E)) {
        // Looked at again after each turn: whoever put something in meanwhile found somebody at it.
        while self.place.has_next() {
            if self.flows.swap(true, Ordering::AcqRel) {
                return;
            }
            let _turn = Turn(&self.flows);
            while let Some(event) = self.place.try_next() {
                tell(event);
            }
        }
    }
}

/// Whoever tells, until a panic takes it away from that.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use super::*;
    use crate::close_reason::CloseReason;
    use crate::event_queue::EventQueue;

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
        const EACH: usize = 250;
        // As many in all as may wait: a thread may be stopped in the middle of telling for as long as the others need.
        let queue = EventQueue::new(4 * EACH, usize::MAX);
        let (telling, told, happened) = (Telling::new(queue.listen()), Mutex::default(), Mutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        {
                            let mut number = happened.lock().unwrap();
                            queue.put(numbered(*number));
                            *number += 1;
                        }
                        telling.flow(|event| note(&told, event));
                    }
                });
            }
        });
        let expected: Vec<String> = (0..4 * EACH).map(|number| number.to_string()).collect();
        assert_eq!(told.into_inner().unwrap(), expected);
    }

    #[test]
    fn what_a_listener_causes_is_told_after_what_was_there_and_nothing_after_the_end() {
        let queue = EventQueue::new(8, usize::MAX);
        let (telling, told) = (Telling::new(queue.listen()), Mutex::default());
        (1..3).for_each(|number| queue.put(numbered(number)));
        telling.flow(|event| {
            if matches!(&event, ClientEvent::ResourceUpdated { uri } if uri == "1") {
                queue.put(numbered(3));
                queue.put(ClientEvent::Closed { reason: CloseReason::Application });
                queue.put(numbered(4));
                telling.flow(|_| panic!("told out of turn"));
            }
            note(&told, event);
        });
        assert_eq!(told.into_inner().unwrap(), ["1", "2", "3", "closed"]);
    }

    #[test]
    fn a_listener_that_stands_in_the_way_costs_no_more_than_so_many_events() {
        let queue = EventQueue::new(2, usize::MAX);
        let (telling, told) = (Telling::new(queue.listen()), Mutex::default());
        (0..5).for_each(|number| queue.put(numbered(number)));
        telling.flow(|event| note(&told, event));
        assert_eq!(told.into_inner().unwrap(), ["missed 3", "3", "4"]);
    }

    #[test]
    fn a_panic_leaves_the_rest_to_the_next() {
        let queue = EventQueue::new(8, usize::MAX);
        let (telling, told) = (Telling::new(queue.listen()), Mutex::default());
        (0..2).for_each(|number| queue.put(numbered(number)));
        assert!(catch_unwind(AssertUnwindSafe(|| telling.flow(|_| panic!("on purpose")))).is_err());
        telling.flow(|event| note(&told, event));
        assert_eq!(told.into_inner().unwrap(), ["1"]);
    }
}
