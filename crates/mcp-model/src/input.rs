//! Multi round-trip requests (2026-07-28 and later): input that a server requires to finish a request.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ResultType;

/// `inputRequests`: [`InputRequest`] objects by key, as raw JSON, because the types of elicitation are in another crate.
pub type InputRequests = BTreeMap<String, Box<RawValue>>;

/// `inputResponses`: the results, by the key of the input request, as raw JSON.
pub type InputResponses = BTreeMap<String, Box<RawValue>>;

/// One entry of [`InputRequests`]: a method and its parameters, unparsed. `mcp_proto::InputRequest` (also at the root of `mcp-client`) is
/// the parsed form.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InputRequest {
    /// One of `elicitation/create`, `sampling/createMessage`, `roots/list`; any other violates the protocol.
    pub method: String,
    /// The parameters, as raw JSON; `roots/list` may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

impl InputRequest {
    /// An input request with this method; `params` may be `None` for `roots/list`.
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

/// The result of a request that the server cannot finish without more input (`resultType` `input_required`).
///
/// It must have input requests or a request state; see [`InputRequiredResult::is_valid`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The `resultType`: [`ResultType::InputRequired`].
    #[serde(
        default,
        deserialize_with = "crate::lenient::result_type",
        skip_serializing_if = "Option::is_none"
    )]
    pub result_type: Option<ResultType>,
    /// The input requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The `requestState`: opaque, sent back unchanged with the retry of this request and with no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl InputRequiredResult {
    /// Whether there are input requests or a request state.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.request_state.is_some()
            || self.input_requests.as_ref().is_some_and(|requests| !requests.is_empty())
    }
}

impl fmt::Debug for InputRequiredResult {
    /// Shows the keys of the input requests, but neither their content nor the state.
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
