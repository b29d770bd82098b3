//! What the references within a schema mean.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::error::as_u64;

/// The targets of references, each found once: names are looked for in one walk through the schema.
pub(super) struct Targets<'a> {
    root: &'a Value,
    /// The schemas that have a name, in the order of the text; `None` until the first name is asked for.
    named: Option<HashMap<&'a str, Rc<[&'a Value]>>>,
    steps: u64,
}

impl<'a> Targets<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, named: None, steps: 0 }
    }

    /// How many references and objects were looked at.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// What a reference means; nothing where that is nothing, which compiling finds out.
    pub(super) fn of(&mut self, reference: &str) -> Rc<[&'a Value]> {
        let found = self.dynamic(reference);
        if found.len() <= 1 { found } else { found.iter().take(1).copied().collect() }
    }

    /// Every schema that a dynamic reference could mean: which one depends on the way to it.
    pub(super) fn dynamic(&mut self, reference: &str) -> Rc<[&'a Value]> {
        self.steps = self.steps.saturating_add(1);
        let Some(fragment) = reference.strip_prefix('#') else { return Rc::default() };
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decode(fragment)).into_iter().collect();
        }
        self.named().get(fragment).cloned().unwrap_or_default()
    }

    fn named(&mut self) -> &HashMap<&'a str, Rc<[&'a Value]>> {
        let (root, steps) = (self.root, &mut self.steps);
        self.named.get_or_insert_with(|| {
            let mut found = HashMap::new();
            name(root, &mut found, steps);
            found.into_iter().map(|(name, schemas)| (name, schemas.into())).collect()
        })
    }
}

/// Notes every schema that has a name.
fn name<'a>(value: &'a Value, found: &mut HashMap<&'a str, Vec<&'a Value>>, steps: &mut u64) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| name(item, found, steps)),
        Value::Object(members) => {
            *steps = steps.saturating_add(as_u64(members.len()));
            // The last two are how older dialects write it.
            for (key, is_old) in [("$anchor", false), ("$dynamicAnchor", false), ("$id", true), ("id", true)]
            {
                let written = members.get(key).and_then(Value::as_str);
                let named = if is_old { written.and_then(|id| id.strip_prefix('#')) } else { written };
                let Some(named) = named else { continue };
                let schemas = found.entry(named).or_default();
                if schemas.last().is_none_or(|last| !std::ptr::eq(*last, value)) {
                    schemas.push(value);
                }
            }
            members.values().for_each(|member| name(member, found, steps));
        }
        _ => {}
    }
}

/// The percent encoding of a fragment, taken away. What is no encoding stays, and then means nothing.
fn decode(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let encoded = match behind {
            [high, low, ..] if byte == b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                digit(*high).zip(digit(*low)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            }
            _ => None,
        };
        match encoded {
            Some(decoded) => {
                bytes.push(decoded);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
