//! HTTP/2: one connection for many exchanges, and what a server says about those it did not process.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use mcp_jsonrpc::RequestId;
use mcp_transport::http::{
    Http2Options, HttpConnection, HttpLimits, HttpServer, HttpTimeouts, Post, Proxy, RequestHead, TlsOptions,
};
use mcp_transport::{Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("no progress")
}

fn call() -> Post {
    let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    Post::request(body, RequestId::Integer(1), RequestHead::legacy("2025-11-25"))
}

/// One call to its end: how many messages came.
async fn exchange(connection: &HttpConnection) -> Result<usize, Error> {
    within(async {
        let mut exchange = connection.post(call()).await?;
        let mut messages = 0;
        while exchange.next().await?.is_some() {
            messages += 1;
        }
        Ok(messages)
    })
    .await
}

fn described(port: u16) -> HttpServer {
    let mut options = Http2Options::new();
    options.prior_knowledge = true;
    HttpServer::new(&format!("http://localhost:{port}/mcp?q=1")).unwrap().http2(options)
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

type Asked = (usize, Request<RecvStream>, SendResponse<Bytes>);

/// Hands over every request with the number of its connection.
async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    number: usize,
    max_streams: u32,
    asked: mpsc::UnboundedSender<Asked>,
) {
    let mut builder = h2::server::Builder::new();
    let Ok(mut connection) = builder.max_concurrent_streams(max_streams).handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let _ = asked.send((number, request, respond));
    }
}

async fn serve(max_streams: u32) -> (u16, mpsc::UnboundedReceiver<Asked>) {
    let (listener, port) = listen().await;
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(serve_stream(stream, number, max_streams, sender.clone()));
        }
    });
    (port, receiver)
}

fn head(content_type: &str) -> Response<()> {
    Response::builder().header("content-type", content_type).body(()).unwrap()
}

fn answer(mut respond: SendResponse<Bytes>) {
    let mut body = respond.send_response(head("application/json"), false).unwrap();
    body.send_data(Bytes::from_static(RESULT.as_bytes()), true).unwrap();
}

/// The one that began to open the connection is kept and not polled: those who want it too go on with it.
#[tokio::test]
async fn a_connection_is_opened_by_whoever_waits_for_it_and_is_polled() {
    let (port, mut asked) = serve(100).await;
    let connection = described(port).connect();
    let mut kept = Box::pin(connection.post(call()));
    assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let other = connection.clone();
    let other = tokio::spawn(async move { exchange(&other).await });
    let (number, _, respond) = within(asked.recv()).await.unwrap();
    answer(respond);
    assert_eq!((number, within(other).await.unwrap().unwrap()), (0, 1));
}

#[tokio::test]
async fn concurrent_exchanges_share_one_connection() {
    let (port, mut asked) = serve(100).await;
    let connection = described(port).header("Authorization", "Bearer x").unwrap().connect();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move { exchange(&connection).await.unwrap() })
        })
        .collect();
    let mut open = Vec::new();
    for _ in 0..50 {
        let (number, request, respond) = within(asked.recv()).await.unwrap();
        assert_eq!(number, 0);
        assert_eq!(request.uri().to_string(), format!("http://localhost:{port}/mcp?q=1"));
        let headers = request.headers();
        assert_eq!(headers.get("authorization").unwrap(), "Bearer x");
        assert_eq!(headers.get("mcp-protocol-version").unwrap(), "2025-11-25");
        assert!(!headers.contains_key("host") && !headers.contains_key("connection"), "{headers:?}");
        open.push(respond);
    }
    // All were under way at once; the last one is answered first.
    open.into_iter().rev().for_each(answer);
    for call in calls {
        assert_eq!(call.await.unwrap(), 1);
    }
}

#[tokio::test]
async fn dropping_an_exchange_resets_its_stream_only() {
    let (port, mut asked) = serve(100).await;
    let connection = described(port).connect();
    let other = {
        let connection = connection.clone();
        tokio::spawn(async move { exchange(&connection).await })
    };
    let (_, _, other_respond) = within(asked.recv()).await.unwrap();

    // Before the head of the response,
    let waiting = {
        let connection = connection.clone();
        tokio::spawn(async move { connection.post(call()).await })
    };
    let (_, _, mut respond) = within(asked.recv()).await.unwrap();
    waiting.abort();
    let reason = within(std::future::poll_fn(|cx| respond.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);

    // and after it.
    let (posted, mut body) = tokio::join!(within(connection.post(call())), async {
        let (_, _, mut respond) = within(asked.recv()).await.unwrap();
        respond.send_response(head("text/event-stream"), false).unwrap()
    });
    drop(posted.unwrap());
    let reason = within(std::future::poll_fn(|cx| body.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);

    answer(other_respond);
    assert_eq!(other.await.unwrap().unwrap(), 1);
    let (last, ()) = tokio::join!(exchange(&connection), async {
        let (number, _, respond) = within(asked.recv()).await.unwrap();
        assert_eq!(number, 0, "the connection lives on");
        answer(respond);
    });
    last.unwrap();
}

/// A stream that stays open must not hold back what comes after it.
#[tokio::test]
async fn a_full_connection_is_joined_by_another() {
    let (port, mut asked) = serve(1).await;
    let connection = described(port).connect();
    let script = async {
        let (_, _, respond) = within(asked.recv()).await.unwrap();
        answer(respond);
        let (first, request, mut respond) = within(asked.recv()).await.unwrap();
        assert_eq!(request.method(), "GET");
        let stream = respond.send_response(head("text/event-stream"), false).unwrap();
        for _ in 0..2 {
            let (number, _, respond) = within(asked.recv()).await.unwrap();
            assert_eq!((first, number), (0, 1));
            answer(respond);
        }
        drop(stream);
    };
    let client = async {
        exchange(&connection).await.unwrap();
        let stream = within(connection.open_stream(RequestHead::legacy("2025-11-25"))).await.unwrap();
        for _ in 0..2 {
            exchange(&connection).await.unwrap();
        }
        drop(stream);
    };
    tokio::join!(client, script);
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_a_few_times() {
    let (port, mut asked) = serve(100).await;
    let connection = described(port).connect();
    for refusals in [1, 3, 4] {
        let (outcome, ()) = tokio::join!(exchange(&connection), async {
            for _ in 0..refusals {
                let (_, _, mut respond) = within(asked.recv()).await.unwrap();
                respond.send_reset(Reason::REFUSED_STREAM);
            }
            if refusals < 4 {
                answer(within(asked.recv()).await.unwrap().2);
            }
        });
        match outcome {
            Ok(messages) => assert_eq!((messages, refusals < 4), (1, true)),
            Err(error) => {
                assert_eq!((error.kind(), refusals), (ErrorKind::ConnectionLost, 4));
                assert!(!error.outcome_unknown(), "the server said that it did nothing");
            }
        }
    }
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn other_resets_fail_their_exchange_once() {
    let (port, mut asked) = serve(100).await;
    let connection = described(port).connect();
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::ENHANCE_YOUR_CALM] {
        for after_head in [false, true] {
            let (outcome, ()) = tokio::join!(exchange(&connection), async {
                let (number, _, mut respond) = within(asked.recv()).await.unwrap();
                assert_eq!(number, 0);
                if after_head {
                    let mut body = respond.send_response(head("application/json"), false).unwrap();
                    body.send_data(Bytes::from_static(b"{"), false).unwrap();
                    body.send_reset(reason);
                } else {
                    respond.send_reset(reason);
                }
            });
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionLost);
            assert!(error.outcome_unknown());
        }
    }
    assert!(asked.try_recv().is_err(), "nothing was sent again");
}

type Change = dyn Fn(&mut Response<()>);

#[tokio::test]
async fn heads_and_bodies_are_held_to_their_limits() {
    let (port, mut asked) = serve(100).await;
    let mut limits = HttpLimits::default();
    limits.max_headers = 10;
    limits.max_body_bytes = 1000;
    limits.max_head_bytes = 4096;
    let connection = described(port).limits(limits).connect();
    let many = |respond: &mut Response<()>| {
        for n in 0..11 {
            respond.headers_mut().append("x-many", n.into());
        }
    };
    let long = |respond: &mut Response<()>| {
        for _ in 0..3 {
            respond.headers_mut().append("x-long", "y".repeat(3000).parse().unwrap());
        }
    };
    let cases: [(&Change, _, _); 2] = [
        (&many, ErrorKind::LimitExceeded, Some(("max_headers", 10))),
        (&long, ErrorKind::PeerMisbehaved, None),
    ];
    for (change, kind, limit) in cases {
        let (outcome, _stream) = tokio::join!(exchange(&connection), async {
            let (_, _, mut respond) = within(asked.recv()).await.unwrap();
            let mut head = head("application/json");
            change(&mut head);
            respond.send_response(head, false)
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(error.limit().map(|limit| (limit.name, limit.value)), limit, "{error:?}");
        assert!(error.outcome_unknown());
    }
    assert!(asked.try_recv().is_err(), "not sent again");
    let (outcome, _body) = tokio::join!(exchange(&connection), async {
        let (_, _, mut respond) = within(asked.recv()).await.unwrap();
        let mut body = respond.send_response(head("application/json"), false).unwrap();
        for _ in 0..20 {
            let _ = body.send_data(Bytes::from(vec![b' '; 100]), false);
        }
        body
    });
    assert_eq!(outcome.unwrap_err().limit().unwrap().name, "max_body_bytes");
}

#[tokio::test]
async fn alpn_decides_over_tls() {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for (protocols, expected) in [
        (vec![b"h2".to_vec(), b"http/1.1".to_vec()], true),
        (vec![b"http/1.1".to_vec()], false),
        (vec![], false),
    ] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private.into())
            .unwrap();
        config.alpn_protocols = protocols;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (listener, port) = listen().await;
        let (sender, mut asked) = mpsc::unbounded_channel();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut stream = acceptor.accept(stream).await.unwrap();
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    tokio::spawn(serve_stream(stream, 0, 100, sender.clone()));
                } else {
                    tokio::spawn(async move {
                        let mut request = [0; 4096];
                        while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                            assert!(request.starts_with(b"POST /mcp HTTP/1.1\r\n"));
                            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                            let response =
                                format!("{head}\r\ncontent-length: {}\r\n\r\n{RESULT}", RESULT.len());
                            stream.write_all(response.as_bytes()).await.unwrap();
                        }
                    });
                }
            }
        });
        tokio::spawn(async move {
            while let Some((_, _, respond)) = asked.recv().await {
                answer(respond);
            }
        });
        let roots = TlsOptions::new().add_roots(key.cert.pem().as_bytes()).unwrap();
        let server = HttpServer::new(&format!("https://localhost:{port}/mcp")).unwrap().tls(roots).unwrap();
        let connection = server.http2(Http2Options::new()).connect();
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { exchange(&connection).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), 1);
        }
        assert_eq!(accepted.load(Ordering::SeqCst) == 1, expected, "{expected}");
    }
}

/// A server that is played frame by frame (RFC 9113 section 4.1).
struct Frames(TcpStream);

impl Frames {
    async fn accept(listener: &TcpListener) -> Self {
        let (mut stream, _) = within(listener.accept()).await.unwrap();
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut frames = Self(stream);
        frames.send(4, 0, 0, &[]).await;
        frames
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    /// The next frame: kind, flags, stream.
    async fn next(&mut self) -> Option<(u8, u8, u32)> {
        let mut head = [0; 9];
        within(self.0.read_exact(&mut head)).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        within(self.0.read_exact(&mut payload)).await.ok()?;
        if (head[3], head[4]) == (4, 0) {
            self.send(4, 1, 0, &[]).await;
        }
        Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
    }

    /// Reads until a request has come whole; its stream.
    async fn request(&mut self) -> u32 {
        loop {
            let (kind, flags, stream) = self.next().await.expect("a request");
            if (kind, flags & 1) == (0, 1) {
                return stream;
            }
        }
    }

    async fn answer(&mut self, stream: u32) {
        // Status 200 and the content type, both by the static table of RFC 7541 appendix A.
        let mut head = vec![0x88, 0x0f, 0x10, 16];
        head.extend(b"application/json");
        self.send(1, 4, stream, &head).await;
        self.send(0, 1, stream, RESULT.as_bytes()).await;
    }

    async fn go_away(&mut self, last: u32, reason: u32) {
        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
        self.send(7, 0, 0, &payload).await;
    }
}

/// RFC 9113 section 6.8: streams above the last one were not processed; those below may be.
#[tokio::test]
async fn what_a_going_server_did_not_process_is_sent_to_its_successor() {
    for reason in [0, 11] {
        let (listener, port) = listen().await;
        let connection = described(port).connect();
        let spawn = || {
            let connection = connection.clone();
            tokio::spawn(async move { exchange(&connection).await })
        };
        let first = spawn();
        let mut old = Frames::accept(&listener).await;
        assert_eq!(old.request().await, 1);
        let second = spawn();
        assert_eq!(old.request().await, 3);
        old.go_away(1, reason).await;
        let mut new = Frames::accept(&listener).await;
        let stream = new.request().await;
        new.answer(stream).await;
        assert_eq!(second.await.unwrap().unwrap(), 1);
        if reason == 0 {
            // The one below is served to its end.
            old.answer(1).await;
            assert_eq!(first.await.unwrap().unwrap(), 1);
        } else {
            drop(old);
            let error = first.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionLost);
            assert!(error.outcome_unknown(), "{error:?}");
        }
        // The successor takes all that follows.
        let (third, ()) = tokio::join!(exchange(&connection), async {
            let stream = new.request().await;
            new.answer(stream).await;
        });
        third.unwrap();
    }
}

#[tokio::test]
async fn a_broken_connection_leaves_the_outcome_open_and_is_replaced() {
    let (listener, port) = listen().await;
    let connection = described(port).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection), async {
        let mut old = Frames::accept(&listener).await;
        old.request().await;
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert!(error.outcome_unknown());
    let (outcome, ()) = tokio::join!(exchange(&connection), async {
        let mut new = Frames::accept(&listener).await;
        let stream = new.request().await;
        new.answer(stream).await;
        drop(connection.clone());
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_server_that_breaks_the_rules_is_named() {
    let (listener, port) = listen().await;
    let connection = described(port).connect();
    let (outcome, ()) = tokio::join!(exchange(&connection), async {
        let mut server = Frames::accept(&listener).await;
        server.request().await;
        // Data on a stream that nobody opened.
        server.send(0, 0, 2, b"x").await;
        while server.next().await.is_some() {}
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{error:?}");
    assert!(error.outcome_unknown());
}

#[tokio::test]
async fn a_server_that_vanished_is_noticed_by_its_silence() {
    let (listener, port) = listen().await;
    let mut options = Http2Options::new();
    options.prior_knowledge = true;
    options.keep_alive_interval = Some(Duration::from_millis(50));
    options.keep_alive_timeout = Duration::from_millis(50);
    let connection = described(port).http2(options).connect();
    let (outcome, _server) = tokio::join!(exchange(&connection), async {
        let mut server = Frames::accept(&listener).await;
        server.request().await;
        server
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert!(error.outcome_unknown());
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let (listener, port) = listen().await;
    let mut options = Http2Options::new();
    options.prior_knowledge = true;
    options.idle = Duration::from_millis(60);
    let connection = described(port).http2(options).connect();
    for handle_stays in [true, false] {
        let begun = Instant::now();
        let (outcome, mut server) = tokio::join!(exchange(&connection), async {
            let mut server = Frames::accept(&listener).await;
            let stream = server.request().await;
            server.answer(stream).await;
            server
        });
        outcome.unwrap();
        if !handle_stays {
            drop(connection);
            while server.next().await.is_some() {}
            break;
        }
        while server.next().await.is_some() {}
        assert!(begun.elapsed() >= Duration::from_millis(60), "{:?}", begun.elapsed());
    }
}

/// Those who wait for the one connection share its failure: they have one deadline, not one after the other.
#[tokio::test(start_paused = true)]
async fn a_failed_attempt_fails_all_who_waited_for_it() {
    let (listener, port) = listen().await;
    let mut timeouts = HttpTimeouts::default();
    timeouts.connect = Duration::from_millis(200);
    let server = HttpServer::new(&format!("https://localhost:{port}/mcp")).unwrap();
    let connection = server.http2(Http2Options::new()).timeouts(timeouts).connect();
    let started = tokio::time::Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move { exchange(&connection).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Connect);
    }
    assert!(started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    drop(listener);
}

#[tokio::test]
async fn without_prior_knowledge_and_through_a_proxy_plain_servers_get_http1() {
    let (listener, port) = listen().await;
    let url = format!("http://localhost:{port}/mcp");
    let asked = HttpServer::new(&url).unwrap().http2(Http2Options::new());
    let proxied = described(1).proxy(Proxy::http(&format!("http://127.0.0.1:{port}")).unwrap());
    for server in [asked, proxied] {
        let connection = server.connect();
        let (outcome, ()) = tokio::join!(exchange(&connection), async {
            let (mut stream, _) = within(listener.accept()).await.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            assert!(String::from_utf8_lossy(&request[..read]).contains(" HTTP/1.1\r\n"));
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
            let response = format!("{head}\r\ncontent-length: {}\r\n\r\n{RESULT}", RESULT.len());
            stream.write_all(response.as_bytes()).await.unwrap();
        });
        outcome.unwrap();
    }
}
