//! One request of ours from the moment it is asked for to the one outcome it has.
//!
//! ```text
//!   call() ──> queued ──dispatched──> on the wire ──answer────────────────> ended: result or error object
//!                │  ▲                   │  │ │ └──deadline passed───────────> ended: Timeout,   notice on the wire
//!                │  │                   │  │ └────cancel()──────────────────> ended: Cancelled, notice on the wire
//!                │  │                   │  └──────connection closed─────────> ended: Closed
//!                │  └─next request────┐ │ wants input or URLs, became a task, failed on its way
//!                │                    waiting ──cancel(), deadline, closed──> ended, no request to give notice of
//!                ├──cancel(), deadline, closed, early answer──> ended, nothing was ever sent
//!                └──forget()──> gone without an event (the driver already knows why)
//! ```
//!
//! These are no types: `on_wire` and `dispatched` of its [`CallState`] tell the upper three apart, `pause`, `url_retry`, `task` and
//! `retry_at` say what one waits for. How a next request is made is in `sending`.
//!
//! Every call ends exactly once. An answer that arrives later meets an id that is no longer in the table and is
//! reported as a diagnostic.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_jsonrpc::{ErrorObject, RawJson, RequestId};
use serde_json::{Map, Value};

use crate::cache::{CacheUse, Ticket};
use crate::error::TimeLimit;
use crate::event::ServerRequestId;
use crate::listen::Listening;
use crate::mrtr::Pause;
use crate::renewal::Setup;
use crate::tasks::{TaskCall, TaskOptions};
use crate::urls_required::UrlRetry;

/// Names one call of the application for the life of the connection. It is not the JSON-RPC id: one call may take
/// several requests on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// Its number, for logs. The calls of one connection count up.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A table by call. The ids are ours and count up, so nobody can aim at a bucket and no keyed hash is needed.
pub type CallMap<T> = HashMap<CallId, T, BuildHasherDefault<CallIdHasher>>;

/// The hash of a [`CallId`]: its number, spread over all bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallIdHasher(u64);

impl Hasher for CallIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only reached for keys that are no `CallId`.
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: neighbours land far apart, in the high bits too, which the table looks at first.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// What a call may take in all where nothing is said.
const DEFAULT_MAX_TOTAL: Duration = Duration::from_secs(30 * 60);

/// How long a call may take and what rides along with it. `Debug` shows how many members `meta` has and none of them.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long to wait for the answer. Default 60 s. While people answer what the server asks in the middle of the call, this
    /// time stands still and only `max_total` counts; afterwards it goes on where it stood, or anew where the answers are a new
    /// request (modern era). What the client repeats by itself (under another revision, after listing the tools again, after a
    /// wait that the server wanted) takes of this time. Any `Duration` works; one that overflows the clock means "never".
    pub timeout: Duration,
    /// Whether each progress notification starts `timeout` anew. Default: no.
    pub reset_on_progress: bool,
    /// The hard end, whatever `timeout` and progress say and however long people think. Default `None`: 30 minutes, or `timeout`
    /// where that is longer, so that a caller who asks for two hours gets two hours.
    pub max_total: Option<Duration>,
    /// Whether to ask for progress (`_meta.progressToken`). Default: no.
    pub progress: bool,
    /// Whether a call that needs input ends with [`CallError::Suspended`](crate::CallError::Suspended) in place of asking
    /// the application's handlers (modern era). Default: no.
    pub suspend: bool,
    /// Whether the call may be answered with a result that is kept, and its own result be kept (modern era). Default: both.
    pub cache: CacheUse,
    /// A word of the application that comes back with each question asked in the middle of this call
    /// ([`ServerRequest::route`](crate::ServerRequest::route)), so that it reaches whoever made the call. Nothing of it
    /// is sent. Default: none.
    pub route: Option<Arc<str>>,
    /// What it wants of tasks. Without effect where [`Config::tasks`](crate::Config::tasks) is not set.
    pub task: TaskOptions,
    /// Whether the call may be tried again where that is safe ([`RetryConfig`](crate::RetryConfig)). Default: yes.
    pub retry: bool,
    /// Further members of `_meta`. Members that the protocol owns (`progressToken`, `io.modelcontextprotocol/*`
    /// of the envelope) win over these. Default: none.
    pub meta: Option<Map<String, Value>>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            reset_on_progress: false,
            max_total: None,
            progress: false,
            suspend: false,
            cache: CacheUse::Allowed,
            route: None,
            task: TaskOptions::default(),
            retry: true,
            meta: None,
        }
    }
}

impl CallOptions {
    /// The defaults with another timeout.
    pub fn with_timeout(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("reset_on_progress", &self.reset_on_progress)
            .field("max_total", &self.max_total)
            .field("progress", &self.progress)
            .field("suspend", &self.suspend)
            .field("cache", &self.cache)
            .field("route", &self.route)
            .field("task", &self.task)
            .field("retry", &self.retry)
            .field("meta_members", &self.meta.as_ref().map(Map::len))
            .finish()
    }
}

/// What the table of calls knows about one of them.
#[derive(Debug)]
pub(crate) struct CallState {
    pub(crate) kind: CallKind,
    /// The id of the request on the wire now.
    pub(crate) wire_id: RequestId,
    pub(crate) dispatched: bool,
    /// The request as it goes on the wire, to send it again when the server refused it unprocessed.
    pub(crate) message: Bytes,
    /// Which session of the connection it was sent in.
    pub(crate) session: u64,
    /// It was sent again already.
    pub(crate) resent: bool,
    /// How often it may still be tried again after a failure on its way.
    pub(crate) retries_left: u32,
    /// When it is tried again, while it waits for that.
    pub(crate) retry_at: Option<Instant>,
    /// What its success changes for later sessions.
    pub(crate) setup: Option<Setup>,
    /// What it was asked for with, where its request may have to be made again: always in the modern era, before it where
    /// [`url_retry`](Self::url_retry) or `retry` can come to that.
    pub(crate) asked: Option<Box<Asked>>,
    /// It may be refused for URL elicitations (2025-11-25).
    pub(crate) url_retry: Option<UrlRetry>,
    /// [`CallOptions::route`]
    pub(crate) route: Option<Arc<str>>,
    /// Open questions for which the time of its request on the wire stands still.
    pub(crate) questions: Vec<ServerRequestId>,
    /// What was left of its time when it began to stand still; `None` = more than the clock can express.
    pub(crate) time_left: Option<Duration>,
    /// Pages of tools that were listed for its headers.
    pub(crate) relisted: u32,
    /// It has a request on the wire, or in the queue for it.
    pub(crate) on_wire: bool,
    /// It is a subscription.
    pub(crate) listening: Option<Box<Listening>>,
    /// It waits for input and has no request on the wire.
    pub(crate) pause: Option<Box<Pause>>,
    /// It is or may become a task.
    pub(crate) task: Option<Box<TaskCall>>,
    pub(crate) started: Instant,
    pub(crate) timeout: Duration,
    pub(crate) reset_on_progress: bool,
    pub(crate) progress: Option<LastProgress>,
    /// When the call ends by itself; `None` = the clock cannot express it.
    pub(crate) deadline: Option<Instant>,
    /// `deadline` never moves past this.
    pub(crate) hard_deadline: Option<Instant>,
}

/// A call as it was asked for, and what became of it so far.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
    /// `params` with the answers and the state of the newest round, once there was one.
    pub(crate) answered: Option<RawJson>,
    pub(crate) options: CallOptions,
    /// How often the server wanted input.
    pub(crate) rounds: u32,
    /// How often in a row it had nothing to ask.
    pub(crate) paces: u32,
    /// It was made again under another revision.
    pub(crate) revised: bool,
    /// The refusal of its headers, for which the tools were listed again.
    pub(crate) mismatch: Option<ErrorObject>,
    /// Allows its result to be kept.
    pub(crate) ticket: Option<Ticket>,
}

impl Asked {
    pub(crate) fn new(method: &str, params: Option<&RawJson>, options: &CallOptions) -> Self {
        Self {
            method: method.to_owned(),
            params: params.cloned(),
            answered: None,
            options: options.clone(),
            rounds: 0,
            paces: 0,
            revised: false,
            mismatch: None,
            ticket: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `initialize`: never cancelled on the wire; its answer opens the connection.
    Initialize,
    /// `server/discover` in place of it: never cancelled either, because a legacy server must hear of nothing but
    /// `initialize`.
    Probe,
    /// A request of the application.
    Ordinary,
    /// A subscription: it ends when somebody ends it.
    Listen,
    /// What a legacy server is asked for one resource of this subscription. Internal.
    Subscribe(CallId),
    /// The list of tools, asked for in the middle of a call whose headers the server refused.
    Relist,
    /// `initialize` for a session in place of one that the server lost. Internal: nobody is told how it ended.
    Renew,
    /// Sets up again in a new session what the application had set up in the old one. Internal too.
    Restore,
    /// Tells the server that something is not wanted any more: a resource, a task. Internal, and whatever comes of it is no matter.
    Courtesy,
}

impl CallKind {
    /// Whether its answer opens a connection. Never cancelled on the wire.
    pub(crate) const fn is_handshake(self) -> bool {
        matches!(self, Self::Initialize | Self::Probe | Self::Renew)
    }

    /// Whether somebody is told how it ended.
    pub(crate) const fn is_told(self) -> bool {
        matches!(self, Self::Initialize | Self::Listen | Self::Ordinary | Self::Probe | Self::Relist)
    }

    /// Whether its answer opens a session of the transport.
    pub(crate) const fn establishes_session(self) -> bool {
        matches!(self, Self::Initialize | Self::Renew)
    }
}

/// The value of the newest progress, so that one that does not increase can be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastProgress(pub(crate) Option<f64>);

impl CallState {
    /// Whether the server may have carried it out, or may still do so: its request may have left, or it has become a task, which goes
    /// on without any request.
    pub(crate) fn may_be_carried_out(&self) -> bool {
        self.dispatched || self.task.as_ref().is_some_and(|task| task.exists())
    }

    pub(crate) fn new(kind: CallKind, wire_id: RequestId, now: Instant, options: &CallOptions) -> Self {
        let hard_deadline = now.checked_add(options.hard_end());
        Self {
            kind,
            wire_id,
            dispatched: false,
            message: Bytes::new(),
            session: 0,
            resent: false,
            retries_left: 0,
            retry_at: None,
            setup: None,
            asked: None,
            url_retry: None,
            route: options.route.clone(),
            questions: Vec::new(),
            time_left: None,
            relisted: 0,
            on_wire: true,
            listening: None,
            pause: None,
            task: None,
            started: now,
            timeout: options.timeout,
            reset_on_progress: options.reset_on_progress,
            progress: options.progress.then_some(LastProgress(None)),
            deadline: earliest(now.checked_add(options.timeout), hard_deadline),
            hard_deadline,
        }
    }

    /// How long the call was given in all.
    pub(crate) fn given(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(self.started))
    }

    /// Which of its limits the deadline is.
    pub(crate) fn time_limit(&self) -> TimeLimit {
        let is_hard = self.deadline == self.hard_deadline && self.given() != self.timeout;
        if is_hard { TimeLimit::MaxTotal } else { TimeLimit::Timeout }
    }

    /// The new deadline after progress at `now`.
    pub(crate) fn renewed_deadline(&self, now: Instant) -> Option<Instant> {
        earliest(now.checked_add(self.timeout), self.hard_deadline)
    }

    /// The deadline if its request is no more at `now`, and with it whatever its time stands still for.
    pub(crate) fn deadline_without_questions(&self, now: Instant) -> Option<Instant> {
        if self.questions.is_empty() { self.deadline } else { self.resumed_deadline(now) }
    }

    /// The deadline once its time has stood still and goes on at `now`.
    pub(crate) fn resumed_deadline(&self, now: Instant) -> Option<Instant> {
        earliest(self.time_left.and_then(|left| now.checked_add(left)), self.hard_deadline)
    }
}

impl CallOptions {
    /// How long the call may take with everything in it.
    pub(crate) fn hard_end(&self) -> Duration {
        self.max_total.unwrap_or(DEFAULT_MAX_TOTAL.max(self.timeout))
    }
}

pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
