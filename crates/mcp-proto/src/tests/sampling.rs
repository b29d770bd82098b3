//! Sampling, as a request of a legacy server and in the middle of a modern call.

use serde_json::{Value, json};

use super::modern::on_channel;
use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{Answer, CallError, Config, DiagnosticKind, Event, InputRequest};

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

fn with(tools: bool, config: Config) -> Config {
    Config { sampling: true, sampling_tools: tools, ..config }
}

fn legacy(version: &str, tools: bool) -> Session {
    Session::ready_with(with(tools, config()), version, ALL_CAPABILITIES)
}

fn message(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "n", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "toolUseId": id, "content": []})
}

fn assistant(content: &Value) -> Value {
    json!({"role": "assistant", "content": content, "model": "m"})
}

fn request(rest: Value) -> Value {
    let mut params = json!({"messages": [message(&text("hello"))], "maxTokens": 100});
    params.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    params
}

fn with_tools() -> Value {
    request(
        json!({"tools": [{"name": "n", "inputSchema": {"type": "object"}}], "toolChoice": {"mode": "auto"}}),
    )
}

impl Session {
    /// The server asks by itself. What the application sees, or with what the server is refused.
    fn samples(&mut self, params: &Value) -> Result<crate::ServerRequest, Value> {
        self.peer_json(
            &json!({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": params}),
        );
        let mut sent = self.sent();
        match sent.pop() {
            None => Ok(self.question()),
            Some(refusal) => {
                assert_eq!(self.diagnostics(), [DiagnosticKind::SamplingRequestInvalid]);
                Err(refusal["error"].clone())
            }
        }
    }

    /// A modern server asks in the middle of a call. What the application sees, or how the call ends.
    fn samples_in_a_call(&mut self, params: &Value) -> Result<crate::ServerRequest, CallError> {
        let (call, request) = self.ask("tools/call", &json!({"name": "t"}));
        let asked = json!({"k": {"method": "sampling/createMessage", "params": params}});
        self.answer(&request["id"], &json!({"resultType": "input_required", "inputRequests": asked}));
        match self.only_event() {
            Event::ServerRequest(question) => Ok(question),
            Event::CallEnded { call: ended, outcome } if ended == call => Err(outcome.unwrap_err()),
            other => panic!("{other:?}"),
        }
    }
}

/// protocol:SM-01, protocol:M-07: what was not declared is refused, on the wire or by the end of the call.
#[test]
fn tools_must_be_declared() {
    for params in [with_tools(), request(json!({"tools": []})), request(json!({"toolChoice": {}}))] {
        let error = legacy("2025-11-25", false).samples(&params).unwrap_err();
        assert_eq!(error["code"], -32602, "{params}");
        let mut session = Session::modern(with(false, on_channel()));
        let error = session.samples_in_a_call(&params).unwrap_err();
        assert!(matches!(error, CallError::InvalidResult { .. }), "{error:?}");
        assert!(session.sent().is_empty(), "no retry");
        session.assert_idle();
    }
}

/// protocol:SM-01, protocol:SM-07: the same handler gets the same words in both eras, `maxTokens` and tools among them.
#[test]
fn declared_tools_reach_the_application_in_both_eras() {
    let params = with_tools();
    let seen = |question: crate::ServerRequest| match question.input {
        InputRequest::CreateMessage(seen) => seen.parse::<Value>().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(legacy("2025-11-25", true).samples(&params).unwrap()), params);
    assert_eq!(seen(Session::modern(with(true, on_channel())).samples_in_a_call(&params).unwrap()), params);
    // Revisions that do not know tools do not know what they would be refused for.
    assert_eq!(seen(legacy("2025-06-18", false).samples(&params).unwrap()), params);
}

/// protocol:SM-01: the capability is told where the revision has it.
#[test]
fn tools_are_declared_where_they_are_served() {
    let declared = |tools: bool| {
        let mut session = Session::new(with(tools, config()));
        session.initialize();
        session.only_sent()["params"]["capabilities"]["sampling"].clone()
    };
    assert_eq!((declared(false), declared(true)), (json!({}), json!({"tools": {}})));
    let mut session = Session::modern(with(true, on_channel()));
    let (_, request) = session.ask("tools/list", &json!({}));
    let meta = &request["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"]["sampling"], json!({"tools": {}}));
}

/// protocol:SM-06
#[test]
fn tool_messages_that_break_the_rules_are_refused() {
    let check = |messages: Value, fine: bool| {
        let mut params = with_tools();
        params["messages"] = messages;
        assert_eq!(legacy("2025-11-25", true).samples(&params).is_ok(), fine, "{params}");
        let mut session = Session::modern(with(true, on_channel()));
        assert_eq!(session.samples_in_a_call(&params).is_ok(), fine, "{params}");
    };
    let asks = json!({"role": "assistant", "content": [tool_use("1"), tool_use("2")]});
    let answers = |ids: &[&str]| message(&ids.iter().map(|id| tool_result(id)).collect());
    check(json!([asks, answers(&["1", "2"])]), true);
    check(json!([asks, answers(&["1"])]), false);
    check(json!([asks, message(&text("no"))]), false);
    check(json!([asks, message(&json!([tool_result("1"), tool_result("2"), text("and")]))]), false);
    check(json!([answers(&["1"])]), false);
}

/// protocol:SM-01: what uses tools and cannot be read cannot be checked; what uses none is for the application to read.
#[test]
fn an_unreadable_request_reaches_the_application_only_without_tools() {
    let mut unreadable = with_tools();
    unreadable["messages"] = json!([{"role": "user", "content": text("hello"), "_meta": 7}, {"role": 7}]);
    assert_eq!(legacy("2025-11-25", true).samples(&unreadable).unwrap_err()["code"], -32602);
    assert!(Session::modern(with(true, on_channel())).samples_in_a_call(&unreadable).is_err());
    unreadable.as_object_mut().unwrap().retain(|name, _| name != "tools" && name != "toolChoice");
    assert!(legacy("2025-11-25", true).samples(&unreadable).is_ok());
}

/// protocol:SM-03
#[test]
fn max_tokens_is_a_whole_number() {
    for odd in [json!("5"), json!(-1), json!(1.5), json!({}), json!(true)] {
        let params = request(json!({"maxTokens": odd}));
        assert_eq!(legacy("2025-11-25", false).samples(&params).unwrap_err()["code"], -32602, "{odd}");
        assert!(Session::modern(with(false, on_channel())).samples_in_a_call(&params).is_err(), "{odd}");
    }
    for whole in ["0", "100.0", "1e2"] {
        let params = request(json!({"maxTokens": serde_json::from_str::<Value>(whole).unwrap()}));
        assert!(legacy("2025-11-25", false).samples(&params).is_ok(), "{whole}");
    }
}

/// Answers the question of a legacy server. What goes out.
fn answered(version: &str, params: &Value, answer: &Value) -> Value {
    let mut session = legacy(version, true);
    let question = session.samples(params).unwrap();
    session.core.answer(session.now, question.id, Answer::Result(raw(answer))).unwrap();
    session.only_sent()
}

/// protocol:SM-03: more text than any tokenizer makes of so few tokens does not leave.
#[test]
fn an_answer_that_cannot_be_within_max_tokens_is_held_back() {
    let params = request(json!({"maxTokens": 2}));
    let said = |bytes: usize| assistant(&text(&"x".repeat(bytes)));
    assert_eq!(answered("2025-11-25", &params, &said(512))["result"], said(512));
    assert_eq!(answered("2025-11-25", &params, &said(513))["error"]["code"], -32603);
    let two = assistant(&json!([text(&"x".repeat(300)), text(&"x".repeat(300))]));
    assert_eq!(answered("2025-11-25", &params, &two)["error"]["code"], -32603);

    let mut session = Session::modern(with(false, on_channel()));
    let question = session.samples_in_a_call(&params).unwrap();
    session.core.answer(session.now, question.id, Answer::Result(raw(&said(513)))).unwrap();
    let events = session.events();
    let refused =
        |event: &Event| matches!(event, Event::CallEnded { outcome: Err(CallError::InputRefused(_)), .. });
    assert!(events.iter().any(refused), "{events:?}");
    assert!(session.sent().is_empty());
}

/// protocol:SM-05: no list of blocks goes to a server that knows none; a list of one is that one.
#[test]
fn an_answer_is_written_as_the_revision_has_it() {
    let one = assistant(&json!([text("a")]));
    let two = assistant(&json!([text("a"), text("b")]));
    for version in LEGACY {
        let knows_lists = version == "2025-11-25";
        let params = request(json!({}));
        let expected = if knows_lists { one.clone() } else { assistant(&text("a")) };
        assert_eq!(answered(version, &params, &one)["result"], expected, "{version}");
        assert_eq!(answered(version, &params, &two)["error"].is_null(), knows_lists, "{version}");
    }
}

/// protocol:SM-06: only tools that the request offers are used.
#[test]
fn an_answer_uses_no_tools_that_were_not_offered() {
    let uses = assistant(&json!([tool_use("1")]));
    assert_eq!(answered("2025-11-25", &with_tools(), &uses)["result"], uses);
    assert_eq!(answered("2025-11-25", &request(json!({})), &uses)["error"]["code"], -32603);
}

/// protocol:SM-08: a refusal of the user goes back as it is said, and a modern call ends with it in silence.
#[test]
fn the_user_may_refuse() {
    let no = || {
        Answer::Error(mcp_jsonrpc::ErrorObject::new(
            mcp_jsonrpc::ErrorCode::new(-1),
            "User rejected sampling request",
        ))
    };
    let mut session = legacy("2025-11-25", false);
    let question = session.samples(&request(json!({}))).unwrap();
    session.core.answer(session.now, question.id, no()).unwrap();
    assert_eq!(
        session.only_sent()["error"],
        json!({"code": -1, "message": "User rejected sampling request"})
    );
    let mut session = Session::modern(with(false, on_channel()));
    let question = session.samples_in_a_call(&request(json!({}))).unwrap();
    session.core.answer(session.now, question.id, no()).unwrap();
    assert!(session.sent().is_empty());
    session.assert_idle();
}
