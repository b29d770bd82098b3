//! Unparsed JSON text.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Untrusted, members};

/// Borrowed, unparsed JSON text: the params, result or error data of a message, within the received text.
///
/// [`decode`](crate::decode) guarantees that it is one value with closed strings and matching brackets, within the depth limit.
/// Everything else (numbers, literals, commas, escapes, control characters) is checked by [`parse`](Self::parse) or
/// [`validate`](Self::validate).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawRef<'a>(&'a str);

impl<'a> RawRef<'a> {
    /// Takes over a value that the scanner bracketed.
    pub(crate) fn bracketed(text: &'a str) -> Self {
        Self(text)
    }

    /// The text, without surrounding white space.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Parses the text as a type, which may borrow from the received message.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or does not have the shape of the type.
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, ParseError> {
        serde_json::from_str(self.0).map_err(|error| ParseError::new(&error))
    }

    /// Parses a string, as `parse::<String>` does, with code that is compiled in this crate.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or not a string of Unicode text.
    pub fn string(self) -> Result<String, ParseError> {
        self.parse()
    }

    /// The items of an array, each still unparsed.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or not an array.
    pub fn items(self) -> Result<Vec<Self>, ParseError> {
        let items: Vec<&RawValue> = self.parse()?;
        Ok(items.into_iter().map(Self::from).collect())
    }

    /// The text as a `RawValue` of `serde_json`.
    ///
    /// # Errors
    /// [`ParseError`] when the text is not valid JSON.
    pub fn to_raw_value(self) -> Result<&'a RawValue, ParseError> {
        self.parse()
    }

    /// As [`parse`](Self::parse), with a function that reads the type. Use it to share compiled code for large types.
    ///
    /// # Errors
    /// [`ParseError`] with the error of the function.
    pub fn parse_with<T>(self, read: fn(&'a str) -> serde_json::Result<T>) -> Result<T, ParseError> {
        read(self.0).map_err(|error| ParseError::new(&error))
    }

    /// The members of an object with these names, in this order. Other members are ignored; `null` counts as absent.
    ///
    /// ```
    /// use mcp_jsonrpc::RawJson;
    ///
    /// let params = RawJson::from_text(r#"{"name":"add","arguments":{"a":[1]},"more":7}"#.to_owned())?;
    /// let [name, uri, arguments] = params.as_raw_ref().members(["name", "uri", "arguments"])?;
    /// assert_eq!(name.unwrap().parse::<String>()?, "add");
    /// assert!(uri.is_none());
    /// assert_eq!(arguments.unwrap().as_str(), r#"{"a":[1]}"#);
    /// # Ok::<(), mcp_jsonrpc::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or not an object, or has one of these members twice.
    pub fn members<const N: usize>(self, names: [&str; N]) -> Result<[Option<Self>; N], ParseError> {
        let mut found = [None; N];
        members::read(self.0, &names, &mut found).map_err(|error| ParseError::new(&error))?;
        Ok(found.map(|text| text.filter(|text| *text != "null").map(Self)))
    }

    /// Whether the object has a member with this name, even if it is `null`.
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or not an object.
    pub fn has_member(self, name: &str) -> Result<bool, ParseError> {
        members::has(self.0, name).map_err(|error| ParseError::new(&error))
    }

    /// The object with each of these members set to its value, or removed if that is `None`. Other members are unchanged and keep
    /// their order.
    ///
    /// ```
    /// use mcp_jsonrpc::RawJson;
    ///
    /// let [object, seven] = [r#"{"a":1,"b":2,"c":3}"#, "7"].map(|text| RawJson::from_text(text.to_owned()));
    /// let changed = object?.as_raw_ref().with_members(&[("a", Some(&seven?)), ("b", None)])?;
    /// assert_eq!(changed.as_str(), r#"{"c":3,"a":7}"#);
    /// # Ok::<(), mcp_jsonrpc::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParseError`] if the text is not valid JSON or not an object.
    pub fn with_members(self, changes: &[(&str, Option<&RawJson>)]) -> Result<RawJson, ParseError> {
        RawJson::from_text(members::with(self.0, changes).map_err(|error| ParseError::new(&error))?)
    }

    /// Checks that the text is valid JSON. No allocation, no recursion.
    ///
    /// # Errors
    /// [`ParseError`] with the position of the first error.
    pub fn validate(self) -> Result<(), ParseError> {
        serde_json::from_str::<&RawValue>(self.0).map(drop).map_err(|error| ParseError::new(&error))
    }

    /// Copies the text (one allocation).
    #[must_use]
    pub fn to_owned(self) -> RawJson {
        RawJson(Repr::Copied(self.0.into()))
    }

    /// Shares the message that the text is part of, without copying it. A text that is not part of it is copied.
    ///
    /// Meant for large results: the whole message stays in memory as long as the returned value.
    #[must_use]
    pub fn to_shared(self, message: &Arc<String>) -> RawJson {
        let start = (self.0.as_ptr() as usize).checked_sub(message.as_ptr() as usize);
        let shared = start.and_then(|start| {
            let end = start.checked_add(self.0.len())?;
            // The range is looked up again, so that a wrong guess about addresses could never lend other bytes.
            (message.get(start..end)? == self.0).then_some((start, end))
        });
        match shared {
            Some((start, end)) => RawJson(Repr::Shared { message: Arc::clone(message), start, end }),
            None => self.to_owned(),
        }
    }
}

impl<'a> From<&'a RawValue> for RawRef<'a> {
    fn from(value: &'a RawValue) -> Self {
        Self(value.get())
    }
}

/// Shows the length only: params and results may contain secrets.
impl fmt::Debug for RawRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawRef({} bytes)", self.0.len())
    }
}

/// Owned JSON text, cheap to clone.
///
/// Received text is only as valid as a `mcp_jsonrpc::RawRef`; that of [`from_text`](Self::from_text) and
/// [`from_serialize`](Self::from_serialize) is valid JSON. Serializing writes the text unchanged; received text is validated first, so
/// that invalid text is never forwarded.
#[derive(Clone)]
pub struct RawJson(Repr);

#[derive(Clone)]
enum Repr {
    /// Valid throughout.
    Valid(Arc<RawValue>),
    /// Bracketed by the scanner.
    Copied(Arc<str>),
    /// Bracketed by the scanner, inside a whole message.
    Shared { message: Arc<String>, start: usize, end: usize },
}

impl RawJson {
    /// Validates a JSON text. Surrounding white space is removed.
    ///
    /// # Errors
    /// `mcp_jsonrpc::ParseError` with the position of the first error.
    pub fn from_text(text: String) -> Result<Self, ParseError> {
        RawValue::from_string(text).map(Self::from_raw_value).map_err(|error| ParseError::new(&error))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// `mcp_jsonrpc::ParseError` if the value cannot be represented in JSON (such as a map whose keys are not strings).
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, ParseError> {
        serde_json::value::to_raw_value(value)
            .map(Self::from_raw_value)
            .map_err(|error| ParseError::new(&error))
    }

    fn from_raw_value(value: Box<RawValue>) -> Self {
        Self(Repr::Valid(Arc::from(value)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Valid(value) => value.get(),
            Repr::Copied(text) => text,
            // Invariant: `to_shared` found exactly this range in this message, and nothing changes either.
            Repr::Shared { message, start, end } => message.get(*start..*end).unwrap_or("null"),
        }
    }

    /// Borrows it.
    #[must_use]
    pub fn as_raw_ref(&self) -> RawRef<'_> {
        RawRef(self.as_str())
    }

    /// Parses the text as a type that owns its parts.
    ///
    /// # Errors
    /// `mcp_jsonrpc::ParseError` if the text is not valid JSON or does not have the shape of the type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ParseError> {
        self.as_raw_ref().parse()
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        Self::from_raw_value(value)
    }
}

/// Compares the texts byte by byte.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

/// Shows the length only: params and results may contain secrets.
impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.as_str().len())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Valid(value) => value.serialize(serializer),
            Repr::Copied(_) | Repr::Shared { .. } => self.as_raw_ref().serialize(serializer),
        }
    }
}

/// What the errors of serializing received text begin with. Text is all that gets through a serializer.
pub(crate) const BROKEN_JSON: &str = "received JSON is broken: ";

impl Serialize for RawRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let checked: &RawValue = serde_json::from_str(self.0).map_err(|error| {
            let error = ParseError::new(&error);
            serde::ser::Error::custom(format_args!("{BROKEN_JSON}{error}"))
        })?;
        checked.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from_raw_value)
    }
}

/// The text is not valid JSON, or does not have the shape of the type.
///
/// The message may quote some of the text, truncated and with control characters escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: Box<str>,
    line: usize,
    column: usize,
    syntax: bool,
}

impl ParseError {
    fn new(error: &serde_json::Error) -> Self {
        let mut message = error.to_string();
        // The place is kept apart; serde_json repeats it at the end of its text.
        let place = format!(" at line {} column {}", error.line(), error.column());
        if message.ends_with(&place) {
            message.truncate(message.len() - place.len());
        }
        Self {
            message: Untrusted::capped(&message).to_string().into(),
            line: error.line(),
            column: error.column(),
            syntax: !error.is_data(),
        }
    }

    /// Whether the text is not valid JSON, as opposed to valid JSON of another shape.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        self.syntax
    }

    /// The line of the error, from 1; 0 if there is no position (a value that could not be serialized).
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column of the error in bytes, from 1; 0 if unknown.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.line > 0 { write!(f, " at line {} column {}", self.line, self.column) } else { Ok(()) }
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn received(text: &str) -> RawJson {
        RawRef::bracketed(text).to_owned()
    }

    #[test]
    fn debug_shows_the_length_only() {
        let raw = received(r#"{"token":"s3cret"}"#);
        assert_eq!(format!("{raw:?} {:?}", raw.as_raw_ref()), "RawJson(18 bytes) RawRef(18 bytes)");
    }

    #[test]
    fn raw_json_is_equal_where_the_text_is() {
        assert_eq!(received("[1.0]"), RawJson::from_text(" [1.0] ".to_owned()).unwrap());
        assert_ne!(received("[1.0]"), received("[1]"));
    }

    // field:FR-109
    #[test]
    fn numbers_keep_every_digit() {
        let text = r#"{"id":1234567890123456789,"u":18446744073709551615,"n":-9007199254740993,"huge":1e400,
            "long":1234567890123456789012345678901234567890}"#;
        let raw = received(text);
        assert_eq!(raw.as_str(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        raw.as_raw_ref().validate().unwrap();
        let holder: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(holder, raw);
    }

    // field:FR-112
    #[test]
    fn what_is_only_bracketed_fails_when_parsed_and_is_not_passed_on() {
        for text in
            ["{\"a\":NaN}", "[1,]", "{\"a\"}", "[\"\\x\"]", "[\"a\u{1}\"]", "[01]", "{1:2}", "[\"\\u12\"]"]
        {
            let raw = received(text);
            assert!(raw.as_raw_ref().validate().unwrap_err().is_syntax(), "{text}");
            assert!(raw.parse::<Value>().unwrap_err().is_syntax(), "{text}");
            assert!(serde_json::to_string(&raw).is_err(), "{text}");
        }
        // A lone surrogate is no fault of the syntax; it shows where the string is decoded.
        let lone = received(r#"["\ud800"]"#);
        assert!(lone.as_raw_ref().validate().is_ok());
        assert!(lone.parse::<Vec<String>>().is_err());
        assert_eq!(received(r#"["\u0000"]"#).parse::<Vec<String>>().unwrap(), ["\0"]);
    }

    #[test]
    fn parse_errors_name_the_place_and_cap_what_they_quote() {
        let error =
            received(r#"{"count":"many"}"#).parse::<std::collections::HashMap<String, u8>>().unwrap_err();
        assert!(!error.is_syntax());
        assert_eq!((error.line(), error.column()), (1, 15));
        assert_eq!(error.to_string(), r#"invalid type: string "many", expected u8 at line 1 column 15"#);
        let long = received(&format!("\"{}\"", "x".repeat(100_000))).parse::<u8>().unwrap_err();
        assert!(long.to_string().len() < 300);
        let control = received("\"\\u001b[31m\"").parse::<u8>().unwrap_err();
        assert!(!control.to_string().contains('\u{1b}'));
    }

    #[test]
    fn text_and_values_become_valid_raw_json() {
        let raw = RawJson::from_text(" {\"a\": [1, 2]} ".to_owned()).unwrap();
        assert_eq!(raw.as_str(), "{\"a\": [1, 2]}");
        assert!(RawJson::from_text("{\"a\"".to_owned()).unwrap_err().is_syntax());
        let raw = RawJson::from_serialize(&json!({"a": [1, 2]})).unwrap();
        assert_eq!(raw.as_str(), "{\"a\":[1,2]}");
        assert_eq!(raw.parse::<Value>().unwrap(), json!({"a": [1, 2]}));
        let error = RawJson::from_serialize(&std::collections::HashMap::from([((), 1)])).unwrap_err();
        assert_eq!((error.line(), error.to_string().as_str()), (0, "key must be a string"));
    }

    #[test]
    fn a_shared_piece_is_the_memory_of_its_message() {
        let message = Arc::new(String::from(r#"{"result":{"a":"é"},"other":{"a":"é"}}"#));
        let piece = RawRef::bracketed(message.get(10..20).unwrap());
        assert_eq!(piece.as_str(), r#"{"a":"é"}"#);
        let shared = piece.to_shared(&message);
        assert_eq!(shared.as_str().as_ptr(), piece.as_str().as_ptr());
        assert_eq!(shared.clone(), piece.to_owned());
        assert_eq!(Arc::strong_count(&message), 2);

        let elsewhere = String::from(piece.as_str());
        let copied = RawRef::bracketed(&elsewhere).to_shared(&message);
        assert_eq!(copied, shared);
        assert_ne!(copied.as_str().as_ptr(), elsewhere.as_ptr());
        assert_eq!(Arc::strong_count(&message), 2);
    }
}
