//! Content blocks: what tools, prompts and sampling messages are made of.
//!
//! A block that cannot be read as one of the known types becomes [`ContentBlock::Unknown`] at its place in the list,
//! so that neither a type of a later revision nor a malformed block affects the other blocks. The reading itself is in
//! [`reader`]: one pass over the text when `type` comes first, as nearly every server writes it.

mod block;
mod members;
mod reader;
mod unknown;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use self::block::{Blocks, blocks};
pub use self::unknown::UnknownContent;
use crate::open_enum::open_enum;
use crate::{Icon, List, ResourceContents, lenient, number};

/// Maximum number of content blocks in a list; a longer list is an error. Without a limit a peer could make every three bytes of
/// text take a hundred bytes of memory.
pub const MAX_CONTENT_BLOCKS: usize = 100_000;

open_enum! {
    /// The sender or the audience of a message.
    Role {
        /// The model.
        Assistant = "assistant",
        /// The user.
        User = "user",
    }
}

/// Hints on how to use a content block or a resource. Untrusted: they come from the server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Who it is meant for; absent means everyone.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// How important it is, from 0 (entirely optional) to 1 (effectively required); not checked on reading.
    #[serde(default, deserialize_with = "lenient::hint")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601 (2025-06-18 and later).
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A block of content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (2025-03-26 and later).
    Audio(AudioContent),
    /// A link to a resource (2025-06-18 and later).
    ResourceLink(Box<ResourceLink>),
    /// An embedded resource.
    Resource(Box<EmbeddedResource>),
    /// Any other block, unchanged.
    Unknown(UnknownContent),
}

impl ContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if this is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The value of the block's `type` member; `None` if it has none, or one that is not a string.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Text(_) => Some("text"),
            Self::Image(_) => Some("image"),
            Self::Audio(_) => Some("audio"),
            Self::ResourceLink(_) => Some("resource_link"),
            Self::Resource(_) => Some("resource"),
            Self::Unknown(block) => block.kind(),
        }
    }
}

/// A block of content in a sampling message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SamplingMessageContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (2025-03-26 and later).
    Audio(AudioContent),
    /// A tool call that the model requests (2025-11-25 and later).
    ToolUse(ToolUseContent),
    /// The result of a tool call (2025-11-25 and later).
    ToolResult(ToolResultContent),
    /// Any other block, unchanged.
    Unknown(UnknownContent),
}

impl SamplingMessageContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if this is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

/// Text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "text")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { TextContent { text, annotations } sized { meta } }

impl TextContent {
    /// Text without annotations.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), annotations: None, meta: None }
    }
}

/// An image.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "image", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The image in base64, not decoded and not checked.
    pub data: String,
    /// Its MIME type.
    pub mime_type: String,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ImageContent { data, mime_type, annotations } sized { meta } }

impl ImageContent {
    /// An image given in base64.
    #[must_use]
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), annotations: None, meta: None }
    }
}

/// Audio (2025-03-26 and later).
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "audio", rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The audio data in base64, not decoded and not checked.
    pub data: String,
    /// Its MIME type.
    pub mime_type: String,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { AudioContent { data, mime_type, annotations } sized { meta } }

impl AudioContent {
    /// Audio data given in base64.
    #[must_use]
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), annotations: None, meta: None }
    }
}

/// A link to a resource (2025-06-18 and later), which need not be in `resources/list`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "resource_link", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceLink {
    /// The URI of the resource.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ResourceLink { uri, name, title, description, mime_type, size, icons, annotations } sized { meta } }

impl ResourceLink {
    /// A link to a resource with this URI and name.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: None,
            annotations: None,
            meta: None,
        }
    }

    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A resource embedded in a message.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "resource")]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { EmbeddedResource { resource, annotations } sized { meta } }

impl EmbeddedResource {
    /// The resource without annotations.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: None }
    }
}

/// A tool call that the model requests (2025-11-25 and later).
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool_use")]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of this tool call, to which its result refers.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: a JSON object, as raw JSON.
    #[serde(deserialize_with = "lenient::object")]
    pub input: Box<RawValue>,
    /// Additional metadata, as raw JSON; keep it when passing the message on.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ToolUseContent { id, name } sized { meta, input } }

impl ToolUseContent {
    /// A tool call; `None` if `input` is not a JSON object.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Box<RawValue>) -> Option<Self> {
        lenient::is_object(&input).then(|| Self { id: id.into(), name: name.into(), input, meta: None })
    }
}

/// The result of a tool call (2025-11-25 and later).
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool_result", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The [`ToolUseContent::id`] this answers.
    pub tool_use_id: String,
    /// What the tool returned.
    #[serde(default, deserialize_with = "Blocks::deserialize")]
    pub content: Vec<ContentBlock>,
    /// What the tool returned, as raw JSON; `Some` of `null` differs from `None`.
    #[serde(default, deserialize_with = "lenient::present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the call failed; absent means it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Additional metadata, as raw JSON; keep it when passing the message on.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ToolResultContent { tool_use_id, content, structured_content, is_error } sized { meta } }

impl ToolResultContent {
    /// The outcome of the call that was asked for under `tool_use_id`.
    #[must_use]
    pub fn new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content,
            structured_content: None,
            is_error: None,
            meta: None,
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => block.serialize(serializer),
            Self::Image(block) => block.serialize(serializer),
            Self::Audio(block) => block.serialize(serializer),
            Self::ResourceLink(block) => block.serialize(serializer),
            Self::Resource(block) => block.serialize(serializer),
            Self::Unknown(block) => block.serialize(serializer),
        }
    }
}

impl Serialize for SamplingMessageContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => block.serialize(serializer),
            Self::Image(block) => block.serialize(serializer),
            Self::Audio(block) => block.serialize(serializer),
            Self::ToolUse(block) => block.serialize(serializer),
            Self::ToolResult(block) => block.serialize(serializer),
            Self::Unknown(block) => block.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        reader::Reader::<Self>::new().read(deserializer)
    }
}

impl<'de> Deserialize<'de> for SamplingMessageContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        reader::Reader::<Self>::new().read(deserializer)
    }
}
