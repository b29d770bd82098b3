//! The contents of resources: text or base64.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The contents of a resource, or of a part of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Binary data.
    Blob(BlobResourceContents),
    /// Neither of the two, or without a URI.
    Unknown(UnknownResourceContents),
}

impl ResourceContents {
    /// The URI, if the contents are well-formed.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => Some(&contents.uri),
            Self::Blob(contents) => Some(&contents.uri),
            Self::Unknown(_) => None,
        }
    }

    /// The text, if these are text contents.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => Some(&contents.text),
            _ => None,
        }
    }
}

/// Text contents of a resource.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    pub text: String,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { TextResourceContents { uri, mime_type, text } sized { meta } }

impl TextResourceContents {
    /// The text of the resource with this URI.
    #[must_use]
    pub fn new(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: None, text: text.into(), meta: None }
    }
}

/// Binary contents of a resource.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlobResourceContents {
    /// The URI of the resource.
    pub uri: String,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The data in base64, not decoded and not checked.
    pub blob: String,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { BlobResourceContents { uri, mime_type, blob } sized { meta } }

impl BlobResourceContents {
    /// The data of the resource with this URI, in base64.
    #[must_use]
    pub fn new(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: None, blob: blob.into(), meta: None }
    }
}

/// Contents that are neither text nor binary, or that have no URI.
#[derive(Clone)]
pub struct UnknownResourceContents {
    raw: Box<RawValue>,
}

impl UnknownResourceContents {
    /// The contents as JSON; the members may be in another order than received.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl fmt::Debug for UnknownResourceContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownResourceContents").field("raw_bytes", &self.raw.get().len()).finish()
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(contents) => contents.serialize(serializer),
            Self::Blob(contents) => contents.serialize(serializer),
            Self::Unknown(contents) => contents.raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentsVisitor)
    }
}

struct ContentsVisitor;

impl ContentsVisitor {
    fn unknown<E: serde::de::Error>(value: &impl Serialize) -> Result<ResourceContents, E> {
        let raw = serde_json::value::to_raw_value(value).map_err(E::custom)?;
        Ok(ResourceContents::Unknown(UnknownResourceContents { raw }))
    }
}

impl<'de> Visitor<'de> for ContentsVisitor {
    type Value = ResourceContents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("resource contents")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<ResourceContents, E> {
        Self::unknown(&value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<ResourceContents, E> {
        Self::unknown(&value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<ResourceContents, E> {
        Self::unknown(&value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<ResourceContents, E> {
        Self::unknown(&value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<ResourceContents, E> {
        Self::unknown(&value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<ResourceContents, E> {
        Self::unknown(&Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<ResourceContents, A::Error> {
        Self::unknown(&Value::deserialize(serde::de::value::SeqAccessDeserializer::new(sequence))?)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceContents, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Name>()? {
            let place = match name {
                Name::Uri => &mut members.uri,
                Name::MimeType => &mut members.mime_type,
                Name::Text => {
                    members.text = Some(map.next_value::<Large>()?.0);
                    continue;
                }
                Name::Blob => {
                    members.blob = Some(map.next_value::<Large>()?.0);
                    continue;
                }
                Name::Meta => {
                    members.meta = map.next_value::<Option<Box<RawValue>>>()?;
                    continue;
                }
                Name::Other(name) => {
                    members.other.push((name, map.next_value::<Box<RawValue>>()?));
                    continue;
                }
            };
            *place = Some(map.next_value::<Value>()?);
        }
        members.build()
    }
}

/// Any value, of which a string is read with one allocation.
struct Large(Value);

impl<'de> Deserialize<'de> for Large {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::value(deserializer).map(Self)
    }
}

/// What was read, before it is decided which of the two kinds it is. Strings stand as `Value` so that something else
/// in their place can be kept.
#[derive(Default)]
struct Members {
    uri: Option<Value>,
    mime_type: Option<Value>,
    text: Option<Value>,
    blob: Option<Value>,
    meta: Option<Box<RawValue>>,
    other: Vec<(Box<str>, Box<RawValue>)>,
}

impl Members {
    fn build<E: serde::de::Error>(self) -> Result<ResourceContents, E> {
        match self {
            Self {
                uri: Some(Value::String(uri)), text: Some(Value::String(text)), mime_type, meta, ..
            } => {
                let mime_type = string(mime_type);
                Ok(ResourceContents::Text(TextResourceContents { uri, mime_type, text, meta }))
            }
            Self {
                uri: Some(Value::String(uri)), blob: Some(Value::String(blob)), mime_type, meta, ..
            } => {
                let mime_type = string(mime_type);
                Ok(ResourceContents::Blob(BlobResourceContents { uri, mime_type, blob, meta }))
            }
            neither => ContentsVisitor::unknown(&neither),
        }
    }
}

fn string(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in
            [("uri", &self.uri), ("mimeType", &self.mime_type), ("text", &self.text), ("blob", &self.blob)]
        {
            if let Some(value) = value {
                map.serialize_entry(name, value)?;
            }
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        for (name, value) in &self.other {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

enum Name {
    Uri,
    MimeType,
    Text,
    Blob,
    Meta,
    Other(Box<str>),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(match text {
                    "uri" => Name::Uri,
                    "mimeType" => Name::MimeType,
                    "text" => Name::Text,
                    "blob" => Name::Blob,
                    "_meta" => Name::Meta,
                    other => Name::Other(other.into()),
                })
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(json: &str) -> &'static str {
        match serde_json::from_str(json).unwrap() {
            ResourceContents::Text(_) => "text",
            ResourceContents::Blob(_) => "blob",
            ResourceContents::Unknown(_) => "unknown",
        }
    }

    /// protocol:RS-01
    #[test]
    fn contents_are_text_or_blob_by_their_members() {
        let check = |json: &str, expected: &str| assert_eq!(kind(json), expected, "{json}");
        check(r#"{"uri":"a:b","text":""}"#, "text");
        check(r#"{"text":"x","mimeType":null,"uri":"a:b","extra":[1]}"#, "text");
        check(r#"{"uri":"a:b","blob":"AA=="}"#, "blob");
        check(r#"{"uri":"a:b","text":null,"blob":"AA=="}"#, "blob");
        check(r#"{"uri":"a:b"}"#, "unknown");
        check(r#"{"text":"x"}"#, "unknown");
        check(r#"{"uri":1,"text":"x"}"#, "unknown");
        check(r#"{"uri":"a:b","text":{"a":1}}"#, "unknown");
        check("[1]", "unknown");
        check("\"x\"", "unknown");
        check("null", "unknown");
        check("true", "unknown");
        check("1", "unknown");
        check("-1", "unknown");
        check("1.5", "unknown");
    }

    #[test]
    fn unknown_contents_keep_every_member() {
        let json = r#"{"uri":"a:b","text":{"a":[1,2]},"_meta":{"k":0},"more":1e400}"#;
        let contents: ResourceContents = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&contents).unwrap(), json);
    }
}
