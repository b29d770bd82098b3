//! The `initialize` handshake of the legacy revisions (lifecycle, "Initialization").

use std::time::Instant;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef};
use mcp_model::{
    FromJson, Implementation, InitializeRequestParams, ProtocolVersion, ServerCapabilities, ToJson,
    UnsupportedProtocolVersionData, methods,
};

use crate::call::{CallId, CallKind, CallOptions};
use crate::connection::Connection;
use crate::diagnostic::excerpt;
use crate::era::{Mode, Verdict, VerdictReason};
use crate::error::{CallError, Misuse};
use crate::phase::{Handshake, Phase, ServerFacts};

/// How much of the revisions that a server names an error shows, in bytes: of one, or of all of them.
pub(crate) const MAX_SHOWN_VERSION: usize = 64;

impl Connection {
    /// Sends `initialize` as the next step of the handshake.
    pub(crate) fn initialize(
        &mut self,
        now: Instant,
        call: CallId,
        mut handshake: Box<Handshake>,
        version: ProtocolVersion,
    ) -> Result<(), Misuse> {
        handshake.version = version;
        handshake.status = None;
        let (began, ends) = (handshake.began, handshake.ends);
        self.phase = Phase::Initializing(handshake);
        self.send_handshake(now, call, version, CallKind::Initialize)?;
        self.set_handshake_deadline(call, began, ends);
        Ok(())
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
        let params = params.to_json().map(RawJson::from).map_err(|_| Misuse::Unserializable)?;
        let options = CallOptions::with_timeout(self.config.initialize_timeout);
        self.send_request(now, call, methods::INITIALIZE, Some(&params), kind, &options)
    }

    /// The server accepted `initialize`.
    pub(crate) fn handle_initialize_result(
        &mut self,
        call: CallId,
        result: RawRef<'_>,
    ) -> Result<RawJson, CallError> {
        let reason = match &self.phase {
            Phase::Initializing(handshake) => handshake.reason.clone(),
            _ => VerdictReason::Configured,
        };
        let server = read_result(result, reason)?;
        if let Mode::Pinned(pinned) = self.config.mode
            && server.protocol_version != pinned
        {
            return Err(CallError::UnsupportedVersion {
                server: server.protocol_version.as_str().to_owned(),
                client: pinned.as_str().to_owned(),
                pinned: true,
            });
        }
        let raw = server.raw.clone();
        self.phase = Phase::Confirming { server: Box::new(server) };
        // `initialized` goes out before anything else; `Ready` waits for its delivery.
        if self.queue_notification(methods::NOTIFICATIONS_INITIALIZED, None, Some(call)).is_err() {
            return Err(CallError::InvalidResult { reason: "initialized could not be written".to_owned() });
        }
        Ok(raw)
    }

    /// The server refused `initialize`. If it named revisions and we speak one of them, the same call asks once
    /// more; otherwise this is how the call ends.
    pub(crate) fn renegotiate(
        &mut self,
        now: Instant,
        call: CallId,
        error: ErrorObject,
    ) -> Result<(), CallError> {
        let mut handshake = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Initializing(handshake) => handshake,
            other => {
                self.phase = other;
                return Err(CallError::Rpc(error));
            }
        };
        let refusal = handshake.refusal.clone();
        let goes_on = if let Some(version) = self.modern_evidence(&handshake, &error) {
            handshake.reprobed = true;
            self.probe(now, call, handshake, version).is_ok()
        } else if let Some(version) = legacy_version_offered(&error)
            && !handshake.renegotiated
            && !matches!(self.config.mode, Mode::Pinned(_))
        {
            handshake.renegotiated = true;
            self.initialize(now, call, handshake, version).is_ok()
        } else if self.may_be_modern(&handshake, &error) {
            handshake.reprobed = true;
            self.probe(now, call, handshake, ProtocolVersion::LATEST).is_ok()
        } else {
            self.phase = Phase::Initializing(handshake);
            false
        };
        if goes_on { Ok(()) } else { Err(CallError::Rpc(refusal.unwrap_or(error))) }
    }
}

impl Connection {
    /// As [`refused`], by the server of this connection.
    pub(crate) fn refused(&self, error: ErrorObject) -> CallError {
        match self.server() {
            Some(server) => refused(server.protocol_version, error),
            None => CallError::Rpc(error),
        }
    }
}

/// The known revisions that a refusal lists; `None` where it has no legible list.
pub(crate) fn versions_offered(error: &ErrorObject) -> Option<Vec<ProtocolVersion>> {
    let data = read_versions(error)?;
    Some(data.supported.iter().filter_map(|name| name.parse().ok()).collect())
}

/// What a refused call of an established connection comes to: the error of the server, or the news that it is of the other
/// era now, which it shows by naming revisions of that era alone.
pub(crate) fn refused(was: ProtocolVersion, error: ErrorObject) -> CallError {
    let other_era = |versions: Vec<ProtocolVersion>| {
        !versions.is_empty() && versions.iter().all(|version| version.is_modern() != was.is_modern())
    };
    if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && versions_offered(&error).is_some_and(other_era)
    {
        return CallError::EraChanged { was, error };
    }
    CallError::Rpc(error)
}

/// Every revision that a refusal lists, made safe to show.
pub(crate) fn versions_shown(error: &ErrorObject) -> String {
    let names = read_versions(error).map(|data| data.supported.iter().cloned().collect::<Vec<_>>());
    excerpt(&names.unwrap_or_default().join(", "), MAX_SHOWN_VERSION)
}

fn read_versions(error: &ErrorObject) -> Option<UnsupportedProtocolVersionData> {
    let data = error.data.as_ref()?.as_str();
    if !data.trim_start().starts_with('{') {
        return None;
    }
    UnsupportedProtocolVersionData::from_json(data).ok()
}

/// The newest legacy revision that a refusal of `initialize` names and that is worth another attempt.
fn legacy_version_offered(error: &ErrorObject) -> Option<ProtocolVersion> {
    if ![ErrorCode::INVALID_PARAMS, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION].contains(&error.code) {
        return None;
    }
    versions_offered(error)?
        .into_iter()
        .filter(|version| version.is_legacy() && *version != ProtocolVersion::LATEST_LEGACY)
        .max()
}

/// Reads an `InitializeResult` leniently: only the revision decides whether there is a connection.
pub(crate) fn read_result(result: RawRef<'_>, reason: VerdictReason) -> Result<ServerFacts, CallError> {
    let invalid = |reason: &str| CallError::InvalidResult { reason: reason.to_owned() };
    if !result.as_str().starts_with('{') {
        return Err(invalid("the initialize result is no object"));
    }
    let members = result.members(["protocolVersion", "capabilities", "serverInfo", "instructions"]);
    let [version, capabilities, server_info, instructions] = members.unwrap_or_default();
    let version = version
        .and_then(|version| version.string().ok())
        .ok_or_else(|| invalid("the initialize result has no readable protocolVersion"))?;
    let protocol_version = match version.parse::<ProtocolVersion>() {
        // A modern revision is not reached by `initialize`: a server that answers one breaks its own rules.
        Ok(version) if version.is_legacy() => version,
        _ => {
            return Err(CallError::UnsupportedVersion {
                server: excerpt(&version, MAX_SHOWN_VERSION),
                client: ProtocolVersion::LATEST_LEGACY.as_str().to_owned(),
                pinned: false,
            });
        }
    };
    let capabilities = match capabilities {
        None => ServerCapabilities::default(),
        Some(text) => ServerCapabilities::from_json(text.as_str())
            .map_err(|_| invalid("the capabilities of the server are not an object of the known shape"))?,
    };
    Ok(ServerFacts {
        protocol_version,
        capabilities,
        server_info: server_info.and_then(|text| Implementation::from_json(text.as_str()).ok()),
        instructions: instructions.and_then(|text| text.string().ok()),
        verdict: Verdict::new(protocol_version, reason),
        raw: result.to_owned(),
    })
}
