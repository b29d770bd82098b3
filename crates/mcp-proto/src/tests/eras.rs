//! Finding out the era of the server: the tables of the specification as the core plays them.

use std::time::Duration;

use mcp_model::ProtocolVersion;
use serde_json::{Value, json};

use super::{Session, config};
use crate::{
    CallError, CallId, Config, DiagnosticKind, Era, Event, ExchangeFailure, Misuse, Mode, Origin,
    RetryConfig, Verdict, VerdictReason, Wire,
};

const MODERN: &str = "2026-07-28";

fn auto() -> Config {
    Config { mode: Mode::Auto, ..config() }
}

fn auto_over_exchanges() -> Config {
    Config { wire: Wire::Exchanges, ..auto() }
}

fn discovered(versions: &[&str]) -> Value {
    json!({
        "supportedVersions": versions, "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0,
        "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    })
}

fn refusal(code: i64, data: &Value) -> Value {
    json!({"code": code, "message": "no", "data": data})
}

impl Session {
    /// Starts and takes the first request, which must be a probe.
    fn probing(config: Config) -> (Self, CallId, Value) {
        let mut session = Self::new(config);
        let call = session.initialize();
        let probe = session.only_sent();
        assert_eq!(probe["method"], "server/discover");
        (session, call, probe)
    }

    fn refuse(&mut self, request: &Value, error: &Value) {
        self.peer_json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    }

    /// The next request, which must be `initialize` offering this revision, without a trace of the probe.
    fn fallback(&mut self, offered: &str) -> Value {
        let transmit = self.sent.last().expect("something was sent").clone();
        assert_eq!(transmit.head, crate::Head::default());
        let initialize = self.only_sent();
        assert_eq!(initialize["method"], "initialize");
        assert_eq!(initialize["params"]["protocolVersion"], offered);
        assert!(initialize["params"].get("_meta").is_none());
        initialize
    }

    fn verdict(&self) -> Verdict {
        self.core.server().unwrap().verdict.clone()
    }

    /// The server accepts `initialize`, and the connection stands.
    fn accept_fallback(&mut self, call: CallId, reason: &VerdictReason) {
        self.sent.clear();
        let id = self.core.wire.iter().next().unwrap().0;
        let id = serde_json::to_value(id).unwrap();
        self.answer(&id, &json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
        assert!(self.outcome(call).is_ok());
        assert_eq!(self.only_sent()["method"], "notifications/initialized");
        self.core.handle_initialized_delivered(self.now);
        assert!(matches!(self.only_event(), Event::Ready));
        assert_eq!(self.verdict(), Verdict::new(ProtocolVersion::V2025_11_25, reason.clone()));
    }
}

/// protocol:L-19, protocol:L-20, protocol:L-22, protocol:L-26, protocol:H-35
#[test]
fn the_probe_says_everything_about_the_client() {
    let (session, _, probe) = Session::probing(Config { sampling: true, ..auto_over_exchanges() });
    assert_eq!(
        probe["params"],
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0"},
        }})
    );
    assert!(session.sent.is_empty());
    let mut session = Session::new(Config { send_client_info: false, ..auto_over_exchanges() });
    session.initialize();
    let head = session.sent[0].head.clone();
    assert_eq!(head.protocol_version, Some(ProtocolVersion::V2026_07_28));
    assert_eq!(head.routing.unwrap().method, "server/discover");
    let probe = session.only_sent();
    assert!(probe["params"]["_meta"].get("io.modelcontextprotocol/clientInfo").is_none());
}

/// protocol:S1, protocol:H1, protocol:J-28
#[test]
fn a_modern_server_is_ready_with_its_answer_and_hears_no_initialize() {
    for config in [auto(), auto_over_exchanges()] {
        let (mut session, call, probe) = Session::probing(config);
        session.answer(&probe["id"], &discovered(&["2025-11-25", MODERN]));
        let events = session.events();
        assert!(
            matches!(&events[..], [Event::CallEnded { call: ended, outcome: Ok(_) }, Event::Ready] if *ended == call)
        );
        assert!(session.sent().is_empty());
        let server = session.core.server().unwrap();
        assert_eq!((server.era(), server.protocol_version.as_str()), (Era::Modern, MODERN));
        assert_eq!(server.server_info.as_ref().unwrap().name, "s");
        assert_eq!(session.verdict().reason, VerdictReason::Discovered);
        session.assert_idle();
    }
}

/// protocol:S2, protocol:S4, protocol:S6, protocol:S8, protocol:S11, protocol:H5, protocol:H9, protocol:H10, protocol:H12
#[test]
fn a_legacy_server_is_initialized_in_the_same_call() {
    let check = |config: Config, answer: &Value, offered: &str, reason: VerdictReason| {
        let (mut session, call, probe) = Session::probing(config);
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = probe["id"].clone();
        session.peer_json(&message);
        let initialize = session.fallback(offered);
        assert_ne!(initialize["id"], probe["id"]);
        session.accept_fallback(call, &reason);
    };
    for config in [auto(), auto_over_exchanges()] {
        let check = |answer: &Value, offered: &str, reason| check(config.clone(), answer, offered, reason);
        check(&json!({"result": discovered(&["2025-06-18"])}), "2025-06-18", VerdictReason::Discovered);
        let named = refusal(-32022, &json!({"supported": ["2025-06-18", "2024-11-05"], "requested": MODERN}));
        check(&json!({"error": named}), "2025-06-18", VerdictReason::NamedVersions);
        let unnamed = refusal(-32022, &json!(null));
        check(&json!({"error": unnamed}), "2025-11-25", VerdictReason::UnnamedVersions);
        for code in [-32601, -32602, -32600, -32000, 0] {
            let refused = refusal(code, &json!({}));
            check(&json!({"error": refused}), "2025-11-25", VerdictReason::RefusedProbe(code));
        }
        check(&json!({"result": {}}), "2025-11-25", VerdictReason::OtherResult);
    }
}

/// protocol:S3, protocol:H4, protocol:L-30, protocol:L-31
#[test]
fn a_refused_revision_is_asked_for_once_more_and_never_with_initialize() {
    let supported = refusal(-32022, &json!({"supported": [MODERN]}));
    let (mut session, call, probe) = Session::probing(auto_over_exchanges());
    session.refuse(&probe, &supported);
    let again = session.only_sent();
    assert_eq!(again["method"], "server/discover");
    assert_ne!(again["id"], probe["id"]);
    session.refuse(&again, &supported);
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32022));
    assert!(session.sent().is_empty() && session.core.is_closed());
}

/// protocol:S5, protocol:S7, protocol:H6, protocol:H7, protocol:H14
#[test]
fn what_shows_a_modern_server_that_cannot_be_spoken_to_is_surfaced() {
    let check = |error: &Value, status: Option<u16>, shown: &str| {
        let (mut session, call, probe) = Session::probing(auto_over_exchanges());
        if let Some(status) = status {
            session.core.handle_status(call, status);
        }
        session.refuse(&probe, error);
        let shown_error = session.failure(call).to_string();
        assert!(shown_error.contains(shown), "{shown_error}");
        assert!(session.sent().is_empty() && session.core.is_closed());
        session.assert_idle();
    };
    let newer = refusal(-32022, &json!({"supported": ["2027-01-01"]}));
    check(&newer, Some(400), "revision 2027-01-01; this client speaks 2026-07-28");
    check(&refusal(-32020, &json!({})), Some(400), "-32020");
    check(&refusal(-32021, &json!({})), Some(400), "-32021");
    check(&refusal(-32603, &json!({})), Some(500), "-32603");
    check(&refusal(-32000, &json!({})), Some(429), "-32000");
}

/// protocol:S9, protocol:S15, protocol:L-38, protocol:10.10: silence is waited for, not told, and a late answer is nothing.
#[test]
fn a_silent_server_is_initialized_after_the_probe_timeout() {
    let (mut session, call, probe) = Session::probing(auto());
    session.advance(Duration::from_millis(2_999));
    assert!(session.sent().is_empty());
    session.advance(Duration::from_millis(1));
    session.fallback("2025-11-25");
    session.answer(&probe["id"], &discovered(&[MODERN]));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    assert_eq!(session.core.call_deadline(call), Some(session.start + Duration::from_secs(60)));
    session.accept_fallback(call, &VerdictReason::SilentOnProbe);
}

/// protocol:S9, protocol:H15, protocol:L-08: the handshake has one end, and over exchanges silence has no meaning.
#[test]
fn the_whole_handshake_has_the_time_of_one() {
    for (config, methods) in [(auto(), 2), (auto_over_exchanges(), 1)] {
        let (mut session, call, _) = Session::probing(config);
        session.seconds(3);
        session.seconds(57);
        assert!(matches!(session.failure(call), CallError::Timeout { .. }));
        assert_eq!(session.sent().len(), methods - 1);
        session.assert_idle();
    }
}

/// protocol:S10: the process ended on the probe; it is worth another start, unless the application closes.
#[test]
fn a_server_that_ends_on_the_probe_is_worth_a_restart() {
    let (mut session, call, _) = Session::probing(auto());
    session.core.handle_closed();
    assert!(matches!(session.failure(call), CallError::Closed { .. }));
    assert!(session.core.wants_restart());

    let (mut session, call, _) = Session::probing(auto());
    session.core.forget(call);
    assert!(session.core.wants_restart());

    for mode in [Mode::Legacy, Mode::Pinned(ProtocolVersion::V2026_07_28)] {
        let mut session = Session::new(Config { mode, ..config() });
        session.initialize();
        session.core.handle_closed();
        assert!(!session.core.wants_restart());
    }
}

/// protocol:S12, protocol:S13: what comes instead of the answer is not answered.
#[test]
fn nothing_is_written_to_a_server_that_may_be_modern() {
    let (mut session, _, probe) = Session::probing(auto());
    session.peer("Server ready");
    let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
    assert!(diagnostic.message.ends_with(": Server ready"), "{diagnostic}");
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}));
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert!(session.sent().is_empty());
    assert_eq!(session.events().len(), 3);
    session.answer(&probe["id"], &discovered(&[MODERN]));
    session.events();
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::UnexpectedRequest]);
    assert!(session.sent().is_empty());
}

/// protocol:S14, protocol:H18
/// field:FR-100
#[test]
fn an_initialize_that_a_modern_server_refuses_leads_back_to_it() {
    for (config, refused) in [
        (auto(), refusal(-32022, &json!({"supported": [MODERN]}))),
        (auto_over_exchanges(), refusal(-32020, &json!(null))),
    ] {
        let known = Verdict::new(ProtocolVersion::V2025_11_25, VerdictReason::SilentOnProbe);
        let mut session = Session::new(Config { mode: Mode::Known(known), ..config });
        session.initialize();
        let initialize = session.fallback("2025-11-25");
        session.refuse(&initialize, &refused);
        let probe = session.only_sent();
        assert_eq!(probe["method"], "server/discover");
        session.answer(&probe["id"], &discovered(&[MODERN]));
        assert_eq!(session.core.server().unwrap().era(), Era::Modern);
    }
}

/// protocol:H10, protocol:H11, protocol:H13, protocol:H14, protocol:H15, protocol:H16
#[test]
fn a_bare_status_of_a_legacy_server_leads_to_initialize_and_others_to_the_driver() {
    for status in [400, 404, 405, 415] {
        let (mut session, call, _) = Session::probing(auto_over_exchanges());
        assert!(session.exchange_failed(call, ExchangeFailure::of_status(status)));
        session.drain();
        session.fallback("2025-11-25");
        session.accept_fallback(call, &VerdictReason::RefusedWithStatus(status));
    }
    for failure in [ExchangeFailure::of_status(503), ExchangeFailure::of_status(401), ExchangeFailure::Other]
    {
        let config = Config { retry: RetryConfig::off(), ..auto_over_exchanges() };
        let (mut session, call, _) = Session::probing(config);
        assert!(!session.exchange_failed(call, failure));
        assert!(session.core.is_open(call));
        session.core.forget(call);
        assert!(session.core.is_closed() && !session.core.wants_restart());
    }
}

/// protocol:H10: the mocks and old servers answer with an error that has no id.
#[test]
fn an_error_without_an_id_on_the_exchange_of_the_probe_answers_it() {
    let (mut session, call, _) = Session::probing(auto_over_exchanges());
    let error =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unsupported protocol version"}}"#;
    session.peer_on(Origin::Exchange(call), error);
    session.fallback("2025-11-25");
    session.accept_fallback(call, &VerdictReason::RefusedProbe(-32000));
}

/// protocol:2.9, protocol:10.2
#[test]
fn a_pinned_revision_is_spoken_or_nothing_is() {
    let pinned = |version| Config { mode: Mode::Pinned(version), ..config() };
    let (mut session, call, probe) = Session::probing(pinned(ProtocolVersion::V2026_07_28));
    session.refuse(&probe, &refusal(-32601, &json!(null)));
    let error = session.failure(call).to_string();
    assert_eq!(
        error,
        "the server speaks protocol revision 2025-11-25 or older; this client is pinned to 2026-07-28"
    );
    assert!(session.sent().is_empty());

    let (mut session, call, probe) = Session::probing(pinned(ProtocolVersion::V2026_07_28));
    session.answer(&probe["id"], &discovered(&["2025-11-25"]));
    assert!(
        matches!(session.failure(call), CallError::UnsupportedVersion { server, .. } if server == "2025-11-25")
    );

    let (mut session, call, probe) = Session::probing(pinned(ProtocolVersion::V2026_07_28));
    session.refuse(&probe, &refusal(-32022, &json!({"supported": ["2025-06-18", "2025-11-25"]})));
    assert!(
        matches!(session.failure(call), CallError::UnsupportedVersion { server, .. } if server == "2025-06-18, 2025-11-25")
    );

    // It is asked once more for what it says it speaks.
    let (mut session, call, probe) = Session::probing(pinned(ProtocolVersion::V2026_07_28));
    assert!(session.core.handshake_deadline().is_some());
    session.refuse(&probe, &refusal(-32022, &json!({"supported": [MODERN]})));
    let again = session.only_sent();
    assert_eq!(again["method"], "server/discover");
    session.answer(&again["id"], &discovered(&[MODERN]));
    assert!(session.core.is_ready() && !session.core.is_open(call));
    assert_eq!(session.core.handshake_deadline(), None);
    let configured = Verdict::new(ProtocolVersion::V2026_07_28, VerdictReason::Configured);
    assert_eq!(session.verdict(), configured);

    let mut session = Session::new(pinned(ProtocolVersion::V2025_06_18));
    let call = session.initialize();
    session.fallback("2025-06-18");
    let id = serde_json::to_value(session.core.wire.iter().next().unwrap().0).unwrap();
    session.answer(&id, &json!({"protocolVersion": "2025-03-26", "capabilities": {}}));
    assert!(matches!(session.failure(call), CallError::UnsupportedVersion { .. }));
}

/// protocol:L-34, protocol:L-37: a known modern server gets more time; one that turned legacy is still connected.
#[test]
fn a_known_verdict_saves_the_probe_or_its_short_wait() {
    let known = |version, reason| Config { mode: Mode::Known(Verdict::new(version, reason)), ..config() };
    let modern = known(ProtocolVersion::V2026_07_28, VerdictReason::Discovered);
    let (mut session, call, _) = Session::probing(modern.clone());
    session.advance(Duration::from_millis(8_999));
    assert!(session.sent().is_empty());
    session.advance(Duration::from_millis(1));
    session.fallback("2025-11-25");
    session.accept_fallback(call, &VerdictReason::SilentOnProbe);
    // It was slow, and is modern after all.
    let (mut session, _, _) = Session::probing(modern.clone());
    session.seconds(9);
    let initialize = session.fallback("2025-11-25");
    session.refuse(&initialize, &refusal(-32601, &json!(null)));
    let probe = session.only_sent();
    session.answer(&probe["id"], &discovered(&[MODERN]));
    assert!(session.core.is_ready());
    let (mut session, call, probe) = Session::probing(modern);
    session.refuse(&probe, &refusal(-32601, &json!(null)));
    session.fallback("2025-11-25");
    session.accept_fallback(call, &VerdictReason::RefusedProbe(-32601));

    let reason = VerdictReason::ExitedOnProbe;
    let mut session = Session::new(known(ProtocolVersion::V2024_11_05, reason.clone()));
    let call = session.initialize();
    session.fallback("2025-11-25");
    session.accept_fallback(call, &reason);
}

fn known(version: ProtocolVersion, reason: VerdictReason, wire: Wire) -> Config {
    Config { mode: Mode::Known(Verdict::new(version, reason)), wire, ..config() }
}

/// protocol:L-34, protocol:L-37, protocol:H18: a server that was legacy is not probed, until it refuses `initialize` in the
/// way of a modern one.
#[test]
fn a_server_that_was_legacy_and_is_modern_is_asked_what_it_is() {
    for wire in [Wire::Channel, Wire::Exchanges] {
        for code in [-32601, -32602, -32600] {
            let reason = VerdictReason::RefusedProbe(-32601);
            let mut session = Session::new(known(ProtocolVersion::V2025_06_18, reason, wire));
            session.initialize();
            let initialize = session.fallback("2025-11-25");
            session.refuse(&initialize, &refusal(code, &json!(null)));
            let probe = session.only_sent();
            assert_eq!(probe["method"], "server/discover");
            session.answer(&probe["id"], &discovered(&[MODERN]));
            assert_eq!(
                session.verdict(),
                Verdict::new(ProtocolVersion::V2026_07_28, VerdictReason::Discovered)
            );
        }
    }
    // One that ends when it is asked is not asked, and one error of the application is no sign of anything.
    for (reason, code) in [(VerdictReason::ExitedOnProbe, -32601), (VerdictReason::SilentOnProbe, -32603)] {
        let mut session = Session::new(known(ProtocolVersion::V2024_11_05, reason, Wire::Channel));
        let call = session.initialize();
        let initialize = session.fallback("2025-11-25");
        session.refuse(&initialize, &refusal(code, &json!(null)));
        assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == code));
        assert!(session.sent().is_empty());
    }
}

/// protocol:S6: the refusal of the probe says more than that of `initialize`.
#[test]
fn the_first_refusal_is_reported_when_the_second_says_less() {
    let (mut session, call, probe) = Session::probing(auto());
    session.refuse(&probe, &refusal(-32022, &json!("nonsense")));
    let initialize = session.fallback("2025-11-25");
    session.refuse(&initialize, &refusal(-32601, &json!(null)));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32022));
}

#[test]
fn nothing_is_called_before_the_era_is_known() {
    let (mut session, call, _) = Session::probing(auto());
    assert_eq!(session.try_call("tools/list"), Err(Misuse::NotReady));
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty(), "a handshake is not cancelled on the wire");
    assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
}

/// protocol:S8, protocol:L-35: anything but the answers of a modern server shows a legacy one.
#[test]
fn a_garbled_answer_to_the_probe_shows_a_legacy_server() {
    for batched in [false, true] {
        let (mut session, call, probe) = Session::probing(auto());
        let error = if batched { json!({"code": -32601, "message": "no"}) } else { json!("no such method") };
        let answer = json!({"jsonrpc": "2.0", "id": probe["id"], "error": error});
        session.peer_json(&if batched { json!([answer]) } else { answer });
        session.events();
        session.fallback("2025-11-25");
        assert_eq!(session.core.call_deadline(call), Some(session.start + Duration::from_secs(60)));
        session.accept_fallback(call, &VerdictReason::OtherResult);
    }
}

/// protocol:S9, protocol:L-08
#[test]
fn a_short_handshake_still_has_time_for_initialize_after_silence() {
    let config = Config { initialize_timeout: Duration::from_secs(2), ..auto() };
    let (mut session, call, _) = Session::probing(config);
    session.seconds(1);
    session.fallback("2025-11-25");
    session.accept_fallback(call, &VerdictReason::SilentOnProbe);
}

/// protocol:S14, protocol:L-19: a modern server that was slow need not name revisions when it refuses `initialize`.
#[test]
fn a_server_that_was_silent_and_knows_no_initialize_is_asked_once_more() {
    for code in [-32601, -32602, -32600] {
        let (mut session, call, _) = Session::probing(auto());
        session.seconds(3);
        let initialize = session.fallback("2025-11-25");
        session.refuse(&initialize, &refusal(code, &json!(null)));
        let probe = session.only_sent();
        assert_eq!(probe["method"], "server/discover");
        session.refuse(&probe, &refusal(code, &json!(null)));
        let initialize = session.fallback("2025-11-25");
        session.refuse(&initialize, &refusal(code, &json!(null)));
        assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == code));
        assert!(session.core.is_closed(), "once is enough");
        session.assert_idle();
    }
}

/// protocol:S10, protocol:L-39: a handshake that goes on with another process has no more time than one.
#[test]
fn a_handshake_over_two_connections_has_the_time_of_one() {
    let known = Verdict::new(ProtocolVersion::LATEST_LEGACY, VerdictReason::ExitedOnProbe);
    for (before, left) in [(0, 60), (45, 15), (60, 0), (100, 0)] {
        let mut session = Session::new(Config { mode: Mode::Known(known.clone()), ..config() });
        let began = session.start;
        session.seconds(before);
        let call = session.core.start_from(session.now, began).unwrap();
        session.drain();
        session.sent();
        session.advance(Duration::from_secs(left));
        let failure = session.failure(call);
        assert!(matches!(failure, CallError::Timeout { after, .. } if after == Duration::from_secs(60)));
    }
}

/// protocol:J-27: a server that gives its results a type knows the modern protocol; only one that does not is asked again in
/// the legacy way.
#[test]
fn over_exchanges_a_result_with_a_type_shows_no_legacy_server() {
    let (mut session, call, probe) = Session::probing(auto_over_exchanges());
    session.answer(&probe["id"], &json!({"resultType": "input_required"}));
    assert!(matches!(session.failure(call), CallError::InvalidResult { .. }));
    assert!(session.sent().is_empty());
    let (mut session, call, probe) = Session::probing(auto_over_exchanges());
    session.answer(&probe["id"], &json!({"tools": []}));
    assert_eq!(session.only_sent()["method"], "initialize");
    assert!(session.core.is_open(call));
}

/// What `initialize` was refused with is what the caller hears, unless the probe was told of revisions that nobody could read.
#[test]
fn the_refusal_that_says_more_is_the_outcome() {
    for (code, heard) in [(-32601, -32099), (-32022, -32022)] {
        let (mut session, call, probe) = Session::probing(auto());
        session.refuse(&probe, &refusal(code, &Value::Null));
        let initialize = session.fallback("2025-11-25");
        session.refuse(&initialize, &refusal(-32099, &Value::Null));
        let error = session.failure(call);
        assert!(matches!(&error, CallError::Rpc(error) if error.code.get() == heard), "{code}: {error:?}");
    }
}
