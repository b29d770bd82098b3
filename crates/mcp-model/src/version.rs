//! The revisions of the specification, as a closed set.
//!
//! Versions look like dates, but an unknown one is never compared with a known one (section "Versioning" of the specification).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A revision of the Model Context Protocol that this crate can read and write.
///
/// The order of the variants is the order of publication. [`FromStr`] and [`Deserialize`] refuse every other string;
/// where other strings must be accepted (the result of `initialize`, `supportedVersions`), the types of this crate
/// have a `String` and a method that converts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// `2024-11-05`, the first published revision.
    V2024_11_05,
    /// `2025-03-26`: Streamable HTTP, audio, tool annotations, JSON-RPC batches.
    V2025_03_26,
    /// `2025-06-18`: elicitation, structured tool output, resource links; batches removed.
    V2025_06_18,
    /// `2025-11-25`: URL elicitation, icons, tools in sampling, tasks; the last revision with a handshake.
    V2025_11_25,
    /// `2026-07-28`: no handshake, no sessions; version and capabilities are in each request.
    V2026_07_28,
}

impl ProtocolVersion {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision with the `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The string on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether the revision has the `initialize` handshake (all before 2026-07-28).
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        !self.is_modern()
    }

    /// Whether each request has version and capabilities in its `_meta` (2026-07-28 and later).
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// The newest revision of `offered` (a peer's list, in any order, unknown strings ignored) that satisfies `admit`.
    ///
    /// ```
    /// use mcp_model::ProtocolVersion;
    ///
    /// let offered = ["2025-06-18", "3000-01-01", "2025-11-25", "2026-07-28"];
    /// let best = ProtocolVersion::newest_of(offered, ProtocolVersion::is_legacy);
    /// assert_eq!(best, Some(ProtocolVersion::V2025_11_25));
    /// ```
    pub fn newest_of<S: AsRef<str>>(
        offered: impl IntoIterator<Item = S>,
        admit: impl Fn(Self) -> bool,
    ) -> Option<Self> {
        offered
            .into_iter()
            .filter_map(|text| text.as_ref().parse::<Self>().ok())
            .filter(|version| admit(*version))
            .max()
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL.into_iter().find(|version| version.as_str() == text).ok_or(UnknownVersion(()))
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = ProtocolVersion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a known protocol version")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ProtocolVersion, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

/// A string that is no revision of [`ProtocolVersion::ALL`]. The error does not contain the string, which is untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownVersion(());

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol version; known are ")?;
        for (place, version) in ProtocolVersion::ALL.iter().enumerate() {
            let between = if place == 0 { "" } else { ", " };
            write!(f, "{between}{}", version.as_str())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownVersion {}

/// Content that a revision cannot represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotInVersion {
    what: &'static str,
    version: ProtocolVersion,
}

impl NotInVersion {
    pub(crate) fn new(what: &'static str, version: ProtocolVersion) -> Self {
        Self { what, version }
    }

    /// The revision.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }
}

impl fmt::Display for NotInVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be sent under protocol version {}", self.what, self.version)
    }
}

impl std::error::Error for NotInVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_reads_back_from_its_own_spelling() {
        for version in ProtocolVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(version));
            let json = serde_json::to_string(&version).unwrap();
            assert_eq!(json, format!("\"{version}\""));
            assert_eq!(serde_json::from_str::<ProtocolVersion>(&json).unwrap(), version);
        }
    }

    /// protocol:9.1: unknown strings are not ordered, so a later date is not "newer", it is unknown.
    #[test]
    fn strings_outside_the_set_are_refused() {
        for text in ["", "2024-10-07", "2026-07-29", "9999-12-31", "2025-11-25 ", "DRAFT-2026-v1", "latest"] {
            assert_eq!(text.parse::<ProtocolVersion>(), Err(UnknownVersion(())), "{text:?}");
            assert!(serde_json::from_value::<ProtocolVersion>(text.into()).is_err());
        }
    }

    /// protocol:L-02, protocol:10.12: the newest version an `initialize` may carry is the newest legacy one.
    #[test]
    fn eras_split_between_2025_11_25_and_2026_07_28() {
        for version in ProtocolVersion::ALL {
            assert_eq!(version.is_modern(), version > ProtocolVersion::LATEST_LEGACY);
            assert_ne!(version.is_modern(), version.is_legacy());
        }
        assert!(ProtocolVersion::LATEST.is_modern());
        assert!(ProtocolVersion::LATEST_LEGACY.is_legacy());
    }

    /// protocol:L-29: a modern server's list may hold legacy versions, so the choice filters by era first.
    #[test]
    fn newest_of_ignores_unknown_strings_and_honours_the_filter() {
        let offered = ["2025-03-26", "9999-01-01", "2026-07-28", "2024-11-05"];
        assert_eq!(ProtocolVersion::newest_of(offered, |_| true), Some(ProtocolVersion::V2026_07_28));
        let legacy = ProtocolVersion::newest_of(offered, ProtocolVersion::is_legacy);
        assert_eq!(legacy, Some(ProtocolVersion::V2025_03_26));
        assert_eq!(ProtocolVersion::newest_of(["9999-01-01"], |_| true), None);
        assert_eq!(ProtocolVersion::newest_of([] as [&str; 0], |_| true), None);
    }
}
