//! Sampling: the server requests a message from the client's model.

mod message;
mod preferences;
mod tool_rules;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::message::{SamplingContent, SamplingMessage};
pub use self::preferences::{ModelHint, ModelPreferences};
pub use self::tool_rules::ToolMessageFault;
use crate::open_enum::open_enum;
use crate::request::other_requests;
use crate::version::NotInVersion;
use crate::{List, ProtocolVersion, Role, TaskMetadata, Tool, lenient, methods, number};

/// Parameters of `sampling/createMessage`. All of it is untrusted: show it to the user before it reaches a model.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageRequestParams {
    /// The messages of the conversation. Do not keep them between requests.
    pub messages: Vec<SamplingMessage>,
    /// The server's model preferences; the client chooses.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// A system prompt; the client may change or ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which context of MCP servers to include; the client may ignore it. Absent means none.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature; the client may ignore it.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum number of tokens to sample. The client must respect it and may sample fewer.
    #[serde(deserialize_with = "lenient::required_count")]
    pub max_tokens: u64,
    /// Stop sequences; the client may ignore them.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the model provider, as raw JSON; the client may ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// Tools the model may use, within this request (2025-11-25 and later); malformed ones are in its
    /// [`List::rejected`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<List<Tool>>,
    /// How the model may use them (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Requests a task (2025-11-25 only); a client that did not declare it ignores this.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CreateMessageRequestParams { messages, model_preferences, system_prompt, include_context, temperature, max_tokens, stop_sequences, tools, tool_choice, task } sized { meta, metadata } }

impl CreateMessageRequestParams {
    /// Whether the request uses tools, which requires that the client declared `sampling.tools`.
    #[must_use]
    pub fn uses_tools(&self) -> bool {
        self.tools.is_some() || self.tool_choice.is_some()
    }

    /// Checks the rules for tool messages: see [`ToolMessageFault`].
    ///
    /// # Errors
    /// The first violation; answer the request with "invalid params".
    pub fn check_tool_messages(&self) -> Result<(), ToolMessageFault> {
        tool_rules::check(&self.messages)
    }
}

/// How the model may use tools (2025-11-25 and later).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

open_enum! {
    /// How the model may use tools.
    ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// The model must not use tools.
        None = "none",
        /// The model must use a tool.
        Required = "required",
    }
}

open_enum! {
    /// Which context of MCP servers to include.
    IncludeContext {
        /// That of all servers.
        AllServers = "allServers",
        /// None.
        None = "none",
        /// That of the requesting server.
        ThisServer = "thisServer",
    }
}

open_enum! {
    /// Why the model stopped. The specification allows other values.
    StopReason {
        /// The end of its turn.
        EndTurn = "endTurn",
        /// The maximum number of tokens.
        MaxTokens = "maxTokens",
        /// A stop sequence.
        StopSequence = "stopSequence",
        /// It requests tool calls (2025-11-25 and later).
        ToolUse = "toolUse",
    }
}

/// Result of `sampling/createMessage`, sent by the client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The role: the assistant.
    pub role: Role,
    /// The content of the message.
    pub content: SamplingContent,
    /// The model that was used.
    pub model: String,
    /// Why it stopped, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CreateMessageResult { role, content, model, stop_reason } sized { meta } }

impl CreateMessageResult {
    /// A message of `model`.
    #[must_use]
    pub fn new(model: impl Into<String>, content: impl Into<SamplingContent>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
        }
    }

    /// Sets why the model stopped.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: StopReason) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    /// Keeps only what the revision defines. Under revisions without lists, a list of one block becomes that block.
    ///
    /// # Errors
    /// If the revision cannot represent the content: several blocks or tool blocks before 2025-11-25, audio before 2025-03-26, or
    /// a block of an unknown type.
    pub fn for_version(mut self, version: ProtocolVersion) -> Result<Self, NotInVersion> {
        self.content = self.content.for_version(version)?;
        Ok(self)
    }
}

other_requests! {
    CreateMessageRequestParams => methods::SAMPLING_CREATE_MESSAGE, CreateMessageResult;
}
