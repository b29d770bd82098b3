//! JSON objects in the order they were written, with duplicate names seen.
//!
//! `serde_json::Value` sorts members and keeps the last of two with one name. A form must show its fields in
//! the server's order, and two readers that resolve a duplicate differently would see two different forms.

use std::{collections::HashSet, fmt};

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
        let mut members = self.members.clone();
        for (name, value) in other {
            members.retain(|(member, _)| *member != name);
            members.push((name, value));
        }
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
    fn what_is_no_object_has_no_members() {
        let error = serde_json::from_str::<Members<'_>>("7").err().unwrap();
        assert!(error.to_string().contains("expected an object"), "{error}");
    }
}
