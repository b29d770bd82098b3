//! What a server is asked for good manners when something was given up: nobody waits for the answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::Session;
use super::modern::on_channel;
use super::tasks::{created, with_tasks};
use crate::{CallError, CallId, CallOptions, TaskOptions};

const QUIET: Duration = Duration::from_secs(600);

/// A subscription to one resource that a legacy server has granted.
fn subscription() -> (Session, CallId) {
    let mut session = Session::ready();
    let (call, request) = session.listen(&json!({"resourceSubscriptions": ["a"]}));
    session.answer(&request["id"], &json!({}));
    session.subscribed(call);
    (session, call)
}

fn gives_up_task(session: &mut Session) -> CallId {
    let task = TaskOptions { cancel_abandoned: true, ..TaskOptions::default() };
    session.task_call_with(&created(), &CallOptions { task, ..CallOptions::default() })
}

/// The request that was sent for manners is waited for as long as any other, however long it was quiet before.
fn has_its_whole_time(session: &mut Session, method: &str) -> Value {
    let asked = session.only_sent();
    assert_eq!(asked["method"], method);
    session.advance(Duration::from_secs(59));
    assert_eq!(session.sent(), Vec::<Value>::new());
    assert!(session.events().is_empty());
    asked
}

/// auth:G-13
#[test]
fn a_subscription_that_is_given_up_after_a_quiet_stretch_is_given_up_in_peace() {
    let (mut session, call) = subscription();
    session.now += QUIET;
    session.core.cancel(session.now, call, None);
    assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
    let asked = has_its_whole_time(&mut session, "resources/unsubscribe");
    session.answer(&asked["id"], &json!({}));
    session.assert_idle();
}

/// It is no setup that a new session refused, and nobody waits for it: the answer is no matter, nor is one that never comes.
#[test]
fn what_comes_of_a_courtesy_is_no_matter() {
    for answered in [true, false] {
        let (mut session, call) = subscription();
        session.core.cancel(session.now, call, None);
        session.failure(call);
        let asked = session.only_sent();
        if answered {
            session.refuse_modern(&asked, -32601, &json!(null));
        } else {
            session.seconds(60);
            assert_eq!(session.only_sent()["method"], "notifications/cancelled");
        }
        assert!(session.events().is_empty());
        session.assert_idle();
    }
}

/// protocol:TX-05
#[test]
fn a_task_that_is_given_up_after_a_quiet_stretch_is_given_up_in_peace() {
    let mut session = Session::modern(with_tasks(on_channel()));
    let call = gives_up_task(&mut session);
    session.now += Duration::from_secs(61);
    session.core.cancel(session.now, call, None);
    assert!(matches!(session.failure(call), CallError::Cancelled { .. }));
    let asked = has_its_whole_time(&mut session, "tasks/cancel");
    session.answer(&asked["id"], &json!({}));
    session.assert_idle();
}
