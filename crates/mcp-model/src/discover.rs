//! `server/discover`: versions and capabilities of a modern server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::{bare_params, other_requests};
use crate::{
    CacheScope, Implementation, List, MetaObject, ProtocolVersion, ResultType, ServerCapabilities, lenient,
    meta, methods,
};

bare_params! {
    /// Parameters of `server/discover`.
    DiscoverRequestParams;
}

/// Result of `server/discover`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The protocol versions that the server supports, as sent; legacy ones may be among them.
    pub supported_versions: List<String>,
    /// The server's capabilities.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub capabilities: ServerCapabilities,
    /// Instructions for using the server, for the model's prompt. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the result is fresh, in milliseconds; negative counts as 0.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may get a cached copy of it.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The `resultType`: how to read the result.
    #[serde(default, deserialize_with = "lenient::result_type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON; see [`DiscoverResult::server_info`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { DiscoverResult { supported_versions, capabilities, instructions, ttl_ms, cache_scope, result_type } sized { meta } }

impl DiscoverResult {
    /// The server's `serverInfo`, unverified; `None` if it is absent or malformed.
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        let meta = MetaObject::from_raw(self.meta.as_deref()?).ok()?;
        lenient::read_hint(meta.get(meta::SERVER_INFO)?)
    }

    /// The newest listed version that satisfies `admit`, such as [`ProtocolVersion::is_modern`].
    pub fn newest_supported(&self, admit: impl Fn(ProtocolVersion) -> bool) -> Option<ProtocolVersion> {
        ProtocolVersion::newest_of(self.supported_versions.iter(), admit)
    }
}

other_requests! {
    DiscoverRequestParams => methods::SERVER_DISCOVER, DiscoverResult;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:L-27, protocol:L-29, protocol:J-28, protocol:K-05
    #[test]
    fn odd_members_do_not_fail_discovery() {
        let json = r#"{"supportedVersions":["9999-01-01","2025-11-25","2026-07-28",7],"capabilities":{"tools":true},
            "ttlMs":-5,"cacheScope":"galaxy","instructions":7,"serverInfo":{"name":5},"new":[],
            "_meta":{"io.modelcontextprotocol/serverInfo":{"version":"1"}}}"#;
        let result: DiscoverResult = serde_json::from_str(json).unwrap();
        assert_eq!(result.newest_supported(ProtocolVersion::is_modern), Some(ProtocolVersion::V2026_07_28));
        assert_eq!(result.newest_supported(ProtocolVersion::is_legacy), Some(ProtocolVersion::V2025_11_25));
        assert_eq!(result.supported_versions.rejected().len(), 1);
        assert!(result.capabilities.tools.is_some());
        assert_eq!(result.ttl_ms, Some(0));
        assert!(!CacheScope::is_shared(result.cache_scope.as_ref()));
        assert!(result.server_info().is_none());
        assert!(result.instructions.is_none());
    }
}
