//! Subscriptions to changes, of both eras.

use mcp_model::SubscriptionFilter;
use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{Session, config};
use crate::{CallError, CallId, CallOptions, Config, DiagnosticKind, Event, ListKind, Misuse, Origin};

fn filter(value: &Value) -> SubscriptionFilter {
    serde_json::from_value(value.clone()).unwrap()
}

impl Session {
    pub(super) fn listen(&mut self, wanted: &Value) -> (CallId, Value) {
        let call = self.core.listen(self.now, &filter(wanted), &CallOptions::default()).unwrap();
        (call, self.only_sent())
    }

    pub(super) fn acknowledge(&mut self, id: &Value, granted: &Value) {
        self.notice("notifications/subscriptions/acknowledged", id, &json!({"notifications": granted}));
    }

    pub(super) fn notice(&mut self, method: &str, id: &Value, params: &Value) {
        let mut params = params.clone();
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        self.peer_json(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn subscribed(&mut self, expected: CallId) -> SubscriptionFilter {
        match self.only_event() {
            Event::Subscribed { call, granted } if call == expected => granted,
            other => panic!("not subscribed: {other:?}"),
        }
    }
}

/// protocol:S-01, protocol:S-02, protocol:S-03, protocol:S-04, protocol:S-09, protocol:S-10, protocol:L-43, protocol:T-09
#[test]
fn a_modern_subscription_brings_what_was_granted_and_has_no_end_of_its_own() {
    let mut session = Session::modern(on_channel());
    let wanted =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    let (call, request) = session.listen(&wanted);
    assert_eq!(request["method"], "subscriptions/listen");
    assert_eq!(request["params"]["notifications"], wanted);
    assert!(request["params"]["_meta"].is_object());
    let id = request["id"].clone();
    let granted = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    session.acknowledge(&id, &granted);
    assert_eq!(session.subscribed(call), filter(&granted));
    session.seconds(100_000);
    assert!(session.events().is_empty());
    session.notice("notifications/tools/list_changed", &id, &json!({}));
    assert!(matches!(session.only_event(), Event::ListChanged(ListKind::Tools)));
    session.notice("notifications/resources/updated", &id, &json!({"uri": "file:///a/b"}));
    assert!(matches!(session.only_event(), Event::ResourceUpdated { uri } if uri == "file:///a/b"));
    // Not granted, no or a foreign id, the id as a text.
    session.notice("notifications/prompts/list_changed", &id, &json!({}));
    session.notice("notifications/tools/list_changed", &json!(99), &json!({}));
    session.notice("notifications/tools/list_changed", &json!(id.to_string()), &json!({}));
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert_eq!(session.diagnostics(), [DiagnosticKind::ChangeIgnored; 4]);
    session.core.cancel(session.now, call, None);
    assert_eq!(session.only_sent()["params"]["requestId"], id);
    assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
    session.assert_idle();
}

/// protocol:S-05, protocol:S-06, protocol:S-07, protocol:10.7
/// field:FR-085
#[test]
fn a_modern_subscription_ends_in_four_ways() {
    let mut session = Session::modern(on_channel());
    let all = json!({"toolsListChanged": true});
    let start = |session: &mut Session| {
        let (call, request) = session.listen(&all);
        session.acknowledge(&request["id"], &all);
        session.subscribed(call);
        (call, request["id"].clone())
    };
    // (a) and then (b), which is late.
    let (call, id) = start(&mut session);
    session.answer(&id, &json!({}));
    assert!(session.outcome(call).is_ok());
    let cancelled = |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    session.peer_json(&cancelled(&id));
    assert!(session.events().is_empty());
    // (b) and then (a).
    let (call, id) = start(&mut session);
    session.peer_json(&cancelled(&id));
    assert!(session.outcome(call).is_ok());
    session.answer(&id, &json!({}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::LateResponse]);
    // (d)
    let (call, request) = session.listen(&all);
    session.refuse_modern(&request, -32601, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
    // No word at all.
    let (call, _) = session.listen(&all);
    session.seconds(60);
    assert!(matches!(session.failure(call), CallError::Timeout { .. }));
    session.sent();
    // (c)
    let (call, _) = start(&mut session);
    session.core.handle_closed();
    assert!(matches!(session.failure(call), CallError::Closed { .. }));
    session.assert_idle();
}

/// protocol:S-02, protocol:S-06: on its own stream a notice belongs to the subscription also without an id.
#[test]
fn over_exchanges_the_stream_names_the_subscription() {
    let mut session = Session::modern(on_exchanges());
    let (call, _) = session.listen(&json!({"toolsListChanged": true}));
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;
    session.peer_on(Origin::Exchange(call), acknowledged);
    session.subscribed(call);
    session
        .peer_on(Origin::Exchange(call), r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert!(matches!(session.only_event(), Event::ListChanged(ListKind::Tools)));
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty());
}

/// protocol:S-01, protocol:L-13
#[test]
fn a_legacy_server_is_asked_for_each_resource_and_told_when_nobody_wants_it_any_more() {
    let mut session = Session::ready();
    let wanted = filter(&json!({"toolsListChanged": true, "resourceSubscriptions": ["a", "b"]}));
    let options = CallOptions::default();
    let first = session.core.listen(session.now, &wanted, &options).unwrap();
    let requests = session.sent();
    let uris: Vec<&Value> = requests.iter().map(|request| &request["params"]["uri"]).collect();
    assert_eq!(
        (uris, &requests[0]["method"]),
        (vec![&json!("a"), &json!("b")], &json!("resources/subscribe"))
    );
    session.answer(&requests[1]["id"], &json!({}));
    assert!(session.events().is_empty());
    session.answer(&requests[0]["id"], &json!({}));
    // The server did not declare that it tells of its tools.
    assert_eq!(session.subscribed(first), filter(&json!({"resourceSubscriptions": ["a", "b"]})));
    session.seconds(100_000);
    session.peer(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}"#);
    assert!(matches!(session.only_event(), Event::ResourceUpdated { uri } if uri == "a"));

    let second = session
        .core
        .listen(session.now, &filter(&json!({"resourceSubscriptions": ["b"]})), &options)
        .unwrap();
    let request = session.only_sent();
    session.answer(&request["id"], &json!({}));
    session.subscribed(second);
    session.core.cancel(session.now, first, None);
    assert!(matches!(session.failure(first), CallError::Cancelled { .. }));
    let told = session.only_sent();
    assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("resources/unsubscribe"), &json!("a")));
    session.answer(&told["id"], &json!({}));
    session.core.handle_closed();
    assert!(matches!(session.failure(second), CallError::Closed { .. }));
    session.assert_idle();
}

/// auth:G-13: nobody waits for the answers any more, and the server is told so where it may have heard the requests.
#[test]
fn a_legacy_subscription_that_is_given_up_takes_its_requests_along() {
    let mut session = Session::ready();
    let wanted = filter(&json!({"resourceSubscriptions": ["a", "b", "c"]}));
    let listen = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let requests = session.sent();
    session.answer(&requests[0]["id"], &json!({}));
    let left = requests[1]["id"].as_i64().unwrap();
    session.core.handle_held_back(&left.into());
    session.core.cancel(session.now, listen, None);
    assert!(matches!(session.failure(listen), CallError::Cancelled { .. }));
    let told = session.sent();
    let cancelled: Vec<_> = told.iter().filter(|told| told["method"] == "notifications/cancelled").collect();
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], requests[2]["id"]);
    let uris: Vec<_> = told.iter().filter_map(|told| told["params"]["uri"].as_str()).collect();
    assert_eq!(uris, ["a", "b", "c"]);
    for told in told.iter().filter(|told| told["id"].is_i64()) {
        session.answer(&told["id"], &json!({}));
    }
    session.assert_idle();
}

/// protocol:L-13
#[test]
fn a_legacy_subscription_needs_nothing_for_lists_and_is_refused_for_resources_where_they_have_none() {
    let mut session = Session::ready_with(config(), "2025-11-25", r#"{"tools":{}}"#);
    let options = CallOptions::default();
    let call =
        session.core.listen(session.now, &filter(&json!({"toolsListChanged": true})), &options).unwrap();
    session.drain();
    session.subscribed(call);
    let resources = filter(&json!({"resourceSubscriptions": ["a"]}));
    let refused = session.core.listen(session.now, &resources, &options);
    assert!(matches!(refused, Err(Misuse::NotDeclaredByServer { .. })));
    session.core.cancel(session.now, call, None);
    assert!(session.sent().is_empty());

    let mut session = Session::ready_with(Config { ..config() }, "2025-11-25", super::ALL_CAPABILITIES);
    let call = session.core.listen(session.now, &resources, &options).unwrap();
    let request = session.only_sent();
    session.refuse_modern(&request, -32602, &json!(null));
    let events = session.events();
    assert!(
        matches!(&events[0], Event::CallEnded { call: ended, outcome: Err(CallError::Rpc(_)) } if *ended == call)
    );
}

/// protocol:S-01, protocol:L-13: what is granted is what the server declares, and a task is nothing that this era tells of so.
#[test]
fn a_legacy_subscription_has_no_more_than_the_server_declares() {
    let check = |capabilities: &str, expected: Value| {
        let mut session = Session::ready_with(config(), "2025-11-25", capabilities);
        let wanted = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "taskIds": ["t"],
        });
        let call = session.core.listen(session.now, &filter(&wanted), &CallOptions::default()).unwrap();
        assert_eq!(session.subscribed(call), filter(&expected), "{capabilities}");
    };
    check(
        r#"{"tools":{"listChanged":true},"prompts":{"listChanged":false}}"#,
        json!({"toolsListChanged": true}),
    );
    check(
        r#"{"tools":{},"prompts":{"listChanged":true},"resources":{"listChanged":true}}"#,
        json!({"promptsListChanged": true, "resourcesListChanged": true}),
    );
    check("{}", json!({}));
}

/// An earlier revision has no such notification, and what it has not is passed on as it came.
#[test]
fn a_legacy_server_acknowledges_nothing() {
    let mut session = Session::ready();
    session.peer(
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#,
    );
    let event = session.only_event();
    assert!(matches!(&event, Event::OtherNotification { .. }), "{event:?}");
}

/// A server may end a subscription that it was asked for, and none whose id it only guesses.
#[test]
fn a_modern_server_ends_no_subscription_before_it_has_seen_it() {
    let mut session = Session::modern(on_channel());
    let wanted = filter(&json!({"toolsListChanged": true}));
    let call = session.core.listen(session.now, &wanted, &CallOptions::default()).unwrap();
    let id = session.core.calls[&call].request().unwrap().id.clone();
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string();
    session.peer(&cancelled);
    assert!(session.core.is_open(call));
    session.drain();
    session.peer(&cancelled);
    assert!(session.outcome(call).is_ok());
}
