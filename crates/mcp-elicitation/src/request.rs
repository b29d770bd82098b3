//! Questions from a server: `params` of `elicitation/create`, checked before anybody sees them.

use std::fmt;

use serde_json::{Map, Value, value::RawValue};

use crate::{
    AnswerError, ElicitAction, ElicitResult, FormSchema, RequestError, RequestRules, Revision, Rule, SafeUrl,
    Violation,
    json::{Kind, Members, is_string, kind},
    number,
    path::Path,
    reader::Reader,
    schema::FieldKind,
    text,
};

/// A question that is fit to be shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitRequest {
    /// Fill in a form.
    Form(FormRequest),
    /// Open a URL.
    Url(UrlRequest),
}

impl ElicitRequest {
    /// Reads `params` by the [default rules](RequestRules::new) of a revision.
    ///
    /// # Errors
    /// Everything that is wrong with the request; answer the server with the error's code and message.
    pub fn parse(params: &str, revision: Revision) -> Result<Self, RequestError> {
        Self::parse_with(params, &RequestRules::new(revision))
    }

    /// Reads `params` by the given rules.
    ///
    /// # Errors
    /// Everything that is wrong with the request; answer the server with the error's code and message.
    pub fn parse_with(params: &str, rules: &RequestRules) -> Result<Self, RequestError> {
        let limit = rules.limits.max_params_bytes;
        if params.len() > limit {
            let message = format!("params of {} bytes exceed the limit of {limit}", params.len());
            return Err(RequestError::new(vec![Violation::new("", Rule::Limit, message)]));
        }
        let raw: &RawValue = serde_json::from_str(params)
            .map_err(|_| RequestError::new(vec![Violation::new("", Rule::Json, "params are not JSON")]))?;
        let mut reader = Reader::new(rules);
        let request = Self::read(&mut reader, raw, &Path::ROOT);
        match request {
            Some(request) if reader.is_clean() => Ok(request),
            _ => Err(RequestError::new(reader.into_violations())),
        }
    }

    /// Reads a request; `None` means that the reader has noted at least one violation.
    pub(crate) fn read(reader: &mut Reader<'_>, raw: &RawValue, path: &Path<'_>) -> Option<Self> {
        let members = reader.object(raw, path)?;
        if read_mode(reader, &members, path)? == Mode::Form {
            let message = read_message(reader, &members, path, true);
            let schema_path = path.name("requestedSchema");
            let schema = match members.get("requestedSchema") {
                Some(raw) => FormSchema::read(reader, raw, &schema_path),
                None => {
                    reader.violate(&schema_path, Rule::Required, "a form must have a `requestedSchema`");
                    None
                }
            };
            Some(Self::Form(FormRequest { message: message?, schema: schema?, raw: raw.to_owned() }))
        } else {
            UrlRequest::read(reader, raw, &members, path).map(Self::Url)
        }
    }

    /// What the server says to the person, safe to show: see [`FormRequest::message`].
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Form(form) => form.message(),
            Self::Url(url) => url.message(),
        }
    }

    /// The `params` as the server wrote them, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        match self {
            Self::Form(form) => form.raw(),
            Self::Url(url) => url.raw(),
        }
    }

    /// Makes an answer fit to be sent: see [`FormRequest::check`] and [`UrlRequest::check`].
    ///
    /// # Errors
    /// All violations of an accepted form.
    pub fn check(&self, answer: ElicitResult) -> Result<ElicitResult, AnswerError> {
        match self {
            Self::Form(form) => form.check(answer),
            Self::Url(url) => Ok(url.check(answer)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Form,
    Url,
}

fn read_mode(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> Option<Mode> {
    let path = path.name("mode");
    let mode = match members.get("mode") {
        None => Mode::Form,
        Some(raw) if kind(raw) == Kind::Null => Mode::Form,
        Some(raw) if is_string(raw, "form") => Mode::Form,
        Some(raw) if is_string(raw, "url") => Mode::Url,
        Some(_) => {
            reader.violate(&path, Rule::Mode, "the mode must be \"form\" or \"url\"");
            return None;
        }
    };
    let revision = reader.rules.revision;
    if mode == Mode::Url && !revision.has_url_mode() {
        reader.violate(&path, Rule::Mode, format!("URL mode is not in revision {revision}"));
        return None;
    }
    let is_declared = match mode {
        Mode::Form => reader.rules.modes.form,
        Mode::Url => reader.rules.modes.url,
    };
    if !is_declared {
        reader.violate(&path, Rule::Mode, "the client did not declare this elicitation mode");
        return None;
    }
    Some(mode)
}

/// The message: a string with something in it. In a form control characters are shown escaped, for a form is
/// worth more than a stray escape code; a URL request is a security prompt, and they refuse it.
fn read_message(
    reader: &mut Reader<'_>,
    members: &Members<'_>,
    path: &Path<'_>,
    allow_controls: bool,
) -> Option<String> {
    let path = path.name("message");
    let Some(raw) = members.get("message") else {
        reader.violate(&path, Rule::Required, "a request must have a `message`");
        return None;
    };
    let message = reader.string(raw, &path, reader.rules.limits.max_message_chars)?;
    if message.trim().is_empty() {
        reader.violate(&path, Rule::Value, "the message is empty");
        return None;
    }
    if let Some(c) = text::first_control(&message).filter(|_| !allow_controls) {
        let message = format!("the message has the control character U+{:04X}", u32::from(c));
        reader.violate(&path, Rule::ControlCharacter, message);
        return None;
    }
    Some(text::sanitized(message))
}

/// A form to fill in.
#[derive(Clone)]
pub struct FormRequest {
    message: String,
    schema: FormSchema,
    raw: Box<RawValue>,
}

impl FormRequest {
    /// What the server says to the person, safe to show: control and bidirectional characters are escaped, line
    /// feeds and tabs stay. It may still lie; say beside it which server asks.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The fields.
    #[must_use]
    pub fn schema(&self) -> &FormSchema {
        &self.schema
    }

    /// The defaults of all fields that have one: what to prefill.
    #[must_use]
    pub fn defaults(&self) -> Map<String, Value> {
        self.schema.defaults()
    }

    /// The `params` as the server wrote them, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Makes an answer fit to be sent.
    ///
    /// Decline and cancel lose their content. An accepted answer always has an object as content: each field
    /// that is missing is filled with its default, in required and optional fields alike, and then everything
    /// is validated. In integer fields a number such as 5.0 is written 5 where that is exact (up to 2^53).
    ///
    /// # Errors
    /// All violations at once. Messages repeat no value.
    pub fn check(&self, answer: ElicitResult) -> Result<ElicitResult, AnswerError> {
        match answer.action {
            ElicitAction::Decline => return Ok(ElicitResult::decline()),
            ElicitAction::Cancel => return Ok(ElicitResult::cancel()),
            ElicitAction::Accept => {}
        }
        let mut content = answer.content.unwrap_or_default();
        for field in self.schema.fields() {
            match content.get_mut(field.name()) {
                Some(Value::Number(value)) => {
                    let is_integer = matches!(field.kind(), FieldKind::Number(kind) if kind.is_integer());
                    if let Some(literal) = number::as_integer_literal(value).filter(|_| is_integer) {
                        *value = literal;
                    }
                }
                Some(_) => {}
                None => {
                    if let Some(default) = field.default_value() {
                        content.insert(field.name().to_owned(), default);
                    }
                }
            }
        }
        let violations = self.schema.violations(&content);
        if violations.is_empty() {
            Ok(ElicitResult::accept(content))
        } else {
            Err(AnswerError::new(violations))
        }
    }
}

impl fmt::Debug for FormRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FormRequest")
            .field("message", &self.message)
            .field("fields", &self.schema.fields().len())
            .finish_non_exhaustive()
    }
}

/// A URL to open.
#[derive(Clone)]
pub struct UrlRequest {
    message: String,
    url: SafeUrl,
    elicitation_id: Option<String>,
    /// The host of the server, by which the URL was judged.
    server_host: Option<String>,
    raw: Box<RawValue>,
}

impl UrlRequest {
    fn read(reader: &mut Reader<'_>, raw: &RawValue, members: &Members<'_>, path: &Path<'_>) -> Option<Self> {
        let message = read_message(reader, members, path, false);
        let url = read_url(reader, members, path);
        let elicitation_id = if reader.rules.revision.has_elicitation_id() {
            Some(read_elicitation_id(reader, members, path)?)
        } else {
            None
        };
        let server_host = reader.rules.url.server_host().map(str::to_owned);
        Some(Self { message: message?, url: url?, elicitation_id, server_host, raw: raw.to_owned() })
    }

    /// Why the server wants the URL to be opened, safe to show. It holds no control characters.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The URL, judged.
    #[must_use]
    pub fn url(&self) -> &SafeUrl {
        &self.url
    }

    /// The `elicitationId`, opaque; present exactly in 2025-11-25.
    #[must_use]
    pub fn elicitation_id(&self) -> Option<&str> {
        self.elicitation_id.as_deref()
    }

    /// The `params` as the server wrote them, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    pub(crate) fn server_host(&self) -> Option<&str> {
        self.server_host.as_deref()
    }

    /// Makes an answer fit to be sent: it keeps the action and never has content.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "the content is taken so that nobody sends it")]
    pub fn check(&self, answer: ElicitResult) -> ElicitResult {
        ElicitResult { content: None, ..answer }
    }
}

impl fmt::Debug for UrlRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlRequest")
            .field("message", &self.message)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

fn read_url(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> Option<SafeUrl> {
    let path = path.name("url");
    let Some(raw) = members.get("url") else {
        reader.violate(&path, Rule::Required, "a URL request must have a `url`");
        return None;
    };
    // The policy has a limit in bytes, which decides first.
    let given = reader.string(raw, &path, usize::MAX)?;
    match SafeUrl::parse(&given, &reader.rules.url) {
        Ok(url) => Some(url),
        Err(refusal) => {
            reader.violate(&path, Rule::Url, refusal.to_string());
            None
        }
    }
}

fn read_elicitation_id(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> Option<String> {
    let path = path.name("elicitationId");
    let Some(raw) = members.get("elicitationId") else {
        reader.violate(&path, Rule::Required, "a URL request must have an `elicitationId`");
        return None;
    };
    let id = reader.string(raw, &path, reader.rules.limits.max_elicitation_id_chars)?;
    if id.trim().is_empty() {
        reader.violate(&path, Rule::Value, "the elicitation id is empty");
        return None;
    }
    if id.chars().any(char::is_control) {
        reader.violate(&path, Rule::ControlCharacter, "the elicitation id has a control character");
        return None;
    }
    Some(id)
}
