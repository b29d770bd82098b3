//! One request until the head of its response: a pooled or new connection, redirects, deadlines.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::time;

use super::body::RequestBody;
use super::connect::{connect, proxy_of};
use super::pool::Pool;
use super::wire::{SendError, Wire};
use crate::http::config::Config;
use crate::http::core::machine::Head;
use crate::http::core::media::is_identity_coded;
use crate::http::core::proxy::ProxyServer;
use crate::http::core::session::SessionId;
use crate::http::core::target::Target;
use crate::http::core::{fault, headers, redirect};
use crate::{Error, ErrorKind};

/// How hyper says that a head exceeds the number of fields or of bytes.
const TOO_LARGE: &str = "message head is too large";

/// What is sent. Cloned for a redirect; the body is shared.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The session whose id the request carries.
    pub(crate) session: Option<SessionId>,
}

impl Outgoing {
    /// Sets the `Authorization` header; `None` leaves what the application set.
    pub(crate) fn authorize(&mut self, authorization: Option<&str>) -> Result<(), Error> {
        let Some(authorization) = authorization else { return Ok(()) };
        let bad = headers::BadHeader::Value { name: AUTHORIZATION };
        let mut value = HeaderValue::from_str(authorization).map_err(|_| fault::bad_header(&bad))?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

/// A response whose head has come, with the connection its body comes on.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The session whose id the request carries.
    pub(crate) session: Option<SessionId>,
    pub(crate) connection: Open,
}

/// A response body and its connection.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) wire: Box<Wire>,
    pub(crate) body: Incoming,
}

impl Opened {
    pub(crate) fn head(&self) -> Head<'_> {
        let length = self.connection.body.size_hint().exact();
        Head {
            status: self.status,
            headers: &self.headers,
            length,
            had_session: self.session.is_some(),
            wall: SystemTime::now(),
        }
    }
}

/// Sends `outgoing` to `target` and waits for the head of the final response, at most `deadline`.
pub(crate) async fn open(
    pool: &Arc<Pool>,
    config: &Config,
    target: &Target,
    outgoing: Outgoing,
    deadline: Option<Duration>,
) -> Result<Opened, Error> {
    // Pinned once: a future that is moved into each arm is kept once for each.
    let mut exchange = pin!(follow(pool, config, target, outgoing));
    match deadline {
        None => exchange.await,
        Some(deadline) => match time::timeout(deadline, exchange.as_mut()).await {
            Ok(result) => result,
            Err(_) => Err(fault::timeout("the head of the response", deadline)),
        },
    }
}

async fn follow(
    pool: &Arc<Pool>,
    config: &Config,
    target: &Target,
    mut outgoing: Outgoing,
) -> Result<Opened, Error> {
    let mut moved: Option<Target> = None;
    let mut hops = 0;
    loop {
        let target = moved.as_ref().unwrap_or(target);
        let again = outgoing.clone();
        let session = outgoing.session.clone();
        let (response, wire) = send(pool, config, target, outgoing).await?;
        let (parts, body) = response.into_parts();
        if redirect::is_redirect(parts.status) {
            let next =
                redirect::follow(target, parts.status, &parts.headers, hops, config.limits.max_redirects);
            pool.put(wire, Some(body));
            moved = Some(next.map_err(|refused| fault::redirect(parts.status, &refused))?);
            outgoing = again;
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
            return Err(fault::Refusal::of(parts.status, &parts.headers, SystemTime::now()).no_answer());
        }
        if !is_identity_coded(&parts.headers) {
            return Err(fault::packed(parts.status));
        }
        let connection = Open { wire, body };
        return Ok(Opened { status: parts.status, headers: parts.headers, session, connection });
    }
}

/// Sends one request on an idle connection or a new one. An idle connection that turns out to be closed before anything
/// was written is no error; after that nothing is repeated.
async fn send(
    pool: &Arc<Pool>,
    config: &Config,
    target: &Target,
    outgoing: Outgoing,
) -> Result<(http::Response<Incoming>, Box<Wire>), Error> {
    let mut request = request(target, config, outgoing);
    loop {
        let (mut wire, is_new) = match pool.take().await {
            Some(wire) => (wire, false),
            // Boxed, as it happens seldom and is large.
            None => (Box::pin(fresh(target, config)).await?, true),
        };
        match wire.send(request).await {
            Ok(response) => return Ok((response, wire)),
            Err(SendError { unsent: Some(unsent), .. }) if !is_new => request = unsent,
            Err(SendError { error, unsent }) => {
                return Err(broken(error, config).with_outcome_unknown(unsent.is_none()));
            }
        }
    }
}

async fn fresh(target: &Target, config: &Config) -> Result<Box<Wire>, Error> {
    let stream = connect(target, config).await?;
    Wire::handshake(stream, &config.limits)
        .await
        .map_err(|error| Error::new(ErrorKind::Connect, "the connection broke at once").with_source(error))
}

/// The proxy that reads the whole request, as there is no tunnel through it.
fn reading_proxy<'a>(target: &Target, config: &'a Config) -> Option<&'a ProxyServer> {
    if target.is_tls() { None } else { proxy_of(target, config) }
}

fn request(target: &Target, config: &Config, outgoing: Outgoing) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::new(outgoing.body));
    *request.method_mut() = outgoing.method;
    *request.uri_mut() = target.path();
    *request.headers_mut() = outgoing.headers;
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

/// The connection failed before the head of the response was complete.
fn broken(error: hyper::Error, config: &Config) -> Error {
    // hyper has a method for this in servers only.
    if error.is_parse() && error.to_string() == TOO_LARGE {
        return fault::head_over_limit(&config.limits).with_source(error);
    }
    if error.is_parse() {
        return Error::new(ErrorKind::PeerMisbehaved, "the server did not answer in http/1.1")
            .with_source(error)
            .with_outcome_unknown(true);
    }
    Error::new(ErrorKind::ConnectionLost, "the connection broke before the response")
        .with_source(error)
        .with_outcome_unknown(true)
}
