//! Servers that do something odd as often as they can write.

use std::future::IntoFuture;
use std::sync::Mutex;

use mcp_client::{ClientEvent, Diagnostic, DiagnosticKind, HttpServer, Limits};
use serde_json::{Value, json};

use super::peer::{builder, connected, pipe, recorded};
use crate::http::script::{Server, within};

const FLOOD: u64 = 20_000;

/// Singly up to 16, then at 32, 64 and so on up to 16,384, and what is left at the end.
const EVENTS: usize = 16 + 10 + 1;

fn told(events: &Mutex<Vec<ClientEvent>>) -> Vec<Diagnostic> {
    let events = events.lock().unwrap();
    let told = events.iter().filter_map(|event| match event {
        ClientEvent::Diagnostic(diagnostic) => Some(diagnostic.clone()),
        _ => None,
    });
    told.collect()
}

fn check(told: &[Diagnostic], kind: DiagnosticKind) {
    assert!(told.iter().all(|event| event.kind == kind), "{told:?}");
    assert_eq!(told.len(), EVENTS, "{told:?}");
    assert_eq!(told.iter().map(|event| event.count).sum::<u64>(), FLOOD, "none is lost");
    let [first, .., doubled, last] = told else { panic!("{told:?}") };
    assert_eq!((first.count, first.total), (1, 1));
    assert_eq!((doubled.count, doubled.total), (8_192, 16_384));
    assert_eq!((last.count, last.total), (FLOOD - 16_384, FLOOD));
    assert!(last.message.contains("3616 more before the connection ended"), "{last}");
}

/// auth:SEC-09, auth:G-05: whatever a program can write at any rate is told in few events, and all of it is counted
#[tokio::test(start_paused = true)]
async fn a_flood_over_a_pipe_is_told_in_few_events_and_counted_whole() {
    let message = |value: Value| value.to_string();
    let progress = json!({ "progressToken": 7, "progress": 1 });
    for (line, kind) in [
        ("Listening on port 3000".to_owned(), DiagnosticKind::InvalidMessage),
        (message(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })), DiagnosticKind::UnknownResponse),
        (
            message(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress })),
            DiagnosticKind::ProgressIgnored,
        ),
        (
            message(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": [] })),
            DiagnosticKind::MalformedNotification,
        ),
        (message(json!([{ "jsonrpc": "2.0", "method": "x" }])), DiagnosticKind::UnexpectedBatch),
    ] {
        let (builder, events) = recorded(builder());
        let (client, mut peer) = connected(builder).await;
        peer.send_text(&vec![line; FLOOD as usize].join("\n")).await;
        peer.answers_a_ping_of(&client).await;
        // Those that were not told too, before the end and after it.
        assert_eq!(client.diagnostics(), [(kind, FLOOD)]);
        client.close().await;
        assert_eq!(client.diagnostics(), [(kind, FLOOD)]);
        check(&told(&events), kind);
        let last = events.lock().unwrap().last().cloned();
        assert!(matches!(last, Some(ClientEvent::Closed { .. })), "before the end, not after it: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_single_diagnostics_is_the_applications_to_choose() {
    for (max_single, expected) in [(0, 3), (1, 3), (2, 3), (4, 4), (5, 5), (6, 5)] {
        let mut limits = Limits::default();
        limits.max_single_diagnostics = max_single;
        let (builder, events) = recorded(builder().limits(limits));
        let (client, mut peer) = connected(builder).await;
        peer.send_text("noise\nnoise\nnoise\nnoise\nnoise").await;
        peer.answers_a_ping_of(&client).await;
        assert_eq!(told(&events).len(), expected, "{max_single}");
    }
}

/// For whoever did not listen: those of the handshake, of each kind, and none of what did not happen.
#[tokio::test(start_paused = true)]
async fn the_diagnostics_of_a_connection_are_counted_from_its_beginning() {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, ()) = tokio::join!(builder().connect(connection), async {
        peer.send_text("Listening on port 3000").await;
        peer.handshake(json!({ "tools": {} })).await;
    });
    let client = client.unwrap();
    assert_eq!(client.diagnostics(), [(DiagnosticKind::InvalidMessage, 1)]);
    peer.send(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })).await;
    peer.send_text("noise").await;
    peer.answers_a_ping_of(&client).await;
    let both = [(DiagnosticKind::InvalidMessage, 2), (DiagnosticKind::UnknownResponse, 1)];
    assert_eq!(client.diagnostics(), both);
    let (quiet, _peer) = connected(builder()).await;
    assert_eq!(quiet.diagnostics(), []);
}

/// auth:SEC-09: events of a stream over HTTP that are no messages, the same
#[tokio::test]
async fn a_flood_over_http_is_told_in_few_events_and_counted_whole() {
    let server = Server::start().await;
    let url = server.url();
    let (builder, events) = recorded(builder());
    let connecting = tokio::spawn(async move { builder.connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, initialize) = server.request().await;
    let id = |body: &str| serde_json::from_str::<Value>(body).unwrap()["id"].clone();
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "scripted", "version": "1" },
    });
    let answer = json!({ "jsonrpc": "2.0", "id": id(&initialize.body), "result": result }).to_string();
    peer.respond("200 OK", "content-type: application/json\r\nconnection: close\r\n", &answer).await;
    // The notice that the client is ready, the standing stream, and then the call: in any order, on any connection.
    let serving = tokio::spawn(async move {
        loop {
            let (mut peer, request) = server.request().await;
            if !request.body.contains("tools/call") {
                let status = if request.body.is_empty() { "405 Method Not Allowed" } else { "202 Accepted" };
                peer.respond(status, "connection: close\r\n", "").await;
                continue;
            }
            peer.stream("").await;
            for _ in 0..FLOOD / 100 {
                peer.chunk(&"data: listening on port 3000\n\n".repeat(100)).await;
            }
            let answer = json!({ "jsonrpc": "2.0", "id": id(&request.body), "result": { "content": [] } });
            peer.chunk(&format!("data: {answer}\n\n")).await;
            peer.end().await;
            return;
        }
    });
    drop(peer);
    let client = within(connecting).await.unwrap().unwrap();
    within(client.call_tool("t", json!({})).into_future()).await.unwrap();
    serving.await.unwrap();
    within(client.close()).await;
    check(&told(&events), DiagnosticKind::InvalidMessage);
}
