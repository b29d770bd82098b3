//! The header fields of every request, as pure functions of what is asked.
//!
//! | request | content type | accept | session id | version | event id | routing |
//! |---|---|---|---|---|---|---|
//! | POST legacy `initialize` | json | json, event stream | – | – | – | – |
//! | POST legacy, anything else | json | json, event stream | if open | given | – | – |
//! | POST modern | json | json, event stream | – | given | – | given |
//! | GET stream | – | event stream | if open | given | – | – |
//! | GET resume | – | event stream | if open | given | if one was seen | – |
//! | DELETE session | – | – | the deleted one | given | – | – |
//!
//! All of them carry `Host`, `Accept-Encoding: identity` and the application's own fields.

use std::fmt;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::encoding::{header_text, is_token};
use super::session::SessionId;
use super::target::Target;
use crate::http::post::RequestHead;

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PARAM_PREFIX: &str = "mcp-param-";
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENT_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("mcp-transport/", env!("CARGO_PKG_VERSION")));

/// Why a header cannot be sent. Names the field, never its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// The name is no HTTP token.
    Name { name: String },
    /// The transport itself writes this field.
    Protected { name: HeaderName },
    /// The value holds bytes that no header may hold.
    Value { name: HeaderName },
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => write!(f, "{name:?} is no header name"),
            Self::Protected { name } => write!(f, "the header {name} is written by the transport"),
            Self::Value { name } => write!(f, "the value of the header {name} cannot be sent"),
        }
    }
}

/// The fields that the application adds to every request of one server.
#[derive(Clone, Default)]
pub(crate) struct ApplicationHeaders(HeaderMap);

impl ApplicationHeaders {
    /// Adds or replaces a field, names compared without case.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        let name = name.parse::<HeaderName>().map_err(|_| BadHeader::Name { name: name.to_owned() })?;
        if is_protected(&name) {
            return Err(BadHeader::Protected { name });
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| BadHeader::Value { name: name.clone() })?;
        value.set_sensitive(true);
        self.0.insert(name, value);
        Ok(())
    }
}

impl fmt::Debug for ApplicationHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// Fields that frame the message, route it or name the session: an application that sets them would break the protocol
/// by accident.
fn is_protected(name: &HeaderName) -> bool {
    const PROTECTED: [HeaderName; 19] = [
        ACCEPT,
        ACCEPT_ENCODING,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        EXPECT,
        HOST,
        KEEP_ALIVE,
        LAST_EVENT_ID,
        METHOD,
        NAME,
        PROTOCOL_VERSION,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        SESSION_ID,
        TE,
        TRAILER,
        UPGRADE,
    ];
    PROTECTED.contains(name) || name == TRANSFER_ENCODING || name.as_str().starts_with(PARAM_PREFIX)
}

/// How many fields a POST has besides those that do not change, as a rule: version, session, method, name, host, and a few of the
/// tool's parameters.
const ADDED_TO_POST: usize = 8;

/// The fields that do not change between the POSTs of one server, made once. Those of a GET and a DELETE, of which there are few, are
/// made of them each time, as each client keeps what is here for as long as it is connected.
#[derive(Clone)]
pub(crate) struct Template(HeaderMap);

impl Template {
    pub(crate) fn new(application: &ApplicationHeaders) -> Self {
        let mut post = application.0.clone();
        post.insert(ACCEPT_ENCODING, IDENTITY);
        post.entry(USER_AGENT).or_insert(AGENT);
        post.insert(ACCEPT, JSON_OR_EVENT_STREAM);
        post.insert(CONTENT_TYPE, JSON);
        // What is copied for a request then has room for all that it adds: a table that grows is made anew.
        post.reserve(ADDED_TO_POST);
        // Copied here as well: a copy has the table, and not the memory for fields that are never added to this one.
        Self(post.clone())
    }

    /// The legacy `initialize`: nothing that belongs to a session yet.
    pub(crate) fn initialize(&self) -> Fields<'_> {
        Fields::of(&self.0)
    }

    /// Any other POST. A modern one never carries a session id.
    pub(crate) fn post(
        &self,
        head: &RequestHead,
        session: Option<SessionId>,
    ) -> Result<Fields<'_>, BadHeader> {
        let mut fields = Fields::of(&self.0);
        fields.version = version(head)?;
        let Some(method) = &head.method else {
            fields.session = session;
            return Ok(fields);
        };
        fields.set(METHOD, text_value(&METHOD, method)?);
        if let Some(name) = &head.name {
            fields.set(NAME, text_value(&NAME, name)?);
        }
        for (suffix, text) in &head.params {
            let name = param_name(suffix)?;
            let value = text_value(&name, text)?;
            fields.set(name, value);
        }
        Ok(fields)
    }

    /// GET, to listen or to resume.
    pub(crate) fn get(
        &self,
        head: &RequestHead,
        session: Option<SessionId>,
        last_event_id: &str,
    ) -> Result<Fields<'_>, BadHeader> {
        let mut fields =
            Fields { without: &[CONTENT_TYPE], version: version(head)?, session, ..Fields::of(&self.0) };
        fields.set(ACCEPT, EVENT_STREAM);
        if !last_event_id.is_empty() {
            // The id goes out as the bytes it came as, UTF-8 included.
            let value = HeaderValue::from_bytes(last_event_id.as_bytes());
            fields.set(LAST_EVENT_ID, value.map_err(|_| BadHeader::Value { name: LAST_EVENT_ID })?);
        }
        Ok(fields)
    }

    pub(crate) fn delete(&self, head: &RequestHead, session: SessionId) -> Result<Fields<'_>, BadHeader> {
        let without = &[ACCEPT, CONTENT_TYPE];
        Ok(Fields { without, version: version(head)?, session: Some(session), ..Fields::of(&self.0) })
    }
}

/// The fields of one request: checked once, written out each time that it is sent.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    template: &'a HeaderMap,
    /// Fields of the template that it does not have.
    without: &'static [HeaderName],
    version: Option<HeaderValue>,
    session: Option<SessionId>,
    /// What else there is; of two fields of one name the later one counts.
    added: Vec<(HeaderName, HeaderValue)>,
}

impl<'a> Fields<'a> {
    /// Those of a template and no others.
    pub(crate) fn of(template: &'a HeaderMap) -> Self {
        Self { template, without: &[], version: None, session: None, added: Vec::new() }
    }

    pub(crate) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.added.push((name, value));
    }

    /// The session whose id the request carries.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(crate) fn has_authorization(&self) -> bool {
        self.template.contains_key(AUTHORIZATION) || self.added.iter().any(|(name, _)| *name == AUTHORIZATION)
    }

    pub(crate) fn write(&self) -> HeaderMap {
        let mut headers = self.template.clone();
        for name in self.without {
            headers.remove(name);
        }
        if let Some(version) = &self.version {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
        if let Some(session) = &self.session {
            headers.insert(SESSION_ID, session.header());
        }
        for (name, value) in &self.added {
            headers.insert(name, value.clone());
        }
        headers
    }
}

/// A document that no server's own headers belong to.
pub(crate) fn fetch() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, JSON);
    headers.insert(ACCEPT_ENCODING, IDENTITY);
    headers.insert(USER_AGENT, AGENT);
    headers
}

/// Adds `Host`, which changes with a redirect only in theory: the origin stays the same.
pub(crate) fn set_host(headers: &mut HeaderMap, target: &Target) {
    headers.insert(HOST, target.authority());
}

fn version(head: &RequestHead) -> Result<Option<HeaderValue>, BadHeader> {
    let Some(version) = &head.protocol_version else { return Ok(None) };
    Ok(Some(match version.as_str() {
        "2026-07-28" => HeaderValue::from_static("2026-07-28"),
        "2025-11-25" => HeaderValue::from_static("2025-11-25"),
        "2025-06-18" => HeaderValue::from_static("2025-06-18"),
        "2025-03-26" => HeaderValue::from_static("2025-03-26"),
        other => HeaderValue::from_str(other).map_err(|_| BadHeader::Value { name: PROTOCOL_VERSION })?,
    }))
}

fn text_value(name: &HeaderName, text: &str) -> Result<HeaderValue, BadHeader> {
    let mut value =
        HeaderValue::from_str(&header_text(text)).map_err(|_| BadHeader::Value { name: name.clone() })?;
    // Names and parameters may be the user's own data.
    value.set_sensitive(true);
    Ok(value)
}

fn param_name(suffix: &str) -> Result<HeaderName, BadHeader> {
    let bad = || BadHeader::Name { name: suffix.chars().take(64).collect() };
    if !is_token(suffix) {
        return Err(bad());
    }
    format!("{PARAM_PREFIX}{suffix}").parse().map_err(|_| bad())
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
