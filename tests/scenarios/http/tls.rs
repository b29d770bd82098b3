//! TLS: who is trusted, and how a refusal is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_transport::http::{Departure, HttpServer, TlsOptions};
use mcp_transport::{ErrorKind, TlsFailure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::script::{Peer, Server, rounds, within};
use super::support::*;

pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

pub(crate) fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { pem, issuer: Issuer::new(params, key) }
}

/// A server certificate for `name`, and its key.
pub(crate) fn certificate(
    authority: &Authority,
    name: &str,
    last_year: i32,
) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(last_year, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &authority.issuer).unwrap(), key)
}

/// Serves one JSON answer per connection; returns the port.
pub(crate) async fn serve(certificate: &rcgen::Certificate, key: &KeyPair) -> u16 {
    serve_counted(certificate, key).await.0
}

/// The same, and counts the connections.
pub(crate) async fn serve_counted(
    certificate: &rcgen::Certificate,
    key: &KeyPair,
) -> (u16, Arc<AtomicUsize>) {
    serve_with(server_config(certificate, key)).await
}

pub(crate) fn server_config(certificate: &rcgen::Certificate, key: &KeyPair) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap()
}

async fn serve_with(config: ServerConfig) -> (u16, Arc<AtomicUsize>) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let mut stream = match acceptor.accept(stream).into_fallible().await {
                    Ok(stream) => stream,
                    Err((_, mut refused)) => {
                        // Closing on unread bytes would be a reset, which may overtake the alert.
                        while refused.read(&mut request).await.is_ok_and(|read| read > 0) {}
                        return;
                    }
                };
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        RESULT.len()
                    );
                    let _ = stream.write_all(format!("{head}{RESULT}").as_bytes()).await;
                }
            });
        }
    });
    (port, connections)
}

async fn call_with_roots(host: &str, port: u16, roots: Option<&Authority>) -> Outcome {
    let mut server = HttpServer::new(&format!("https://{host}:{port}/mcp")).unwrap();
    if let Some(authority) = roots {
        let options = TlsOptions::new().add_roots(authority.pem.as_bytes()).unwrap();
        server = server.tls(options).unwrap();
    }
    within(exchange(&server.connect(), call())).await
}

/// field:FR-073: an added root counts beside the public ones, and the connection is reused like a plain one
#[tokio::test]
async fn a_private_authority_is_trusted_when_added() {
    let authority = authority("ours");
    for host in ["localhost", "127.0.0.1"] {
        let (certificate, key) = certificate(&authority, host, 2100);
        let port = serve(&certificate, &key).await;
        let outcome = call_with_roots(host, port, Some(&authority)).await;
        outcome.1.unwrap();
        assert_eq!(outcome.0, ["result 1"]);
    }
}

/// auth:SEC-20
#[tokio::test]
async fn certificates_that_do_not_hold_are_refused_by_name() {
    let ours = authority("ours");
    let other = authority("other");
    use TlsFailure::{CertificateExpired as Expired, NameMismatch as Renamed, UnknownIssuer as Foreign};
    for (name, host, year, roots, failure, says, reason) in [
        ("localhost", "localhost", 2001, Some(&ours), Expired, "has expired", "expired"),
        ("example.com", "localhost", 2100, Some(&ours), Renamed, "for another name", "not valid for name"),
        ("localhost", "127.0.0.1", 2100, Some(&ours), Renamed, "for another name", "not valid for name"),
        ("localhost", "localhost", 2100, Some(&other), Foreign, "TlsOptions::add_roots", "UnknownIssuer"),
        ("localhost", "localhost", 2100, None, Foreign, "TlsOptions::add_roots", "UnknownIssuer"),
    ] {
        let (certificate, key) = certificate(&ours, name, year);
        let port = serve(&certificate, &key).await;
        let error = call_with_roots(host, port, roots).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls(failure));
        assert!(!error.outcome_unknown());
        let text = error.to_string();
        let place = format!("the TLS handshake with {host}:{port} failed: the certificate ");
        assert!(text.starts_with(&place) && text.contains(says), "{text}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(reason), "{cause}");
    }
}

/// auth:SEC-20: what `openssl req -x509` makes, one of an authority, and what other tools make, one of nobody
#[tokio::test]
async fn a_certificate_of_its_own_is_refused_until_it_is_added_and_one_of_an_authority_always() {
    for is_authority in [true, false] {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let pem = certificate.pem();
        let port = serve(&certificate, &key).await;
        let refused = call_with_roots("localhost", port, None).await.1.unwrap_err();
        let expected = if is_authority { TlsFailure::AuthorityAsServer } else { TlsFailure::UnknownIssuer };
        assert_eq!(refused.kind(), ErrorKind::Tls(expected));
        let added = Authority { pem, issuer: Issuer::new(params, key) };
        let outcome = call_with_roots("localhost", port, Some(&added)).await.1;
        if is_authority {
            let refused = outcome.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Tls(expected));
            assert!(refused.to_string().contains("CA:FALSE"), "{refused}");
        } else {
            outcome.unwrap();
        }
    }
}

/// auth:SEC-20: a server that picks TLS 1.1, as bytes
#[tokio::test]
async fn old_tls_is_refused() {
    let server = Server::start().await;
    let connection =
        HttpServer::new(&format!("https://localhost:{}/mcp", server.address().port())).unwrap().connect();
    let client = within(exchange(&connection, call()));
    let (outcome, ()) = tokio::join!(client, async {
        let mut peer = server.accept().await;
        // Handshake record of version 3.2 with a ServerHello of version 3.2 (TLS 1.1), zero random, no session id,
        // suite TLS_RSA_WITH_AES_128_CBC_SHA, no compression.
        let mut hello = vec![22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
        hello.extend([0; 32]);
        hello.extend([0, 0, 0x2f, 0]);
        peer.send(hello).await;
        peer.closed().await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::NothingInCommon));
    assert!(error.to_string().contains("no version of TLS"), "{error}");
}

/// https never falls to http: a plain server on the port is an error of the handshake
#[tokio::test]
async fn a_plain_server_is_no_https_server() {
    let server = Server::start().await;
    let connection =
        HttpServer::new(&format!("https://localhost:{}/mcp", server.address().port())).unwrap().connect();
    let (outcome, ()) = tokio::join!(within(exchange(&connection, call())), async {
        let mut peer = server.accept().await;
        peer.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        peer.closed().await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::NotTls));
    assert!(error.to_string().contains("whether the URL should begin with http"), "{error}");
}

/// The other way round: `http` to a port that speaks TLS, whatever that answers
#[tokio::test]
async fn a_server_that_wants_tls_says_so_to_plain_http() {
    let page = |text: &str| {
        let length = text.len();
        format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n{text}"
        )
    };
    let answers: [Vec<u8>; 5] = [
        // An alert: protocol_version, and unexpected_message.
        vec![0x15, 3, 1, 0, 2, 2, 70],
        vec![0x15, 3, 3, 0, 2, 2, 10],
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n".to_vec(),
        page("<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>").into(),
        page("<p>You're speaking plain HTTP to an SSL-enabled server port.</p>").into(),
    ];
    for answer in answers {
        let server = Server::start().await;
        let connection = connect(&server);
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            let (mut peer, _) = server.request().await;
            peer.send(&answer).await;
            peer.close().await;
        });
        let error = outcome.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::Required), "{error:?}");
        assert_eq!((error.outcome_unknown(), error.status()), (false, None));
        assert!(error.to_string().contains("the URL must begin with https"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
    // And a real one.
    let (certificate, key) = certificate(&authority("ours"), "localhost", 2100);
    let port = serve(&certificate, &key).await;
    let connection = HttpServer::new(&format!("http://localhost:{port}/mcp")).unwrap().connect();
    let error = within(exchange(&connection, call())).await.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::Required), "{error:?}");
}

/// Many close without a word, as a server that breaks does. It is said while nothing better is known.
#[tokio::test]
async fn a_server_that_ends_the_first_connection_may_want_tls() {
    let server = Server::start().await;
    let connection = connect(&server);
    let breaks = async || {
        let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
            server.request().await.0.close().await;
        });
        let error = outcome.1.unwrap_err();
        assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::ConnectionLost, true));
        error.to_string().contains("its URL must begin with https")
    };
    assert!(breaks().await);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.respond("200 OK", "connection: close\r\ncontent-type: application/json\r\n", RESULT).await;
    });
    outcome.1.unwrap();
    assert!(!breaks().await);
}

/// What a gateway says of the server behind it says nothing of the way to the gateway.
#[tokio::test]
async fn over_tls_or_in_other_words_a_400_is_a_400() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let (mut peer, _) = server.request().await;
        peer.respond("400 Bad Request", "content-type: text/plain\r\n", "use https").await;
    });
    assert_eq!(outcome.1.unwrap_err().kind(), ErrorKind::Status);

    let ours = authority("ours");
    let (certificate, key) = certificate(&ours, "localhost", 2100);
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&certificate, &key)));
    let server = Server::start().await;
    let options = TlsOptions::new().add_roots(ours.pem.as_bytes()).unwrap();
    let url = format!("https://localhost:{}/mcp", server.address().port());
    let connection = HttpServer::new(&url).unwrap().tls(options).unwrap().connect();
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let stream = acceptor.accept(server.accept().await.into_stream()).await.unwrap();
        let mut peer = Peer::over(stream);
        peer.request().await;
        let text = "The plain HTTP request was sent to HTTPS port";
        peer.respond("400 Bad Request", "content-type: text/html\r\n", text).await;
    });
    let error = outcome.1.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Status, Some(400)));
}

/// A server that goes away in the middle of it may be back soon.
#[tokio::test]
async fn a_handshake_that_breaks_off_may_be_tried_again() {
    let server = Server::start().await;
    let connection =
        HttpServer::new(&format!("https://localhost:{}/mcp", server.address().port())).unwrap().connect();
    let (outcome, ()) = tokio::join!(within(exchange(&connection, call())), async {
        drop(server.accept().await);
    });
    assert_eq!(outcome.1.unwrap_err().kind(), ErrorKind::Connect);
}

/// Over TLS 1.3 a client learns only after the handshake that its certificate is missing, over TLS 1.2 in it.
#[tokio::test]
async fn a_server_that_wants_a_certificate_of_the_client_says_so() {
    let ours = authority("ours");
    let (certificate, key) = certificate(&ours, "localhost", 2100);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots.clone()),
            Arc::clone(&provider),
        );
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let (port, _) = serve_with(config).await;
        let error = call_with_roots("localhost", port, Some(&ours)).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::ClientCertificate), "{error:?}");
        assert!(error.to_string().contains("TlsOptions::client_certificate"), "{error}");
    }
}

/// While the connection is being opened nothing of the message has left, and whoever watches it is told only when it does.
#[tokio::test]
async fn a_message_leaves_when_there_is_a_connection_and_not_before() {
    let server = Server::start().await;
    let url = format!("https://localhost:{}/mcp", server.address().port());
    let connection = HttpServer::new(&url).unwrap().connect();
    let mut told = Vec::new();
    let mut watch = |departure| {
        told.push(departure);
        true
    };
    let posting = connection.post_watched(call(), &mut watch);
    let mut peer = None;
    tokio::select! {
        _ = posting => panic!("nobody answers the handshake"),
        () = async {
            peer = Some(server.accept().await);
            rounds().await;
        } => {}
    }
    assert!(told.is_empty(), "{told:?}");

    let server = Server::start().await;
    let connection = HttpServer::new(&server.url()).unwrap().connect();
    let mut refuse = |departure| departure != Departure::Leaves;
    let error = within(connection.post_watched(call(), &mut refuse)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Closed, false));
    assert!(server.accept().await.try_request().await.is_none(), "nothing came");
    let mut watch = |departure| {
        told.push(departure);
        true
    };
    let posting = connection.post_watched(call(), &mut watch);
    let (posted, ()) = tokio::join!(within(posting), async {
        server.request().await.0.json(RESULT).await;
    });
    posted.unwrap();
    assert_eq!(told, [Departure::Leaves]);
}
