//! Tools that a server offers, and the results of calling them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::content::Blocks;
use crate::open_enum::open_enum;
use crate::request::{bare_params, notifications, paginated_params, paginated_results, requests};
use crate::{
    CacheScope, ContentBlock, Icon, InputResponses, List, ProtocolVersion, ResultType, TaskMetadata, lenient,
    methods,
};

/// A tool that the server offers.
///
/// Everything in it is untrusted: names, descriptions and annotations may mislead a person or a model.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The tool's name, for programs; case-sensitive. See [`Tool::has_conventional_name`].
    pub name: String,
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments, always an object; raw JSON, so that every keyword is kept.
    #[serde(deserialize_with = "lenient::object")]
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of the structured content of results, as raw JSON (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Annotations (2025-03-26 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How the tool may be executed (2025-11-25 only).
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { Tool { name, title, description, input_schema, output_schema, annotations, execution, icons } sized { meta } }

impl Tool {
    /// A tool with this input schema; `None` if the schema is not a JSON object.
    #[must_use]
    pub fn new(name: impl Into<String>, input_schema: Box<RawValue>) -> Option<Self> {
        lenient::is_object(&input_schema).then(|| Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            execution: None,
            icons: None,
            meta: None,
        })
    }

    /// The name to display: the title, else the title in the annotations, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }

    /// Whether the name follows the recommendation of the specification: 1 to 128 ASCII letters, digits, `_`, `-`, `.`.
    ///
    /// Other names are valid, too, and must be used unchanged.
    #[must_use]
    pub fn has_conventional_name(&self) -> bool {
        (1..=128).contains(&self.name.len())
            && self
                .name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    }

    /// The annotations, with the specification's defaults for absent ones. Untrusted.
    #[must_use]
    pub fn hints(&self) -> ToolHints {
        self.annotations.as_ref().map_or_else(ToolHints::default, ToolAnnotations::hints)
    }

    /// Whether a call may, must or must not be a task (2025-11-25); absent means it must not.
    #[must_use]
    pub fn task_support(&self) -> TaskSupport {
        self.execution
            .as_ref()
            .and_then(|execution| execution.task_support.clone())
            .unwrap_or(TaskSupport::Forbidden)
    }
}

/// Annotations of a tool: hints on its behaviour (2025-03-26 and later).
///
/// Untrusted: a server can claim anything. Base no decision on them unless the server is trusted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// A display name.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `readOnlyHint`: the tool does not modify its environment. Default: false.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// `destructiveHint`: the tool may perform destructive updates; meaningful if it is not read-only. Default: true.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// `idempotentHint`: repeated calls with the same arguments have no additional effect; meaningful if it is not read-only.
    /// Default: false.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// `openWorldHint`: the tool interacts with external entities. Default: true.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// The annotations, with the specification's defaults for absent ones. Untrusted.
    #[must_use]
    pub fn hints(&self) -> ToolHints {
        let default = ToolHints::default();
        ToolHints {
            read_only: self.read_only_hint.unwrap_or(default.read_only),
            destructive: self.destructive_hint.unwrap_or(default.destructive),
            idempotent: self.idempotent_hint.unwrap_or(default.idempotent),
            open_world: self.open_world_hint.unwrap_or(default.open_world),
        }
    }
}

/// [`ToolAnnotations`] with the defaults for absent members. Untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolHints {
    /// The tool does not modify its environment.
    pub read_only: bool,
    /// The tool may perform destructive updates; meaningful if it is not read-only.
    pub destructive: bool,
    /// Repeated calls with the same arguments have no additional effect; meaningful if it is not read-only.
    pub idempotent: bool,
    /// The tool interacts with external entities.
    pub open_world: bool,
}

impl Default for ToolHints {
    /// The specification's defaults for a tool without annotations: the least favourable values.
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

/// How a tool may be executed (2025-11-25 only).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether a call may be made as a task.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

open_enum! {
    /// Whether a tool may be called as a task (2025-11-25 only).
    TaskSupport {
        /// It must not; also if absent.
        Forbidden = "forbidden",
        /// It may.
        Optional = "optional",
        /// It must.
        Required = "required",
    }
}

paginated_params! {
    /// Parameters of `tools/list`.
    ListToolsRequestParams;
}

paginated_results! {
    /// Result of `tools/list`: one page.
    ListToolsResult {
        /// The tools of this page; malformed ones are in its [`List::rejected`].
        #[serde(deserialize_with = "crate::list::directly")]
        tools: Tool
    }
}

/// A page of tools that are all well-formed; reading any other page fails.
pub(crate) struct WellFormedTools(pub(crate) ListToolsResult);

impl<'de> Deserialize<'de> for WellFormedTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WellFormedPage::deserialize(deserializer).map(Self)
    }
}

/// As [`ListToolsResult`] but for how its tools are read.
#[derive(Deserialize)]
#[serde(remote = "ListToolsResult", rename_all = "camelCase")]
struct WellFormedPage {
    #[serde(deserialize_with = "crate::list::well_formed")]
    tools: List<Tool>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default, deserialize_with = "lenient::count")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "lenient::hint")]
    cache_scope: Option<CacheScope>,
    #[serde(default, deserialize_with = "lenient::result_type")]
    result_type: Option<ResultType>,
    #[serde(rename = "_meta", default)]
    meta: Option<Box<RawValue>>,
}

/// Parameters of `tools/call`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolRequestParams {
    /// The name of the tool.
    pub name: String,
    /// The arguments: a JSON object, as raw JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// Requests that the call be run as a task (2025-11-25 only, if server and tool allow it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The input responses, in a retry after `input_required` (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the `input_required` result, unchanged (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl CallToolRequestParams {
    /// A call without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            task: None,
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }

    /// Adds arguments: a value that serializes to a JSON object, such as a struct, a `serde_json::Map` or `json!({ ... })`.
    ///
    /// # Errors
    /// If the value cannot be represented in JSON or is not an object.
    pub fn with_arguments(mut self, arguments: &impl Serialize) -> serde_json::Result<Self> {
        let raw = serde_json::value::to_raw_value(arguments)?;
        if !lenient::is_object(&raw) {
            return Err(serde::ser::Error::custom("tool arguments that are not a JSON object"));
        }
        self.arguments = Some(raw);
        Ok(self)
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        Self {
            name: self.name,
            arguments: self.arguments,
            task: self.task.filter(|_| version == ProtocolVersion::V2025_11_25),
            input_responses: self.input_responses.filter(|_| version.is_modern()),
            request_state: self.request_state.filter(|_| version.is_modern()),
            meta: self.meta,
        }
    }
}

impl fmt::Debug for CallToolRequestParams {
    /// Shows neither arguments nor input responses, which may be secret, nor the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallToolRequestParams")
            .field("name", &self.name)
            .field("arguments_bytes", &self.arguments.as_ref().map(|raw| raw.get().len()))
            .field("task", &self.task)
            .field("input_responses", &self.input_responses.as_ref().map(BTreeMap::len))
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .finish_non_exhaustive()
    }
}

/// Result of `tools/call`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The content, for people and models. Absent and `null` read as the empty list.
    #[serde(default, deserialize_with = "Blocks::deserialize")]
    pub content: Vec<ContentBlock>,
    /// The structured content, as raw JSON (2025-06-18 and later; any value since 2026-07-28, an object before).
    /// `Some` of `null` differs from `None`.
    #[serde(default, deserialize_with = "lenient::present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool call failed; absent means it did not. See [`CallToolResult::is_error`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The `resultType`: how to read the result (2026-07-28 and later).
    #[serde(default, deserialize_with = "lenient::result_type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CallToolResult { content, structured_content, is_error, result_type } sized { meta } }

impl CallToolResult {
    /// A successful result with this content.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Whether the tool call failed. The content then says why; show it to the model.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }

    /// The text of all text blocks, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(ContentBlock::as_text)
    }

    /// Reads the structured content as a type; `None` if there is none. [`serde_json::Value`] accepts any:
    ///
    /// ```
    /// # fn read(result: &mcp_model::CallToolResult) -> Result<(), Box<dyn std::error::Error>> {
    /// let value = result.structured::<serde_json::Value>().ok_or("no structured result")??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the structured content does not have the shape of `T`.
    pub fn structured<T: serde::de::DeserializeOwned>(&self) -> Option<serde_json::Result<T>> {
        self.structured_content.as_deref().map(|raw| serde_json::from_str(raw.get()))
    }
}

bare_params! {
    /// Parameters of `notifications/tools/list_changed`.
    ToolListChangedNotificationParams;
}

requests! {
    ListToolsRequestParams => methods::TOOLS_LIST, ListToolsResult;
    CallToolRequestParams => methods::TOOLS_CALL, CallToolResult;
}

notifications! {
    ToolListChangedNotificationParams => methods::NOTIFICATIONS_TOOLS_LIST_CHANGED;
}
