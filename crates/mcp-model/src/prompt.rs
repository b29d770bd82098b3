//! Prompts: message templates that a server offers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::{bare_params, notifications, paginated_params, paginated_results, requests};
use crate::{ContentBlock, Icon, InputResponses, List, ProtocolVersion, ResultType, Role, lenient, methods};

/// A prompt that the server offers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// The prompt's name, for programs.
    pub name: String,
    /// A name to show to people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for. Text of the peer: untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What may be filled in; malformed entries are in its [`List::rejected`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<List<PromptArgument>>,
    /// Icons to show (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { Prompt { name, title, description, arguments, icons } sized { meta } }

impl Prompt {
    /// What to show to people: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A place in a prompt to fill in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The argument's name, for programs.
    pub name: String,
    /// A name to show to people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is. Text of the peer: untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be given; absent means no.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// What to show to people: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it must be given.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required == Some(true)
    }
}

paginated_params! {
    /// Parameters of `prompts/list`.
    ListPromptsRequestParams;
}

paginated_results! {
    /// Answer to `prompts/list`: one page.
    ListPromptsResult {
        /// The prompts of this page; malformed ones are in its [`List::rejected`].
        prompts: Prompt
    }
}

/// Parameters of `prompts/get`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptRequestParams {
    /// The prompt.
    pub name: String,
    /// What is filled in, by argument name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Answers to what the server asked for (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The server's state of an `input_required` round, unchanged (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl GetPromptRequestParams {
    /// Gets the prompt with nothing filled in.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: None, input_responses: None, request_state: None, meta: None }
    }

    /// Fills in one argument.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        Self {
            name: self.name,
            arguments: self.arguments,
            input_responses: self.input_responses.filter(|_| version.is_modern()),
            request_state: self.request_state.filter(|_| version.is_modern()),
            meta: self.meta,
        }
    }
}

impl fmt::Debug for GetPromptRequestParams {
    /// Shows neither the values of arguments nor answers, which may hold secrets, nor the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.arguments.as_ref().map(|arguments| arguments.keys().collect::<Vec<_>>());
        f.debug_struct("GetPromptRequestParams")
            .field("name", &self.name)
            .field("arguments", &names)
            .field("input_responses", &self.input_responses.as_ref().map(BTreeMap::len))
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .finish_non_exhaustive()
    }
}

/// Answer to `prompts/get`. What it holds goes to a model: untrusted.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages; malformed ones are in its [`List::rejected`].
    pub messages: List<PromptMessage>,
    /// How to read the result (2026-07-28 and later).
    #[serde(default, deserialize_with = "lenient::result_type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { GetPromptResult { description, messages, result_type } sized { meta } }

/// A message of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: ContentBlock,
}

bare_params! {
    /// Parameters of `notifications/prompts/list_changed`.
    PromptListChangedNotificationParams;
}

requests! {
    ListPromptsRequestParams => methods::PROMPTS_LIST, ListPromptsResult;
    GetPromptRequestParams => methods::PROMPTS_GET, GetPromptResult;
}

notifications! {
    PromptListChangedNotificationParams => methods::NOTIFICATIONS_PROMPTS_LIST_CHANGED;
}
