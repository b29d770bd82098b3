use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{answer, call, initialize, initialized, request, text_of};
use crate::{Era, Limits, http};

struct Peer {
    address: SocketAddr,
    session: Option<String>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Peer {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, session: None, server: tokio::spawn(http::serve(listener, Era::Legacy, limits)) }
    }

    async fn ready(capabilities: Value) -> Self {
        let mut peer = Self::start(Limits::default()).await;
        peer.open(&capabilities).await;
        peer
    }

    async fn open(&mut self, capabilities: &Value) {
        self.session = None;
        let response = self.post(&initialize(0, capabilities)).await;
        assert_eq!(response.status(), StatusCode::OK);
        self.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
        assert_eq!(whole(response).await["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(self.post(&initialized()).await.status(), StatusCode::ACCEPTED);
    }

    fn head(&self, method: Method) -> hyper::http::request::Builder {
        let builder = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        match &self.session {
            Some(id) => builder.header("mcp-session-id", id).header("mcp-protocol-version", "2025-11-25"),
            None => builder,
        }
    }

    /// A connection for each request, so that one open stream never stands in another's way.
    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        tokio::time::timeout(Duration::from_secs(60), sender.send_request(request)).await.unwrap().unwrap()
    }

    async fn post(&self, message: &Value) -> Response<Incoming> {
        self.send(self.head(Method::POST).body(message.to_string().into()).unwrap()).await
    }

    async fn bare(&self, method: Method) -> Response<Incoming> {
        self.send(self.head(method).body(Full::default()).unwrap()).await
    }
}

async fn whole(response: Response<Incoming>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

struct Stream {
    body: Incoming,
    text: String,
}

impl Stream {
    fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let data = block.strip_prefix("event: message\ndata: ").unwrap();
                let message = serde_json::from_str(data).unwrap();
                self.text = rest.to_owned();
                return Some(message);
            }
            let frame = tokio::time::timeout(Duration::from_secs(60), self.body.frame()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
        }
    }
}

#[tokio::test]
async fn a_call_streams_its_progress_and_ends_after_its_answer() {
    let peer = Peer::ready(json!({})).await;
    let mut stream = Stream::of(peer.post(&call(1, "count", json!({"to": 2, "delay_ms": 1}))).await);
    for step in 1..=2 {
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], step);
    }
    assert_eq!(stream.next().await.unwrap()["result"]["structuredContent"]["total"], 2);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_question_comes_on_the_calls_own_stream_and_its_answer_by_another_post() {
    let peer = Peer::ready(json!({"elicitation": {"form": {}, "url": {}}})).await;
    let mut stream = Stream::of(peer.post(&call(1, "book_table", json!({}))).await);
    let question = stream.next().await.unwrap();
    let result = json!({"action": "accept", "content": {"name": "Ada", "seating": "window"}});
    assert_eq!(peer.post(&answer(&question["id"], result)).await.status(), StatusCode::ACCEPTED);
    assert_eq!(text_of(&stream.next().await.unwrap()), "booked for Ada: 2 guests, window, with a reminder");
    assert_eq!(stream.next().await, None);

    let mut stream = Stream::of(peer.post(&call(2, "connect_account", json!({}))).await);
    let question = stream.next().await.unwrap();
    peer.post(&answer(&question["id"], json!({"action": "accept"}))).await;
    let complete = stream.next().await.unwrap();
    assert_eq!(complete["params"]["elicitationId"], question["params"]["elicitationId"]);
    assert_eq!(text_of(&stream.next().await.unwrap()), "account connected");
}

#[tokio::test]
async fn a_cancelled_calls_stream_ends_without_an_answer() {
    let peer = Peer::ready(json!({})).await;
    let mut stream = Stream::of(peer.post(&call(1, "count", json!({"to": 9, "delay_ms": 1000}))).await);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(peer.post(&cancel).await.status(), StatusCode::ACCEPTED);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn other_requests_are_answered_in_json() {
    let peer = Peer::ready(json!({})).await;
    let response = peer.post(&request(1, "tools/list")).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(whole(response).await["result"]["tools"][0]["name"], "count");
    let response = peer.post(&request(2, "prompts/list")).await;
    assert_eq!(whole(response).await["error"]["code"], -32601);
}

#[tokio::test]
async fn the_session_is_required_known_and_gone_after_delete() {
    let mut peer = Peer::ready(json!({})).await;
    let session = peer.session.take();
    assert_eq!(peer.post(&request(1, "tools/list")).await.status(), StatusCode::BAD_REQUEST);
    peer.session = Some("unknown".into());
    assert_eq!(peer.post(&request(1, "tools/list")).await.status(), StatusCode::NOT_FOUND);
    peer.session = session;
    let mut stream = Stream::of(peer.bare(Method::GET).await);
    let mut running = Stream::of(peer.post(&call(2, "count", json!({"to": 9, "delay_ms": 1000}))).await);
    assert_eq!(peer.bare(Method::DELETE).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(stream.next().await, None);
    assert_eq!(running.next().await, None);
    assert_eq!(peer.post(&request(1, "tools/list")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(peer.bare(Method::DELETE).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_sessions_own_stream_is_open_once_at_a_time() {
    let peer = Peer::ready(json!({})).await;
    let first = Stream::of(peer.bare(Method::GET).await);
    assert_eq!(peer.bare(Method::GET).await.status(), StatusCode::CONFLICT);
    drop(first);
    let again = tokio::time::timeout(Duration::from_secs(60), async {
        while peer.bare(Method::GET).await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    });
    assert!(again.await.is_ok(), "the stream can be opened again after its client left");
}

#[tokio::test]
async fn every_wrong_head_has_its_status() {
    let peer = Peer::ready(json!({})).await;
    let body = request(1, "ping").to_string();
    let id = peer.session.clone().unwrap();
    for (name, value, expected) in [
        ("content-type", "text/plain", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("content-type", "application/json; charset=utf-8", StatusCode::OK),
        ("accept", "application/json", StatusCode::NOT_ACCEPTABLE),
        ("accept", "text/event-stream, application/json;q=0.9", StatusCode::OK),
        ("mcp-protocol-version", "2025-03-26", StatusCode::BAD_REQUEST),
        ("mcp-protocol-version", "", StatusCode::BAD_REQUEST),
        ("origin", "https://evil.example", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("origin", "http://localhost:3000", StatusCode::OK),
        ("origin", "http://[::1]:3000", StatusCode::OK),
        ("mcp-session-id", &id, StatusCode::OK),
    ] {
        let mut wrong = peer.head(Method::POST).body(Full::from(body.clone())).unwrap();
        wrong.headers_mut().insert(name, value.parse().unwrap());
        assert_eq!(peer.send(wrong).await.status(), expected, "{name}: {value}");
    }
    let mut unversioned = peer.head(Method::POST).body(Full::from(body.clone())).unwrap();
    unversioned.headers_mut().remove("mcp-protocol-version");
    assert_eq!(peer.send(unversioned).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(peer.bare(Method::PUT).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    let mut elsewhere = peer.head(Method::POST).body(Full::from(body)).unwrap();
    *elsewhere.uri_mut() = "/".parse().unwrap();
    assert_eq!(peer.send(elsewhere).await.status(), StatusCode::NOT_FOUND);
    let broken = peer.head(Method::POST).body(Full::from("{")).unwrap();
    let refused = peer.send(broken).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(whole(refused).await["error"]["code"], -32700);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let limits = Limits { message_bytes: 300, ..Limits::default() };
    let mut peer = Peer::start(limits).await;
    peer.open(&json!({})).await;
    let empty = call(1, "echo", json!({"message": ""})).to_string().len();
    for (length, expected) in
        [(299, StatusCode::OK), (300, StatusCode::OK), (301, StatusCode::PAYLOAD_TOO_LARGE)]
    {
        let message = call(1, "echo", json!({"message": "x".repeat(length - empty)}));
        let response = peer.post(&message).await;
        assert_eq!(response.status(), expected, "{length} bytes");
        // The answer, and with it the call's id, is read to its end before the next call.
        let _ = response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn one_session_too_many_pushes_out_the_oldest_idle_one() {
    let limits = Limits { sessions: 2, ..Limits::default() };
    let mut peer = Peer::start(limits).await;
    peer.open(&json!({})).await;
    let busy = peer.session.clone();
    let _running = Stream::of(peer.post(&call(1, "count", json!({"to": 900, "delay_ms": 1000}))).await);
    peer.open(&json!({})).await;
    let idle = peer.session.clone();
    peer.open(&json!({})).await;
    let _also_running = Stream::of(peer.post(&call(1, "count", json!({"to": 900, "delay_ms": 1000}))).await);
    peer.session = busy;
    assert_eq!(peer.post(&request(2, "ping")).await.status(), StatusCode::OK);
    peer.session = idle;
    assert_eq!(peer.post(&request(2, "ping")).await.status(), StatusCode::NOT_FOUND);
    peer.session = None;
    assert_eq!(peer.post(&initialize(0, &json!({}))).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}
