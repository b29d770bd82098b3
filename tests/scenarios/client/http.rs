//! The facade over Streamable HTTP, against the demo server on a loopback port.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, ServerFeature};
use mcp_client::transport::http::HttpTimeouts;
use mcp_client::{Client, ClientEvent, ErrorKind, HttpServer, Mode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::peer::{builder, recorded, summary};
use crate::http::script::{Address, Server, within};

fn serve(listener: TcpListener) -> (SocketAddr, JoinHandle<()>) {
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { mcp_demo_server::serve_http(listener).await.unwrap() });
    (address, server)
}

async fn any_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn connect(address: SocketAddr) -> Client {
    builder().connect(HttpServer::new(&format!("http://{address}/mcp")).unwrap()).await.unwrap()
}

/// protocol:H-14, seed:E10: a server that was restarted knows no session; ten calls at once make one new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_gets_one_new_session_and_every_call_its_answer() {
    let at = Address::keep();
    let (address, server) = serve(at.listen());
    let (builder, events) = recorded(builder());
    let url = format!("http://{address}/mcp");
    // No connection is kept that the server may break under a call: nobody would know whether that was carried out, and it would
    // not be made again.
    let mut timeouts = HttpTimeouts::default();
    timeouts.pool_idle = Duration::ZERO;
    let client = builder.connect(HttpServer::new(&url).unwrap().timeouts(timeouts)).await.unwrap();
    client.call_tool("echo", json!({ "message": "before" })).await.unwrap();

    server.abort();
    drop(server.await);
    let (_, _server) = serve(at.listen());
    let calls: Vec<_> = (0..10)
        .map(|n| {
            let call = client.call_tool("echo", json!({ "message": n.to_string() }));
            tokio::spawn(call.raw().into_future())
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        let result = call.await.unwrap().unwrap();
        assert!(result.as_str().contains(&format!("\"{n}\"")), "{}", result.as_str());
    }
    client.call_tool("echo", json!({ "message": "after" })).await.unwrap();
    let renewed = |event: &&ClientEvent| matches!(event, ClientEvent::SessionRenewed);
    // Whichever thread is at it tells it, perhaps a little after the call.
    within(async {
        while !events.lock().unwrap().iter().any(|event| renewed(&event)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(events.lock().unwrap().iter().filter(renewed).count(), 1);
    client.close().await;
}

/// A server with one session at a time that it forgets at each of these calls of a tool, counted from one; it says so by 400,
/// as the reference servers do. Gives how often it was initialised.
fn forgetful(server: Server, forgets_at: &'static [usize]) -> Arc<AtomicUsize> {
    let sessions = Arc::new(AtomicUsize::new(0));
    let opened = Arc::clone(&sessions);
    let calls = Arc::new(AtomicUsize::new(0));
    let refusal = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
    tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            let (opened, calls, refusal) = (Arc::clone(&opened), Arc::clone(&calls), refusal.clone());
            tokio::spawn(async move {
                while let Some(request) = peer.try_request().await {
                    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
                    let id = &message["id"];
                    match message["method"].as_str() {
                        Some("initialize") => {
                            let session = opened.fetch_add(1, Ordering::SeqCst) + 1;
                            let result =
                                json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
                            let head =
                                format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
                            let text = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                            peer.respond("200 OK", &head, &text).await;
                        }
                        Some("tools/call") => {
                            let nth = calls.fetch_add(1, Ordering::SeqCst) + 1;
                            if forgets_at.contains(&nth) {
                                let text =
                                    json!({ "jsonrpc": "2.0", "id": id, "error": refusal }).to_string();
                                peer.respond("400 Bad Request", "content-type: application/json\r\n", &text)
                                    .await;
                            } else {
                                let result = json!({ "content": [] });
                                peer.json(
                                    &json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
                                )
                                .await;
                            }
                        }
                        Some(_) => peer.accepted().await,
                        None => peer.respond("405 Method Not Allowed", "", "").await,
                    }
                }
            });
        }
    });
    sessions
}

/// field:FR-056, protocol:H-14: one new session and one more attempt for a call that is refused so, and never a loop.
#[tokio::test]
async fn a_server_that_refuses_its_session_by_400_gets_one_new_one() {
    let server = Server::start().await;
    let url = server.url();
    let sessions = forgetful(server, &[2, 4, 5]);
    let pinned = builder().mode(Mode::Pinned(ProtocolVersion::V2025_11_25));
    let client = within(pinned.connect(HttpServer::new(&url).unwrap())).await.unwrap();
    let call = || within(client.call_tool("t", json!({})).into_future());
    call().await.unwrap();
    assert_eq!(sessions.load(Ordering::SeqCst), 1);
    // Refused, and made again in a new session.
    call().await.unwrap();
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    // Refused in the new session as well.
    let error = call().await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error}");
    assert_eq!(sessions.load(Ordering::SeqCst), 3);
}

/// Whoever lists all that there is can tell what there is none of from what went wrong.
#[tokio::test]
async fn a_call_of_what_the_server_does_not_offer_says_what_that_is() {
    let server = Server::start().await;
    let url = server.url();
    forgetful(server, &[1]);
    let pinned = builder().mode(Mode::Pinned(ProtocolVersion::V2025_11_25));
    let client = within(pinned.connect(HttpServer::new(&url).unwrap())).await.unwrap();
    let error = within(client.list_resources().page()).await.unwrap_err();
    assert_eq!((error.kind(), error.not_offered()), (ErrorKind::Misuse, Some(ServerFeature::Resources)));
    let error = within(client.call_tool("", json!([1])).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.not_offered()), (ErrorKind::Misuse, None));
}

/// What the server is told of it is in `dropped`.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_leaves_the_connection_usable() {
    let (address, _server) = serve(any_port().await);
    let client = connect(address).await;
    let call = client.call_tool("count", json!({ "to": 100, "delay_ms": 50 }));
    let dropped = tokio::time::timeout(Duration::from_millis(200), call.into_future()).await;
    assert!(dropped.is_err());
    client.call_tool("echo", json!({ "message": "still here" })).await.unwrap();
    client.close().await;
}

/// seed:B20, seed:B21: closing is shared, and a closed client refuses what comes later.
/// seed:S-99b, protocol:L-12
#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_calls_and_is_shared() {
    let (address, _server) = serve(any_port().await);
    let client = connect(address).await;
    let call = tokio::spawn(client.call_tool("count", json!({ "to": 100, "delay_ms": 50 })).into_future());
    tokio::task::yield_now().await;
    let clone = client.clone();
    tokio::join!(client.close(), clone.close());
    let (kind, _) = summary(call.await.unwrap());
    assert_eq!(kind, "closed");
    assert_eq!(summary(client.ping().await), ("closed", false));
}

/// A call that is dropped when its runtime is gone is dropped in silence.
#[test]
fn a_call_may_be_dropped_outside_of_the_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (client, call) = runtime.block_on(async {
        let (address, _) = serve(any_port().await);
        let client = connect(address).await;
        let mut call =
            Box::pin(client.call_tool("count", json!({ "to": 100, "delay_ms": 50 })).into_future());
        let begun = tokio::time::timeout(Duration::from_millis(100), &mut call).await;
        assert!(begun.is_err());
        (client, call)
    });
    drop(call);
    drop(runtime);
    let late = client.call_tool("echo", json!({ "message": "x" })).into_future();
    drop(late);
    drop(client);
}

/// protocol:L-13: a server that cannot be reached at all.
#[tokio::test]
async fn nobody_listens_there() {
    let nobody = Address::keep();
    let outcome = builder().connect(HttpServer::new(&nobody.url()).unwrap()).await;
    assert_eq!(summary(outcome), ("transport", false));
}

/// auth:G-05: what the transport takes for the answer and the core does not ends the call all the same, at once.
#[tokio::test]
async fn an_exchange_that_ends_without_an_answer_ends_its_call() {
    let listener = any_port().await;
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut request, mut piece) = (String::new(), [0; 4096]);
            while !request.contains("\"method\":\"initialize\"") {
                let length = stream.read(&mut piece).await.unwrap();
                assert!(length > 0, "{request}");
                request.push_str(&String::from_utf8_lossy(&piece[..length]));
            }
            let id = request.split("\"id\":").nth(1).unwrap().split([',', '}']).next().unwrap();
            let body = format!(r#"[{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}]"#);
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            let response = format!("{head}content-length: {length}\r\n\r\n{body}");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    let server = HttpServer::new(&format!("http://{address}/mcp")).unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(30), builder().connect(server)).await;
    assert_eq!(summary(outcome.expect("long before its deadline")), ("peer_misbehaved", false));
}
