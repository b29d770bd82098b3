//! The protocol revisions that know elicitation, and which of its features each one has.

use std::{fmt, str::FromStr};

/// A protocol revision with elicitation in it; 2024-11-05 and 2025-03-26 have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// Forms only, no `mode` member, defaults for booleans only, no arrays, no `oneOf`.
    V2025_06_18,
    /// Form and URL mode, `elicitationId`, completion notices, error -32042.
    V2025_11_25,
    /// Form and URL mode inside `input_required` results; `elicitationId` is gone.
    V2026_07_28,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 3] = [Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The date that names the revision on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether requests may have `mode: "url"`.
    #[must_use]
    pub const fn has_url_mode(self) -> bool {
        !matches!(self, Self::V2025_06_18)
    }

    /// Whether URL requests carry an `elicitationId`, and completion notices and error -32042 exist.
    ///
    /// An explicit list and not "this date or later": the id came with one revision and left with the next.
    #[must_use]
    pub const fn has_elicitation_id(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Whether every kind of field may have a `default`, and not booleans only.
    #[must_use]
    pub const fn has_all_defaults(self) -> bool {
        !matches!(self, Self::V2025_06_18)
    }

    /// Whether titled (`oneOf`) and multi-select (`array`) enums exist.
    #[must_use]
    pub const fn has_titled_and_multi_select(self) -> bool {
        !matches!(self, Self::V2025_06_18)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision(()))
    }
}

/// The text names no revision that has elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRevision(());

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a protocol revision with elicitation (2025-06-18, 2025-11-25, 2026-07-28)")
    }
}

impl std::error::Error for UnknownRevision {}

#[cfg(test)]
mod tests {
    use super::*;

    // seed:S-03
    #[test]
    fn only_the_exact_dates_are_revisions() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        for text in ["9999-99-99", "2025-11-26", "2025-03-26", "2024-11-05", "", "banana", " 2025-11-25"] {
            assert!(text.parse::<Revision>().is_err(), "{text:?}");
        }
        let error = "2024-11-05".parse::<Revision>().unwrap_err().to_string();
        assert!(Revision::ALL.iter().all(|revision| error.contains(revision.as_str())), "{error}");
    }

    #[test]
    fn the_elicitation_id_exists_in_one_revision_only() {
        let with_id: Vec<_> = Revision::ALL.into_iter().filter(|r| r.has_elicitation_id()).collect();
        assert_eq!(with_id, [Revision::V2025_11_25]);
    }
}
