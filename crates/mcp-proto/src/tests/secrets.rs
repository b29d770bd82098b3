//! What debug output and errors must not show.

use mcp_elicitation::ElicitResult;
use serde_json::{Value, json};

use super::{Session, config_with_elicitation, raw};
use crate::{Answer, CallOptions, Head, Routing};

const SECRET: &str = "hunter2-c0ffee";

/// `Debug` prints what a byte slice spells as numbers or as text; neither form may hold the secret.
fn assert_hidden(shown: &str) {
    let numbers = format!("{:?}", SECRET.as_bytes());
    assert!(!shown.contains(SECRET) && !shown.contains(numbers.trim_matches(['[', ']'])), "{shown}");
}

#[test]
fn debug_of_the_connection_and_its_messages_shows_no_content() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", r#"{"tools":{}}"#);
    let meta = json!({"vendor/token": SECRET}).as_object().cloned();
    let options = CallOptions { meta, ..CallOptions::default() };
    let params = raw(&json!({"name": "login", "arguments": {"password": SECRET}}));
    session.core.call(session.now, "tools/call", Some(&params), &options).unwrap();
    assert_hidden(&format!("{:?} {:#?} {options:?}", session.core, session.core));
    let shown = r#"Connection { phase: "ready", calls: 1, server_requests: 0, transmits: 1, events: 0, "#;
    assert!(format!("{:?}", session.core).starts_with(shown), "{:?}", session.core);
    let transmit = session.core.poll_transmit().unwrap();
    assert_hidden(&format!("{transmit:?} {:?}", session.core));
    let sizes = format!("bytes: {}, kind: Request", transmit.message.len());
    assert!(format!("{transmit:?}").contains(&sizes), "{transmit:?}");
    assert!(format!("{options:?}").contains("meta_members: Some(1)"), "{options:?}");
    let routing = Routing {
        method: "tools/call".to_owned(),
        name: Some(SECRET.to_owned()),
        params: vec![("Key".to_owned(), SECRET.to_owned())],
    };
    let head = Head { protocol_version: None, routing: Some(Box::new(routing)) };
    let shown = r#"Head { protocol_version: None, routing: Some(Routing { method: "tools/call", has_name: true, params: 1 }) }"#;
    assert_eq!(format!("{head:?}"), shown);
    assert!(String::from_utf8_lossy(&transmit.message).contains(SECRET), "it is on the wire");
}

#[test]
fn debug_of_an_answer_and_of_an_outcome_shows_no_content() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", r#"{"tools":{}}"#);
    let content = json!({ "password": SECRET }).as_object().cloned().unwrap();
    assert_hidden(&format!("{:?}", Answer::Elicit(ElicitResult::accept(content.clone()))));
    assert_hidden(&format!("{:?}", Answer::Result(raw(&Value::Object(content)))));
    let (_, id) = session.call();
    session.answer(&id, &json!({ "token": SECRET }));
    session.peer(&format!(r#"{{"jsonrpc":"2.0","method":"vendor/x","params":{{"token":"{SECRET}"}}}}"#));
    assert_hidden(&format!("{:?}", session.events()));
}

#[test]
fn a_diagnostic_about_an_answer_shows_no_value() {
    let mut session = Session::ready_with(config_with_elicitation(), "2025-11-25", "{}");
    session.peer_json(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
        "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }));
    let request = session.question().id;
    let content = json!({ "n": SECRET }).as_object().cloned().unwrap();
    session.core.answer(session.now, request, Answer::Elicit(ElicitResult::accept(content))).unwrap();
    assert_hidden(&format!("{:?}", session.events()));
    assert_hidden(&session.only_sent().to_string());
}
