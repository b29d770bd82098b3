//! URL elicitations: consent, completion, and what is remembered.

use std::time::Duration;

use serde_json::json;

use super::{ElicitationLimits, Key, ONE, Rig, url, url_at};
use crate::{ElicitResult, Misuse, RequestRules, Revision, Wait};

const ACCEPTED: &str = r#"{"action":"accept"}"#;

fn rig() -> Rig {
    Rig::new(ElicitationLimits::default())
}

fn wait(rig: &mut Rig, server: &'static str, id: &str) -> Wait {
    rig.machine.wait(rig.now, &server, id, None).unwrap()
}

// seed:B5 seed:S-48 seed:S-50
#[test]
fn consent_then_completion_is_reported_once_and_in_order() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "e1");
    rig.accept(question);
    assert_eq!(rig.replies(), [(ONE, ACCEPTED.to_owned())]);
    let Wait::Waiting(_) = wait(&mut rig, "srv", "e1") else { panic!("a wait") };
    let Wait::Waiting(_) = wait(&mut rig, "srv", "e1") else { panic!("a wait") };
    rig.complete(srv, "e1");
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "completed srv e1", "wait true", "wait true"]);
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(true));
    rig.assert_idle();
}

#[test]
fn a_completion_ends_the_waits_for_its_own_id_at_its_own_server() {
    let mut rig = rig();
    let (a, b) = (rig.connect("a"), rig.connect("b"));
    for (connection, key, id) in [(a, ONE, "e1"), (a, Key::Number(2), "e2"), (b, ONE, "e1")] {
        let question = rig.ask_url(connection, key, id);
        rig.accept(question);
        rig.events();
    }
    let Wait::Waiting(meant) = wait(&mut rig, "a", "e1") else { panic!("a wait") };
    for (server, id) in [("a", "e2"), ("b", "e1")] {
        let Wait::Waiting(_) = wait(&mut rig, server, id) else { panic!("a wait") };
    }
    rig.complete(a, "e1");
    let ended = std::iter::from_fn(|| rig.machine.poll_event()).filter_map(|event| match event {
        crate::Event::WaitEnded { waiter, completed } => Some((waiter, completed)),
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), [(meant, true)]);
    assert_eq!(rig.machine.waiters(), 2);
}

// seed:B8 seed:S-47 seed:S-50
#[test]
fn a_completion_before_consent_counts_after_accept() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "e1");
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), Vec::<String>::new());
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(false));
    rig.accept(question);
    assert_eq!(rig.events(), ["ended srv Answered(Accept)", "completed srv e1"]);
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), Vec::<String>::new());
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(true));
}

// seed:B8 seed:S-47
#[test]
fn a_completion_before_consent_is_dropped_by_decline_and_every_other_end() {
    type End = fn(&mut Rig, crate::QuestionId, crate::ConnectionId);
    let ends: [End; 6] = [
        |rig, question, _| rig.machine.answer(rig.now, question, ElicitResult::decline()).unwrap(),
        |rig, question, _| rig.machine.answer(rig.now, question, ElicitResult::cancel()).unwrap(),
        |rig, question, _| rig.machine.no_host(rig.now, question).unwrap(),
        |rig, question, _| rig.machine.fail(rig.now, question).unwrap(),
        |rig, _, _| rig.pass(Duration::from_secs(180)),
        |rig, _, connection| rig.machine.handle_cancelled(rig.now, connection, &ONE),
    ];
    for end in ends {
        let mut rig = rig();
        let srv = rig.connect("srv");
        let question = rig.ask_url(srv, ONE, "e1");
        rig.complete(srv, "e1");
        end(&mut rig, question, srv);
        rig.complete(srv, "e1");
        assert!(!rig.events().iter().any(|event| event.starts_with("completed")));
        assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(false));
        rig.replies();
        rig.assert_idle();
    }
}

#[test]
fn a_notice_counts_up_to_the_length_that_params_may_have() {
    let notice = json!({"elicitationId": "e1"}).to_string();
    let mut rules = RequestRules::new(Revision::V2025_11_25);
    rules.limits.max_params_bytes = notice.len() + 100;
    for (more, counts) in [(101, false), (100, true)] {
        let mut rig = rig();
        let srv = rig.machine.open_connection("srv", rules.clone());
        rig.machine.handle_parsed(
            rig.now,
            srv,
            ONE,
            crate::ElicitRequest::parse(&url("e1"), Revision::V2025_11_25).unwrap(),
        );
        let question = rig.asked();
        rig.accept(question);
        rig.events();
        rig.machine.handle_complete(rig.now, srv, &format!("{notice}{}", " ".repeat(more)));
        assert_eq!(rig.events().len(), usize::from(counts), "{more}");
    }
}

// seed:B9 seed:S-49 protocol:E-19
#[test]
fn completions_of_unknown_or_foreign_ids_are_ignored() {
    let mut rig = rig();
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    let question = rig.ask_url(srv, ONE, "e1");
    rig.accept(question);
    rig.events();
    rig.complete(srv, "e2");
    rig.complete(other, "e1");
    for params in ["", "{}", "[]", r#"{"elicitationId":1}"#, r#"{"elicitationId":null}"#] {
        rig.machine.handle_complete(rig.now, srv, params);
    }
    rig.machine.handle_complete(
        rig.now,
        srv,
        &format!("{}{}", r#"{"elicitationId":"e1"}"#, " ".repeat(300_000)),
    );
    assert_eq!(rig.events(), Vec::<String>::new());
    // A second connection to the same server may bring it.
    let again = rig.connect("srv");
    rig.complete(again, "e1");
    assert_eq!(rig.events(), ["completed srv e1"]);
}

// seed:E23 seed:S-44
#[test]
fn two_servers_may_use_the_same_id() {
    let mut rig = rig();
    let (a, b) = (rig.connect("a"), rig.connect("b"));
    let first = rig.ask_url(a, ONE, "e1");
    let second = rig.ask_url(b, ONE, "e1");
    rig.accept(first);
    rig.accept(second);
    rig.events();
    rig.complete(b, "e1");
    assert_eq!(rig.events(), ["completed b e1"]);
    assert!(matches!(wait(&mut rig, "a", "e1"), Wait::Waiting(_)));
}

// seed:S-45
#[test]
fn the_same_id_with_another_url_is_refused() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "e1");
    let other = url_at("e1", "https://evil.example/");
    rig.request(srv, Key::Number(2), &other);
    rig.accept(question);
    rig.request(srv, Key::Number(3), &other);
    let replies = rig.replies();
    let text = "-32602 the elicitation id was used with another url";
    assert_eq!(replies[0], (Key::Number(2), text.to_owned()));
    assert_eq!(replies[2], (Key::Number(3), text.to_owned()));
    assert_eq!(rig.machine.open_questions(), 0);
}

// seed:B13 seed:S-46
#[test]
fn an_id_that_ended_can_never_be_asked_again() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let done = rig.ask_url(srv, Key::Number(1), "done");
    rig.accept(done);
    rig.complete(srv, "done");
    let declined = {
        rig.events();
        rig.ask_url(srv, Key::Number(2), "declined")
    };
    rig.machine.answer(rig.now, declined, ElicitResult::decline()).unwrap();
    rig.events();
    rig.replies();
    for id in ["done", "declined"] {
        rig.request(srv, Key::Number(3), &url(id));
        rig.request(srv, Key::Number(3), &url_at(id, "https://other.example/"));
        let text = "-32602 the elicitation id was used before".to_owned();
        assert_eq!(rig.replies(), [(Key::Number(3), text.clone()), (Key::Number(3), text)]);
        assert_eq!(rig.events().len(), 2);
        rig.complete(srv, id);
        assert_eq!(rig.events(), Vec::<String>::new());
    }
    rig.assert_idle();
}

#[test]
fn an_accepted_id_may_be_asked_again_but_not_while_it_is_open() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let first = rig.ask_url(srv, Key::Number(1), "e1");
    rig.request(srv, Key::Number(2), &url("e1"));
    assert_eq!(
        rig.replies(),
        [(Key::Number(2), "-32602 a question with this elicitation id is open".to_owned())]
    );
    rig.accept(first);
    rig.events();
    let second = rig.ask_url(srv, Key::Number(3), "e1");
    assert_eq!(rig.machine.remembered_urls(&"srv"), 1);
    // The first consent stands while the second question is open.
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), ["completed srv e1"]);
    rig.machine.answer(rig.now, second, ElicitResult::decline()).unwrap();
    assert_eq!(rig.events(), ["ended srv Answered(Decline)"]);
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(true));
}

#[test]
fn a_second_question_that_is_declined_takes_the_consent_back() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    let first = rig.ask_url(srv, Key::Number(1), "e1");
    rig.accept(first);
    let Wait::Waiting(_) = wait(&mut rig, "srv", "e1") else { panic!("a wait") };
    rig.events();
    let second = rig.ask_url(srv, Key::Number(2), "e1");
    rig.machine.answer(rig.now, second, ElicitResult::decline()).unwrap();
    assert_eq!(rig.events(), ["ended srv Answered(Decline)", "wait false"]);
    rig.complete(srv, "e1");
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(false));
}

// seed:S-51
#[test]
fn waiting_is_for_accepted_ids_only_and_ends_in_time() {
    let mut rig = rig();
    let srv = rig.connect("srv");
    assert_eq!(wait(&mut rig, "nobody", "e1"), Wait::Done(false));
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(false));
    let question = rig.ask_url(srv, ONE, "e1");
    assert_eq!(wait(&mut rig, "srv", "e1"), Wait::Done(false));
    rig.accept(question);
    rig.events();
    let short = rig.machine.wait(rig.now, &"srv", "e1", Some(Duration::from_secs(5))).unwrap();
    assert!(matches!(short, Wait::Waiting(_)));
    let forever = rig.machine.wait(rig.now, &"srv", "e1", Some(Duration::MAX)).unwrap();
    assert!(matches!(forever, Wait::Waiting(_)));
    rig.pass(Duration::from_secs(5));
    assert_eq!(rig.events(), ["wait false"]);
    // The elicitation is accepted still.
    rig.complete(srv, "e1");
    assert_eq!(rig.events(), ["completed srv e1", "wait true"]);
}

// seed:B17
#[test]
fn a_lost_connection_releases_the_waiters_of_its_ids_and_no_others() {
    let mut rig = rig();
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    for (connection, server) in [(srv, "srv"), (other, "other")] {
        let question = rig.ask_url(connection, ONE, "e1");
        rig.accept(question);
        rig.events();
        assert!(matches!(wait(&mut rig, server, "e1"), Wait::Waiting(_)));
    }
    rig.machine.handle_connection_lost(rig.now, srv);
    assert_eq!(rig.events(), ["wait false"]);
    assert_eq!(rig.machine.waiters(), 1);
    let again = rig.connect("srv");
    rig.request(again, ONE, &url("e1"));
    assert_eq!(rig.events(), ["refused srv the elicitation id was used before"]);
    rig.complete(again, "e1");
    assert_eq!(rig.events(), Vec::<String>::new());
}

// seed:S-06
#[test]
fn the_history_is_full_at_its_limit_and_forgets_nothing() {
    let mut limits = ElicitationLimits::default();
    limits.max_remembered_urls = 3;
    let mut rig = Rig::new(limits);
    let (srv, other) = (rig.connect("srv"), rig.connect("other"));
    for id in ["a", "b", "c"] {
        let question = rig.ask_url(srv, ONE, id);
        rig.accept(question);
        rig.complete(srv, id);
        rig.events();
    }
    rig.replies();
    rig.request(srv, ONE, &url("d"));
    assert_eq!(rig.events(), ["deferred srv history_full"]);
    assert_eq!(rig.replies(), [(ONE, r#"{"action":"decline"}"#.to_owned())]);
    rig.request(srv, ONE, &url("a"));
    assert_eq!(rig.events(), ["refused srv the elicitation id was used before"]);
    rig.ask_url(other, ONE, "d");
    assert_eq!(rig.machine.remembered_urls(&"srv"), 3);
    assert_eq!(rig.machine.forget_server(&"srv"), Err(Misuse::ConnectionsOpen));
    rig.machine.handle_connection_lost(rig.now, srv);
    rig.machine.forget_server(&"srv").unwrap();
    assert_eq!(rig.machine.remembered_urls(&"srv"), 0);
    let srv = rig.connect("srv");
    rig.events();
    rig.ask_url(srv, ONE, "d");
}

#[test]
fn a_server_without_connections_and_without_ids_to_remember_takes_no_memory() {
    let mut rig = Rig::new(ElicitationLimits::default());
    for server in ["a", "b", "c"] {
        let connection = rig.connect(server);
        rig.ask(connection, ONE);
        rig.machine.handle_connection_lost(rig.now, connection);
        rig.events();
    }
    assert_eq!(rig.machine.servers.len(), 0);

    let (first, second) = (rig.connect("srv"), rig.connect("srv"));
    let question = rig.ask(second, ONE);
    rig.machine.handle_connection_lost(rig.now, first);
    rig.events();
    assert_eq!(rig.machine.open_questions_of(&"srv"), 1, "another connection goes on");
    rig.accept(question);
    rig.events();
    rig.ask_url(second, ONE, "e1");
    rig.machine.handle_connection_lost(rig.now, second);
    assert_eq!(rig.machine.remembered_urls(&"srv"), 1, "an id that ended cannot be asked again");
    let again = rig.connect("srv");
    rig.events();
    rig.request(again, ONE, &url("e1"));
    assert_eq!(rig.events(), ["refused srv the elicitation id was used before"]);
}

#[test]
fn a_wait_that_is_given_up_gives_its_place_back() {
    let mut limits = ElicitationLimits::default();
    limits.max_waiters = 1;
    let mut rig = Rig::new(limits);
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "e1");
    rig.accept(question);
    rig.events();
    for _ in 0..2 {
        let Wait::Waiting(waiter) = wait(&mut rig, "srv", "e1") else { panic!("a wait") };
        rig.machine.stop_waiting(waiter);
        rig.machine.stop_waiting(waiter);
    }
    assert_eq!((rig.machine.waiters(), rig.events().len()), (0, 0));
}

#[test]
fn waiters_are_limited() {
    let mut limits = ElicitationLimits::default();
    limits.max_waiters = 2;
    let mut rig = Rig::new(limits);
    let srv = rig.connect("srv");
    let question = rig.ask_url(srv, ONE, "e1");
    rig.accept(question);
    for _ in 0..2 {
        assert!(matches!(wait(&mut rig, "srv", "e1"), Wait::Waiting(_)));
    }
    let refused = rig.machine.wait(rig.now, &"srv", "e1", None);
    assert_eq!(refused, Err(Misuse::TooManyWaiters { limit: 2 }));
}

// protocol:5.1
#[test]
fn urls_without_id_are_asked_and_not_remembered() {
    let mut rig = rig();
    let modern = rig.machine.open_connection("srv", RequestRules::new(Revision::V2026_07_28));
    let params = r#"{"mode": "url", "message": "m", "url": "https://example.com/"}"#;
    for key in [1, 2] {
        rig.request(modern, Key::Number(key), params);
        let question = rig.asked();
        rig.accept(question);
        assert_eq!(rig.replies(), [(Key::Number(key), ACCEPTED.to_owned())]);
        rig.events();
    }
    assert_eq!(rig.machine.remembered_urls(&"srv"), 0);
    rig.assert_idle();
}
