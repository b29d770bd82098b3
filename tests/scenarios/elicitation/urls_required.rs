//! Error -32042: consent, completion, one retry.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use mcp_client::{Client, ClientEvent, ElicitResult, ElicitationEvent, ErrorKind};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::*;

/// A client of a server with tools, prompts and resources.
async fn connect(builder: mcp_client::ClientBuilder) -> (Client, Peer) {
    let (connection, mut peer) = pipe(1 << 20);
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {} });
    let (client, _) = tokio::join!(builder.connect(connection), peer.handshake(capabilities));
    (client.unwrap(), peer)
}

/// The three requests that a server may refuse so.
fn calls(client: &Client) -> Vec<(&'static str, JoinHandle<Result<Value, mcp_client::Error>>)> {
    let json = |raw: mcp_client::RawJson| serde_json::from_str(raw.as_str()).unwrap();
    let tool = client.call_tool("t", json!({ "x": 1 })).raw().into_future();
    let prompt = client.get_prompt("p", [("x", "1")]).raw().into_future();
    let resource = client.read_resource("file:///x").raw().into_future();
    vec![
        ("tools/call", tokio::spawn(async move { tool.await.map(json) })),
        ("prompts/get", tokio::spawn(async move { prompt.await.map(json) })),
        ("resources/read", tokio::spawn(async move { resource.await.map(json) })),
    ]
}

/// seed:B10, seed:E25, seed:S-53, seed:S-55, seed:S-56, seed:S-57, seed:S-58, seed:S-61, protocol:E-20, field:FR-143: each
/// of the three is asked for its URLs one after another, waits for their completion and is made once more under a new id.
#[tokio::test(start_paused = true)]
async fn each_kind_of_call_is_made_once_more_when_all_its_urls_are_done() {
    let (builder, asked) = consenting();
    let (builder, events) = recorded(builder);
    let (client, mut peer) = connect(builder).await;
    let calls = calls(&client);
    let mut refused = Vec::new();
    for (at, (method, _)) in calls.iter().enumerate() {
        let call = peer.expect(method).await;
        let entries = vec![url_params(&format!("{at}-a")), url_params(&format!("{at}-b"))];
        peer.send(required(&call, &entries)).await;
        refused.push(call);
    }
    peer.expect_silence(10 * SECOND).await;
    let asked = asked.lock().unwrap().clone();
    for at in 0..3 {
        let of_call: Vec<_> = asked.iter().filter(|id| id.starts_with(&at.to_string())).collect();
        assert_eq!(of_call, [&format!("{at}-a"), &format!("{at}-b")]);
    }
    assert_eq!(client.desk().waiting_calls().len(), 3);
    for (at, (method, outcome)) in calls.into_iter().enumerate() {
        peer.send(complete(&format!("{at}-b"))).await;
        peer.expect_silence(SECOND).await;
        peer.send(complete(&format!("{at}-a"))).await;
        let retry = peer.expect(method).await;
        assert_ne!(retry["id"], refused[at]["id"]);
        assert_eq!(retry["params"], refused[at]["params"]);
        peer.answer(&retry, json!({ "at": at })).await;
        assert_eq!(outcome.await.unwrap().unwrap()["at"], at);
    }
    peer.expect_silence(SECOND).await;
    assert!(told(&events).contains(&"call Retry".to_owned()));
    assert_idle(&client);
}

/// seed:B12: a second -32042 surfaces, with its list.
#[tokio::test(start_paused = true)]
async fn a_second_refusal_surfaces() {
    let (builder, asked) = consenting();
    let (client, mut peer) = connect(builder).await;
    let outcome = call_tool(&client, "t");
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("a")])).await;
    settle().await;
    peer.send(complete("a")).await;
    let retry = peer.expect("tools/call").await;
    peer.send(required(&retry, &[url_params("b")])).await;
    let error = outcome.await.unwrap().unwrap_err();
    let object = error.error_object().unwrap();
    assert_eq!((error.kind(), object.code.get()), (ErrorKind::Rpc, -32042));
    assert!(object.data.as_ref().unwrap().as_str().contains("/b"));
    peer.expect_silence(SECOND).await;
    assert_eq!(*asked.lock().unwrap(), ["a"]);
    assert_idle(&client);
}

/// seed:B11, seed:S-54, seed:S-07, seed:S-60: one fault refuses the whole list; nothing of it is shown, and the original
/// error surfaces.
#[tokio::test(start_paused = true)]
async fn a_list_with_a_fault_is_shown_to_nobody() {
    let changed = |member: &str, value: Value| {
        let mut entry = url_params("b");
        entry[member] = value;
        vec![url_params("a"), entry]
    };
    let form = empty_form();
    let lists = [
        vec![],
        (0..17).map(|n| url_params(&n.to_string())).collect(),
        vec![url_params("a"), url_params("a")],
        vec![url_params("a"), form],
        changed("mode", json!("form")),
        changed("url", json!("http://example.com/b")),
        changed("url", json!("javascript:alert(1)")),
        changed("message", json!("m\u{1b}[2J")),
        changed("elicitationId", json!("b\u{7}")),
        changed("elicitationId", json!(7)),
    ];
    let (builder, asked) = consenting();
    let (client, mut peer) = connect(builder).await;
    for entries in lists {
        let outcome = call_tool(&client, "t");
        let call = peer.expect("tools/call").await;
        peer.send(required(&call, &entries)).await;
        let error = outcome.await.unwrap().unwrap_err();
        let object = error.error_object().unwrap();
        assert_eq!((object.code.get(), object.message.as_str()), (-32042, "first this"));
    }
    // No data, and data that are something else.
    for data in [json!(null), json!({}), json!({ "elicitations": "all" }), json!([])] {
        let outcome = call_tool(&client, "t");
        let call = peer.expect("tools/call").await;
        let error = json!({ "code": -32042, "message": "first this", "data": data });
        peer.send(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })).await;
        assert_eq!(outcome.await.unwrap().unwrap_err().kind(), ErrorKind::Rpc);
    }
    assert!(asked.lock().unwrap().is_empty());
    assert_idle(&client);
}

/// seed:B13, seed:S-46: an id that was used and completed authorises no other retry.
#[tokio::test(start_paused = true)]
async fn a_finished_id_authorises_no_second_retry() {
    let (builder, asked) = consenting();
    let (client, mut peer) = connect(builder).await;
    for round in 0..2 {
        let outcome = call_tool(&client, "t");
        let call = peer.expect("tools/call").await;
        peer.send(required(&call, &[url_params("a")])).await;
        settle().await;
        if round == 0 {
            peer.send(complete("a")).await;
            let retry = peer.expect("tools/call").await;
            peer.answer(&retry, json!({ "content": [] })).await;
            outcome.await.unwrap().unwrap();
        } else {
            assert_eq!(outcome.await.unwrap().unwrap_err().error_object().unwrap().code.get(), -32042);
        }
    }
    peer.expect_silence(SECOND).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}

/// seed:S-56: the first answer other than consent ends it; later ones are never shown.
#[tokio::test(start_paused = true)]
async fn without_consent_the_original_error_surfaces() {
    for answer in [ElicitResult::decline(), ElicitResult::cancel()] {
        let (client, mut peer) = connect(builder().elicitation_stream()).await;
        let mut questions = client.elicitations();
        let outcome = call_tool(&client, "t");
        let call = peer.expect("tools/call").await;
        peer.send(required(&call, &[url_params("a"), url_params("b")])).await;
        let question = questions.next().await.unwrap();
        assert_eq!(client.desk().open_questions().len(), 1);
        question.respond(answer).unwrap();
        assert_eq!(outcome.await.unwrap().unwrap_err().error_object().unwrap().code.get(), -32042);
        peer.expect_silence(SECOND).await;
        assert_idle(&client);
    }
}

/// A listener that ends the next question while it hears of the end of the one before hears first that it was asked.
#[tokio::test(start_paused = true)]
async fn no_question_is_told_to_end_before_it_is_told_to_be_asked() {
    let desk = mcp_client::Desk::default();
    let events = Arc::new(Mutex::new(Vec::new()));
    let (record, of) = (Arc::clone(&events), desk.clone());
    let listener = move |event: ClientEvent| {
        let is_end = matches!(event, ClientEvent::Elicitation(ElicitationEvent::Ended { .. }));
        for open in of.open_questions().iter().filter(|_| is_end) {
            of.cancel(open.question).unwrap();
        }
        record.lock().unwrap().push(event);
    };
    let (client, mut peer) =
        connect(builder().on_elicitation(accept).desk(&desk, "a").on_event(listener)).await;
    let outcome = call_tool(&client, "t");
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("a"), url_params("b")])).await;
    assert_eq!(outcome.await.unwrap().unwrap_err().kind(), ErrorKind::Rpc);
    settle().await;
    let expected = ["asked", "ended Answered(Accept)", "asked", "ended Answered(Cancel)", "call Cancelled"];
    assert_eq!(told(&events), expected);
    assert_idle(&client);
}

/// seed:S-57, seed:S-51: no completion within the desk's time: the original error surfaces. Meanwhile the call's own
/// timeout stands still.
#[tokio::test(start_paused = true)]
async fn without_completion_the_original_error_surfaces_in_time() {
    let (builder, _) = consenting();
    let (client, mut peer) = connect(builder).await;
    let begun = tokio::time::Instant::now();
    let outcome = tokio::spawn(client.call_tool("t", json!({})).timeout(10 * SECOND).raw().into_future());
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("a")])).await;
    assert_eq!(outcome.await.unwrap().unwrap_err().error_object().unwrap().code.get(), -32042);
    assert_eq!(begun.elapsed(), 180 * SECOND);
    assert_idle(&client);
}

/// seed:S-59: a connection that fails on the second request leaves it open what became of the call, as on the first.
#[tokio::test(start_paused = true)]
async fn a_second_request_that_gets_no_answer_has_an_unknown_outcome() {
    let (builder, _) = consenting();
    let (client, mut peer) = connect(builder).await;
    let outcome = call_tool(&client, "t");
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("a")])).await;
    settle().await;
    peer.send(complete("a")).await;
    peer.expect("tools/call").await;
    drop(peer);
    let error = outcome.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Closed, true));
    assert_idle(&client);
}

/// seed:S-62, protocol:E-18: the person says "continue", or "give up".
#[tokio::test(start_paused = true)]
async fn the_person_continues_or_gives_up() {
    let (builder, _) = consenting();
    let (builder, events) = recorded(builder);
    let (client, mut peer) = connect(builder).await;
    for go_on in [true, false] {
        let outcome = call_tool(&client, "t");
        let call = peer.expect("tools/call").await;
        peer.send(required(&call, &[url_params(if go_on { "a" } else { "b" })])).await;
        settle().await;
        assert!(told(&events).contains(&"call waits".to_owned()));
        let wait = client.desk().waiting_calls()[0].wait;
        if go_on {
            client.desk().continue_call(wait).unwrap();
            let retry = peer.expect("tools/call").await;
            peer.answer(&retry, json!({ "content": [] })).await;
            outcome.await.unwrap().unwrap();
        } else {
            client.desk().give_up_call(wait).unwrap();
            assert_eq!(outcome.await.unwrap().unwrap_err().kind(), ErrorKind::Rpc);
        }
        assert!(client.desk().continue_call(wait).is_err());
    }
}

/// seed:S-63: a dropped call, one whose whole time is up, and one whose connection ends leave nothing behind.
#[tokio::test(start_paused = true)]
async fn a_call_that_ends_otherwise_takes_its_questions_along() {
    let (client, mut peer) = connect(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    let outcome = call_tool(&client, "t");
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("a")])).await;
    let question = questions.next().await.unwrap();
    outcome.abort();
    assert_eq!(question.ended().await, mcp_client::End::FlowEnded);
    assert_idle(&client);
    peer.expect_silence(SECOND).await;

    let call = client.call_tool("t", json!({})).timeout(5 * SECOND).reset_on_progress(20 * SECOND);
    let outcome = tokio::spawn(call.raw().into_future());
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("b")])).await;
    let question = questions.next().await.unwrap();
    assert_eq!(outcome.await.unwrap().unwrap_err().error_object().unwrap().code.get(), -32042);
    assert_eq!(question.ended().await, mcp_client::End::FlowEnded);

    let outcome = call_tool(&client, "t");
    let call = peer.expect("tools/call").await;
    peer.send(required(&call, &[url_params("c")])).await;
    let question = questions.next().await.unwrap();
    drop(peer);
    assert_eq!(outcome.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(question.ended().await, mcp_client::End::ConnectionLost);
    assert_idle(&client);
}

/// A call with a key asks its own handler; one that nobody may be asked for, or of another kind, surfaces at once.
#[tokio::test(start_paused = true)]
async fn the_route_of_the_call_is_asked_for_its_urls() {
    let (connected_builder, by_default) = consenting();
    let (client, mut peer) = connect(connected_builder).await;
    let _route = client.route_elicitations("turn", accept);
    let call = client.call_tool("t", json!({})).elicitation_key("turn").into_future();
    let outcome = tokio::spawn(call);
    let request = peer.expect("tools/call").await;
    peer.send(required(&request, &[url_params("a")])).await;
    settle().await;
    peer.send(complete("a")).await;
    let retry = peer.expect("tools/call").await;
    peer.answer(&retry, json!({ "content": [] })).await;
    outcome.await.unwrap().unwrap();
    assert!(by_default.lock().unwrap().is_empty());

    let list = tokio::spawn(client.list_tools().page());
    let request = peer.expect("tools/list").await;
    peer.send(required(&request, &[url_params("b")])).await;
    assert_eq!(list.await.unwrap().unwrap_err().kind(), ErrorKind::Rpc);

    let (nobody, mut peer) = connect(builder()).await;
    let outcome = call_tool(&nobody, "t");
    let request = peer.expect("tools/call").await;
    peer.send(required(&request, &[url_params("a")])).await;
    assert_eq!(outcome.await.unwrap().unwrap_err().kind(), ErrorKind::Rpc);
}
