//! Reads a type from its JSON text in two steps: an object is first cut into the members that its type has, by the same code
//! for all types, and then each member is read from its own text.
//!
//! `serde_json` does both at once, and what it does for objects is compiled again for each type and for each member. Here
//! every member is looked at twice, which does not count where messages are small and rare.

use std::borrow::Cow;
use std::fmt;
use std::vec::IntoIter;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::de::StrRead;
use serde_json::value::RawValue;

use crate::MAX_LIST_ITEMS;

/// The text of one value. In contrast to `serde_json` a struct is read from an object alone, and not from an array of its
/// members either: no such array is in the protocol.
#[derive(Clone, Copy)]
pub(super) struct Piece<'de> {
    text: &'de str,
    /// The member whose value it is, for errors; empty where it is none.
    member: &'static str,
}

type Result<T> = serde_json::Result<T>;

impl<'de> Piece<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self { text, member: "" }
    }

    fn directly<T>(
        self,
        read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> Result<T>,
    ) -> Result<T> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text);
        match read(&mut deserializer).and_then(|value| deserializer.end().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.error(error)),
        }
    }

    /// The error of a member, with its name in place of the line and column, which are those of its own text.
    fn error(self, error: serde_json::Error) -> serde_json::Error {
        if self.member.is_empty() {
            return error;
        }
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Error::custom(format_args!("`{}`: {}", self.member, text.strip_suffix(&place).unwrap_or(&text)))
    }

    /// The string that it is.
    fn string(self) -> Result<Cow<'de, str>> {
        self.directly(|deserializer| deserializer.deserialize_str(Text))
    }

    /// The named members of the object that it is, in its order. Others are checked to be JSON and left out.
    fn members(self, names: &'static [&'static str]) -> Result<Members<'de>> {
        let members = self.directly(|deserializer| deserializer.deserialize_map(Named(names)))?;
        Ok(Members { members: members.into_iter(), value: Piece::new("null") })
    }

    /// The items of the array that it is, of which there may be as many as in a [`List`](crate::List).
    fn items(self) -> Result<Items<'de>> {
        let items = self.directly(|deserializer| deserializer.deserialize_seq(Capped))?;
        Ok(Items { member: self.member, items: items.into_iter() })
    }
}

macro_rules! directly {
    ($( $method:ident )+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.directly(|deserializer| deserializer.$method(visitor))
        }
    )+ };
}

impl<'de> Deserializer<'de> for Piece<'de> {
    type Error = serde_json::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_map(self.members(names)?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.text == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        self.directly(|deserializer| deserializer.deserialize_newtype_struct(name, visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.directly(|deserializer| deserializer.deserialize_enum(name, variants, visitor))
    }

    directly! {
        deserialize_any deserialize_bool deserialize_f64 deserialize_i64 deserialize_map deserialize_u64
    }

    // What few types or none are made of; JSON says itself what it holds.
    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The members of an object, each with its text.
struct Members<'de> {
    members: IntoIter<Piece<'de>>,
    value: Piece<'de>,
}

impl<'de> Members<'de> {
    fn next_name(&mut self) -> Option<StrDeserializer<'static, serde_json::Error>> {
        self.value = self.members.next()?;
        Some(StrDeserializer::new(self.value.member))
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match self.next_name() {
            Some(name) => seed.deserialize(name).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(self.value)
    }
}

struct Items<'de> {
    member: &'static str,
    items: IntoIter<&'de str>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = serde_json::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.items.next() {
            Some(text) => seed.deserialize(Piece { text, member: self.member }).map(Some),
            None => Ok(None),
        }
    }
}

struct Named(&'static [&'static str]);

impl<'de> Visitor<'de> for Named {
    type Value = Vec<Piece<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Vec<Piece<'de>>, A::Error> {
        let mut members: Vec<Piece<'de>> = Vec::new();
        while let Some(key) = map.next_key_seed(Text)? {
            let Some(name) = self.0.iter().find(|name| **name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if members.iter().any(|known| known.member == *name) {
                return Err(Error::duplicate_field(name));
            }
            members.push(Piece { text: map.next_value::<&RawValue>()?.get(), member: name });
        }
        Ok(members)
    }
}

struct Capped;

impl<'de> Visitor<'de> for Capped {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> std::result::Result<Vec<&'de str>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element::<&RawValue>()? {
            if items.len() == MAX_LIST_ITEMS {
                return Err(Error::custom(format_args!("more than {MAX_LIST_ITEMS} items in one list")));
            }
            items.push(item.get());
        }
        Ok(items)
    }
}

/// Reads a string, without a copy where it is written without escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
