//! Reads one object with a `type` member in one pass.
//!
//! Serde's tagged enums buffer the whole object before they look at it, which loses the raw text of members and costs
//! several times the parse. Here the kind decides, as soon as it is known, how each further member is read. Members
//! that come before `type` wait as raw text.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::UnknownContent;
use crate::ResourceContents;
use crate::settings::optional;

/// A set of blocks, told apart by their kind.
pub(super) trait Tagged: Sized {
    /// The kinds that the set defines.
    const KINDS: &[&'static str];

    /// Makes a block of a kind that the set defines, or says what is missing and leaves the members as they were.
    fn build(kind: &str, members: &mut Members) -> Result<Self, &'static str>;

    fn unknown(block: UnknownContent) -> Self;
}

pub(super) struct Reader<T>(PhantomData<T>);

impl<T: Tagged> Reader<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn not_an_object<E: serde::de::Error>(value: &Value) -> Result<T, E> {
        let raw = serde_json::value::to_raw_value(value).map_err(E::custom)?;
        Ok(T::unknown(UnknownContent { kind: None, problem: Some("not an object"), raw }))
    }
}

impl<'de, T: Tagged> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<T, E> {
        Self::not_an_object(&value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
        Self::not_an_object(&value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<T, E> {
        Self::not_an_object(&value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<T, E> {
        Self::not_an_object(&value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<T, E> {
        Self::not_an_object(&value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        Self::not_an_object(&Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<T, A::Error> {
        let value = Value::deserialize(serde::de::value::SeqAccessDeserializer::new(sequence))?;
        Self::not_an_object(&value)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut early = Early::default();
        let kind = loop {
            match map.next_key::<Key>()? {
                None => return unknown(None, Some("no `type`"), &early),
                Some(Key::Type) => break map.next_value_seed(KindSeed(T::KINDS))?,
                Some(key) => early.push((key, map.next_value::<Box<RawValue>>()?)),
            }
        };
        let kind = match kind {
            Kind::Defined(kind) => kind,
            Kind::Other(kind) => {
                early.push((Key::Type, raw(&kind)?));
                while let Some(entry) = map.next_entry()? {
                    early.push(entry);
                }
                return match kind {
                    Value::String(kind) => unknown(Some(kind), None, &early),
                    _ => unknown(None, Some("`type` is not a string"), &early),
                };
            }
        };
        let mut members = Members::default();
        let mut problem = None;
        for (key, value) in early.into_iter() {
            if members.read_early(key, value).is_err() {
                problem = Some("a member beyond the range of its type");
            }
        }
        while let Some(key) = map.next_key::<Key>()? {
            if matches!(key, Key::Type) {
                map.next_value::<IgnoredAny>()?;
                problem = Some("`type` stands twice");
            } else {
                map.next_value_seed(MemberSeed { members: &mut members, key })?;
            }
        }
        let problem = match problem {
            Some(problem) => problem,
            None => match T::build(kind, &mut members) {
                Ok(block) => return Ok(block),
                Err(missing) => missing,
            },
        };
        let raw = raw(&Rewritten { kind, members: &members })?;
        Ok(T::unknown(UnknownContent { kind: Some(kind.into()), problem: Some(problem), raw }))
    }
}

type Entry = (Key, Box<RawValue>);

/// Members that came before `type`. Peers that sort members have one of them in a text block, which is the common
/// case and takes no list.
#[derive(Default)]
struct Early {
    first: Option<Entry>,
    more: Vec<Entry>,
}

impl Early {
    fn push(&mut self, entry: Entry) {
        if self.first.is_none() {
            self.first = Some(entry);
        } else {
            self.more.push(entry);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.more)
    }

    fn into_iter(self) -> impl Iterator<Item = Entry> {
        self.first.into_iter().chain(self.more)
    }
}

/// The value of `type`: one of the defined kinds, without a copy, or anything else.
enum Kind {
    Defined(&'static str),
    Other(Value),
}

struct KindSeed(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KindSeed {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KindSeed {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a kind of content")
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        let defined = self.0.iter().find(|kind| **kind == text);
        Ok(defined.map_or_else(|| Kind::Other(text.into()), |kind| Kind::Defined(kind)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Kind, A::Error> {
        Value::deserialize(serde::de::value::SeqAccessDeserializer::new(sequence)).map(Kind::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Kind, A::Error> {
        Value::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Kind::Other)
    }
}

fn unknown<T: Tagged, E: serde::de::Error>(
    kind: Option<String>,
    problem: Option<&'static str>,
    members: &Early,
) -> Result<T, E> {
    let raw = raw(&InOrder(members))?;
    Ok(T::unknown(UnknownContent { kind: kind.map(Into::into), problem, raw }))
}

fn raw<E: serde::de::Error>(value: &impl Serialize) -> Result<Box<RawValue>, E> {
    serde_json::value::to_raw_value(value).map_err(E::custom)
}

/// Writes members in the order they were read.
struct InOrder<'a>(&'a Early);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key.as_str(), value)))
    }
}

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
    fn read_early(&mut self, key: Key, value: Box<RawValue>) -> serde_json::Result<()> {
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

struct Rewritten<'a> {
    kind: &'a str,
    members: &'a Members,
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

struct MemberSeed<'a> {
    members: &'a mut Members,
    key: Key,
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
        enum Key {
            $( $variant, )+
            Other(Box<str>),
        }

        impl Key {
            fn as_str(&self) -> &str {
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
