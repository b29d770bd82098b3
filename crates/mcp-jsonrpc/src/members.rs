//! Picking members out of an object and changing some of them, the same code for all of them.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RawJson;

/// Reads the object in `text` to its end and leaves the text of each of the named members in its place.
pub(crate) fn read<'a>(
    text: &'a str,
    names: &[&str],
    found: &mut [Option<&'a str>],
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Members { names, found })?;
    deserializer.end()
}

/// Whether the object in `text`, which is read to its end, has a member of this name.
pub(crate) fn has(text: &str, name: &str) -> serde_json::Result<bool> {
    let mut found = false;
    each(text, &mut |key, _| found |= key == name)?;
    Ok(found)
}

/// The object in `text` with these members in place of its own of these names, or without those.
pub(crate) fn with(text: &str, changes: &[(&str, Option<&RawJson>)]) -> serde_json::Result<String> {
    let mut out = Object(String::with_capacity(text.len()));
    each(text, &mut |key, value| {
        if changes.iter().all(|(name, _)| *name != key) {
            out.push(key, value);
        }
    })?;
    for (name, value) in changes {
        if let Some(value) = value {
            out.push(name, value.as_str());
        }
    }
    out.0.push_str(if out.0.is_empty() { "{}" } else { "}" });
    Ok(out.0)
}

/// The text of an object that is not yet closed; empty before the first member.
struct Object(String);

impl Object {
    fn push(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&serde_json::Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(value);
    }
}

/// Shows every member of the object in `text`, which is read to its end.
fn each(text: &str, show: &mut dyn FnMut(&str, &str)) -> serde_json::Result<()> {
    struct Each<'s>(&'s mut dyn FnMut(&str, &str));

    impl<'a> Visitor<'a> for Each<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                (self.0)(&key, value.get());
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Each(show))?;
    deserializer.end()
}

struct Members<'n, 'f, 'a> {
    names: &'n [&'n str],
    found: &'f mut [Option<&'a str>],
}

impl<'a> Visitor<'a> for Members<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(at) = map.next_key_seed(Name(self.names))? {
            match at.and_then(|at| self.found.get_mut(at)) {
                Some(Some(_)) => return Err(A::Error::custom("a member comes twice")),
                Some(place) => *place = Some(map.next_value::<&RawValue>()?.get()),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Which of the names a key is.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|name| *name == text))
    }
}

#[cfg(test)]
mod tests {
    use crate::{RawJson, RawRef};

    type Found<'a> = Option<[Option<&'a str>; 2]>;

    fn found(text: &str) -> Found<'_> {
        let members = RawRef::bracketed(text).members(["a", "b"]).ok()?;
        Some(members.map(|member| member.map(RawRef::as_str)))
    }

    #[test]
    fn named_members_are_found_once_each_and_the_object_is_read_to_its_end() {
        for (text, expected) in [
            ("{}", Some([None, None])),
            (r#"{"a":1}"#, Some([Some("1"), None])),
            (r#"{"c":{"a":1},"b":[ 2 ],"a":"x"}"#, Some([Some("\"x\""), Some("[ 2 ]")])),
            (r#"{"\u0061":1}"#, Some([Some("1"), None])),
            (r#"{"a":null,"b":{}}"#, Some([None, Some("{}")])),
            (r#"{"c":1,"c":2}"#, Some([None, None])),
            (r#"{"a":1,"a":1}"#, None),
            (r#"{"a":null,"a":1}"#, None),
            (r#"{"a":1,"c":NaN}"#, None),
            (r#"{"a":NaN}"#, None),
            (r#"{"a":1} 2"#, None),
            ("[1,2]", None),
            ("null", None),
            (r#""a""#, None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn an_object_is_changed_in_the_named_members_alone() {
        let one = RawJson::from_text("[ 1 ]".to_owned()).unwrap();
        for (text, expected) in [
            ("{}", Some(r#"{"a":[ 1 ]}"#)),
            (r#"{"a":2,"b":3}"#, Some(r#"{"a":[ 1 ]}"#)),
            (r#" { "c" : "\u0061" , "b" : null } "#, Some(r#"{"c":"\u0061","a":[ 1 ]}"#)),
            (r#"{"\u0062":1,"\"":1.0,"d":{"b":1}}"#, Some(r#"{"\"":1.0,"d":{"b":1},"a":[ 1 ]}"#)),
            (r#"{"a":1,"a":2}"#, Some(r#"{"a":[ 1 ]}"#)),
            (r#"{"c":NaN}"#, None),
            ("{} 1", None),
            ("[]", None),
            ("null", None),
        ] {
            let changed = RawRef::bracketed(text).with_members(&[("a", Some(&one)), ("b", None)]).ok();
            assert_eq!(changed.as_ref().map(RawJson::as_str), expected, "{text}");
        }
        assert_eq!(RawRef::bracketed(r#"{"b":1}"#).with_members(&[("b", None)]).unwrap().as_str(), "{}");
    }

    #[test]
    fn a_member_is_there_whatever_its_value_is() {
        for (text, expected) in [
            (r#"{"a":null}"#, Some(true)),
            (r#"{"b":1,"\u0061":{},"a":2}"#, Some(true)),
            (r#"{"b":{"a":1}}"#, Some(false)),
            ("{}", Some(false)),
            (r#"{"a":1,}"#, None),
            ("[]", None),
        ] {
            assert_eq!(RawRef::bracketed(text).has_member("a").ok(), expected, "{text}");
        }
    }
}
