//! The legacy handshake: `initialize` and `notifications/initialized`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::{bare_params, notifications, other_requests, requests};
use crate::{
    ClientCapabilities, EmptyResult, Implementation, ProtocolVersion, ServerCapabilities, lenient, methods,
};

/// Parameters of `initialize`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeRequestParams {
    /// The protocol version that the client offers.
    pub protocol_version: String,
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// The client's name and version.
    pub client_info: Implementation,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { InitializeRequestParams { protocol_version, capabilities, client_info } sized { meta } }

impl InitializeRequestParams {
    /// Offers `version`, with capabilities and client info reduced to what that revision defines.
    ///
    /// The handshake exists only in legacy revisions: in place of a modern `version` the newest legacy one is offered.
    #[must_use]
    pub fn new(
        version: ProtocolVersion,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        let version = version.min(ProtocolVersion::LATEST_LEGACY);
        Self {
            protocol_version: version.as_str().to_owned(),
            capabilities: capabilities.for_version(version),
            client_info: client_info.for_version(version),
            meta: None,
        }
    }
}

/// Result of `initialize`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The protocol version that the server chose, as sent; see [`InitializeResult::version`].
    pub protocol_version: String,
    /// The server's capabilities.
    #[serde(default, deserialize_with = "lenient::null_is_empty")]
    pub capabilities: ServerCapabilities,
    /// The server's `serverInfo`, unverified; `None` if it is absent or malformed.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Implementation>,
    /// Instructions for using the server, for the model's prompt. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { InitializeResult { protocol_version, capabilities, server_info, instructions } sized { meta } }

impl InitializeResult {
    /// The negotiated version, or `None` if the server chose one that `initialize` cannot negotiate: an unknown or a modern
    /// one.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.protocol_version.parse().ok().filter(|version: &ProtocolVersion| version.is_legacy())
    }
}

bare_params! {
    /// Parameters of `notifications/initialized`.
    InitializedNotificationParams;
    /// Parameters of `ping`.
    PingRequestParams;
}

other_requests! {
    InitializeRequestParams => methods::INITIALIZE, InitializeResult;
}

requests! {
    PingRequestParams => methods::PING, EmptyResult;
}

notifications! {
    InitializedNotificationParams => methods::NOTIFICATIONS_INITIALIZED;
}
