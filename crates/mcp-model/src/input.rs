//! Multi round-trip requests (2026-07-28 and later): what a server asks for in the middle of a request.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ResultType;

/// What the server asks for, by key: [`InputRequest`] objects as raw JSON, because the elicitation among them has
/// types of its own.
pub type InputRequests = BTreeMap<String, Box<RawValue>>;

/// The answers, by the key of the question: bare results as raw JSON.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// One entry of [`InputRequests`]: a request without id, to be read as the parameters of its method. Read already it is the enumeration of
/// the same name in `mcp-proto` (and at the root of `mcp-client`).
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputRequest {
    /// One of `elicitation/create`, `sampling/createMessage`, `roots/list`; anything else is a fault of the server.
    pub method: String,
    /// The parameters, as raw JSON; `roots/list` may come without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

impl InputRequest {
    /// A request of this method; `None` for a `roots/list` without parameters.
    #[must_use]
    pub fn new(method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self { method: method.into(), params }
    }
}

impl fmt::Debug for InputRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params_bytes = self.params.as_ref().map(|params| params.get().len());
        f.debug_struct("InputRequest")
            .field("method", &self.method)
            .field("params_bytes", &params_bytes)
            .finish()
    }
}

/// The answer to a request that the server cannot finish without more input.
///
/// At least one of the two members must be there; [`InputRequiredResult::is_valid`] tells.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// How to read the result: [`ResultType::InputRequired`].
    #[serde(
        default,
        deserialize_with = "crate::lenient::result_type",
        skip_serializing_if = "Option::is_none"
    )]
    pub result_type: Option<ResultType>,
    /// What the server asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// To be sent back unchanged with the retry, and with nothing else. Its content is the server's business.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl InputRequiredResult {
    /// Whether there is anything to go on with: a question or a state.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.request_state.is_some()
            || self.input_requests.as_ref().is_some_and(|requests| !requests.is_empty())
    }
}

impl fmt::Debug for InputRequiredResult {
    /// Shows the keys of the questions, not their text, and not the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequiredResult")
            .field(
                "input_requests",
                &self.input_requests.as_ref().map(|requests| requests.keys().collect::<Vec<_>>()),
            )
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .finish_non_exhaustive()
    }
}
