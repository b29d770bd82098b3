//! Task status, and how a task can end without a result.

use std::fmt;
use std::time::Duration;

use mcp_jsonrpc::ErrorObject;
use mcp_model::Task;

/// A status report of a task.
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskUpdate {
    /// The task as last reported. Its texts are untrusted.
    pub task: Task,
    /// A text with which a model may continue while the task runs (2025-11-25, with the first update only). Untrusted.
    pub immediate_response: Option<String>,
}

impl fmt::Debug for TaskUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskUpdate").field("status", &self.task.status).finish_non_exhaustive()
    }
}

/// How a task ended without a result. A failed task instead gives the error object of its call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// It was cancelled: by this client, by another one or by the server.
    Cancelled,
    /// It was not done within the time for which the server keeps it.
    Expired {
        /// The time it was kept for.
        ttl: Duration,
    },
    /// The server does not know it (any more).
    Unknown(ErrorObject),
    /// It made more input requests than allowed.
    TooManyInputs {
        /// [`TaskConfig::max_inputs`](crate::TaskConfig::max_inputs).
        limit: usize,
    },
    /// It was polled as often as allowed. It may still be running.
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
                write!(f, "the task was not done within the {ttl:?} it is kept for")
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
