//! Name and version of a client or a server.

use serde::{Deserialize, Serialize};

use crate::{Icon, List, ProtocolVersion, lenient};

/// Name and version of a client or a server (`clientInfo`, `serverInfo`).
///
/// What a peer says about itself is unverified: show it and log it, but base no decision on it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The program's name, for programs.
    pub name: String,
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The program's version, in any format.
    pub version: String,
    /// A description of the program (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// The program's web site (2025-11-25 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl Implementation {
    /// Name and version, which every revision requires.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        let titled = version >= ProtocolVersion::V2025_06_18;
        let described = version >= ProtocolVersion::V2025_11_25;
        Self {
            name: self.name,
            version: self.version,
            title: self.title.filter(|_| titled),
            description: self.description.filter(|_| described),
            icons: self.icons.filter(|_| described),
            website_url: self.website_url.filter(|_| described),
        }
    }
}
