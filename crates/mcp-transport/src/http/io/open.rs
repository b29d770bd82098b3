//! One request until the head of its response: a pooled or new connection, redirects, deadlines.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::time;

use super::body::RequestBody;
use super::carrier::Carrier;
use super::connect::{connect, proxy_of};
#[cfg(feature = "http2")]
use super::lanes::Opening;
use super::pool::Pool;
use super::stream::Stream;
use super::wire::{SendError, Wire};
use crate::http::config::Config;
use crate::http::core::answer::error_object;
use crate::http::core::body::Body;
use crate::http::core::headers::Fields;
use crate::http::core::machine::Head;
use crate::http::core::media::{ContentType, is_identity_coded};
use crate::http::core::proxy::ProxyServer;
use crate::http::core::session::SessionId;
use crate::http::core::target::Target;
use crate::http::core::{fault, headers, lost_session, redirect, tls_wanted};
use crate::http::post::Departure;
#[cfg(feature = "tls")]
use crate::http::tls_failure;
use crate::{Error, ErrorKind};

/// How hyper says that a head exceeds the number of fields or of bytes.
const TOO_LARGE: &str = "message head is too large";

/// How often one request is sent again after a server refused it unprocessed. A server that refuses more often is busy,
/// which is for the caller to know.
const MAX_REFUSALS: u32 = 3;

/// What is sent, and sent again where a redirect or a refusal asks for that; the body is shared.
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) fields: Fields<'a>,
    pub(crate) body: Bytes,
}

impl Outgoing<'_> {
    /// Sets the `Authorization` header; `None` leaves what the application set.
    pub(crate) fn authorize(&mut self, authorization: Option<&str>) -> Result<(), Error> {
        let Some(authorization) = authorization else { return Ok(()) };
        let bad = headers::BadHeader::Value { name: AUTHORIZATION };
        let mut value = HeaderValue::from_str(authorization).map_err(|_| fault::bad_header(&bad))?;
        value.set_sensitive(true);
        self.fields.set(AUTHORIZATION, value);
        Ok(())
    }
}

/// A response whose head has come, with the connection its body comes on.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Where redirects led to, if there were any.
    pub(crate) moved: Option<Box<Target>>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The request carries an `Authorization` header.
    had_authorization: bool,
    /// The session whose id the request carries.
    pub(crate) session: Option<SessionId>,
    /// It came in plain HTTP, right from the server.
    is_plain: bool,
    /// The body, read already, says that there is no such session.
    tells_lost: bool,
    pub(crate) connection: Open,
}

/// A response body and its connection.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) wire: Carrier,
    pub(crate) body: Incoming,
}

impl Opened {
    pub(crate) fn head(&self) -> Head<'_> {
        let length = self.connection.body.size_hint().exact();
        Head {
            status: self.status,
            headers: &self.headers,
            length,
            had_authorization: self.had_authorization,
            had_session: self.session.is_some(),
            tells_lost: self.tells_lost,
            is_plain: self.is_plain,
            wall: SystemTime::now,
        }
    }
}

impl Opened {
    /// Reads a refusal that may say that there is no such session. For a GET, whose refusal is not read otherwise.
    pub(crate) async fn read_refusal(mut self, config: &Config) -> Self {
        let kind = ContentType::of(&self.headers);
        let is_text = matches!(kind, ContentType::Json | ContentType::Missing | ContentType::Text);
        if self.session.is_none() || self.status != StatusCode::BAD_REQUEST || !is_text {
            return self;
        }
        let Open { wire, body } = &mut self.connection;
        let mut read = Body::default();
        let limit = config.limits.max_error_body_bytes;
        let reading = async {
            // What is cut off says nothing.
            while let Some(piece) = poll_fn(|cx| wire.poll_piece(body, cx)).await {
                read.push(piece.ok()?, limit).ok()?;
            }
            Some(())
        };
        if let Ok(Some(())) = time::timeout(config.timeouts.message, reading).await {
            let payload = read.take();
            let object = error_object(&payload, &config.limits.decode_limits());
            let text = std::str::from_utf8(payload.as_bytes()).ok();
            self.tells_lost = lost_session::is_told(self.status, object.as_ref(), text);
        }
        self
    }
}

/// Who is told where a request is on its way, and asked whether it may go.
pub(crate) type Watch<'a> = &'a mut (dyn FnMut(Departure) -> bool + Send);

/// What is awaited by way of this is compiled in this crate. An async function is compiled in each crate that awaits it, and with it
/// everything that it awaits in turn: hyper, say.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Sends `outgoing` to `target` and waits for the head of the final response, at most `deadline`.
pub(crate) async fn open(
    pool: &Arc<Pool>,
    config: &Arc<Config>,
    target: &Target,
    outgoing: &Outgoing<'_>,
    deadline: Option<Duration>,
    watch: Watch<'_>,
) -> Result<Opened, Error> {
    let left = AtomicBool::new(false);
    let mut watch = |departure| {
        left.store(departure == Departure::Leaves, Ordering::Relaxed);
        watch(departure)
    };
    // Pinned once: a future that is moved into each arm is kept once for each.
    let mut exchange = pin!(follow(pool, config, target, outgoing, &mut watch));
    match deadline {
        None => exchange.await,
        // A timer is large, and calls most often have none here.
        Some(deadline) => match Box::pin(time::timeout(deadline, exchange.as_mut())).await {
            Ok(result) => result,
            Err(_) => Err(fault::timeout("the head of the response", deadline)
                .with_outcome_unknown(left.load(Ordering::Relaxed))),
        },
    }
}

async fn follow(
    pool: &Arc<Pool>,
    config: &Arc<Config>,
    target: &Target,
    outgoing: &Outgoing<'_>,
    watch: Watch<'_>,
) -> Result<Opened, Error> {
    let mut moved: Option<Box<Target>> = None;
    let mut hops = 0;
    loop {
        let target = moved.as_deref().unwrap_or(target);
        let (response, wire) = send(pool, config, target, outgoing, &mut *watch).await?;
        let (parts, body) = response.into_parts();
        if redirect::is_redirect(parts.status) {
            let limit = config.limits.max_redirects;
            let next = redirect::follow(target, &outgoing.method, parts.status, &parts.headers, hops, limit);
            pool.put(wire, Some(body));
            moved = Some(Box::new(next.map_err(|refused| fault::redirect(parts.status, &refused))?));
            hops += 1;
            continue;
        }
        if parts.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
            && let Some(proxy) = reading_proxy(target, config)
        {
            pool.put(wire, Some(body));
            return Err(fault::proxy_refused(proxy, parts.status));
        }
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(fault::Refusal::of(parts.status, &parts.headers, SystemTime::now).no_answer());
        }
        // HTTP/1.1 is held to it while it is read.
        if wire.is_http2() && parts.headers.len() > config.limits.max_headers {
            return Err(fault::too_many_fields(config.limits.max_headers));
        }
        if !is_identity_coded(&parts.headers) {
            return Err(fault::packed(parts.status));
        }
        let connection = Open { wire, body };
        return Ok(Opened {
            status: parts.status,
            headers: parts.headers,
            had_authorization: outgoing.fields.has_authorization(),
            session: outgoing.fields.session().cloned(),
            is_plain: is_plain(target, config),
            tells_lost: false,
            moved,
            connection,
        });
    }
}

/// Sends one request on an idle connection or a new one. An idle connection that turns out to be closed before anything
/// was written is no error, and neither is a server that says it has not processed the request; nothing else is repeated.
pub(crate) async fn send(
    pool: &Arc<Pool>,
    config: &Arc<Config>,
    target: &Target,
    outgoing: &Outgoing<'_>,
    watch: Watch<'_>,
) -> Result<(http::Response<Incoming>, Carrier), Error> {
    let mut refusals = 0;
    loop {
        // Boxed when new, as it happens seldom and is large.
        let (mut carrier, is_new) = match pool.take().await {
            Some(carrier) => (carrier, false),
            None => Box::pin(fresh(pool, target, config)).await?,
        };
        let request = request(target, config, outgoing, carrier.is_http2());
        if !watch(Departure::Leaves) {
            return Err(Error::new(ErrorKind::Closed, "the request was given up before it was sent"));
        }
        match carrier.send(request).await {
            Ok(response) => {
                if !pool.has_answered.load(Ordering::Relaxed) {
                    pool.has_answered.store(true, Ordering::Relaxed);
                }
                return Ok((response, carrier));
            }
            Err(failed) if failed.is_unsent && !is_new => {
                watch(Departure::Stays);
            }
            Err(failed) if failed.is_refused && refusals < MAX_REFUSALS => {
                watch(Departure::Stays);
                refusals += 1;
            }
            Err(SendError { error, is_unsent, is_refused }) => {
                let may_want_tls = is_plain(target, config) && !pool.has_answered.load(Ordering::Relaxed);
                if may_want_tls && is_record(error.is_parse(), carrier) {
                    return Err(fault::tls_wanted(error.into()));
                }
                return Err(
                    broken(error, config, may_want_tls).with_outcome_unknown(!is_unsent && !is_refused)
                );
            }
        }
    }
}

/// A carrier on a new connection, or on one that somebody else opened meanwhile (`false`).
#[cfg(not(feature = "http2"))]
async fn fresh(_: &Arc<Pool>, target: &Target, config: &Arc<Config>) -> Result<(Carrier, bool), Error> {
    let stream = connect(target, config).await?;
    Ok((own(stream, config).await?, true))
}

#[cfg(feature = "http2")]
async fn fresh(pool: &Arc<Pool>, target: &Target, config: &Arc<Config>) -> Result<(Carrier, bool), Error> {
    loop {
        if config.http2.is_none() || !pool.may_share() {
            let stream = connect(target, config).await?;
            return Ok((own(stream, config).await?, true));
        }
        // One connection will serve all who want one now, so they open it together: whoever of them is polled goes on with it.
        let opening = pool.lanes.opening(|| {
            let (pool, target, config) = (Arc::clone(pool), target.clone(), Arc::clone(config));
            async move {
                let opened = open_shared(&pool, &target, &config).await;
                opened.inspect_err(|_| pool.lanes.no_longer_opening())
            }
        });
        let Some(opened) = opening.wait().await else {
            return Err(Error::new(ErrorKind::Connect, "opening the connection panicked"));
        };
        // What failed for one would take as long to fail for each of those who wait.
        if let Some(carrier) = opened?.take() {
            return Ok((carrier, true));
        }
        if let Some(carrier) = pool.take().await {
            return Ok((carrier, false));
        }
    }
}

/// A new connection, which is shared if the server wants that.
#[cfg(feature = "http2")]
async fn open_shared(pool: &Arc<Pool>, target: &Target, config: &Config) -> Opening {
    use super::multiplex::Multiplexed;

    let stream = connect(target, config).await?;
    let shared = config.http2.as_ref().filter(|options| {
        let knows = options.prior_knowledge && !target.is_tls() && proxy_of(target, config).is_none();
        stream.chose_http2().unwrap_or(knows)
    });
    let Some(options) = shared else {
        return Ok(pool.lanes.opened(own(stream, config).await?, None));
    };
    let shared = Multiplexed::handshake(stream, options, &config.limits).await.map_err(broke_at_once)?;
    let lane = shared.lane(pool).ok_or_else(|| {
        Error::new(ErrorKind::Connect, "the server takes no request on a new HTTP/2 connection")
    })?;
    Ok(pool.lanes.opened(Carrier::Lane(lane), Some(shared)))
}

/// An HTTP/1.1 connection for one exchange at a time.
async fn own(stream: Stream, config: &Config) -> Result<Carrier, Error> {
    Wire::handshake(stream, &config.limits).await.map(Carrier::Wire).map_err(broke_at_once)
}

fn broke_at_once(error: hyper::Error) -> Error {
    Error::new(ErrorKind::Connect, "the connection broke at once").with_source(error)
}

/// The proxy that reads the whole request, as there is no tunnel through it.
fn reading_proxy<'a>(target: &Target, config: &'a Config) -> Option<&'a ProxyServer> {
    if target.is_tls() { None } else { proxy_of(target, config) }
}

/// Whether the server itself, and no proxy, reads what is sent without TLS, so that it would be the one to miss it.
fn is_plain(target: &Target, config: &Config) -> bool {
    #[cfg(unix)]
    if config.unix_socket.is_some() {
        return false;
    }
    !target.is_tls() && proxy_of(target, config).is_none()
}

/// Whether a record of TLS came in place of a response in HTTP/1.1.
fn is_record(is_parse: bool, carrier: Carrier) -> bool {
    is_parse && carrier.into_wire().is_some_and(|wire| tls_wanted::is_record(&wire.into_unread()))
}

fn request(
    target: &Target,
    config: &Config,
    outgoing: &Outgoing<'_>,
    is_http2: bool,
) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::new(outgoing.body.clone()));
    *request.method_mut() = outgoing.method.clone();
    *request.uri_mut() = target.path();
    *request.headers_mut() = outgoing.fields.write();
    if is_http2 && let Some(absolute) = target.absolute() {
        // The authority is a field of its own there (RFC 9113 section 8.3.1).
        *request.uri_mut() = absolute;
        *request.version_mut() = http::Version::HTTP_2;
        return request;
    }
    headers::set_host(request.headers_mut(), target);
    if let Some(proxy) = reading_proxy(target, config) {
        if let Some(absolute) = target.absolute() {
            *request.uri_mut() = absolute;
        }
        if let Some(authorization) = proxy.authorization() {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }
    request
}

/// The connection failed before the head of the response was complete. `may_want_tls`: nothing is known of the server yet, and it was
/// spoken to in plain HTTP.
fn broken(error: hyper::Error, config: &Config, may_want_tls: bool) -> Error {
    // hyper has a method for this in servers only.
    if error.is_parse() && error.to_string() == TOO_LARGE {
        return fault::head_over_limit(&config.limits).with_source(error);
    }
    if error.is_parse() {
        return Error::new(ErrorKind::PeerMisbehaved, "the server did not answer in HTTP/1.1")
            .with_source(error)
            .with_outcome_unknown(true);
    }
    #[cfg(feature = "http2")]
    if super::multiplex::is_misbehaviour(&error) {
        return Error::new(ErrorKind::PeerMisbehaved, "the server violated the HTTP/2 protocol")
            .with_source(error)
            .with_outcome_unknown(true);
    }
    #[cfg(feature = "tls")]
    if let Some(refused) = tls_failure::of_refused_client(&error) {
        return refused.with_source(error).with_outcome_unknown(true);
    }
    // How most servers that speak TLS take plain HTTP, among them those that run on Node.js and Python.
    let text = if may_want_tls {
        "the connection broke before the first response; if the server speaks TLS on this port, its URL must begin with https"
    } else {
        "the connection broke before the response"
    };
    Error::new(ErrorKind::ConnectionLost, text).with_source(error).with_outcome_unknown(true)
}
