//! Which members make a block of which kind.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::reader::{Members, Tagged, take_string};
use super::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, MAX_CONTENT_BLOCKS, ResourceLink,
    SamplingMessageContentBlock, TextContent, ToolResultContent, ToolUseContent, UnknownContent,
};
use crate::lenient;

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
    if !matches!(members.name, Some(Value::String(_))) {
        return Err("no string `name`");
    }
    let Some(uri) = take_string(&mut members.uri) else {
        return Err("no string `uri`");
    };
    Ok(ResourceLink {
        uri,
        name: take_string(&mut members.name).unwrap_or_default(),
        title: take_string(&mut members.title),
        description: take_string(&mut members.description),
        mime_type: take_string(&mut members.mime_type),
        size: members.size.take().and_then(|raw| lenient::parse_count(raw.get())),
        icons: hint(members.icons.take()),
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn embedded_resource(members: &mut Members) -> Built<EmbeddedResource> {
    let Some(resource) = members.resource.take() else {
        return Err("no `resource`");
    };
    Ok(EmbeddedResource {
        resource,
        annotations: hint(members.annotations.take()),
        meta: optional(members.meta.take()),
    })
}

fn tool_use(members: &mut Members) -> Built<ToolUseContent> {
    if !members.input.as_deref().is_some_and(lenient::is_object) {
        return Err("no object `input`");
    }
    if !matches!(members.name, Some(Value::String(_))) {
        return Err("no string `name`");
    }
    let Some(id) = take_string(&mut members.id) else {
        return Err("no string `id`");
    };
    let Some(input) = members.input.take() else {
        return Err("no object `input`");
    };
    let name = take_string(&mut members.name).unwrap_or_default();
    Ok(ToolUseContent { id, name, input, meta: optional(members.meta.take()) })
}

fn tool_result(members: &mut Members) -> Built<ToolResultContent> {
    let content = match members.content.as_deref().map(|raw| serde_json::from_str::<Blocks>(raw.get())) {
        None => Vec::new(),
        Some(Ok(blocks)) => blocks.0,
        Some(Err(_)) => return Err("`content` is not a list of blocks"),
    };
    let is_error = match members.is_error.as_deref().map(|raw| serde_json::from_str(raw.get())) {
        None => None,
        Some(Ok(is_error)) => is_error,
        Some(Err(_)) => return Err("`isError` is not a truth value"),
    };
    let Some(tool_use_id) = take_string(&mut members.tool_use_id) else {
        return Err("no string `toolUseId`");
    };
    let structured_content = members.structured_content.take();
    Ok(ToolResultContent {
        tool_use_id,
        content,
        structured_content,
        is_error,
        meta: optional(members.meta.take()),
    })
}

fn hint<T: DeserializeOwned>(raw: Option<Box<RawValue>>) -> Option<T> {
    raw.and_then(|raw| serde_json::from_str::<Option<T>>(raw.get()).unwrap_or(None))
}

fn optional(raw: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
    raw.filter(|raw| raw.get() != "null")
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
        deserializer.deserialize_any(BlocksVisitor::new())
    }
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer).map(Self)
    }
}

/// Reads a capped list of blocks.
pub(crate) struct BlocksVisitor<T>(PhantomData<T>);

impl<T> BlocksVisitor<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for BlocksVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of content blocks")
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        // Most results hold one block; the growth of an empty vector would make room for four.
        let mut blocks = Vec::with_capacity(1);
        while let Some(block) = sequence.next_element()? {
            if blocks.len() == MAX_CONTENT_BLOCKS {
                return Err(serde::de::Error::custom(format_args!(
                    "more than {MAX_CONTENT_BLOCKS} content blocks in one list"
                )));
            }
            blocks.push(block);
        }
        Ok(blocks)
    }
}
