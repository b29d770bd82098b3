//! The transport of 2024-11-05: one stream down, one URL up.

use bytes::Bytes;
use mcp_transport::ErrorKind;
use mcp_transport::http::{HttpServer, SseReceiver, SseSender};

use super::script::{PATIENCE, Peer, Server, at_the_deadline, within};
use super::support::*;

async fn open(
    server: &Server,
    first: &str,
) -> (Result<Option<(SseSender, SseReceiver)>, mcp_transport::Error>, Peer) {
    let connection = connect(server);
    tokio::join!(within(connection.open_sse_channel()), async {
        let (mut peer, get) = server.request().await;
        assert_eq!((get.method.as_str(), get.header("accept")), ("GET", Some("text/event-stream")));
        assert_eq!(get.header("mcp-protocol-version"), None);
        peer.stream("").await;
        peer.chunk(first).await;
        peer
    })
}

async fn recv(receiver: &mut SseReceiver) -> String {
    short(&within(receiver.recv()).await.unwrap())
}

/// protocol:H-61, protocol:H-62, protocol:H-63
#[tokio::test]
async fn messages_go_up_by_post_and_come_down_by_the_stream() {
    let server = Server::start().await;
    let (opened, mut peer) = open(&server, "event: endpoint\ndata: /messages?sessionId=7\n\n").await;
    let (sender, mut receiver) = opened.unwrap().unwrap();
    assert!(!format!("{sender:?}").contains("sessionId"));
    let script = async {
        let (mut other, post) = server.request().await;
        assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/messages?sessionId=7"));
        assert_eq!(post.body, "{}");
        other.respond("202 Accepted", "", "Accepted").await;
        // A second endpoint counts for nothing (auth:SEC-17), other events neither.
        peer.chunk("event: endpoint\ndata: /elsewhere\n\n: ka\n\ndata:\n\n").await;
        peer.chunk(&format!("event: message\ndata: {RESULT}\n\n")).await;
        let post = other.request().await;
        assert_eq!(post.path, "/messages?sessionId=7");
        other.respond("200 OK", "", "").await;
        peer.reset();
    };
    let client = async {
        sender.send(Bytes::from_static(b"{}")).await.unwrap();
        assert_eq!(recv(&mut receiver).await, "result 1");
        sender.send(Bytes::from_static(b"{}")).await.unwrap();
        // protocol:H-64: the end of the stream is the end.
        let error = within(receiver.recv()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        let error = within(receiver.recv()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    };
    tokio::join!(script, client);
}

/// auth:SEC-17, auth:SEC-07
#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    for endpoint in
        ["http://evil.example/m", "//evil.example/m", r"\\evil.example\m", "http://a:b@127.0.0.1/m"]
    {
        let server = Server::start().await;
        let (opened, mut peer) = open(&server, &format!("event: endpoint\ndata: {endpoint}\n\n")).await;
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::PeerMisbehaved, "{endpoint}");
        peer.closed().await;
    }
}

/// RFC 3986 section 5.1.3: a reference is relative to the URL that the stream was got from in the end.
#[tokio::test]
async fn the_endpoint_is_relative_to_where_the_stream_was_moved() {
    let server = Server::start().await;
    let connection = connect(&server);
    let script = async {
        let (mut peer, _) = server.request().await;
        peer.respond("301 Go", "location: /sse/\r\n", "").await;
        assert_eq!(peer.request().await.path, "/sse/");
        peer.stream("").await;
        peer.chunk("event: endpoint\ndata: messages?id=7\n\n").await;
        let (mut other, post) = server.request().await;
        other.respond("202 Accepted", "", "").await;
        assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/sse/messages?id=7"));
    };
    let client = async {
        let (sender, _receiver) = connection.open_sse_channel().await.unwrap().unwrap();
        sender.send(Bytes::from_static(b"{}")).await.unwrap();
    };
    within(async { tokio::join!(script, client) }).await;
}

/// protocol:H-61: anything else is not this transport
#[tokio::test]
async fn other_streams_are_not_this_transport() {
    for first in [&event(RESULT), "event: ping\ndata: x\n\n", "id: 1\ndata:\n\n"] {
        let server = Server::start().await;
        let (opened, _peer) = open(&server, first).await;
        assert!(opened.unwrap().is_none(), "{first}");
    }
    for response in
        ["HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]
    {
        let server = Server::start().await;
        let connection = connect(&server);
        let (opened, ()) = tokio::join!(connection.open_sse_channel(), async {
            let (mut peer, _) = server.request().await;
            peer.send(response).await;
        });
        assert!(opened.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_silent_stream_is_left_at_the_deadline() {
    let server = Server::start().await;
    let connection = connect_with(&server, |_| {}, |timeouts| timeouts.head = PATIENCE / 4);
    let (opened, ()) = tokio::join!(connection.open_sse_channel(), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        at_the_deadline(peer.closed()).await;
    });
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn a_refused_message_is_an_error_of_its_sender() {
    let server = Server::start().await;
    let described = HttpServer::new(&server.url()).unwrap().header("X-Api-Key", "k").unwrap();
    let connection = described.connect();
    let (opened, mut peer) = tokio::join!(connection.open_sse_channel(), async {
        let (mut peer, _) = server.request().await;
        peer.stream("").await;
        peer.chunk("event: endpoint\ndata: /m\n\n").await;
        peer
    });
    let (sender, mut receiver) = opened.unwrap().unwrap();
    let (result, ()) = tokio::join!(sender.send(Bytes::from_static(b"{}")), async {
        let (mut other, post) = server.request().await;
        assert_eq!(post.header("x-api-key"), Some("k"));
        other.respond("400 Bad Request", "content-type: text/plain\r\n", "No transport found").await;
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "the server answered 400 Bad Request: \"No transport found\""
    );
    peer.chunk(&event(RESULT)).await;
    assert_eq!(recv(&mut receiver).await, "result 1");
}
