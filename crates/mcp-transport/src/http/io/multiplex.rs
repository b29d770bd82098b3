//! One HTTP/2 connection, shared by many exchanges (RFC 9113).
//!
//! Here the connection is driven by a task of its own, since no exchange may depend on another one being polled. It ends
//! with the last handle. Dropping an exchange resets its stream and nothing else.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, Connection, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::body::RequestBody;
use super::clock::now;
use super::pool::Pool;
use super::stream::Stream;
use super::wire::{SendError, Sent};
use crate::http::config::HttpLimits;
use crate::http::http2::Http2Options;

type Driver = Connection<TokioIo<Stream>, RequestBody, TokioExecutor>;

pub(crate) struct Multiplexed {
    sender: SendRequest<RequestBody>,
    /// Owned by the task that drives it; asked here for what the server allows.
    driver: Weak<Mutex<Driver>>,
    /// Exchanges that hold a lane.
    in_use: AtomicUsize,
    /// No new exchange begins here: the server said so, or the connection broke.
    retired: AtomicBool,
    idle_since: Mutex<Instant>,
}

/// One exchange's place on a shared connection.
pub(crate) struct Lane {
    connection: Arc<Multiplexed>,
    pool: Weak<Pool>,
}

impl Multiplexed {
    pub(crate) async fn handshake(
        stream: Stream,
        options: &Http2Options,
        limits: &HttpLimits,
    ) -> Result<Arc<Self>, hyper::Error> {
        let head_bytes = u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX);
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(options.stream_window_bytes)
            .initial_connection_window_size(options.connection_window_bytes)
            .max_header_list_size(head_bytes)
            .keep_alive_interval(options.keep_alive_interval)
            .keep_alive_timeout(options.keep_alive_timeout);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        let driver = Arc::new(Mutex::new(connection));
        let shared = Arc::new(Self {
            sender,
            driver: Arc::downgrade(&driver),
            in_use: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            idle_since: Mutex::new(now()),
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            // Why it ended is told to each exchange on it.
            let _ = poll_fn(|cx| Pin::new(&mut *lock(&driver)).poll(cx)).await;
            if let Some(shared) = weak.upgrade() {
                shared.retire();
            }
        });
        Ok(shared)
    }

    /// A place for one more exchange, if the connection takes it now.
    pub(crate) fn lane(self: &Arc<Self>, pool: &Arc<Pool>) -> Option<Lane> {
        // Not after the count: a lane must not be given back here, as the caller holds the lock that its end may ask for.
        if self.is_over() {
            return None;
        }
        // Current as soon as the first response has come: the server's settings precede it.
        let most = lock(&*self.driver.upgrade()?).current_max_send_streams();
        let taken = self
            .in_use
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < most).then_some(count + 1));
        taken.ok()?;
        Some(Lane { connection: Arc::clone(self), pool: Arc::downgrade(pool) })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.retired.load(Ordering::Acquire) || self.sender.is_closed()
    }

    /// Since when no exchange uses it; `None` if one does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        if self.in_use.load(Ordering::Acquire) > 0 {
            return None;
        }
        Some(*lock(&self.idle_since))
    }

    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }
}

impl Lane {
    pub(crate) fn send(&self, request: Request<RequestBody>) -> Sent {
        let mut sender = self.connection.sender.clone();
        Box::pin(async move { sender.try_send_request(request).await })
    }

    /// Waits for the head of the response.
    pub(crate) fn poll_sent(
        &self,
        sent: &mut Sent,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Incoming>, SendError>> {
        sent.as_mut().poll(cx).map_err(|mut failed| {
            let is_unsent = failed.take_message().is_some();
            let error = failed.into_error();
            let fate = Fate::of(&error);
            // A stream that was refused says nothing about later ones.
            if is_unsent || fate == Fate::GoingAway {
                self.connection.retire();
            }
            SendError { error, is_unsent, is_refused: fate != Fate::Unknown }
        })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        *lock(&self.connection.idle_since) = now();
        if self.connection.in_use.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(pool) = self.pool.upgrade()
        {
            pool.watch();
        }
    }
}

/// What a failure says about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The server ends the connection and had not begun with this stream (RFC 9113 section 6.8).
    GoingAway,
    /// The server refused this stream before any processing (RFC 9113 section 8.7).
    Refused,
    Unknown,
}

impl Fate {
    fn of(error: &hyper::Error) -> Self {
        match cause(error) {
            Some(error) if is_refusal(error) && error.is_remote() => Self::Refused,
            // Only streams above the last one that the server names end in this way.
            Some(error) if error.is_go_away() && error.is_remote() => Self::GoingAway,
            _ => Self::Unknown,
        }
    }
}

fn is_refusal(error: &h2::Error) -> bool {
    error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM)
}

/// Whether the server broke the rules of HTTP/2, among them the size of a head that it was told.
pub(crate) fn is_misbehaviour(error: &hyper::Error) -> bool {
    cause(error).is_some_and(h2::Error::is_library)
}

fn cause(error: &hyper::Error) -> Option<&h2::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// A poisoned lock guards values that are each whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next piece of a response body.
pub(crate) fn poll_piece(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    loop {
        match std::task::ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

impl fmt::Debug for Multiplexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Multiplexed")
            .field("in_use", &self.in_use)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lane").field(&self.connection).finish()
    }
}
