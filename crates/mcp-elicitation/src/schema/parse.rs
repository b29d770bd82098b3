//! Reads a `requestedSchema`, and refuses what is outside the flat subset.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{
    BooleanField, Choice, Field, FieldKind, FormSchema, Format, MultiSelectField, NumberField, SelectField,
    StringField, nullable,
};
use crate::{
    Rule,
    json::{Kind, Members, is_string, kind},
    number,
    path::Path,
    reader::Reader,
    text,
};

/// Keywords that bring in other schemas. Ignoring one would let answers pass that the server must refuse.
const FOREIGN: [&str; 15] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "unevaluatedProperties",
];

impl FormSchema {
    /// Reads a schema, which is of use if the reader has noted no violation; `None` means that it has noted one.
    pub(crate) fn read(reader: &mut Reader<'_>, raw: &RawValue, path: &Path<'_>) -> Option<Self> {
        let members = reader.object(raw, path)?;
        refuse_foreign(reader, &members, path, &[]);
        match members.get("type") {
            None => reader.violate(&path.name("type"), Rule::Required, "the schema must have a `type`"),
            Some(raw) if is_string(raw, "object") => {}
            Some(_) => reader.violate(&path.name("type"), Rule::Type, "the schema's type must be \"object\""),
        }
        if let Some(raw) = members.get("$schema") {
            reader.is_kind(raw, Kind::String, &path.name("$schema"));
        }
        let closed = read_additional_properties(reader, &members, path);
        let Some(properties) = members.get("properties") else {
            reader.violate(&path.name("properties"), Rule::Required, "the schema must have `properties`");
            return None;
        };
        let properties_path = path.name("properties");
        let properties = reader.object(properties, &properties_path)?;
        let limit = reader.rules.limits.max_properties;
        if properties.len() > limit {
            let message = format!("{} properties exceed the limit of {limit}", properties.len());
            reader.violate(&properties_path, Rule::Limit, message);
            return None;
        }
        let required = read_required(reader, &members, &properties, path);
        let mut fields = Vec::with_capacity(properties.len());
        for (name, raw) in properties.iter() {
            let required = required.iter().any(|r| r == name);
            if let Some(field) = read_field(reader, name, raw, required, &properties_path.name(name)) {
                fields.push(field);
            }
        }
        Some(Self { fields, closed, raw: raw.to_owned() })
    }
}

/// Notes every foreign keyword, and says whether there was one.
fn refuse_foreign(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>, allowed: &[&str]) -> bool {
    let mut refused = false;
    for keyword in FOREIGN {
        if !allowed.contains(&keyword) && members.get(keyword).is_some() {
            let message = format!("`{keyword}` is outside the flat schema subset of elicitation");
            reader.violate(&path.name(keyword), Rule::Subset, message);
            refused = true;
        }
    }
    refused
}

fn read_additional_properties(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> bool {
    let Some(raw) = members.get("additionalProperties") else {
        return false;
    };
    let path = path.name("additionalProperties");
    match kind(raw) {
        Kind::Boolean => raw.get() == "false",
        Kind::Object => {
            if reader.object(raw, &path).is_some_and(|schema| schema.len() > 0) {
                let message = "a schema for further properties is outside the flat subset of elicitation";
                reader.violate(&path, Rule::Subset, message);
            }
            false
        }
        other => {
            reader.violate(&path, Rule::Type, format!("must be a boolean, not {}", other.as_str()));
            false
        }
    }
}

fn read_required(
    reader: &mut Reader<'_>,
    members: &Members<'_>,
    properties: &Members<'_>,
    path: &Path<'_>,
) -> Vec<String> {
    let Some(raw) = members.get("required") else {
        return Vec::new();
    };
    let path = path.name("required");
    let mut names = Vec::new();
    let items = reader.array(raw, &path).unwrap_or_default();
    let limit = reader.rules.limits.max_properties;
    if items.len() > limit {
        reader.violate(&path, Rule::Limit, format!("{} names exceed the limit of {limit}", items.len()));
        return names;
    }
    for (index, item) in items.into_iter().enumerate() {
        let path = path.index(index);
        let Some(name) = reader.string(item, &path, reader.rules.limits.max_name_chars) else {
            continue;
        };
        // No form has a place to type the value of a property that is not described.
        if properties.get(&name).is_none() {
            reader.violate(&path, Rule::Required, "the required name is not among the properties");
        }
        names.push(name);
    }
    names
}

fn read_field(
    reader: &mut Reader<'_>,
    name: &str,
    raw: &RawValue,
    required: bool,
    path: &Path<'_>,
) -> Option<Field> {
    let limit = reader.rules.limits.max_name_chars;
    if name.chars().count() > limit {
        reader.violate(path, Rule::Limit, format!("the property's name exceeds {limit} characters"));
        return None;
    }
    let members = reader.object(raw, path)?;
    let unwrapped = if reader.rules.allow_nullable_fields { nullable::unwrapped(&members) } else { None };
    let members = unwrapped.unwrap_or(members);
    let max_text_chars = reader.rules.limits.max_text_chars;
    let title = members.get("title").and_then(|raw| reader.string(raw, &path.name("title"), max_text_chars));
    let title = title.and_then(shown_title);
    let description = reader.shown_text(&members, "description", path);
    let kind = read_kind(reader, &members, path)?;
    Some(Field { name: name.to_owned(), title, description, required, kind, raw: raw.to_owned() })
}

fn read_kind(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> Option<FieldKind> {
    let type_path = path.name("type");
    let Some(raw) = members.get("type") else {
        // A reference or a composition explains a missing type better than the missing type does.
        if !refuse_foreign(reader, members, path, &[]) {
            reader.violate(&type_path, Rule::Required, "the property must have a `type`");
        }
        return None;
    };
    if kind(raw) == Kind::Array {
        let message = "a list of types is outside the flat schema subset of elicitation";
        reader.violate(&type_path, Rule::Subset, message);
        return None;
    }
    let limit = reader.rules.limits.max_text_chars;
    let name = reader.string(raw, &type_path, limit)?;
    let titled = reader.rules.revision.has_titled_and_multi_select();
    match name.as_str() {
        "string" => {
            refuse_foreign(reader, members, path, if titled { &["oneOf"] } else { &[] });
            if members.get("enum").is_some() || (titled && members.get("oneOf").is_some()) {
                read_select(reader, members, path).map(FieldKind::Select)
            } else {
                Some(FieldKind::String(read_string(reader, members, path)))
            }
        }
        "number" | "integer" | "boolean" => {
            refuse_foreign(reader, members, path, &[]);
            if members.get("enum").is_some() {
                reader.violate(&path.name("enum"), Rule::Subset, "an enum must be of type \"string\"");
            }
            Some(if name == "boolean" {
                FieldKind::Boolean(read_boolean(reader, members, path))
            } else {
                FieldKind::Number(read_number(reader, members, name == "integer", path))
            })
        }
        "array" if titled => {
            refuse_foreign(reader, members, path, &[]);
            read_multi_select(reader, members, path).map(FieldKind::MultiSelect)
        }
        "array" => {
            let message = format!("arrays are not in the schema subset of {}", reader.rules.revision);
            reader.violate(&type_path, Rule::Subset, message);
            None
        }
        "object" => {
            reader.violate(&type_path, Rule::Subset, "nested objects are not allowed, forms are flat");
            None
        }
        "null" => {
            let message = "the null type is outside the flat schema subset of elicitation";
            reader.violate(&type_path, Rule::Subset, message);
            None
        }
        _ => {
            reader.violate(&type_path, Rule::Subset, "unknown type");
            None
        }
    }
}

/// The raw default, where the revision has defaults for this kind of field; elsewhere it is an unknown keyword.
fn default_of<'a>(reader: &Reader<'_>, members: &Members<'a>) -> Option<&'a RawValue> {
    if reader.rules.revision.has_all_defaults() { members.get("default") } else { None }
}

fn read_string(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> StringField {
    let text_limit = reader.rules.limits.max_text_chars;
    let format = members.get("format").and_then(|raw| reader.string(raw, &path.name("format"), text_limit));
    let format = format.map(|name| match name.as_str() {
        "email" => Format::Email,
        "uri" => Format::Uri,
        "date" => Format::Date,
        "date-time" => Format::DateTime,
        _ => Format::Other(text::sanitized(name)),
    });
    let default = default_of(reader, members).and_then(|raw| {
        let path = path.name("default");
        if kind(raw) == Kind::String {
            reader.string(raw, &path, text_limit)
        } else {
            reader.violate(&path, Rule::Default, "must be a string");
            None
        }
    });
    StringField {
        min_length: reader.count(members, "minLength", path),
        max_length: reader.count(members, "maxLength", path),
        format,
        pattern: reader.pattern(members, path),
        default,
    }
}

fn read_number(
    reader: &mut Reader<'_>,
    members: &Members<'_>,
    integer: bool,
    path: &Path<'_>,
) -> NumberField {
    let default = default_of(reader, members).and_then(|raw| {
        let default: Option<serde_json::Number> =
            if kind(raw) == Kind::Number { raw.get().parse().ok() } else { None };
        let default = default.filter(|number| !integer || number::is_integer(number));
        if default.is_none() {
            let message = if integer { "must be an integer" } else { "must be a number" };
            reader.violate(&path.name("default"), Rule::Default, message);
        }
        default
    });
    let exclusive = |reader: &mut Reader<'_>, name| {
        // Draft 4 had booleans here; they are unknown keywords today.
        let raw = members.get(name)?;
        if kind(raw) == Kind::Boolean { None } else { reader.number(members, name, path) }
    };
    NumberField {
        integer,
        minimum: reader.number(members, "minimum", path),
        maximum: reader.number(members, "maximum", path),
        exclusive_minimum: exclusive(reader, "exclusiveMinimum"),
        exclusive_maximum: exclusive(reader, "exclusiveMaximum"),
        default: default.map(|n| if integer { number::as_integer_literal(&n).unwrap_or(n) } else { n }),
    }
}

/// Every revision has a default for booleans.
fn read_boolean(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> BooleanField {
    let default = members.get("default").and_then(|raw| {
        if kind(raw) == Kind::Boolean {
            return Some(raw.get() == "true");
        }
        reader.violate(&path.name("default"), Rule::Default, "must be a boolean");
        None
    });
    BooleanField { default }
}

fn read_select(reader: &mut Reader<'_>, members: &Members<'_>, path: &Path<'_>) -> Option<SelectField> {
    let titled = reader.rules.revision.has_titled_and_multi_select();
    let choices = match (members.get("enum"), members.get("oneOf").filter(|_| titled)) {
        (Some(_), Some(_)) => {
            reader.violate(&path.name("oneOf"), Rule::Subset, "either `enum` or `oneOf`, not both");
            return None;
        }
        (Some(raw), None) => {
            let mut choices = read_values(reader, raw, &path.name("enum"))?;
            if let Some(raw) = members.get("enumNames") {
                read_enum_names(reader, raw, &mut choices, &path.name("enumNames"));
            }
            choices
        }
        (None, Some(raw)) => read_titled(reader, raw, &path.name("oneOf"))?,
        (None, None) => return None,
    };
    let default = default_of(reader, members).and_then(|raw| {
        let path = path.name("default");
        let value: Option<String> = serde_json::from_str(raw.get()).ok();
        let value = value.filter(|value| choices.iter().any(|choice| choice.value == *value));
        if value.is_none() {
            reader.violate(&path, Rule::Default, "must be one of the options");
        }
        value
    });
    Some(SelectField { choices, default })
}

fn read_multi_select(
    reader: &mut Reader<'_>,
    members: &Members<'_>,
    path: &Path<'_>,
) -> Option<MultiSelectField> {
    let min_items = reader.count(members, "minItems", path);
    let max_items = reader.count(members, "maxItems", path);
    let unique_items = reader.boolean(members, "uniqueItems", path).unwrap_or(false);
    let path_items = path.name("items");
    let Some(items) = members.get("items") else {
        reader.violate(&path_items, Rule::Required, "a multi-select must have `items`");
        return None;
    };
    let items = reader.object(items, &path_items)?;
    refuse_foreign(reader, &items, &path_items, &["anyOf", "oneOf"]);
    let item_type = items.get("type");
    if item_type.is_some_and(|raw| !is_string(raw, "string")) {
        let message = "items must be strings with options, arrays of anything else are not allowed";
        reader.violate(&path_items.name("type"), Rule::Subset, message);
        return None;
    }
    let choices = match (items.get("enum"), items.get("anyOf"), items.get("oneOf")) {
        (Some(raw), None, None) => {
            if item_type.is_none() {
                reader.violate(&path_items.name("type"), Rule::Required, "must be \"string\"");
            }
            read_values(reader, raw, &path_items.name("enum"))?
        }
        (None, Some(raw), None) => read_titled(reader, raw, &path_items.name("anyOf"))?,
        // The proposal that brought multi-select said `oneOf`, the schema says `anyOf`: both are in use.
        (None, None, Some(raw)) => read_titled(reader, raw, &path_items.name("oneOf"))?,
        (None, None, None) => {
            let message = "items must list options, free arrays are not allowed";
            reader.violate(&path_items, Rule::Subset, message);
            return None;
        }
        _ => {
            reader.violate(&path_items, Rule::Subset, "only one of `enum`, `anyOf` and `oneOf`");
            return None;
        }
    };
    let default = default_of(reader, members).and_then(|raw| {
        let values: Option<Vec<String>> = serde_json::from_str(raw.get()).ok();
        let options: HashSet<&str> = choices.iter().map(Choice::value).collect();
        let values = values.filter(|values| values.iter().all(|value| options.contains(value.as_str())));
        if values.is_none() {
            reader.violate(&path.name("default"), Rule::Default, "must be a list of options");
        }
        values
    });
    Some(MultiSelectField { choices, min_items, max_items, unique_items, default })
}

fn read_options<'a>(
    reader: &mut Reader<'_>,
    raw: &'a RawValue,
    path: &Path<'_>,
) -> Option<Vec<&'a RawValue>> {
    let items = reader.array(raw, path)?;
    let limit = reader.rules.limits.max_options;
    if items.len() > limit {
        reader.violate(path, Rule::Limit, format!("{} options exceed the limit of {limit}", items.len()));
        return None;
    }
    if items.is_empty() {
        reader.violate(path, Rule::Enum, "there is no option to choose");
        return None;
    }
    Some(items)
}

/// `enum: [...]`. `None` if any option was refused: its violation is noted.
fn read_values(reader: &mut Reader<'_>, raw: &RawValue, path: &Path<'_>) -> Option<Vec<Choice>> {
    let items = read_options(reader, raw, path)?;
    let limit = reader.rules.limits.max_option_chars;
    let mut choices = Vec::with_capacity(items.len());
    let count = items.len();
    for (index, item) in items.into_iter().enumerate() {
        if let Some(value) = reader.string(item, &path.index(index), limit) {
            choices.push(Choice { value, title: None });
        }
    }
    (choices.len() == count).then_some(choices)
}

/// `oneOf` or `anyOf`: `[{const, title}, ...]`. `None` if any option was refused: its violation is noted.
fn read_titled(reader: &mut Reader<'_>, raw: &RawValue, path: &Path<'_>) -> Option<Vec<Choice>> {
    let items = read_options(reader, raw, path)?;
    let limit = reader.rules.limits.max_option_chars;
    let mut choices = Vec::with_capacity(items.len());
    let count = items.len();
    for (index, item) in items.into_iter().enumerate() {
        let path = path.index(index);
        let Some(members) = reader.object(item, &path) else {
            continue;
        };
        let mut member = |name: &str| {
            let path = path.name(name);
            match members.get(name) {
                Some(raw) => reader.string(raw, &path, limit),
                None => {
                    reader.violate(&path, Rule::Required, format!("an option must have a `{name}`"));
                    None
                }
            }
        };
        let (value, title) = (member("const"), member("title"));
        if let (Some(value), Some(title)) = (value, title) {
            choices.push(Choice { value, title: shown_title(title) });
        }
    }
    (choices.len() == count).then_some(choices)
}

/// `enumNames`, the older way to give titles. A list of another length than `enum` does not say which title
/// belongs to which value, so the values themselves are shown then: a wrong title would mislead.
fn read_enum_names(reader: &mut Reader<'_>, raw: &RawValue, choices: &mut [Choice], path: &Path<'_>) {
    let Some(items) = reader.array(raw, path) else {
        return;
    };
    if items.len() != choices.len() {
        return;
    }
    let limit = reader.rules.limits.max_option_chars;
    for (index, (item, choice)) in items.into_iter().zip(choices).enumerate() {
        choice.title = reader.string(item, &path.index(index), limit).and_then(shown_title);
    }
}

/// A title as it is shown; an empty one is none.
fn shown_title(title: String) -> Option<String> {
    Some(text::sanitized_line(title)).filter(|title| !title.trim().is_empty())
}
