//! Results that the driver reads by itself.

use mcp_jsonrpc::RequestId;
use mcp_model::CallToolResult;
use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{Session, config};
use crate::{CacheConfig, CallOptions, Config, DiagnosticKind, Taking};

impl Session {
    fn taking(&self, id: &Value) -> Option<Taking> {
        self.core.taking(&RequestId::from(id.as_i64().unwrap()))
    }

    fn take(&mut self, taking: Taking, id: &Value) -> bool {
        self.core.take_result(taking, &RequestId::from(id.as_i64().unwrap()))
    }
}

#[test]
fn a_result_that_is_taken_ends_the_call_without_an_event() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    let taking = session.taking(&id).unwrap();
    assert_eq!(taking.call(), call);
    assert!(taking.admits(r#"{"resultType":"input_required"}"#, &()), "a legacy result has no type");
    assert!(session.core.is_open(call), "looking changes nothing");
    assert!(session.take(taking, &id));
    assert!(!session.core.is_open(call));
    assert!(session.events().is_empty() && session.sent().is_empty());
    session.assert_idle();

    session.answer(&id, &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
}

#[test]
fn a_call_that_ended_meanwhile_is_not_taken() {
    let mut session = Session::ready();
    let (call, id) = session.call();
    let taking = session.taking(&id).unwrap();
    session.seconds(60);
    assert!(session.failure(call).to_string().contains("60"));
    assert!(!session.take(taking, &id));
    assert_eq!(session.taking(&id), None);
    assert!(session.events().is_empty());
}

#[test]
fn what_the_connection_reads_itself_is_not_for_the_driver() {
    let mut session = Session::new(config());
    session.initialize();
    let handshake = session.last_request_id().parse().unwrap();
    assert_eq!(session.taking(&handshake), None);

    // The tools of a list are remembered where their arguments go into headers.
    let mut session = Session::modern(on_exchanges());
    let list = session.ask("tools/list", &json!({})).1["id"].clone();
    let call = session.ask("tools/call", &json!({"name": "t"})).1["id"].clone();
    assert_eq!(session.taking(&list), None);
    assert!(session.taking(&call).is_some());
    // The cache may keep a list, or what was read.
    let mut session = Session::modern(on_channel());
    for (method, params, taken) in [
        ("tools/list", json!({}), false),
        ("resources/read", json!({"uri": "a:b"}), false),
        ("prompts/get", json!({"name": "p"}), true),
        ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": "p"}}), true),
    ] {
        let id = session.ask(method, &params).1["id"].clone();
        assert_eq!(session.taking(&id).is_some(), taken, "{method}");
    }

    session.core.handle_closed();
    assert_eq!(session.taking(&list), None);
    for (config, taken) in [(on_channel(), true), (on_exchanges(), false)] {
        let mut session = Session::modern(Config { cache: CacheConfig::off(), ..config });
        let id = session.ask("tools/list", &json!({})).1["id"].clone();
        assert_eq!(session.taking(&id).is_some(), taken, "nothing is kept of it but headers");
    }
    let mut session = Session::ready();
    assert_eq!(session.taking(&json!(77)), None, "never asked");
    let (_, id) = session.call_with("tools/list", &CallOptions::default());
    assert_eq!(session.core.taking(&RequestId::from(id.to_string())), None, "an id of another type");
}

/// protocol:J-27
#[test]
fn a_modern_result_that_is_not_complete_is_left_to_the_connection() {
    let mut session = Session::modern(on_channel());
    let id = session.ask("tools/call", &json!({"name": "t"})).1["id"].clone();
    let taking = session.taking(&id).unwrap();
    for (result, admitted) in [
        (r#"{"content":[]}"#, true),
        (r#"{"content":[],"resultType":"complete"}"#, true),
        (r#"{"resultType":null,"content":[]}"#, true),
        (r#"{"content":[],"resultType":"input_required"}"#, false),
        (r#"{"content":[],"result\u0054ype":"input_required"}"#, false),
        (r#"{"resultType":"task"}"#, false),
        (r#"{"resultType":"new"}"#, false),
        (r#"{"resultType":1}"#, false),
    ] {
        let value: CallToolResult = serde_json::from_str(result).unwrap();
        assert_eq!(taking.admits(result, &value), admitted, "{result}");
        assert_eq!(taking.admits(result, &()), admitted, "{result}");
    }
    assert!(!taking.admits(r#"{"resultType":"complete","resultType":"complete"}"#, &()));
}
