//! Calls that are made tasks under 2025-11-25.

use std::time::Duration;

use mcp_elicitation::ElicitResult;
use mcp_model::TaskStatus;
use serde_json::{Value, json};

use super::tasks::with_tasks;
use super::{Session, config_with_elicitation, raw};
use crate::{
    Answer, CallError, CallId, CallOptions, Config, Event, StoredTask, TaskError, TaskOptions, TransmitKind,
};

const CAPABILITIES: &str = r#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

fn task(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": status,
        "ttl": 60_000, "pollInterval": 2000,
    })
}

fn created() -> Value {
    json!({"task": task("working"), "_meta": {"io.modelcontextprotocol/model-immediate-response": "on it"}})
}

fn ready(config: Config) -> Session {
    Session::ready_with(config, "2025-11-25", CAPABILITIES)
}

fn listed() -> Session {
    let mut session = ready(with_tasks(config_with_elicitation()));
    let (_, request) = session.ask("tools/list", &json!({}));
    let tool = |name: &str, support: Value| json!({"name": name, "inputSchema": {}, "execution": support});
    let tools = json!([
        tool("must", json!({"taskSupport": "required"})),
        tool("may", json!({"taskSupport": "optional"})),
        tool("never", json!({"taskSupport": "forbidden"})),
        tool("silent", json!({})),
        tool("odd", json!({"taskSupport": "sometimes"})),
        {"name": 7},
    ]);
    session.answer(&request["id"], &json!({"tools": tools}));
    assert!(matches!(session.only_event(), Event::CallEnded { outcome: Ok(_), .. }));
    session
}

fn wanted() -> CallOptions {
    let task =
        TaskOptions { wanted: true, keep_for: Some(Duration::from_secs(90)), ..TaskOptions::default() };
    CallOptions { task, ..CallOptions::default() }
}

impl Session {
    fn legacy_task(&mut self, options: &CallOptions) -> (CallId, Value) {
        let (call, request) = self.ask_with("tools/call", &json!({"name": "must", "arguments": {}}), options);
        self.answer(&request["id"], &created());
        let update = self.update(call);
        assert_eq!(update.task.status, TaskStatus::Working);
        assert_eq!(update.immediate_response.as_deref(), Some("on it"));
        (call, request)
    }

    fn get(&mut self, answer: &Value) {
        let poll = self.poll_after(2000);
        assert!(poll["params"].get("_meta").is_none());
        self.answer(&poll["id"], answer);
    }
}

/// protocol:TK-01, protocol:TL-09, protocol:10.25
#[test]
fn a_tool_is_called_as_a_task_where_it_must_be_and_where_it_may_be_and_that_is_wanted() {
    let check = |name: &str, options: &CallOptions, expected: Value| {
        let mut session = listed();
        let (_, request) = session.ask_with("tools/call", &json!({"name": name, "arguments": {}}), options);
        assert_eq!(request["params"]["task"], expected, "{name}");
    };
    let (no, plain) = (Value::Null, CallOptions::default());
    check("must", &plain, json!({}));
    check("must", &wanted(), json!({"ttl": 90_000}));
    check("may", &plain, no.clone());
    check("may", &wanted(), json!({"ttl": 90_000}));
    check("unlisted", &plain, no.clone());
    check("unlisted", &wanted(), json!({"ttl": 90_000}));
    for never in ["never", "silent", "odd"] {
        check(never, &wanted(), no.clone());
    }
}

/// protocol:TK-01, protocol:TX-09: nobody is asked for a task who did not declare it, or whom nobody told to ask.
#[test]
fn without_the_capability_or_the_revision_no_call_is_made_a_task() {
    let check = |config: Config, version: &str, capabilities: &str| {
        let mut session = Session::ready_with(config, version, capabilities);
        let (call, request) = session.ask_with("tools/call", &json!({"name": "t"}), &wanted());
        assert_eq!(request["params"], json!({"name": "t"}), "{version} {capabilities}");
        session.answer(&request["id"], &json!({"content": []}));
        session.outcome(call).unwrap();
    };
    check(config_with_elicitation(), "2025-11-25", CAPABILITIES);
    for capabilities in [r#"{"tools":{}}"#, r#"{"tools":{},"tasks":{"list":{}}}"#] {
        check(with_tasks(config_with_elicitation()), "2025-11-25", capabilities);
    }
    check(with_tasks(config_with_elicitation()), "2025-06-18", CAPABILITIES);
}

/// protocol:TX-09: the extension is none of this era's.
#[test]
fn initialize_says_nothing_of_the_extension() {
    let mut session = Session::new(with_tasks(config_with_elicitation()));
    session.initialize();
    let capabilities = session.only_sent()["params"]["capabilities"].clone();
    assert!(
        capabilities.get("extensions").is_none() && capabilities.get("tasks").is_none(),
        "{capabilities}"
    );
}

/// protocol:TK-01: not even a tool that must be one, whatever else the call wants.
#[test]
fn a_call_that_declines_tasks_is_made_without_one() {
    let mut options = wanted();
    options.task.declined = true;
    for name in ["must", "may"] {
        let mut session = listed();
        let (call, request) = session.ask_with("tools/call", &json!({"name": name}), &options);
        assert_eq!(request["params"], json!({"name": name}));
        session.answer(&request["id"], &json!({"content": []}));
        session.outcome(call).unwrap();
        session.assert_idle();
    }
}

/// protocol:TK-03: the roots need nobody, and name the task all the same.
#[test]
fn roots_that_a_task_asks_for_name_it() {
    let config = Config {
        roots: Some(vec![mcp_model::Root::new("file:///a")]),
        ..with_tasks(config_with_elicitation())
    };
    let mut session = ready(config);
    session.legacy_task(&CallOptions { task: wanted().task, ..CallOptions::default() });
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-1"}});
    let mut check = |params: Value, expected: Value| {
        session.peer_json(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": params}));
        let answer = session.only_sent();
        assert_eq!(answer["result"]["roots"], json!([{"uri": "file:///a"}]));
        assert_eq!(answer["result"]["_meta"], expected);
    };
    check(json!({"_meta": related}), related.clone());
    check(json!({"_meta": {"other": 1}}), Value::Null);
    check(json!({}), Value::Null);
}

/// protocol:TK-05: a server that takes no tasks answers as ever.
#[test]
fn an_ordinary_answer_is_the_result() {
    let mut session = ready(with_tasks(config_with_elicitation()));
    let (call, request) = session.ask_with("tools/call", &json!({"name": "t"}), &wanted());
    session.answer(&request["id"], &json!({"content": [], "isError": false}));
    assert!(session.outcome(call).unwrap().as_str().contains("isError"));
    session.assert_idle();
    let (call, request) = session.ask_with("tools/call", &json!({"name": "t"}), &wanted());
    session.refuse_modern(&request, -32601, &Value::Null);
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
    session.assert_idle();
}

/// protocol:TK-02, protocol:TK-06, protocol:TK-07
#[test]
fn the_result_is_fetched_when_the_task_is_done() {
    for status in ["completed", "failed"] {
        let mut session = listed();
        let (call, _) = session.legacy_task(&CallOptions::default());
        session.get(&task("working"));
        session.get(&task(status));
        let fetch = session.only_sent();
        assert_eq!(fetch["method"], "tasks/result");
        assert_eq!(fetch["params"], json!({"taskId": "t-1"}));
        session.answer(&fetch["id"], &json!({"content": [], "isError": status == "failed"}));
        assert!(matches!(
            session.events().pop(),
            Some(Event::CallEnded { call: ended, outcome: Ok(_) }) if ended == call
        ));
        session.assert_idle();
    }
}

/// protocol:TK-02: an error of the request itself comes the same way.
#[test]
fn the_error_of_the_call_is_fetched_as_it_is() {
    let mut session = listed();
    let (call, _) = session.legacy_task(&CallOptions::default());
    session.get(&task("failed"));
    let fetch = session.only_sent();
    session.events();
    session.refuse_modern(&fetch, -32602, &json!("mine"));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32602));
    session.assert_idle();
}

/// protocol:TK-02, protocol:TX-08
#[test]
fn cancelled_and_unknown_tasks_have_no_result() {
    let mut session = listed();
    let (call, _) = session.legacy_task(&CallOptions::default());
    session.get(&task("cancelled"));
    let events = session.events();
    assert!(matches!(
        events.last(),
        Some(Event::CallEnded { call: ended, outcome: Err(CallError::Task(TaskError::Cancelled)) }) if *ended == call
    ));
    let (call, _) = session.legacy_task(&CallOptions::default());
    let poll = session.poll_after(2000);
    session.refuse_modern(&poll, -32602, &Value::Null);
    assert!(matches!(session.failure(call), CallError::Task(TaskError::Unknown(_))));
    session.assert_idle();
}

/// protocol:TK-03
#[test]
fn a_task_that_needs_input_gets_its_result_asked_for_and_its_questions_answered_in_its_name() {
    let mut session = listed();
    let (call, _) = session.legacy_task(&CallOptions::default());
    session.get(&task("input_required"));
    let fetch = session.only_sent();
    assert_eq!(fetch["method"], "tasks/result");
    session.events();
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-1"}});
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
    let params = json!({"message": "m", "requestedSchema": schema, "_meta": related});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 70, "method": "elicitation/create", "params": params}));
    let question = session.question();
    // A person takes longer than a request may.
    session.seconds(170);
    session.give(&question, Answer::Elicit(ElicitResult::accept(serde_json::Map::new())));
    assert_eq!(
        session.only_sent(),
        json!({"jsonrpc": "2.0", "id": 70, "result": {"action": "accept", "content": {"n": 1}, "_meta": related}})
    );
    // One that belongs to no task is answered as ever.
    let plain = json!({"message": "m", "requestedSchema": schema});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 71, "method": "elicitation/create", "params": plain}));
    let question = session.question();
    session.give(&question, Answer::Elicit(ElicitResult::decline()));
    assert_eq!(session.only_sent()["result"], json!({"action": "decline"}));
    session.answer(&fetch["id"], &json!({"content": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// A call is a task once the server says so, whether or not it was asked to make one of it.
#[test]
fn a_call_is_a_task_when_the_server_has_made_one_of_it() {
    let mut session = listed();
    let (call, request) = session.ask("tools/call", &json!({"name": "must"}));
    assert!(!session.core.is_task(call));
    session.answer(&request["id"], &created());
    assert!(session.core.is_task(call));
}

/// A server that guesses ids answers before it is asked. The request must not leave any more, and what it would have said
/// is not said of the one that the call goes on with.
#[test]
fn a_request_that_was_answered_before_it_left_is_not_sent() {
    let mut session = listed();
    let params = raw(&json!({"name": "must"}));
    let call = session.core.call(session.now, "tools/call", Some(&params), &wanted()).unwrap();
    let held = session.core.poll_transmit().unwrap();
    let TransmitKind::Request { id, .. } = held.kind else { panic!("{held:?}") };
    session.answer(&serde_json::to_value(&id).unwrap(), &created());
    session.update(call);
    assert!(!session.core.handle_dispatched(&id));
    session.core.handle_held_back(&id);
    session.core.cancel(session.now, call, None);
    assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
    assert!(session.sent().is_empty(), "nothing has left that could be cancelled");
    session.assert_idle();
}

/// seed:E33: what is asked on the shared channel belongs to a request on the wire, and a call that waits for its task has none.
#[test]
fn a_call_that_waits_for_its_task_does_not_hide_the_route_of_another() {
    let mut session = listed();
    let route = |key: &str| CallOptions { route: Some(key.into()), ..CallOptions::default() };
    session.legacy_task(&route("task"));
    session.ask_with("tools/list", &json!({}), &route("list"));
    let params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    session.peer_json(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}));
    assert_eq!(session.question().route.as_deref(), Some("list"));
}

/// protocol:P-05: the token of the call lives as long as the task.
#[test]
fn progress_goes_on_while_the_task_does() {
    let mut session = listed();
    let options = CallOptions { progress: true, ..CallOptions::default() };
    let (call, request) = session.legacy_task(&options);
    let token = request["params"]["_meta"]["progressToken"].clone();
    let notice = |progress: u32| {
        let params = json!({"progressToken": token, "progress": progress});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    session.peer_json(&notice(1));
    assert!(matches!(session.only_event(), Event::Progress { call: of, .. } if of == call));
    session.get(&task("working"));
    session.peer_json(&notice(2));
    assert!(matches!(session.only_event(), Event::Progress { call: of, .. } if of == call));
    session.peer_json(&notice(2));
    assert_eq!(session.diagnostics().len(), 1, "no progress");
    let foreign = json!({"progressToken": "another", "progress": 3});
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": foreign}));
    assert_eq!(session.diagnostics().len(), 1, "not its token");
    session.core.cancel(session.now, call, None);
    session.events();
    session.peer_json(&notice(3));
    assert_eq!(session.diagnostics().len(), 1, "nobody waits");
}

/// protocol:TK-04: a notice is only taken for a hint, and none is relied on.
#[test]
fn a_status_notice_saves_a_question() {
    let mut session = listed();
    let (call, _) = session.legacy_task(&CallOptions::default());
    let notice = |status: &str| json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task(status)});
    session.peer_json(&notice("working"));
    session.events();
    session.peer_json(&notice("completed"));
    let fetch = session.only_sent();
    assert_eq!(fetch["method"], "tasks/result");
    session.events();
    session.answer(&fetch["id"], &json!({"content": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// protocol:TK-04: a request that asks for a task is not cancelled as a request is.
#[test]
fn giving_up_a_call_that_is_becoming_a_task_sends_no_cancellation() {
    let mut session = listed();
    let (call, request) = session.ask("tools/call", &json!({"name": "must"}));
    assert!(request["params"]["task"].is_object());
    session.core.cancel(session.now, call, None);
    assert!(matches!(session.failure(call), CallError::Cancelled { dispatched: true }));
    assert!(session.sent().is_empty());
    session.assert_idle();

    let task = TaskOptions { cancel_abandoned: true, ..TaskOptions::default() };
    let (call, _) = session.legacy_task(&CallOptions { task, ..CallOptions::default() });
    session.core.cancel(session.now, call, None);
    let cancel = session.only_sent();
    assert_eq!((&cancel["method"], &cancel["params"]), (&json!("tasks/cancel"), &json!({"taskId": "t-1"})));
}

#[test]
fn a_stored_task_is_waited_for_in_this_era_too() {
    let mut session = ready(with_tasks(config_with_elicitation()));
    let call =
        session.core.resume_task(session.now, &StoredTask::new("t-1"), &CallOptions::default()).unwrap();
    let poll = session.only_sent();
    assert_eq!((&poll["method"], &poll["params"]), (&json!("tasks/get"), &json!({"taskId": "t-1"})));
    session.answer(&poll["id"], &task("completed"));
    let fetch = session.only_sent();
    assert_eq!(fetch["method"], "tasks/result");
    session.events();
    session.answer(&fetch["id"], &json!({"content": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// protocol:P-05: a task tells its progress for as long as it lives. Between two questions nothing is waited for that progress could
/// be a sign of, so it neither ends the wait nor draws it out.
#[test]
fn progress_between_two_questions_does_not_move_the_end_of_a_task() {
    let mut session = listed();
    let options = CallOptions {
        timeout: Duration::from_secs(5),
        max_total: Some(Duration::from_secs(100)),
        reset_on_progress: true,
        progress: true,
        ..CallOptions::default()
    };
    let (call, request) = session.ask_with("tools/call", &json!({"name": "must"}), &options);
    let mut slow = created();
    slow["task"]["pollInterval"] = json!(30_000);
    session.answer(&request["id"], &slow);
    session.update(call);
    session.seconds(1);
    let progress = json!({"progressToken": request["id"], "progress": 1});
    session.peer_json(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
    assert!(matches!(session.only_event(), Event::Progress { call: of, .. } if of == call));
    session.seconds(28);
    assert!(session.events().is_empty() && session.core.is_open(call));
    let poll = session.poll_after(1000);
    session.answer(&poll["id"], &task("completed"));
    assert_eq!(session.only_sent()["method"], "tasks/result");
}
