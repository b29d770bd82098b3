//! Reads one object with a `type` member in one pass.
//!
//! Serde's tagged enums buffer the whole object before they look at it, which loses the raw text of members and costs
//! several times the parse. Here the kind decides, as soon as it is known, how each further member is read. Members
//! that come before `type` wait as raw text.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::UnknownContent;
use super::members::{Key, MemberSeed, Members, Rewritten};

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
