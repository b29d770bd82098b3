//! Work that many wait for, done by whichever of them is polled.
//!
//! A lock that is held across an await, or a turn, belongs to one future; where that is kept and not polled any more, all others
//! wait for ever. Here nobody owns the work: each who waits polls it, and is woken when it can go on.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use crate::watched::wake_each;

/// The work, for those who wait for it. It is dropped with the last of them.
pub(crate) struct Joint<T> {
    shared: Arc<Shared<T>>,
}

/// Finds the work while somebody waits for it, unless it panicked.
pub(crate) struct WeakJoint<T> {
    shared: Weak<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// Wakes everybody who waits.
    waker: Waker,
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct State<T> {
    stage: Stage<T>,
    waiting: HashMap<u64, Waker>,
    next: u64,
    /// It could go on while somebody was at it.
    stirred: bool,
}

/// ```text
///  Waits <──> Polled ──> Done
///                └─────> Lost
/// ```
enum Stage<T> {
    Waits(Work<T>),
    /// Somebody is at it, without the lock.
    Polled,
    Done(T),
    /// It panicked.
    Lost,
}

/// What the work wakes.
struct Everybody<T>(Weak<Shared<T>>);

impl<T: Send + 'static> Wake for Everybody<T> {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake_all(true);
        }
    }
}

/// Shows nothing of the work, nor of what comes of it.
impl<T> fmt::Debug for WeakJoint<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakJoint").finish_non_exhaustive()
    }
}

impl<T> Default for WeakJoint<T> {
    fn default() -> Self {
        Self { shared: Weak::new() }
    }
}

impl<T> WeakJoint<T> {
    /// The work, if somebody waits for it. What panicked comes to nothing any more, however long somebody keeps it.
    pub(crate) fn get(&self) -> Option<Joint<T>> {
        let shared = self.shared.upgrade()?;
        if matches!(shared.lock().stage, Stage::Lost) {
            return None;
        }
        Some(Joint { shared })
    }
}

impl<T: Clone + Send + 'static> Joint<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        let state =
            State { stage: Stage::Waits(Box::pin(work)), waiting: HashMap::new(), next: 0, stirred: false };
        let shared = Arc::new_cyclic(|weak| Shared {
            state: Mutex::new(state),
            waker: Waker::from(Arc::new(Everybody(Weak::clone(weak)))),
        });
        Self { shared }
    }

    pub(crate) fn downgrade(&self) -> WeakJoint<T> {
        WeakJoint { shared: Arc::downgrade(&self.shared) }
    }

    /// Waits for what comes of it; `None` where it panicked. Cancel safe: whoever else waits goes on with it.
    pub(crate) async fn wait(self) -> Option<T> {
        let id = {
            let mut state = self.shared.lock();
            state.next += 1;
            state.next
        };
        let waiting = Waiting { shared: &self.shared, id };
        std::future::poll_fn(|context| waiting.poll(context)).await
    }
}

/// One who waits.
struct Waiting<'a, T> {
    shared: &'a Arc<Shared<T>>,
    id: u64,
}

impl<T: Clone + Send + 'static> Waiting<'_, T> {
    fn poll(&self, context: &Context<'_>) -> Poll<Option<T>> {
        let waker = context.waker().clone();
        let (polled, replaced) = {
            let mut state = self.shared.lock();
            let polled = match std::mem::replace(&mut state.stage, Stage::Polled) {
                Stage::Waits(work) => Some(work),
                Stage::Polled => None,
                Stage::Done(result) => {
                    state.stage = Stage::Done(result.clone());
                    return Poll::Ready(Some(result));
                }
                Stage::Lost => {
                    state.stage = Stage::Lost;
                    return Poll::Ready(None);
                }
            };
            (polled, state.waiting.insert(self.id, waker))
        };
        drop(replaced);
        let Some(mut work) = polled else { return Poll::Pending };
        let lost = Lost(self.shared);
        let polled = work.as_mut().poll(&mut Context::from_waker(&self.shared.waker));
        std::mem::forget(lost);
        match polled {
            Poll::Ready(result) => {
                self.shared.lock().stage = Stage::Done(result.clone());
                self.shared.wake_all(false);
                Poll::Ready(Some(result))
            }
            Poll::Pending => {
                let stirred = {
                    let mut state = self.shared.lock();
                    state.stage = Stage::Waits(work);
                    std::mem::take(&mut state.stirred)
                };
                // Those who came by while it was polled, and found it taken, would miss it.
                if stirred {
                    self.shared.wake_all(false);
                }
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        let waker = self.shared.lock().waiting.remove(&self.id);
        drop(waker);
    }
}

/// Tells the others where the work panics.
struct Lost<'a, T>(&'a Arc<Shared<T>>);

impl<T> Drop for Lost<'_, T> {
    fn drop(&mut self) {
        self.0.lock().stage = Stage::Lost;
        self.0.wake_all(false);
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Every critical section leaves the state whole between two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self, by_the_work: bool) {
        let woken: Vec<Waker> = {
            let mut state = self.lock();
            state.stirred |= by_the_work && matches!(state.stage, Stage::Polled);
            state.waiting.drain().map(|(_, waker)| waker).collect()
        };
        wake_each(woken);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll<F: Future>(future: Pin<&mut F>, count: &Arc<Count>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
    }

    fn waits() -> (oneshot::Sender<u32>, Joint<u32>) {
        let (tell, told) = oneshot::channel();
        (tell, Joint::new(async move { told.await.unwrap_or(0) }))
    }

    #[test]
    fn whoever_is_polled_does_the_work_and_all_have_its_result() {
        let (tell, joint) = waits();
        let weak = joint.downgrade();
        let counts = [Arc::default(), Arc::default()];
        let (mut kept, mut other) = (pin!(joint.wait()), pin!(weak.get().unwrap().wait()));
        assert!(poll(kept.as_mut(), &counts[0]).is_pending());
        assert!(poll(other.as_mut(), &counts[1]).is_pending());
        tell.send(7).unwrap();
        assert_eq!([0, 1].map(|at| counts[at].0.load(Ordering::Relaxed)), [1, 1], "all are woken");
        // The first is kept and not polled.
        assert_eq!(poll(other.as_mut(), &counts[1]), Poll::Ready(Some(7)));
        assert_eq!(poll(kept.as_mut(), &counts[0]), Poll::Ready(Some(7)));
    }

    #[test]
    fn it_ends_with_the_last_who_waits_for_it() {
        let (mut tell, joint) = waits();
        let weak = joint.downgrade();
        {
            let (mut first, mut second) = (Box::pin(joint.wait()), Box::pin(weak.get().unwrap().wait()));
            assert!(poll(first.as_mut(), &Arc::default()).is_pending());
            drop(first);
            assert!(poll(second.as_mut(), &Arc::default()).is_pending());
            assert!(!tell.is_closed());
        }
        assert!(tell.is_closed() && weak.get().is_none());
        assert!(pin!(tell.closed()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn a_panic_is_for_the_one_who_was_at_it() {
        let joint: Joint<u32> = Joint::new(async { panic!("on purpose") });
        let weak = joint.downgrade();
        let other = weak.get().unwrap();
        let mut first = Box::pin(joint.wait());
        let polled = catch_unwind(AssertUnwindSafe(|| poll(first.as_mut(), &Arc::default())));
        assert!(polled.is_err());
        assert!(weak.get().is_none(), "no one begins to wait for it");
        assert_eq!(poll(pin!(other.wait()), &Arc::default()), Poll::Ready(None));
    }
}
