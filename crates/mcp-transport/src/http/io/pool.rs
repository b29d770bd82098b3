//! Idle connections of one server, kept for a short while.
//!
//! A connection comes back when its response is read, or when the rest of its response is of no interest: the rest is
//! then read away by whoever wants the connection next, or the connection is closed when it lasts too long. Nobody waits
//! for it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use tokio::time;

use super::carrier::Carrier;
use super::clock::now;
#[cfg(feature = "http2")]
use super::lanes::Lanes;
use super::wire::Wire;
use crate::http::config::Config;

/// How much of an uninteresting rest is read away.
const MAX_REST_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Pool {
    inner: Mutex<Inner>,
    max_idle: usize,
    idle: Duration,
    linger: Duration,
    /// Whether the server has ever answered anything.
    pub(super) has_answered: AtomicBool,
    #[cfg(feature = "http2")]
    pub(super) lanes: Lanes,
}

#[derive(Debug, Default)]
struct Inner {
    /// The latest last.
    entries: Vec<Entry>,
    /// A task that closes what has been idle for too long is running.
    reaping: bool,
}

#[derive(Debug)]
struct Entry {
    wire: Box<Wire>,
    rest: Option<Rest>,
    expires: Instant,
}

/// What is still to come of a response that nobody needs.
#[derive(Debug)]
struct Rest {
    body: Incoming,
    bytes: usize,
}

impl Pool {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let Config { limits, timeouts, .. } = config;
        Arc::new(Self {
            inner: Mutex::default(),
            max_idle: limits.max_idle_connections,
            idle: timeouts.pool_idle,
            linger: timeouts.linger,
            has_answered: AtomicBool::new(false),
            #[cfg(feature = "http2")]
            lanes: Lanes::new(config.http2.as_ref().map_or(timeouts.pool_idle, |options| options.idle)),
        })
    }

    /// Takes back a connection. `rest` is the body of its last response, if that was not read to its end.
    pub(crate) fn put(self: &Arc<Self>, carrier: Carrier, rest: Option<Incoming>) {
        use hyper::body::Body as _;

        // What is left of a response on a shared connection ends with its stream.
        let Some(wire) = carrier.into_wire() else { return };

        // Before the body goes: of that the connection is told, and nobody need be.
        wire.forget_task();
        let now = now();
        let rest = rest.filter(|body| !body.is_end_stream()).map(|body| Rest { body, bytes: 0 });
        let keep = if rest.is_some() { self.linger.min(self.idle) } else { self.idle };
        let Some(expires) = now.checked_add(keep) else { return };
        let mut entry = Entry { wire, rest, expires };
        if entry.rest.is_some() {
            // Whether the connection can be used is asked when somebody wants it.
            let _ = entry.state();
        }
        // Closing sockets may take a while, so the old entries are dropped behind the lock.
        let expired;
        {
            let mut inner = self.lock();
            expired = take_expired(&mut inner.entries, now);
            if inner.entries.len() >= self.max_idle {
                return;
            }
            inner.entries.push(entry);
        }
        drop(expired);
        self.watch();
    }

    /// Has idle connections closed when their time is over.
    pub(crate) fn watch(self: &Arc<Self>) {
        let is_watched = std::mem::replace(&mut self.lock().reaping, true);
        if !is_watched {
            // Without a runtime nothing runs that could use the connection either.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(reap(Arc::downgrade(self)));
            } else {
                self.lock().reaping = false;
            }
        }
    }

    /// A connection that is ready for a request, if one is idle.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<Carrier> {
        #[cfg(feature = "http2")]
        if let Some(lane) = self.lanes.take(self) {
            return Some(Carrier::Lane(lane));
        }
        self.take_wire().await.map(Carrier::Wire)
    }

    async fn take_wire(&self) -> Option<Box<Wire>> {
        if let Some(wire) = self.take_ready() {
            return Some(wire);
        }
        if !self.lock().entries.iter().any(|entry| entry.rest.is_some()) {
            return None;
        }
        // The end of an event stream often follows its last event by a few microseconds. Letting the runtime look at its
        // sockets once is much cheaper than a new connection.
        tokio::task::yield_now().await;
        self.take_ready()
    }

    /// Whether a new connection may be one that exchanges share: nothing else is known yet.
    #[cfg(feature = "http2")]
    pub(crate) fn may_share(&self) -> bool {
        self.lanes.may_share()
    }

    fn take_ready(&self) -> Option<Box<Wire>> {
        let mut not_ready = Vec::new();
        let mut found = None;
        let now = now();
        loop {
            let entry = self.lock().entries.pop();
            let Some(mut entry) = entry else { break };
            if entry.expires <= now {
                continue;
            }
            match entry.state() {
                State::Busy => not_ready.push(entry),
                State::Dead => {}
                State::Ready => {
                    found = Some(entry.wire);
                    break;
                }
            }
        }
        if !not_ready.is_empty() {
            not_ready.reverse();
            self.lock().entries.append(&mut not_ready);
        }
        found
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A poisoned lock guards entries that are each whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum State {
    Busy,
    Dead,
    Ready,
}

impl Entry {
    /// Reads away what can be read of the rest, and looks whether the peer closed the connection.
    fn state(&mut self) -> State {
        // It is asked whenever somebody wants a connection, and nobody waits for it.
        let cx = &mut Context::from_waker(Waker::noop());
        while let Some(rest) = &mut self.rest {
            match self.wire.poll_piece(&mut rest.body, cx) {
                Poll::Pending => return State::Busy,
                Poll::Ready(None) => self.rest = None,
                Poll::Ready(Some(Err(_))) => return State::Dead,
                Poll::Ready(Some(Ok(piece))) => {
                    rest.bytes = rest.bytes.saturating_add(piece.len());
                    if rest.bytes > MAX_REST_BYTES {
                        return State::Dead;
                    }
                }
            }
        }
        if self.wire.is_ready() { State::Ready } else { State::Dead }
    }
}

fn take_expired(entries: &mut Vec<Entry>, now: Instant) -> Vec<Entry> {
    if entries.iter().all(|entry| entry.expires > now) {
        return Vec::new();
    }
    let (expired, left) = std::mem::take(entries).into_iter().partition(|entry| entry.expires <= now);
    *entries = left;
    expired
}

/// Closes connections whose time is over, and ends with the last one, so that an idle client wakes nobody.
async fn reap(pool: Weak<Pool>) {
    loop {
        let next = {
            let Some(pool) = pool.upgrade() else { return };
            let now = now();
            let expired;
            let mut inner = pool.lock();
            expired = take_expired(&mut inner.entries, now);
            let next = inner.entries.iter().map(|entry| entry.expires).min();
            // Asked behind the lock, so that whoever ends the last exchange after this starts another watch.
            #[cfg(feature = "http2")]
            let next = [next, pool.lanes.expire(now)].into_iter().flatten().min();
            if next.is_none() {
                inner.reaping = false;
            }
            drop(inner);
            drop(expired);
            next
        };
        let Some(next) = next else { return };
        time::sleep_until(next.into()).await;
    }
}
