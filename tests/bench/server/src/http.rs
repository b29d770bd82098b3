//! Streamable HTTP on one thread: each POST is answered with JSON or with a stream of one event.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use crate::replies::Replies;

const BUFFER_BYTES: usize = 1 << 20;
/// A smaller event is copied together, a larger one goes out in three parts.
const COPIED_BYTES: usize = 64 << 10;

struct Server {
    replies: Replies,
    sse: bool,
    streams: bool,
    connections: Cell<u64>,
}

pub(crate) fn serve(replies: Replies, sse: bool, streams: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Rc::new(Server { replies, sse, streams, connections: Cell::new(0) });
    LocalSet::new().block_on(&runtime, accept(server))
}

async fn accept(server: Rc<Server>) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    io::stdout().flush()?;
    loop {
        let (stream, _) = listener.accept().await?;
        server.connections.set(server.connections.get() + 1);
        stream.set_nodelay(true)?;
        let server = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            let service = service_fn(|request| server.answer(request));
            let serving = http1::Builder::new()
                .max_buf_size(BUFFER_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away is no fault of the server.
            let _ = serving.await;
        });
    }
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        if request.method() == Method::GET && request.uri().path() == "/connections" {
            return Ok(Response::new(Body::Whole(Some(self.connections.get().to_string().into()))));
        }
        if request.method() == Method::DELETE {
            return Ok(empty(StatusCode::OK));
        }
        if request.method() == Method::GET && self.streams {
            let mut response = Response::new(Body::Open);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            return Ok(response);
        }
        if request.method() != Method::POST {
            let mut refusal = empty(StatusCode::METHOD_NOT_ALLOWED);
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
            return Ok(refusal);
        }
        let Ok(message) = request.into_body().collect().await else {
            return Ok(empty(StatusCode::BAD_REQUEST));
        };
        let Some(reply) = self.replies.reply(&message.to_bytes()) else {
            return Ok(empty(StatusCode::ACCEPTED));
        };
        let (content_type, body) = if self.sse {
            ("text/event-stream", Body::Chunks(event(reply)))
        } else {
            ("application/json", Body::Whole(Some(reply)))
        };
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if self.sse {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        Ok(response)
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

fn event(message: Bytes) -> VecDeque<Bytes> {
    const START: &[u8] = b"event: message\ndata: ";
    const END: &[u8] = b"\n\n";
    if message.len() >= COPIED_BYTES {
        return [Bytes::from_static(START), message, Bytes::from_static(END)].into();
    }
    let mut event = BytesMut::with_capacity(START.len() + message.len() + END.len());
    event.extend_from_slice(START);
    event.extend_from_slice(&message);
    event.extend_from_slice(END);
    [event.freeze()].into()
}

enum Body {
    /// Sent chunked, as its length is not known before.
    Chunks(VecDeque<Bytes>),
    /// Nothing comes, and no end either.
    Open,
    Whole(Option<Bytes>),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Chunks(chunks) => chunks.pop_front(),
            Self::Open => return Poll::Pending,
            Self::Whole(whole) => whole.take(),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Chunks(chunks) => chunks.is_empty(),
            Self::Open => false,
            Self::Whole(whole) => whole.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Chunks(_) | Self::Open => SizeHint::default(),
            Self::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, |whole| whole.len() as u64)),
        }
    }
}
