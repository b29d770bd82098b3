//! Questions as a stream, put off, and answered by name.

use std::sync::{Arc, Mutex};

use mcp_client::{Desk, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext, End, QuestionState};
use serde_json::json;

use super::support::*;

/// Questions that come before anybody listens wait, in order; the message and the server are there to be shown.
#[tokio::test(start_paused = true)]
async fn questions_wait_for_their_first_listener() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    peer.send(form(1)).await;
    peer.send(form(2)).await;
    settle().await;
    let mut questions = client.elicitations();
    let first = questions.next().await.unwrap();
    assert_eq!((first.request().message(), first.server(), first.key()), ("Who?", "a byte stream", None));
    assert!(first.deadline().is_some());
    let second = questions.next().await.unwrap();
    second.respond(named("B")).unwrap();
    first.respond(named("A")).unwrap();
    assert_eq!(
        [peer.receive().await["id"].clone(), peer.receive().await["id"].clone()],
        [json!(2), json!(1)]
    );
}

/// protocol:E-21: whoever drops a question has dismissed it.
#[tokio::test(start_paused = true)]
async fn a_dropped_question_is_a_cancel() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    for id in 0..2 {
        peer.send(form(id)).await;
        let question = questions.next().await.unwrap();
        if id == 0 {
            drop(question)
        } else {
            question.cancel()
        }
        assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    }
}

/// seed:S-38: answered from elsewhere, by name.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_let_go_is_answered_by_name() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let name = questions.next().await.unwrap().defer();
    peer.expect_silence(10 * SECOND).await;
    let open = client.desk().open_questions();
    assert_eq!((open[0].question, open[0].state), (name, QuestionState::Deferred));
    client.desk().respond(name, named("Ada")).unwrap();
    assert_eq!(peer.receive().await["result"]["content"]["name"], "Ada");
    assert!(client.desk().cancel(name).is_err());
}

/// A handler puts a question off: whoever took it answers; a listener takes what nobody took; nobody's time stands still.
#[tokio::test(start_paused = true)]
async fn a_question_that_a_handler_puts_off_is_answered_by_who_took_it() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let shelf = Arc::clone(&taken);
    let handler = move |_: ElicitRequest, context: ElicitationContext| {
        shelf.lock().unwrap().extend(context.take());
        async { ElicitReply::Defer }
    };
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.on_elicitation(handler)).await;
    peer.send(form(1)).await;
    peer.expect_silence(10 * SECOND).await;
    let question = taken.lock().unwrap().pop().unwrap();
    question.respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    assert_eq!(told(&events), ["asked", "put off", "ended Answered(Accept)"]);

    peer.send(form(2)).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    assert_eq!(begun.elapsed(), 180 * SECOND);
    let question = taken.lock().unwrap().pop().unwrap();
    assert_eq!(question.ended().await, End::TimedOut);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_handler_puts_off_goes_to_a_listener() {
    let handler = |_: ElicitRequest, _: ElicitationContext| async { ElicitReply::Defer };
    let (client, mut peer) = connected(builder().on_elicitation(handler)).await;
    let mut questions = client.desk().elicitations();
    peer.send(form(1)).await;
    questions.next().await.unwrap().respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["result"]["action"], "accept");
}

/// What a listener leaves untaken goes to the next one, and to nobody where there is none.
#[tokio::test(start_paused = true)]
async fn what_a_listener_leaves_goes_to_the_next() {
    let desk = Desk::default();
    let all = desk.elicitations();
    let mut later = desk.elicitations();
    let (client, mut peer) = connected(builder().desk(&desk, "s")).await;
    peer.send(form(1)).await;
    settle().await;
    drop(all);
    let question = later.next().await.unwrap();
    // A listener of the one client comes before those of all.
    let mut own = client.elicitations();
    peer.send(form(2)).await;
    own.next().await.unwrap().respond(named("own")).unwrap();
    assert_eq!(peer.receive().await["result"]["content"]["name"], "own");
    question.respond(named("later")).unwrap();
    assert_eq!(peer.receive().await["id"], 1);
    drop(own);
    peer.send(form(3)).await;
    settle().await;
    drop(later);
    assert_eq!(peer.receive().await["result"], json!({ "action": "decline" }));
    assert_eq!(desk.open_questions().len(), 0);
}

/// seed:E18, field:FR-148: the handler of a question calls the same server while the outer call waits, and the ids of both
/// directions are the same.
#[tokio::test(start_paused = true)]
async fn a_handler_may_call_the_server_that_asks() {
    let slot: Arc<Mutex<Option<mcp_client::Client>>> = Arc::default();
    let reach = Arc::clone(&slot);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        let client = reach.lock().unwrap().clone().unwrap();
        async move {
            client.call_tool("inner", json!({})).await.unwrap();
            named("Ada")
        }
    };
    let (client, mut peer) = connected(builder().on_elicitation(handler)).await;
    *slot.lock().unwrap() = Some(client.clone());
    let outer = call_tool(&client, "outer");
    let call = peer.expect("tools/call").await;
    peer.send(form(call["id"].clone())).await;
    let inner = peer.expect("tools/call").await;
    assert_eq!(inner["params"]["name"], "inner");
    peer.answer(&inner, json!({ "content": [] })).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["action"]), (&call["id"], &json!("accept")));
    peer.answer(&call, json!({ "content": [] })).await;
    outer.await.unwrap().unwrap();
    slot.lock().unwrap().take();
}

/// A handler passes a question on, from the key's to the connection's to the desk's.
#[tokio::test(start_paused = true)]
async fn a_question_is_passed_on_to_the_next_handler() {
    let pass = |_: ElicitRequest, _: ElicitationContext| async { ElicitReply::Pass };
    let desk = Desk::default();
    desk.set_handler(|_: ElicitRequest, context: ElicitationContext| async move {
        assert_eq!(context.key.as_deref(), Some("turn"));
        ElicitResult::accept(named("desk").content.unwrap())
    });
    let (client, mut peer) = connected(builder().on_elicitation(pass).desk(&desk, "s")).await;
    let _route = client.route_elicitations("turn", pass);
    let call =
        tokio::spawn(IntoFuture::into_future(client.call_tool("t", json!({})).elicitation_key("turn")));
    let request = peer.expect("tools/call").await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["content"]["name"], "desk");
    peer.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
}

/// The stream of one client ends with its connection, whoever ends that and whether somebody waits or not; that of a desk
/// goes on.
#[tokio::test(start_paused = true)]
async fn the_stream_of_a_client_ends_with_its_connection() {
    // The server leaves while the application waits.
    let desk = Desk::default();
    let (client, peer) = connected(builder().elicitation_stream().desk(&desk, "s")).await;
    let mut questions = client.elicitations();
    let mut all = desk.elicitations();
    let waiting = tokio::spawn(async move { questions.next().await.is_none() });
    settle().await;
    drop(peer);
    assert!(waiting.await.unwrap());
    assert!(client.elicitations().next().await.is_none(), "a later one as well");
    assert!(tokio::time::timeout(SECOND, all.next()).await.is_err(), "other servers may come");

    // The application closes, and a question that it has not taken goes with it.
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    settle().await;
    client.close().await;
    assert!(questions.next().await.is_none());

    // The last handle is dropped.
    let (client, _peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    drop(client);
    assert!(questions.next().await.is_none());
}
