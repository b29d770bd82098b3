//! What stands still elsewhere holds up no deadline: other futures that nobody polls, servers that accept nothing.

use std::future::{Future, IntoFuture as _};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_client::model::SubscriptionFilter;
use mcp_client::transport::http::{Credentials, CredentialsFuture, Refused};
use mcp_client::{Client, ElicitRequest, ElicitResult, ElicitationContext, HttpServer, Limits};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::peer::{SECOND, builder, connected, empty_form, summary};
use crate::elicitation::support::ask;
use crate::http::script::{Peer, Server, within};

fn begin<F: Future>(future: std::pin::Pin<&mut F>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// field:FR-149, seed:B25: a server that asks all the time keeps no call alive that it has lost.
#[tokio::test(start_paused = true)]
async fn questions_that_are_answered_at_once_do_not_put_off_the_deadline_of_a_lost_call() {
    let decline = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::decline() };
    let (client, mut peer) = connected(builder().on_elicitation(decline)).await;
    let begun = tokio::time::Instant::now();
    let lost = tokio::spawn(client.call_tool("lost", json!({})).timeout(SECOND).into_future());
    peer.expect("tools/call").await;
    let asking = tokio::spawn(async move {
        for id in 0.. {
            peer.send(ask(id, empty_form())).await;
            peer.receive().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let outcome = tokio::time::timeout(60 * SECOND, lost).await.expect("it never ends").unwrap();
    assert_eq!(summary(outcome), ("timeout", true));
    assert!(begun.elapsed() <= SECOND + Duration::from_millis(10), "{:?}", begun.elapsed());
    asking.abort();
}

/// A closing that somebody began and does not poll any more is no closing that others wait for.
#[tokio::test(start_paused = true)]
async fn a_close_that_is_kept_and_not_polled_holds_up_no_other_over_a_line() {
    let (client, peer) = connected(builder()).await;
    let mut kept = pin!(client.close());
    begin(kept.as_mut());
    drop(peer);
    tokio::time::timeout(20 * SECOND, client.close()).await.expect("it waits for the other one");
    kept.await;
}

/// A server that is told nothing: each request is answered with what `answer` gives, or not at all.
fn serve(
    server: Server,
    answer: impl Fn(&str, &Value) -> Option<(&'static str, Value)> + Clone + Send + 'static,
) {
    async fn talk(mut peer: Peer, answer: impl Fn(&str, &Value) -> Option<(&'static str, Value)>) {
        while let Some(request) = peer.try_request().await {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match answer(&request.method, &message) {
                Some((status, Value::Null)) => peer.respond(status, "", "").await,
                Some((status, result)) => {
                    let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
                    let head = "content-type: application/json\r\nmcp-session-id: s\r\n";
                    peer.respond(status, head, &text).await;
                }
                None => std::future::pending().await,
            }
        }
    }
    tokio::spawn(async move {
        loop {
            let peer = server.accept().await;
            tokio::spawn(talk(peer, answer.clone()));
        }
    });
}

fn usual(method: &str, message: &Value) -> Option<(&'static str, Value)> {
    match (method, message["method"].as_str()) {
        ("POST", Some("initialize")) => {
            Some(("200 OK", json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } })))
        }
        ("POST", Some("notifications/initialized")) => Some(("202 Accepted", Value::Null)),
        ("POST", Some("tools/call")) => Some(("200 OK", json!({ "content": [] }))),
        ("GET", _) => Some(("405 Method Not Allowed", Value::Null)),
        _ => None,
    }
}

async fn connect(server: &str) -> Client {
    within(builder().connect(HttpServer::new(server).unwrap())).await.unwrap()
}

#[tokio::test]
async fn a_close_that_is_kept_and_not_polled_holds_up_no_other_over_http() {
    let server = Server::start().await;
    let url = server.url();
    serve(server, usual);
    let mut timeouts = mcp_client::transport::http::HttpTimeouts::default();
    timeouts.close = Duration::from_millis(100);
    let endpoint = HttpServer::new(&url).unwrap().timeouts(timeouts);
    let client = within(builder().connect(endpoint)).await.unwrap();
    let mut kept = pin!(client.close());
    begin(kept.as_mut());
    within(client.close()).await;
}

/// A session is renewed in the middle of a call, and the server does not take note of the end of that handshake.
#[tokio::test]
async fn a_call_that_renews_the_session_ends_in_time_though_the_server_accepts_no_notification() {
    let server = Server::start().await;
    let url = server.url();
    let lost = Arc::new(AtomicBool::new(false));
    let is_lost = Arc::clone(&lost);
    serve(server, move |method, message| match message["method"].as_str() {
        Some("tools/call") if !is_lost.swap(true, Ordering::Relaxed) => Some(("404 Not Found", Value::Null)),
        Some("notifications/initialized") if is_lost.load(Ordering::Relaxed) => None,
        _ => usual(method, message),
    });
    let client = connect(&url).await;
    let call = client.call_tool("t", json!({})).timeout(Duration::from_millis(300)).into_future();
    // Far less than the head of a response may take.
    let outcome = within(call).await;
    assert_eq!(summary(outcome).0, "timeout");
    assert!(lost.load(Ordering::Relaxed));
}

/// protocol:H-14: whoever meets the loss first and is not polled any more holds up nobody else's session, however far the new one is.
#[tokio::test]
async fn a_call_that_meets_the_loss_and_is_kept_unpolled_holds_up_no_other() {
    for reached in ["initialize", "notifications/initialized"] {
        let server = Server::start().await;
        let url = server.url();
        let (lost, is_reached) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
        let (lost, reaching) = (Arc::new(lost), Arc::clone(&is_reached));
        serve(server, move |method, message| {
            let said = message["method"].as_str();
            if said == Some("tools/call") && !lost.swap(true, Ordering::Relaxed) {
                return Some(("404 Not Found", Value::Null));
            }
            if said == Some(reached) && lost.load(Ordering::Relaxed) {
                reaching.store(true, Ordering::Relaxed);
            }
            usual(method, message)
        });
        let client = connect(&url).await;
        let mut kept = Box::pin(client.call_tool("t", json!({})).into_future());
        within(async {
            while !is_reached.load(Ordering::Relaxed) {
                begin(kept.as_mut());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        // Nobody polls it from here on, and the others have more time than this test.
        within(client.call_tool("t", json!({})).timeout(600 * SECOND).into_future()).await.unwrap();
        within(kept).await.unwrap();
    }
}

/// protocol:H-14: what the connection asks by itself may never be answered; the handshake that all wait for has its own place.
#[tokio::test]
async fn requests_of_the_connection_that_are_not_answered_hold_up_no_new_session() {
    let server = Server::start().await;
    let url = server.url();
    let (lost, asked) = (AtomicBool::new(false), Arc::new(Notify::new()));
    let (lost, asking) = (Arc::new(lost), Arc::clone(&asked));
    serve(server, move |method, message| match message["method"].as_str() {
        Some("initialize") => {
            let capabilities = json!({ "tools": {}, "resources": { "subscribe": true } });
            Some(("200 OK", json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities })))
        }
        Some("resources/subscribe") => {
            asking.notify_one();
            None
        }
        Some("tools/call") if !lost.swap(true, Ordering::Relaxed) => Some(("404 Not Found", Value::Null)),
        _ => usual(method, message),
    });
    let mut limits = Limits::default();
    limits.max_background_posts = 1;
    let connecting = builder().limits(limits).connect(HttpServer::new(&url).unwrap());
    let client = within(connecting).await.unwrap();
    let mut wanted = SubscriptionFilter::new();
    wanted.resource_subscriptions = Some(vec!["a:1".to_owned()]);
    let subscriber = client.clone();
    let subscribing = tokio::spawn(async move { subscriber.subscription(wanted).await.map(drop) });
    within(asked.notified()).await;
    within(client.call_tool("t", json!({})).timeout(600 * SECOND).into_future()).await.unwrap();
    subscribing.abort();
}

/// Calls whose answers wait for room behind what the server does not accept, and that nobody polls, take no room from others.
#[tokio::test]
async fn calls_that_nobody_polls_take_no_place_of_the_background() {
    let decline = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::decline() };
    let server = Server::start().await;
    let url = server.url();
    let accepts = Arc::new(Notify::new());
    let (may_go, answers) = (Arc::clone(&accepts), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&answers);
    tokio::spawn(async move {
        for number in 0.. {
            let mut peer = server.accept().await;
            let (may_go, count) = (Arc::clone(&may_go), Arc::clone(&count));
            tokio::spawn(async move {
                while let Some(request) = peer.try_request().await {
                    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
                    if message.get("method").is_none() && request.method == "POST" {
                        // An answer of the client: accepted when it is time.
                        count.fetch_add(1, Ordering::Relaxed);
                        may_go.notified().await;
                        peer.accepted().await;
                    } else if message["params"]["name"] == "asks" {
                        peer.stream("").await;
                        for question in 0..3 {
                            let params = empty_form();
                            let id = format!("{number}-{question}");
                            let asked = json!({
                                "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params
                            });
                            peer.chunk(&format!("data: {asked}\n\n")).await;
                        }
                        std::future::pending::<()>().await;
                    } else if let Some((status, result)) = usual(&request.method, &message) {
                        if result.is_null() {
                            peer.respond(status, "", "").await;
                        } else {
                            let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                            peer.json(&text.to_string()).await;
                        }
                    }
                }
            });
        }
    });
    let client =
        within(builder().on_elicitation(decline).connect(HttpServer::new(&url).unwrap())).await.unwrap();
    let mut calls: Vec<_> =
        (0..40).map(|_| Box::pin(client.call_tool("asks", json!({})).into_future())).collect();
    // All of them are driven until every place is taken by an answer that is not accepted, and then no more.
    within(async {
        loop {
            for call in &mut calls {
                let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            if answers.load(Ordering::Relaxed) >= 64 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for call in &mut calls {
            let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    })
    .await;
    // Whoever asks now gets its answer as soon as some are accepted.
    let asking = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let releasing = tokio::spawn(async move {
        loop {
            accepts.notify_waiters();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    within(asking).await.unwrap().unwrap();
    for _ in 0..20 {
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
    }
    releasing.abort();
}

/// Gives no credentials any more once it is told so.
struct Withheld(Arc<AtomicBool>);

impl Credentials for Withheld {
    fn authorization(&self) -> CredentialsFuture<'_, Option<String>> {
        let is_withheld = self.0.load(Ordering::Relaxed);
        Box::pin(async move {
            if is_withheld {
                std::future::pending::<()>().await;
            }
            Ok(None)
        })
    }

    fn refused<'a>(&'a self, _: Refused<'a>) -> CredentialsFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}

/// A server of the HTTP+SSE transport, which refuses the newer one.
async fn serve_older(server: Server) {
    let (down, up) = tokio::sync::mpsc::unbounded_channel::<String>();
    let up = Arc::new(tokio::sync::Mutex::new(up));
    loop {
        let mut peer = server.accept().await;
        let (down, up) = (down.clone(), Arc::clone(&up));
        tokio::spawn(async move {
            while let Some(request) = peer.try_request().await {
                let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
                match (request.method.as_str(), request.path.as_str()) {
                    ("GET", "/mcp") => {
                        peer.stream("").await;
                        peer.chunk("event: endpoint\ndata: /messages\n\n").await;
                        let mut messages = up.lock().await;
                        while let Some(message) = messages.recv().await {
                            peer.chunk(&format!("data: {message}\n\n")).await;
                        }
                    }
                    ("POST", "/messages") => {
                        peer.accepted().await;
                        if let Some((_, result)) =
                            usual("POST", &message).filter(|_| message.get("id").is_some())
                        {
                            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                            down.send(answer.to_string()).unwrap();
                        }
                    }
                    _ => peer.respond("405 Method Not Allowed", "", "").await,
                }
            }
        });
    }
}

/// seed:B23: until its credentials are there nothing of a call has left, over either HTTP transport.
#[tokio::test]
async fn a_call_that_waits_for_credentials_has_not_left() {
    for is_older in [false, true] {
        let server = Server::start().await;
        let url = server.url();
        if is_older {
            tokio::spawn(serve_older(server));
        } else {
            serve(server, usual);
        }
        let withheld = Arc::new(AtomicBool::new(false));
        let endpoint = HttpServer::new(&url).unwrap().credentials(Arc::new(Withheld(Arc::clone(&withheld))));
        let client = within(builder().connect(endpoint)).await.unwrap();
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        withheld.store(true, Ordering::Relaxed);
        let call = client.call_tool("t", json!({})).timeout(Duration::from_millis(50)).into_future();
        assert_eq!(summary(within(call).await), ("timeout", false), "{is_older}");
    }
}
