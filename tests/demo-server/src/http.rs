//! Sessions over Streamable HTTP, at `/mcp`.
//!
//! A POST with `tools/call` is answered by an event stream that carries everything the call says; other requests are answered
//! by JSON. GET opens the session's own stream, DELETE ends the session. Clients of 2026-07-28 have no session: each POST is by itself, and
//! its headers repeat what is in its body.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::message::{self, INVALID_REQUEST, Incoming, Refusal, UNAVAILABLE};
use crate::session::{Outlet, Reply, Session};
use crate::{Era, Limits, PROTOCOL_VERSION, modern, tools};

const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
const ALLOWED: &str = "POST, GET, DELETE";
const VERSION: &str = "mcp-protocol-version";
/// `accept` fails for a moment when file descriptors run out; for longer, something is wrong for good.
const ACCEPT_FAILURES: u32 = 100;

/// Serves any number of clients at `/mcp` of the listener's address until accepting fails for good. Dropping the future closes
/// every connection and cancels every call.
///
/// # Errors
/// What accepting gave, after it failed 100 times in a row.
pub async fn serve_http(listener: TcpListener) -> io::Result<()> {
    serve(listener, Era::Legacy, Limits::default()).await
}

/// The same for clients of 2026-07-28.
///
/// # Errors
/// As [`serve_http`].
pub async fn serve_modern_http(listener: TcpListener) -> io::Result<()> {
    serve(listener, Era::Modern, Limits::default()).await
}

pub(crate) async fn serve(listener: TcpListener, era: Era, limits: Limits) -> io::Result<()> {
    let server = Arc::new(Server { era, limits, sessions: Mutex::new(HashMap::new()) });
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut failures = 0;
    loop {
        while connections.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if failures >= ACCEPT_FAILURES => return Err(error),
            Err(_) => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        failures = 0;
        let server = Arc::clone(&server);
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(server.answer(request).await) }
            });
            // A connection that breaks is its client's matter.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.request_wait)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Answer = Response<Either<Full<Bytes>, Events>>;

struct Server {
    era: Era,
    limits: Limits,
    sessions: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    session: Arc<Session>,
    used: Instant,
    /// The GET stream. Dropping it ends the stream.
    stream: Option<Outlet>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.session.close();
    }
}

impl Server {
    async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let answered = if head.uri.path() != PATH {
            Err(refuse(StatusCode::NOT_FOUND, "the endpoint is /mcp"))
        } else if !is_local_origin(&head.headers) {
            // A web page that rebinds a name to this machine must not reach the server.
            Err(refuse(StatusCode::FORBIDDEN, "this origin may not call"))
        } else {
            match head.method {
                Method::POST => self.post(&head.headers, body).await,
                Method::GET if self.era == Era::Legacy => self.get(&head.headers),
                Method::DELETE if self.era == Era::Legacy => self.delete(&head.headers),
                _ => Err(refuse(StatusCode::METHOD_NOT_ALLOWED, ALLOWED)),
            }
        };
        answered.unwrap_or_else(Rejection::into_answer)
    }

    async fn post<B>(&self, headers: &HeaderMap, body: B) -> Result<Answer, Rejection>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !is_json(headers) {
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is application/json"));
        }
        if !(accepts(headers, "application/json") && accepts(headers, "text/event-stream")) {
            let why = "accept both application/json and text/event-stream";
            return Err(refuse(StatusCode::NOT_ACCEPTABLE, why));
        }
        let reading = Limited::new(body, self.limits.message_bytes).collect();
        let text = match tokio::time::timeout(self.limits.request_wait, reading).await {
            Ok(Ok(text)) => text.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let why = format!("a message may have {} bytes", self.limits.message_bytes);
                return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &why));
            }
            Ok(Err(_)) => return Err(refuse(StatusCode::BAD_REQUEST, "the body broke off")),
            Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        };
        let incoming = message::read(&text).map_err(|(id, refusal)| Rejection {
            status: StatusCode::BAD_REQUEST,
            body: refusal.response(&id),
        })?;
        if self.era == Era::Modern {
            return self.modern(headers, incoming);
        }
        if let Incoming::Request { method, .. } = &incoming
            && method == "initialize"
            && !headers.contains_key(SESSION)
        {
            return self.initialize(incoming);
        }
        let session = self.session(headers)?;
        let (outlet, queue) = mpsc::channel(self.limits.queued_messages);
        Ok(match session.handle(incoming, &outlet) {
            Reply::Nothing => empty(StatusCode::ACCEPTED),
            Reply::Now(answer) => json(StatusCode::OK, &answer),
            Reply::Streaming => events(queue),
        })
    }

    /// Answers one modern request, which belongs to no session.
    fn modern(&self, headers: &HeaderMap, incoming: Incoming) -> Result<Answer, Rejection> {
        if let Incoming::Request { id, method, params } = &incoming {
            let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            modern::check_headers(header, method, params).map_err(|refusal| Rejection {
                status: StatusCode::BAD_REQUEST,
                body: refusal.response(id),
            })?;
        }
        let (outlet, queue) = mpsc::channel(self.limits.queued_messages);
        Ok(match Session::new(self.era, self.limits).handle(incoming, &outlet) {
            Reply::Nothing => empty(StatusCode::ACCEPTED),
            Reply::Now(answer) => {
                let code = answer.pointer("/error/code").and_then(Value::as_i64);
                json(code.map_or(StatusCode::OK, modern::status), &answer)
            }
            Reply::Streaming => events(queue),
        })
    }

    /// Opens a session, if `initialize` is accepted.
    fn initialize(&self, incoming: Incoming) -> Result<Answer, Rejection> {
        let session = Session::new(self.era, self.limits);
        // `initialize` is answered at once, never through the outlet.
        let (outlet, _queue) = mpsc::channel(1);
        let Reply::Now(answer) = session.handle(incoming, &outlet) else {
            return Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "initialize was not answered"));
        };
        if answer.get("error").is_some() {
            return Err(Rejection { status: StatusCode::BAD_REQUEST, body: answer });
        }
        let id = tools::random_hex().map_err(|why| refuse(StatusCode::INTERNAL_SERVER_ERROR, &why))?;
        let header = HeaderValue::from_str(&id)
            .map_err(|_| refuse(StatusCode::INTERNAL_SERVER_ERROR, "the session id is no header value"))?;
        let mut sessions = self.lock();
        if sessions.len() >= self.limits.sessions {
            let idle = sessions.iter().filter(|(_, entry)| entry.session.is_idle());
            match idle.min_by_key(|(_, entry)| entry.used).map(|(id, _)| id.clone()) {
                Some(oldest) => drop(sessions.remove(&oldest)),
                None => return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "every session is busy")),
            }
        }
        sessions.insert(id, Entry { session, used: Instant::now(), stream: None });
        let mut answer = json(StatusCode::OK, &answer);
        answer.headers_mut().insert(SESSION, header);
        Ok(answer)
    }

    fn get(&self, headers: &HeaderMap) -> Result<Answer, Rejection> {
        if !accepts(headers, "text/event-stream") {
            return Err(refuse(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream"));
        }
        let mut sessions = self.lock();
        let entry = find(&mut sessions, headers)?;
        if entry.stream.as_ref().is_some_and(|stream| !stream.is_closed()) {
            return Err(refuse(StatusCode::CONFLICT, "the session's stream is open already"));
        }
        let (outlet, queue) = mpsc::channel(entry.session.limits().queued_messages);
        entry.stream = Some(outlet);
        Ok(events(queue))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Answer, Rejection> {
        let mut sessions = self.lock();
        find(&mut sessions, headers)?;
        if let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) {
            sessions.remove(id);
        }
        Ok(empty(StatusCode::NO_CONTENT))
    }

    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Rejection> {
        find(&mut self.lock(), headers).map(|entry| Arc::clone(&entry.session))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry that the headers name, after checking both headers that every request of a session carries.
fn find<'a>(
    sessions: &'a mut HashMap<String, Entry>,
    headers: &HeaderMap,
) -> Result<&'a mut Entry, Rejection> {
    let Some(id) = headers.get(SESSION) else {
        return Err(refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is required"));
    };
    let entry = id.to_str().ok().and_then(|id| sessions.get_mut(id));
    let Some(entry) = entry else {
        return Err(refuse(StatusCode::NOT_FOUND, "no such session"));
    };
    match headers.get(VERSION) {
        Some(version) if version == PROTOCOL_VERSION => {}
        Some(_) => return Err(refuse(StatusCode::BAD_REQUEST, "MCP-Protocol-Version must be 2025-11-25")),
        // Without the header a server assumes 2025-03-26, which this one does not speak.
        None => return Err(refuse(StatusCode::BAD_REQUEST, "MCP-Protocol-Version is required")),
    }
    entry.used = Instant::now();
    Ok(entry)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted)))
}

fn is_local_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let parsed = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
    parsed.as_ref().and_then(Uri::host).is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Either::Left(Full::default()));
    *answer.status_mut() = status;
    answer
}

fn json(status: StatusCode, message: &Value) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(message.to_string())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A request that is refused with an error response.
struct Rejection {
    status: StatusCode,
    body: Value,
}

impl Rejection {
    fn into_answer(self) -> Answer {
        let mut answer = json(self.status, &self.body);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(ALLOWED));
        }
        answer
    }
}

/// A refusal of the transport: an error response that belongs to no request.
fn refuse(status: StatusCode, why: &str) -> Rejection {
    let code = if status.is_server_error() { UNAVAILABLE } else { INVALID_REQUEST };
    Rejection { status, body: Refusal::new(code, why).response(&Value::Null) }
}

fn events(queue: mpsc::Receiver<Value>) -> Answer {
    let mut answer = Response::new(Either::Right(Events { queue }));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Messages as server-sent events, until their last sender is gone.
#[derive(Debug)]
struct Events {
    queue: mpsc::Receiver<Value>,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = ready!(self.queue.poll_recv(context));
        // Compact JSON text holds no raw newline, so one data field holds it.
        Poll::Ready(
            next.map(|message| Ok(Frame::data(format!("event: message\ndata: {message}\n\n").into()))),
        )
    }
}
