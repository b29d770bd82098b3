//! What the application says of one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::cache::CacheUse;
use crate::tasks::TaskOptions;

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

    /// How long the call may take with everything in it.
    pub(crate) fn hard_end(&self) -> Duration {
        self.max_total.unwrap_or(DEFAULT_MAX_TOTAL.max(self.timeout))
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

/// What a call may take in all where nothing is said.
const DEFAULT_MAX_TOTAL: Duration = Duration::from_secs(30 * 60);
