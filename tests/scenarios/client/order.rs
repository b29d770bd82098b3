//! What is said first leaves first: requests, notifications and answers of one client over a line, and notifications over HTTP.

use std::future::IntoFuture as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_client::model::Root;
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{Client, ClientEvent, ElicitRequest, ElicitResult, ElicitationContext, HttpServer};
use serde_json::{Value, json};

use super::peer::{Peer, builder, connected, empty_form, pipe, pipe_with, summary};
use crate::elicitation::support::ask;
use crate::http::script::{Server, within};

/// What a message is, in one word.
fn word(message: &Value) -> String {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("tools/call") => params["name"].as_str().unwrap().to_owned(),
        Some("notifications/cancelled") => format!("cancel {}", params["requestId"]),
        Some(other) => other.trim_start_matches("notifications/").to_owned(),
        None => format!("answer {}", message["id"]),
    }
}

async fn words(peer: &mut Peer, count: usize) -> Vec<String> {
    let mut words = Vec::new();
    while words.len() < count {
        words.push(word(&peer.receive().await));
    }
    words
}

/// A client whose queue takes so many bytes, with a pipe that takes 64 and is full.
async fn stuck(max_queued_bytes: usize) -> (Client, Peer) {
    let mut limits = LineLimits::default();
    limits.max_queued_bytes = max_queued_bytes;
    let (connection, mut peer) = pipe_with(64, limits);
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(json!({ "tools": {} })));
    let client = client.unwrap();
    let text = "x".repeat(max_queued_bytes.max(200));
    tokio::spawn(client.call_tool("full", json!({ "text": text })).into_future());
    tokio::time::sleep(Duration::from_millis(1)).await;
    (client, peer)
}

#[tokio::test(start_paused = true)]
async fn calls_and_notifications_leave_in_the_order_in_which_they_were_made() {
    let (client, mut peer) = connected(builder().roots([])).await;
    client.notify("notifications/first", None).unwrap();
    let mut call = pin!(client.call_tool("second", json!({})).into_future());
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    client.set_roots([Root::new("file:///new")]).unwrap();
    client.notify("notifications/fourth", None).unwrap();
    let mut last = pin!(client.call_tool("last", json!({})).into_future());
    assert!(last.as_mut().poll(&mut context).is_pending());
    let expected = ["first", "second", "roots/list_changed", "fourth", "last"];
    assert_eq!(words(&mut peer, 5).await, expected);
}

/// Also where all of it waits for room, in line with what is large and what is small.
#[tokio::test(start_paused = true)]
async fn what_waits_for_room_keeps_its_order() {
    for max_queued_bytes in [1, 1000, 100_000] {
        let (client, mut peer) = stuck(max_queued_bytes).await;
        let mut context = Context::from_waker(Waker::noop());
        let mut expected = vec!["full".to_owned()];
        let mut calls = Vec::new();
        for round in 0..50 {
            client.notify(&format!("notifications/n{round}"), None).unwrap();
            expected.push(format!("n{round}"));
            let text = "x".repeat(round * 37 % 500);
            let call = client.call_tool(format!("c{round}"), json!({ "text": text }));
            let mut call = Box::pin(call.into_future());
            assert!(call.as_mut().poll(&mut context).is_pending());
            calls.push(call);
            expected.push(format!("c{round}"));
        }
        // Nobody polls a call any more; it leaves all the same when it is its turn.
        assert_eq!(words(&mut peer, expected.len()).await, expected, "{max_queued_bytes}");
    }
}

/// protocol:C-01, protocol:C-05: what is given up is cancelled after its request and before what its caller does next, or was
/// never there.
#[tokio::test(start_paused = true)]
async fn the_notice_that_a_call_is_given_up_leaves_between_its_request_and_what_comes_next() {
    let (client, mut peer) = connected(builder()).await;
    let timed_out = client.call_tool("timed out", json!({})).timeout(Duration::from_secs(1)).await;
    assert_eq!(summary(timed_out), ("timeout", true));
    let mut next = pin!(client.call_tool("next", json!({})).into_future());
    let mut context = Context::from_waker(Waker::noop());
    assert!(next.as_mut().poll(&mut context).is_pending());
    {
        let mut dropped = pin!(client.call_tool("dropped", json!({})).into_future());
        assert!(dropped.as_mut().poll(&mut context).is_pending());
    }
    client.notify("notifications/last", None).unwrap();
    let request = peer.expect("tools/call").await;
    let cancelled = format!("cancel {}", request["id"]);
    assert_eq!(words(&mut peer, 2).await, [cancelled.as_str(), "next"]);
    let request = peer.expect("tools/call").await;
    assert_eq!(request["params"]["name"], "dropped");
    let cancelled = format!("cancel {}", request["id"]);
    assert_eq!(words(&mut peer, 2).await, [cancelled.as_str(), "last"]);
}

/// What a handler says while it is asked leaves before its answer.
#[tokio::test(start_paused = true)]
async fn what_a_handler_says_leaves_before_its_answer() {
    let client = Arc::new(OnceLock::<Client>::new());
    let own = Arc::clone(&client);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        let own = Arc::clone(&own);
        async move {
            own.get().unwrap().notify("notifications/working", None).unwrap();
            ElicitResult::decline()
        }
    };
    let (connected, mut peer) = connected(builder().on_elicitation(handler)).await;
    client.set(connected).unwrap();
    for id in 0..20 {
        peer.send(ask(id, empty_form())).await;
        assert_eq!(words(&mut peer, 2).await, ["working".to_owned(), format!("answer {id}")]);
    }
}

/// Over HTTP each notification is posted when the one before is accepted, also where that takes its time; calls do not wait for them.
#[tokio::test]
async fn over_http_notifications_keep_their_order_and_hold_up_no_call() {
    let server = Server::start().await;
    let endpoint = HttpServer::new(&server.url()).unwrap();
    let connecting = tokio::spawn(builder().connect(endpoint));
    let (seen, mut told) = tokio::sync::mpsc::unbounded_channel();
    let release = Arc::new(tokio::sync::Notify::new());
    let may_go = Arc::clone(&release);
    tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            let (seen, may_go) = (seen.clone(), Arc::clone(&may_go));
            tokio::spawn(async move {
                while let Some(request) = peer.try_request().await {
                    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
                    let method = message["method"].as_str().unwrap_or_default().to_owned();
                    let result = match method.as_str() {
                        "initialize" => {
                            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } })
                        }
                        _ => json!({ "content": [] }),
                    };
                    if request.method != "POST" {
                        peer.respond("405 Method Not Allowed", "", "").await;
                    } else if message.get("id").is_some() {
                        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                        peer.json(&answer.to_string()).await;
                    } else {
                        seen.send(method.clone()).unwrap();
                        if method == "notifications/n0" {
                            may_go.notified().await;
                        }
                        peer.accepted().await;
                    }
                }
            });
        }
    });
    let client = within(connecting).await.unwrap().unwrap();
    assert_eq!(within(told.recv()).await.unwrap(), "notifications/initialized");
    let names: Vec<String> = (0..20).map(|number| format!("notifications/n{number}")).collect();
    for name in &names {
        client.notify(name, None).unwrap();
    }
    assert_eq!(within(told.recv()).await.unwrap(), names[0]);
    within(client.call_tool("t", json!({})).into_future()).await.unwrap();
    assert!(told.try_recv().is_err(), "the first is not accepted yet");
    release.notify_one();
    for name in &names[1..] {
        assert_eq!(within(told.recv()).await.unwrap(), *name);
    }
}

/// What a listener was told, in a word each.
fn told(events: &Mutex<Vec<ClientEvent>>) -> Vec<String> {
    let word = |event: &ClientEvent| match event {
        ClientEvent::ResourceUpdated { uri } => uri.clone(),
        ClientEvent::Closed { .. } => "closed".to_owned(),
        other => format!("{other:?}"),
    };
    events.lock().unwrap().iter().map(word).collect()
}

/// Two events come of one message (a batch). While the listener is at the first, another thread closes the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_listener_is_told_one_event_after_another_and_nothing_after_the_end() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let (is_at_it, at_it) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (record, goes_on, inside) = (Arc::clone(&events), Mutex::new(goes_on), AtomicBool::new(false));
    let builder = builder().on_event(move |event| {
        assert!(!inside.swap(true, Ordering::SeqCst), "told two at once");
        let is_first = matches!(&event, ClientEvent::ResourceUpdated { uri } if uri == "1");
        record.lock().unwrap().push(event);
        if is_first {
            is_at_it.send(()).unwrap();
            goes_on.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
        }
        inside.store(false, Ordering::SeqCst);
    });
    let (connection, mut peer) = pipe(1 << 16);
    let greeting = async {
        let initialize = peer.expect("initialize").await;
        let result = json!({ "protocolVersion": "2025-03-26", "capabilities": { "resources": {} },
            "serverInfo": { "name": "s", "version": "1" } });
        peer.answer(&initialize, result).await;
        peer.expect("notifications/initialized").await;
        peer
    };
    let (client, mut peer) = tokio::join!(builder.connect(connection), greeting);
    let client = client.unwrap();
    let mut heard = client.events();
    let updated = |uri: &str| json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } });
    peer.send(json!([updated("1"), updated("2")])).await;
    tokio::task::spawn_blocking(move || at_it.recv_timeout(Duration::from_secs(60)).unwrap()).await.unwrap();
    within(client.close()).await;
    go_on.send(()).unwrap();
    let mut words = Vec::new();
    while let Some(event) = within(heard.next()).await {
        words.push(told(&Mutex::new(vec![event])).remove(0));
    }
    assert_eq!(words, ["1", "2", "closed"]);
    drop((client, peer));
    within(async {
        while told(&events).len() < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(told(&events), ["1", "2", "closed"]);
}
