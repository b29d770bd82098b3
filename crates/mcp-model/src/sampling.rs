//! Sampling: the server asks the client's model for a message.

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

/// Parameters of `sampling/createMessage`. All of it is the server's word: show it to a person before it reaches a
/// model.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageRequestParams {
    /// The conversation; not to be kept between requests.
    pub messages: Vec<SamplingMessage>,
    /// Which model the server would like; the choice is the client's.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// A system prompt; the client may change or ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What to add of the context of MCP servers; the client may ignore it. Absent means none.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature; the client may ignore it.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens to sample. The client must respect it and may sample fewer.
    #[serde(deserialize_with = "lenient::required_count")]
    pub max_tokens: u64,
    /// Where to stop; the client may ignore it.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// For the provider of the model, as raw JSON; the client may ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// Tools the model may use, within this request (2025-11-25 and later); malformed ones are in its
    /// [`List::rejected`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<List<Tool>>,
    /// How the model may use them (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Makes the request a task (2025-11-25 only); to be ignored by a client that did not declare it.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CreateMessageRequestParams { messages, model_preferences, system_prompt, include_context, temperature, max_tokens, stop_sequences, tools, tool_choice, task } sized { meta, metadata } }

impl CreateMessageRequestParams {
    /// Whether the request uses tools, which it may only do if the client declared `sampling.tools`.
    #[must_use]
    pub fn uses_tools(&self) -> bool {
        self.tools.is_some() || self.tool_choice.is_some()
    }

    /// Checks the rules for tool messages: see [`ToolMessageFault`].
    ///
    /// # Errors
    /// The first breach, to be answered with "invalid params" where there is a channel for an answer.
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
        /// As it likes.
        Auto = "auto",
        /// Not at all.
        None = "none",
        /// It must use one.
        Required = "required",
    }
}

open_enum! {
    /// What to add of the context of MCP servers.
    IncludeContext {
        /// Of all servers.
        AllServers = "allServers",
        /// Nothing.
        None = "none",
        /// Of the server that asks.
        ThisServer = "thisServer",
    }
}

open_enum! {
    /// Why the model stopped. The set is open by the specification.
    StopReason {
        /// It was done.
        EndTurn = "endTurn",
        /// It reached the limit of tokens.
        MaxTokens = "maxTokens",
        /// It met a stop sequence.
        StopSequence = "stopSequence",
        /// It asks for tool calls (2025-11-25 and later).
        ToolUse = "toolUse",
    }
}

/// Answer to `sampling/createMessage`, which the client gives.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Who speaks: the assistant.
    pub role: Role,
    /// What the model said.
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
    /// What `model` said.
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

    /// Says why the model stopped.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: StopReason) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    /// Keeps only what the revision defines. A list of one block becomes that block where lists do not exist.
    ///
    /// # Errors
    /// When the content cannot be said under the revision: several blocks, tool blocks before 2025-11-25, sounds
    /// before 2025-03-26, or a block of an unknown kind.
    pub fn for_version(mut self, version: ProtocolVersion) -> Result<Self, NotInVersion> {
        self.content = self.content.for_version(version)?;
        Ok(self)
    }
}

other_requests! {
    CreateMessageRequestParams => methods::SAMPLING_CREATE_MESSAGE, CreateMessageResult;
}
