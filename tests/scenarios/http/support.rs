//! What the HTTP scenarios share.

use std::time::Duration;

use bytes::Bytes;
use mcp_jsonrpc::{Incoming, Message, RequestId};
use mcp_transport::http::{
    EventStream, Exchange, HttpConnection, HttpLimits, HttpServer, HttpTimeouts, Post, RequestHead,
};
use mcp_transport::{Error, Received};

use super::script::{PATIENCE, Server, within};

pub(crate) const VERSION: &str = "2025-11-25";

/// The messages of an exchange or stream in short form, and how it ended.
pub(crate) type Outcome = (Vec<String>, Result<(), Error>);

pub(crate) fn connect(server: &Server) -> HttpConnection {
    connect_with(server, |_| {}, |_| {})
}

pub(crate) fn connect_with(
    server: &Server,
    limits: impl FnOnce(&mut HttpLimits),
    timeouts: impl FnOnce(&mut HttpTimeouts),
) -> HttpConnection {
    let mut all_limits = HttpLimits::default();
    limits(&mut all_limits);
    let mut all_timeouts = HttpTimeouts::default();
    // Short, since nothing here is far away.
    all_timeouts.reconnect_initial = Duration::from_millis(20);
    // Whether a connection is used again must not depend on how busy the machine is.
    all_timeouts.pool_idle = PATIENCE;
    all_timeouts.linger = PATIENCE;
    timeouts(&mut all_timeouts);
    HttpServer::new(&server.url()).unwrap().limits(all_limits).timeouts(all_timeouts).connect()
}

pub(crate) fn head() -> RequestHead {
    RequestHead::legacy(VERSION)
}

/// A call with the id 1.
pub(crate) fn call() -> Post {
    call_with(1)
}

pub(crate) fn call_with(id: i64) -> Post {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
    Post::request(Bytes::from(body), RequestId::Integer(id), head())
}

pub(crate) fn modern_call() -> Post {
    let mut head = RequestHead::modern("2026-07-28", "tools/call");
    head.name = Some("t".to_owned());
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    Post::request(Bytes::from(body), RequestId::Integer(1), head)
}

pub(crate) fn initialize() -> Post {
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    Post::initialize(Bytes::from(body), RequestId::Integer(0))
}

pub(crate) fn notification() -> Post {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    Post::notification(Bytes::from(body), head())
}

pub(crate) fn answer(id: i64) -> Post {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    Post::response(Bytes::from(body), head())
}

pub(crate) const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
pub(crate) const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#;

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Posts and collects everything.
pub(crate) async fn exchange(connection: &HttpConnection, post: Post) -> Outcome {
    match within(connection.post(post)).await {
        Ok(exchange) => drain(exchange).await,
        Err(error) => (Vec::new(), Err(error)),
    }
}

pub(crate) async fn drain(mut exchange: Exchange) -> Outcome {
    let mut messages = Vec::new();
    loop {
        match within(exchange.next()).await {
            Ok(Some(received)) => messages.push(short(&received)),
            Ok(None) => break,
            Err(error) => {
                assert!(matches!(exchange.next().await, Ok(None)), "an error is the end");
                return (messages, Err(error));
            }
        }
    }
    (messages, Ok(()))
}

pub(crate) async fn next(exchange: &mut Exchange) -> String {
    short(&within(exchange.next()).await.unwrap().expect("a message"))
}

pub(crate) async fn next_event(stream: &mut EventStream) -> String {
    short(&within(stream.next()).await.unwrap().expect("a message"))
}

pub(crate) fn short(received: &Received<'_>) -> String {
    match received {
        Received::Message(Incoming::Single(message)) => short_message(message),
        Received::Message(Incoming::Batch(items)) => {
            let items: Vec<String> =
                items.iter().map(|item| item.as_ref().map_or("invalid".to_owned(), short_message)).collect();
            format!("[{}]", items.join(" "))
        }
        Received::Invalid { .. } => "invalid".to_owned(),
        Received::OversizedStart { .. } => "oversized start".to_owned(),
        Received::Oversized { .. } => "oversized".to_owned(),
        Received::Gap => "gap".to_owned(),
        _ => "new kind".to_owned(),
    }
}

fn short_message(message: &Message<'_>) -> String {
    match message {
        Message::Request(request) => format!("request {} {}", request.id, request.method),
        Message::Notification(notification) => format!("notification {}", notification.method),
        Message::Response(response) => format!("result {}", response.id),
        Message::Error(error) => match &error.id {
            Some(id) => format!("error {id}"),
            None => "error".to_owned(),
        },
    }
}
