//! The keys that have a meaning in a message.

use crate::{decode_error::Fault, reader::Reader};

/// A key of the envelope or of its error object. Keys are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Code,
    Data,
    Error,
    Id,
    Jsonrpc,
    Message,
    Method,
    Other,
    Params,
    Result,
}

impl Key {
    /// Reads a key and the colon behind it.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Result<Self, Fault> {
        if let Some((key, len)) = Self::usual(reader.rest()) {
            reader.pos += len;
            reader.space();
            return Ok(key);
        }
        let token = reader.key()?;
        // Escapes in a key are as good as none.
        match token.decode() {
            Ok(name) => Ok(Self::named(&name)),
            Err(fault) => {
                reader.note(fault.kind, fault.offset);
                Ok(Self::Other)
            }
        }
    }

    /// The usual spellings, with the colon right behind: comparing whole words beats reading byte by byte.
    fn usual(text: &[u8]) -> Option<(Self, usize)> {
        Some(if text.starts_with(b"\"jsonrpc\":") {
            (Self::Jsonrpc, 10)
        } else if text.starts_with(b"\"id\":") {
            (Self::Id, 5)
        } else if text.starts_with(b"\"result\":") {
            (Self::Result, 9)
        } else if text.starts_with(b"\"method\":") {
            (Self::Method, 9)
        } else if text.starts_with(b"\"params\":") {
            (Self::Params, 9)
        } else {
            return None;
        })
    }

    fn named(name: &str) -> Self {
        match name {
            "code" => Self::Code,
            "data" => Self::Data,
            "error" => Self::Error,
            "id" => Self::Id,
            "jsonrpc" => Self::Jsonrpc,
            "message" => Self::Message,
            "method" => Self::Method,
            "params" => Self::Params,
            "result" => Self::Result,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecodeLimits;

    fn read(text: &str) -> Option<(Key, usize)> {
        let limits = DecodeLimits::default();
        let mut reader = Reader { text, pos: 0, limits: &limits, fault: None };
        let key = Key::read(&mut reader).ok()?;
        Some((key, reader.pos))
    }

    #[test]
    fn usual_and_unusual_spellings_are_the_same_key() {
        for (name, key) in [
            ("code", Key::Code),
            ("data", Key::Data),
            ("error", Key::Error),
            ("id", Key::Id),
            ("jsonrpc", Key::Jsonrpc),
            ("message", Key::Message),
            ("method", Key::Method),
            ("params", Key::Params),
            ("result", Key::Result),
            ("ID", Key::Other),
            ("Result", Key::Other),
            ("results", Key::Other),
            ("", Key::Other),
        ] {
            let escaped: String = name.bytes().map(|b| format!("\\u00{b:02x}")).collect();
            for text in [
                format!("\"{name}\":"),
                format!("\"{name}\" :"),
                format!("\"{name}\":\n\t"),
                format!("\"{escaped}\":"),
            ] {
                assert_eq!(read(&text), Some((key, text.len())), "{text}");
            }
        }
        for text in ["", "id:", "\"id\"", "\"id\";", "\"id"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
