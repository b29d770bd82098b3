//! The handshake that begins with `server/discover`: finding out what the server is, and going on accordingly.
//!
//! All requests of it belong to one call, so that a driver has one thing to drive and one outcome to wait for. What an
//! answer means is decided in `era`; here it is done.

use std::time::Instant;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawRef};
use mcp_model::{DiscoverResult, FromJson, ProtocolVersion, ResultType, inspect_result_type, methods};

use crate::call::{CallId, CallKind, CallOptions, CallState, earliest};
use crate::connection::Connection;
use crate::diagnostic::excerpt;
use crate::era::{Mode, Next, Probed, Verdict, VerdictReason, Wire, judge};
use crate::error::{CallError, Misuse};
use crate::event::Event;
use crate::exchange_failure::ExchangeFailure;
use crate::lifecycle::{MAX_SHOWN_VERSION, versions_offered, versions_shown};
use crate::phase::{Handshake, Phase, ServerFacts};

impl Connection {
    /// Begins the handshake: queues its first request. The returned call ends with the server's `DiscoverResult` or
    /// `InitializeResult`, whatever it took; [`Event::Ready`] follows, after `initialize` once
    /// `notifications/initialized` was delivered.
    ///
    /// # Errors
    ///
    /// [`Misuse::Started`] the second time, [`Misuse::Closed`] once the connection was closed, [`Misuse::Unserializable`] where
    /// the client's own information has no JSON form.
    pub fn start(&mut self, now: Instant) -> Result<CallId, Misuse> {
        self.start_from(now, now)
    }

    /// As [`start`](Self::start), where the handshake goes on that `began` over another connection to the same server (a
    /// program that was started again, a server of another transport): both have the time of one.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_from(&mut self, now: Instant, began: Instant) -> Result<CallId, Misuse> {
        match self.phase {
            Phase::Idle => {}
            Phase::Closed => return Err(Misuse::Closed),
            _ => return Err(Misuse::Started),
        }
        let call = self.next_call_id();
        let (version, reason) = match &self.config.mode {
            Mode::Auto => (ProtocolVersion::LATEST, VerdictReason::Discovered),
            Mode::Known(Verdict { version, .. }) if version.is_modern() => {
                (*version, VerdictReason::Discovered)
            }
            Mode::Known(Verdict { reason, .. }) => (ProtocolVersion::LATEST_LEGACY, reason.clone()),
            Mode::Legacy => (ProtocolVersion::LATEST_LEGACY, VerdictReason::Configured),
            Mode::Pinned(version) => (*version, VerdictReason::Configured),
        };
        let handshake = Box::new(Handshake {
            began,
            ends: began.checked_add(self.config.initialize_timeout),
            version,
            reason,
            reprobed: false,
            renegotiated: false,
            status: None,
            refusal: None,
        });
        let begun = if version.is_modern() {
            self.probe(now, call, handshake, version)
        } else {
            self.initialize(now, call, handshake, version)
        };
        if begun.is_err() {
            self.phase = Phase::Idle;
        }
        begun.map(|()| call)
    }

    /// Sends `server/discover` as the next step of the handshake.
    pub(crate) fn probe(
        &mut self,
        now: Instant,
        call: CallId,
        mut handshake: Box<Handshake>,
        version: ProtocolVersion,
    ) -> Result<(), Misuse> {
        handshake.version = version;
        handshake.status = None;
        let (began, ends) = (handshake.began, handshake.ends);
        // Only where silence has a meaning it is not waited out.
        let patience = match (&self.config.mode, self.config.wire) {
            (Mode::Auto, Wire::Channel) => Some(self.config.probe_timeout),
            (Mode::Known(_), Wire::Channel) => {
                Some(self.config.probe_timeout.saturating_mul(PATIENCE_WITH_KNOWN))
            }
            _ => None,
        };
        // Never the whole time of the handshake: `initialize` needs some of it.
        let patience =
            patience.and_then(|time| now.checked_add(time.min(self.config.initialize_timeout / 2)));
        self.phase = Phase::Probing(handshake);
        let options = CallOptions::with_timeout(self.config.initialize_timeout);
        self.send_request(now, call, methods::SERVER_DISCOVER, None, CallKind::Probe, &options)?;
        self.set_handshake_deadline(call, began, earliest(ends, patience));
        Ok(())
    }

    /// When the handshake under way fails at the latest, whatever it still has to try.
    pub fn handshake_deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Probing(handshake) | Phase::Initializing(handshake) => handshake.ends,
            _ => None,
        }
    }

    /// The HTTP status that the answer to the request of this call came with. Told before the answer is handed over;
    /// it matters while the era of the server is being found out.
    pub fn handle_status(&mut self, call: CallId, status: u16) {
        if let Phase::Probing(handshake) | Phase::Initializing(handshake) = &mut self.phase
            && self.calls.get(&call).is_some_and(|state| state.kind.is_handshake())
        {
            handshake.status = Some(status);
        }
    }

    /// The exchange of the probe failed. Returns whether that says what to do next.
    pub(crate) fn handle_probe_failed(
        &mut self,
        now: Instant,
        call: CallId,
        failure: ExchangeFailure,
    ) -> bool {
        let Phase::Probing(handshake) = &self.phase else { return false };
        let (probed, reprobed) = (Probed::Failed(failure), handshake.reprobed);
        if !self.calls.get(&call).is_some_and(|state| state.kind == CallKind::Probe)
            || judge(self.config.wire, &probed, reprobed) == Next::Surface
        {
            return false;
        }
        let Some(state) = self.remove_call(call) else { return false };
        // Invariant: what does not surface needs no error of its own.
        let error = CallError::Closed { dispatched: true };
        self.conclude(now, call, &state, &probed, String::new(), error);
        true
    }

    /// Whether the transport ended while the server was asked what it is, as servers do that know nothing but
    /// `initialize`. Then it is worth starting it once more, with [`Mode::Known`] and
    /// [`VerdictReason::ExitedOnProbe`].
    pub const fn wants_restart(&self) -> bool {
        self.wants_restart
    }

    /// The transport ended during the probe.
    pub(crate) fn note_end_of_probe(&mut self) {
        let asked = self.calls.values().any(|state| state.kind == CallKind::Probe);
        let may_be_legacy = matches!(self.config.mode, Mode::Auto | Mode::Known(_));
        if asked && may_be_legacy && self.config.wire == Wire::Channel {
            self.wants_restart = true;
        }
    }

    pub(crate) fn handle_discover_result(
        &mut self,
        now: Instant,
        call: CallId,
        state: &CallState,
        result: RawRef<'_>,
    ) {
        let invalid = CallError::InvalidResult {
            reason: "the answer to server/discover is no DiscoverResult".to_owned(),
        };
        let Some(discovered) = read_result(result) else {
            let typed = has_result_type(result);
            return self.conclude(now, call, state, &Probed::OtherResult { typed }, String::new(), invalid);
        };
        let names: Vec<String> = discovered.supported_versions.iter().cloned().collect();
        let versions: Vec<ProtocolVersion> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let versions = match self.config.mode {
            Mode::Pinned(pinned) => versions.into_iter().filter(|version| *version == pinned).collect(),
            _ => versions,
        };
        let probed = Probed::Discovered(versions);
        let Phase::Probing(handshake) = &self.phase else { return };
        let reason = match self.config.mode {
            Mode::Pinned(_) => VerdictReason::Configured,
            _ => VerdictReason::Discovered,
        };
        let Next::Modern(version) = judge(self.config.wire, &probed, handshake.reprobed) else {
            let names = excerpt(&names.join(", "), MAX_SHOWN_VERSION);
            return self.conclude(now, call, state, &probed, names, invalid);
        };
        let raw = result.to_owned();
        let server = ServerFacts {
            protocol_version: version,
            server_info: discovered.server_info(),
            capabilities: discovered.capabilities,
            instructions: discovered.instructions,
            verdict: Verdict::new(version, reason),
            raw: raw.clone(),
        };
        self.phase = Phase::Ready { server: Box::new(server) };
        self.end_call(now, call, state, Ok(raw));
        self.push_event(Event::Ready);
    }

    pub(crate) fn handle_probe_refused(
        &mut self,
        now: Instant,
        call: CallId,
        state: &CallState,
        error: ErrorObject,
    ) {
        let Phase::Probing(handshake) = &mut self.phase else { return };
        let offered = versions_offered(&error);
        if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION && offered.is_none() {
            handshake.refusal = Some(error.clone());
        }
        let probed = Probed::Refused { code: error.code, offered, status: handshake.status };
        let names = versions_shown(&error);
        self.conclude(now, call, state, &probed, names, CallError::Rpc(error));
    }

    /// The probe was answered with something that is no JSON-RPC answer. No modern server does that.
    pub(crate) fn handle_garbled_probe(
        &mut self,
        now: Instant,
        call: CallId,
        state: &CallState,
        error: CallError,
    ) {
        if !matches!(self.phase, Phase::Probing(_)) {
            return;
        }
        self.conclude(now, call, state, &Probed::OtherResult { typed: false }, String::new(), error);
    }

    /// The probe got no answer in its time.
    pub(crate) fn time_out_probe(&mut self, now: Instant, call: CallId, state: &CallState, error: CallError) {
        let Phase::Probing(handshake) = &self.phase else { return };
        if handshake.ends.is_some_and(|ends| ends <= now) {
            return self.end_call(now, call, state, Err(error));
        }
        self.conclude(now, call, state, &Probed::Silent, String::new(), error);
    }

    /// Does what the table says. `names`: the revisions that the server named, to show; `error`: the outcome where there
    /// is no next step.
    fn conclude(
        &mut self,
        now: Instant,
        call: CallId,
        state: &CallState,
        probed: &Probed,
        names: String,
        error: CallError,
    ) {
        let mut handshake = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Probing(handshake) => handshake,
            other => return self.phase = other,
        };
        let pinned = match self.config.mode {
            Mode::Pinned(version) => Some(version),
            _ => None,
        };
        let foreign = |names: String| CallError::UnsupportedVersion {
            server: names,
            client: pinned.unwrap_or(ProtocolVersion::LATEST).as_str().to_owned(),
            pinned: pinned.is_some(),
        };
        let step = match judge(self.config.wire, probed, handshake.reprobed) {
            Next::Reprobe(version) if pinned.is_none_or(|pinned| pinned == version) => {
                handshake.reprobed = true;
                self.probe(now, call, handshake, version)
            }
            Next::Initialize { offer, reason } if pinned.is_none() => {
                handshake.reason = reason;
                self.initialize(now, call, handshake, offer)
            }
            Next::Initialize { .. } if names.is_empty() => {
                return self.end_call(now, call, state, Err(foreign("2025-11-25 or older".to_owned())));
            }
            Next::Incompatible | Next::Initialize { .. } | Next::Reprobe(_) => {
                return self.end_call(now, call, state, Err(foreign(names)));
            }
            // Invariant: a result that can be used never gets here.
            Next::Modern(_) | Next::Surface => return self.end_call(now, call, state, Err(error)),
        };
        if step.is_err() {
            self.end_call(now, call, state, Err(error));
        }
    }

    /// Whether a server refuses `initialize` like one that has no such method, or that misses what each modern request
    /// carries, and nobody asked this one what it is, or it gave no answer: it was slow, or the verdict is wrong.
    pub(crate) fn may_be_modern(&self, handshake: &Handshake, error: &ErrorObject) -> bool {
        let foreign = [ErrorCode::INVALID_PARAMS, ErrorCode::INVALID_REQUEST, ErrorCode::METHOD_NOT_FOUND];
        let unheard = match &self.config.mode {
            Mode::Auto => handshake.reason == VerdictReason::SilentOnProbe,
            // It would end again.
            Mode::Known(_) if handshake.reason == VerdictReason::ExitedOnProbe => false,
            Mode::Known(Verdict { version, .. }) => {
                version.is_legacy() || handshake.reason == VerdictReason::SilentOnProbe
            }
            Mode::Legacy | Mode::Pinned(_) => false,
        };
        unheard && !handshake.reprobed && !handshake.renegotiated && foreign.contains(&error.code)
    }

    /// The modern revision to ask again under, where a refusal of `initialize` shows a modern server.
    pub(crate) fn modern_evidence(
        &self,
        handshake: &Handshake,
        error: &ErrorObject,
    ) -> Option<ProtocolVersion> {
        if handshake.reprobed || !matches!(self.config.mode, Mode::Auto | Mode::Known(_)) {
            return None;
        }
        match error.code {
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                versions_offered(error)?.into_iter().filter(|version| version.is_modern()).max()
            }
            ErrorCode::HEADER_MISMATCH => Some(ProtocolVersion::LATEST),
            _ => None,
        }
    }
}

/// How many times the probe timeout a server may be silent that was modern before.
const PATIENCE_WITH_KNOWN: u32 = 3;

fn read_result(result: RawRef<'_>) -> Option<DiscoverResult> {
    let text = result.as_str();
    let result = text.starts_with('{').then(|| DiscoverResult::from_json(text).ok())??;
    matches!(result.result_type, None | Some(ResultType::Complete)).then_some(result)
}

fn has_result_type(result: RawRef<'_>) -> bool {
    inspect_result_type(result.as_str()).is_ok()
        && result.members(["resultType"]).is_ok_and(|[result_type]| result_type.is_some())
}
