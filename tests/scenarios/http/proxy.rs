//! HTTP proxies: whole requests for `http`, a tunnel for `https`, and whose fault a failure is.

use std::time::Duration;

use mcp_transport::http::{AddressClass, AddressPolicy, HttpServer, HttpTimeouts, Proxy, TlsOptions};
use mcp_transport::{Error, ErrorKind};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use super::script::{Address, Peer, Request, Server, at_the_deadline, within};
use super::support::*;
use super::tls::{authority, certificate, serve};

fn proxy(server: &Server) -> Proxy {
    Proxy::http(&format!("http://user:canary@{}", server.address())).unwrap()
}

fn https(port: u16) -> HttpServer {
    HttpServer::new(&format!("https://localhost:{port}/mcp")).unwrap()
}

/// `user:canary`
const CREDENTIALS: &str = "Basic dXNlcjpjYW5hcnk=";

/// Becomes a tunnel to the port, as a proxy that agrees.
async fn pipe(mut peer: Peer, port: u16) {
    peer.send("HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n").await;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = copy_bidirectional(&mut peer.into_stream(), &mut server).await;
}

#[tokio::test]
async fn plain_requests_go_to_the_proxy_in_absolute_form() {
    let server = Server::start().await;
    let described = HttpServer::new("http://mcp.example:8080/mcp?key=1").unwrap().proxy(proxy(&server));
    let connection = described.connect();
    let client = async {
        for _ in 0..2 {
            exchange(&connection, call()).await.1.unwrap();
        }
    };
    let script = async {
        let mut peer = server.accept().await;
        for round in 0..2 {
            let request = peer.request().await;
            assert_eq!(
                (request.method.as_str(), request.path.as_str()),
                ("POST", "http://mcp.example:8080/mcp?key=1")
            );
            assert_eq!(request.header("host"), Some("mcp.example:8080"));
            assert_eq!(request.header("proxy-authorization"), Some(CREDENTIALS), "{round}");
            peer.json(RESULT).await;
        }
    };
    tokio::join!(client, script);
    assert_eq!(server.accepted(), 1, "the connection to the proxy is kept");
}

#[tokio::test]
async fn exceptions_are_reached_directly() {
    let proxy_server = Server::start().await;
    let server = Server::start().await;
    let through = proxy(&proxy_server).except("127.0.0.0/8");
    let connection = HttpServer::new(&server.url()).unwrap().proxy(through).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, request) = server.request().await;
        assert_eq!(request.path, "/mcp");
        assert_eq!(request.header("proxy-authorization"), None);
        peer.json(RESULT).await;
    });
    outcome.1.unwrap();
    assert_eq!(proxy_server.accepted(), 0);
}

/// auth:SEC-14: the proxy's credentials stay with the proxy
#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let authority = authority("ours");
    let (certificate, key) = certificate(&authority, "localhost", 2100);
    let port = serve(&certificate, &key).await;
    let server = Server::start().await;
    let options = TlsOptions::new().add_roots(authority.pem.as_bytes()).unwrap();
    let connection = https(port).tls(options).unwrap().proxy(proxy(&server)).connect();
    let client = async {
        for _ in 0..2 {
            exchange(&connection, call()).await.1.unwrap();
        }
        drop(connection);
    };
    let script = async {
        let (peer, request) = server.request().await;
        assert_eq!((request.method.as_str(), &request.path), ("CONNECT", &format!("localhost:{port}")));
        assert_eq!(request.header("host"), Some(format!("localhost:{port}").as_str()));
        assert_eq!(request.header("proxy-authorization"), Some(CREDENTIALS));
        let Request { headers, body, .. } = request;
        assert_eq!(headers.len(), 2, "nothing that is the server's business: {headers:?}");
        assert_eq!(body, "");
        pipe(peer, port).await;
    };
    tokio::join!(client, script);
    assert_eq!(server.accepted(), 1, "the tunnel is reused");
}

/// auth:SEC-02: a proxy that looked the name up itself could be led elsewhere
#[tokio::test]
async fn a_policy_judges_the_address_that_the_tunnel_leads_to() {
    let server = Server::start().await;
    let policy = AddressPolicy::SameNetworkAs(AddressClass::Loopback);
    let described = https(1).addresses(policy).proxy(proxy(&server));
    let connection = described.connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, request) = server.request().await;
        assert_eq!(request.path, "127.0.0.1:1");
        peer.respond("403 Forbidden", "", "").await;
    });
    assert_eq!(outcome.1.unwrap_err().kind(), ErrorKind::Proxy);

    let plain = HttpServer::new("http://localhost:1/mcp").unwrap().proxy(proxy(&server)).addresses(policy);
    for refused in [https(1).addresses(AddressPolicy::Public).proxy(proxy(&server)), plain] {
        let error = exchange(&refused.connect(), call()).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
    }
    assert_eq!(server.accepted(), 1);
}

async fn refused(described: HttpServer, server: &Server, answer: &str) -> Error {
    let connection = described.connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.send(answer).await;
        peer.close().await;
    });
    let error = outcome.1.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
    error
}

#[tokio::test]
async fn the_proxys_fault_is_not_the_servers() {
    let server = Server::start().await;
    let tunnel = || https(1).proxy(proxy(&server));
    let plain = || HttpServer::new("http://mcp.example/mcp").unwrap().proxy(proxy(&server));
    let needs = "HTTP/1.1 407 Nope\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n";
    for described in [tunnel(), plain()] {
        let error = refused(described, &server, needs).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::Proxy, Some(407)));
        assert!(!error.outcome_unknown());
    }
    for (answer, status) in [
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", Some(502)),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", Some(401)),
        ("nonsense\r\n\r\n", None),
        ("", None),
    ] {
        let error = refused(tunnel(), &server, answer).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::Proxy, status), "{answer}");
        assert!(!error.outcome_unknown());
    }
    // Without a tunnel nobody can tell who refused; and a server that plays the proxy is no proxy.
    let error = refused(plain(), &server, "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(error.kind(), ErrorKind::Status);
    let error = refused(HttpServer::new(&server.url()).unwrap(), &server, needs).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::Status, Some(407)));
}

#[tokio::test]
async fn endless_and_silent_answers_of_a_proxy_are_cut() {
    let server = Server::start().await;
    let connection = https(1).proxy(proxy(&server)).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.send("HTTP/1.1 200 OK\r\n").await;
        while peer.try_send("x: y\r\n".repeat(100)).await {}
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Proxy);
    assert_eq!(error.limit().unwrap().name, "max_head_bytes");

    let mut timeouts = HttpTimeouts::default();
    timeouts.connect = Duration::from_secs(5);
    let connection = https(1).proxy(proxy(&server)).timeouts(timeouts).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        at_the_deadline(peer.closed()).await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Proxy);
    assert!(error.to_string().contains("within 5s"), "{error}");
    assert!(!error.outcome_unknown());

    let nobody = Address::keep();
    let described = https(1).proxy(Proxy::http(&format!("http://{}", nobody.address())).unwrap());
    let error = within(exchange(&described.connect(), call())).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Proxy);
}

/// A server that fails behind a willing proxy is the server's fault.
#[tokio::test]
async fn the_servers_fault_is_not_the_proxys() {
    let server = Server::start().await;
    let connection = https(1).proxy(proxy(&server)).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.send("HTTP/1.1 200 OK\r\n\r\n").await;
        peer.close().await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("TLS handshake"), "{error}");
}
