//! Which members make a block of which kind.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::{Members, take_string};
use super::reader::Tagged;
use super::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, MAX_CONTENT_BLOCKS, ResourceLink,
    SamplingMessageContentBlock, TextContent, ToolResultContent, ToolUseContent, UnknownContent,
};
use crate::lenient;
use crate::list::Capped;

/// A block, or what is missing. On failure the members are as they were.
type Built<T> = Result<T, &'static str>;

impl Tagged for ContentBlock {
    const KINDS: &[&'static str] = &["text", "image", "audio", "resource_link", "resource"];

    fn build(kind: &str, members: &mut Members) -> Built<Self> {
        match kind {
            "text" => text(members).map(Self::Text),
            "image" => image(members).map(Self::Image),
            "audio" => audio(members).map(Self::Audio),
            "resource_link" => resource_link(members).map(|link| Self::ResourceLink(Box::new(link))),
            _ => embedded_resource(members).map(|embedded| Self::Resource(Box::new(embedded))),
        }
    }

    fn unknown(block: UnknownContent) -> Self {
        Self::Unknown(block)
    }
}

impl Tagged for SamplingMessageContentBlock {
    const KINDS: &[&'static str] = &["text", "image", "audio", "tool_use", "tool_result"];

    fn build(kind: &str, members: &mut Members) -> Built<Self> {
        match kind {
            "text" => text(members).map(Self::Text),
            "image" => image(members).map(Self::Image),
            "audio" => audio(members).map(Self::Audio),
            "tool_use" => tool_use(members).map(Self::ToolUse),
            _ => tool_result(members).map(Self::ToolResult),
        }
    }

    fn unknown(block: UnknownContent) -> Self {
        Self::Unknown(block)
    }
}

fn text(members: &mut Members) -> Built<TextContent> {
    let Some(text) = take_string(&mut members.text) else {
        return Err("no string `text`");
    };
    Ok(TextContent {
        text,
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn image(members: &mut Members) -> Built<ImageContent> {
    let (data, mime_type) = encoded(members)?;
    Ok(ImageContent {
        data,
        mime_type,
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn audio(members: &mut Members) -> Built<AudioContent> {
    let (data, mime_type) = encoded(members)?;
    Ok(AudioContent {
        data,
        mime_type,
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn encoded(members: &mut Members) -> Built<(String, String)> {
    if !matches!(members.mime_type, Some(Value::String(_))) {
        return Err("no string `mimeType`");
    }
    let Some(data) = take_string(&mut members.data) else {
        return Err("no string `data`");
    };
    let mime_type = take_string(&mut members.mime_type).unwrap_or_default();
    Ok((data, mime_type))
}

fn resource_link(members: &mut Members) -> Built<ResourceLink> {
    let rare = members.rare();
    if !matches!(rare.name, Some(Value::String(_))) {
        return Err("no string `name`");
    }
    let Some(uri) = take_string(&mut rare.uri) else {
        return Err("no string `uri`");
    };
    Ok(ResourceLink {
        uri,
        name: take_string(&mut rare.name).unwrap_or_default(),
        title: take_string(&mut rare.title),
        description: take_string(&mut rare.description),
        size: rare.size.take().and_then(|raw| lenient::parse_count(raw.get())),
        icons: hint(rare.icons.take()),
        mime_type: take_string(&mut members.mime_type),
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn embedded_resource(members: &mut Members) -> Built<EmbeddedResource> {
    let Some(resource) = members.rare().resource.take() else {
        return Err("no `resource`");
    };
    Ok(EmbeddedResource {
        resource,
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn tool_use(members: &mut Members) -> Built<ToolUseContent> {
    let rare = members.rare();
    if !rare.input.as_deref().is_some_and(lenient::is_object) {
        return Err("no object `input`");
    }
    if !matches!(rare.name, Some(Value::String(_))) {
        return Err("no string `name`");
    }
    let Some(id) = take_string(&mut rare.id) else {
        return Err("no string `id`");
    };
    let Some(input) = rare.input.take() else {
        return Err("no object `input`");
    };
    let name = take_string(&mut rare.name).unwrap_or_default();
    Ok(ToolUseContent { id, name, input, meta: optional(members.meta.take()) })
}

fn tool_result(members: &mut Members) -> Built<ToolResultContent> {
    let rare = members.rare();
    let content = match rare.content.as_deref().map(|raw| serde_json::from_str::<Blocks>(raw.get())) {
        None => Vec::new(),
        Some(Ok(blocks)) => blocks.0,
        Some(Err(_)) => return Err("`content` is not a list of blocks"),
    };
    let is_error = match rare.is_error.as_deref().map(|raw| serde_json::from_str(raw.get())) {
        None => None,
        Some(Ok(is_error)) => is_error,
        Some(Err(_)) => return Err("`isError` is not a truth value"),
    };
    let Some(tool_use_id) = take_string(&mut rare.tool_use_id) else {
        return Err("no string `toolUseId`");
    };
    let structured_content = rare.structured_content.take();
    Ok(ToolResultContent {
        tool_use_id,
        content,
        structured_content,
        is_error,
        meta: optional(members.meta.take()),
    })
}

fn hint<T: DeserializeOwned>(raw: Option<Box<RawValue>>) -> Option<T> {
    raw.and_then(|raw| lenient::read_hint(&raw))
}

fn optional(raw: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
    raw.filter(|raw| raw.get() != "null")
}

/// Reads a capped list of blocks.
pub(crate) fn blocks<T>() -> Capped<T> {
    Capped::new(MAX_CONTENT_BLOCKS, "content blocks")
}

/// A capped list of blocks; `null` is the empty list.
#[derive(Default)]
pub(crate) struct Blocks(pub(crate) Vec<ContentBlock>);

impl Blocks {
    /// For `deserialize_with`.
    pub(crate) fn deserialize<'de, D>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error>
    where
        D: Deserializer<'de>,
    {
        deserializer.deserialize_any(blocks())
    }
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer).map(Self)
    }
}
