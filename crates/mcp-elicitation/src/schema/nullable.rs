//! The relaxation for servers that write "this or null" for an optional field.

use serde_json::value::RawValue;

use crate::json::{Kind, Members, is_string, kind};

/// The members of the definition behind a nullable one, or `None` for a definition that is not nullable.
///
/// `type: ["string", "null"]` becomes `type: "string"`, `anyOf: [{...}, {"type": "null"}]` (and `oneOf`) becomes
/// the other alternative with what stands around it, and `default: null` is no default.
pub(super) fn unwrapped<'a>(members: &Members<'a>) -> Option<Members<'a>> {
    let has_null_default = members.get("default").is_some_and(|raw| kind(raw) == Kind::Null);
    let unwrapped =
        typed(members).or_else(|| ["anyOf", "oneOf"].iter().find_map(|name| either(members, name)));
    let unwrapped = unwrapped?;
    Some(if has_null_default { unwrapped.without(&["default"]) } else { unwrapped })
}

fn typed<'a>(members: &Members<'a>) -> Option<Members<'a>> {
    let types: Vec<&'a RawValue> = serde_json::from_str(members.get("type")?.get()).ok()?;
    let other = other_than(&types, |raw| is_string(raw, "null"))?;
    Some(members.overlaid([("type".to_owned(), other)]))
}

fn either<'a>(members: &Members<'a>, keyword: &str) -> Option<Members<'a>> {
    let alternatives: Vec<&'a RawValue> = serde_json::from_str(members.get(keyword)?.get()).ok()?;
    let is_null = |raw: &RawValue| {
        let members: Option<Members<'_>> = serde_json::from_str(raw.get()).ok();
        members.is_some_and(|members| members.get("type").is_some_and(|raw| is_string(raw, "null")))
    };
    let other: Members<'a> = serde_json::from_str(other_than(&alternatives, is_null)?.get()).ok()?;
    if other.duplicate.is_some() {
        return None;
    }
    let around = members.without(&[keyword]);
    Some(other.overlaid(around.iter().map(|(name, value)| (name.to_owned(), value))))
}

/// The other one of two, of which exactly one is null.
fn other_than<'a>(two: &[&'a RawValue], is_null: impl Fn(&RawValue) -> bool) -> Option<&'a RawValue> {
    match two {
        [a, b] => match (is_null(a), is_null(b)) {
            (true, false) => Some(b),
            (false, true) => Some(a),
            _ => None,
        },
        _ => None,
    }
}
