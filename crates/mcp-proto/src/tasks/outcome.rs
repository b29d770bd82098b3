//! What a task tells, and how it can end without a result.

use std::fmt;
use std::time::Duration;

use mcp_jsonrpc::ErrorObject;
use mcp_model::Task;

/// Where a task stands, each time the server says something new about it.
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskUpdate {
    /// The task as it was last told. Its texts are the peer's: untrusted.
    pub task: Task,
    /// A text that a model may go on with while the task is at work (2025-11-25, with the first update only). Untrusted.
    pub immediate_response: Option<String>,
}

impl fmt::Debug for TaskUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskUpdate").field("status", &self.task.status).finish_non_exhaustive()
    }
}

/// How a task ended without a result of its own. A failed one has the error object that the call would have had.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// It was cancelled: by this client, by another one or by the server.
    Cancelled,
    /// It was still not done when the time was over that the server keeps it for.
    Expired {
        /// The time it was kept for.
        ttl: Duration,
    },
    /// The server does not know it, or no longer.
    Unknown(ErrorObject),
    /// It asked more questions than one task may.
    TooManyInputs {
        /// [`TaskConfig::max_inputs`](crate::TaskConfig::max_inputs).
        limit: usize,
    },
    /// It was asked for more often than one wait may. It may still be at work.
    TooManyPolls {
        /// [`TaskConfig::max_polls`](crate::TaskConfig::max_polls).
        limit: u32,
    },
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the task was cancelled"),
            Self::Expired { ttl } => {
                write!(f, "the task was not done within the {} ms it is kept for", ttl.as_millis())
            }
            Self::Unknown(error) => {
                write!(f, "the server does not know the task (error {})", error.code.get())
            }
            Self::TooManyInputs { limit } => write!(f, "the task asked more than {limit} questions"),
            Self::TooManyPolls { limit } => {
                write!(f, "the task was not done after {limit} polls")
            }
        }
    }
}

impl std::error::Error for TaskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown(error) => Some(error),
            _ => None,
        }
    }
}
