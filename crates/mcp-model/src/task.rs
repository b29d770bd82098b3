//! Tasks: requests that outlive their answer.
//!
//! Two designs share the name. 2025-11-25 has tasks in its core, asked for by the client; with 2026-07-28 they are the
//! extension `io.modelcontextprotocol/tasks`, decided by the server. The types here read both: where the two spell a
//! member differently (`ttl` and `ttlMs`, `pollInterval` and `pollIntervalMs`), either spelling is read.

mod reading;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::reading::Flat;
use crate::confidential::SizeOnly;
use crate::open_enum::open_enum;
use crate::request::{notifications, other_requests, paginated_params, requests};
use crate::{EmptyResult, InputRequests, InputResponses, List, Page, ResultType, lenient, methods};

/// Makes a request a task (2025-11-25 only).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long the receiver should keep the task after its creation, in milliseconds; `None` leaves it the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// A task that is kept as long as the receiver likes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A task that is kept for so many milliseconds after its creation.
    #[must_use]
    pub fn kept_for_ms(ttl: u64) -> Self {
        Self { ttl: Some(ttl) }
    }
}

/// Names the task that a message belongs to, under [`meta::RELATED_TASK`](crate::meta::RELATED_TASK) (2025-11-25).
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTaskMetadata {
    /// The task.
    pub task_id: String,
}

impl RelatedTaskMetadata {
    /// Names the task.
    #[must_use]
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into() }
    }
}

impl fmt::Debug for RelatedTaskMetadata {
    /// Shows the length of the id: whoever knows it may be able to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelatedTaskMetadata").field("task_id_bytes", &self.task_id.len()).finish()
    }
}

open_enum! {
    /// Where a task stands.
    TaskStatus {
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It is done, and there is a result.
        Completed = "completed",
        /// It ended with an error.
        Failed = "failed",
        /// It waits for answers.
        InputRequired = "input_required",
        /// It is at work.
        Working = "working",
    }
}

impl TaskStatus {
    /// Whether the status is final.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Completed | Self::Failed)
    }
}

/// A task. Written with the member names of the extension.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "Flat")]
#[non_exhaustive]
pub struct Task {
    /// Names the task. Whoever knows it may be able to use it: treat it as a secret where that matters. `Debug` leaves it out.
    pub task_id: String,
    /// Where it stands.
    pub status: TaskStatus,
    /// More about the status, for people. Text of the peer: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, in ISO 8601. A peer must say so; one that does not is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it last changed, in ISO 8601. A peer must say so; one that does not is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_at: Option<String>,
    /// How long it is kept after its creation, in milliseconds; `None` means without limit, or that the peer does not
    /// say.
    pub ttl_ms: Option<u64>,
    /// How long to wait between questions, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
}

impl fmt::Debug for Task {
    /// Shows the length of the id: whoever knows it may be able to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("task_id_bytes", &self.task_id.len())
            .field("status", &self.status)
            .field("status_message", &self.status_message)
            .field("created_at", &self.created_at)
            .field("last_updated_at", &self.last_updated_at)
            .field("ttl_ms", &self.ttl_ms)
            .field("poll_interval_ms", &self.poll_interval_ms)
            .finish()
    }
}

impl Task {
    /// A task of which nothing more is known.
    #[must_use]
    pub fn new(task_id: impl Into<String>, status: TaskStatus) -> Self {
        Self {
            task_id: task_id.into(),
            status,
            status_message: None,
            created_at: None,
            last_updated_at: None,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }
}

/// Says that a request became a task.
///
/// 2025-11-25: the answer to a request with `task`. Extension: the answer to `tools/call` whose `resultType` is
/// [`ResultType::Task`].
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// How to read the result (2026-07-28 and later).
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CreateTaskResult { task, result_type } sized { meta } }

/// Defines parameters that name a task.
macro_rules! task_params {
    ($( $(#[$attribute:meta])* $name:ident; )+) => { $(
        $(#[$attribute])*
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            /// The task.
            pub task_id: String,
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<RawValue>>,
        }

        impl fmt::Debug for $name {
            /// Shows the length of the id: whoever knows it may be able to use the task.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("task_id_bytes", &self.task_id.len())
                    .field("meta", &SizeOnly::size_only(&self.meta))
                    .finish()
            }
        }

        impl $name {
            /// Names the task.
            #[must_use]
            pub fn new(task_id: impl Into<String>) -> Self {
                Self { task_id: task_id.into(), meta: None }
            }
        }
    )+ };
}

task_params! {
    /// Parameters of `tasks/get`.
    GetTaskRequestParams;
    /// Parameters of `tasks/result` (2025-11-25 only).
    GetTaskPayloadRequestParams;
    /// Parameters of `tasks/cancel`.
    CancelTaskRequestParams;
}

/// Answer to `tasks/get`, and the content of `notifications/tasks`.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task.
    pub task: Task,
    /// What it asks for, while it waits for answers (extension).
    pub input_requests: Option<InputRequests>,
    /// What the request gave, once it is completed: a result of the request's own type, as raw JSON (extension).
    pub result: Option<Box<RawValue>>,
    /// The JSON-RPC error object it failed with, as raw JSON (extension).
    pub error: Option<Box<RawValue>>,
    /// How to read the result (2026-07-28 and later).
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

impl fmt::Debug for GetTaskResult {
    /// Shows the keys of the questions, not their text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.input_requests.as_ref().map(|requests| requests.keys().collect::<Vec<_>>());
        f.debug_struct("GetTaskResult")
            .field("task", &self.task)
            .field("input_requests", &keys)
            .field("result_bytes", &self.result.as_ref().map(|raw| raw.get().len()))
            .field("error_bytes", &self.error.as_ref().map(|raw| raw.get().len()))
            .finish_non_exhaustive()
    }
}

/// Answer to `tasks/result`: whatever the request itself would have given, as raw JSON (2025-11-25 only).
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct GetTaskPayloadResult {
    /// The result.
    pub raw: Box<RawValue>,
}

crate::confidential::debug! { GetTaskPayloadResult {} sized { raw } }

impl GetTaskPayloadResult {
    /// Reads the result as the type that belongs to the original request.
    ///
    /// # Errors
    /// When the result does not have the shape of `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.raw.get())
    }
}

paginated_params! {
    /// Parameters of `tasks/list` (2025-11-25 only).
    ListTasksRequestParams;
}

/// Answer to `tasks/list`: one page (2025-11-25 only).
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks of this page; malformed ones are in its [`List::rejected`].
    pub tasks: List<Task>,
    /// Where the next page begins; the empty string is a cursor, `None` is the end.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default)]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ListTasksResult { tasks, next_cursor } sized { meta } }

impl Page for ListTasksResult {
    fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }
}

/// Answer to `tasks/cancel`. The cancellation may still come too late: `tasks/get` tells.
#[derive(Clone, Deserialize)]
#[serde(from = "Flat")]
#[non_exhaustive]
pub struct CancelTaskResult {
    /// The task (2025-11-25); the extension only acknowledges.
    pub task: Option<Task>,
    /// How to read the result (2026-07-28 and later).
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CancelTaskResult { task, result_type } sized { meta } }

/// Parameters of `tasks/update` (extension): answers to what a task asked for.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// The task.
    pub task_id: String,
    /// The answers, by the key of the question.
    pub input_responses: InputResponses,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl UpdateTaskRequestParams {
    /// Gives the task these answers.
    #[must_use]
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, meta: None }
    }
}

impl fmt::Debug for UpdateTaskRequestParams {
    /// Shows neither the answers, which may be a person's, nor the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateTaskRequestParams")
            .field("task_id_bytes", &self.task_id.len())
            .field("input_responses", &BTreeMap::len(&self.input_responses))
            .finish_non_exhaustive()
    }
}

/// Parameters of `notifications/tasks/status` (2025-11-25 only).
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub struct TaskStatusNotificationParams {
    /// The task.
    pub task: Task,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { TaskStatusNotificationParams { task } sized { meta } }

/// Parameters of `notifications/tasks` (extension): all that `tasks/get` would tell.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct TaskNotificationParams {
    /// What `tasks/get` would answer now.
    pub state: GetTaskResult,
}

requests! {
    GetTaskRequestParams => methods::TASKS_GET, GetTaskResult;
    ListTasksRequestParams => methods::TASKS_LIST, ListTasksResult;
    CancelTaskRequestParams => methods::TASKS_CANCEL, CancelTaskResult;
}

other_requests! {
    GetTaskPayloadRequestParams => methods::TASKS_RESULT, GetTaskPayloadResult;
    UpdateTaskRequestParams => methods::TASKS_UPDATE, EmptyResult;
}

notifications! {
    TaskStatusNotificationParams => methods::NOTIFICATIONS_TASKS_STATUS;
}

impl crate::Notification for TaskNotificationParams {
    const METHOD: &'static str = methods::NOTIFICATIONS_TASKS;
}
