//! The `initialize` handshake of the legacy revisions (lifecycle, "Initialization").

use std::time::Instant;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef};
use mcp_model::{Implementation, InitializeRequestParams, ProtocolVersion, ServerCapabilities};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{CallId, CallKind, CallOptions, CallState};
use crate::connection::{Connection, Timer};
use crate::diagnostic::excerpt;
use crate::error::{CallError, Misuse};
use crate::phase::{Phase, ServerFacts};

/// Longest revision name of the server that an error shows, in bytes.
const MAX_SHOWN_VERSION: usize = 64;

impl Connection {
    pub(crate) fn send_initialize(
        &mut self,
        now: Instant,
        call: CallId,
        version: ProtocolVersion,
    ) -> Result<(), Misuse> {
        self.send_handshake(now, call, version, CallKind::Initialize)
    }

    pub(crate) fn send_handshake(
        &mut self,
        now: Instant,
        call: CallId,
        version: ProtocolVersion,
        kind: CallKind,
    ) -> Result<(), Misuse> {
        // The type cuts capabilities and names to what the revision defines.
        let params = InitializeRequestParams::new(
            version,
            self.config.capabilities(),
            self.config.client_info.clone(),
        );
        let params = RawJson::from_serialize(&params).map_err(|_| Misuse::Unserializable)?;
        let options = CallOptions::with_timeout(self.config.initialize_timeout);
        self.send_request(now, call, "initialize", Some(&params), kind, &options)
    }

    /// The server accepted `initialize`.
    pub(crate) fn handle_initialize_result(
        &mut self,
        call: CallId,
        result: RawRef<'_>,
    ) -> Result<RawJson, CallError> {
        let server = read_result(result)?;
        let raw = server.raw.clone();
        self.phase = Phase::Confirming { server: Box::new(server) };
        // `initialized` goes out before anything else; `Ready` waits for its delivery.
        if self.queue_notification("notifications/initialized", None, Some(call)).is_err() {
            return Err(CallError::InvalidResult { reason: "initialized could not be written".to_owned() });
        }
        Ok(raw)
    }

    /// The server refused `initialize`. If it named revisions and we speak one of them, the same call asks once
    /// more; the answer is whether it does.
    pub(crate) fn renegotiate(
        &mut self,
        now: Instant,
        call: CallId,
        refused: &CallState,
        error: &ErrorObject,
    ) -> bool {
        let Phase::Initializing { renegotiated: false } = self.phase else { return false };
        let Some(version) = version_offered_by_refusal(error) else { return false };
        if self.send_initialize(now, call, version).is_err() {
            return false;
        }
        self.phase = Phase::Initializing { renegotiated: true };
        if let Some(state) = self.calls.get_mut(&call) {
            let fresh = state.deadline;
            state.continue_from(refused);
            self.disarm(fresh, Timer::Call(call));
            self.arm(refused.deadline, Timer::Call(call));
        }
        true
    }
}

/// The newest legacy revision that a refusal names and that is worth another attempt.
fn version_offered_by_refusal(error: &ErrorObject) -> Option<ProtocolVersion> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    if ![ErrorCode::INVALID_PARAMS, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION].contains(&error.code) {
        return None;
    }
    let data = error.data.as_ref().filter(|data| data.as_str().starts_with('{'))?;
    let data: Data = data.parse().ok()?;
    data.supported
        .iter()
        .filter_map(|name| name.parse::<ProtocolVersion>().ok())
        .filter(|version| version.is_legacy() && *version != ProtocolVersion::LATEST_LEGACY)
        .max()
}

/// Reads an `InitializeResult` leniently: only the revision decides whether there is a connection.
pub(crate) fn read_result(result: RawRef<'_>) -> Result<ServerFacts, CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, default)]
        server_info: Option<&'a RawValue>,
        #[serde(borrow, default)]
        instructions: Option<&'a RawValue>,
    }
    let invalid = |reason: &str| CallError::InvalidResult { reason: reason.to_owned() };
    if !result.as_str().starts_with('{') {
        return Err(invalid("the initialize result is no object"));
    }
    let raw: Raw<'_> =
        result.parse().map_err(|_| invalid("the initialize result has no readable protocolVersion"))?;
    let protocol_version = match raw.protocol_version.parse::<ProtocolVersion>() {
        // A modern revision is not reached by `initialize`: a server that answers one breaks its own rules.
        Ok(version) if version.is_legacy() => version,
        _ => {
            return Err(CallError::UnsupportedVersion {
                server: excerpt(&raw.protocol_version, MAX_SHOWN_VERSION),
            });
        }
    };
    let capabilities = match raw.capabilities {
        None => ServerCapabilities::default(),
        Some(text) => serde_json::from_str(text.get())
            .map_err(|_| invalid("the capabilities of the server are not an object of the known shape"))?,
    };
    Ok(ServerFacts {
        protocol_version,
        capabilities,
        server_info: raw.server_info.and_then(|text| serde_json::from_str::<Implementation>(text.get()).ok()),
        instructions: raw.instructions.and_then(|text| serde_json::from_str::<String>(text.get()).ok()),
        raw: result.to_owned(),
    })
}
