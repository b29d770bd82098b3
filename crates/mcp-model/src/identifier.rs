//! Identifiers that are a string or an integer on the wire.

/// Defines a type for "string or integer" members.
macro_rules! identifier {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        ///
        /// An integer never equals a string: `1` and `"1"` are different. A number with a fraction is refused.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(clippy::exhaustive_enums, reason = "JSON-RPC knows exactly these two kinds")]
        pub enum $name {
            /// A JSON integer.
            Integer(i64),
            /// A JSON string, the empty one included.
            String(Box<str>),
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self::Integer(number)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::String(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::String(text.into())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::Integer(number) => serializer.serialize_i64(*number),
                    Self::String(text) => serializer.serialize_str(text),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string or an integer")
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        Ok($name::Integer(number))
                    }

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        i64::try_from(number)
                            .map($name::Integer)
                            .map_err(|_| E::custom("integer beyond 64 signed bits"))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        Ok($name::String(text.into()))
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }
    };
}

identifier! {
    /// The id of a JSON-RPC request in a member of the specification's types: the cancelled request, or the subscription of a
    /// notification. The id of an envelope is `mcp_jsonrpc::RequestId`, which this crate does not depend on.
    RequestId
}

identifier! {
    /// Associates progress notifications with their request.
    ProgressToken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:C-02: `0` and `""` are legal; protocol:P-01: string or integer.
    #[test]
    fn strings_and_integers_read_back_as_the_kind_they_were() {
        for json in ["0", "-1", "9223372036854775807", "-9223372036854775808", "\"\"", "\"0\"", "\"\u{fc}\""]
        {
            let id: RequestId = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
            assert_eq!(matches!(id, RequestId::String(_)), json.starts_with('"'));
        }
        assert_ne!(ProgressToken::from(1), ProgressToken::from("1"));
    }

    #[test]
    fn other_kinds_are_refused() {
        for json in ["null", "1.5", "1e400", "true", "[]", "{}", "9223372036854775808"] {
            assert!(serde_json::from_str::<ProgressToken>(json).is_err(), "{json}");
        }
    }
}
