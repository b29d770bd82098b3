//! Which tools are called as tasks (2025-11-25).

use std::collections::HashMap;

use mcp_jsonrpc::{RawJson, RawRef};
use mcp_model::{ProtocolVersion, ServerFeature, TaskMetadata, TaskSupport, ToJson, methods};

use super::{Step, TaskCall};
use crate::call::{CallId, CallOptions, Role};
use crate::connection::Connection;
use crate::envelope::string_member;
use crate::error::Misuse;
use crate::limits::Limits;

/// What the lists of tools said about tasks.
#[derive(Debug)]
pub(crate) struct TaskTools {
    support: HashMap<String, TaskSupport>,
    capacity: usize,
    max_name_bytes: usize,
}

impl TaskTools {
    pub(crate) fn new(limits: &Limits) -> Self {
        let capacity = limits.max_tools_with_headers;
        Self { support: HashMap::new(), capacity, max_name_bytes: limits.max_name_bytes }
    }

    /// Reads one page of `tools/list`.
    fn learn(&mut self, page: RawRef<'_>) {
        let tools = page.members(["tools"]).ok().and_then(|[tools]| tools?.items().ok());
        for tool in tools.unwrap_or_default() {
            let Some((name, support)) = support_of(tool) else { continue };
            if let Some(known) = self.support.get_mut(&name) {
                *known = support;
            } else if self.support.len() < self.capacity && name.len() <= self.max_name_bytes {
                self.support.insert(name, support);
            }
        }
    }
}

/// The name of a tool, and what it says of tasks.
fn support_of(tool: RawRef<'_>) -> Option<(String, TaskSupport)> {
    let [name, execution] = tool.members(["name", "execution"]).ok()?;
    let said = execution.map(|execution| execution.members(["taskSupport"])).transpose().ok()?;
    let said = said.and_then(|[support]| support).map(RawRef::string).transpose().ok()?;
    let support = said.map_or(TaskSupport::Forbidden, |support| TaskSupport::from(support.as_str()));
    Some((name?.string().ok()?, support))
}

impl Connection {
    /// Whether the server runs tool calls as tasks in the way of 2025-11-25, and the application wants that.
    fn asks_for_tasks(&self) -> bool {
        self.config.tasks.is_some()
            && self.server().is_some_and(|server| {
                server.protocol_version == ProtocolVersion::V2025_11_25
                    && server.capabilities.declares(ServerFeature::TasksToolsCall)
            })
    }

    /// The params that make this call a task, where it is to be one (2025-11-25).
    pub(crate) fn asking_for_task(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<Option<RawJson>, Misuse> {
        if method != methods::TOOLS_CALL || options.task.declined || !self.asks_for_tasks() {
            return Ok(None);
        }
        let Some(params) = params else { return Ok(None) };
        let Some(name) = string_member(params.as_raw_ref(), "name") else { return Ok(None) };
        let as_task = match self.task_tools.support.get(&name) {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) | None => options.task.wanted,
            Some(_) => false,
        };
        if !as_task {
            return Ok(None);
        }
        if params.as_raw_ref().has_member("task").map_err(|_| Misuse::ParamsNotAnObject)? {
            return Ok(Some(params.clone()));
        }
        let mut task = TaskMetadata::new();
        task.ttl = options.task.keep_for.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let task = task.to_json().map_err(|_| Misuse::Unserializable)?.into();
        let params = params.as_raw_ref().with_members(&[("task", Some(&task))]);
        params.map(Some).map_err(|_| Misuse::Unserializable)
    }

    /// Marks a call whose answer has to do with tasks before anybody else looks at it (2025-11-25).
    pub(crate) fn mark_task(&mut self, call: CallId, method: &str, asks: bool, options: &CallOptions) {
        let step = match method {
            methods::TOOLS_CALL if asks => Step::Creating,
            methods::TOOLS_LIST if self.asks_for_tasks() => Step::Listing,
            _ => return,
        };
        if let Some(state) = self.calls.get_mut(&call) {
            let mut task = TaskCall::new(step, options);
            if step == Step::Creating && options.progress {
                task.progress_token = state.request().map(|request| request.id.clone());
            }
            state.role = Role::Task(Box::new(task));
        }
    }

    /// A list of tools arrived.
    pub(super) fn learn_task_tools(&mut self, page: RawRef<'_>) {
        self.task_tools.learn(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:LIM-14: below, at and above the limits of names and of tools.
    #[test]
    fn a_bounded_number_of_tools_with_names_of_bounded_length_is_remembered() {
        let learn = |table: &mut TaskTools, name: &str, support: &str| {
            let page =
                format!(r#"{{"tools":[{{"name":"{name}","execution":{{"taskSupport":"{support}"}}}}]}}"#);
            table.learn(RawJson::from_text(page).unwrap().as_raw_ref());
        };
        for (bytes, remembered) in [(7, true), (8, true), (9, false)] {
            let mut table = TaskTools::new(&Limits { max_name_bytes: 8, ..Limits::default() });
            let name = "n".repeat(bytes);
            learn(&mut table, &name, "required");
            assert_eq!(table.support.contains_key(&name), remembered, "{bytes}");
        }
        let mut table = TaskTools::new(&Limits { max_tools_with_headers: 2, ..Limits::default() });
        for (name, support) in [("a", "required"), ("b", "required"), ("c", "required"), ("a", "optional")] {
            learn(&mut table, name, support);
        }
        let support = ["a", "b", "c"].map(|name| table.support.get(name).cloned());
        assert_eq!(support, [Some(TaskSupport::Optional), Some(TaskSupport::Required), None]);
    }
}
