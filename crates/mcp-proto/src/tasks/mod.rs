//! Calls that become tasks: the server says that it will take a while, and the call waits for it by asking.
//!
//! ```text
//!   tools/call ──result──────────────────────────────────────────────────────────────────> ended (an ordinary call)
//!       │
//!       └─a task─> Polling ──interval passed──> Getting ──working──> Polling
//!                   ▲  │ ▲                        ├──completed, failed: result, error───────────────────> ended
//!                   │  │ └─────acknowledged─────┐ ├──cancelled, unknown, past its time to live──────────> ended
//!                   │  └─everything answered─> Updating
//!                   │                             └──terminal or input_required, 2025-11-25──> Fetching ──> ended
//!                   └── answer lost: at most `max_failed_polls` times in a row
//! ```
//!
//! Two designs share the name, and whoever makes a call sees one. With 2026-07-28 tasks are the extension
//! `io.modelcontextprotocol/tasks`: the server decides, its questions come with `tasks/get` and are answered with
//! `tasks/update`, the result comes with `tasks/get` too. In 2025-11-25 the client asks for a task where the tool wants
//! that; the questions are ordinary requests of the server, for which `tasks/result` is kept open, and the result is the
//! answer to it.
//!
//! One call has at most one request on the wire, whatever it waits for. `tools/call` is never sent a second time. Giving
//! a call up gives up the wait; the task goes on at the server unless [`TaskOptions::cancel_abandoned`] says otherwise,
//! and [`StoredTask`] is how to come back to it.

mod inputs;
mod options;
mod outcome;
mod related;
mod stored;
mod support;
mod wait;

use std::fmt;
use std::time::{Duration, Instant};

use mcp_jsonrpc::RequestId;
use mcp_model::Task;

use self::inputs::Inputs;
use crate::call::CallOptions;

pub use options::{TaskConfig, TaskOptions};
pub use outcome::{TaskError, TaskUpdate};
pub(crate) use related::RelatedTask;
pub use stored::StoredTask;
pub(crate) use support::TaskTools;

/// What a call that is or may become a task knows about itself.
#[derive(Debug)]
pub(crate) struct TaskCall {
    step: Step,
    /// Those of the requests about it, which have no progress of their own.
    options: CallOptions,
    known: Option<Known>,
    polls: u32,
    /// Requests without an answer in a row.
    failed_polls: u32,
    inputs: Inputs,
    /// Under which progress is told as long as the task lives (2025-11-25).
    progress_token: Option<RequestId>,
}

/// The task, once there is one.
struct Known {
    /// As it was last told.
    task: Task,
    /// When this wait first heard of it. The time to live counts from its creation, which is no later.
    since: Instant,
    /// Whether the application was told anything of it.
    is_told: bool,
}

impl fmt::Debug for Known {
    /// Without the id: whoever knows it may be able to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("status", &self.task.status).finish_non_exhaustive()
    }
}

/// What the newest request of a call of this kind is for. Between two of them it is [`Polling`](crate::call::Stage::Polling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The answer to `tools/call` (2025-11-25).
    Creating,
    /// The task's result (2025-11-25).
    Fetching,
    /// Where the task stands.
    Getting,
    /// A list of tools, which says which of them are tasks (2025-11-25).
    Listing,
    /// The server takes the answers.
    Updating,
}

impl TaskCall {
    fn new(step: Step, options: &CallOptions) -> Self {
        Self {
            step,
            options: CallOptions { progress: false, reset_on_progress: false, ..options.clone() },
            known: None,
            polls: 0,
            failed_polls: 0,
            inputs: Inputs::default(),
            progress_token: None,
        }
    }

    /// Whether progress under this token is meant for it.
    pub(crate) fn has_progress_token(&self, token: &RequestId) -> bool {
        self.progress_token.as_ref() == Some(token)
    }

    /// Whether the server has made a task of the call.
    pub(crate) fn exists(&self) -> bool {
        self.known.is_some()
    }

    /// Whether the request under way asks for a task, which must not be cancelled as a request is (2025-11-25,
    /// "Cancellation").
    pub(crate) fn is_being_created(&self) -> bool {
        self.step == Step::Creating
    }

    /// Those of the requests about it.
    pub(crate) const fn options(&self) -> &CallOptions {
        &self.options
    }

    /// The next request of its call is this one: the one that asks for it names the token that it tells its progress under.
    pub(crate) fn asked_for_by(&mut self, request: &RequestId) {
        if self.is_being_created()
            && let Some(token) = &mut self.progress_token
        {
            token.clone_from(request);
        }
    }

    /// How long to wait before the next question, within the bounds of the configuration.
    fn interval(&self, config: &TaskConfig, is_told: bool) -> Duration {
        let asked = self.known.as_ref().and_then(|known| known.task.poll_interval_ms);
        let asked = asked.map_or(config.default_poll_interval, Duration::from_millis);
        let longest = config.max_poll_interval.max(config.min_poll_interval);
        if is_told {
            // What changes is told; asking only finds out what was lost on the way.
            return longest;
        }
        let doubled = asked.max(config.min_poll_interval).saturating_mul(1 << self.failed_polls.min(16));
        doubled.min(longest)
    }

    /// How long the task is kept, where that is over.
    fn expired(&self, now: Instant) -> Option<Duration> {
        let known = self.known.as_ref()?;
        let ttl = Duration::from_millis(known.task.ttl_ms?);
        (now.saturating_duration_since(known.since) >= ttl).then_some(ttl)
    }
}
