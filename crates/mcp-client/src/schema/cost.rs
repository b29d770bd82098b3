//! How much work it is to check a value against a schema, counted before it is done.
//!
//! References can make a small schema meet each part of a value exponentially often: two references to the schema above, side by
//! side, double the work with each level of the value. So each pair of a subschema and a part of the value is visited once, and
//! remembers how often a checker that remembers nothing would do something below it. The count takes every branch, and so is
//! rather too high than too low.
//!
//! Counting must not be work without bound either. What a subschema applies is found out once, where it is met first, and not
//! with each part of the value that it meets: members that apply nothing are as many as fit into a schema, and to find what a
//! reference means can take a walk through all of it.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::SchemaLimits;
use super::error::SchemaError;
use super::targets::Targets;
use crate::error::as_u64;

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) evaluations: u64,
    pub(super) depth: usize,
    /// What counting took: visits, and members of the schema and of the value that were looked at for them.
    pub(super) steps: u64,
}

/// Counts the work.
pub(super) fn of(schema: &Value, value: &Value, limits: &SchemaLimits) -> Result<Cost, SchemaError> {
    let mut count = Count {
        targets: Targets::new(schema),
        limits,
        applied: HashMap::new(),
        known: HashMap::new(),
        visits: 0,
        looked_at: 0,
        deepest: 0,
    };
    let evaluations = count.pair(schema, value, 1)?;
    let steps = count.visits.saturating_add(count.looked_at).saturating_add(count.targets.steps());
    Ok(Cost { evaluations, depth: count.deepest, steps })
}

struct Count<'a> {
    targets: Targets<'a>,
    limits: &'a SchemaLimits,
    /// What a subschema applies, by its address.
    applied: HashMap<usize, Rc<[Applied<'a>]>>,
    /// By the addresses of a subschema and a part of the value; `None` while it is being counted.
    known: HashMap<(usize, usize), Option<u64>>,
    visits: u64,
    /// Members that were looked at beside the visits.
    looked_at: u64,
    deepest: usize,
}

/// A member of a schema that applies schemas.
enum Applied<'a> {
    /// To the same part of the value.
    InPlace(Vec<&'a Value>),
    /// What a reference means.
    Referred(Rc<[&'a Value]>),
    /// To what is below it, as the keyword says.
    Below(&'a str, &'a Value),
}

/// So many members that are looked at count as a visit.
const LOOKS_PER_VISIT: u64 = 16;

pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Count<'a> {
    fn pair(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Result<u64, SchemaError> {
        let limits = self.limits;
        self.visits += 1;
        self.check_work()?;
        let Value::Object(members) = schema else { return Ok(1) };
        if depth > limits.max_evaluation_depth {
            return Err(SchemaError::limit("max_evaluation_depth", as_u64(limits.max_evaluation_depth)));
        }
        self.deepest = self.deepest.max(depth);
        let key = (address(schema), address(value));
        match self.known.insert(key, None) {
            Some(None) => {
                return Err(SchemaError::unusable("it refers to itself without descending into the value"));
            }
            Some(Some(count)) => {
                self.known.insert(key, Some(count));
                return Ok(count);
            }
            None => {}
        }
        let applied = self.applied(schema, members);
        let count = own_cost(members, value)
            .saturating_add(self.in_place(members, &applied, value, depth)?)
            .saturating_add(self.below(&applied, value, depth)?);
        if count > limits.max_evaluations {
            return Err(SchemaError::limit("max_evaluations", limits.max_evaluations));
        }
        self.known.insert(key, Some(count));
        Ok(count)
    }

    /// Visits, and what else was looked at, are bounded together.
    fn check_work(&self) -> Result<(), SchemaError> {
        let limit = self.limits.max_evaluations;
        if self.visits.saturating_add(self.looked_at / LOOKS_PER_VISIT) > limit {
            return Err(SchemaError::limit("max_evaluations", limit));
        }
        Ok(())
    }

    /// What a subschema applies, found out once.
    fn applied(&mut self, schema: &'a Value, members: &'a Map<String, Value>) -> Rc<[Applied<'a>]> {
        if let Some(applied) = self.applied.get(&address(schema)) {
            return Rc::clone(applied);
        }
        // No more in all than the schema has members.
        self.looked_at = self.looked_at.saturating_add(as_u64(members.len()));
        let applied: Rc<[Applied<'a>]> = members
            .iter()
            .filter_map(|(key, member)| match (key.as_str(), member) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    Some(Applied::InPlace(schemas.iter().collect()))
                }
                ("not" | "if" | "then" | "else" | "contentSchema", schema) => {
                    Some(Applied::InPlace(vec![schema]))
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    Some(Applied::InPlace(schemas.values().collect()))
                }
                ("$ref", Value::String(target)) => Some(Applied::Referred(self.targets.of(target))),
                ("$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    Some(Applied::Referred(self.targets.dynamic(target)))
                }
                (
                    key @ ("properties"
                    | "patternProperties"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "items"
                    | "prefixItems"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"),
                    member,
                ) => Some(Applied::Below(key, member)),
                _ => None,
            })
            .collect();
        self.applied.insert(address(schema), Rc::clone(&applied));
        applied
    }

    /// The subschemas that meet the same part of the value.
    fn in_place(
        &mut self,
        members: &'a Map<String, Value>,
        applied: &[Applied<'a>],
        value: &'a Value,
        depth: usize,
    ) -> Result<u64, SchemaError> {
        let mut count: u64 = 0;
        for applied in applied {
            let met: &[&'a Value] = match applied {
                Applied::InPlace(schemas) => schemas,
                Applied::Referred(schemas) => schemas,
                Applied::Below(..) => continue,
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
    fn below(&mut self, applied: &[Applied<'a>], value: &'a Value, depth: usize) -> Result<u64, SchemaError> {
        let mut count: u64 = 0;
        for applied in applied {
            let Applied::Below(key, member) = *applied else { continue };
            if let ("properties", Value::Object(schemas), Value::Object(parts)) = (key, member, value) {
                self.looked_at = self.looked_at.saturating_add(as_u64(schemas.len().min(parts.len())));
                self.check_work()?;
            }
            let mut meet = |schema: &'a Value, part: &'a Value, times: usize| {
                let once = self.pair(schema, part, depth + 1)?;
                count = count.saturating_add(once.saturating_mul(as_u64(times)));
                Ok::<(), SchemaError>(())
            };
            match (key, member, value) {
                ("properties", Value::Object(schemas), Value::Object(parts)) => {
                    // The fewer are gone through, the others looked up.
                    if parts.len() <= schemas.len() {
                        let mut both =
                            parts.iter().filter_map(|(name, part)| Some((schemas.get(name)?, part)));
                        both.try_for_each(|(schema, part)| meet(schema, part, 1))?;
                    } else {
                        let mut both =
                            schemas.iter().filter_map(|(name, schema)| Some((schema, parts.get(name)?)));
                        both.try_for_each(|(schema, part)| meet(schema, part, 1))?;
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
