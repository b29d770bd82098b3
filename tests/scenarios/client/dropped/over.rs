//! The ways over HTTP between a client and a server.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use mcp_client::transport::http::{Http2Options, HttpTimeouts, TlsOptions};
use mcp_client::{Era, HttpServer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::web::{Seen, talk};
use crate::http::script::{Peer, Request};
use crate::http::tls::{authority, certificate, server_config};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Over {
    /// Streamable HTTP, in HTTP/1.1.
    Plain,
    Tls,
    /// Over TLS, as servers offer it.
    Http2,
    /// The HTTP+SSE transport of 2024-11-05.
    Sse,
}

/// What the clients trust, and what the servers present.
struct Keys {
    authority: String,
    http1: TlsAcceptor,
    http2: TlsAcceptor,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let ours = authority("ours");
    let (certificate, key) = certificate(&ours, "localhost", 2100);
    let accept = |protocol: &[u8]| {
        let mut config = server_config(&certificate, &key);
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsAcceptor::from(Arc::new(config))
    };
    Keys { http1: accept(b"http/1.1"), http2: accept(b"h2"), authority: ours.pem }
});

impl Over {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Tls, Self::Http2, Self::Sse];

    pub(super) fn eras(self) -> &'static [Era] {
        if self == Self::Sse { &[Era::Legacy] } else { &[Era::Legacy, Era::Modern] }
    }

    fn acceptor(self) -> Option<&'static TlsAcceptor> {
        match self {
            Self::Plain | Self::Sse => None,
            Self::Tls => Some(&KEYS.http1),
            Self::Http2 => Some(&KEYS.http2),
        }
    }

    /// The server at this address, as the client is told of it. Idle connections are not kept for long, as their keeper is a task,
    /// and not at all over TLS, so that exchanges are given up in the middle of handshakes too.
    pub(super) fn describe(self, address: SocketAddr) -> HttpServer {
        let idle = Duration::from_millis(if self.acceptor().is_none() { 5 } else { 0 });
        let mut timeouts = HttpTimeouts::default();
        timeouts.pool_idle = idle;
        if self.acceptor().is_none() {
            return HttpServer::new(&format!("http://{address}/mcp")).unwrap().timeouts(timeouts);
        }
        let trusted = TlsOptions::new().only_added_roots().add_roots(KEYS.authority.as_bytes()).unwrap();
        let url = format!("https://localhost:{}/mcp", address.port());
        let server = HttpServer::new(&url).unwrap().timeouts(timeouts).tls(trusted).unwrap();
        let mut options = Http2Options::new();
        options.idle = idle;
        if self == Self::Http2 { server.http2(options) } else { server }
    }

    /// Serves a connection.
    pub(super) async fn meet(self, stream: TcpStream, seen: Arc<Seen>) {
        let Some(acceptor) = self.acceptor() else { return talk(Peer::over(stream), self, seen).await };
        let Ok(stream) = acceptor.accept(stream).await else { return };
        if self == Self::Tls {
            return talk(Peer::over(stream), self, seen).await;
        }
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        while let Some(Ok(asked)) = connection.accept().await {
            tokio::spawn(talk(OneStream { asked: Some(asked), stream: None }, self, Arc::clone(&seen)));
        }
    }
}

/// Requests and their responses, as a server sees them.
pub(super) trait Exchanges: Send {
    /// The next request; `None` when the client has gone.
    fn request(&mut self) -> impl Future<Output = Option<Request>> + Send;
    /// A whole response; a body is JSON.
    fn respond(&mut self, status: u16, body: &str) -> impl Future<Output = ()> + Send;
    /// Begins an event stream.
    fn stream(&mut self) -> impl Future<Output = ()> + Send;
    fn chunk(&mut self, text: &str) -> impl Future<Output = ()> + Send;
    /// Ends the event stream in good order.
    fn end(&mut self) -> impl Future<Output = ()> + Send;
    /// Waits until the client has given the exchange up.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Exchanges for Peer<S> {
    async fn request(&mut self) -> Option<Request> {
        self.try_request().await
    }

    async fn respond(&mut self, status: u16, body: &str) {
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        Self::respond(self, &format!("{status} It Is"), kind, body).await;
    }

    async fn stream(&mut self) {
        Self::stream(self, "").await;
    }

    async fn chunk(&mut self, text: &str) {
        Self::chunk(self, text).await;
    }

    async fn end(&mut self) {
        Self::end(self).await;
    }

    async fn closed(&mut self) {
        Self::closed(self).await;
    }
}

/// One exchange over HTTP/2. The client may reset it at any point, which is its right.
struct OneStream {
    asked: Option<(http::Request<RecvStream>, SendResponse<Bytes>)>,
    stream: Option<(SendResponse<Bytes>, Option<SendStream<Bytes>>)>,
}

impl OneStream {
    fn begin(&mut self, status: u16, kind: &str, is_all: bool) {
        if let Some((respond, body)) = &mut self.stream {
            let head =
                http::Response::builder().status(status).header("content-type", kind).body(()).unwrap();
            *body = respond.send_response(head, is_all).ok();
        }
    }

    fn write(&mut self, text: &str, is_all: bool) {
        if let Some((_, Some(body))) = &mut self.stream {
            let _ = body.send_data(Bytes::from(text.to_owned()), is_all);
        }
    }
}

impl Exchanges for OneStream {
    async fn request(&mut self) -> Option<Request> {
        let (request, respond) = self.asked.take()?;
        let (head, mut incoming) = request.into_parts();
        let mut body = Vec::new();
        while let Some(piece) = incoming.data().await {
            let piece = piece.ok()?;
            body.extend_from_slice(&piece);
            incoming.flow_control().release_capacity(piece.len()).ok()?;
        }
        self.stream = Some((respond, None));
        Some(Request {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            headers: Vec::new(),
            body: String::from_utf8(body).unwrap(),
        })
    }

    async fn respond(&mut self, status: u16, body: &str) {
        self.begin(status, "application/json", body.is_empty());
        if !body.is_empty() {
            self.write(body, true);
        }
    }

    async fn stream(&mut self) {
        self.begin(200, "text/event-stream", false);
    }

    async fn chunk(&mut self, text: &str) {
        self.write(text, false);
    }

    async fn end(&mut self) {
        self.write("", true);
    }

    async fn closed(&mut self) {
        if let Some((_, Some(body))) = &mut self.stream {
            let _ = poll_fn(|context| body.poll_reset(context)).await;
        }
    }
}
