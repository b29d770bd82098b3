//! JSON objects in the order they were written, with duplicate names seen.
//!
//! `serde_json::Value` sorts members and keeps the last of two with one name. A form must show its fields in
//! the server's order, and two readers that resolve a duplicate differently would see two different forms.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Array,
    Boolean,
    Null,
    Number,
    Object,
    String,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Array => "an array",
            Self::Boolean => "a boolean",
            Self::Null => "null",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::String => "a string",
        }
    }
}

/// The type of a value that is known to be JSON, by its first character.
pub(crate) fn kind(raw: &RawValue) -> Kind {
    match raw.get().trim_start().as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Boolean,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

/// Whether a value is this string, however it is escaped.
pub(crate) fn is_string(raw: &RawValue, text: &str) -> bool {
    kind(raw) == Kind::String
        && serde_json::from_str::<Cow<'_, str>>(raw.get()).is_ok_and(|string| string == text)
}

/// The members of an object.
pub(crate) struct Members<'a> {
    members: Vec<(String, &'a RawValue)>,
    /// The first name that appears twice.
    pub(crate) duplicate: Option<String>,
}

impl<'a> Members<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| *value)
    }

    /// These members, with those of `other` in the place of, and after, their own. Both had no duplicates.
    pub(crate) fn overlaid(&self, other: impl IntoIterator<Item = (String, &'a RawValue)>) -> Self {
        let other: Vec<_> = other.into_iter().collect();
        let replaced: HashSet<&str> = other.iter().map(|(name, _)| name.as_str()).collect();
        let kept = self.members.iter().filter(|(name, _)| !replaced.contains(name.as_str()));
        let members = kept.chain(&other).cloned().collect();
        Self { members, duplicate: None }
    }

    /// These members without some of them.
    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let kept = self.members.iter().filter(|(member, _)| !names.contains(&member.as_str()));
        Self { members: kept.cloned().collect(), duplicate: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    members.push(entry);
                }
                let mut seen = HashSet::with_capacity(members.len());
                let duplicate = members.iter().find(|(name, _)| !seen.insert(name.as_str()));
                let duplicate = duplicate.map(|(name, _)| name.clone());
                Ok(Members { members, duplicate })
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_duplicates_are_seen() {
        let members: Members<'_> = serde_json::from_str(r#"{"z": 1, "a": [2], "z": {}}"#).unwrap();
        assert_eq!(members.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["z", "a", "z"]);
        assert_eq!(members.duplicate.as_deref(), Some("z"));
        assert_eq!(members.get("z").unwrap().get(), "1");
    }

    #[test]
    fn the_first_character_tells_the_type() {
        for (text, expected, words) in [
            ("{}", Kind::Object, "an object"),
            ("[]", Kind::Array, "an array"),
            ("\"\"", Kind::String, "a string"),
            ("true", Kind::Boolean, "a boolean"),
            ("false", Kind::Boolean, "a boolean"),
            ("null", Kind::Null, "null"),
            ("-1", Kind::Number, "a number"),
            ("0", Kind::Number, "a number"),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!((kind(raw), kind(raw).as_str()), (expected, words));
        }
    }

    #[test]
    fn a_string_is_the_same_however_it_is_escaped() {
        for (text, expected) in [
            (r#""object""#, true),
            (r#""\u006fbject""#, true),
            (r#""objects""#, false),
            (r#"["object"]"#, false),
            ("null", false),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(is_string(raw, "object"), expected, "{text}");
        }
    }

    #[test]
    fn an_overlay_takes_the_place_of_members_and_stands_behind_them() {
        let [below, above]: [Members<'_>; 2] = [r#"{"a": 1, "b": 2, "c": 3}"#, r#"{"d": 4, "b": 5}"#]
            .map(|text| serde_json::from_str(text).unwrap());
        let overlaid = below.overlaid(above.iter().map(|(name, value)| (name.to_owned(), value)));
        let members: Vec<_> = overlaid.iter().map(|(name, value)| (name, value.get())).collect();
        assert_eq!(members, [("a", "1"), ("c", "3"), ("d", "4"), ("b", "5")]);
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        let error = serde_json::from_str::<Members<'_>>("7").err().unwrap();
        assert!(error.to_string().contains("expected an object"), "{error}");
    }
}
