//! Lists in which one malformed item does not lose the others.
//!
//! An item that cannot be read as its type is kept in [`List::rejected`] with its position, the reason and its raw JSON. Writing a
//! list puts rejected items back in their place, so that nothing a peer sent is lost.

use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::FromObject;

/// Maximum number of items in a list (of one page), readable and rejected ones together; a longer list is an error. Without a limit
/// a peer could make every two bytes of text take a hundred bytes of memory.
pub const MAX_LIST_ITEMS: usize = 100_000;

/// A list from a peer: the items that could be read, and those that could not.
///
/// It dereferences to the slice of readable items. A JSON `null` reads as the empty list, because some servers send it for
/// one.
#[derive(Debug, Clone)]
pub struct List<T> {
    items: Vec<T>,
    rejected: Vec<RejectedItem>,
}

impl<T> List<T> {
    /// A list of these items, none rejected.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self { items, rejected: Vec::new() }
    }

    /// The items that could be read, in the peer's order.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items that could not be read, in the peer's order.
    #[must_use]
    pub fn rejected(&self) -> &[RejectedItem] {
        &self.rejected
    }

    /// The readable items, without the rejected ones.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The readable and the rejected items.
    #[must_use]
    pub fn into_parts(self) -> (Vec<T>, Vec<RejectedItem>) {
        (self.items, self.rejected)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self::new(items)
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.items.len() + self.rejected.len()))?;
        let mut rejected = self.rejected.iter().peekable();
        let mut position = 0;
        for item in &self.items {
            while let Some(odd) = rejected.next_if(|odd| odd.index <= position) {
                sequence.serialize_element(&odd.raw)?;
                position += 1;
            }
            sequence.serialize_element(item)?;
            position += 1;
        }
        for odd in rejected {
            sequence.serialize_element(&odd.raw)?;
        }
        sequence.end()
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_by(|text| crate::json::read(text), deserializer)
    }
}

/// Reads a list of what comes often, for `deserialize_with`.
pub(crate) fn directly<'de, D, T>(deserializer: D) -> Result<List<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    read_by(|text| crate::json::read_directly(text), deserializer)
}

fn read_by<'de, D, T>(read: fn(&str) -> serde_json::Result<T>, deserializer: D) -> Result<List<T>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut list = List::default();
    // `deserialize_any` also sees `null`, which `deserialize_seq` would refuse.
    deserializer.deserialize_any(RawItems(&mut |index, raw| match read(raw.get()) {
        Ok(item) => list.items.push(item),
        Err(error) => list.rejected.push(RejectedItem { index, reason: capped(&error), raw }),
    }))?;
    Ok(list)
}

/// Reads a list of which every item is well-formed, and each item once: any other list is an error. For `deserialize_with`.
pub(crate) fn well_formed<'de, D, T>(deserializer: D) -> Result<List<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer
        .deserialize_seq(Capped::<FromObject<T>>::new(MAX_LIST_ITEMS, "items"))
        .map(|items| items.into_iter().map(|FromObject(item)| item).collect())
}

/// Hands out the items of a list, each with its position: the same code for lists of every type.
struct RawItems<'a>(&'a mut dyn FnMut(usize, Box<RawValue>));

impl<'de> Visitor<'de> for RawItems<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(raw) = sequence.next_element()? {
            if index == MAX_LIST_ITEMS {
                return Err(serde::de::Error::custom(format_args!(
                    "more than {MAX_LIST_ITEMS} items in one list"
                )));
            }
            (self.0)(index, raw);
            index += 1;
        }
        Ok(())
    }
}

/// A list item that could not be read as its type.
#[derive(Clone)]
pub struct RejectedItem {
    index: usize,
    reason: String,
    raw: Box<RawValue>,
}

impl RejectedItem {
    /// The item's position in the list as received, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Why it could not be read, in at most about 200 bytes. It may quote text of the peer: escape control characters before
    /// showing it.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The item's JSON, unchanged.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl fmt::Debug for RejectedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedItem")
            .field("index", &self.index)
            .field("reason", &self.reason)
            .field("raw_bytes", &self.raw.get().len())
            .finish()
    }
}

/// Reads a list of items that are never refused, up to a limit; `null` is the empty list.
pub(crate) struct Capped<T> {
    most: usize,
    what: &'static str,
    items: std::marker::PhantomData<T>,
}

impl<T> Capped<T> {
    pub(crate) fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, items: std::marker::PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Capped<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.what)
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if items.len() == self.most {
                let Self { most, what, .. } = self;
                return Err(serde::de::Error::custom(format_args!("more than {most} {what} in one list")));
            }
            if items.is_empty() {
                // Most lists of content hold one item; the growth of an empty vector would make room for four.
                items.reserve_exact(1);
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// The error's text, cut at a character boundary: a parse error quotes the peer's strings whole.
pub(crate) fn capped(error: &serde_json::Error) -> String {
    const LIMIT_BYTES: usize = 200;
    let mut text = error.to_string();
    if text.len() > LIMIT_BYTES {
        let mut end = LIMIT_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> List<u8> {
        serde_json::from_str(json).unwrap()
    }

    /// protocol:10.27: one entry does not fail a whole list.
    #[test]
    fn odd_items_are_set_aside_with_their_place_and_put_back_on_writing() {
        let check = |json: &str, items: &[u8], places: &[usize]| {
            let list = read(json);
            assert_eq!(list.items(), items, "{json}");
            assert_eq!(list.rejected().iter().map(RejectedItem::index).collect::<Vec<_>>(), places, "{json}");
            assert_eq!(serde_json::to_string(&list).unwrap(), json);
        };
        check("[]", &[], &[]);
        check("[1,2,3]", &[1, 2, 3], &[]);
        check(r#"["x",1,300,{"a":[]},2,null]"#, &[1, 2], &[0, 2, 3, 5]);
        check("[false,true]", &[], &[0, 1]);
    }

    #[test]
    fn the_reason_is_capped_however_long_the_peers_string_is() {
        let list = read(&format!("[\"{}\"]", "\u{e9}".repeat(100_000)));
        let reason = list.rejected()[0].reason();
        assert!(reason.len() <= 203 && reason.ends_with("..."), "{}", reason.len());
        assert!(reason.starts_with("invalid type"), "{reason}");
    }

    #[test]
    fn a_reason_is_cut_between_characters_below_at_and_above_its_limit() {
        let cut = |text: String| capped(&serde::de::Error::custom(text)).len();
        assert_eq!([199, 200, 201].map(|bytes| cut("x".repeat(bytes))), [199, 200, 203]);
        assert_eq!([0, 1].map(|before| cut("x".repeat(before) + &"\u{e9}".repeat(200))), [203, 202]);
    }

    #[test]
    fn lists_are_capped() {
        let count = |items: usize| {
            let json = format!("[{}]", vec!["7"; items].join(","));
            serde_json::from_str::<List<u8>>(&json).map(|list| list.len())
        };
        assert_eq!(count(MAX_LIST_ITEMS - 1).unwrap(), MAX_LIST_ITEMS - 1);
        assert_eq!(count(MAX_LIST_ITEMS).unwrap(), MAX_LIST_ITEMS);
        let error = count(MAX_LIST_ITEMS + 1).unwrap_err().to_string();
        assert!(error.contains("100000"), "{error}");
    }

    #[test]
    fn null_reads_as_the_empty_list_and_other_shapes_are_refused() {
        assert!(read("null").is_empty());
        for json in ["{}", "5", "\"x\"", "true"] {
            assert!(serde_json::from_str::<List<u8>>(json).is_err(), "{json}");
        }
    }
}
