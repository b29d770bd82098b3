//! Completion of prompt arguments and of the variables of resource templates.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::requests;
use crate::{List, ProtocolVersion, ResultType, lenient, methods};

/// Parameters of `completion/complete`.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteRequestParams {
    /// The prompt or resource template that the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument to complete, as typed so far.
    pub argument: CompletionArgument,
    /// The arguments that have values already (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CompleteRequestParams { reference, argument, context } sized { meta } }

impl CompleteRequestParams {
    /// Requests completions of the argument `name`, typed so far as `value`.
    #[must_use]
    pub fn new(reference: CompletionReference, name: impl Into<String>, value: impl Into<String>) -> Self {
        let argument = CompletionArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None, meta: None }
    }

    /// Adds the value of another argument that is already known.
    #[must_use]
    pub fn with_resolved(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let context = self.context.get_or_insert_default();
        context.arguments.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        let titled = version >= ProtocolVersion::V2025_06_18;
        let reference = match self.reference {
            CompletionReference::Prompt(PromptReference { name, title }) => {
                CompletionReference::Prompt(PromptReference { name, title: title.filter(|_| titled) })
            }
            resource @ CompletionReference::Resource(_) => resource,
        };
        Self { reference, argument: self.argument, context: self.context.filter(|_| titled), meta: self.meta }
    }
}

/// What an argument belongs to: a prompt or a resource template.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource or a resource template.
    #[serde(rename = "ref/resource")]
    Resource(ResourceTemplateReference),
}

impl CompletionReference {
    /// The prompt of this name.
    #[must_use]
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference::new(name))
    }

    /// The resource or template with this URI.
    #[must_use]
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceTemplateReference { uri: uri.into() })
    }
}

/// Names a prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The prompt's name.
    pub name: String,
    /// The prompt's name for people (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl PromptReference {
    /// The prompt of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None }
    }
}

/// Names a resource or a resource template.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceTemplateReference {
    /// The URI or the URI template.
    pub uri: String,
}

/// An argument as typed so far. `Debug` leaves the value out: it may be a secret.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionArgument {
    /// The argument's name.
    pub name: String,
    /// What has been typed so far.
    pub value: String,
}

crate::confidential::debug! { CompletionArgument { name } sized { value } }

/// Context for a completion (2025-06-18 and later). `Debug` shows the names of the arguments only.
#[derive(Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionContext {
    /// Arguments that are already known, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl fmt::Debug for CompletionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.arguments.as_ref().map(|arguments| arguments.keys().collect::<Vec<_>>());
        f.debug_struct("CompletionContext").field("arguments", &names).finish()
    }
}

/// Result of `completion/complete`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The completion values.
    pub completion: Completion,
    /// The `resultType`: how to read the result (2026-07-28 and later).
    #[serde(default, deserialize_with = "lenient::result_type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CompleteResult { completion, result_type } sized { meta } }

/// Completion values for an argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The values. A server must not send more than [`Completion::MAX_VALUES`]; more are read nevertheless.
    pub values: List<String>,
    /// The total number of values, if known.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more values than these.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The maximum number of values that a server may send at once.
    pub const MAX_VALUES: usize = 100;

    /// The values a client should show: the first [`Completion::MAX_VALUES`].
    pub fn suggestions(&self) -> impl Iterator<Item = &str> {
        self.values.iter().take(Self::MAX_VALUES).map(String::as_str)
    }
}

requests! {
    CompleteRequestParams => methods::COMPLETION_COMPLETE, CompleteResult;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:CP-02
    #[test]
    fn more_values_than_allowed_are_read_and_cut_for_show() {
        let values: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        let json = serde_json::json!({ "completion": { "values": values, "total": -1, "hasMore": "yes" } });
        let result: CompleteResult = serde_json::from_value(json).unwrap();
        assert_eq!(result.completion.values.len(), 150);
        assert_eq!(result.completion.suggestions().count(), 100);
        assert_eq!(result.completion.total, Some(0));
        assert_eq!(result.completion.has_more, None);
    }

    /// protocol:CP-01: the context and the title came with 2025-06-18.
    /// protocol:CP-03
    #[test]
    fn older_revisions_get_neither_context_nor_title() {
        let reference =
            CompletionReference::Prompt(PromptReference { name: "p".into(), title: Some("P".into()) });
        let full = CompleteRequestParams::new(reference, "a", "v").with_resolved("b", "w");
        let check = |version: ProtocolVersion, expected: &str| {
            let params = full.clone().for_version(version);
            assert_eq!(serde_json::to_string(&params).unwrap(), expected, "{version}");
        };
        let old = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}"#;
        let new = concat!(
            r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":"v"},"#,
            r#""context":{"arguments":{"b":"w"}}}"#
        );
        check(ProtocolVersion::V2024_11_05, old);
        check(ProtocolVersion::V2025_03_26, old);
        check(ProtocolVersion::V2025_06_18, new);
        check(ProtocolVersion::V2025_11_25, new);
        check(ProtocolVersion::V2026_07_28, new);
    }
}
