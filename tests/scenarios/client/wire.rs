//! What the facade puts on the wire of Streamable HTTP, message by message, against a server that notes everything.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::{
    Client, ElicitRequest, ElicitResult, ElicitationContext, ErrorCode, ErrorKind, HttpServer, Mode,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::peer::{builder, connected, diagnostics, pipe, recorded};
use crate::http::script::{Peer, Request, Server, rounds, within};

/// What a server knows of its client.
#[derive(Default)]
struct Notes {
    requests: Mutex<Vec<Request>>,
    answered: Notify,
}

impl Notes {
    fn all(&self, method: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let bodies = requests.iter().filter(|request| request.method == method).map(|request| &request.body);
        bodies.map(|body| serde_json::from_str(body).unwrap_or(Value::Null)).collect()
    }
}

/// Serves each connection by `answer`, which gets the message of the request, until the test ends.
async fn serve<F>(server: Server, notes: Arc<Notes>, answer: F)
where
    F: AsyncFn(&mut Peer, &Request, Value) + Clone + 'static,
{
    let local = tokio::task::LocalSet::new();
    let accepting = async {
        loop {
            let mut peer = server.accept().await;
            let (notes, answer) = (Arc::clone(&notes), answer.clone());
            tokio::task::spawn_local(async move {
                while let Some(request) = peer.try_request().await {
                    let message = serde_json::from_str(&request.body).unwrap_or(Value::Null);
                    answer(&mut peer, &request, message).await;
                    notes.requests.lock().unwrap().push(request);
                }
            });
        }
    };
    local.run_until(accepting).await;
}

/// Plays a test against the server until the test is over.
async fn against<F>(server: Server, notes: &Arc<Notes>, answer: F, test: impl Future<Output = ()>)
where
    F: AsyncFn(&mut Peer, &Request, Value) + Clone + 'static,
{
    tokio::select! {
        () = serve(server, Arc::clone(notes), answer) => {}
        () = test => {}
    }
}

fn result(message: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}

fn initialized(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "ttlMs": 0, "cacheScope": "private",
    })
}

fn event(text: &str) -> String {
    format!("data: {text}\n\n")
}

async fn connect(url: &str, mode: Mode) -> Client {
    let server = HttpServer::new(url).unwrap().header("authorization", "Bearer a").unwrap();
    let accept = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::accept_url() };
    within(builder().mode(mode).on_elicitation(accept).connect(server)).await.unwrap()
}

/// protocol:H-01, protocol:J-16: each message is one object in a POST of its own. seed:S-97e: so is each answer. protocol:E-09: the URL of a
/// question is not fetched. protocol:E-16: consent changes nothing of what the client authenticates with. protocol:H-43: a header's name may be written in
/// any case.
#[tokio::test]
async fn each_message_is_a_post_of_its_own_and_a_url_is_left_alone() {
    let server = Server::start().await;
    let url = server.url();
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let bait = format!("http://{}/consent", trap.local_addr().unwrap());
    let notes = Arc::new(Notes::default());
    let noted = Arc::clone(&notes);
    let answer = async move |peer: &mut Peer, request: &Request, message: Value| match (
        request.method.as_str(),
        message["method"].as_str(),
    ) {
        ("POST", Some("initialize")) => {
            let body = result(&message, &initialized("2025-11-25"));
            peer.respond("200 OK", "CONTENT-TYPE: application/json\r\nMCP-SESSION-ID: Odd-Case\r\n", &body)
                .await;
        }
        ("POST", Some("tools/call")) => {
            let params = json!({ "mode": "url", "message": "Go?", "url": bait, "elicitationId": "e" });
            let question =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params });
            peer.stream("").await;
            peer.chunk(&event(&question.to_string())).await;
            noted.answered.notified().await;
            peer.chunk(&event(&result(&message, &json!({ "content": [] })))).await;
            peer.end().await;
        }
        ("POST", method) => {
            peer.accepted().await;
            if method.is_none() {
                noted.answered.notify_one();
            }
        }
        ("DELETE", _) => peer.respond("200 OK", "", "").await,
        _ => peer.respond("405 Method Not Allowed", "", "").await,
    };
    let test = async {
        let client = connect(&url, Mode::Legacy).await;
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        client.close().await;
    };
    against(server, &notes, answer, test).await;
    let posts = notes.all("POST");
    let kinds: Vec<&str> = posts.iter().map(|post| post["method"].as_str().unwrap_or("answer")).collect();
    // The call is noted when its stream has ended, which is after the answer in the middle of it.
    assert_eq!(kinds, ["initialize", "notifications/initialized", "answer", "tools/call"]);
    assert!(posts.iter().all(Value::is_object));
    assert_eq!(posts[2], json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept" } }));
    {
        let requests = notes.requests.lock().unwrap();
        assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer a")));
        let session = |request: &&Request| request.header("mcp-session-id") == Some("Odd-Case");
        assert_eq!(requests.iter().filter(session).count(), requests.len() - 1, "all but initialize");
    }
    // Asked of the system itself: the runtime may not have heard yet of a connection that waits.
    assert!(trap.into_std().unwrap().accept().is_err(), "somebody fetched the URL");
}

/// protocol:H-19: the header is sent under 2025-03-26 too. seed:S-68, seed:S-74: one standing stream, whoever handles what. protocol:H-21: a
/// response on it ends no call that it does not name.
#[tokio::test]
async fn an_older_session_has_its_header_and_one_standing_stream() {
    let server = Server::start().await;
    let url = server.url();
    let notes = Arc::new(Notes::default());
    let (called, may_answer) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let answering = Arc::clone(&may_answer);
    let answer = async move |peer: &mut Peer, request: &Request, message: Value| match (
        request.method.as_str(),
        message["method"].as_str(),
    ) {
        ("GET", _) => {
            peer.stream("").await;
            called.notified().await;
            peer.chunk(&event(r#"{"jsonrpc":"2.0","id":999,"result":{"content":"not yours"}}"#)).await;
        }
        ("POST", Some("initialize")) => peer.json(&result(&message, &initialized("2025-03-26"))).await,
        ("POST", Some("tools/call")) => {
            called.notify_one();
            answering.notified().await;
            peer.json(&result(&message, &json!({ "content": [] }))).await;
        }
        _ => peer.accepted().await,
    };
    let (builder, events) = recorded(builder());
    let test = async {
        let server = HttpServer::new(&url).unwrap();
        let client = within(builder.connect(server)).await.unwrap();
        let first = tokio::spawn(client.call_tool("t", json!({})).into_future());
        within(async {
            while diagnostics(&events).is_empty() {
                rounds().await;
            }
        })
        .await;
        may_answer.notify_one();
        within(first).await.unwrap().unwrap();
        for _ in 0..2 {
            may_answer.notify_one();
            within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        }
        client.close().await;
    };
    against(server, &notes, answer, test).await;
    assert_eq!(diagnostics(&events), ["unknown_response"]);
    let requests = notes.requests.lock().unwrap();
    assert_eq!(requests.iter().filter(|request| request.method == "GET").count(), 1);
    for request in requests.iter().filter(|request| !request.body.contains("\"initialize\"")) {
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-03-26"), "{request:?}");
    }
}

/// protocol:H17: a server from before Streamable HTTP refuses both handshakes and is found by its event stream.
#[tokio::test]
async fn a_server_that_refuses_every_post_is_met_on_its_event_stream() {
    let server = Server::start().await;
    let url = server.url();
    let notes = Arc::new(Notes::default());
    let (down, up) = tokio::sync::mpsc::unbounded_channel::<String>();
    let up = Arc::new(tokio::sync::Mutex::new(up));
    let answer = async move |peer: &mut Peer, request: &Request, message: Value| match (
        request.method.as_str(),
        request.path.as_str(),
    ) {
        ("GET", "/mcp") => {
            peer.stream("").await;
            peer.chunk("event: endpoint\ndata: /messages\n\n").await;
            let mut messages = up.lock().await;
            while let Some(message) = messages.recv().await {
                peer.chunk(&event(&message)).await;
            }
        }
        ("POST", "/messages") => {
            peer.accepted().await;
            let reply = match message["method"].as_str() {
                Some("initialize") => initialized("2024-11-05"),
                Some("tools/call") => json!({ "content": [] }),
                _ => return,
            };
            down.send(result(&message, &reply)).unwrap();
        }
        _ => peer.respond("405 Method Not Allowed", "", "").await,
    };
    let test = async {
        let client = connect(&url, Mode::Auto).await;
        assert_eq!(client.protocol_version().as_str(), "2024-11-05");
        within(client.call_tool("t", json!({})).into_future()).await.unwrap();
        client.close().await;
    };
    against(server, &notes, answer, test).await;
    let requests = notes.requests.lock().unwrap();
    let refused = requests.iter().filter(|request| request.path == "/mcp" && request.method == "POST");
    let refused: Vec<bool> = refused.map(|request| request.body.contains("server/discover")).collect();
    assert_eq!(refused, [true, false], "the probe, then initialize");
}

/// protocol:H8: 404 with -32601 is the server's answer to the call, and no reason to look for another transport.
#[tokio::test]
async fn a_method_that_a_modern_server_lacks_is_its_error() {
    let server = Server::start().await;
    let url = server.url();
    let notes = Arc::new(Notes::default());
    let answer = async |peer: &mut Peer, _: &Request, message: Value| {
        if message["method"] == "server/discover" {
            return peer.json(&result(&message, &discovered())).await;
        }
        let error = json!({ "code": -32601, "message": "no such method" });
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string();
        peer.respond("404 Not Found", "content-type: application/json\r\n", &body).await;
    };
    let test = async {
        let client = connect(&url, Mode::Auto).await;
        let error = within(client.call_tool("t", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rpc);
        assert_eq!(error.error_object().map(|object| object.code), Some(ErrorCode::METHOD_NOT_FOUND));
        assert_eq!(error.status(), Some(404));
        client.close().await;
    };
    against(server, &notes, answer, test).await;
    assert!(notes.all("GET").is_empty());
}

/// protocol:H-39: a stream may tell of progress and end with a question; the call goes on with another request.
#[tokio::test]
async fn a_stream_may_end_with_a_question() {
    let server = Server::start().await;
    let url = server.url();
    let notes = Arc::new(Notes::default());
    let answer = async |peer: &mut Peer, _: &Request, message: Value| {
        if message["method"] == "server/discover" {
            return peer.json(&result(&message, &discovered())).await;
        }
        if message["params"]["requestState"] == "s" {
            assert_eq!(message["params"]["inputResponses"]["q"], json!({ "action": "accept" }));
            return peer.json(&result(&message, &json!({ "resultType": "complete", "content": [] }))).await;
        }
        let params = json!({ "mode": "url", "message": "Go?", "url": "https://example.com/go" });
        let question = json!({ "method": "elicitation/create", "params": params });
        let asks = json!({ "resultType": "input_required", "inputRequests": { "q": question }, "requestState": "s" });
        let token = &message["params"]["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": 1 });
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        peer.stream("").await;
        peer.chunk(&event(&progress.to_string())).await;
        peer.chunk(&event(&result(&message, &asks))).await;
        peer.end().await;
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let test = async {
        let client = connect(&url, Mode::Auto).await;
        let call = client
            .call_tool("t", json!({}))
            .on_progress(move |step| told.lock().unwrap().push(step.progress));
        within(call.into_future()).await.unwrap();
        client.close().await;
    };
    against(server, &notes, answer, test).await;
    assert_eq!(*seen.lock().unwrap(), [1.0]);
    assert_eq!(notes.all("POST").len(), 3);
}

/// field:FR-083: a stream that opens and says nothing ends its call with the call's own deadline.
#[tokio::test]
async fn a_modern_server_that_falls_silent_in_a_stream_costs_the_deadline() {
    let server = Server::start().await;
    let url = server.url();
    let notes = Arc::new(Notes::default());
    let answer = async |peer: &mut Peer, _: &Request, message: Value| {
        if message["method"] != "server/discover" {
            return peer.stream("").await;
        }
        peer.json(&result(&message, &discovered())).await;
    };
    let test = async {
        let client = connect(&url, Mode::Auto).await;
        let call = client.call_tool("t", json!({})).timeout(Duration::from_millis(50));
        assert_eq!(within(call.into_future()).await.unwrap_err().kind(), ErrorKind::Timeout);
        client.close().await;
    };
    against(server, &notes, answer, test).await;
}

/// field:FR-092: what is no sign of the older transport is shown as it is, and the older transport is not tried.
#[tokio::test]
async fn other_refusals_of_initialize_are_shown_and_lead_nowhere_else() {
    for status in ["401 Unauthorized", "403 Forbidden", "500 Internal Server Error"] {
        let server = Server::start().await;
        let url = server.url();
        let notes = Arc::new(Notes::default());
        let answer = async move |peer: &mut Peer, _: &Request, _: Value| peer.respond(status, "", "").await;
        let test = async {
            let server = HttpServer::new(&url).unwrap();
            let error = within(builder().mode(Mode::Legacy).connect(server)).await.unwrap_err();
            assert_eq!(error.status().map(|code| code.to_string()).as_deref(), status.split(' ').next());
        };
        against(server, &notes, answer, test).await;
        assert!(notes.all("GET").is_empty(), "{status}");
    }
}

/// field:FR-094: a ping that is answered with an error was answered, and the connection goes on.
#[tokio::test(start_paused = true)]
async fn an_error_to_a_ping_ends_nothing() {
    let (client, mut peer) = connected(builder()).await;
    for code in [-32601, -32603, 0] {
        let (pong, ()) = tokio::join!(client.ping().into_future(), async {
            let ping = peer.expect("ping").await;
            peer.refuse(&ping, code, "Method not supported: ping").await;
        });
        assert_eq!(pong.unwrap_err().kind(), ErrorKind::Rpc);
    }
    peer.answers_a_ping_of(&client).await;
}

/// protocol:L-33: the words of a modern server that refuses `initialize` reach the user.
#[tokio::test(start_paused = true)]
async fn what_a_modern_server_says_to_initialize_is_shown() {
    let (connection, mut peer) = pipe(64 * 1024);
    let (outcome, ()) = tokio::join!(builder().mode(Mode::Legacy).connect(connection), async {
        let initialize = peer.expect("initialize").await;
        peer.refuse(&initialize, -32601, "this server speaks 2026-07-28 only").await;
    });
    assert!(outcome.unwrap_err().to_string().contains("this server speaks 2026-07-28 only"));
}

/// field:FR-066, protocol:J-03: a server that says everything on both streams. The user is asked once, and each call has one
/// answer; the copies end nothing.
#[tokio::test]
async fn what_comes_on_two_streams_counts_once() {
    for standing_first in [true, false] {
        let server = Server::start().await;
        let url = server.url();
        let notes = Arc::new(Notes::default());
        let copies = Arc::new(tokio::sync::broadcast::Sender::<String>::new(8));
        let standing = Arc::clone(&copies);
        let answered = Arc::clone(&notes);
        let form = r#"{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}}"#;
        let answer = async move |peer: &mut Peer, request: &Request, message: Value| match (
            request.method.as_str(),
            message["method"].as_str(),
        ) {
            ("GET", _) => {
                let mut copies = standing.subscribe();
                peer.stream("").await;
                while let Ok(copy) = copies.recv().await {
                    peer.chunk(&event(&copy)).await;
                }
            }
            ("POST", Some("initialize")) => peer.json(&result(&message, &initialized("2025-11-25"))).await,
            ("POST", Some("tools/call")) => {
                peer.stream("").await;
                let say = async |peer: &mut Peer, text: &str| {
                    while standing.receiver_count() == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    if standing_first {
                        standing.send(text.to_owned()).unwrap();
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    peer.chunk(&event(text)).await;
                    if !standing_first {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        standing.send(text.to_owned()).unwrap();
                    }
                };
                say(peer, form).await;
                answered.answered.notified().await;
                say(peer, &result(&message, &json!({ "content": [] }))).await;
                peer.end().await;
            }
            ("POST", None) => {
                peer.accepted().await;
                answered.answered.notify_one();
            }
            _ => peer.accepted().await,
        };
        let asked = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&asked);
        let handler = move |_: ElicitRequest, _: ElicitationContext| {
            *counted.lock().unwrap() += 1;
            async { ElicitResult::accept(serde_json::Map::new()) }
        };
        let (builder, events) = recorded(builder());
        let test = async {
            let server = HttpServer::new(&url).unwrap();
            let client = within(builder.on_elicitation(handler).connect(server)).await.unwrap();
            within(client.call_tool("t", json!({})).into_future()).await.unwrap();
            // Each copy that is read is told of. What is on the stream of a call that was answered elsewhere nobody reads.
            let copies = if standing_first { 1 } else { 2 };
            within(async {
                while diagnostics(&events).len() < copies {
                    rounds().await;
                }
            })
            .await;
            assert!(client.close_reason().is_none());
            client.close().await;
        };
        against(server, &notes, answer, test).await;
        assert_eq!(*asked.lock().unwrap(), 1, "standing stream first: {standing_first}");
        let posted = notes.all("POST");
        let answers: Vec<&Value> = posted.iter().filter(|message| message["method"].is_null()).collect();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!((&answers[0]["id"], &answers[0]["result"]["action"]), (&json!(3), &json!("accept")));
    }
}
