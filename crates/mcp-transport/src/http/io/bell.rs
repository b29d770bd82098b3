//! One waker for a connection, whichever task is using it.
//!
//! What is polled together wakes each other: hyper wakes whoever waits for the head of a response while the same poll has
//! it already, and its connection when a request or the wish for a piece of the body is handed to it. A task that is woken
//! while it runs is run once more for nothing, and has the runtime look at its sockets once more. So wake-ups that come
//! while the connection is driven only make it be driven again, and one that comes while no task waits is nobody's.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Nobody drives the connection: a wake-up is for the task that waits.
const QUIET: u8 = 0;
/// The connection is being driven.
const DRIVEN: u8 = 1;
/// It is being driven, and was woken meanwhile.
const RUNG: u8 = 2;

/// How often one poll drives the connection. What wakes it more often wants the runtime to have its turn.
const MAX_ROUNDS: u32 = 2;

pub(super) struct Bell {
    rope: Arc<Rope>,
    /// Always the same one, so that whoever keeps it sees that and need not take another.
    waker: Waker,
}

/// What is pulled.
struct Rope {
    state: AtomicU8,
    /// Invariant: whoever takes it out wakes it, or knows that it waits no more.
    task: Mutex<Option<Waker>>,
}

impl Bell {
    pub(super) fn new() -> Self {
        let rope = Arc::new(Rope { state: AtomicU8::new(QUIET), task: Mutex::default() });
        Self { waker: Waker::from(Arc::clone(&rope)), rope }
    }

    /// Polls with the waker of its own, on behalf of the task of `cx`, which is woken if that is pending.
    ///
    /// After it was ready nobody is woken until there is another poll: what is wanted of the connection then is asked by one.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.rope.answers_to(cx.waker());
        for _ in 0..MAX_ROUNDS {
            self.rope.state.store(DRIVEN, Ordering::SeqCst);
            let result = poll(&mut Context::from_waker(&self.waker));
            let is_rung = self.rope.state.swap(QUIET, Ordering::SeqCst) == RUNG;
            if result.is_ready() || !is_rung {
                return result;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets go of the task that waited last.
    pub(super) fn forget_task(&self) {
        drop(self.rope.take_task());
    }
}

impl Rope {
    fn answers_to(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            // Wakers are the application's: neither is one cloned nor dropped under the lock.
            drop(task);
            let waker = waker.clone();
            task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            let replaced = task.replace(waker);
            drop(task);
            drop(replaced);
        }
    }

    fn take_task(&self) -> Option<Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let driven = self.state.compare_exchange(DRIVEN, RUNG, Ordering::SeqCst, Ordering::SeqCst);
        if driven == Err(QUIET)
            && let Some(task) = self.take_task()
        {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Counted {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn task() -> (Arc<Counted>, Waker) {
        let counted = Arc::<Counted>::default();
        let waker = Waker::from(Arc::clone(&counted));
        (counted, waker)
    }

    /// Polls once; the waker that was polled with is the answer.
    fn driven(bell: &Bell, task: &Waker) -> Waker {
        let mut own = None;
        let result: Poll<()> = bell.poll(&Context::from_waker(task), |cx| {
            own = Some(cx.waker().clone());
            Poll::Pending
        });
        assert!(result.is_pending());
        own.unwrap()
    }

    #[test]
    fn a_wake_up_between_two_polls_reaches_the_task_that_polled_last_and_once() {
        let bell = Bell::new();
        let ((first, first_waker), (second, second_waker)) = (task(), task());
        driven(&bell, &first_waker);
        let own = driven(&bell, &second_waker);
        own.wake_by_ref();
        own.wake_by_ref();
        assert_eq!((first.count(), second.count()), (0, 1));
        driven(&bell, &first_waker).wake();
        assert_eq!((first.count(), second.count()), (1, 1));
    }

    #[test]
    fn a_wake_up_while_it_is_driven_has_it_driven_once_more_and_no_task_woken() {
        let bell = Bell::new();
        let (counted, waker) = task();
        let mut rounds = 0;
        let result: Poll<()> = bell.poll(&Context::from_waker(&waker), |cx| {
            rounds += 1;
            if rounds == 1 {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        assert!(result.is_pending());
        assert_eq!((rounds, counted.count()), (2, 0));
    }

    #[test]
    fn what_wakes_itself_each_time_lets_the_runtime_have_its_turn() {
        let bell = Bell::new();
        let (counted, waker) = task();
        let mut rounds = 0;
        let result: Poll<()> = bell.poll(&Context::from_waker(&waker), |cx| {
            rounds += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert!(result.is_pending());
        assert_eq!((rounds, counted.count()), (MAX_ROUNDS, 1));
    }

    #[test]
    fn a_wake_up_from_another_thread_is_never_lost() {
        let bell = Bell::new();
        let (counted, waker) = task();
        for _ in 0..1000 {
            let mut others = None;
            let (before, mut rounds) = (counted.count(), 0);
            let result: Poll<()> = bell.poll(&Context::from_waker(&waker), |cx| {
                rounds += 1;
                let own = cx.waker().clone();
                others.get_or_insert_with(|| std::thread::spawn(move || own.wake()));
                Poll::Pending
            });
            others.unwrap().join().unwrap();
            assert!(result.is_pending());
            assert!(rounds == 2 || counted.count() == before + 1, "{rounds} rounds");
        }
    }

    #[test]
    fn a_task_that_is_forgotten_is_neither_woken_nor_kept() {
        let bell = Bell::new();
        let (counted, waker) = task();
        let own = driven(&bell, &waker);
        drop(waker);
        bell.forget_task();
        own.wake();
        assert_eq!(counted.count(), 0);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
