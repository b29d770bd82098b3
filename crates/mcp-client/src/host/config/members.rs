//! The members of a JSON object in order, repetitions included, their values unread.

use std::collections::HashMap;
use std::fmt;

use mcp_jsonrpc::RawJson;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one object.
pub(super) struct Members<'a> {
    members: Vec<(String, &'a RawValue)>,
    /// How often each name comes.
    counts: HashMap<String, usize>,
}

impl<'a> Members<'a> {
    /// Reads `text`; `None` where it is JSON but no object.
    pub(super) fn parse(text: &'a str) -> Result<Option<Self>, serde_json::Error> {
        if !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
            return serde_json::from_str::<&RawValue>(text).map(|_| None);
        }
        serde_json::from_str(text).map(Some)
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.counts.contains_key(name)
    }

    pub(super) fn repeats(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 1)
    }

    /// The first name that comes more than once.
    pub(super) fn repeated(&self) -> Option<&str> {
        self.iter().map(|(name, _)| name).find(|name| self.repeats(name))
    }

    /// The value of this name as JSON text.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.iter().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// All but these.
    pub(super) fn others(&self, known: &[&str]) -> Vec<(String, RawJson)> {
        let others = self.iter().filter(|(name, _)| !known.contains(name));
        // The text was read as JSON before, so that each value is valid.
        others
            .filter_map(|(name, value)| Some((name.to_owned(), RawJson::from_text(value.to_owned()).ok()?)))
            .collect()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let (mut members, mut counts) = (Vec::new(), HashMap::<String, usize>::new());
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            *counts.entry(name.clone()).or_default() += 1;
            members.push((name, value));
        }
        Ok(Members { members, counts })
    }
}
