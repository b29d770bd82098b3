//! How much work it is to check a value against a schema, counted before it is done.
//!
//! References can make a small schema meet each part of a value exponentially often: two references to the schema above, side by
//! side, double the work with each level of the value. So each pair of a subschema and a part of the value is visited once, and
//! remembers how often a checker that remembers nothing would do something below it. The count takes every branch, and so is
//! rather too high than too low.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaLimits;
use super::error::SchemaError;
use crate::error::as_u64;

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) evaluations: u64,
    pub(super) depth: usize,
}

/// Counts the work.
pub(super) fn of(schema: &Value, value: &Value, limits: &SchemaLimits) -> Result<Cost, SchemaError> {
    let mut count = Count { root: schema, limits, known: HashMap::new(), visits: 0, deepest: 0 };
    let evaluations = count.pair(schema, value, 1)?;
    Ok(Cost { evaluations, depth: count.deepest })
}

struct Count<'a> {
    root: &'a Value,
    limits: &'a SchemaLimits,
    /// By the addresses of a subschema and a part of the value; `None` while it is being counted.
    known: HashMap<(usize, usize), Option<u64>>,
    visits: u64,
    deepest: usize,
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Count<'a> {
    fn pair(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Result<u64, SchemaError> {
        let limits = self.limits;
        self.visits += 1;
        if self.visits > limits.max_evaluations {
            return Err(SchemaError::limit("max_evaluations", limits.max_evaluations));
        }
        let Value::Object(members) = schema else { return Ok(1) };
        if depth > limits.max_evaluation_depth {
            return Err(SchemaError::limit("max_evaluation_depth", as_u64(limits.max_evaluation_depth)));
        }
        self.deepest = self.deepest.max(depth);
        let key = (address(schema), address(value));
        match self.known.insert(key, None) {
            Some(None) => {
                return Err(SchemaError::unusable("it refers to itself without going into the value"));
            }
            Some(Some(count)) => {
                self.known.insert(key, Some(count));
                return Ok(count);
            }
            None => {}
        }
        let count = own_cost(members, value)
            .saturating_add(self.in_place(members, value, depth)?)
            .saturating_add(self.below(members, value, depth)?);
        if count > limits.max_evaluations {
            return Err(SchemaError::limit("max_evaluations", limits.max_evaluations));
        }
        self.known.insert(key, Some(count));
        Ok(count)
    }

    /// The subschemas that meet the same part of the value.
    fn in_place(
        &mut self,
        members: &'a Map<String, Value>,
        value: &'a Value,
        depth: usize,
    ) -> Result<u64, SchemaError> {
        let mut count: u64 = 0;
        for (key, member) in members {
            let met: Vec<&'a Value> = match (key.as_str(), member) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter().collect(),
                ("not" | "if" | "then" | "else" | "contentSchema", schema) => vec![schema],
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => schemas.values().collect(),
                ("$ref", Value::String(target)) => self.target(target).into_iter().collect(),
                ("$dynamicRef" | "$recursiveRef", Value::String(target)) => self.dynamic_targets(target),
                _ => continue,
            };
            for schema in met {
                count = count.saturating_add(self.pair(schema, value, depth + 1)?);
            }
        }
        // What was not evaluated is found by evaluating once more, for the members and for the items.
        let again = members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems");
        Ok(if again { count.saturating_mul(3) } else { count })
    }

    /// The subschemas that meet the parts of the value.
    fn below(
        &mut self,
        members: &'a Map<String, Value>,
        value: &'a Value,
        depth: usize,
    ) -> Result<u64, SchemaError> {
        let mut count: u64 = 0;
        for (key, member) in members {
            let mut meet = |schema: &'a Value, part: &'a Value, times: usize| {
                let once = self.pair(schema, part, depth + 1)?;
                count = count.saturating_add(once.saturating_mul(as_u64(times)));
                Ok::<(), SchemaError>(())
            };
            match (key.as_str(), member, value) {
                ("properties", Value::Object(schemas), Value::Object(parts)) => {
                    for (name, part) in parts {
                        if let Some(schema) = schemas.get(name) {
                            meet(schema, part, 1)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(schemas), Value::Object(parts)) => {
                    for schema in schemas.values() {
                        parts.values().try_for_each(|part| meet(schema, part, 1))?;
                    }
                }
                ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(parts)) => {
                    parts.values().try_for_each(|part| meet(schema, part, 1))?;
                }
                ("propertyNames", schema, Value::Object(parts)) => meet(schema, &Value::Null, parts.len())?,
                ("items" | "prefixItems", Value::Array(schemas), Value::Array(parts)) => {
                    schemas.iter().zip(parts).try_for_each(|(schema, part)| meet(schema, part, 1))?;
                }
                (
                    "items" | "additionalItems" | "unevaluatedItems" | "contains",
                    schema,
                    Value::Array(parts),
                ) => {
                    parts.iter().try_for_each(|part| meet(schema, part, 1))?;
                }
                _ => {}
            }
        }
        Ok(count)
    }

    /// What a reference within the schema means; `None` where that is nothing, which compiling finds out.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&decode(fragment));
        }
        let mut found = Vec::new();
        anchors(self.root, fragment, &mut found);
        found.first().copied()
    }

    /// Every schema that a dynamic reference could mean: which one depends on the way to it.
    fn dynamic_targets(&self, reference: &str) -> Vec<&'a Value> {
        let mut found: Vec<&'a Value> = self.target(reference).into_iter().collect();
        if let Some(name) =
            reference.strip_prefix('#').filter(|name| !name.is_empty() && !name.starts_with('/'))
        {
            anchors(self.root, name, &mut found);
            found.sort_by_key(|schema| address(schema));
            found.dedup_by_key(|schema| address(schema));
        }
        found
    }
}

/// The schemas that have this name.
fn anchors<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| anchors(item, name, found)),
        Value::Object(members) => {
            // The last two are how older dialects write it.
            let is_named = |key: &str, name: &str| members.get(key).and_then(Value::as_str) == Some(name);
            let old = format!("#{name}");
            if is_named("$anchor", name)
                || is_named("$dynamicAnchor", name)
                || is_named("$id", &old)
                || is_named("id", &old)
            {
                found.push(value);
            }
            members.values().for_each(|member| anchors(member, name, found));
        }
        _ => {}
    }
}

/// What a subschema does by itself.
fn own_cost(members: &Map<String, Value>, value: &Value) -> u64 {
    let mut cost = 1;
    let length = |key: &str| match members.get(key) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(items)) => items.len(),
        _ => 0,
    };
    cost += length("enum") + length("required") + length("dependentRequired");
    match value {
        Value::Array(items) if members.get("uniqueItems") == Some(&Value::Bool(true)) => cost += items.len(),
        Value::Object(parts) => {
            cost = cost.saturating_add(length("patternProperties").saturating_mul(parts.len()))
        }
        Value::String(text) if members.contains_key("pattern") => cost += text.len() / 64,
        _ => {}
    }
    as_u64(cost)
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
