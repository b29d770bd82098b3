//! Tasks that are put away, and waited for again later, on another connection or in another process.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

use mcp_jsonrpc::RawJson;
use mcp_model::{GetTaskRequestParams, Task, TaskStatus, ToJson, methods};
use serde::{Deserialize, Serialize};

use super::{Known, Step, TaskCall};
use crate::call::{CallId, CallKind, CallOptions, Role};
use crate::connection::Connection;
use crate::error::Misuse;
use crate::gate;

/// A task as plain data: store it, and give it to `Client::resume_task` of `mcp-client`, or to
/// `Connection::resume_task` here.
///
/// Whoever knows the id may be able to use the task, so it is as confidential as its result; `Debug` omits it, and shows only
/// the length of `server`, which may be a command line. The server decides how long it keeps the task.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredTask {
    /// The server, as the driver names it; empty if unknown.
    #[serde(default)]
    pub server: String,
    /// The task id.
    pub task_id: String,
    /// The method of the call that became the task.
    pub method: String,
    /// When it was created by the server's clock, in ISO 8601, if the server said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// How long the server keeps it after that, in milliseconds; `None`: no limit, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Keys of its input requests that have been answered, so that nobody is asked again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub answered: BTreeSet<String>,
}

impl StoredTask {
    /// A task of a tool call that is known by its id alone.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            server: String::new(),
            task_id: task_id.into(),
            method: methods::TOOLS_CALL.to_owned(),
            created_at: None,
            ttl_ms: None,
            answered: BTreeSet::new(),
        }
    }
}

impl fmt::Debug for StoredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTask")
            .field("server_bytes", &self.server.len())
            .field("method", &self.method)
            .field("created_at", &self.created_at)
            .field("ttl_ms", &self.ttl_ms)
            .field("answered", &self.answered.len())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Waits for a task that is at the server already, and asks at once. It ends as the call would have that became it.
    ///
    /// # Errors
    ///
    /// [`Misuse::NotDeclaredByClient`] without [`Config::tasks`](crate::Config::tasks), [`Misuse::NotDeclaredByServer`] or
    /// [`Misuse::NotInRevision`] where the server has no tasks or none of this method; otherwise as [`call`](Self::call).
    pub fn resume_task(
        &mut self,
        now: Instant,
        stored: &StoredTask,
        options: &CallOptions,
    ) -> Result<CallId, Misuse> {
        let server = self.usable()?;
        let version = server.protocol_version;
        gate::check(methods::TASKS_GET, version, &server.capabilities)?;
        if self.config.tasks.is_none() {
            return Err(Misuse::NotDeclaredByClient { capability: "tasks" });
        }
        // It may come from a store that somebody else writes to as well.
        if stored.method != methods::TOOLS_CALL {
            return Err(Misuse::NotInRevision { method: stored.method.clone(), version });
        }
        let params = GetTaskRequestParams::new(stored.task_id.as_str()).to_json();
        let params = params.map(RawJson::from).map_err(|_| Misuse::Unserializable)?;
        let call = self.next_call_id();
        let asking = CallOptions { progress: false, reset_on_progress: false, ..options.clone() };
        self.send_request(now, call, methods::TASKS_GET, Some(&params), CallKind::Ordinary, &asking)?;
        let mut task = TaskCall::new(Step::Getting, &asking);
        let mut known = Task::new(stored.task_id.clone(), TaskStatus::Working);
        known.created_at.clone_from(&stored.created_at);
        known.ttl_ms = stored.ttl_ms;
        task.known = Some(Known { task: known, since: now, is_told: false });
        task.polls = 1;
        task.inputs.know(stored.answered.iter().cloned());
        if let Some(state) = self.calls.get_mut(&call) {
            state.role = Role::Task(Box::new(task));
        }
        if !self.is_ready() {
            self.hold(now, call);
        }
        Ok(call)
    }

    /// The task that this call waits for, to be put away; `None` as long as there is none.
    pub fn stored_task(&self, call: CallId) -> Option<StoredTask> {
        let task = self.calls.get(&call)?.task()?;
        let known = &task.known.as_ref()?.task;
        Some(StoredTask {
            created_at: known.created_at.clone(),
            ttl_ms: known.ttl_ms,
            answered: task.inputs.answered(),
            ..StoredTask::new(known.task_id.clone())
        })
    }
}
