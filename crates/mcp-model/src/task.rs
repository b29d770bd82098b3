//! Tasks: requests whose result is fetched later.
//!
//! There are two designs. In 2025-11-25 tasks are part of the protocol, and the client requests them; with 2026-07-28 they are the
//! extension `io.modelcontextprotocol/tasks`, and the server decides. The types here read both: where the names of members differ
//! (`ttl` and `ttlMs`, `pollInterval` and `pollIntervalMs`), either is read.

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

/// Requests that a request be run as a task (2025-11-25 only).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long the receiver should keep the task after its creation, in milliseconds; `None` leaves that to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// A task that is kept as long as the receiver decides.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A task that is kept for `ttl` milliseconds after its creation.
    #[must_use]
    pub fn kept_for_ms(ttl: u64) -> Self {
        Self { ttl: Some(ttl) }
    }
}

/// The task that a message belongs to; the value of [`meta::RELATED_TASK`](crate::meta::RELATED_TASK) (2025-11-25).
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTaskMetadata {
    /// The id of the task.
    pub task_id: String,
}

impl RelatedTaskMetadata {
    /// For the task with this id.
    #[must_use]
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into() }
    }
}

impl fmt::Debug for RelatedTaskMetadata {
    /// Shows the length of the id, since the id may be enough to use the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelatedTaskMetadata").field("task_id_bytes", &self.task_id.len()).finish()
    }
}

open_enum! {
    /// The status of a task.
    TaskStatus {
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It has completed, and there is a result.
        Completed = "completed",
        /// It has failed with an error.
        Failed = "failed",
        /// It waits for input.
        InputRequired = "input_required",
        /// It is running.
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
    /// The id of the task. It may be enough to use the task, so treat it as a secret where that matters. `Debug` leaves it out.
    pub task_id: String,
    /// Its status.
    pub status: TaskStatus,
    /// A description of the status. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was created, in ISO 8601. Required by the specification; its absence is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it last changed, in ISO 8601. Required by the specification; its absence is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_at: Option<String>,
    /// How long it is kept after its creation, in milliseconds; `None` if unlimited or unknown.
    pub ttl_ms: Option<u64>,
    /// How long to wait between polls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
}

impl fmt::Debug for Task {
    /// Shows the length of the id, since the id may be enough to use the task.
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
    /// A task with this id and status.
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

/// The result that a task was created for a request.
///
/// 2025-11-25: the result of a request with `task`. Extension: the result of `tools/call` with the `resultType`
/// [`ResultType::Task`].
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// The `resultType`: how to read the result (2026-07-28 and later).
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
            /// The id of the task.
            pub task_id: String,
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<RawValue>>,
        }

        impl fmt::Debug for $name {
            /// Shows the length of the id, since the id may be enough to use the task.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("task_id_bytes", &self.task_id.len())
                    .field("meta", &SizeOnly::size_only(&self.meta))
                    .finish()
            }
        }

        impl $name {
            /// For the task with this id.
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

/// Result of `tasks/get`, and the content of `notifications/tasks`.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Flat")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task.
    pub task: Task,
    /// The input requests, while it waits for input (extension).
    pub input_requests: Option<InputRequests>,
    /// The result of the request, once the task has completed, as raw JSON (extension).
    pub result: Option<Box<RawValue>>,
    /// The JSON-RPC error object with which it failed, as raw JSON (extension).
    pub error: Option<Box<RawValue>>,
    /// The `resultType`: how to read the result (2026-07-28 and later).
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

impl fmt::Debug for GetTaskResult {
    /// Shows the keys of the input requests, not their content.
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

/// Result of `tasks/result`: the result of the request itself, as raw JSON (2025-11-25 only).
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct GetTaskPayloadResult {
    /// The result.
    pub raw: Box<RawValue>,
}

crate::confidential::debug! { GetTaskPayloadResult {} sized { raw } }

impl GetTaskPayloadResult {
    /// Reads the result as the result type of the original request.
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

/// Result of `tasks/list`: one page (2025-11-25 only).
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks of this page; malformed ones are in its [`List::rejected`].
    pub tasks: List<Task>,
    /// The cursor of the next page; `None` at the end. The empty string is a valid cursor.
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

/// Result of `tasks/cancel`. The task may have ended before; `tasks/get` has its status.
#[derive(Clone, Deserialize)]
#[serde(from = "Flat")]
#[non_exhaustive]
pub struct CancelTaskResult {
    /// The task (2025-11-25); the extension only acknowledges.
    pub task: Option<Task>,
    /// The `resultType`: how to read the result (2026-07-28 and later).
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CancelTaskResult { task, result_type } sized { meta } }

/// Parameters of `tasks/update` (extension): the input that a task requires.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// The id of the task.
    pub task_id: String,
    /// The input responses, by the key of the input request.
    pub input_responses: InputResponses,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl UpdateTaskRequestParams {
    /// Sends the task these input responses.
    #[must_use]
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, meta: None }
    }
}

impl fmt::Debug for UpdateTaskRequestParams {
    /// Shows neither the input responses, which may be personal, nor the id.
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

/// Parameters of `notifications/tasks` (extension): the same as the result of `tasks/get`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct TaskNotificationParams {
    /// The current result of `tasks/get`.
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
