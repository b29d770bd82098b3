//! Picking members out of an object, the same code for all of them.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

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
    use crate::RawRef;

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
}
