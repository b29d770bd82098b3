//! Calls that a modern server makes tasks of (extension `io.modelcontextprotocol/tasks`).

use std::time::Duration;

use mcp_elicitation::ElicitResult;
use mcp_model::TaskStatus;
use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{Session, raw};
use crate::exchange_failure::ExchangeFailure;
use crate::{
    Answer, CallError, CallId, CallOptions, Config, DiagnosticKind, Event, Misuse, StoredTask, TaskConfig,
    TaskError, TaskOptions, TaskUpdate, TimeLimit,
};

pub(super) fn with_tasks(config: Config) -> Config {
    let tasks = TaskConfig { max_polls: 50, max_failed_polls: 2, max_inputs: 3, ..TaskConfig::default() };
    Config { tasks: Some(tasks), ..config }
}

/// A task in this state, with further members.
pub(super) fn task(status: &str, more: &Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": "2026-08-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 2000,
    });
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

pub(super) fn created() -> Value {
    task("working", &json!({"resultType": "task"}))
}

pub(super) fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": schema}})
}

pub(super) fn wants(requests: &Value) -> Value {
    task("input_required", &json!({"inputRequests": requests}))
}

pub(super) fn accept() -> Answer {
    Answer::Elicit(ElicitResult::accept(serde_json::Map::new()))
}

pub(super) fn done() -> Value {
    task("completed", &json!({"result": {"content": [], "isError": false}}))
}

impl Session {
    pub(super) fn update(&mut self, expected: CallId) -> TaskUpdate {
        match self.only_event() {
            Event::Task { call, update } if call == expected => *update,
            other => panic!("no news of the task: {other:?}"),
        }
    }

    /// A call whose answer is this task.
    pub(super) fn task_call_with(&mut self, task: &Value, options: &CallOptions) -> CallId {
        let (call, request) = self.ask_with("tools/call", &json!({"name": "t", "arguments": {}}), options);
        self.answer(&request["id"], task);
        let update = self.update(call);
        assert_eq!(format!("{update:?}"), "TaskUpdate { status: Working, .. }");
        call
    }

    pub(super) fn task_call(&mut self) -> CallId {
        self.task_call_with(&created(), &CallOptions::default())
    }

    /// The next `tasks/get`, after this time and not before.
    pub(super) fn poll_after(&mut self, millis: u64) -> Value {
        self.advance(Duration::from_millis(millis - 1));
        assert!(self.sent().is_empty(), "asked too early");
        self.advance(Duration::from_millis(1));
        let request = self.only_sent();
        assert_eq!(request["method"], "tasks/get");
        assert_eq!(request["params"]["taskId"], "t-1");
        request
    }

    pub(super) fn task_error(&mut self, call: CallId) -> TaskError {
        match self.failure(call) {
            CallError::Task(error) => error,
            other => panic!("not an end of a task: {other:?}"),
        }
    }
}

/// protocol:TX-01, protocol:TX-02, protocol:TX-03, protocol:TX-09, protocol:L-24
#[test]
fn a_call_that_becomes_a_task_is_asked_for_at_the_servers_pace_and_ends_with_its_result() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let (call, request) = session.ask("tools/call", &json!({"name": "t", "arguments": {}}));
    assert!(request["params"].get("task").is_none());
    let declared = |request: &Value| {
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"].clone()
    };
    assert_eq!(declared(&request), json!({"io.modelcontextprotocol/tasks": {}}));
    session.answer(&request["id"], &created());
    assert_eq!(session.update(call).task.poll_interval_ms, Some(2000));
    let poll = session.poll_after(2000);
    assert_eq!(declared(&poll), json!({"io.modelcontextprotocol/tasks": {}}));
    // The server wants to be asked less often, and says what it does.
    let slower = json!({"pollIntervalMs": 7000, "statusMessage": "half way", "lastUpdatedAt": "later"});
    session.answer(&poll["id"], &task("working", &slower));
    assert_eq!(session.update(call).task.status_message.as_deref(), Some("half way"));
    let poll = session.poll_after(7000);
    session.answer(&poll["id"], &task("working", &slower));
    assert!(session.events().is_empty(), "nothing new");
    let poll = session.poll_after(7000);
    session.answer(&poll["id"], &done());
    let mut events = session.events();
    assert!(matches!(&events[0], Event::Task { update, .. } if update.task.status == TaskStatus::Completed));
    let Event::CallEnded { outcome: Ok(result), .. } = events.remove(1) else { panic!("{events:?}") };
    assert_eq!(result.parse::<Value>().unwrap(), json!({"content": [], "isError": false}));
    session.assert_idle();
}

/// protocol:TX-02, protocol:J-32: without the extension, and on any other method, a task is no answer.
#[test]
fn a_task_that_was_not_asked_for_is_an_invalid_result() {
    let check = |config: Config, method: &str, params: Value| {
        let mut session = Session::modern(config);
        let (call, request) = session.ask(method, &params);
        session.answer(&request["id"], &created());
        assert!(matches!(session.failure(call), CallError::InvalidResult { .. }), "{method}");
        session.assert_idle();
    };
    check(on_channel(), "tools/call", json!({"name": "t"}));
    check(with_tasks(on_channel()), "prompts/get", json!({"name": "t"}));
    check(with_tasks(on_channel()), "tools/list", json!({}));
    check(with_tasks(on_channel()), "resources/read", json!({"uri": "file:///a"}));
    let mut session = Session::modern(with_tasks(on_channel()));
    let (call, request) = session.ask("tools/call", &json!({"name": "t"}));
    session.answer(&request["id"], &json!({"resultType": "task", "status": "working"}));
    assert!(matches!(session.failure(call), CallError::InvalidResult { .. }), "no id");
}

/// protocol:TX-02: a server that declares tasks may still answer at once.
#[test]
fn an_ordinary_result_stays_one() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let (call, request) = session.ask("tools/call", &json!({"name": "t"}));
    session.answer(&request["id"], &json!({"content": []}));
    session.outcome(call).unwrap();
    session.assert_idle();
}

/// protocol:TX-03: too short a wait is lengthened, too long a one cut, none is the default.
#[test]
fn the_wait_between_two_questions_has_bounds() {
    let check = |said: Value, waited: u64| {
        let mut session = Session::modern(with_tasks(on_channel()));
        let mut task = created();
        task["pollIntervalMs"] = said;
        session.task_call_with(&task, &CallOptions::default());
        session.poll_after(waited);
    };
    check(json!(0), 100);
    check(json!(100), 100);
    check(json!(101), 101);
    check(json!(-5), 100);
    check(json!(60_000), 60_000);
    check(json!(60_001), 60_000);
    check(json!(u64::MAX), 60_000);
    check(Value::Null, 1000);
    check(json!("soon"), 1000);
}

/// protocol:TX-03, protocol:TX-11
#[test]
fn each_end_of_a_task_is_the_end_of_the_call() {
    let end = |answer: Value| {
        let mut session = Session::modern(with_tasks(on_channel()));
        let call = session.task_call();
        let poll = session.poll_after(2000);
        session.answer(&poll["id"], &answer);
        let ended = session.events().into_iter().find_map(|event| match event {
            Event::CallEnded { call: ended, outcome } if ended == call => Some(outcome),
            _ => None,
        });
        session.assert_idle();
        ended.expect("the call ended")
    };
    let tool_error = json!({"result": {"content": [], "isError": true}, "resultType": "task"});
    assert!(end(task("completed", &tool_error)).unwrap().as_str().contains("true"));
    let failed = json!({"error": {"code": -32603, "message": "limit"}, "resultType": "task"});
    assert!(matches!(end(task("failed", &failed)), Err(CallError::Rpc(error)) if error.message == "limit"));
    assert!(matches!(end(task("cancelled", &json!({}))), Err(CallError::Task(TaskError::Cancelled))));
    // What breaks the protocol.
    for broken in [
        task("completed", &json!({})),
        task("completed", &json!({"result": null})),
        task("completed", &json!({"result": [1]})),
        task("failed", &json!({})),
        task("failed", &json!({"error": "no"})),
        task("working", &json!({"taskId": "t-2"})),
        task("working", &json!({"resultType": "input_required"})),
        json!({"resultType": "complete"}),
    ] {
        assert!(matches!(end(broken.clone()), Err(CallError::InvalidResult { .. })), "{broken}");
    }
}

/// protocol:10.27
#[test]
fn a_status_of_another_version_is_waited_through() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &task("paused", &json!({})));
    assert_eq!(session.update(call).task.status, TaskStatus::Other("paused".into()));
    session.poll_after(2000);
}

/// protocol:TX-08
#[test]
fn an_unknown_task_and_one_past_its_time_are_told_apart() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.refuse_modern(&poll, -32602, &json!(null));
    assert!(matches!(session.task_error(call), TaskError::Unknown(error) if error.code.get() == -32602));

    // The server forgot it, as it may after that time.
    let mut short = created();
    short["ttlMs"] = json!(1500);
    let call = session.task_call_with(&short, &CallOptions::default());
    let poll = session.poll_after(2000);
    session.refuse_modern(&poll, -32602, &json!(null));
    let expired = session.task_error(call);
    assert!(matches!(expired, TaskError::Expired { ttl } if ttl == Duration::from_millis(1500)));

    // It is still at work then, and asked once more first.
    let call = session.task_call_with(&short, &CallOptions::default());
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &task("working", &json!({"ttlMs": 1500})));
    assert!(matches!(session.task_error(call), TaskError::Expired { .. }));

    // The server gave it more time.
    let call = session.task_call_with(&short, &CallOptions::default());
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &task("working", &json!({"ttlMs": 9000})));
    assert!(session.core.is_open(call));
    session.core.cancel(session.now, call, None);
    session.events();
    session.assert_idle();
}

/// A task past its time ends the wait once the server was asked after that time, and not because of an answer that got lost.
#[test]
fn a_lost_answer_is_no_reason_to_take_a_task_for_expired() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let mut short = created();
    short["ttlMs"] = json!(3000);
    let call = session.task_call_with(&short, &CallOptions::default());
    let poll = session.poll_after(2000);
    session.seconds(2);
    session.refuse_modern(&poll, -32603, &json!(null));
    let poll = session.poll_after(4000);
    session.answer(&poll["id"], &done());
    let ended = session.events().pop();
    assert!(matches!(ended, Some(Event::CallEnded { call: of, outcome: Ok(_) }) if of == call), "{ended:?}");
    session.assert_idle();
}

#[test]
fn other_refusals_end_the_wait_and_an_internal_error_is_outlasted_a_few_times() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let poll = session.poll_after(2000);
    session.refuse_modern(&poll, -32021, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(error) if error.code.get() == -32021));

    let call = session.task_call();
    for wait in [2000, 4000] {
        let poll = session.poll_after(wait);
        session.refuse_modern(&poll, -32603, &json!(null));
        assert!(session.core.is_open(call));
    }
    let poll = session.poll_after(8000);
    session.refuse_modern(&poll, -32603, &json!(null));
    assert!(matches!(session.failure(call), CallError::Rpc(_)));
    session.assert_idle();
}

/// protocol:TX-03: losing a question about a task is not losing the task; and `tools/call` is never sent again.
#[test]
fn lost_answers_are_outlasted_with_longer_waits_until_the_limit() {
    let mut session = Session::modern(with_tasks(on_exchanges()));
    let call = session.task_call();
    for wait in [2000, 4000] {
        session.poll_after(wait);
        assert!(session.exchange_failed(call, ExchangeFailure::of_status(503)));
        // The rest of the broken exchange says so once more.
        assert!(session.exchange_failed(call, ExchangeFailure::Other));
    }
    session.poll_after(8000);
    assert!(!session.exchange_failed(call, ExchangeFailure::Other));
    assert!(session.core.is_open(call), "the driver ends it");
    session.core.forget(call);
    session.assert_idle();

    // An answer in between begins the count anew; a refusal for good is none to outlast.
    let call = session.task_call();
    for _ in 0..4 {
        session.poll_after(2000);
        assert!(session.exchange_failed(call, ExchangeFailure::of_status(429)));
        let poll = session.poll_after(4000);
        session.answer(&poll["id"], &task("working", &json!({})));
    }
    session.poll_after(2000);
    assert!(!session.exchange_failed(call, ExchangeFailure::of_status(403)));
    // Nobody answers that question any more, so the failure of its exchange is no rest of anything.
    assert!(session.core.is_open(call), "the driver ends it");
}

/// protocol:TX-03: nor is a question that never left, as the server was not there.
#[test]
fn a_question_that_never_left_is_outlasted_as_a_lost_one() {
    let mut session = Session::modern(with_tasks(on_exchanges()));
    let call = session.task_call();
    let never_left = |session: &mut Session, wait| {
        let poll = session.poll_after(wait);
        session.core.handle_held_back(&serde_json::from_value(poll["id"].clone()).unwrap());
        session.exchange_failed(call, ExchangeFailure::NotSent)
    };
    assert!(never_left(&mut session, 2000) && never_left(&mut session, 4000));
    assert!(!never_left(&mut session, 8000), "the driver ends it");
}

/// protocol:TX-03: whatever kept a question from leaving, its call does not wait for an answer that cannot come: the question is asked
/// again, or its failure is the end of the call.
#[test]
fn a_question_that_failed_before_it_left_is_asked_again_or_ends_its_call() {
    use ExchangeFailure::{ConnectionLost, NotSent, Other, Refused};
    for (failure, is_asked_again) in
        [(ConnectionLost, true), (NotSent, true), (Other, true), (Refused, false)]
    {
        let mut session = Session::modern(with_tasks(on_exchanges()));
        let call = session.task_call();
        let poll = session.poll_after(2000);
        session.core.handle_held_back(&serde_json::from_value(poll["id"].clone()).unwrap());
        let goes_on = session.exchange_failed(call, failure);
        assert_eq!(goes_on, is_asked_again, "{failure:?}");
        if is_asked_again {
            session.drain();
            session.poll_after(4000);
        }
    }
}

/// A call that is not yet a task gets no second chance.
#[test]
fn a_lost_tool_call_is_not_repeated() {
    let mut session = Session::modern(with_tasks(on_exchanges()));
    let (call, _) = session.ask("tools/call", &json!({"name": "t"}));
    assert!(!session.exchange_failed(call, ExchangeFailure::Other));
    session.core.forget(call);
    session.seconds(100_000);
    assert!(session.sent().is_empty());
    session.assert_idle();
}

/// A silent server: each question has the timeout of a request, the whole the total of the call.
#[test]
fn a_question_without_an_answer_times_out_and_the_total_ends_the_wait() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let options = CallOptions { max_total: Some(Duration::from_secs(100)), ..CallOptions::default() };
    let call = session.task_call_with(&created(), &options);
    let poll = session.poll_after(2000);
    session.seconds(60);
    let sent = session.sent();
    assert_eq!(sent[0]["method"], "notifications/cancelled");
    assert_eq!(sent[0]["params"]["requestId"], poll["id"]);
    session.poll_after(4000);
    session.seconds(34);
    let failure = session.failure(call);
    assert!(
        matches!(failure, CallError::Timeout { after, limit: TimeLimit::MaxTotal, dispatched: true } if Some(after) == options.max_total),
        "{failure:?}"
    );
    session.sent();
    session.assert_idle();
}

#[test]
fn a_wait_asks_a_limited_number_of_times() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let options = CallOptions { max_total: Some(Duration::MAX), ..CallOptions::default() };
    let call = session.task_call_with(&created(), &options);
    for _ in 0..50 {
        let poll = session.poll_after(2000);
        session.answer(&poll["id"], &task("working", &json!({})));
    }
    assert!(matches!(session.task_error(call), TaskError::TooManyPolls { limit: 50 }));
    session.assert_idle();
}

/// protocol:TX-05: giving up the wait leaves the task alone, unless that is wanted.
#[test]
fn a_call_that_is_given_up_leaves_the_task_or_cancels_it_by_its_own_method() {
    for cancel_abandoned in [false, true] {
        let mut session = Session::modern(with_tasks(on_channel()));
        let task = TaskOptions { cancel_abandoned, ..TaskOptions::default() };
        let options = CallOptions { task, ..CallOptions::default() };
        let call = session.task_call_with(&created(), &options);
        session.core.cancel(session.now, call, None);
        assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
        let sent = session.sent();
        if cancel_abandoned {
            assert_eq!(sent.len(), 1);
            assert_eq!(
                (&sent[0]["method"], &sent[0]["params"]["taskId"]),
                (&json!("tasks/cancel"), &json!("t-1"))
            );
            session.answer(&sent[0]["id"], &json!({}));
        } else {
            assert!(sent.is_empty());
        }
        session.assert_idle();
    }
}

/// protocol:TX-07
#[test]
fn requests_about_a_task_are_routed_by_its_id() {
    let mut session = Session::modern(with_tasks(on_exchanges()));
    session.task_call();
    session.advance(Duration::from_millis(2000));
    let routing = session.sent.pop().unwrap().head.routing.unwrap();
    assert_eq!((routing.method.as_str(), routing.name.as_deref()), ("tasks/get", Some("t-1")));
}

/// protocol:TX-06: what the server tells is as good as an answer, and it is asked less often.
#[test]
fn a_task_that_is_listened_for_ends_without_being_asked() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = session.task_call();
    let (listen, request) = session.listen(&json!({"taskIds": ["t-1"]}));
    session.acknowledge(&request["id"], &json!({"taskIds": ["t-1"]}));
    session.subscribed(listen);
    let id = request["id"].clone();
    let poll = session.poll_after(2000);
    session.answer(&poll["id"], &task("working", &json!({})));
    let poll = session.poll_after(60_000);
    // While an answer is under way, that one counts.
    session.notice("notifications/tasks", &id, &done());
    assert!(session.events().is_empty());
    session.answer(&poll["id"], &task("working", &json!({})));
    session.notice("notifications/tasks", &id, &wants(&json!({"a": form()})));
    let Some(Event::ServerRequest(question)) = session.events().pop() else { panic!("a question") };
    session.give(&question, accept());
    let update = session.only_sent();
    session.answer(&update["id"], &json!({}));
    // A task of somebody else's, and a notice outside of the subscription.
    session.notice("notifications/tasks", &id, &task("working", &json!({"taskId": "t-9"})));
    assert!(matches!(session.only_event(), Event::OtherNotification { .. }));
    session.notice("notifications/tasks", &json!(999), &done());
    assert_eq!(session.diagnostics(), [DiagnosticKind::ChangeIgnored]);
    session.notice("notifications/tasks", &id, &json!({"status": "working"}));
    assert_eq!(session.diagnostics(), [DiagnosticKind::MalformedNotification]);
    session.notice("notifications/tasks", &id, &done());
    assert!(
        matches!(session.events().pop(), Some(Event::CallEnded { call: ended, outcome: Ok(_) }) if ended == call)
    );
}

/// protocol:TX-03: a task is taken up by its id alone, in another process, and nobody is asked again.
#[test]
fn a_stored_task_is_waited_for_on_another_connection() {
    let mut first = Session::modern(with_tasks(on_channel()));
    let created = task("working", &json!({"resultType": "task", "ttlMs": 600_000}));
    let call = first.task_call_with(&created, &CallOptions::default());
    assert!(first.core.is_task(call));
    let poll = first.poll_after(2000);
    let asking = json!({"inputRequests": {"a": form()}, "ttlMs": 600_000});
    first.answer(&poll["id"], &task("input_required", &asking));
    let Some(Event::ServerRequest(question)) = first.events().pop() else { panic!("a question") };
    first.give(&question, accept());
    let stored = first.core.stored_task(call).unwrap();
    assert!(!format!("{stored:?}").contains("t-1"), "the id may be all that is needed to use the task");
    assert!(format!("{stored:?}").contains("answered: 1"), "{stored:?}");
    assert_eq!((stored.created_at.as_deref(), stored.ttl_ms), (Some("2026-08-01T00:00:00Z"), Some(600_000)));
    let text = serde_json::to_string(&stored).unwrap();
    first.core.handle_closed();
    assert!(matches!(first.failure(call), CallError::Closed { .. }));
    first.assert_idle();

    let stored: StoredTask = serde_json::from_str(&text).unwrap();
    let mut second = Session::modern(with_tasks(on_channel()));
    let options = CallOptions { progress: true, reset_on_progress: true, ..CallOptions::default() };
    let call = second.core.resume_task(second.now, &stored, &options).unwrap();
    let poll = second.only_sent();
    assert!(
        poll["params"]["_meta"].get("progressToken").is_none(),
        "a question about a task has no progress"
    );
    assert_eq!((&poll["method"], &poll["params"]["taskId"]), (&json!("tasks/get"), &json!("t-1")));
    second.answer(&poll["id"], &wants(&json!({"a": form()})));
    assert!(second.events().iter().all(|event| matches!(event, Event::Task { .. })), "a was answered before");
    let poll = second.poll_after(2000);
    second.answer(&poll["id"], &done());
    assert!(
        matches!(second.events().pop(), Some(Event::CallEnded { call: ended, outcome: Ok(_) }) if ended == call)
    );
    second.assert_idle();
}

/// protocol:TX-03: whoever gives up before the server has answered loses nothing of it.
#[test]
fn a_task_that_was_taken_up_is_put_away_again_as_it_was() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let stored = StoredTask {
        created_at: Some("2026-08-01T00:00:00Z".to_owned()),
        ttl_ms: Some(600_000),
        answered: ["a".to_owned()].into(),
        ..StoredTask::new("t-1")
    };
    let call = session.core.resume_task(session.now, &stored, &CallOptions::default()).unwrap();
    assert_eq!(session.core.stored_task(call), Some(stored));
}

#[test]
fn a_task_is_not_taken_up_where_that_makes_no_sense() {
    let resume = |config: Config, stored: &StoredTask| {
        let mut session = Session::modern(config);
        session.core.resume_task(session.now, stored, &CallOptions::default())
    };
    let refused = resume(on_channel(), &StoredTask::new("t"));
    assert_eq!(refused, Err(Misuse::NotDeclaredByClient { capability: "tasks" }));
    let mut foreign = StoredTask::new("t");
    foreign.method = "initialize".to_owned();
    assert!(matches!(resume(with_tasks(on_channel()), &foreign), Err(Misuse::NotInRevision { .. })));
    let mut closed = Session::modern(with_tasks(on_channel()));
    closed.core.handle_closed();
    let refused = closed.core.resume_task(closed.now, &StoredTask::new("t"), &CallOptions::default());
    assert_eq!(refused, Err(Misuse::Closed));
}

/// protocol:TX-10
#[test]
fn input_may_be_needed_before_there_is_a_task() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let (call, request) = session.ask("tools/call", &json!({"name": "t"}));
    let required =
        json!({"resultType": "input_required", "inputRequests": {"k": form()}, "requestState": "s"});
    session.answer(&request["id"], &required);
    let question = session.questions().remove(0);
    session.give(&question, accept());
    let retry = session.only_sent();
    assert_eq!(retry["params"]["requestState"], "s");
    session.answer(&retry["id"], &created());
    session.update(call);
    let poll = session.poll_after(2000);
    assert!(poll["params"].get("requestState").is_none() && poll["params"].get("inputResponses").is_none());
    // The key of the round before is another one than the task's.
    session.answer(&poll["id"], &wants(&json!({"k": form()})));
    assert!(matches!(session.events().pop(), Some(Event::ServerRequest(_))));
    let (_, other) = session.ask("tools/list", &json!({}));
    session.answer(&other["id"], &raw(&json!({"tools": []})).parse::<Value>().unwrap());
    assert!(matches!(session.only_event(), Event::CallEnded { outcome: Ok(_), .. }));
}

/// protocol:L-18, protocol:J-32, protocol:TX-09: an opted-out call sends fewer capabilities, in its retries too, and every
/// other one sends them all.
#[test]
fn a_call_that_declines_tasks_declares_none_and_takes_none() {
    let mut session = Session::modern(with_tasks(on_exchanges()));
    let mut options = CallOptions::default();
    options.task.declined = true;
    let params = json!({"name": "t", "arguments": {}});
    let declared =
        |request: &Value| request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    let level =
        session.core.call(session.now, "logging/setLevel", Some(&raw(&json!({"level": "debug"}))), &options);
    session.outcome(level.unwrap()).unwrap();
    let (call, request) = session.ask_with("tools/call", &params, &options);
    assert_eq!(declared(&request), json!({"elicitation": {"form": {}, "url": {}}}));
    assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "debug");
    session.answer(&request["id"], &json!({"resultType": "input_required", "requestState": "s"}));
    session.advance(Duration::from_millis(50));
    let retry = session.only_sent();
    assert!(declared(&retry).get("extensions").is_none());
    session.answer(&retry["id"], &created());
    assert!(matches!(session.failure(call), CallError::InvalidResult { .. }));
    session.assert_idle();
    let (_, request) = session.ask("tools/call", &params);
    assert_eq!(declared(&request)["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
}
