//! What the user of the facade is told where there is no TLS, and how often it is tried.

use mcp_client::{ErrorKind, HttpServer, Mode, TlsFailure};
use tokio::net::TcpSocket;

use super::peer::{builder, diagnostics, recorded};
use crate::http::script::{Server, within};
use crate::http::tls::{authority, certificate, serve_counted};

/// auth:SEC-20, protocol:H-38: another attempt would meet the same certificate
#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_met_once_and_told_from_a_refused_connection() {
    let ours = authority("ours");
    let (certificate, key) = certificate(&ours, "localhost", 2100);
    let (port, handshakes) = serve_counted(&certificate, &key).await;
    let (builder, events) = recorded(builder());
    let server = HttpServer::new(&format!("https://localhost:{port}/mcp")).unwrap();
    let error = within(builder.connect(server)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    assert_eq!(error.kind().as_str(), "tls");
    assert_eq!(error.tls_failure(), Some(TlsFailure::UnknownIssuer));
    assert!(!error.outcome_unknown());
    let text = error.to_string();
    assert!(text.contains(&format!("localhost:{port}")) && text.contains("TlsOptions::add_roots"), "{text}");
    assert_eq!(handshakes.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(diagnostics(&events).is_empty());
}

/// The same server by the wrong scheme: whatever the mode, the first answer tells, and no other transport is tried.
#[tokio::test]
async fn a_server_that_wants_tls_is_met_once_in_plain_http() {
    let (certificate, key) = certificate(&authority("ours"), "localhost", 2100);
    for mode in [Mode::Auto, Mode::Legacy] {
        let (port, connections) = serve_counted(&certificate, &key).await;
        let server = HttpServer::new(&format!("http://localhost:{port}/mcp")).unwrap();
        let error = within(builder().mode(mode).connect(server)).await.unwrap_err();
        assert_eq!((error.kind(), error.tls_failure()), (ErrorKind::Tls, Some(TlsFailure::Required)));
        assert!(error.to_string().contains("the URL must begin with https"), "{error}");
        assert!(!error.outcome_unknown());
        assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
    let server = Server::start().await;
    let connecting = builder().mode(Mode::Legacy).connect(HttpServer::new(&server.url()).unwrap());
    let (error, ()) = tokio::join!(within(connecting), async {
        let (mut peer, _) = server.request().await;
        let text = "Client sent an HTTP request to an HTTPS server.";
        peer.respond("400 Bad Request", "", text).await;
    });
    assert_eq!(error.unwrap_err().tls_failure(), Some(TlsFailure::Required));
    assert_eq!(server.accepted(), 1);
}

/// Bound and not listening, so nobody else is given the port meanwhile.
#[tokio::test]
async fn a_refused_connection_is_none_of_tls() {
    let kept = TcpSocket::new_v4().unwrap();
    kept.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = kept.local_addr().unwrap().port();
    let server = HttpServer::new(&format!("https://127.0.0.1:{port}/mcp")).unwrap();
    let error = within(builder().connect(server)).await.unwrap_err();
    assert_eq!((error.kind(), error.tls_failure()), (ErrorKind::Transport, None));
}
