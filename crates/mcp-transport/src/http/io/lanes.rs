//! The shared connections of one server, and whose turn it is to open one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::multiplex::{Lane, Multiplexed};
use super::pool::Pool;
use crate::Error;

#[derive(Debug)]
pub(crate) struct Lanes {
    shared: Mutex<Vec<Arc<Multiplexed>>>,
    idle: Duration,
    /// The server chose HTTP/1.1: its connections need not be opened one after the other.
    is_http1: AtomicBool,
    /// How many attempts to open a connection have failed.
    failures: AtomicU64,
    /// Held by the one that opens a connection; the error of the last attempt that failed.
    opening: tokio::sync::Mutex<Option<Error>>,
}

/// The right to open a connection, for one at a time. Dropped without a word, it passes to the next.
pub(crate) struct Turn<'a> {
    lanes: &'a Lanes,
    last: tokio::sync::MutexGuard<'a, Option<Error>>,
}

impl Lanes {
    pub(crate) fn new(idle: Duration) -> Self {
        Self {
            shared: Mutex::default(),
            idle,
            is_http1: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            opening: tokio::sync::Mutex::default(),
        }
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

    pub(crate) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let seen = self.failures.load(Ordering::Acquire);
        let last = self.opening.lock().await;
        match &*last {
            // What failed for the one before would take as long to fail for each of those who wait.
            Some(error) if self.failures.load(Ordering::Acquire) != seen => Err(error.clone()),
            _ => Ok(Turn { lanes: self, last }),
        }
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

impl Turn<'_> {
    /// The connection is open; `None` if it is one that is not shared.
    pub(crate) fn opened(mut self, shared: Option<Arc<Multiplexed>>) {
        *self.last = None;
        match shared {
            None => self.lanes.is_http1.store(true, Ordering::Release),
            Some(shared) => self.lanes.lock().push(shared),
        }
    }

    pub(crate) fn failed(mut self, error: &Error) {
        *self.last = Some(error.clone());
        self.lanes.failures.fetch_add(1, Ordering::AcqRel);
    }
}
