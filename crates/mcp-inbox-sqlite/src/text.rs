//! Text of a file that others write too.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};

/// What a column holds: its bytes, where there are any. The tables hold bytes to no encoding, so that one row in a broken one
/// must not fail the reading of all.
pub(crate) struct Text(Option<Vec<u8>>);

impl Text {
    /// `None` for what is no text in UTF-8.
    pub(crate) fn exact(self) -> Option<String> {
        self.0.and_then(|bytes| String::from_utf8(bytes).ok())
    }

    /// With a sign in the place of what is no UTF-8; `None` where there is nothing.
    pub(crate) fn lossy(self) -> Option<String> {
        self.0.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl FromSql for Text {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
            _ => None,
        }))
    }
}
