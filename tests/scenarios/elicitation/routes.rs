//! Whose handler a question goes to.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_client::{
    AnyElicitationHandler, Client, Desk, ElicitRequest, ElicitResult, ElicitationContext, HttpServer, Mode,
};
use serde_json::{Value, json};

use super::support::*;
use crate::http::script::{Server, within};

/// The connection takes no further request.
const LAST: &str = "connection: close\r\n";

/// Answers with its own name.
fn answering(
    name: &'static str,
) -> impl Fn(ElicitRequest, ElicitationContext) -> std::future::Ready<ElicitResult> {
    move |_, _| std::future::ready(named(name))
}

/// The name in the answer to the question that the peer puts now.
async fn answered_by(peer: &mut Peer, id: u64) -> String {
    peer.send(form(id)).await;
    let answer = peer.receive().await;
    assert_eq!(answer["id"], id);
    answer["result"]["content"]["name"].as_str().unwrap_or("nobody").to_owned()
}

/// seed:E33: over a shared channel nobody can tell in the middle of which of two turns' calls a question is asked; it goes
/// to the default. While only one turn has calls, it is that turn's.
#[tokio::test(start_paused = true)]
async fn over_a_pipe_a_question_goes_to_the_only_turn_that_calls_and_else_to_the_default() {
    let (client, mut peer) = connected(builder().on_elicitation(answering("default"))).await;
    let first = client.route_elicitations("turn-1", answering("first"));
    let second = client.desk().route("turn-2", answering("second"));
    assert_eq!((first.key(), second.key()), ("turn-1", "turn-2"));
    assert_eq!(answered_by(&mut peer, 1).await, "default", "nobody calls");

    let one = tokio::spawn(client.call_tool("t", json!({})).elicitation_key("turn-1").into_future());
    let call_one = peer.expect("tools/call").await;
    assert_eq!(answered_by(&mut peer, 2).await, "first");
    let two = tokio::spawn(client.call_tool("t", json!({})).elicitation_key("turn-2").into_future());
    let call_two = peer.expect("tools/call").await;
    assert_eq!(answered_by(&mut peer, 3).await, "default", "either may be meant");
    peer.answer(&call_one, json!({ "content": [] })).await;
    one.await.unwrap().unwrap();
    assert_eq!(answered_by(&mut peer, 4).await, "second");
    drop(second);
    assert_eq!(answered_by(&mut peer, 5).await, "default", "its route is gone");
    peer.answer(&call_two, json!({ "content": [] })).await;
    two.await.unwrap().unwrap();
    let keyless = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let call = peer.expect("tools/call").await;
    assert_eq!(answered_by(&mut peer, 6).await, "default");
    peer.answer(&call, json!({ "content": [] })).await;
    keyless.await.unwrap().unwrap();
    assert_idle(&client);
}

/// seed:E33, seed:E1, seed:S-31: over HTTP a question comes on the stream of its call, and two turns at once each get their
/// own.
#[tokio::test]
async fn over_http_each_of_two_turns_answers_what_is_asked_in_its_own_calls() {
    let server = Server::start().await;
    let url = server.url();
    let script = tokio::spawn(async move {
        // `initialize`, `initialized`, the standing stream, two calls and two answers, each on a connection of its own.
        let (mut streams, mut answers) = (Vec::new(), Vec::new());
        while answers.len() < 2 {
            let (mut peer, request) = server.request().await;
            let message = serde_json::from_str::<Value>(&request.body).unwrap_or_default();
            match (request.method.as_str(), message["method"].as_str()) {
                ("GET", _) => peer.respond("405 Method Not Allowed", LAST, "").await,
                (_, Some("initialize")) => {
                    let result = json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": "s", "version": "1" },
                    });
                    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    let head = format!("{LAST}content-type: application/json\r\n");
                    peer.respond("200 OK", &head, &body.to_string()).await;
                }
                (_, Some("tools/call")) => {
                    peer.stream(LAST).await;
                    streams.push((peer, message["params"]["name"].clone(), message["id"].clone()));
                    // Both are asked once both are there, the later one first.
                    if let [(first, _, _), (second, _, _)] = &mut streams[..] {
                        second.chunk(&format!("data: {}\n\n", form("q-2"))).await;
                        first.chunk(&format!("data: {}\n\n", form("q-1"))).await;
                    }
                }
                (_, Some(_)) => peer.respond("202 Accepted", LAST, "").await,
                (_, None) => {
                    let at = usize::from(message["id"] == "q-2");
                    answers.push((streams[at].1.clone(), message["result"]["content"]["name"].clone()));
                    peer.respond("202 Accepted", LAST, "").await;
                }
            }
        }
        for (mut peer, _, id) in streams {
            let body = json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } });
            peer.chunk(&format!("data: {body}\n\n")).await;
            peer.end().await;
        }
        answers
    });
    let client =
        builder().on_elicitation(answering("default")).connect(HttpServer::new(&url).unwrap()).await.unwrap();
    let _one = client.route_elicitations("turn-1", answering("turn-1"));
    let _two = client.route_elicitations("turn-2", answering("turn-2"));
    let call = |key: &'static str| client.call_tool(key, json!({})).elicitation_key(key).into_future();
    let (one, two) = within(async { tokio::join!(call("turn-1"), call("turn-2")) }).await;
    one.unwrap();
    two.unwrap();
    for (tool, name) in script.await.unwrap() {
        assert_eq!(tool, name);
    }
}

/// seed:E33, seed:S-31: a modern question is a part of its call's answer, so that each of two turns gets its own, on one
/// channel too.
#[tokio::test(start_paused = true)]
async fn in_the_modern_era_each_of_two_turns_answers_what_is_asked_in_its_own_calls() {
    let (connection, mut peer) = pipe(1 << 20);
    let builder = builder().mode(Mode::Auto).on_elicitation(answering("default"));
    let (client, ()) = tokio::join!(builder.connect(connection), async {
        let probe = peer.expect("server/discover").await;
        let versions = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        peer.answer(&probe, versions).await;
    });
    let client = client.unwrap();
    let _one = client.route_elicitations("turn-1", answering("turn-1"));
    let _two = client.route_elicitations("turn-2", answering("turn-2"));
    let turns = ["turn-1", "turn-2", "turn-of-nobody"];
    let calls = turns.map(|key| client.call_tool(key, json!({})).elicitation_key(key).into_future());
    let calls = calls.map(tokio::spawn);
    let mut requests = Vec::new();
    for _ in turns {
        requests.push(peer.expect("tools/call").await);
    }
    for request in requests.iter().rev() {
        let question = json!({ "method": "elicitation/create", "params": form(0)["params"] });
        let wanted = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        peer.answer(request, wanted).await;
        let retry = peer.expect("tools/call").await;
        let name = retry["params"]["name"].as_str().unwrap();
        let expected = if name == "turn-of-nobody" { "default" } else { name };
        assert_eq!(retry["params"]["inputResponses"]["q"]["content"]["name"], expected);
        peer.answer(&retry, json!({ "resultType": "complete", "content": [] })).await;
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_idle(&client);
}

/// Handlers of many kinds in one map, and one desk for two servers whose questions name them.
#[tokio::test(start_paused = true)]
async fn clients_share_a_desk_and_its_handler_sees_who_asks() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let kept = AnyElicitationHandler::new(move |_: ElicitRequest, context: ElicitationContext| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { named(&context.server) }
    });
    let desk = Desk::default();
    assert!(!desk.is_staffed());
    desk.set_handler(kept.clone());
    assert!(desk.is_staffed());
    let (_paint, mut paint) = connected(builder().desk(&desk, "paint")).await;
    let (_wood, mut wood) = connected(builder().desk(&desk, "wood")).await;
    assert_eq!(answered_by(&mut wood, 1).await, "wood");
    assert_eq!(answered_by(&mut paint, 1).await, "paint");
    desk.clear_handler();
    assert_eq!(answered_by(&mut paint, 2).await, "nobody");
    desk.set_handler(Arc::new(kept));
    assert_eq!(answered_by(&mut paint, 3).await, "paint");
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

/// protocol:L-16, seed:S-64: a desk where nobody is promises nothing.
#[tokio::test(start_paused = true)]
async fn a_desk_without_anybody_declares_nothing() {
    async fn declared(builder: mcp_client::ClientBuilder) -> Value {
        let (connection, mut peer) = pipe(1 << 16);
        let (client, initialize) = tokio::join!(builder.connect(connection), peer.handshake(json!({})));
        drop::<Client>(client.unwrap());
        initialize["params"]["capabilities"]["elicitation"].clone()
    }
    let desk = Desk::default();
    assert_eq!(declared(builder()).await, json!(null));
    assert_eq!(declared(builder().desk(&desk, "s")).await, json!(null));
    let both = json!({ "form": {}, "url": {} });
    assert_eq!(declared(builder().elicitation_stream()).await, both);
    let listener = desk.elicitations();
    assert_eq!(declared(builder().desk(&desk, "s")).await, both);
    drop(listener);
    let route = desk.route("turn", accept);
    assert_eq!(declared(builder().desk(&desk, "s")).await, both);
    drop(route);
    assert_eq!(declared(builder().desk(&desk, "s")).await, json!(null));
}

/// A handler that answers at the desk before whoever asked it has turned round runs on, on whichever threads that is.
#[test]
fn a_handler_that_answers_its_own_question_at_once_runs_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let desk = Desk::default();
        let (finished, mut told) = tokio::sync::mpsc::unbounded_channel();
        let at = desk.clone();
        let handler = move |_: ElicitRequest, context: ElicitationContext| {
            let (at, finished) = (at.clone(), finished.clone());
            async move {
                at.respond(context.question, ElicitResult::decline()).unwrap();
                tokio::task::yield_now().await;
                finished.send(()).unwrap();
                ElicitResult::decline()
            }
        };
        let (_client, mut peer) = connected(builder().desk(&desk, "srv").on_elicitation(handler)).await;
        for id in 0..2000 {
            peer.send(form(id)).await;
            assert_eq!(peer.receive().await["result"]["action"], "decline");
            let finished = tokio::time::timeout(60 * SECOND, told.recv()).await;
            assert!(finished.is_ok(), "the handler of question {id} was dropped");
        }
    });
}
