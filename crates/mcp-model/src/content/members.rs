//! The members of content blocks, each read in the way that its name asks for.

use std::fmt;

use serde::de::{DeserializeSeed, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ResourceContents;
use crate::settings::optional;

/// The members of all kinds of blocks, read as far as possible without deciding whether they are right.
///
/// Strings stand as `Value` so that something else in their place can be kept; large or nested members as raw text.
#[derive(Default)]
pub(super) struct Members {
    pub(super) text: Option<Value>,
    pub(super) data: Option<Value>,
    pub(super) mime_type: Option<Value>,
    pub(super) annotations: Option<Box<RawValue>>,
    pub(super) meta: Option<Box<RawValue>>,
    /// Apart, because text and images, which are nearly all there is, need not carry the weight.
    rare: Option<Box<Rare>>,
    other: Vec<(Box<str>, Box<RawValue>)>,
}

/// Members of the less common kinds.
#[derive(Default)]
pub(super) struct Rare {
    pub(super) uri: Option<Value>,
    pub(super) name: Option<Value>,
    pub(super) title: Option<Value>,
    pub(super) description: Option<Value>,
    pub(super) id: Option<Value>,
    pub(super) tool_use_id: Option<Value>,
    pub(super) resource: Option<ResourceContents>,
    pub(super) size: Option<Box<RawValue>>,
    pub(super) icons: Option<Box<RawValue>>,
    pub(super) input: Option<Box<RawValue>>,
    pub(super) content: Option<Box<RawValue>>,
    pub(super) structured_content: Option<Box<RawValue>>,
    pub(super) is_error: Option<Box<RawValue>>,
}

impl Members {
    /// Reads a member that had to wait.
    pub(super) fn read_early(&mut self, key: Key, value: Box<RawValue>) -> serde_json::Result<()> {
        let large = match key {
            Key::Text => &mut self.text,
            Key::Data => &mut self.data,
            key => {
                let seed = MemberSeed { members: self, key };
                return seed.deserialize(&mut serde_json::Deserializer::from_str(value.get()));
            }
        };
        *large = Some(crate::text::from_raw(value)?);
        Ok(())
    }

    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// Takes a required string out of its place, or leaves what stands there.
pub(super) fn take_string(place: &mut Option<Value>) -> Option<String> {
    match place {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            *place = None;
            Some(text)
        }
        _ => None,
    }
}

/// A malformed block, written again from what was read of it.
pub(super) struct Rewritten<'a> {
    pub(super) kind: &'a str,
    pub(super) members: &'a Members,
}

impl Serialize for Rewritten<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind)?;
        let members = self.members;
        strings(
            &mut map,
            [("text", &members.text), ("data", &members.data), ("mimeType", &members.mime_type)],
        )?;
        if let Some(rare) = &members.rare {
            strings(&mut map, [("uri", &rare.uri), ("name", &rare.name), ("title", &rare.title)])?;
            strings(&mut map, [("description", &rare.description), ("id", &rare.id)])?;
            strings(&mut map, [("toolUseId", &rare.tool_use_id)])?;
            optional(&mut map, "resource", rare.resource.as_ref())?;
            optional(&mut map, "size", rare.size.as_ref())?;
            optional(&mut map, "icons", rare.icons.as_ref())?;
            optional(&mut map, "input", rare.input.as_ref())?;
            optional(&mut map, "content", rare.content.as_ref())?;
            optional(&mut map, "structuredContent", rare.structured_content.as_ref())?;
            optional(&mut map, "isError", rare.is_error.as_ref())?;
        }
        optional(&mut map, "annotations", members.annotations.as_ref())?;
        optional(&mut map, "_meta", members.meta.as_ref())?;
        for (key, value) in &members.other {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn strings<M, const N: usize>(map: &mut M, entries: [(&str, &Option<Value>); N]) -> Result<(), M::Error>
where
    M: SerializeMap,
{
    entries.into_iter().try_for_each(|(key, value)| optional(map, key, value.as_ref()))
}

/// Reads the value of one member into its place.
pub(super) struct MemberSeed<'a> {
    pub(super) members: &'a mut Members,
    pub(super) key: Key,
}

impl<'de> DeserializeSeed<'de> for MemberSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let members = self.members;
        let string = match self.key {
            Key::Text | Key::Data => {
                let large = if matches!(self.key, Key::Text) { &mut members.text } else { &mut members.data };
                *large = Some(crate::text::value(deserializer)?);
                return Ok(());
            }
            Key::MimeType => &mut members.mime_type,
            Key::Uri => &mut members.rare().uri,
            Key::Name => &mut members.rare().name,
            Key::Title => &mut members.rare().title,
            Key::Description => &mut members.rare().description,
            Key::Id => &mut members.rare().id,
            Key::ToolUseId => &mut members.rare().tool_use_id,
            key => return Self::not_a_string(members, key, deserializer),
        };
        *string = Some(Value::deserialize(deserializer)?);
        Ok(())
    }
}

impl MemberSeed<'_> {
    fn not_a_string<'de, D>(members: &mut Members, key: Key, deserializer: D) -> Result<(), D::Error>
    where
        D: Deserializer<'de>,
    {
        if matches!(key, Key::Resource) {
            members.rare().resource = Some(ResourceContents::deserialize(deserializer)?);
            return Ok(());
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let place = match key {
            Key::Annotations => &mut members.annotations,
            Key::Content => &mut members.rare().content,
            Key::Icons => &mut members.rare().icons,
            Key::Input => &mut members.rare().input,
            Key::IsError => &mut members.rare().is_error,
            Key::Meta => &mut members.meta,
            Key::Size => &mut members.rare().size,
            Key::StructuredContent => &mut members.rare().structured_content,
            other => {
                members.other.push((other.into_name(), raw));
                return Ok(());
            }
        };
        *place = Some(raw);
        Ok(())
    }
}

macro_rules! keys {
    ($( $variant:ident = $text:literal, )+) => {
        /// A member's name, without a copy for the names that the specification defines.
        pub(super) enum Key {
            $( $variant, )+
            Other(Box<str>),
        }

        impl Key {
            pub(super) fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(text) => text,
                }
            }

            fn of(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    other => Self::Other(other.into()),
                }
            }
        }
    };
}

keys! {
    Annotations = "annotations",
    Content = "content",
    Data = "data",
    Description = "description",
    Icons = "icons",
    Id = "id",
    Input = "input",
    IsError = "isError",
    Meta = "_meta",
    MimeType = "mimeType",
    Name = "name",
    Resource = "resource",
    Size = "size",
    StructuredContent = "structuredContent",
    Text = "text",
    Title = "title",
    ToolUseId = "toolUseId",
    Type = "type",
    Uri = "uri",
}

impl Key {
    fn into_name(self) -> Box<str> {
        match self {
            Self::Other(text) => text,
            known => known.as_str().into(),
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, text: &str) -> Result<Key, E> {
                Ok(Key::of(text))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}
