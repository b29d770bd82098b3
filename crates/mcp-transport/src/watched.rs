//! A value that one task changes and several of the application wait for.
//!
//! Who waits may do anything when it is woken or dropped: look at the value, or panic. So every waker is called for itself, and nothing
//! of the application's under a lock. `tokio::sync::watch` calls them in a row, where one that panics costs the others their wake-up
//! and ends the task that told, and it drops the value that was under its lock. So does `Notify`.
//!
//! It is in this crate as the lowest that has futures of the application wait for it. The client above needs the same, so that it is
//! public in the language; it is hidden, as it is about no transport and promises nothing to anybody else.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Who changes the value. Dropping it ends all waiting.
pub struct Watched<T> {
    shared: Arc<Shared<T>>,
}

/// Who waits for it. A clone has seen what this one has.
#[derive(Clone)]
pub struct Watcher<T> {
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
    /// Nobody has changed it yet.
    pub fn new(value: T) -> Self {
        let state = State { value, version: 0, is_final: false, waiting: HashMap::new(), last_place: 0 };
        Self { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// One who has seen the value as it is.
    pub fn watcher(&self) -> Watcher<T> {
        Watcher { shared: Arc::clone(&self.shared), seen: self.shared.lock().version }
    }

    /// The value as it is.
    pub fn current(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// Waits until something is found in the value. Cancel safe. `find` is called under the lock.
    pub async fn until<R>(&self, find: impl Fn(&T) -> Option<R>) -> R {
        let mut wait = Wait::new(&self.shared);
        poll_fn(|context| wait.poll(context, |state| find(&state.value))).await
    }

    /// Changes the value, and wakes who waits for that.
    pub fn set(&self, value: T) {
        let (woken, old) = {
            let mut state = self.shared.lock();
            state.version += 1;
            let old = std::mem::replace(&mut state.value, value);
            (std::mem::take(&mut state.waiting), old)
        };
        wake_each(woken.into_values());
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
        wake_each(woken.into_values());
    }
}

/// Calls every one of them. One that panics is the application's, and costs no other its wake-up; the panic hook has reported it.
pub fn wake_each(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

impl<T: Clone> Watcher<T> {
    /// The value as it is, which this one has seen no more than before.
    pub fn current(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// Waits for a value that this one has not seen; `None` where none will come. Cancel safe.
    pub async fn changed(&mut self) -> Option<T> {
        let seen = self.seen;
        self.wait(|state| state.version != seen).await
    }

    /// Waits for such a value, which may be one that was seen; `None` where none will come. Cancel safe. `is_such` is asked under the
    /// lock.
    pub async fn when(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        self.wait(|state| is_such(&state.value)).await
    }

    async fn wait(&mut self, is_over: impl Fn(&State<T>) -> bool) -> Option<T> {
        let find = |state: &State<T>| match is_over(state) {
            true => Some(Some((state.value.clone(), state.version))),
            false => state.is_final.then_some(None),
        };
        let mut wait = Wait::new(&self.shared);
        let (value, version) = poll_fn(|context| wait.poll(context, find)).await?;
        self.seen = version;
        Some(value)
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, T> Wait<'a, T> {
    const fn new(shared: &'a Shared<T>) -> Self {
        Self { shared, place: None }
    }

    fn poll<R>(&mut self, context: &Context<'_>, find: impl Fn(&State<T>) -> Option<R>) -> Poll<R> {
        // Cloned before the lock is taken, and what is not needed dropped after: both are the application's.
        let waker = context.waker().clone();
        let (polled, unneeded) = {
            let mut state = self.shared.lock();
            match find(&state) {
                Some(found) => (Poll::Ready(found), Some(waker)),
                None => {
                    let place = *self.place.get_or_insert_with(|| {
                        state.last_place += 1;
                        state.last_place
                    });
                    (Poll::Pending, state.waiting.insert(place, waker))
                }
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

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
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
    fn what_is_looked_for_is_found_by_each_who_waits() {
        let value = Watched::new(None);
        let mut waits: Vec<_> = (0..2).map(|_| Box::pin(value.until(|value| *value))).collect();
        let mut poll = || -> Vec<Poll<u32>> {
            let context = &mut Context::from_waker(Waker::noop());
            waits.iter_mut().map(|wait| wait.as_mut().poll(context)).collect()
        };
        assert_eq!(poll(), [Poll::Pending; 2]);
        value.set(Some(1));
        assert_eq!(poll(), [Poll::Ready(1); 2]);
        drop(waits);
        assert!(value.shared.lock().waiting.is_empty());
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
