//! The handshake that succeeds, and what goes on beside it.

use std::time::Duration;

use mcp_model::{ProtocolVersion, Root};
use serde_json::{Value, json};

use super::{Session, config};
use crate::{Config, ElicitationSupport, Event, InputRequest, Misuse, TransmitKind};

/// protocol:L-01, protocol:L-02, protocol:10.12, seed:S-01, seed:S-11
#[test]
fn initialize_offers_the_newest_legacy_revision_and_says_who_we_are() {
    let mut session = Session::new(config());
    let call = session.initialize();
    let transmit = session.sent.first().cloned().unwrap();
    let TransmitKind::Request { establishes_session, resumable, .. } = transmit.kind else {
        panic!("a request")
    };
    assert!(establishes_session && !resumable);
    assert_eq!((transmit.owner, transmit.head.protocol_version), (Some(call), None));
    let sent = session.only_sent();
    assert_eq!(sent["method"], "initialize");
    assert_eq!(
        sent["params"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1.0"},
        })
    );
}

/// protocol:L-16, protocol:L-17, seed:S-64, seed:S-65: exactly what is served, in the shape of the revision offered.
#[test]
fn capabilities_are_declared_as_configured_and_as_the_revision_writes_them() {
    let check = |change: fn(&mut Config), newest: Value, under_2025_06_18: Value, under_2025_03_26: Value| {
        let mut config = config();
        change(&mut config);
        let mut session = Session::new(config.clone());
        session.initialize();
        assert_eq!(session.only_sent()["params"]["capabilities"], newest);
        for (revision, expected) in [("2025-06-18", under_2025_06_18), ("2025-03-26", under_2025_03_26)] {
            let mut session = Session::new(config.clone());
            session.initialize();
            let id = session.last_request_id();
            session.sent.clear();
            session.peer(&refusal(&id, -32602, &format!(r#"{{"supported":["{revision}"]}}"#)));
            let retry = session.only_sent();
            assert_eq!(retry["params"]["protocolVersion"], revision);
            assert_eq!(retry["params"]["capabilities"], expected, "{revision}");
        }
    };
    check(|_| {}, json!({}), json!({}), json!({}));
    check(
        |config| config.elicitation = ElicitationSupport::all(),
        json!({"elicitation": {"form": {}, "url": {}}}),
        json!({"elicitation": {}}),
        json!({}),
    );
    check(
        |config| config.elicitation = ElicitationSupport::form(),
        json!({"elicitation": {}}),
        json!({"elicitation": {}}),
        json!({}),
    );
    check(|config| config.elicitation.url = true, json!({"elicitation": {"url": {}}}), json!({}), json!({}));
    let roots = json!({"roots": {"listChanged": true}});
    check(|config| config.roots = Some(Vec::new()), roots.clone(), roots.clone(), roots);
    let sampling = json!({"sampling": {}});
    check(|config| config.sampling = true, sampling.clone(), sampling.clone(), sampling);
}

fn refusal(id: &str, code: i64, data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#)
}

/// protocol:L-03, field:FR-074
#[test]
fn every_older_revision_is_accepted_and_spoken_from_then_on() {
    for version in ProtocolVersion::ALL.into_iter().filter(|version| version.is_legacy()) {
        let mut session = Session::new(config());
        let call = session.initialize();
        session.accept(version.as_str(), "{}");
        assert!(session.outcome(call).is_ok());
        session.core.handle_initialized_delivered(session.now);
        let server = session.core.server().expect("the handshake is complete");
        assert_eq!(server.protocol_version, version);
        session.drain();
        session.sent.clear();
        session.core.call(session.now, "ping", None, &crate::CallOptions::default()).unwrap();
        assert_eq!(session.core.poll_transmit().unwrap().head.protocol_version, Some(version));
    }
}

/// protocol:L-05, seed:E15, seed:S-67, field:FR-087
/// protocol:L-06
#[test]
fn initialized_is_delivered_before_anything_else_goes_out() {
    let mut session = Session::new(config());
    assert_eq!(session.try_call("ping"), Err(Misuse::NotReady));
    let call = session.initialize();
    assert_eq!(session.try_call("ping"), Err(Misuse::NotReady));
    session.accept("2025-11-25", "{}");
    let initialized = session.sent.last().cloned().unwrap();
    assert_eq!((&initialized.kind, initialized.owner), (&TransmitKind::Notification, Some(call)));
    assert_eq!(initialized.head.protocol_version, Some(ProtocolVersion::V2025_11_25));
    assert_eq!(session.sent().pop(), Some(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
    session.outcome(call).unwrap();

    // A slow delivery: still nothing.
    session.seconds(3600);
    assert_eq!(session.try_call("ping"), Err(Misuse::NotReady));
    assert_eq!(session.core.notify("vendor/note", None), Err(Misuse::NotReady));
    assert!(!session.core.is_ready() && session.sent().is_empty() && session.events().is_empty());

    session.core.handle_initialized_delivered(session.now);
    assert!(matches!(session.only_event(), Event::Ready));
    session.core.handle_initialized_delivered(session.now);
    assert!(session.events().is_empty(), "once");
    assert!(session.try_call("ping").is_ok());
}

#[test]
fn starting_twice_is_refused() {
    let mut session = Session::new(config());
    session.initialize();
    assert_eq!(session.core.start(session.now), Err(Misuse::Started));
    session.accept("2025-11-25", "{}");
    assert_eq!(session.core.start(session.now), Err(Misuse::Started));
    session.core.handle_closed();
    assert_eq!(session.core.start(session.now), Err(Misuse::Closed));
}

/// protocol:L-07, protocol:G-01
#[test]
fn ping_and_log_are_served_in_every_state_of_the_handshake() {
    let mut session = Session::new(config());
    session.initialize();
    let check = |session: &mut Session| {
        session.drain();
        session.sent.clear();
        session.events.clear();
        session.peer(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        assert_eq!(session.only_sent(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        session.peer(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"starting"}}"#,
        );
        assert!(matches!(session.only_event(), Event::Log(_)));
    };
    check(&mut session);
    session.peer(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
    check(&mut session);
    session.core.handle_initialized_delivered(session.now);
    check(&mut session);
}

/// Nobody can have been told what this client serves before `initialize` was answered.
#[test]
fn questions_for_a_person_wait_for_the_result_of_initialize() {
    let mut session =
        Session::new(Config { elicitation: ElicitationSupport::all(), sampling: true, ..config() });
    session.initialize();
    session.sent.clear();
    for method in ["elicitation/create", "sampling/createMessage"] {
        session.peer_json(&json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": {}}));
        assert_eq!(session.only_sent()["error"]["code"], -32600, "{method}");
    }
    assert_eq!(session.core.open_server_requests(), 0);
    assert_eq!(session.diagnostics().len(), 2);
}

/// A server over HTTP has `initialized` before we hear that it does.
#[test]
fn a_question_while_initialized_is_under_way_is_served() {
    let mut session = Session::new(Config { sampling: true, ..config() });
    let call = session.initialize();
    session.accept("2025-11-25", "{}");
    session.outcome(call).unwrap();
    session.peer(r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"messages":[]}}"#);
    assert!(matches!(session.question().input, InputRequest::CreateMessage(_)));
}

/// protocol:J-28: what a server says about itself never decides whether there is a connection.
#[test]
fn an_odd_description_of_the_server_fails_nothing() {
    for odd in [
        r#""serverInfo":null,"capabilities":null"#,
        r#""serverInfo":"s""#,
        r#""serverInfo":{"name":1},"instructions":7"#,
        r#""capabilities":{"tools":true,"x":[1]},"extra":{"deep":[[[]]]}"#,
    ] {
        let mut session = Session::new(config());
        let call = session.initialize();
        let id = session.last_request_id();
        session.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18",{odd}}}}}"#
        ));
        let result = session.outcome(call).unwrap();
        let server = session.core.server().unwrap();
        assert!(server.server_info.is_none() && server.instructions.is_none(), "{odd}");
        assert_eq!(server.raw, result);
    }
}

/// protocol:L-17: a server that asked for the roots during the handshake is told after it that they changed.
#[test]
fn roots_that_change_during_the_handshake_are_announced_after_it() {
    let check = |asks: bool, announced: &[&str]| {
        let mut session = Session::new(Config { roots: Some(vec![Root::new("file:///a")]), ..config() });
        session.initialize();
        if asks {
            session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
            assert_eq!(session.sent().pop().unwrap()["result"]["roots"][0]["uri"], "file:///a");
            session.core.set_roots(vec![Root::new("file:///b")]).unwrap();
            assert!(session.sent().is_empty());
            session.peer(
                r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
            );
        } else {
            session.core.set_roots(vec![Root::new("file:///b")]).unwrap();
            session.accept("2025-11-25", "{}");
        }
        session.drain();
        session.sent.clear();
        session.core.handle_initialized_delivered(session.now);
        let methods: Vec<Value> = session.sent().into_iter().map(|sent| sent["method"].clone()).collect();
        assert_eq!(methods, announced);
    };
    check(true, &["notifications/roots/list_changed"]);
    check(false, &[]);
}

/// A handshake that is given all the time in the world still ends when it is answered.
#[test]
fn an_initialize_timeout_beyond_the_clock_means_never() {
    let mut session = Session::new(Config { initialize_timeout: Duration::MAX, ..config() });
    session.initialize();
    assert_eq!(session.core.poll_timeout(), None);
    session.seconds(100 * 365 * 86_400);
    session.accept("2024-11-05", "{}");
    assert!(!session.core.is_closed());
}
