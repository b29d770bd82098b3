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
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments; malformed entries are in its [`List::rejected`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<List<PromptArgument>>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { Prompt { name, title, description, arguments, icons } sized { meta } }

impl Prompt {
    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// An argument of a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The argument's name, for programs.
    pub name: String,
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required; absent means no.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether it is required.
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
    /// Result of `prompts/list`: one page.
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
    /// The name of the prompt.
    pub name: String,
    /// The arguments, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
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

impl GetPromptRequestParams {
    /// Requests the prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: None, input_responses: None, request_state: None, meta: None }
    }

    /// Adds an argument.
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
    /// Shows neither the values of arguments nor input responses, which may be secret, nor the state.
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

/// Result of `prompts/get`. It is meant for a model, and untrusted.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// The description of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages; malformed ones are in its [`List::rejected`].
    pub messages: List<PromptMessage>,
    /// The `resultType`: how to read the result (2026-07-28 and later).
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
    /// The role.
    pub role: Role,
    /// The content.
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
