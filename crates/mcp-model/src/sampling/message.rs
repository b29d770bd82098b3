//! A message of a sampling conversation.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::content::blocks;
use crate::version::NotInVersion;
use crate::{Annotations, ProtocolVersion, Role, SamplingMessageContentBlock};

/// A message of a sampling conversation.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The role.
    pub role: Role,
    /// The content.
    pub content: SamplingContent,
    /// Additional metadata, as raw JSON (2025-11-25 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SamplingMessage { role, content } sized { meta } }

impl SamplingMessage {
    /// A message without metadata.
    #[must_use]
    pub fn new(role: Role, content: impl Into<SamplingContent>) -> Self {
        Self { role, content: content.into(), meta: None }
    }
}

/// One block, or a list of blocks (2025-11-25 and later). They differ on the wire only.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SamplingContent {
    /// One block.
    Single(Box<SamplingMessageContentBlock>),
    /// A list of blocks.
    List(Vec<SamplingMessageContentBlock>),
}

impl SamplingContent {
    /// One block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        SamplingMessageContentBlock::text(text).into()
    }

    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[SamplingMessageContentBlock] {
        match self {
            Self::Single(block) => std::slice::from_ref(block),
            Self::List(blocks) => blocks,
        }
    }

    /// Keeps only what the revision defines.
    pub(super) fn for_version(self, version: ProtocolVersion) -> Result<Self, NotInVersion> {
        if version >= ProtocolVersion::V2025_11_25 {
            for block in self.blocks() {
                if matches!(block, SamplingMessageContentBlock::Unknown(_)) {
                    return Err(NotInVersion::new("a content block of an unknown kind", version));
                }
            }
            return Ok(self);
        }
        let block = match self {
            Self::Single(block) => *block,
            Self::List(blocks) => match <[_; 1]>::try_from(blocks) {
                Ok([block]) => block,
                Err(_) => return Err(NotInVersion::new("a list of content blocks", version)),
            },
        };
        reduced(block, version).map(Self::from)
    }
}

/// A block with only the members that the revision (before 2025-11-25) defines.
fn reduced(
    block: SamplingMessageContentBlock,
    version: ProtocolVersion,
) -> Result<SamplingMessageContentBlock, NotInVersion> {
    use SamplingMessageContentBlock as Block;

    let mut block = block;
    let (annotations, meta) = match &mut block {
        Block::Text(text) => (&mut text.annotations, &mut text.meta),
        Block::Image(image) => (&mut image.annotations, &mut image.meta),
        Block::Audio(audio) if version >= ProtocolVersion::V2025_03_26 => {
            (&mut audio.annotations, &mut audio.meta)
        }
        Block::Audio(_) => return Err(NotInVersion::new("audio content", version)),
        Block::ToolUse(_) => return Err(NotInVersion::new("tool use content", version)),
        Block::ToolResult(_) => return Err(NotInVersion::new("tool result content", version)),
        Block::Unknown(_) => return Err(NotInVersion::new("a content block of an unknown kind", version)),
    };
    if version < ProtocolVersion::V2025_06_18 {
        *meta = None;
        if let Some(Annotations { last_modified, .. }) = annotations {
            *last_modified = None;
        }
    }
    Ok(block)
}

impl From<SamplingMessageContentBlock> for SamplingContent {
    fn from(block: SamplingMessageContentBlock) -> Self {
        Self::Single(Box::new(block))
    }
}

impl From<Vec<SamplingMessageContentBlock>> for SamplingContent {
    fn from(blocks: Vec<SamplingMessageContentBlock>) -> Self {
        Self::List(blocks)
    }
}

impl Serialize for SamplingContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Single(block) => block.serialize(serializer),
            Self::List(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = SamplingContent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content block or a list of them")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<SamplingContent, A::Error> {
                blocks().visit_seq(sequence).map(SamplingContent::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SamplingContent, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                SamplingMessageContentBlock::deserialize(map).map(SamplingContent::from)
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}
