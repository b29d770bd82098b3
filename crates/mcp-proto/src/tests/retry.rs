//! Calls that fail on their way.

use std::time::Duration;

use serde_json::{Value, json};

use super::modern::on_exchanges;
use super::{ALL_CAPABILITIES, Session, config};
use crate::{
    CallError, CallId, CallOptions, Config, DiagnosticKind, Event, ExchangeFailure, Mode, RetryConfig, Wire,
};

const IDEMPOTENT: [&str; 7] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "ping",
];
const OTHERS: [&str; 3] = ["tools/call", "prompts/get", "x/vendor"];

fn status(status: u16) -> ExchangeFailure {
    ExchangeFailure::of_status(status)
}

fn busy(seconds: u64) -> ExchangeFailure {
    ExchangeFailure::Status { status: 503, retry_after: Some(Duration::from_secs(seconds)), explained: false }
}

fn legacy_with(retry: RetryConfig) -> Session {
    let config = Config { wire: Wire::Exchanges, retry, ..config() };
    Session::ready_with(config, "2025-11-25", ALL_CAPABILITIES)
}

fn modern_with(retry: RetryConfig) -> Session {
    Session::modern(Config { retry, ..on_exchanges() })
}

fn both() -> [Session; 2] {
    [legacy_with(RetryConfig::default()), modern_with(RetryConfig::default())]
}

fn params(method: &str) -> Value {
    match method {
        "resources/read" => json!({"uri": "a:b"}),
        "completion/complete" => {
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}})
        }
        _ => json!({"name": "n"}),
    }
}

impl Session {
    /// The exchange fails. Whether the call waits to be tried again; nothing is sent before that.
    fn fails(&mut self, call: CallId, failure: ExchangeFailure) -> bool {
        assert!(!self.exchange_failed(call, ExchangeFailure::Other));
        let waits = self.exchange_failed(call, failure);
        self.drain();
        assert!(self.core.is_open(call));
        if waits {
            assert!(self.sent.is_empty());
            assert_eq!(self.diagnostics(), [DiagnosticKind::CallRetried]);
            assert!(!self.core.awaits_answer(call));
        } else {
            assert!(self.events().is_empty());
        }
        waits
    }

    /// Lets the wait pass, which is within these bounds, and takes the request.
    fn tries_again(&mut self, call: CallId, least: u64, most: u64) -> Value {
        let at = self.core.call_deadline(call).unwrap();
        let wait = at - self.now;
        let bounds = Duration::from_millis(least)..=Duration::from_millis(most);
        assert!(bounds.contains(&wait), "{wait:?}");
        assert_eq!(self.core.poll_timeout(), Some(at));
        self.advance(wait - Duration::from_nanos(1));
        assert!(self.sent.is_empty());
        self.advance(Duration::from_nanos(1));
        self.only_sent()
    }
}

/// protocol:H-38, protocol:10.11, seed:E26: every row of the table of the module.
#[test]
fn what_is_repeated_depends_on_what_the_server_may_have_seen() {
    let transient = [429, 500, 502, 503, 504].map(status);
    let never = [200, 301, 400, 401, 403, 404, 405, 408, 413, 422, 501, 505, 599].map(status);
    let has = |session: &Session, method: &str| {
        method != "ping" || session.core.server().is_some_and(|server| server.protocol_version.is_legacy())
    };
    let check = |method: &str, failure: ExchangeFailure, expected: bool| {
        for mut session in both().into_iter().filter(|session| has(session, method)) {
            let (call, _) = session.ask(method, &params(method));
            assert_eq!(session.fails(call, failure), expected, "{method} {failure:?}");
            session.core.cancel(session.now, call, None);
            session.drain();
            session.assert_idle();
        }
    };
    for method in IDEMPOTENT {
        check(method, ExchangeFailure::NotSent, true);
        check(method, ExchangeFailure::ConnectionLost, true);
        transient.iter().for_each(|failure| check(method, *failure, true));
        never.iter().for_each(|failure| check(method, *failure, false));
    }
    for method in OTHERS {
        check(method, ExchangeFailure::NotSent, true);
        check(method, ExchangeFailure::ConnectionLost, false);
        transient.iter().chain(&never).for_each(|failure| check(method, *failure, false));
    }
}

/// protocol:H-38: a new id for each attempt, the same params, and one end; an answer to the lost one is for nobody.
#[test]
fn a_list_whose_connection_breaks_is_asked_for_again() {
    for mut session in both() {
        let (call, first) = session.ask("tools/list", &json!({"cursor": "c"}));
        assert!(session.fails(call, ExchangeFailure::ConnectionLost));
        let second = session.tries_again(call, 125, 250);
        assert_eq!(second["method"], "tools/list");
        assert_eq!(second["params"]["cursor"], "c");
        assert_ne!(second["id"], first["id"]);
        session.answer(&first["id"], &json!({"tools": [1]}));
        assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
        assert!(session.fails(call, status(502)));
        let third = session.tries_again(call, 250, 500);
        session.answer(&third["id"], &json!({"tools": []}));
        assert_eq!(session.outcome(call).unwrap().as_str(), r#"{"tools":[]}"#);
        session.assert_idle();
    }
}

/// A tool call of which no byte was sent is the same call: in the legacy era even the same message.
#[test]
fn a_tool_call_that_never_left_is_sent_again() {
    for mut session in both() {
        let (call, first) = session.ask("tools/call", &json!({"name": "pay"}));
        assert!(session.fails(call, ExchangeFailure::NotSent));
        let second = session.tries_again(call, 125, 250);
        assert_eq!(second["params"], first["params"]);
        assert!(!session.fails(call, ExchangeFailure::ConnectionLost), "now it may have been seen");
        session.answer(&second["id"], &json!({"content": []}));
        session.outcome(call).unwrap();
        session.assert_idle();
    }
}

/// seed:B26: reaching the server, `server/discover` and `initialize`, with waits that grow; a refusal is final at once.
#[test]
fn a_handshake_that_fails_on_its_way_is_tried_again_a_few_times() {
    let start = |mode: Mode, retry: RetryConfig| {
        let mut session = Session::new(Config { mode, retry, wire: Wire::Exchanges, ..config() });
        let call = session.initialize();
        (session, call)
    };
    for mode in [Mode::Auto, Mode::Legacy] {
        for failure in
            [ExchangeFailure::NotSent, ExchangeFailure::ConnectionLost, status(500), status(503), busy(0)]
        {
            let (mut session, call) = start(mode.clone(), RetryConfig::default());
            let first = session.only_sent();
            assert!(session.fails(call, failure));
            let second = session.tries_again(call, 125, 250);
            assert_eq!((&second["method"], &second["params"]), (&first["method"], &first["params"]));
            assert_ne!(second["id"], first["id"]);
            assert!(session.fails(call, failure));
            session.tries_again(call, 250, 500);
            assert!(!session.fails(call, failure), "three times in all");
            session.core.handle_closed();
        }
        for failure in [400, 401, 403, 404, 405, 501].map(status) {
            let (mut session, call) = start(mode.clone(), RetryConfig::default());
            session.sent();
            assert!(!session.core.retry(session.now, call, failure), "{failure:?}");
        }
        let (mut session, call) = start(mode.clone(), RetryConfig::off());
        session.sent();
        assert!(!session.fails(call, ExchangeFailure::NotSent));
    }
    // Whichever attempt succeeds, all goes on as if it had been the first.
    let (mut session, call) = start(Mode::Legacy, RetryConfig::default());
    session.sent();
    assert!(session.fails(call, ExchangeFailure::ConnectionLost));
    let request = session.tries_again(call, 125, 250);
    session.sent.clear();
    session.answer(&request["id"], &json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    session.outcome(call).unwrap();
    assert_eq!(session.only_sent()["method"], "notifications/initialized");
    session.core.handle_initialized_delivered(session.now);
    assert!(session.core.is_ready());
}

/// What never left the queue was seen by nobody; whether it failed otherwise says nothing of it.
#[test]
fn a_request_that_was_not_handed_over_is_tried_again_only_where_it_was_not_sent() {
    for (failure, expected) in
        [(ExchangeFailure::NotSent, true), (ExchangeFailure::ConnectionLost, false), (status(503), false)]
    {
        for mut session in both() {
            let call = session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
            assert_eq!(session.core.retry(session.now, call, failure), expected, "{failure:?}");
        }
    }
}

/// protocol:J-13: an answer that comes after all, while the call waits to be made anew, is for nobody.
#[test]
fn a_late_answer_does_not_end_a_call_that_is_tried_again() {
    let mut session = modern_with(RetryConfig::default());
    let (call, request) = session.ask("tools/list", &json!({}));
    assert!(session.fails(call, ExchangeFailure::ConnectionLost));
    session.answer(&request["id"], &json!({"tools": [], "resultType": "complete"}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    let again = session.tries_again(call, 125, 250);
    session.answer(&again["id"], &json!({"tools": [], "resultType": "complete"}));
    session.outcome(call).unwrap();
}

#[test]
fn a_retry_is_told_with_its_reason() {
    for (failure, said) in [
        (ExchangeFailure::ConnectionLost, "the connection broke; tried again in "),
        (ExchangeFailure::NotSent, "the server could not be reached; tried again in "),
        (busy(1), "the answer was status 503; tried again in "),
    ] {
        let mut session = modern_with(RetryConfig::default());
        let (call, _) = session.ask("tools/list", &json!({}));
        assert!(session.core.retry(session.now, call, failure));
        let Event::Diagnostic(diagnostic) = session.only_event() else { panic!("a diagnostic") };
        // Without the decimals of a wait that was drawn.
        let wait = diagnostic.message.strip_prefix(said).and_then(|wait| wait.strip_suffix('s'));
        let number = wait.map(|wait| wait.strip_suffix('m').unwrap_or(wait));
        assert!(number.is_some_and(|number| number.parse::<u16>().is_ok()), "{diagnostic}");
    }
}

/// seed:B26: all attempts together have the time of one handshake.
#[test]
fn no_attempt_of_a_handshake_begins_after_its_time() {
    let initialize_timeout = Duration::from_millis(400);
    let mut session =
        Session::new(Config { wire: Wire::Exchanges, mode: Mode::Legacy, initialize_timeout, ..config() });
    let call = session.initialize();
    session.sent();
    assert!(session.fails(call, ExchangeFailure::NotSent));
    session.tries_again(call, 125, 250);
    session.advance(Duration::from_millis(100));
    assert!(!session.fails(call, ExchangeFailure::NotSent));
    session.core.forget(call);
    session.assert_idle();
}

/// seed:3.4
#[test]
fn attempts_are_bounded() {
    for attempts in 0..5 {
        let retry = RetryConfig { max_attempts: attempts, ..RetryConfig::default() };
        for mut session in [legacy_with(retry), modern_with(retry)] {
            let (call, _) = session.ask("tools/list", &json!({}));
            for retry in 1..attempts.max(1) {
                assert!(session.fails(call, ExchangeFailure::NotSent), "{retry} of {attempts}");
                session.tries_again(call, 125, 2000);
            }
            assert!(!session.fails(call, ExchangeFailure::NotSent), "{attempts}");
            session.core.forget(call);
            session.assert_idle();
        }
    }
}

#[test]
fn retries_can_be_switched_off() {
    let once = CallOptions { retry: false, ..CallOptions::default() };
    for mut session in both() {
        let (call, _) = session.ask_with("tools/list", &json!({}), &once);
        assert!(!session.fails(call, ExchangeFailure::NotSent));
    }
    for mut session in [legacy_with(RetryConfig::off()), modern_with(RetryConfig::off())] {
        let (call, _) = session.ask("tools/list", &json!({}));
        assert!(!session.fails(call, ExchangeFailure::NotSent));
    }
}

/// The deadline of a call spans its attempts: no wait outlasts it, and no attempt prolongs it.
#[test]
fn the_deadline_spans_all_attempts() {
    for mut session in both() {
        let options = CallOptions::with_timeout(Duration::from_secs(1));
        let (call, _) = session.ask_with("tools/list", &json!({}), &options);
        let end = session.now + Duration::from_secs(1);
        assert!(session.fails(call, ExchangeFailure::ConnectionLost));
        session.tries_again(call, 125, 250);
        assert_eq!(session.core.call_deadline(call), Some(end));
        session.advance(end - session.now - Duration::from_millis(100));
        assert!(!session.fails(call, ExchangeFailure::ConnectionLost), "the wait would outlast it");
        session.advance(Duration::from_millis(100));
        assert!(
            matches!(session.failure(call), CallError::Timeout { after, .. } if after == Duration::from_secs(1))
        );
        session.assert_idle();
    }
}

/// seed:B27, seed:S-12: what the server writes lengthens a wait within its limit, and starts none.
#[test]
fn the_server_can_only_ask_for_more_time() {
    for mut session in both() {
        let (call, _) = session.ask("tools/list", &json!({}));
        assert!(session.fails(call, busy(0)));
        session.tries_again(call, 125, 250);
        assert!(session.fails(call, busy(5)));
        session.tries_again(call, 5000, 5000);
    }
    for mut session in both() {
        let (call, _) = session.ask("tools/list", &json!({}));
        assert!(!session.fails(call, busy(6)));
        assert!(!session.fails(
            call,
            ExchangeFailure::Status { status: 404, retry_after: Some(Duration::ZERO), explained: false }
        ));
        let (tool, _) = session.ask("tools/call", &json!({"name": "n"}));
        assert!(!session.fails(tool, busy(0)));
        // An error object is an answer, whatever its text says.
        let (other, request) = session.ask("prompts/list", &json!({}));
        let error = json!({"code": -32000, "message": "HTTP 503 connection reset, retry"});
        session.peer_json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
        assert!(matches!(session.failure(other), CallError::Rpc(_)));
        assert!(session.sent().is_empty());
    }
}

/// protocol:M-06: an attempt in the middle of a call carries what people answered for it, and nobody is asked again.
#[test]
fn what_was_answered_on_the_way_is_not_asked_for_again() {
    let mut session = modern_with(RetryConfig::default());
    let (call, request) = session.ask("resources/read", &json!({"uri": "a:b"}));
    session.answer(&request["id"], &json!({"resultType": "input_required", "requestState": "s\u{1}"}));
    session.advance(Duration::from_millis(50));
    let round = session.only_sent();
    assert!(session.fails(call, ExchangeFailure::ConnectionLost));
    let again = session.tries_again(call, 125, 250);
    assert_eq!(again["params"], round["params"]);
    assert_eq!(again["params"]["requestState"], "s\u{1}");
    session.answer(&again["id"], &json!({"resultType": "complete", "contents": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// A call that ends while it waits sends nothing more, and nobody is told of a request that nobody waits for.
#[test]
fn a_call_that_waits_can_be_given_up() {
    for method in ["tools/list", "tools/call"] {
        for mut session in both() {
            let (call, _) = session.ask(method, &params(method));
            assert!(session.fails(call, ExchangeFailure::NotSent));
            session.core.cancel(session.now, call, None);
            assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: false }));
            session.seconds(60);
            assert!(session.sent().is_empty(), "{method}");
            session.assert_idle();
        }
        for mut session in both() {
            let (call, _) = session.ask(method, &params(method));
            assert!(session.fails(call, ExchangeFailure::NotSent));
            session.core.handle_closed();
            assert!(matches!(session.failure(call), CallError::Closed { .. }));
            session.seconds(60);
            assert!(session.sent().is_empty(), "{method}");
            session.assert_idle();
        }
    }
}

/// A session that is lost while a call waits is renewed for it, once its wait is over (protocol:H-14).
#[test]
fn a_retry_waits_for_a_new_session() {
    for method in ["tools/list", "tools/call"] {
        let mut session = legacy_with(RetryConfig::default());
        let (call, _) = session.ask(method, &params(method));
        let (other, _) = session.ask("tools/call", &params("tools/call"));
        assert!(session.fails(call, ExchangeFailure::NotSent));
        assert!(session.core.handle_session_lost(session.now, other));
        session.drain();
        let handshake = session.only_sent();
        assert_eq!(handshake["method"], "initialize");
        session.seconds(1);
        assert!(session.sent().is_empty(), "held");
        session.events();
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}});
        session.answer(&handshake["id"], &result);
        session.core.handle_initialized_delivered(session.now);
        let sent = session.sent();
        let methods: Vec<_> = sent.iter().map(|message| message["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["notifications/initialized", "tools/call", method]);
        session.events();
        session.answer(&sent[2]["id"], &json!({"tools": [], "content": []}));
        session.outcome(call).unwrap();
    }
}

#[test]
fn subscriptions_and_calls_that_are_over_are_not_tried_again() {
    let mut session = modern_with(RetryConfig::default());
    let wanted = serde_json::from_value(json!({"toolsListChanged": true})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    session.drain();
    assert!(!session.core.retry(session.now, listen, ExchangeFailure::NotSent));
    let mut session = both();
    let gone = session[0].ask("tools/list", &json!({})).0;
    session[0].core.forget(gone);
    let now = session[0].now;
    assert!(!session[0].core.retry(now, gone, ExchangeFailure::NotSent));
}

/// protocol:H-38: what the connection asks for by itself never left either.
#[test]
fn a_request_of_a_subscription_that_never_left_is_made_again_as_it_was() {
    let mut session = legacy_with(RetryConfig::default());
    let wanted = serde_json::from_value(json!({"resourceSubscriptions": ["a:1"]})).unwrap();
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let (request, owner) = asked_for(&mut session);
    assert!(
        !session.core.retry(session.now, owner, ExchangeFailure::ConnectionLost),
        "it may have been carried out"
    );
    assert!(!session.core.retry(session.now, owner, status(503)));
    assert!(session.core.retry(session.now, owner, ExchangeFailure::NotSent));
    session.advance(Duration::from_secs(1));
    assert_eq!(asked_for(&mut session), (request.clone(), owner));
    // One that waits when the session is lost is asked for in the next one.
    assert!(session.core.retry(session.now, owner, ExchangeFailure::NotSent));
    let call = session.core.call(session.now, "ping", None, &CallOptions::default()).unwrap();
    session.drain();
    assert!(session.core.handle_session_lost(session.now, call));
    session.advance(Duration::from_secs(1));
    let id = session.last_request_id();
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{ALL_CAPABILITIES}}}}}"#
    ));
    session.sent.clear();
    session.core.handle_initialized_delivered(session.now);
    let (again, _) = asked_for(&mut session);
    assert_eq!(again["params"], request["params"]);
    assert!(!session.core.is_open(owner) && session.core.is_open(listen));
}

/// The one request for a resource that was sent since the last look, and whose it is.
fn asked_for(session: &mut Session) -> (Value, CallId) {
    session.drain();
    let sent = std::mem::take(&mut session.sent).into_iter();
    let read =
        sent.map(|transmit| (serde_json::from_slice::<Value>(&transmit.message).unwrap(), transmit.owner));
    let mut asked: Vec<_> = read.filter(|(message, _)| message["method"] == "resources/subscribe").collect();
    assert_eq!(asked.len(), 1);
    let (message, owner) = asked.remove(0);
    (message, owner.unwrap())
}

/// protocol:H-38: what the server explains is its answer.
#[test]
fn a_status_with_an_error_object_is_for_the_caller() {
    let explained = ExchangeFailure::Status { status: 503, retry_after: None, explained: true };
    for mut session in both() {
        let (call, _) = session.call();
        assert!(!session.fails(call, explained));
        assert!(session.fails(call, status(503)));
    }
}
