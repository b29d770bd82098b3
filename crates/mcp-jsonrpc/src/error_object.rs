//! The `error` member of a response.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::{ErrorCode, RawJson, RawRef, show::Capped};

/// An error that a peer reported, or that we report to it.
///
/// `message` and `data` of a received one are untrusted text. [`Display`](fmt::Display) caps the message and escapes
/// control characters; [`Debug`](fmt::Debug) shows only the length of the data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of fault.
    pub code: ErrorCode,
    /// One sentence for people.
    pub message: String,
    /// Anything more, raw. `null` counts as absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

impl ErrorObject {
    /// An error without data.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Debug for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "ErrorObject", self.code, &self.message, &self.data)
    }
}

/// `-32601 (method not found): no such method`.
impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, Capped(&self.message))
    }
}

impl std::error::Error for ErrorObject {}

/// An [`ErrorObject`] still inside the received text.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorObjectRef<'a> {
    /// What kind of fault.
    pub code: ErrorCode,
    /// One sentence for people; borrowed unless it has escapes.
    pub message: Cow<'a, str>,
    /// Anything more, raw. `null` counts as absent.
    pub data: Option<RawRef<'a>>,
}

impl ErrorObjectRef<'_> {
    /// Copies the parts.
    #[must_use]
    pub fn to_owned(&self) -> ErrorObject {
        ErrorObject {
            code: self.code,
            message: self.message.as_ref().into(),
            data: self.data.map(RawRef::to_owned),
        }
    }
}

impl fmt::Debug for ErrorObjectRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "ErrorObjectRef", self.code, &self.message, &self.data)
    }
}

fn debug(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    code: ErrorCode,
    message: &str,
    data: &dyn fmt::Debug,
) -> fmt::Result {
    f.debug_struct(name)
        .field("code", &code.get())
        .field("message", &format_args!("\"{}\"", Capped(message)))
        .field("data", data)
        .finish()
}
