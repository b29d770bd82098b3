//! Tasks over HTTP, with losses in the middle.

use std::future::IntoFuture;

use mcp_client::{Client, ErrorKind};
use serde_json::{Value, json};

use super::peer::modern_tasks;
use super::web::{self, answer, grant, message};
use crate::http::script::{Peer, Request, Server, within};

fn state(status: &str, more: Value) -> Value {
    let mut state = json!({
        "resultType": "complete", "taskId": "täsk", "status": status, "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": status, "ttlMs": null, "pollIntervalMs": 100,
    });
    state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    state
}

fn done() -> Value {
    state("completed", json!({ "result": { "content": [] } }))
}

/// A client, and the connection that it uses.
async fn connected(server: &Server) -> (Client, Peer) {
    web::connected(modern_tasks(), server).await
}

/// Which method a request is about, by its header and its body, which must agree.
fn method(request: &Request) -> String {
    let body = message(request);
    assert_eq!(request.header("mcp-method"), body["method"].as_str());
    body["method"].as_str().unwrap().to_owned()
}

/// protocol:TX-07, protocol:H-53, protocol:TX-03: an unreachable server in the middle costs the task nothing, and the tool is called once.
#[tokio::test]
async fn a_task_outlasts_lost_answers_and_unavailable_servers() {
    let server = Server::start().await;
    let (client, mut peer) = connected(&server).await;
    let calling = tokio::spawn(client.call_tool("slow", json!({})).into_future());
    let call = peer.request().await;
    assert_eq!(method(&call), "tools/call");
    answer(&mut peer, &call, state("working", json!({ "resultType": "task" }))).await;

    let poll = peer.request().await;
    assert_eq!(method(&poll), "tasks/get");
    // The id is no plain text for a header.
    assert_eq!(poll.header("mcp-name"), Some("=?base64?dMOkc2s=?="));
    peer.respond("503 Service Unavailable", "", "").await;
    let poll = peer.request().await;
    assert_eq!(method(&poll), "tasks/get");
    // The connection breaks before the answer.
    peer.reset();
    let (mut peer, poll) = server.request().await;
    assert_eq!(method(&poll), "tasks/get");
    // The answer comes as an event stream that is broken off behind it.
    let id = &message(&poll)["id"];
    let told = json!({ "jsonrpc": "2.0", "id": id, "result": state("working", json!({})) });
    peer.stream("").await;
    peer.chunk(&format!("data: {told}\n\n")).await;
    peer.reset();
    let (mut peer, poll) = server.request().await;
    assert_eq!(method(&poll), "tasks/get");
    answer(&mut peer, &poll, done()).await;
    within(calling).await.unwrap().unwrap();
}

/// What will not pass is told at once, and the task can be resumed.
#[tokio::test]
async fn a_refusal_for_good_ends_the_wait_and_the_task_is_taken_up_elsewhere() {
    let server = Server::start().await;
    let (client, mut peer) = connected(&server).await;
    let starting = tokio::spawn(client.call_tool("slow", json!({})).as_task().into_future());
    let call = peer.request().await;
    answer(&mut peer, &call, state("working", json!({ "resultType": "task" }))).await;
    let task = within(starting).await.unwrap().unwrap();
    let stored = task.stored().unwrap();
    let ending = tokio::spawn(task.result());
    peer.request().await;
    peer.respond("403 Forbidden", "", "").await;
    let error = within(ending).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unauthorized, Some(403)));
    drop((client, peer));

    let (client, mut peer) = connected(&server).await;
    let resuming = tokio::spawn(client.resume_task(stored).into_future());
    let poll = peer.request().await;
    assert_eq!(method(&poll), "tasks/get");
    answer(&mut peer, &poll, done()).await;
    within(resuming).await.unwrap().unwrap().result().await.unwrap();
}

/// protocol:TX-06: the subscription has a stream of its own, which ends with the task.
#[tokio::test]
async fn a_server_tells_of_the_task_on_a_stream_of_its_own() {
    let server = Server::start().await;
    let (client, mut peer) = connected(&server).await;
    let starting = tokio::spawn(client.call_tool("slow", json!({})).as_task().listen().into_future());
    let call = peer.request().await;
    let slow = json!({ "resultType": "task", "pollIntervalMs": 60_000 });
    answer(&mut peer, &call, state("working", slow)).await;
    let task = within(starting).await.unwrap().unwrap();
    let ending = tokio::spawn(task.result());
    let listen = peer.request().await;
    let body = message(&listen);
    assert_eq!(body["params"]["notifications"], json!({ "taskIds": ["täsk"] }));
    let marked = json!({ "io.modelcontextprotocol/subscriptionId": body["id"] });
    grant(&mut peer, &listen).await;
    let mut params = done();
    params["_meta"] = marked;
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": params });
    peer.chunk(&format!("data: {told}\n\n")).await;
    within(ending).await.unwrap().unwrap();
    peer.closed().await;
}
