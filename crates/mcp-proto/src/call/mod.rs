//! One request of ours from the moment it is asked for to the one outcome it has.
//!
//! ```text
//!   call(), listen() ──> Asking ──answer──> ended: its result, or its error object
//!                         │  ▲
//!                         │  └────── answered, opened, time to ask, wait over ──────┐
//!                         ├──wants input, see `mrtr`──────────────> NeedsInput ─────┤
//!                         ├──wants URLs, see `urls_required`──────> NeedsUrls ──────┤
//!                         ├──is a task now, see `tasks`───────────> Polling ────────┤
//!                         └──failed on its way, see `retry`───────> Retrying ───────┘
//!
//!   listen() to a legacy server ──> Apart: its requests are calls of their own, see `listen`
//!   the handshake of a new session, answered ──> Confirming, see `renewal`
//!
//!   each of them ──cancel(), deadline, connection closed──> ended: Cancelled, Timeout, Closed
//! ```
//!
//! These are the [`Stage`]s. The request of a call that is `Asking` may wait for the driver, for a session that is being made, or, where
//! it failed and nobody has seen it, for the moment to leave again; or it is on the wire. Only where it may have left is the server
//! told that the call is given up. How a next request is made is in `sending`.
//!
//! Every call ends exactly once. An answer that arrives later meets an id that is no longer in the table and is
//! reported as a diagnostic. [`Connection::forget`](crate::Connection::forget) ends one without an event: the driver knows why.

mod asked;
mod id;
mod kind;
mod options;
mod stage;
mod time;

use std::sync::Arc;
use std::time::Instant;

use mcp_elicitation::RetryPermit;

use crate::listen::Listening;
use crate::renewal::Setup;
use crate::tasks::TaskCall;

pub(crate) use asked::{Asked, Relisting};
pub use id::{CallId, CallIdHasher, CallMap};
pub(crate) use kind::CallKind;
pub use options::CallOptions;
pub(crate) use stage::{Request, Stage};
pub(crate) use time::{CallTime, earliest};

/// What the table of calls knows about one of them.
#[derive(Debug)]
pub(crate) struct CallState {
    pub(crate) kind: CallKind,
    pub(crate) stage: Stage,
    pub(crate) time: CallTime,
    /// What it was asked for with, where its request may have to be made again: always in the modern era, before it where
    /// [`url_permit`](Self::url_permit) or `retry` can come to that.
    pub(crate) asked: Option<Box<Asked>>,
    /// [`CallOptions::route`]
    pub(crate) route: Option<Arc<str>>,
    /// What its success changes for later sessions.
    pub(crate) setup: Option<Setup>,
    /// Its request was sent once more already, in another session.
    pub(crate) resent: bool,
    /// How often it may still be tried again after a failure on its way.
    pub(crate) retries_left: u32,
    /// It may be refused for URL elicitations, once (2025-11-25).
    pub(crate) url_permit: Option<RetryPermit>,
    /// The newest progress, where it asked for any.
    pub(crate) progress: Option<LastProgress>,
    pub(crate) role: Role,
}

/// What a call is besides a request and its answer.
#[derive(Debug)]
pub(crate) enum Role {
    Plain,
    Subscription(Box<Listening>),
    /// It is or may become a task.
    Task(Box<TaskCall>),
}

/// The value of the newest progress, so that one that does not increase can be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastProgress(pub(crate) Option<f64>);

impl CallState {
    pub(crate) fn new(kind: CallKind, stage: Stage, now: Instant, options: &CallOptions) -> Self {
        Self {
            kind,
            stage,
            time: CallTime::new(now, options),
            asked: None,
            route: options.route.clone(),
            setup: None,
            resent: false,
            retries_left: 0,
            url_permit: None,
            progress: options.progress.then_some(LastProgress(None)),
            role: Role::Plain,
        }
    }

    /// What it knows of itself as a subscription.
    pub(crate) fn listening(&self) -> Option<&Listening> {
        match &self.role {
            Role::Subscription(listening) => Some(listening),
            Role::Plain | Role::Task(_) => None,
        }
    }

    /// As [`listening`](Self::listening).
    pub(crate) fn listening_mut(&mut self) -> Option<&mut Listening> {
        match &mut self.role {
            Role::Subscription(listening) => Some(listening),
            Role::Plain | Role::Task(_) => None,
        }
    }

    /// What it knows of its task.
    pub(crate) fn task(&self) -> Option<&TaskCall> {
        match &self.role {
            Role::Task(task) => Some(task),
            Role::Plain | Role::Subscription(_) => None,
        }
    }

    /// As [`task`](Self::task).
    pub(crate) fn task_mut(&mut self) -> Option<&mut TaskCall> {
        match &mut self.role {
            Role::Task(task) => Some(task),
            Role::Plain | Role::Subscription(_) => None,
        }
    }

    /// Its request, while it has one.
    pub(crate) const fn request(&self) -> Option<&Request> {
        match &self.stage {
            Stage::Asking(request) => Some(request),
            _ => None,
        }
    }

    /// As [`request`](Self::request).
    pub(crate) const fn request_mut(&mut self) -> Option<&mut Request> {
        match &mut self.stage {
            Stage::Asking(request) => Some(request),
            _ => None,
        }
    }

    /// Whether it has a request that may have left.
    pub(crate) fn is_dispatched(&self) -> bool {
        self.request().is_some_and(|request| request.dispatched)
    }

    /// Whether the server has made a task of it.
    pub(crate) fn is_task(&self) -> bool {
        self.task().is_some_and(TaskCall::exists)
    }

    /// Whether the server may have carried it out, or may still do so: its request may have left, or it has become a task, which goes
    /// on without any request.
    pub(crate) fn may_be_carried_out(&self) -> bool {
        self.is_dispatched() || self.is_task()
    }
}
