//! Questions of the server and the handlers that answer them.

use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_client::{
    ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, ElicitationSupport, Limits,
};
use serde_json::{Map, Value, json};

use super::peer::{Peer, SECOND, builder, connected, diagnostics, recorded, summary};
use crate::elicitation::support::{form, named, url, withdraw};

/// Asks, and returns the whole answer.
async fn ask(builder: ClientBuilder, question: Value) -> Value {
    let (_client, mut peer) = connected(builder).await;
    peer.send(question).await;
    peer.receive().await
}

/// seed:B4, seed:E24, protocol:E-01: defaults are filled in on accept.
/// protocol:E-23
#[tokio::test(start_paused = true)]
async fn a_handler_answers_under_the_id_of_the_question() {
    let accept = |_: ElicitRequest, _: ElicitationContext| async { named("Ada") };
    for id in [json!(0), json!("0"), json!(""), json!(7)] {
        let answer = ask(builder().on_elicitation(accept), form(id.clone())).await;
        assert_eq!(
            answer,
            json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": { "name": "Ada", "age": 30 } } })
        );
    }
}

/// seed:B5, protocol:E-17
#[tokio::test(start_paused = true)]
async fn consent_to_a_url_carries_no_content() {
    let accept = |_: ElicitRequest, _: ElicitationContext| async { named("leak") };
    let answer = ask(builder().on_elicitation(accept), url(1, "e1")).await;
    assert_eq!(answer["result"], json!({ "action": "accept" }));
}

/// protocol:L-16, protocol:10.15: nothing is declared that nobody serves.
#[tokio::test(start_paused = true)]
async fn without_a_handler_the_capability_is_not_declared_and_the_method_not_found() {
    let (connection, mut peer) = super::peer::pipe(1 << 16);
    let (client, initialize) = tokio::join!(builder().connect(connection), peer.handshake(json!({})));
    let _client = client.unwrap();
    assert_eq!(initialize["params"]["capabilities"], json!({}));
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["error"]["code"], -32601);
}

/// protocol:E-22
#[tokio::test(start_paused = true)]
async fn a_mode_that_was_not_declared_is_refused() {
    let handler = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::accept_url() };
    let builder = builder().on_elicitation(handler).elicitation_modes(ElicitationSupport::form());
    assert_eq!(ask(builder, url(1, "e1")).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_the_schema_goes_out_as_cancel_and_is_reported() {
    let (builder, events) = recorded(builder());
    let nothing = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::accept(Map::new()) };
    let answer = ask(builder.on_elicitation(nothing), form(1)).await;
    assert_eq!(answer["result"], json!({ "action": "cancel" }));
    assert_eq!(diagnostics(&events), ["elicitation_answer_invalid"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_counts_as_cancel() {
    let panics = |_: ElicitRequest, _: ElicitationContext| async { panic!("on purpose") as ElicitResult };
    let answer = ask(builder().on_elicitation(panics), form(1)).await;
    assert_eq!(answer["result"], json!({ "action": "cancel" }));
}

/// Counts how often it was dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A handler that never answers, and the count of its futures that were dropped.
fn silent() -> (ClientBuilder, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        let open = Dropped(Arc::clone(&count));
        async move {
            let _open = open;
            pending::<ElicitResult>().await
        }
    };
    (builder().on_elicitation(handler), dropped)
}

/// seed:E21, protocol:C-02: a withdrawn question is taken away and not answered.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_drops_its_handler_and_is_not_answered() {
    let (builder, dropped) = silent();
    let (_client, mut peer) = connected(builder).await;
    peer.send(form("q")).await;
    peer.expect_silence(SECOND).await;
    peer.send(withdraw("q")).await;
    peer.expect_silence(SECOND).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// seed:E22, seed:B16
#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_dropped_and_answered_with_cancel() {
    let (builder, dropped) = silent();
    let (_client, mut peer) = connected(builder.server_request_timeout(30 * SECOND)).await;
    let begun = tokio::time::Instant::now();
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    assert_eq!(begun.elapsed(), 30 * SECOND);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// seed:B17
#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_drops_open_handlers() {
    let (builder, dropped) = silent();
    let (client, mut peer) = connected(builder).await;
    peer.send(form(1)).await;
    peer.send(form("1")).await;
    peer.expect_silence(SECOND).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    tokio::join!(client.close(), async {
        peer.expect_end().await;
        drop(peer);
    });
    tokio::time::sleep(SECOND).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
}

/// seed:E18, seed:E1: the ids of the two directions are independent, and a call waits while its question is answered.
#[tokio::test(start_paused = true)]
async fn a_question_with_the_id_of_a_call_is_answered_while_the_call_goes_on() {
    let accept = |_: ElicitRequest, _: ElicitationContext| async { named("Ada") };
    let (client, mut peer) = connected(builder().on_elicitation(accept)).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.send(form(call["id"].clone())).await;
        let answer = peer.receive().await;
        assert_eq!(answer["id"], call["id"]);
        assert_eq!(answer["result"]["action"], "accept");
        peer.answer(&call, json!({ "content": [] })).await;
    });
    outcome.unwrap();
}

/// protocol:G-01, seed:B37
#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_unknown_requests_refused() {
    async fn asked(peer: &mut Peer, method: &str) -> Value {
        peer.send(json!({ "jsonrpc": "2.0", "id": "p", "method": method })).await;
        peer.receive().await
    }
    let (_client, mut peer) = connected(builder()).await;
    assert_eq!(asked(&mut peer, "ping").await, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    for method in ["sampling/createMessage", "roots/list", "vendor/unknown"] {
        let answer = asked(&mut peer, method).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("p"), &json!(-32601)), "{answer}");
    }
}

/// A peer that asks and never reads cannot make the client hold more than its queue: reading pauses, and calls keep their
/// deadlines.
#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_that_are_never_read_is_bounded() {
    let (connection, mut peer) = super::peer::pipe(4096);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    let mut sent = 0_u64;
    let flood = async {
        for id in 0..1_000_000_u64 {
            peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
            sent = id;
        }
        panic!("a million pings were taken in");
    };
    assert!(tokio::time::timeout(60 * SECOND, flood).await.is_err(), "reading paused");
    // The answers that wait, and what the pipe and the line that is read hold of both ways.
    let most = Limits::default().max_waiting_answers as u64 + 1000;
    assert!(sent <= most, "{sent} of {most} pings were taken in");
    let begun = tokio::time::Instant::now();
    let late = client.call_tool("t", json!({})).timeout(5 * SECOND).await;
    assert_eq!(summary(late).0, "timeout");
    assert_eq!(begun.elapsed(), 5 * SECOND);
}
