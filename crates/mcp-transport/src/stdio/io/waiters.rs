//! Futures of the application that wait for one thing.
//!
//! `tokio::sync::Notify` calls their wakers in a row, where one that panics costs those behind it their wake-up and takes along who
//! called. Here each is called for itself, and none of them is made, called or dropped under a lock.

use std::{
    collections::HashMap,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use super::lock;

#[derive(Default)]
pub(super) struct Waiters {
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    waiting: HashMap<u64, Waker>,
    last: u64,
}

/// A wait under way.
struct Wait<'a> {
    waiters: &'a Waiters,
    /// Its place, if it has one yet.
    place: Option<u64>,
}

impl Waiters {
    /// Waits until `find` finds something, which is looked for again each time that [`wake`](Self::wake) is called. Cancel safe.
    pub(super) async fn until<T>(&self, find: impl Fn() -> Option<T>) -> T {
        let mut wait = Wait { waiters: self, place: None };
        poll_fn(|context| wait.poll(context, &find)).await
    }

    /// There may be something to find.
    pub(super) fn wake(&self) {
        let woken = std::mem::take(&mut lock(&self.places).waiting);
        for waker in woken.into_values() {
            // The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Wait<'_> {
    fn poll<T>(&mut self, context: &Context<'_>, find: impl Fn() -> Option<T>) -> Poll<T> {
        if let Some(found) = find() {
            return Poll::Ready(found);
        }
        let waker = context.waker().clone();
        let replaced = {
            let mut places = lock(&self.waiters.places);
            let place = *self.place.get_or_insert_with(|| {
                places.last += 1;
                places.last
            });
            places.waiting.insert(place, waker)
        };
        drop(replaced);
        // Looked for after registering: what came in between is found here or wakes.
        find().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let waker = lock(&self.waiters.places).waiting.remove(&place);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    /// Panics when it is woken, if told to.
    struct Counted {
        woken: Arc<AtomicUsize>,
        panics: bool,
    }

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::SeqCst);
            assert!(!self.panics, "on purpose");
        }
    }

    #[test]
    fn every_one_is_woken_whatever_the_others_do_and_leaves_nothing_behind() {
        let (waiters, is_there, woken) = (Waiters::default(), AtomicBool::new(false), Arc::default());
        let find = || is_there.load(Ordering::SeqCst).then_some(());
        let mut waits: Vec<_> = (0..64).map(|_| Box::pin(waiters.until(find))).collect();
        for (at, wait) in waits.iter_mut().enumerate() {
            let waker = Waker::from(Arc::new(Counted { woken: Arc::clone(&woken), panics: at % 3 != 0 }));
            // Polled again, it has one place still.
            for _ in 0..2 {
                assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
        }
        drop(waits.pop());
        is_there.store(true, Ordering::SeqCst);
        waiters.wake();
        assert_eq!(woken.load(Ordering::SeqCst), 63);
        for wait in waits {
            assert!(pin!(wait).poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
        assert!(lock(&waiters.places).waiting.is_empty());
    }
}
