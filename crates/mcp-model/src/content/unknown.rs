//! Content of an unknown type, kept unchanged.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A block of an unknown type, or one that is malformed for its type.
#[derive(Clone)]
pub struct UnknownContent {
    pub(super) kind: Option<Box<str>>,
    pub(super) problem: Option<&'static str>,
    pub(super) raw: Box<RawValue>,
}

impl UnknownContent {
    /// The value of the block's `type` member; `None` if it has none, or one that is not a string.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// What is wrong with a block of a known type, or of none; `None` if only its type is unknown.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        self.problem
    }

    /// The block as JSON. A block of an unknown type is unchanged, except for white space between the members; in a malformed
    /// block of a known type the members may be in another order.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl fmt::Debug for UnknownContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownContent")
            .field("kind", &self.kind)
            .field("problem", &self.problem)
            .field("raw_bytes", &self.raw.get().len())
            .finish()
    }
}

impl Serialize for UnknownContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}
