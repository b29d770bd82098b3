//! The capabilities that a server declares.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::settings::capabilities;
use crate::{ProtocolVersion, Settings, lenient, methods};

/// The server's capabilities, of every revision.
///
/// Reading is lenient: `null` and `false` count as "not declared", any other value of an unexpected shape as
/// "declared without settings", and members that the specification does not define are kept in
/// [`ServerCapabilities::other`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Non-standard capabilities by name.
    pub experimental: BTreeMap<String, Settings>,
    /// The server sends log messages.
    pub logging: Option<Settings>,
    /// The server supports completion (2025-03-26 and later).
    pub completions: Option<Settings>,
    /// The server offers prompts.
    pub prompts: Option<ListChangedCapability>,
    /// The server offers resources.
    pub resources: Option<ResourcesCapability>,
    /// The server offers tools.
    pub tools: Option<ListChangedCapability>,
    /// The server can run requests as tasks (2025-11-25 only).
    pub tasks: Option<ServerTasksCapability>,
    /// Extensions by identifier (2026-07-28 and later).
    pub extensions: BTreeMap<String, Settings>,
    /// All other members, as raw JSON, because the set is open.
    pub other: BTreeMap<String, Box<RawValue>>,
}

impl ServerCapabilities {
    /// Nothing declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the feature is declared.
    #[must_use]
    pub fn declares(&self, feature: ServerFeature) -> bool {
        let list_changed = |capability: &Option<ListChangedCapability>| {
            capability.as_ref().is_some_and(|settings| settings.list_changed == Some(true))
        };
        match feature {
            ServerFeature::Completions => self.completions.is_some(),
            ServerFeature::Logging => self.logging.is_some(),
            ServerFeature::Prompts => self.prompts.is_some(),
            ServerFeature::PromptsListChanged => list_changed(&self.prompts),
            ServerFeature::Resources => self.resources.is_some(),
            ServerFeature::ResourcesListChanged => {
                self.resources.as_ref().is_some_and(|settings| settings.list_changed == Some(true))
            }
            ServerFeature::ResourcesSubscribe => {
                self.resources.as_ref().is_some_and(|settings| settings.subscribe == Some(true))
            }
            ServerFeature::Tasks => self.tasks.is_some(),
            ServerFeature::TasksCancel => self.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some()),
            ServerFeature::TasksList => self.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some()),
            ServerFeature::TasksToolsCall => {
                self.tasks.as_ref().is_some_and(ServerTasksCapability::runs_tool_calls)
            }
            ServerFeature::Tools => self.tools.is_some(),
            ServerFeature::ToolsListChanged => list_changed(&self.tools),
        }
    }

    /// Whether the extension is declared.
    #[must_use]
    pub fn declares_extension(&self, id: &str) -> bool {
        self.extensions.contains_key(id)
    }

    /// Whether the client may send the method: it needs no capability, or the server declared the one that it needs.
    ///
    /// ```
    /// use mcp_model::{ProtocolVersion, ServerCapabilities, methods};
    ///
    /// let server: ServerCapabilities = serde_json::from_str(r#"{"resources":{}}"#)?;
    /// let version = ProtocolVersion::V2025_11_25;
    /// assert!(server.permits(methods::RESOURCES_READ, version));
    /// assert!(!server.permits(methods::RESOURCES_SUBSCRIBE, version));
    /// assert!(!server.permits(methods::TOOLS_LIST, version));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn permits(&self, method: &str, version: ProtocolVersion) -> bool {
        ServerFeature::required_by(method, version).is_none_or(|feature| self.declares(feature))
    }
}

/// A feature that a server may declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerFeature {
    /// Completion.
    Completions,
    /// Log messages.
    Logging,
    /// Prompts.
    Prompts,
    /// Notifications when the list of prompts changes.
    PromptsListChanged,
    /// Resources.
    Resources,
    /// Notifications when the list of resources changes.
    ResourcesListChanged,
    /// Notifications when a resource changes.
    ResourcesSubscribe,
    /// Tasks (2025-11-25).
    Tasks,
    /// Cancelling tasks (2025-11-25).
    TasksCancel,
    /// Listing tasks (2025-11-25).
    TasksList,
    /// Tool calls as tasks (2025-11-25).
    TasksToolsCall,
    /// Tools.
    Tools,
    /// Notifications when the list of tools changes.
    ToolsListChanged,
}

impl ServerFeature {
    /// The capability that the server must have declared before a client may send the method under the revision; `None` if it
    /// needs none.
    #[must_use]
    pub fn required_by(method: &str, version: ProtocolVersion) -> Option<Self> {
        match method {
            methods::TOOLS_LIST | methods::TOOLS_CALL => Some(Self::Tools),
            methods::RESOURCES_LIST | methods::RESOURCES_TEMPLATES_LIST | methods::RESOURCES_READ => {
                Some(Self::Resources)
            }
            methods::RESOURCES_SUBSCRIBE | methods::RESOURCES_UNSUBSCRIBE => Some(Self::ResourcesSubscribe),
            methods::PROMPTS_LIST | methods::PROMPTS_GET => Some(Self::Prompts),
            // 2024-11-05 has the method but no capability for it: an ungated call is legal there.
            methods::COMPLETION_COMPLETE if version == ProtocolVersion::V2024_11_05 => None,
            methods::COMPLETION_COMPLETE => Some(Self::Completions),
            methods::LOGGING_SET_LEVEL => Some(Self::Logging),
            // The methods of the tasks extension are gated by the extension, not by this capability.
            methods::TASKS_GET | methods::TASKS_RESULT if version.is_legacy() => Some(Self::Tasks),
            methods::TASKS_LIST if version.is_legacy() => Some(Self::TasksList),
            methods::TASKS_CANCEL if version.is_legacy() => Some(Self::TasksCancel),
            _ => None,
        }
    }
}

capabilities!(ServerCapabilities { logging, completions, prompts, resources, tools, tasks });

/// Settings of the prompts and tools capabilities.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListChangedCapability {
    /// The server sends a notification when the list changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Settings of the resources capability.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// The client may subscribe to single resources.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server sends a notification when the list changes.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// Settings of the server's tasks capability (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerTasksCapability {
    /// The server answers `tasks/list`.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub list: Option<Settings>,
    /// The server answers `tasks/cancel`.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Settings>,
    /// The requests that may be run as tasks.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub requests: Option<ServerTaskRequests>,
}

impl ServerTasksCapability {
    /// Whether `tools/call` may be run as a task.
    #[must_use]
    pub fn runs_tool_calls(&self) -> bool {
        self.requests
            .as_ref()
            .and_then(|requests| requests.tools.as_ref())
            .is_some_and(|tools| tools.call.is_some())
    }
}

/// The client requests that a server can run as tasks (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerTaskRequests {
    /// Tool requests.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub tools: Option<TaskTools>,
}

/// Which tool requests can be tasks (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskTools {
    /// `tools/call`.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub call: Option<Settings>,
}
