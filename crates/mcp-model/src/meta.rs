//! The `_meta` object: its keys, the grammar of keys, and building one.
//!
//! Section "_meta" of the specification's base protocol.

mod key;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::key::{InvalidKey, KeyFault, check_extension_id, check_key};
use crate::confidential::SizeOnly as _;
use crate::{ClientCapabilities, Implementation, ProgressToken, ProtocolVersion};

/// On requests, all revisions: requests progress notifications with this token.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// On requests, required since 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// On requests, required since 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// On requests, since 2026-07-28.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// On requests, since 2026-07-28: the least severe log level wanted for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// On results, since 2026-07-28: name and version of the server, unverified.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// On notifications and results of `subscriptions/listen`, since 2026-07-28.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// On messages that belong to a task, 2025-11-25 only.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// On requests, tasks extension: the tasks that the client considers related.
pub const RELATED_TASK_IDS: &str = "io.modelcontextprotocol/relatedTaskIds";
/// On the result that creates a task, 2025-11-25 only: a text for the model to continue with until the task has ended.
pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
/// W3C Trace Context, since 2026-07-28.
pub const TRACEPARENT: &str = "traceparent";
/// W3C Trace Context, since 2026-07-28.
pub const TRACESTATE: &str = "tracestate";
/// W3C Baggage, since 2026-07-28.
pub const BAGGAGE: &str = "baggage";

/// Identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Whether the text is a valid `_meta` key: an optional prefix of labels separated by dots and ended by a slash, then a
/// name, which may be empty.
///
/// The grammar was introduced with 2025-06-18; keys that follow it are valid in every revision.
#[must_use]
pub fn is_key(text: &str) -> bool {
    key::fault(text).is_none()
}

/// Whether the text is a valid extension identifier: a valid key with a prefix.
#[must_use]
pub fn is_extension_id(text: &str) -> bool {
    text.contains('/') && is_key(text)
}

/// Whether the key is reserved for the specification under the revision.
///
/// - 2024-11-05 and 2025-03-26 reserve `progressToken` only.
/// - 2025-06-18 reserves prefixes whose last label but one is `modelcontextprotocol` or `mcp` (`mcp.dev/`).
/// - Later revisions reserve prefixes whose second label is one of the two (`dev.mcp/`, `com.mcp.tools/`), and
///   2026-07-28 also the unprefixed keys of trace context.
#[must_use]
pub fn is_reserved(key: &str, version: ProtocolVersion) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return key == PROGRESS_TOKEN
            || (version.is_modern() && matches!(key, TRACEPARENT | TRACESTATE | BAGGAGE));
    };
    let ours = |label: &str| matches!(label, "modelcontextprotocol" | "mcp");
    if version >= ProtocolVersion::V2025_11_25 {
        prefix.split('.').nth(1).is_some_and(ours)
    } else if version >= ProtocolVersion::V2025_06_18 {
        prefix.rsplit('.').nth(1).is_some_and(ours)
    } else {
        false
    }
}

/// Whether an application may set the key on its requests: it follows the grammar, and it is not reserved or is one of the
/// reserved keys meant for applications (progress token, log level, related tasks, trace context).
///
/// The keys with protocol version, client info and client capabilities are not: they could contradict the transport's headers.
#[must_use]
pub fn is_for_application(key: &str, version: ProtocolVersion) -> bool {
    const OPEN: &[&str] =
        &[PROGRESS_TOKEN, LOG_LEVEL, RELATED_TASK, RELATED_TASK_IDS, TRACEPARENT, TRACESTATE, BAGGAGE];
    is_key(key) && (!is_reserved(key, version) || OPEN.contains(&key))
}

/// A parsed `_meta` object: raw values by key.
///
/// The types of this crate keep `_meta` as raw JSON, because most of it is never read. Use this type to read single keys or to build
/// a new object.
///
/// ```
/// use mcp_model::{MetaObject, ProgressToken, meta};
///
/// let mut meta = MetaObject::new();
/// meta.insert(meta::PROGRESS_TOKEN, &ProgressToken::from(7))?;
/// assert_eq!(meta.to_raw()?.get(), r#"{"progressToken":7}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MetaObject {
    members: BTreeMap<String, Box<RawValue>>,
}

/// Shows the keys, and the size of each value.
impl fmt::Debug for MetaObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.members.iter().map(|(key, value)| (key, value.size_only()))).finish()
    }
}

impl MetaObject {
    /// The empty object.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The members that every request has since 2026-07-28: the protocol version, the client's capabilities reduced to that
    /// version and, if given, the client info.
    ///
    /// # Errors
    /// Never for capabilities that were read from JSON or built here.
    pub fn for_request(
        version: ProtocolVersion,
        capabilities: &ClientCapabilities,
        client_info: Option<&Implementation>,
    ) -> serde_json::Result<Self> {
        let mut meta = Self::new();
        meta.insert(PROTOCOL_VERSION, &version)?;
        meta.insert(CLIENT_CAPABILITIES, &capabilities.clone().for_version(version))?;
        if let Some(client_info) = client_info {
            meta.insert(CLIENT_INFO, &client_info.clone().for_version(version))?;
        }
        Ok(meta)
    }

    /// Parses a raw object.
    ///
    /// # Errors
    /// When it is not a JSON object.
    pub fn from_raw(raw: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(raw.get())
    }

    /// Writes the object.
    ///
    /// # Errors
    /// Never for objects built here.
    pub fn to_raw(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    /// Whether the object is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The raw value of the key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.members.get(key).map(AsRef::as_ref)
    }

    /// The value of the key, read as a type; `None` if it is absent, `null` or of another shape.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key).and_then(|raw| serde_json::from_str::<Option<T>>(raw.get()).ok().flatten())
    }

    /// Sets the key, replacing any previous value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn insert(&mut self, key: impl Into<String>, value: &impl Serialize) -> serde_json::Result<()> {
        self.set(key.into(), serde_json::value::to_raw_value(value)?);
        Ok(())
    }

    /// Sets the key to raw JSON, replacing any previous value.
    pub fn insert_raw(&mut self, key: impl Into<String>, value: Box<RawValue>) {
        self.set(key.into(), value);
    }

    /// Not generic, so that it is compiled here and not where it is used.
    fn set(&mut self, key: String, value: Box<RawValue>) {
        self.members.insert(key, value);
    }

    /// Removes the key.
    pub fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        self.members.remove(key)
    }

    /// Adds the keys of `caller` that are not set yet; values that are set take precedence.
    pub fn fill_from(&mut self, caller: Self) {
        for (key, value) in caller.members {
            self.members.entry(key).or_insert(value);
        }
    }

    /// All keys and values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value.as_ref()))
    }

    /// The progress token, if there is a valid one.
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.read(PROGRESS_TOKEN)
    }
}

/// Reads one key of a raw `_meta` object; `None` if the object or the key is absent, or the value has another shape.
#[must_use]
pub fn read<T: DeserializeOwned>(meta: Option<&RawValue>, key: &str) -> Option<T> {
    MetaObject::from_raw(meta?).ok()?.read(key)
}

#[cfg(test)]
mod tests;
