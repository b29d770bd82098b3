//! Roots: the directories and files that the client exposes to the server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::{bare_params, notifications, other_requests};
use crate::{ProtocolVersion, methods};

/// A root.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Its URI, which must begin with `file://`; see [`Root::is_file`].
    pub uri: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Additional metadata, as raw JSON (2025-06-18 and later).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { Root { uri, name } sized { meta } }

impl Root {
    /// A root with this URI.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }

    /// Adds a display name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether the URI begins with `file://`, as every revision requires.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.uri.split_at_checked(7).is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("file://"))
    }
}

bare_params! {
    /// Parameters of `roots/list`, sent by the server.
    ListRootsRequestParams;
    /// Parameters of `notifications/roots/list_changed` (legacy revisions).
    RootsListChangedNotificationParams;
}

/// Result of `roots/list`, sent by the client.
#[derive(Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// Additional metadata, as raw JSON (legacy revisions).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ListRootsResult { roots } sized { meta } }

impl ListRootsResult {
    /// A result with these roots.
    #[must_use]
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, meta: None }
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(mut self, version: ProtocolVersion) -> Self {
        if version.is_modern() {
            self.meta = None;
        }
        if version < ProtocolVersion::V2025_06_18 {
            for root in &mut self.roots {
                root.meta = None;
            }
        }
        self
    }
}

other_requests! {
    ListRootsRequestParams => methods::ROOTS_LIST, ListRootsResult;
}

notifications! {
    RootsListChangedNotificationParams => methods::NOTIFICATIONS_ROOTS_LIST_CHANGED;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:RT-01
    #[test]
    fn a_root_is_a_file_address() {
        let check = |uri: &str, expected: bool| assert_eq!(Root::new(uri).is_file(), expected, "{uri}");
        check("file:///home/user/project", true);
        check("FILE:///C:/", true);
        check("file://", true);
        check("file:/home", false);
        check("https://example.com/", false);
        check("", false);
        check("fil\u{e9}://x", false);
    }
}
