//! The public interface of a crate as a list of lines, and the foreign crates whose types are a part of it.
//!
//! Read from rustdoc's JSON, which the nightly toolchain alone writes. The lines are committed as `public-api.txt` beside the crate's
//! manifest, so that a change to the interface is a change that a reviewer sees.

mod render;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{self, Output};
use crate::support::{self, cargo};

/// A check of all dependencies, on a cold cache.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// The form of rustdoc's JSON that is understood here. Others mostly differ in what this does not look at.
const KNOWN_FORMATS: std::ops::RangeInclusive<u64> = 45..=65;
/// How deep modules and re-exports may nest.
const MAX_DEPTH: usize = 16;

/// What a crate shows.
#[derive(Debug, Default)]
pub(super) struct Api {
    /// One item a line, sorted.
    pub(super) lines: BTreeSet<String>,
    /// Foreign crates, with one item each that names a type of theirs.
    pub(super) foreign: BTreeMap<String, String>,
}

/// Whether the toolchain is there that writes rustdoc's JSON.
pub(super) fn toolchain() -> Result<(), String> {
    let mut command = cargo::nightly();
    command.arg("--version");
    if process::run(command, LIMIT, Output::Capture).end.is_success() {
        return Ok(());
    }
    Err("there is no nightly toolchain, which alone can list an interface".into())
}

/// Reads the interface of one package with all its features.
pub(super) fn of(package: &str) -> Result<Api, String> {
    let mut command = cargo::nightly();
    command.args(["rustdoc", "--quiet", "--package", package, "--lib", "--all-features"]);
    command.args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"]);
    let target = support::target_dir().join("api");
    command.env("CARGO_TARGET_DIR", &target);
    let finished = process::run(command, LIMIT, Output::Capture);
    if !finished.end.is_success() {
        return Err(format!(
            "cargo +nightly rustdoc: {}\n{}",
            finished.end,
            process::tail(&finished.stderr, 10)
        ));
    }
    let path = target.join("doc").join(package.replace('-', "_")).with_extension("json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("rustdoc's JSON: {error}"))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("rustdoc's JSON: {error}"))?;
    read(&json)
}

fn read(json: &Value) -> Result<Api, String> {
    let format = json.get("format_version").and_then(Value::as_u64).unwrap_or_default();
    if !KNOWN_FORMATS.contains(&format) {
        return Err(format!("rustdoc's JSON is of format {format}, which is not understood here"));
    }
    let missing = || "rustdoc's JSON has no root".to_owned();
    let root = json.get("root").map(key).ok_or_else(missing)?;
    let mut reader = Reader { json, api: Api::default() };
    reader.item(&root, "", 0);
    Ok(reader.api)
}

struct Reader<'a> {
    json: &'a Value,
    api: Api,
}

/// Ids are numbers, and keys of the index are text.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

impl<'a> Reader<'a> {
    fn find(&self, id: &str) -> Option<&'a Value> {
        self.json.get("index")?.get(id)
    }

    fn line(&mut self, line: String, of: &Value) {
        self.foreign_types(of, &line);
        self.api.lines.insert(line);
    }

    /// Everything that an item shows, below the path `above`.
    fn item(&mut self, id: &str, above: &str, depth: usize) {
        let Some(item) = self.find(id).filter(|_| depth < MAX_DEPTH) else { return };
        let name = item.get("name").and_then(Value::as_str);
        self.named(item, &join(above, name.unwrap_or_default()), above, depth);
    }

    fn named(&mut self, item: &'a Value, path: &str, above: &str, depth: usize) {
        let Some((kind, inner)) =
            item.get("inner").and_then(Value::as_object).and_then(|inner| inner.iter().next())
        else {
            return;
        };
        let generics = inner.get("generics").unwrap_or(&Value::Null);
        let open = if attrs(item).any(|attr| attr == "non_exhaustive") { " (non_exhaustive)" } else { "" };
        match kind.as_str() {
            "module" => self.items(inner.get("items"), path, depth),
            "use" => self.reexport(inner, above, depth),
            "function" => self.line(format!("{path}: {}", render::function(inner)), inner),
            "struct" => {
                self.line(
                    format!("struct {path}{}{}{open}", render::generics(generics), render::wheres(generics)),
                    generics,
                );
                let kind = inner.get("kind").unwrap_or(&Value::Null);
                let plain = kind.get("plain").and_then(|plain| plain.get("fields"));
                self.items(plain.or_else(|| kind.get("tuple")), path, depth);
                self.impls(inner.get("impls"), path, depth);
            }
            "enum" => {
                self.line(
                    format!("enum {path}{}{}{open}", render::generics(generics), render::wheres(generics)),
                    generics,
                );
                self.items(inner.get("variants"), path, depth);
                self.impls(inner.get("impls"), path, depth);
            }
            "variant" => {
                self.line(format!("{path}: variant{open}"), &Value::Null);
                let kind = inner.get("kind").unwrap_or(&Value::Null);
                let plain = kind.get("struct").and_then(|plain| plain.get("fields"));
                self.items(plain.or_else(|| kind.get("tuple")), path, depth);
            }
            "struct_field" => self.line(format!("{path}: {}", render::ty(inner)), inner),
            "trait" => {
                let bounds = render::bounds(inner.get("bounds").unwrap_or(&Value::Null));
                self.line(format!("trait {path}{}: {bounds}", render::generics(generics)), inner);
                self.items(inner.get("items"), path, depth);
            }
            "assoc_type" => {
                let bounds = render::bounds(inner.get("bounds").unwrap_or(&Value::Null));
                let of = inner.get("type").map(render::ty).unwrap_or_default();
                self.line(format!("{path}: type {of}: {bounds}"), inner);
            }
            "assoc_const" | "constant" | "static" | "type_alias" => {
                let of = inner.get("type").map(render::ty).unwrap_or_default();
                self.line(format!("{path}: {kind} {of}"), inner);
            }
            other => self.line(format!("{path}: {other}"), &Value::Null),
        }
    }

    fn items(&mut self, ids: Option<&Value>, path: &str, depth: usize) {
        for id in ids.and_then(Value::as_array).into_iter().flatten().filter(|id| !id.is_null()) {
            self.item(&key(id), path, depth + 1);
        }
    }

    /// Inherent methods, and the traits by name.
    fn impls(&mut self, ids: Option<&Value>, path: &str, depth: usize) {
        for id in ids.and_then(Value::as_array).into_iter().flatten() {
            let Some(of) = self.find(&key(id)).and_then(|item| item.get("inner")?.get("impl")) else {
                continue;
            };
            let is_set = |name: &str| {
                of.get(name).is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
            };
            match of.get("trait").filter(|one| !one.is_null()) {
                None => self.items(of.get("items"), path, depth),
                // Blanket implementations come from elsewhere; auto traits are kept, because losing one breaks users.
                Some(_) if is_set("blanket_impl") => {}
                Some(one) => {
                    let not = if is_set("is_negative") { "!" } else { "" };
                    self.line(format!("{path}: impl {not}{}", render::path(one)), &Value::Null);
                }
            }
        }
    }

    fn reexport(&mut self, of: &'a Value, above: &str, depth: usize) {
        let name = of.get("name").and_then(Value::as_str).unwrap_or_default();
        let target = of.get("id").filter(|id| !id.is_null()).and_then(|id| self.find(&key(id)));
        if of.get("is_glob").and_then(Value::as_bool) == Some(true) {
            let items = target.and_then(|item| item.get("inner")?.get("module")?.get("items"));
            return self.items(items, above, depth);
        }
        match target {
            Some(item) if depth < MAX_DEPTH => self.named(item, &join(above, name), above, depth + 1),
            _ => {
                let source = of.get("source").and_then(Value::as_str).unwrap_or_default();
                let line = format!("{}: use {source}", join(above, name));
                if let Some(foreign) = source.split("::").next() {
                    self.foreign(foreign, &line);
                }
                self.api.lines.insert(line);
            }
        }
    }

    fn foreign(&mut self, name: &str, line: &str) {
        self.api.foreign.entry(name.to_owned()).or_insert_with(|| line.to_owned());
    }

    /// Notes the crates of all types that a signature names.
    fn foreign_types(&mut self, of: &Value, line: &str) {
        match of {
            Value::Object(object) => {
                if let (Some(_), Some(id)) = (object.get("path"), object.get("id"))
                    && let Some(name) = self.crate_of(&key(id))
                {
                    self.foreign(&name, line);
                }
                for value in object.values() {
                    self.foreign_types(value, line);
                }
            }
            Value::Array(array) => {
                for value in array {
                    self.foreign_types(value, line);
                }
            }
            _ => {}
        }
    }

    /// The crate that an item comes from, unless it is this one.
    fn crate_of(&self, id: &str) -> Option<String> {
        let number =
            self.json.get("paths")?.get(id)?.get("crate_id")?.as_u64().filter(|number| *number != 0)?;
        let foreign = self.json.get("external_crates")?.get(number.to_string())?;
        Some(foreign.get("name")?.as_str()?.to_owned())
    }
}

fn attrs(item: &Value) -> impl Iterator<Item = &str> {
    item.get("attrs").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}::{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_listed_under_the_path_that_users_write() {
        let json = json!({
            "format_version": 57,
            "root": 0,
            "index": {
                "0": { "name": "a", "attrs": [], "inner": { "module": { "items": [1] } } },
                "1": { "name": null, "attrs": [], "inner": { "use": { "source": "b::S", "name": "S", "id": 2, "is_glob": false } } },
                "2": { "name": "S", "attrs": ["non_exhaustive"], "inner": { "struct": {
                    "kind": { "plain": { "fields": [3] } }, "generics": { "params": [], "where_predicates": [] }, "impls": [4, 5] } } },
                "3": { "name": "at", "attrs": [], "inner": { "struct_field": { "resolved_path": { "path": "Url", "id": 9, "args": null } } } },
                "4": { "name": null, "attrs": [], "inner": { "impl": { "trait": { "path": "Clone", "id": 8, "args": null }, "items": [] } } },
                "5": { "name": null, "attrs": [], "inner": { "impl": { "trait": null, "items": [6] } } },
                "6": { "name": "new", "attrs": [], "inner": { "function": { "header": {}, "generics": {}, "sig": {
                    "inputs": [], "output": { "generic": "Self" } } } } }
            },
            "paths": { "9": { "crate_id": 7 } },
            "external_crates": { "7": { "name": "url" } }
        });
        let api = read(&json).unwrap();
        let lines: Vec<&str> = api.lines.iter().map(String::as_str).collect();
        assert_eq!(
            lines,
            ["a::S: impl Clone", "a::S::at: Url", "a::S::new: fn() -> Self", "struct a::S (non_exhaustive)"]
        );
        assert_eq!(api.foreign.keys().collect::<Vec<_>>(), ["url"]);
    }

    #[test]
    fn a_form_that_is_not_known_is_an_error() {
        assert!(read(&json!({ "format_version": 3, "root": 0 })).unwrap_err().contains('3'));
    }
}
