//! The modern era (2026-07-28) after the handshake: what each request says, what each result means, what is left out.

use std::time::Duration;

use mcp_model::{ProtocolVersion, Root};
use serde_json::{Value, json};

use super::{Session, config, config_with_elicitation, raw};
use crate::{
    CallError, CallId, CallOptions, Config, DiagnosticKind, Event, Misuse, Mode, Origin, Routing, Wire,
};

const MODERN: ProtocolVersion = ProtocolVersion::V2026_07_28;
const CAPABILITIES: &str =
    r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"logging":{},"completions":{}}"#;

pub(super) fn on_channel() -> Config {
    Config { mode: Mode::Pinned(MODERN), ..config_with_elicitation() }
}

pub(super) fn on_exchanges() -> Config {
    Config { wire: Wire::Exchanges, ..on_channel() }
}

impl Session {
    /// A session with a modern server that offers everything.
    pub(super) fn modern(config: Config) -> Self {
        let mut session = Self::new(config);
        session.initialize();
        let probe = session.only_sent();
        let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap();
        session.answer(
            &probe["id"],
            &json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete"}),
        );
        assert!(session.core.is_ready());
        session.events.clear();
        session
    }

    /// Calls a method and takes the request.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> (CallId, Value) {
        self.ask_with(method, params, &CallOptions::default())
    }

    pub(super) fn ask_with(
        &mut self,
        method: &str,
        params: &Value,
        options: &CallOptions,
    ) -> (CallId, Value) {
        let call = self.core.call(self.now, method, Some(&raw(params)), options).unwrap();
        (call, self.only_sent())
    }

    /// The routing of the request of this call.
    fn routing(&mut self, method: &str, params: &Value) -> Routing {
        self.core.call(self.now, method, Some(&raw(params)), &CallOptions::default()).unwrap();
        self.drain();
        *self.sent.pop().unwrap().head.routing.unwrap()
    }

    pub(super) fn refuse_modern(&mut self, request: &Value, code: i64, data: &Value) {
        let error = json!({"code": code, "message": "no", "data": data});
        self.peer_json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    }
}

/// protocol:L-19, protocol:L-20, protocol:L-22, protocol:J-27
#[test]
fn every_request_says_who_asks_and_the_caller_cannot_say_otherwise() {
    let mut session = Session::modern(on_channel());
    let mut options = CallOptions { progress: true, ..CallOptions::default() };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "1999-01-01", "traceparent": "00-1", "progressToken": "mine",
        "io.modelcontextprotocol/logLevel": "debug",
    });
    options.meta = meta.as_object().cloned();
    let (_, request) = session.ask_with("tools/list", &json!({"cursor": ""}), &options);
    assert_eq!(
        request["params"],
        json!({
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
                "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0"},
                "io.modelcontextprotocol/logLevel": "debug",
                "traceparent": "00-1",
                "progressToken": request["id"],
            },
            "cursor": "",
        })
    );
}

/// protocol:H-35, protocol:4.5, protocol:TX-07
#[test]
fn the_head_repeats_method_and_name_on_exchanges_only() {
    let mut session = Session::modern(on_exchanges());
    let mut check = |method: &str, params: Value, name: Option<&str>| {
        let routing = session.routing(method, &params);
        assert_eq!((routing.method.as_str(), routing.name.as_deref()), (method, name));
        assert!(routing.params.is_empty());
    };
    check("tools/list", json!({"name": "no"}), None);
    check("tools/call", json!({"name": "add", "arguments": {"uri": "x"}}), Some("add"));
    check("prompts/get", json!({"name": "p"}), Some("p"));
    check(
        "resources/read",
        json!({"uri": "file:///path/to/file%20name.txt"}),
        Some("file:///path/to/file%20name.txt"),
    );
    check("tasks/get", json!({"taskId": "t"}), Some("t"));
    check("completion/complete", json!({"ref": {"name": "x"}}), None);
    // protocol:H-36: notifications say the same.
    session.core.notify("vendor/notice", None).unwrap();
    session.drain();
    let head = session.sent.pop().unwrap().head;
    assert_eq!(head.protocol_version, Some(MODERN));
    assert_eq!(head.routing.map(|routing| routing.method).as_deref(), Some("vendor/notice"));

    let mut session = Session::modern(on_channel());
    session.core.call(session.now, "tools/list", None, &CallOptions::default()).unwrap();
    session.drain();
    let head = session.sent.pop().unwrap().head;
    assert_eq!((head.protocol_version, head.routing), (Some(MODERN), None));
}

/// protocol:LG-02, protocol:L-21
#[test]
fn a_log_level_is_said_with_each_later_request() {
    let mut session = Session::modern(on_channel());
    assert_eq!(session.try_call("logging/setLevel"), Err(Misuse::ParamsNotAnObject));
    let level = raw(&json!({"level": "warning"}));
    let options = CallOptions::default();
    let call = session.core.call(session.now, "logging/setLevel", Some(&level), &options).unwrap();
    assert!(session.outcome(call).is_ok() && session.sent().is_empty());
    let key = "io.modelcontextprotocol/logLevel";
    let (_, request) = session.ask("tools/list", &json!({}));
    assert_eq!(request["params"]["_meta"][key], "warning");
    let options = CallOptions { meta: json!({key: "debug"}).as_object().cloned(), ..options };
    let (_, request) = session.ask_with("tools/list", &json!({}), &options);
    assert_eq!(request["params"]["_meta"][key], "debug");
}

/// protocol:L-15, protocol:G-02
#[test]
fn methods_of_the_other_era_are_refused() {
    let mut session = Session::modern(on_channel());
    for method in ["ping", "resources/subscribe"] {
        let refused = Misuse::NotInRevision { method: method.to_owned(), version: MODERN };
        assert_eq!(session.try_call(method), Err(refused));
    }
    session.assert_idle();
}

/// protocol:C-01, protocol:H-40, protocol:L-42, protocol:T-12
/// protocol:T-10
#[test]
fn a_cancelled_call_is_told_on_a_channel_and_by_the_driver_on_exchanges() {
    for (config, notices) in [(on_channel(), 1), (on_exchanges(), 0)] {
        let mut session = Session::modern(config);
        let (call, request) = session.ask("tools/list", &json!({}));
        session.core.cancel(session.now, call, None);
        let sent = session.sent();
        assert_eq!(sent.len(), notices);
        if let [notice] = &sent[..] {
            assert_eq!(notice["method"], "notifications/cancelled");
            assert_eq!(notice["params"]["requestId"], request["id"]);
        }
        assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: true }));
        session.assert_idle();
    }
}

/// protocol:J-29, protocol:J-30, protocol:J-31, protocol:J-32, protocol:J-33, protocol:10.3, protocol:TX-02
/// field:FR-115
#[test]
fn the_result_type_is_looked_at_before_the_result() {
    let check = |method: &str, result: &str, reason: Option<&str>| {
        let mut session = Session::modern(on_channel());
        let (call, request) = session.ask(method, &json!({"name": "x"}));
        session.peer(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]));
        match (session.outcome(call), reason) {
            (Ok(raw), None) => assert_eq!(raw.as_str(), result),
            (Err(CallError::InvalidResult { reason: found }), Some(reason)) => assert_eq!(found, reason),
            (outcome, _) => panic!("{result}: {outcome:?}"),
        }
        assert!(session.sent().is_empty());
        session.assert_idle();
    };
    let unknown = Some("the resultType is unknown or was not declared by this client");
    check("tools/call", r#"{"content":[]}"#, None);
    check("tools/call", r#"{"resultType":"complete","content":[]}"#, None);
    check("tools/call", r#"{"resultType":null}"#, None);
    check("tools/call", r#"{"resultType":"task","taskId":"1"}"#, unknown);
    check("tools/list", r#"{"resultType":"new"}"#, unknown);
    check("tools/call", r#"{"resultType":7}"#, Some("the result is not a readable object"));
    check("tools/call", "[]", Some("the result is not a readable object"));
    let misplaced = Some("input was required by a method that does not allow it");
    check("tools/list", r#"{"resultType":"input_required","requestState":"s"}"#, misplaced);
    check("completion/complete", r#"{"resultType":"input_required","requestState":"s"}"#, misplaced);
}

/// protocol:J-33
#[test]
fn a_legacy_result_may_have_any_result_type() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    session.answer(&id, &json!({"resultType": "input_required"}));
    assert!(session.outcome(call).is_ok());
}

/// protocol:H-34, protocol:C-06, protocol:N-01
/// protocol:T-07, protocol:T-08
#[test]
fn a_modern_server_that_asks_or_withdraws_is_not_answered() {
    let mut session = Session::modern(on_exchanges());
    let (call, _) = session.ask("tools/call", &json!({"name": "x"}));
    for method in ["ping", "elicitation/create", "vendor/x"] {
        session
            .peer_on(Origin::Exchange(call), &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#));
        assert_eq!(session.diagnostics(), [DiagnosticKind::UnexpectedRequest]);
    }
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert!(session.sent().is_empty() && session.events().is_empty() && session.core.is_open(call));
}

/// protocol:N-02, protocol:RT-03
#[test]
fn a_change_of_roots_is_not_told() {
    let mut session = Session::modern(Config { roots: Some(Vec::new()), ..on_channel() });
    session.core.set_roots(vec![Root::new("file:///a")]).unwrap();
    assert!(session.sent().is_empty());
    assert_eq!(session.core.roots().len(), 1);
    let refused = session.core.notify("notifications/roots/list_changed", None);
    assert!(matches!(refused, Err(Misuse::NotInRevision { .. })));
}

/// protocol:L-30, protocol:L-31, protocol:L-32
#[test]
fn a_refused_revision_is_tried_once_more_and_a_missing_capability_is_not() {
    let mut session = Session::modern(on_channel());
    let (call, first) = session.ask("tools/list", &json!({"cursor": "c"}));
    session.refuse_modern(&first, -32022, &json!({"supported": ["2026-07-28", "2025-11-25"]}));
    let second = session.only_sent();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["params"], first["params"]);
    session.refuse_modern(&second, -32022, &json!({"supported": ["2026-07-28"]}));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32022));

    let (call, request) = session.ask("tools/list", &json!({}));
    session.refuse_modern(&request, -32022, &json!({"supported": ["2025-11-25"]}));
    assert!(matches!(session.failure(call), CallError::EraChanged { .. }));
    let (call, request) = session.ask("tools/list", &json!({}));
    session.refuse_modern(&request, -32021, &json!({"requiredCapabilities": {"sampling": {}}}));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32021));
    assert!(session.sent().is_empty());
    session.assert_idle();
}

fn tool(name: &str, annotation: &Value) -> Value {
    let region = json!({"type": "string", "x-mcp-header": annotation});
    let schema = json!({"type": "object", "properties": {"region": region, "n": {"type": "integer"}}});
    json!({"name": name, "inputSchema": schema})
}

/// protocol:H-44, protocol:H-46, protocol:H-47
#[test]
fn a_tool_that_misplaces_its_headers_is_left_out_on_exchanges() {
    let listed =
        json!({"tools": [tool("bad", &json!("a b")), tool("good", &json!("Region")), 7], "ttlMs": 1});
    let mut session = Session::modern(on_exchanges());
    let (call, request) = session.ask("tools/list", &json!({}));
    session.answer(&request["id"], &listed);
    let events = session.events();
    let [Event::Diagnostic(dropped), Event::CallEnded { call: ended, outcome: Ok(page) }] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((dropped.kind, *ended), (DiagnosticKind::ToolDropped, call));
    assert!(dropped.message.starts_with("tool bad: x-mcp-header of region"), "{dropped}");
    let page: Value = page.parse().unwrap();
    assert_eq!(page, json!({"tools": [tool("good", &json!("Region")), 7], "ttlMs": 1}));

    let mut session = Session::modern(on_channel());
    let (call, request) = session.ask("tools/list", &json!({}));
    session.answer(&request["id"], &listed);
    assert_eq!(session.outcome(call).unwrap().parse::<Value>().unwrap(), listed);
}

/// protocol:H-48, protocol:H-49, protocol:H-54
/// protocol:TL-11
#[test]
fn the_newest_listing_says_which_arguments_are_repeated() {
    let mut session = Session::modern(on_exchanges());
    let call = json!({"name": "t", "arguments": {"region": "us", "n": 1}});
    assert!(session.routing("tools/call", &call).params.is_empty(), "never listed");
    for (annotation, expected) in [(json!("Region"), Some("Region")), (json!("Zone"), Some("Zone"))] {
        let (_, request) = session.ask("tools/list", &json!({}));
        session.answer(&request["id"], &json!({"tools": [tool("t", &annotation)]}));
        let params = session.routing("tools/call", &call).params;
        assert_eq!(
            params.first().map(|(suffix, value)| (suffix.as_str(), value.as_str())),
            expected.map(|name| (name, "us"))
        );
    }
    let (_, request) = session.ask("tools/list", &json!({}));
    session.answer(&request["id"], &json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}));
    assert!(session.routing("tools/call", &call).params.is_empty(), "no longer annotated");
}

/// protocol:H-49
#[test]
fn an_argument_that_no_header_can_hold_is_refused_before_it_leaves() {
    let mut session = Session::modern(on_exchanges());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}});
    let (_, request) = session.ask("tools/list", &json!({}));
    session.answer(&request["id"], &json!({"tools": [{"name": "t", "inputSchema": schema}]}));
    session.events();
    let params = raw(&json!({"name": "t", "arguments": {"n": 9_007_199_254_740_992_i64}}));
    let refused = session.core.call(session.now, "tools/call", Some(&params), &CallOptions::default());
    assert!(matches!(refused, Err(Misuse::UnsendableArgument { .. })), "{refused:?}");
    session.assert_idle();
}

/// protocol:H-55, protocol:H7, protocol:10.17, field:FR-070
#[test]
fn refused_headers_lead_to_a_fresh_list_and_one_more_try() {
    let mut session = Session::modern(on_exchanges());
    let params = json!({"name": "t", "arguments": {"region": "us"}});
    let (call, first) = session.ask("tools/call", &params);
    session.refuse_modern(&first, -32020, &json!(null));
    let list = session.only_sent();
    assert_eq!(list["method"], "tools/list");
    session.answer(&list["id"], &json!({"tools": [], "nextCursor": "2"}));
    let more = session.only_sent();
    assert_eq!(more["params"]["cursor"], "2");
    session.answer(&more["id"], &json!({"tools": [tool("t", &json!("Region"))]}));
    let retry = session.sent.pop().unwrap();
    assert_eq!(retry.head.routing.unwrap().params, [("Region".to_owned(), "us".to_owned())]);
    let retry: Value = serde_json::from_slice(&retry.message).unwrap();
    assert_eq!((&retry["method"], &retry["params"]["name"]), (&json!("tools/call"), &json!("t")));
    session.refuse_modern(&retry, -32020, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32020));
    session.assert_idle();

    let (call, first) = session.ask("tools/call", &params);
    session.refuse_modern(&first, -32020, &json!(null));
    let list = session.only_sent();
    session.refuse_modern(&list, -32601, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32020));

    let (call, first) = session.ask("resources/read", &json!({"uri": "x"}));
    session.refuse_modern(&first, -32020, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
    session.assert_idle();
}

/// protocol:H-49, protocol:H-55: what the fresh list wants in a header cannot be written there, and that is nobody's fault but the
/// caller's.
#[test]
fn an_argument_that_no_header_of_the_fresh_list_can_hold_ends_the_call() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}});
    let tools = json!({"tools": [{"name": "t", "inputSchema": schema}]});
    let unsendable = |session: &mut Session, call| {
        let failure = session.failure(call);
        assert!(
            matches!(&failure, CallError::Unsendable { misuse: Misuse::UnsendableArgument { .. }, .. }),
            "{failure:?}"
        );
        assert!(!failure.outcome_unknown());
        assert!(session.sent().is_empty());
        session.assert_idle();
    };
    let mut session = Session::modern(on_exchanges());
    let (call, first) = session.ask("tools/call", &json!({"name": "t", "arguments": {"n": 1.5}}));
    session.refuse_modern(&first, -32020, &json!(null));
    let list = session.only_sent();
    session.answer(&list["id"], &tools);
    unsendable(&mut session, call);

    // Learned from a list of another call, between two rounds of this one.
    let mut session = Session::modern(on_exchanges());
    let (call, first) = session.ask("tools/call", &json!({"name": "t", "arguments": {"n": 1.5}}));
    session.answer(&first["id"], &json!({"resultType": "input_required", "requestState": "s"}));
    let (_, list) = session.ask("tools/list", &json!({}));
    session.answer(&list["id"], &tools);
    session.events();
    session.seconds(1);
    unsendable(&mut session, call);
}

/// auth:LIM-09: a list without an end is not read to its end.
#[test]
fn a_fresh_list_of_tools_has_a_limited_number_of_pages() {
    let mut session = Session::modern(on_exchanges());
    let (_, first) = session.ask("tools/call", &json!({"name": "t", "arguments": {}}));
    session.refuse_modern(&first, -32020, &json!(null));
    let mut pages = 0;
    let retry = loop {
        let request = session.only_sent();
        if request["method"] != "tools/list" {
            break request;
        }
        pages += 1;
        assert!(pages <= 16, "there is no end");
        session.answer(&request["id"], &json!({"tools": [], "nextCursor": "more"}));
    };
    assert_eq!((pages, &retry["method"]), (16, &json!("tools/call")));
}

/// protocol:L-39, protocol:L-41, protocol:G-01: what the client repeats by itself takes of the time of the call.
#[test]
fn a_call_that_is_made_again_has_the_time_of_one() {
    let options = CallOptions::with_timeout(Duration::from_secs(10));
    let params = json!({"name": "t", "arguments": {"region": "us"}});
    // A page of tools each three seconds, for ever.
    let mut session = Session::modern(on_exchanges());
    let (call, first) = session.ask_with("tools/call", &params, &options);
    session.seconds(3);
    session.refuse_modern(&first, -32020, &json!(null));
    for page in 0..2 {
        let list = session.only_sent();
        session.seconds(3);
        session.answer(&list["id"], &json!({"tools": [], "nextCursor": page.to_string()}));
    }
    assert_eq!(session.core.call_deadline(call), Some(session.now + Duration::from_secs(1)));
    session.sent();
    session.seconds(1);
    assert!(
        matches!(session.failure(call), CallError::Timeout { after, .. } if after == Duration::from_secs(10))
    );
    session.assert_idle();
    // Another revision, and a server that has nothing to ask.
    let mut session = Session::modern(on_channel());
    let (call, first) = session.ask_with("tools/call", &params, &options);
    let end = session.now + Duration::from_secs(10);
    session.seconds(4);
    session.refuse_modern(&first, -32022, &json!({"supported": ["2026-07-28"]}));
    let retry = session.only_sent();
    assert_eq!(session.core.call_deadline(call), Some(end));
    session.seconds(4);
    session.answer(&retry["id"], &json!({"resultType": "input_required", "requestState": "s"}));
    session.seconds(1);
    assert_eq!(session.only_sent()["params"]["requestState"], "s");
    assert_eq!(session.core.call_deadline(call), Some(end));
    session.seconds(1);
    assert!(matches!(session.failure(call), CallError::Timeout { dispatched: true, .. }));
    session.sent();
    session.assert_idle();
}

/// protocol:H-37
#[test]
fn a_modern_server_has_no_session_to_lose_and_no_standing_stream() {
    let mut session = Session::modern(on_exchanges());
    let (call, _) = session.ask("tools/list", &json!({}));
    assert!(!session.core.handle_session_lost(session.now, call));
    assert!(!session.core.has_standing_stream());
    assert!(session.core.is_open(call));
    let legacy = Session::ready_with(Config { wire: Wire::Exchanges, ..config() }, "2025-11-25", "{}");
    assert!(legacy.core.has_standing_stream());
}
