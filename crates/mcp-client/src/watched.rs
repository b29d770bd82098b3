//! A value that one task changes and several of the application wait for.
//!
//! Who waits may do anything when it is woken or dropped: look at the value, or panic. So every waker is called for itself, and nothing
//! of the application's under a lock. `tokio::sync::watch` calls them in a row, where one that panics costs the others their wake-up
//! and ends the task that told, and it drops the value that was under its lock.

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Who changes the value. Dropping it ends all waiting.
pub(crate) struct Watched<T> {
    shared: Arc<Shared<T>>,
}

/// Who waits for it. A clone has seen what this one has.
#[derive(Clone)]
pub(crate) struct Watcher<T> {
    shared: Arc<Shared<T>>,
    /// The version that it has seen.
    seen: u64,
}

struct Shared<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: T,
    /// Counts the changes.
    version: u64,
    /// Nobody changes it any more.
    is_final: bool,
    waiting: HashMap<u64, Waker>,
    last_place: u64,
}

/// A wait under way.
struct Wait<'a, T> {
    shared: &'a Shared<T>,
    /// Its place among those who wait, if it has one yet.
    place: Option<u64>,
}

// Cloning a value must call nothing of the application's: it is done under the lock.
impl<T: Clone> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        let state = State { value, version: 0, is_final: false, waiting: HashMap::new(), last_place: 0 };
        Self { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// One who has seen the value as it is.
    pub(crate) fn watcher(&self) -> Watcher<T> {
        Watcher { shared: Arc::clone(&self.shared), seen: self.shared.lock().version }
    }

    pub(crate) fn current(&self) -> T {
        self.shared.lock().value.clone()
    }

    pub(crate) fn set(&self, value: T) {
        let (woken, old) = {
            let mut state = self.shared.lock();
            state.version += 1;
            let old = std::mem::replace(&mut state.value, value);
            (std::mem::take(&mut state.waiting), old)
        };
        wake(woken);
        drop(old);
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        let woken = {
            let mut state = self.shared.lock();
            state.is_final = true;
            std::mem::take(&mut state.waiting)
        };
        wake(woken);
    }
}

/// One that panics is the application's; the panic hook has reported it.
fn wake(waiting: HashMap<u64, Waker>) {
    for waker in waiting.into_values() {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

impl<T: Clone> Watcher<T> {
    pub(crate) fn current(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// Waits for a value that this one has not seen; `None` where none will come. Cancel safe.
    pub(crate) async fn changed(&mut self) -> Option<T> {
        let seen = self.seen;
        self.wait(|state| state.version != seen).await
    }

    /// Waits for such a value, which may be one that was seen; `None` where none will come. Cancel safe. `is_such` is asked under the
    /// lock.
    pub(crate) async fn when(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        self.wait(|state| is_such(&state.value)).await
    }

    async fn wait(&mut self, is_over: impl Fn(&State<T>) -> bool) -> Option<T> {
        let mut wait = Wait { shared: &self.shared, place: None };
        let (value, version) = poll_fn(|context| wait.poll(context, &is_over)).await?;
        self.seen = version;
        Some(value)
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Wait<'_, T> {
    fn poll(&mut self, context: &Context<'_>, is_over: impl Fn(&State<T>) -> bool) -> Poll<Option<(T, u64)>> {
        // Cloned before the lock is taken, and what is not needed dropped after: both are the application's.
        let waker = context.waker().clone();
        let (polled, unneeded) = {
            let mut state = self.shared.lock();
            if is_over(&state) {
                (Poll::Ready(Some((state.value.clone(), state.version))), Some(waker))
            } else if state.is_final {
                (Poll::Ready(None), Some(waker))
            } else {
                let place = *self.place.get_or_insert_with(|| {
                    state.last_place += 1;
                    state.last_place
                });
                (Poll::Pending, state.waiting.insert(place, waker))
            }
        };
        drop(unneeded);
        polled
    }
}

impl<T> Drop for Wait<'_, T> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let waker = self.shared.lock().waiting.remove(&place);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Looks at the value when it is woken and when it is dropped, and panics if told to.
    struct Looks {
        at: Watcher<u32>,
        woken: Arc<AtomicUsize>,
        panics: bool,
    }

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::Relaxed);
            self.at.current();
            assert!(!self.panics, "on purpose");
        }
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            self.at.current();
        }
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>, waker: Looks) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(Arc::new(waker))))
    }

    #[test]
    fn every_one_is_woken_whatever_the_others_do() {
        for ends in [false, true] {
            let value = Watched::new(1);
            let woken = Arc::<AtomicUsize>::default();
            let mut watchers: Vec<_> = (0..64).map(|_| value.watcher()).collect();
            let mut waits: Vec<_> = watchers.iter_mut().map(|watcher| Box::pin(watcher.changed())).collect();
            for (at, wait) in waits.iter_mut().enumerate() {
                let waker = || Looks { at: value.watcher(), woken: Arc::clone(&woken), panics: at % 3 != 0 };
                // Polled again, the newest waker counts.
                assert!(poll(wait.as_mut(), waker()).is_pending());
                assert!(poll(wait.as_mut(), waker()).is_pending());
            }
            let at = value.watcher();
            if ends {
                drop(value)
            } else {
                value.set(2)
            }
            assert_eq!(woken.load(Ordering::Relaxed), 64);
            for wait in &mut waits {
                let waker = Looks { at: at.clone(), woken: Arc::clone(&woken), panics: false };
                assert_eq!(poll(wait.as_mut(), waker), Poll::Ready((!ends).then_some(2)));
            }
        }
    }

    #[tokio::test]
    async fn a_value_is_seen_once_and_the_last_one_also_after_the_end() {
        let value = Watched::new(1);
        let mut watcher = value.watcher();
        value.set(2);
        value.set(3);
        let mut clone = watcher.clone();
        assert_eq!(watcher.changed().await, Some(3));
        assert_eq!((watcher.current(), value.current()), (3, 3));
        value.set(4);
        drop(value);
        assert_eq!(watcher.when(|value| *value > 3).await, Some(4));
        assert_eq!(watcher.when(|value| *value > 3).await, Some(4), "one that was seen");
        assert_eq!((watcher.changed().await, watcher.when(|value| *value > 4).await), (None, None));
        assert_eq!((clone.changed().await, clone.changed().await), (Some(4), None));
    }

    #[test]
    fn who_does_not_wait_any_more_leaves_nothing_behind() {
        let value = Watched::new(1);
        let mut watcher = value.watcher();
        let woken = Arc::<AtomicUsize>::default();
        for _ in 0..100 {
            let wait = pin!(watcher.changed());
            let waker = Looks { at: value.watcher(), woken: Arc::clone(&woken), panics: false };
            assert!(poll(wait, waker).is_pending());
        }
        assert!(value.shared.lock().waiting.is_empty());
        value.set(2);
        assert_eq!(woken.load(Ordering::Relaxed), 0);
    }
}
