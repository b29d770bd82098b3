//! The members of a JSON object in order, repetitions included, their values unread.

use std::collections::HashMap;
use std::fmt;

use mcp_jsonrpc::RawJson;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one object.
pub(super) struct Members<'a> {
    members: Vec<Member<'a>>,
    /// How often each name comes.
    counts: HashMap<String, usize>,
}

/// One member of an object.
pub(super) struct Member<'a> {
    /// The name as the JSON text writes it where it is no text.
    pub(super) name: String,
    /// The name is text. One with an escape for half a surrogate pair is JSON (RFC 8259 section 8.2) and no text.
    pub(super) is_text: bool,
    value: &'a RawValue,
}

impl<'a> Member<'a> {
    fn new(name: &RawValue, value: &'a RawValue) -> Self {
        let written = name.get();
        let (name, is_text) = match serde_json::from_str(written) {
            Ok(name) => (name, true),
            // Invariant: a name is written in quotes.
            Err(_) => (written.get(1..written.len() - 1).unwrap_or_default().to_owned(), false),
        };
        Self { name, is_text, value }
    }

    /// The value as JSON text.
    pub(super) fn value(&self) -> &'a str {
        self.value.get()
    }
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter()
    }

    fn texts(&self) -> impl Iterator<Item = &Member<'a>> {
        self.iter().filter(|member| member.is_text)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.counts.contains_key(name)
    }

    pub(super) fn repeats(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 1)
    }

    /// The first name that comes more than once.
    pub(super) fn repeated(&self) -> Option<&str> {
        self.texts().map(|member| member.name.as_str()).find(|name| self.repeats(name))
    }

    /// The value of this name as JSON text.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.texts().find(|member| member.name == name).map(Member::value)
    }

    /// All but these.
    pub(super) fn others(&self, known: &[&str]) -> Vec<(String, RawJson)> {
        let others = self.iter().filter(|member| !member.is_text || !known.contains(&member.name.as_str()));
        // The text was read as JSON before, so that each value is valid.
        others
            .filter_map(|member| {
                let value = RawJson::from_text(member.value().to_owned()).ok()?;
                Some((member.name.clone(), value))
            })
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
        while let Some((name, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            let member = Member::new(name, value);
            if member.is_text {
                *counts.entry(member.name.clone()).or_default() += 1;
            }
            members.push(member);
        }
        Ok(Members { members, counts })
    }
}
