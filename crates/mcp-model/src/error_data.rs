//! The `data` of error objects for which the specification defines it.
//!
//! The codes themselves belong to JSON-RPC and are not in this crate. Nor is the data of "URL elicitation required", which
//! consists of elicitation types.

use serde::{Deserialize, Serialize};

use crate::{ClientCapabilities, List, ProtocolVersion, lenient};

/// Data of error -32022 (2026-07-28 and later), and of the error with which a legacy server may refuse a version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The protocol versions that the server supports, as sent; legacy ones may be among them.
    pub supported: List<String>,
    /// The version that was refused.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
}

impl UnsupportedProtocolVersionData {
    /// The newest listed version that satisfies `admit`.
    pub fn newest_supported(&self, admit: impl Fn(ProtocolVersion) -> bool) -> Option<ProtocolVersion> {
        ProtocolVersion::newest_of(self.supported.iter(), admit)
    }
}

/// Data of error -32021 (2026-07-28 and later).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapabilityData {
    /// The capabilities that the client would have to declare.
    pub required_capabilities: ClientCapabilities,
}

/// Data of the error "resource not found" (-32002 before 2026-07-28, -32602 since).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The URI that does not exist.
    pub uri: String,
}
