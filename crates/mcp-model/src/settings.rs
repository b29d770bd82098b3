//! The settings object of a capability or an extension, kept as raw JSON.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON object with the settings of a capability; `{}` means "supported, without settings".
#[derive(Debug, Clone)]
pub struct Settings(Option<Box<RawValue>>);

impl Settings {
    /// The empty object.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Settings from raw JSON; `None` if it is not an object.
    #[must_use]
    pub fn from_raw(raw: Box<RawValue>) -> Option<Self> {
        raw.get().starts_with('{').then_some(Self(Some(raw)))
    }

    /// Declares an extension with these settings, by adding it to `extensions`.
    pub fn declare_in(self, extensions: &mut BTreeMap<String, Self>, id: &str) {
        extensions.insert(id.to_owned(), self);
    }

    /// The object's JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().map_or("{}", RawValue::get)
    }

    /// Reads the object as a type.
    ///
    /// # Errors
    /// When the object does not have the shape of `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::empty()
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(raw) => raw.serialize(serializer),
            None => serializer.collect_map(std::iter::empty::<((), ())>()),
        }
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_raw(raw).ok_or_else(|| serde::de::Error::custom("settings that are not an object"))
    }
}

/// Writes and reads the capabilities of one side: the named ones, and around them what both sides have.
macro_rules! capabilities {
    ($name:ident { $($member:ident),+ }) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;

                let mut map = serializer.serialize_map(None)?;
                if !self.experimental.is_empty() {
                    map.serialize_entry("experimental", &self.experimental)?;
                }
                $( $crate::settings::optional(&mut map, stringify!($member), self.$member.as_ref())?; )+
                if !self.extensions.is_empty() {
                    map.serialize_entry("extensions", &self.extensions)?;
                }
                for (name, value) in &self.other {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $crate::settings::{by_name, declared};

                let mut members = BTreeMap::<String, Box<RawValue>>::deserialize(deserializer)?;
                let mut take = |name: &str| members.remove(name);
                Ok(Self {
                    experimental: take("experimental").map(|raw| by_name(&raw)).unwrap_or_default(),
                    $( $member: take(stringify!($member)).and_then(|raw| declared(&raw)), )+
                    extensions: take("extensions").map(|raw| by_name(&raw)).unwrap_or_default(),
                    other: members,
                })
            }
        }
    };
}

pub(crate) use capabilities;

/// Reads a declared capability: `null` and `false` mean "not declared", another value of the wrong shape means
/// "declared, nothing to set" (some servers write `true`).
pub(crate) fn declared<T: DeserializeOwned + Default>(raw: &RawValue) -> Option<T> {
    match raw.get() {
        "null" | "false" => None,
        text => Some(crate::json::read(text).unwrap_or_default()),
    }
}

/// Reads the declared capabilities of an open map; entries that declare nothing are left out.
pub(crate) fn by_name(raw: &RawValue) -> BTreeMap<String, Settings> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut declared_by_name = BTreeMap::new();
    for (name, raw) in members {
        if let Some(settings) = declared(&raw) {
            declared_by_name.insert(name, settings);
        }
    }
    declared_by_name
}

/// Writes an entry if there is one.
pub(crate) fn optional<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:L-22: a capability value is an object, never `true` or a list.
    #[test]
    fn only_objects_become_settings() {
        for json in ["{}", r#"{"mimeTypes":["text/html"]}"#] {
            let settings: Settings = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&settings).unwrap(), json);
        }
        for json in ["true", "[]", "1", "\"x\"", "null"] {
            assert!(serde_json::from_str::<Settings>(json).is_err(), "{json}");
        }
        assert_eq!(serde_json::to_string(&Settings::empty()).unwrap(), "{}");
    }

    #[test]
    fn sloppy_declarations_still_declare() {
        let check = |json: &str, expected: bool| {
            let raw = RawValue::from_string(json.into()).unwrap();
            assert_eq!(declared::<Settings>(&raw).is_some(), expected, "{json}");
        };
        check("{}", true);
        check("true", true);
        check("[]", true);
        check("null", false);
        check("false", false);
    }
}
