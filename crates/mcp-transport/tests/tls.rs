//! TLS by choice: client certificates, another provider of cryptography, the platform's verifier.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_jsonrpc::RequestId;
use mcp_transport::http::{HttpServer, Post, RequestHead, TlsOptions};
use mcp_transport::{Error, ErrorKind, TlsFailure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Authority { certificate, issuer: Issuer::new(params, key) }
}

fn issue(authority: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &authority.issuer).unwrap(), key)
}

/// Serves one answer on one connection. Resolves to the number of certificates and the cipher suite of the client, or to
/// nothing if the handshake failed.
async fn serve(
    authority: &Authority,
    clients: Option<&Authority>,
) -> (u16, JoinHandle<Option<(usize, String)>>) {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.certificate.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (certificate, key) = issue(authority, "localhost");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.ok()?;
        let session = stream.get_ref().1;
        let certificates = session.peer_certificates().map_or(0, <[_]>::len);
        let suite = format!("{:?}", session.negotiated_cipher_suite().unwrap().suite());
        let mut request = [0; 4096];
        if stream.read(&mut request).await.ok()? == 0 {
            return None;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
        let response = format!("{head}\r\ncontent-length: {}\r\n\r\n{RESULT}", RESULT.len());
        stream.write_all(response.as_bytes()).await.ok()?;
        Some((certificates, suite))
    });
    (port, server)
}

async fn call(port: u16, options: TlsOptions) -> Result<(), Error> {
    let connection =
        HttpServer::new(&format!("https://localhost:{port}/mcp")).unwrap().tls(options).unwrap().connect();
    let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let post = Post::request(body, RequestId::Integer(1), RequestHead::legacy("2025-11-25"));
    let exchange = async {
        let mut exchange = connection.post(post).await?;
        while exchange.next().await?.is_some() {}
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(60), exchange).await.expect("no progress")
}

fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions::new().only_added_roots().add_roots(authority.certificate.pem().as_bytes()).unwrap()
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_asks_for_one() {
    let ours = authority("ours");
    let clients = authority("clients");
    let options = |issuer: &Authority| {
        let (certificate, key) = issue(issuer, "client");
        trusting(&ours)
            .client_certificate(certificate.pem().as_bytes(), key.serialize_pem().as_bytes())
            .unwrap()
    };
    let (port, server) = serve(&ours, Some(&clients)).await;
    call(port, options(&clients)).await.unwrap();
    assert_eq!(server.await.unwrap().unwrap().0, 1);

    // One that does not ask is not told who comes.
    let (port, server) = serve(&ours, None).await;
    call(port, options(&clients)).await.unwrap();
    assert_eq!(server.await.unwrap().unwrap().0, 0);

    // None, or one of somebody else: the server ends it, which a client of TLS 1.3 meets only when it reads.
    for refused in [trusting(&ours), options(&ours)] {
        let (port, server) = serve(&ours, Some(&clients)).await;
        let error = call(port, refused).await.unwrap_err();
        // A reset that overtakes the alert hides why.
        let refusals = [ErrorKind::Tls(TlsFailure::ClientCertificate), ErrorKind::ConnectionLost];
        assert!(refusals.contains(&error.kind()), "{error:?}");
        assert!(server.await.unwrap().is_none());
    }
}

#[test]
fn a_key_that_does_not_fit_its_certificate_is_refused() {
    let ours = authority("ours");
    let (certificate, _) = issue(&ours, "client");
    let (_, other) = issue(&ours, "client");
    let options = TlsOptions::new()
        .client_certificate(certificate.pem().as_bytes(), other.serialize_pem().as_bytes())
        .unwrap();
    let error = HttpServer::new("https://localhost/").unwrap().tls(options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn the_chosen_provider_decides_the_cipher_suites() {
    let ours = authority("ours");
    for suite in
        [ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, ring::cipher_suite::TLS13_AES_128_GCM_SHA256]
    {
        let provider = CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() };
        let (port, server) = serve(&ours, None).await;
        call(port, trusting(&ours).crypto_provider(Arc::new(provider))).await.unwrap();
        assert_eq!(server.await.unwrap().unwrap().1, format!("{:?}", suite.suite()));
    }
    let provider = CryptoProvider { cipher_suites: Vec::new(), ..ring::default_provider() };
    let options = TlsOptions::new().crypto_provider(Arc::new(provider));
    let error = HttpServer::new("https://localhost/").unwrap().tls(options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

/// The platform knows no authority made here; the one that is added to it counts.
#[cfg(all(feature = "platform-verifier", target_os = "linux"))]
#[tokio::test]
async fn the_platform_decides_and_added_roots_count() {
    let ours = authority("ours");
    let (port, _server) = serve(&ours, None).await;
    let error = call(port, TlsOptions::new().platform_verifier()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls(TlsFailure::UnknownIssuer));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("UnknownIssuer"), "{cause}");

    let (port, _server) = serve(&ours, None).await;
    let added = TlsOptions::new().platform_verifier().add_roots(ours.certificate.pem().as_bytes()).unwrap();
    call(port, added).await.unwrap();
}
