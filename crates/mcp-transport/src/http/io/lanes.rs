//! The shared connections of one server, and the one that is being opened.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::carrier::Carrier;
use super::multiplex::{Lane, Multiplexed};
use super::pool::Pool;
use crate::Error;
use crate::http::joint::{Joint, WeakJoint};

#[derive(Debug)]
pub(crate) struct Lanes {
    shared: Mutex<Vec<Arc<Multiplexed>>>,
    idle: Duration,
    /// The server chose HTTP/1.1: its connections need not be opened one after the other.
    is_http1: AtomicBool,
    /// The connection that is being opened, for all who want one meanwhile: whoever of them is polled opens it.
    opening: Mutex<WeakJoint<Opening>>,
}

/// What comes of opening a connection, for each who waited for it.
pub(crate) type Opening = Result<Arc<Fresh>, Error>;

/// A connection that was just opened.
#[derive(Debug)]
pub(crate) struct Fresh(Mutex<Option<Carrier>>);

impl Fresh {
    /// A place on it, or all of it where it is not shared: for the first who asks.
    pub(crate) fn take(&self) -> Option<Carrier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Lanes {
    pub(crate) fn new(idle: Duration) -> Self {
        Self { shared: Mutex::default(), idle, is_http1: AtomicBool::new(false), opening: Mutex::default() }
    }

    pub(crate) fn may_share(&self) -> bool {
        !self.is_http1.load(Ordering::Acquire)
    }

    /// A place on a connection that takes one more exchange.
    pub(crate) fn take(&self, pool: &Arc<Pool>) -> Option<Lane> {
        let mut shared = self.lock();
        shared.retain(|connection| !connection.is_over());
        shared.iter().find_map(|connection| connection.lane(pool))
    }

    /// The connection that is being opened; where there is none, one is opened by `open`.
    pub(crate) fn opening<F>(&self, open: impl FnOnce() -> F) -> Joint<Opening>
    where
        F: Future<Output = Opening> + Send + 'static,
    {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joint) = opening.get() {
            return joint;
        }
        let joint = Joint::new(open());
        *opening = joint.downgrade();
        joint
    }

    /// A connection is open; `None` if it is one that is not shared. From here on whoever wants one more opens another one.
    pub(crate) fn opened(&self, carrier: Carrier, shared: Option<Arc<Multiplexed>>) -> Arc<Fresh> {
        match shared {
            None => self.is_http1.store(true, Ordering::Release),
            Some(shared) => self.lock().push(shared),
        }
        self.no_longer_opening();
        Arc::new(Fresh(Mutex::new(Some(carrier))))
    }

    /// Whoever comes now tries anew.
    pub(crate) fn no_longer_opening(&self) {
        *self.opening.lock().unwrap_or_else(PoisonError::into_inner) = WeakJoint::default();
    }

    /// Closes what has been idle for too long; when to look again, unless all are in use.
    pub(crate) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut next = None;
        self.lock().retain(|connection| {
            if connection.is_over() {
                return false;
            }
            let Some(expires) = connection.idle_since().and_then(|since| since.checked_add(self.idle)) else {
                return true;
            };
            if expires > now {
                next = next.map_or(Some(expires), |next: Instant| Some(next.min(expires)));
            }
            expires > now
        });
        next
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Multiplexed>>> {
        // A poisoned lock guards connections that are each whole.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
