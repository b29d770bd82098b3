//! What is looked at in a schema before it is compiled: its size, and that it refers to nothing outside of itself.

use serde_json::Value;

use super::SchemaLimits;
use super::error::SchemaError;
use crate::error::as_u64;

/// The dialects that are known, without the fragment that some write.
const DIALECTS: &[&str] = &[
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];

/// Reads a schema and checks everything that can be checked without knowing the value.
pub(super) fn read(text: &str, limits: &SchemaLimits) -> Result<Value, SchemaError> {
    if text.len() > limits.max_schema_bytes {
        return Err(SchemaError::limit("max_schema_bytes", as_u64(limits.max_schema_bytes)));
    }
    let schema: Value = serde_json::from_str(text)
        .map_err(|_| SchemaError::unusable("it is no JSON, or nests too deeply"))?;
    match &schema {
        Value::Object(members) => check_dialect(members.get("$schema"))?,
        Value::Bool(_) => {}
        _ => return Err(SchemaError::unusable("it is neither an object nor a boolean")),
    }
    let mut walk = Walk { limits, objects: 0, patterns: 0 };
    walk.visit(&schema, 1)?;
    Ok(schema)
}

/// protocol:J-35: a dialect that is not known is said to be, and not taken for another one.
fn check_dialect(declared: Option<&Value>) -> Result<(), SchemaError> {
    let Some(declared) = declared else { return Ok(()) };
    let known = declared.as_str().is_some_and(|uri| DIALECTS.contains(&uri.strip_suffix('#').unwrap_or(uri)));
    if known { Ok(()) } else { Err(SchemaError::unusable("its dialect ($schema) is not known")) }
}

struct Walk<'a> {
    limits: &'a SchemaLimits,
    objects: usize,
    patterns: usize,
}

impl Walk<'_> {
    /// The depth is bounded before it is gone into.
    fn visit(&mut self, value: &Value, depth: usize) -> Result<(), SchemaError> {
        let limits = self.limits;
        if depth > limits.max_schema_depth {
            return Err(SchemaError::limit("max_schema_depth", as_u64(limits.max_schema_depth)));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, depth + 1)),
            Value::Object(members) => {
                self.objects += 1;
                if self.objects > limits.max_subschemas {
                    return Err(SchemaError::limit("max_subschemas", as_u64(limits.max_subschemas)));
                }
                for (key, value) in members {
                    self.patterns += match (key.as_str(), value) {
                        ("pattern", Value::String(_)) => 1,
                        ("patternProperties", Value::Object(patterns)) => patterns.len(),
                        _ => 0,
                    };
                    if self.patterns > limits.max_patterns {
                        return Err(SchemaError::limit("max_patterns", as_u64(limits.max_patterns)));
                    }
                    check_reference(key, value, depth)?;
                    // What stands here is data and no schema.
                    if !matches!(key.as_str(), "const" | "enum" | "default" | "examples") {
                        self.visit(value, depth + 1)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// protocol:J-36, protocol:J-37: nothing outside of the schema is ever fetched, and a schema that needs it is not used.
fn check_reference(key: &str, value: &Value, depth: usize) -> Result<(), SchemaError> {
    let Value::String(target) = value else { return Ok(()) };
    match key {
        "$ref" | "$dynamicRef" | "$recursiveRef" if !target.starts_with('#') => {
            Err(SchemaError::unusable("it refers to something outside of itself, which is never fetched"))
        }
        // It would change what the references below it mean.
        "$id" if depth > 1 => {
            Err(SchemaError::unusable("it has a schema with an identifier of its own within"))
        }
        _ => Ok(()),
    }
}
