//! The `error` member of a response.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::{ErrorCode, RawJson, RawRef, Untrusted};

/// An error object, received from a peer or to be sent to it.
///
/// `message` and `data` of a received one are untrusted. [`Display`](fmt::Display) truncates the message and escapes
/// control characters; [`Debug`](fmt::Debug) shows only the length of the data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The error code.
    pub code: ErrorCode,
    /// A short description.
    pub message: String,
    /// Additional data, as raw JSON. `null` counts as absent.
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

    /// Parses an error object, as `serde_json::from_str` does, with code that is compiled in this crate.
    ///
    /// # Errors
    /// If the text is not JSON, or not an error object.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
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
        write!(f, "{}: {}", self.code, Untrusted::capped(&self.message))
    }
}

impl std::error::Error for ErrorObject {}

/// A borrowed [`ErrorObject`]: within the received text, or from an owned one.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErrorObjectRef<'a> {
    /// The error code.
    pub code: ErrorCode,
    /// A short description; borrowed unless it has escapes.
    pub message: Cow<'a, str>,
    /// Additional data, as raw JSON. `null` counts as absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<RawRef<'a>>,
}

impl<'a> From<&'a ErrorObject> for ErrorObjectRef<'a> {
    fn from(error: &'a ErrorObject) -> Self {
        let data = error.data.as_ref().map(RawJson::as_raw_ref);
        Self { code: error.code, message: Cow::Borrowed(&error.message), data }
    }
}

impl<'a> From<&'a ErrorObjectRef<'_>> for ErrorObjectRef<'a> {
    fn from(error: &'a ErrorObjectRef<'_>) -> Self {
        Self { code: error.code, message: Cow::Borrowed(&error.message), data: error.data }
    }
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
        .field("message", &format_args!("{}", Untrusted::capped(message).quoted()))
        .field("data", data)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_errors_are_capped_and_hide_their_data() {
        let data = RawJson::from_text("{\"token\":\"s3cret\"}".to_owned()).unwrap();
        let error = ErrorObject::new(ErrorCode::new(-5), "a\n\"b\"").with_data(data);
        assert_eq!(error.to_string(), "-5: a\\n\"b\"");
        assert_eq!(
            format!("{error:?}"),
            r#"ErrorObject { code: -5, message: "a\n\"b\"", data: Some(RawJson(18 bytes)) }"#
        );
        let data = error.data.as_ref().map(RawJson::as_raw_ref);
        let borrowed = ErrorObjectRef { code: error.code, message: error.message.as_str().into(), data };
        assert_eq!(
            format!("{borrowed:?}"),
            r#"ErrorObjectRef { code: -5, message: "a\n\"b\"", data: Some(RawRef(18 bytes)) }"#
        );
        let long = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "x".repeat(100_000));
        assert!(long.to_string().len() < 300);
        assert!(format!("{long:?}").len() < 300);
    }

    // protocol:J-09
    #[test]
    fn serde_keeps_code_message_and_data() {
        let text = r#"{"code":-32042,"message":"visit","data":{"n":1.50}}"#;
        let error: ErrorObject = serde_json::from_str(text).unwrap();
        assert_eq!(error.code, ErrorCode::URL_ELICITATION_REQUIRED);
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        let bare: ErrorObject =
            serde_json::from_str(r#"{"code":1,"message":"","data":null,"more":2}"#).unwrap();
        assert_eq!(bare, ErrorObject::new(ErrorCode::new(1), ""));
        assert!(serde_json::from_str::<ErrorObject>(r#"{"code":"1","message":""}"#).is_err());
        assert!(serde_json::from_str::<ErrorObject>(r#"{"code":1.5,"message":""}"#).is_err());
    }
}
