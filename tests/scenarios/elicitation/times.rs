//! How long questions stay open, and how they end when nobody answers.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::{
    AnyElicitationHandler, ClientEvent, Desk, DeskConfig, ElicitReply, ElicitRequest, ElicitResult,
    ElicitationContext, ElicitationHandler, ElicitationLimits, End, ErrorKind,
};
use serde_json::json;
use tokio::time::Instant;

use super::support::*;

/// How long the peer waits for the `cancel` of its question.
async fn cancelled_after(peer: &mut Peer) -> Duration {
    let begun = Instant::now();
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    begun.elapsed()
}

struct Patient(Duration);

impl ElicitationHandler for Patient {
    async fn elicit(&self, request: ElicitRequest, context: ElicitationContext) -> ElicitReply {
        never(request, context).await.into()
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.0)
    }
}

/// seed:B16, seed:S-05, seed:S-37, seed:E22, seed:E27: 180 s unless the desk, the connection or the handler says otherwise;
/// the nearest counts, and a time beyond what a timer of 32 bits can hold is no short one.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_question_is_the_handlers_else_the_connections_else_the_desks() {
    let day = 24 * 3600 * SECOND;
    let limits = ElicitationLimits::default().question_timeout(50 * SECOND);
    let desk = || DeskConfig::default().limits(limits.clone());
    let hung = || AnyElicitationHandler::new(never);
    for (builder, expected) in [
        (builder().on_elicitation(never), 180 * SECOND),
        (builder().on_elicitation(never).desk_config(desk()), 50 * SECOND),
        (
            builder().on_elicitation(never).desk_config(desk()).server_request_timeout(70 * SECOND),
            70 * SECOND,
        ),
        (builder().on_elicitation(Patient(20 * SECOND)).server_request_timeout(70 * SECOND), 20 * SECOND),
        (builder().on_elicitation(hung().with_timeout(300 * SECOND)).desk_config(desk()), 300 * SECOND),
        (builder().on_elicitation(Patient(26 * day)), 26 * day),
    ] {
        let (builder, events) = recorded(builder);
        let (client, mut peer) = connected(builder).await;
        assert_eq!(cancelled_after(&mut peer).await, expected);
        assert_eq!(told(&events), ["asked", "ended TimedOut"]);
        assert_idle(&client);
    }
}

/// Somebody is typing: the question stays open, by its name, by its value or by its handler, and is never shortened.
#[tokio::test(start_paused = true)]
async fn a_question_that_somebody_is_at_is_given_more_time() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    let begun = Instant::now();
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    let at = |seconds: u32| Some((begun + SECOND * seconds).into_std());
    assert_eq!(question.deadline(), at(180));
    assert_eq!(question.extend(60 * SECOND), Ok(at(180)), "not shortened");
    tokio::time::sleep(170 * SECOND).await;
    assert_eq!(question.extend(60 * SECOND), Ok(at(230)));
    assert_eq!(question.deadline(), at(230));
    tokio::time::sleep(55 * SECOND).await;
    assert_eq!(client.desk().extend(question.question(), 60 * SECOND), Ok(at(285)));
    tokio::time::sleep(55 * SECOND).await;
    question.respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    assert!(question.extend(SECOND).is_err() && client.desk().extend(question.question(), SECOND).is_err());
    // Nobody answers after all: it ends at the last time that was given.
    let begun = Instant::now();
    peer.send(form(2)).await;
    let question = questions.next().await.unwrap();
    question.extend(200 * SECOND).unwrap();
    assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    assert_eq!(begun.elapsed(), 200 * SECOND);
    // As long as ever: never.
    peer.send(form(3)).await;
    let question = questions.next().await.unwrap();
    assert_eq!(question.extend(Duration::MAX), Ok(None));
    assert_eq!((question.extend(SECOND), question.deadline()), (Ok(None), None));
    question.respond(named("Ada")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_more_time_while_its_user_types() {
    let typing = |_: ElicitRequest, context: ElicitationContext| async move {
        for _ in 0..10 {
            context.extend(60 * SECOND).unwrap();
            tokio::time::sleep(50 * SECOND).await;
        }
        named("Ada")
    };
    let (client, mut peer) = connected(builder().on_elicitation(typing)).await;
    let begun = Instant::now();
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    assert_eq!(begun.elapsed(), 500 * SECOND);
    assert_idle(&client);
}

/// seed:E21, seed:S-41: what the server takes back ends for whoever holds it, and gets no answer.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_is_taken_out_of_every_hand() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    peer.send(withdraw(1)).await;
    assert_eq!(question.ended().await, End::Withdrawn);
    assert!(question.respond(named("late")).is_err());
    drop(question);
    peer.expect_silence(SECOND).await;
    // One that was withdrawn before anybody took it is never seen.
    peer.send(form(2)).await;
    peer.send(withdraw(2)).await;
    peer.send(form(3)).await;
    let question = questions.next().await.unwrap();
    question.respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["id"], 3);
    assert_idle(&client);
}

/// seed:B17, seed:S-42, seed:S-43, seed:E31: the end of `srv` ends what is asked by `srv` and nothing of `srv:child`, and a
/// late answer reaches no newer connection.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_ends_its_questions_and_no_others() {
    let desk = Desk::default();
    let mut questions = desk.elicitations();
    let (events_builder, events) = recorded(builder());
    let (srv, mut peer) = connected(events_builder.desk(&desk, "srv")).await;
    let (_child, mut child) = connected(builder().desk(&desk, "srv:child")).await;
    peer.send(form(1)).await;
    let of_srv = questions.next().await.unwrap();
    peer.send(url("u", "e1")).await;
    let link = questions.next().await.unwrap();
    link.respond(ElicitResult::accept_url()).unwrap();
    assert_eq!(peer.receive().await["result"], json!({ "action": "accept" }));
    let waiting = tokio::spawn({
        let desk = desk.clone();
        async move { desk.completed("srv", "e1", Some(900 * SECOND)).await }
    });
    child.send(form(1)).await;
    let of_child = questions.next().await.unwrap();
    assert_eq!((of_srv.server(), of_child.server()), ("srv", "srv:child"));

    let begun = Instant::now();
    tokio::join!(srv.close(), async {
        peer.expect_end().await;
        drop(peer);
    });
    assert_eq!(of_srv.ended().await, End::ConnectionLost);
    assert!(!waiting.await.unwrap());
    assert!(begun.elapsed() < 20 * SECOND, "nothing waited for its time");
    assert_eq!(desk.open_questions().len(), 1);
    let last = events.lock().unwrap().last().cloned();
    assert!(
        matches!(last, Some(ClientEvent::Closed { .. })),
        "what ends is told before the end of the connection"
    );
    assert_eq!(told(&events).last().unwrap(), "ended ConnectionLost");

    let (_again, mut newer) = connected(builder().desk(&desk, "srv")).await;
    assert!(of_srv.respond(named("late")).is_err());
    newer.expect_silence(SECOND).await;
    of_child.respond(named("Ada")).unwrap();
    assert_eq!(child.receive().await["result"]["action"], "accept");
    assert!(desk.forget_server("srv").is_err(), "it is connected");
    assert!(desk.forget_server("nobody").is_ok());
}

/// seed:B17: a peer that dies is a connection that ends.
#[tokio::test(start_paused = true)]
async fn the_death_of_the_peer_ends_its_questions() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    drop(peer);
    assert_eq!(question.ended().await, End::ConnectionLost);
    assert_idle(&client);
}

/// field:FR-149: the user types for longer than the timeout of the call; then the call has what was left of its timeout,
/// and no more than that.
#[tokio::test(start_paused = true)]
async fn a_call_does_not_time_out_while_the_user_is_typing() {
    for answered in [true, false] {
        let (client, mut peer) = connected(builder().elicitation_stream()).await;
        let mut questions = client.elicitations();
        let call = tokio::spawn(client.call_tool("t", json!({})).timeout(SECOND).into_future());
        let request = peer.expect("tools/call").await;
        tokio::time::sleep(SECOND / 5).await;
        peer.send(form(1)).await;
        peer.send(form(2)).await;
        let (one, two) = (questions.next().await.unwrap(), questions.next().await.unwrap());
        tokio::time::sleep(3 * SECOND).await;
        one.respond(named("Ada")).unwrap();
        tokio::time::sleep(3 * SECOND).await;
        two.respond(named("Ada")).unwrap();
        peer.receive().await;
        peer.receive().await;
        let begun = Instant::now();
        if answered {
            tokio::time::sleep(SECOND / 5).await;
            peer.answer(&request, json!({ "content": [] })).await;
            call.await.unwrap().unwrap();
        } else {
            assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
            assert_eq!(begun.elapsed(), SECOND * 4 / 5);
        }
    }
}

/// field:FR-149: a maximum can be set.
#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_maximum_however_long_the_user_types() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    let call = client.call_tool("t", json!({})).timeout(SECOND).max_total(5 * SECOND);
    let begun = Instant::now();
    let call = tokio::spawn(call.into_future());
    peer.expect("tools/call").await;
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(begun.elapsed(), 5 * SECOND);
    drop(question);
}

/// Two runtimes of one thread share a desk, and one of them stands still.
#[test]
fn the_time_of_a_question_runs_on_the_runtime_of_its_connection() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (still, driven) = (runtime(), runtime());
    let desk = Desk::default();
    let first = still.block_on(async {
        let (client, mut peer) = connected(builder().desk(&desk, "still").on_elicitation(never)).await;
        peer.send(form(1)).await;
        while desk.open_questions().is_empty() {
            tokio::task::yield_now().await;
        }
        (client, peer)
    });
    driven.block_on(async {
        let soon = Duration::from_millis(20);
        let builder = builder().desk(&desk, "driven").on_elicitation(never).server_request_timeout(soon);
        let (client, mut peer) = connected(builder).await;
        // Nothing else happens on this runtime meanwhile.
        peer.send(form(1)).await;
        let answer = tokio::time::timeout(60 * SECOND, peer.receive()).await.expect("no clock runs");
        assert_eq!(answer["result"], json!({ "action": "cancel" }));
        assert_eq!(desk.open_questions().len(), 1, "the other one has its own time");
        drop(client);
    });
    still.block_on(async { drop(first) });
    assert_eq!(desk.open_questions().len(), 0);
}

/// seed:S-05: each handler has its own time from when it is asked, and what one said binds no other.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_handler_that_passed_does_not_bind_the_next() {
    let pass =
        || AnyElicitationHandler::new(|_: ElicitRequest, _: ElicitationContext| async { ElicitReply::Pass });
    let slow_pass = |_: ElicitRequest, _: ElicitationContext| async {
        tokio::time::sleep(4 * SECOND).await;
        ElicitReply::Pass
    };
    let hung = || AnyElicitationHandler::new(never);
    let short = || pass().with_timeout(5 * SECOND);
    let limits = ElicitationLimits::default().question_timeout(50 * SECOND);
    for (first, next, of_connection, expected) in [
        (short(), hung(), None, 50 * SECOND),
        (short(), hung(), Some(70 * SECOND), 70 * SECOND),
        (short(), hung().with_timeout(20 * SECOND), Some(70 * SECOND), 20 * SECOND),
        (pass().with_timeout(500 * SECOND), hung(), None, 50 * SECOND),
        (AnyElicitationHandler::new(slow_pass).with_timeout(5 * SECOND), hung(), None, 54 * SECOND),
        // Nobody said anything of his own: the question's time runs on.
        (AnyElicitationHandler::new(slow_pass), hung(), None, 50 * SECOND),
    ] {
        let desk = Desk::new(DeskConfig::default().limits(limits.clone()));
        desk.set_handler(next);
        let builder = builder().desk(&desk, "srv").on_elicitation(first);
        let builder = match of_connection {
            Some(time) => builder.server_request_timeout(time),
            None => builder,
        };
        let (_client, mut peer) = connected(builder).await;
        assert_eq!(cancelled_after(&mut peer).await, expected);
    }
}

/// A question that is put off keeps the time of its handler; one that is passed to a listener has the usual one again.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_handler_stays_with_what_it_puts_off() {
    for (reply, expected) in [(ElicitReply::Defer, 5 * SECOND), (ElicitReply::Pass, 180 * SECOND)] {
        let handler = move |_: ElicitRequest, _: ElicitationContext| {
            let reply = reply.clone();
            async move { reply }
        };
        let handler = AnyElicitationHandler::new(handler).with_timeout(5 * SECOND);
        let (client, mut peer) = connected(builder().on_elicitation(handler)).await;
        let _listening = client.elicitations();
        assert_eq!(cancelled_after(&mut peer).await, expected);
    }
}
