//! Events, kept for listeners that are slower than what happens, up to a number and a size.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_transport::watched::wake_each;

use crate::event::ClientEvent;

/// What an event must tell about itself to be kept.
pub(crate) trait Queued: Clone {
    /// About how much memory it takes.
    fn bytes(&self) -> usize;

    /// Whether nothing follows it.
    fn is_last(&self) -> bool;

    /// What tells a listener that it missed so many.
    fn missed(events: u64) -> Self;
}

/// Shared by the connection, which puts events in, and its listeners.
pub(crate) struct EventQueue<E = ClientEvent> {
    state: Mutex<State<E>>,
}

/// One listener.
struct Place {
    /// The number of the event that it sees next.
    next: u64,
    /// Woken when there is one, or none at all any more.
    waker: Option<Waker>,
}

struct State<E> {
    /// Those that not every listener has seen, with their size.
    events: VecDeque<(E, usize)>,
    bytes: usize,
    /// Those that gave way. What is in them may be the application's, so they are dropped when the lock is free.
    evicted: Vec<E>,
    /// The number of the first of them; events are counted from the beginning.
    first: u64,
    listeners: HashMap<u64, Place>,
    next_listener: u64,
    max_events: usize,
    max_bytes: usize,
    ended: bool,
}

/// What is there for a listener.
enum Taken<E> {
    Event(E),
    Nothing,
    End,
}

impl<E: Queued> EventQueue<E> {
    pub(crate) fn new(max_events: usize, max_bytes: usize) -> Arc<Self> {
        let state = State {
            events: VecDeque::new(),
            bytes: 0,
            evicted: Vec::new(),
            first: 0,
            listeners: HashMap::new(),
            next_listener: 0,
            max_events: max_events.max(1),
            max_bytes,
            ended: false,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Puts an event in; nothing is kept where nobody listens, and nothing follows the end of the connection. Calls nobody until
    /// [`stir`](Self::stir), so that it may be done under a lock.
    pub(crate) fn put(&self, event: E) {
        self.lock().put(event);
    }

    /// Wakes who waits for what was put in.
    pub(crate) fn stir(&self) {
        let stirred = self.lock().stir();
        stirred.wake();
    }

    /// Whether anybody listens.
    #[cfg(feature = "host")]
    pub(crate) fn is_heard(&self) -> bool {
        !self.lock().listeners.is_empty()
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        let stirred = {
            let mut state = self.lock();
            state.ended = true;
            state.stir()
        };
        stirred.wake();
    }

    pub(crate) fn listen(self: &Arc<Self>) -> Listener<E> {
        let mut state = self.lock();
        let id = state.next_listener;
        state.next_listener += 1;
        let next = state.end();
        state.listeners.insert(id, Place { next, waker: None });
        drop(state);
        Listener { queue: Arc::clone(self), id }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Queued> State<E> {
    fn end(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.events.len()).unwrap_or(u64::MAX))
    }

    fn put(&mut self, event: E) {
        if self.ended {
            return self.evicted.push(event);
        }
        self.ended = event.is_last();
        if self.listeners.is_empty() {
            self.first += 1;
            return self.evicted.push(event);
        }
        let bytes = event.bytes();
        self.bytes = self.bytes.saturating_add(bytes);
        self.events.push_back((event, bytes));
        // The newest is kept whatever its size.
        while self.events.len() > self.max_events || (self.events.len() > 1 && self.bytes > self.max_bytes) {
            let oldest = self.pop();
            self.evicted.extend(oldest);
        }
    }

    fn pop(&mut self) -> Option<E> {
        let (event, bytes) = self.events.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.first += 1;
        Some(event)
    }

    fn stir(&mut self) -> Stirred<E> {
        let (end, ended) = (self.end(), self.ended);
        let waiting = self.listeners.values_mut().filter(|place| ended || place.next < end);
        let woken = waiting.filter_map(|place| place.waker.take()).collect();
        Stirred { woken, _evicted: std::mem::take(&mut self.evicted) }
    }

    /// Takes out what every listener has seen.
    fn trim(&mut self) -> Vec<E> {
        let needed = self.listeners.values().map(|place| place.next).min().unwrap_or(u64::MAX);
        let mut seen = Vec::new();
        while self.first < needed
            && let Some(event) = self.pop()
        {
            seen.push(event);
        }
        seen
    }

    fn take(&mut self, listener: u64) -> Taken<E> {
        let (first, end) = (self.first, self.end());
        // Invariant: a listener is in the table as long as its handle lives.
        let Some(Place { next, .. }) = self.listeners.get_mut(&listener) else { return Taken::End };
        if *next < first {
            let events = first - *next;
            *next = first;
            return Taken::Event(E::missed(events));
        }
        if *next == end {
            return if self.ended { Taken::End } else { Taken::Nothing };
        }
        let at = *next - first;
        *next += 1;
        if at == 0 && self.listeners.values().all(|place| place.next > first) {
            let seen_by_all = self.pop();
            return seen_by_all.map_or(Taken::Nothing, Taken::Event);
        }
        let event = usize::try_from(at).ok().and_then(|at| self.events.get(at));
        event.map_or(Taken::Nothing, |(event, _)| Taken::Event(event.clone()))
    }
}

/// One listener's place.
pub(crate) struct Listener<E: Queued = ClientEvent> {
    queue: Arc<EventQueue<E>>,
    id: u64,
}

impl<E: Queued> Listener<E> {
    /// Whether there is an event, or that some were missed.
    pub(crate) fn has_next(&self) -> bool {
        let state = self.queue.lock();
        state.listeners.get(&self.id).is_some_and(|place| place.next < state.end())
    }

    /// The next event, if it is there.
    pub(crate) fn try_next(&self) -> Option<E> {
        let taken = self.queue.lock().take(self.id);
        match taken {
            Taken::Event(event) => Some(event),
            Taken::Nothing | Taken::End => None,
        }
    }

    pub(crate) async fn next(&mut self) -> Option<E> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<E>> {
        // Cloned before the lock is taken, and what it replaces dropped after: both are the application's.
        let waker = context.waker().clone();
        let (taken, replaced) = {
            let mut state = self.queue.lock();
            match state.take(self.id) {
                Taken::Nothing => {
                    let place = state.listeners.get_mut(&self.id);
                    (Taken::Nothing, place.and_then(|place| place.waker.replace(waker)))
                }
                taken => (taken, Some(waker)),
            }
        };
        drop(replaced);
        match taken {
            Taken::Event(event) => Poll::Ready(Some(event)),
            Taken::End => Poll::Ready(None),
            Taken::Nothing => Poll::Pending,
        }
    }
}

impl<E: Queued> Drop for Listener<E> {
    fn drop(&mut self) {
        let gone = {
            let mut state = self.queue.lock();
            let gone = state.listeners.remove(&self.id);
            let seen = state.trim();
            (gone, seen)
        };
        drop(gone);
    }
}

/// What is to be seen to once the lock is free: all of it may be the application's.
struct Stirred<E> {
    woken: Vec<Waker>,
    _evicted: Vec<E>,
}

impl<E> Stirred<E> {
    fn wake(self) {
        wake_each(self.woken);
    }
}

impl<E: Queued> fmt::Debug for Listener<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close_reason::CloseReason;

    fn updated(number: usize, bytes: usize) -> ClientEvent {
        ClientEvent::ResourceUpdated { uri: format!("{number}{}", "x".repeat(bytes)) }
    }

    fn push(queue: &EventQueue, event: ClientEvent) {
        queue.put(event);
        queue.stir();
    }

    /// The numbers of the events that are there, and how many were missed before them.
    async fn drained(listener: &mut Listener) -> (u64, Vec<usize>) {
        let (mut missed, mut numbers) = (0, Vec::new());
        while let Ok(Some(event)) = tokio::time::timeout(std::time::Duration::ZERO, listener.next()).await {
            match event {
                ClientEvent::Missed { events } => missed += events,
                ClientEvent::ResourceUpdated { uri } => {
                    numbers.push(uri.trim_end_matches('x').parse().unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
        (missed, numbers)
    }

    #[tokio::test]
    async fn a_slow_listener_loses_the_oldest_by_number_and_by_size() {
        for (max_events, max_bytes, each, kept) in
            [(4, usize::MAX, 0, 4), (1000, 10_000, 2_000, 4), (1000, 10, 5_000, 1), (0, 0, 1, 1)]
        {
            let queue = EventQueue::new(max_events, max_bytes);
            let mut listener = queue.listen();
            (0..100).for_each(|number| push(&queue, updated(number, each)));
            let expected = (100 - kept..100).collect();
            assert_eq!(
                drained(&mut listener).await,
                (100 - kept as u64, expected),
                "{max_events} {max_bytes}"
            );
            assert_eq!(queue.lock().bytes, 0);
        }
    }

    #[tokio::test]
    async fn each_listener_sees_what_came_after_it_and_what_all_have_seen_is_dropped() {
        let queue = EventQueue::new(8, usize::MAX);
        push(&queue, updated(0, 0));
        assert!(queue.lock().events.is_empty(), "nobody listens");
        let mut first = queue.listen();
        push(&queue, updated(1, 0));
        let mut second = queue.listen();
        push(&queue, updated(2, 0));
        assert_eq!(drained(&mut second).await, (0, vec![2]));
        assert_eq!(queue.lock().events.len(), 2, "kept for the first");
        assert_eq!(drained(&mut first).await, (0, vec![1, 2]));
        push(&queue, updated(3, 0));
        assert_eq!(drained(&mut first).await, (0, vec![3]));
        assert_eq!(queue.lock().events.len(), 1, "kept for the second");
        drop(second);
        assert!(queue.lock().events.is_empty());
    }

    #[tokio::test]
    async fn nothing_follows_the_end() {
        let queue = EventQueue::new(8, usize::MAX);
        let mut listener = queue.listen();
        push(&queue, ClientEvent::Closed { reason: CloseReason::Application });
        push(&queue, updated(1, 0));
        assert!(matches!(listener.next().await, Some(ClientEvent::Closed { .. })));
        assert!(listener.next().await.is_none() && listener.next().await.is_none());
        assert!(queue.listen().next().await.is_none());
    }
}
