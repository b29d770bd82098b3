//! Documents from URLs that a server named.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

use std::time::Duration;

use mcp_transport::http::{AddressClass, AddressPolicy, Document, FetchLimits, Fetcher, HttpServer, Proxy};
use mcp_transport::{Error, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LOOPBACK: AddressPolicy = AddressPolicy::SameNetworkAs(AddressClass::Loopback);
const JSON: &str = "content-type: application/json\r\n";

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("no progress")
}

struct Server(TcpListener);

impl Server {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}/doc?q=canary", self.0.local_addr().unwrap())
    }

    /// The next connection and the head of its request.
    async fn request(&self) -> (TcpStream, String) {
        let (mut stream, _) = within(self.0.accept()).await.unwrap();
        let mut head = Vec::new();
        let mut piece = [0; 1024];
        while !head.ends_with(b"\r\n\r\n") {
            let read = within(stream.read(&mut piece)).await.unwrap();
            assert!(read > 0, "no request");
            head.extend_from_slice(piece.get(..read).unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    }

    async fn respond(&self, status: &str, head: &str, body: &str) -> String {
        let (mut stream, request) = self.request().await;
        let length = body.len();
        let response = format!("HTTP/1.1 {status}\r\n{head}content-length: {length}\r\n\r\n{body}");
        let _ = stream.write_all(response.as_bytes()).await;
        request
    }
}

fn fetcher() -> Fetcher {
    Fetcher::new(LOOPBACK).unwrap()
}

async fn fetch(server: &Server, status: &str, head: &str, body: &str) -> Result<Document, Error> {
    let (fetcher, url) = (fetcher(), server.url());
    let (result, _) = tokio::join!(within(fetcher.get(&url)), server.respond(status, head, body));
    if let Err(error) = &result {
        assert!(!error.outcome_unknown());
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }
    result
}

/// auth:SEC-03: nothing that belongs to the MCP server goes along
#[tokio::test]
async fn a_document_is_fetched_without_anything_of_the_mcp_server() {
    let server = Server::start().await;
    let mcp = HttpServer::new("http://localhost:1/mcp").unwrap();
    let mcp = mcp.header("Authorization", "Bearer canary").unwrap().header("X-Key", "canary").unwrap();
    let (fetcher, url) = (mcp.fetcher(LOOPBACK).unwrap(), server.url().replace("/doc", "/canary"));
    let (document, request) =
        tokio::join!(within(fetcher.get(&url)), server.respond("200 OK", JSON, r#" {"issuer":"x"} "#));
    let document = document.unwrap();
    assert_eq!(document.url(), url);
    assert_eq!(&document.body()[..], br#" {"issuer":"x"} "#);
    assert!(!format!("{document:?}").contains("canary"));
    let mut names: Vec<&str> =
        request.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    assert!(request.starts_with("GET /canary?q=canary HTTP/1.1\r\n"));
}

/// auth:LIM-01, auth:SEC-14
#[tokio::test]
async fn what_is_no_document_is_refused_by_reason() {
    let server = Server::start().await;
    for (status, head, body, kind) in [
        ("404 Not Found", JSON, "{\"canary\":1}", ErrorKind::Status),
        ("401 Unauthorized", JSON, "{}", ErrorKind::Status),
        ("500 Internal Server Error", "", "canary", ErrorKind::Status),
        ("204 No Content", "", "", ErrorKind::Status),
        ("200 OK", "", "{}", ErrorKind::PeerMisbehaved),
        ("200 OK", "content-type: text/html\r\n", "canary", ErrorKind::PeerMisbehaved),
        ("200 OK", JSON, "canary", ErrorKind::PeerMisbehaved),
        ("200 OK", JSON, "", ErrorKind::PeerMisbehaved),
        ("200 OK", JSON, "{} {}", ErrorKind::PeerMisbehaved),
        (
            "200 OK",
            "content-encoding: gzip\r\ncontent-type: application/json\r\n",
            "{}",
            ErrorKind::PeerMisbehaved,
        ),
        ("304 Not Modified", "", "", ErrorKind::Status),
        ("302 Found", "", "", ErrorKind::PeerMisbehaved),
        ("302 Found", "location: http://169.254.169.254/\r\n", "", ErrorKind::PeerMisbehaved),
        ("308 Permanent Redirect", "location: //localhost/doc\r\n", "", ErrorKind::PeerMisbehaved),
    ] {
        let error = fetch(&server, status, head, body).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status} {head} {body}");
        assert_eq!(error.status(), status.split(' ').next().unwrap().parse().ok());
    }
}

/// auth:LIM-01: below, at, above
#[tokio::test]
async fn documents_are_cut_at_their_limit() {
    let server = Server::start().await;
    let mut limits = FetchLimits::default();
    limits.max_body_bytes = 10;
    let fetcher = fetcher().limits(limits);
    for (length, chunked) in [(9, false), (10, false), (11, false), (10, true), (11, true)] {
        let url = server.url();
        let body = format!("\"{}\"", "x".repeat(length - 2));
        let script = async {
            if !chunked {
                server.respond("200 OK", JSON, &body).await;
                return;
            }
            let (mut stream, _) = server.request().await;
            let mut response = format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n");
            for character in body.chars() {
                response.push_str(&format!("1\r\n{character}\r\n"));
            }
            let _ = stream.write_all(format!("{response}0\r\n\r\n").as_bytes()).await;
        };
        let (result, ()) = tokio::join!(within(fetcher.get(&url)), script);
        match result {
            Ok(document) => assert_eq!((document.body().len(), length <= 10), (length, true)),
            Err(error) => {
                assert_eq!(length, 11);
                assert_eq!(error.kind(), ErrorKind::LimitExceeded);
                assert_eq!(error.limit().unwrap().name, "max_body_bytes");
            }
        }
    }
}

/// auth:LIM-03
#[tokio::test]
async fn redirects_within_the_origin_are_followed_three_times() {
    let server = Server::start().await;
    for hops in [1, 3, 4] {
        let (fetcher, url) = (fetcher(), server.url());
        let (result, ()) = tokio::join!(within(fetcher.get(&url)), async {
            for (hop, status) in ["301 x", "302 x", "303 x", "307 x"].iter().take(hops).enumerate() {
                server.respond(status, &format!("location: /{hop}\r\n"), "").await;
            }
            if hops <= 3 {
                let request = server.respond("200 OK", JSON, "{}").await;
                assert!(request.starts_with(&format!("GET /{} HTTP/1.1\r\n", hops - 1)), "{request}");
            }
        });
        match result {
            Ok(document) => assert!(document.url().ends_with(&format!("/{}", hops - 1))),
            Err(error) => assert_eq!((error.kind(), hops), (ErrorKind::PeerMisbehaved, 4)),
        }
    }
}

/// auth:SEC-02
#[tokio::test]
async fn addresses_outside_the_policy_see_nothing() {
    let server = Server::start().await;
    let port = server.0.local_addr().unwrap().port();
    for policy in [AddressPolicy::Public, AddressPolicy::SameNetworkAs(AddressClass::Private)] {
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0177.0.0.1"] {
            let fetcher = Fetcher::new(policy).unwrap();
            let error = within(fetcher.get(&format!("http://{host}:{port}/"))).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Connect, "{host}");
        }
    }
    for host in ["169.254.169.254", "[fe80::1]", "0.0.0.0", "[64:ff9b::a9fe:a9fe]"] {
        let error = within(fetcher().get(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{host}");
        assert!(error.to_string().contains("policy"), "{error}");
    }
    // A proxy would look the name up itself.
    let proxy = Proxy::http(&format!("http://127.0.0.1:{port}")).unwrap();
    let error = within(fetcher().proxy(proxy).get("http://example.com/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(tokio::time::timeout(Duration::from_millis(20), server.0.accept()).await.is_err());
}

#[tokio::test]
async fn urls_that_are_none_of_a_document_are_misuse() {
    for url in ["", "/doc", "file:///etc/passwd", "ftp://h/", "javascript:alert(1)", "http://user:canary@h/"]
    {
        let error = fetcher().get(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{url}");
        assert!(!error.to_string().contains("canary"));
    }
}

/// auth:SEC-18
#[tokio::test]
async fn a_dripping_document_is_cut_at_the_deadline() {
    let server = Server::start().await;
    let mut limits = FetchLimits::default();
    limits.total = Duration::from_secs(10);
    let (fetcher, url) = (fetcher().limits(limits), server.url());
    let (result, ()) = tokio::join!(within(fetcher.get(&url)), async {
        let (mut stream, _) = server.request().await;
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 100000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The request has come in time; from here on the clock is a virtual one.
        tokio::time::pause();
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(!error.outcome_unknown());
}
