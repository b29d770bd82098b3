//! A small checker for the keywords that the specification's schemas use. It knows no other, and says so.
//!
//! A JSON Schema library would check "allowed"; these tests also need "nothing beyond": a member that the revision
//! does not define is a fault here unless the schema says `additionalProperties` or the place is open by its nature
//! (`_meta`). `format` is not checked.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mcp_model::ProtocolVersion;
use serde_json::{Map, Value};

pub(crate) fn vectors(version: ProtocolVersion) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors/spec").join(version.as_str())
}

pub(crate) struct Schema {
    definitions: Map<String, Value>,
}

impl Schema {
    pub(crate) fn of(version: ProtocolVersion) -> Self {
        let text = std::fs::read_to_string(vectors(version).join("schema.json")).unwrap();
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let key = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        let Value::Object(definitions) = schema[key].take() else { panic!("no definitions") };
        Self { definitions }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    pub(crate) fn definition(&self, name: &str) -> &Value {
        self.definitions.get(name).unwrap_or_else(|| panic!("no definition {name}"))
    }

    /// Whether the value is what the definition says, and holds nothing beyond it.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        self.value(self.definition(name), value, name)
    }

    fn value(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let Some(schema) = schema.as_object() else { return Ok(()) };
        for (keyword, rule) in schema {
            self.keyword(keyword, rule, value, path)?;
        }
        let Some(members) = value.as_object() else { return Ok(()) };
        let Some(known) = self.known_members(schema) else { return Ok(()) };
        match members.keys().find(|name| !known.contains(name.as_str())) {
            Some(name) if !path.ends_with("_meta") => Err(format!("{path}: `{name}` is not defined")),
            _ => Ok(()),
        }
    }

    fn keyword(&self, keyword: &str, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
        let holds = match keyword {
            "$ref" => return self.value(self.target(rule), value, path),
            "allOf" => return self.all_of(rule, value, path),
            "anyOf" => return self.any_of(rule, value, path),
            "properties" => return self.properties(rule, value, path),
            "additionalProperties" | "format" | "default" | "description" | "$schema" => true,
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, item, &format!("{path}/{index}"))?;
                }
                true
            }
            "required" => {
                let mut names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let missing = names.find(|name| value.is_object() && value.get(name).is_none());
                return missing.map_or(Ok(()), |name| Err(format!("{path}: `{name}` is missing")));
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|name| is_a(name, value)),
                name => is_a(name, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
            unknown => panic!("{path}: keyword {unknown} is not known to this checker"),
        };
        if holds { Ok(()) } else { Err(format!("{path}: {value} breaks {keyword} {rule}")) }
    }

    fn target(&self, reference: &Value) -> &Value {
        self.definition(reference.as_str().unwrap().rsplit('/').next().unwrap())
    }

    fn properties(&self, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
        for (name, schema) in rule.as_object().unwrap() {
            if let Some(member) = value.get(name) {
                self.value(schema, member, &format!("{path}/{name}"))?;
            }
        }
        Ok(())
    }

    fn any_of(&self, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
        let mut reasons = Vec::new();
        for branch in rule.as_array().unwrap() {
            match self.value(branch, value, path) {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(format!("{path}: no branch of anyOf fits: [{}]", reasons.join("; ")))
    }

    /// The branches of `allOf` are open towards each other, so only the whole is held against unknown members.
    fn all_of(&self, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
        for branch in rule.as_array().unwrap() {
            let schema = branch.get("$ref").map_or(branch, |reference| self.target(reference));
            for (keyword, rule) in schema.as_object().unwrap() {
                self.keyword(keyword, rule, value, path)?;
            }
        }
        Ok(())
    }

    /// The members that the schema defines itself; `None` when it is open or leaves that to others.
    fn known_members<'a>(&'a self, schema: &'a Map<String, Value>) -> Option<BTreeSet<&'a str>> {
        if schema.contains_key("additionalProperties") {
            return None;
        }
        let mut known: Option<BTreeSet<&str>> = None;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            known.get_or_insert_default().extend(properties.keys().map(String::as_str));
        }
        for branch in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let branch = branch.get("$ref").map_or(branch, |reference| self.target(reference));
            known.get_or_insert_default().extend(self.known_members(branch.as_object()?)?);
        }
        known
    }
}

fn is_a(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("type {other} is not known to this checker"),
    }
}

#[test]
fn the_checker_refuses_what_it_should() {
    let schema = Schema::of(ProtocolVersion::V2026_07_28);
    let check = |name: &str, json: &str, expected: Option<&str>| {
        let verdict = schema.check(name, &serde_json::from_str(json).unwrap());
        match (expected, &verdict) {
            (None, Ok(())) => {}
            (Some(part), Err(reason)) if reason.contains(part) => {}
            _ => panic!("{name} {json}: {verdict:?}"),
        }
    };
    check("Root", r#"{"uri":"file:///a"}"#, None);
    check("Root", r#"{"name":"a"}"#, Some("`uri` is missing"));
    check("Root", r#"{"uri":1}"#, Some("type"));
    check("Root", r#"{"uri":"a:b","extra":1}"#, Some("`extra` is not defined"));
    check("Root", r#"{"uri":"a:b","_meta":{"extra":1}}"#, None);
    check("ClientCapabilities", r#"{"roots":{"listChanged":true}}"#, Some("`listChanged` is not defined"));
    check("ClientCapabilities", r#"{"tasks":{}}"#, Some("`tasks` is not defined"));
    check("SamplingMessage", r#"{"role":"user","content":{"type":"text","text":"x"}}"#, None);
    check("SamplingMessage", r#"{"role":"user","content":{"type":"video"}}"#, Some("anyOf"));
    check("Role", "\"narrator\"", Some("enum"));
    check("ModelPreferences", r#"{"costPriority":1.5}"#, Some("maximum"));
    check("UnsupportedProtocolVersionError", r#"{"jsonrpc":"2.0","error":{"code":1}}"#, Some("missing"));
    let schema = Schema::of(ProtocolVersion::V2025_11_25);
    let task = r#"{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":null}"#;
    schema.check("GetTaskResult", &serde_json::from_str(task).unwrap()).unwrap();
}
