//! Reads every shape in which a task comes: alone, inside a result, flat among a result's own members.

use std::fmt;

use super::{
    CancelTaskResult, CreateTaskResult, Deserialize, GetTaskResult, InputRequests, RawValue, ResultType,
    Task, TaskStatus, TaskStatusNotificationParams, lenient,
};

/// All members of all shapes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Flat {
    /// Raw until it is known that it is wanted, so that tasks inside tasks are not read level by level.
    #[serde(default)]
    task: Option<Box<RawValue>>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    status: Option<TaskStatus>,
    #[serde(default, deserialize_with = "lenient::hint")]
    status_message: Option<String>,
    #[serde(default, deserialize_with = "lenient::hint")]
    created_at: Option<String>,
    #[serde(default, deserialize_with = "lenient::hint")]
    last_updated_at: Option<String>,
    #[serde(default, deserialize_with = "lenient::count")]
    ttl: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    poll_interval: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    poll_interval_ms: Option<u64>,
    #[serde(default)]
    input_requests: Option<InputRequests>,
    #[serde(default, deserialize_with = "lenient::present")]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "lenient::result_type")]
    result_type: Option<ResultType>,
    #[serde(rename = "_meta", default)]
    meta: Option<Box<RawValue>>,
}

impl Flat {
    /// The task among the members themselves, else the one in `task`.
    fn take_task(&mut self) -> Result<Task, NoTask> {
        if let Ok(task) = self.take_own() {
            return Ok(task);
        }
        let nested = self.task.take().ok_or(NoTask)?;
        crate::json::read(nested.get()).map_err(|_| NoTask)
    }

    fn take_own(&mut self) -> Result<Task, NoTask> {
        match (self.task_id.take(), self.status.take()) {
            (Some(task_id), Some(status)) => Ok(Task {
                task_id,
                status,
                status_message: self.status_message.take(),
                created_at: self.created_at.take(),
                last_updated_at: self.last_updated_at.take(),
                ttl_ms: self.ttl_ms.or(self.ttl),
                poll_interval_ms: self.poll_interval_ms.or(self.poll_interval),
            }),
            _ => Err(NoTask),
        }
    }
}

impl TryFrom<Flat> for Task {
    type Error = NoTask;

    fn try_from(mut flat: Flat) -> Result<Self, NoTask> {
        flat.take_own()
    }
}

impl TryFrom<Flat> for CreateTaskResult {
    type Error = NoTask;

    fn try_from(mut flat: Flat) -> Result<Self, NoTask> {
        Ok(Self { task: flat.take_task()?, result_type: flat.result_type, meta: flat.meta })
    }
}

impl TryFrom<Flat> for GetTaskResult {
    type Error = NoTask;

    fn try_from(mut flat: Flat) -> Result<Self, NoTask> {
        Ok(Self {
            task: flat.take_task()?,
            input_requests: flat.input_requests,
            result: flat.result,
            error: flat.error,
            result_type: flat.result_type,
            meta: flat.meta,
        })
    }
}

impl TryFrom<Flat> for TaskStatusNotificationParams {
    type Error = NoTask;

    fn try_from(mut flat: Flat) -> Result<Self, NoTask> {
        Ok(Self { task: flat.take_task()?, meta: flat.meta })
    }
}

impl From<Flat> for CancelTaskResult {
    fn from(mut flat: Flat) -> Self {
        Self { task: flat.take_task().ok(), result_type: flat.result_type, meta: flat.meta }
    }
}

/// The object describes no task.
#[derive(Debug)]
pub(super) struct NoTask;

impl fmt::Display for NoTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no task: `taskId` or `status` is missing")
    }
}
