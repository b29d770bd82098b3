//! What error objects carry in `data`, where the specification says.
//!
//! The codes themselves belong to JSON-RPC and are not in this crate. The data of "URL elicitation required" is made
//! of elicitation types and is not here either.

use serde::{Deserialize, Serialize};

use crate::{ClientCapabilities, List, ProtocolVersion, lenient};

/// Data of error -32022 (2026-07-28 and later), and of the error with which a legacy server may refuse a version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The versions the server speaks, as it spells them; legacy ones may be among them.
    pub supported: List<String>,
    /// The version that was refused.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
}

impl UnsupportedProtocolVersionData {
    /// The newest listed version for which `admit` says yes.
    pub fn newest_supported(&self, admit: impl Fn(ProtocolVersion) -> bool) -> Option<ProtocolVersion> {
        ProtocolVersion::newest_of(self.supported.iter(), admit)
    }
}

/// Data of error -32021 (2026-07-28 and later).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapabilityData {
    /// What the client would have to declare, and support.
    pub required_capabilities: ClientCapabilities,
}

/// Data of the errors that say "no such resource" (-32002 before 2026-07-28, -32602 since).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The address that leads nowhere.
    pub uri: String,
}
