//! Every way an HTTP exchange goes wrong, turned into the crate's error in one place.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use mcp_jsonrpc::ErrorObject;
use mcp_sse::ReconnectError;

use super::headers::BadHeader;
use super::http_date;
use super::machine::Cause;
use super::proxy::{BadProxy, ProxyServer};
use super::redirect::RefusedRedirect;
use super::session::BadSessionId;
use super::target::BadTarget;
use crate::http::config::HttpLimits;
use crate::http::credentials::SharedError;
use crate::{Error, ErrorKind, TlsFailure, Untrusted};

/// How much of a body an error shows.
const SHOWN_BYTES: usize = 256;

/// The longest `Retry-After` that is passed on. A server that is away for longer is not waited for by a program, and no
/// sum with a clock overflows.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(86_400);

/// The refusal behind a status, with what its head says about the way on.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal {
    /// `now` reads the time of day, which a date is counted from.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap, now: fn() -> SystemTime) -> Self {
        let text = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Self { status, retry_after: text.and_then(|text| retry_after(text.trim(), now())) }
    }

    /// A gateway that gives up may stand before a server that went on.
    fn is_ambiguous(&self) -> bool {
        self.status.is_server_error()
    }

    fn annotate(&self, error: Error) -> Error {
        let error = error.with_status(self.status.as_u16());
        match self.retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }

    /// A status that is no success; `body` is what its text body begins with.
    pub(crate) fn error(&self, body: Option<&str>) -> Error {
        let status = show(self.status);
        let text = format!("the server answered {status}{}", Shown(body));
        self.annotate(Error::new(ErrorKind::Status, text)).with_outcome_unknown(self.is_ambiguous())
    }

    /// The same with the JSON-RPC error that its body holds.
    pub(crate) fn with_object(&self, object: ErrorObject) -> Error {
        let text = format!(
            "the server answered {} with error {}: {}",
            show(self.status),
            object.code.get(),
            Untrusted::new(&object.message, SHOWN_BYTES).quoted()
        );
        self.annotate(Error::new(ErrorKind::Status, text))
            .with_body_error(object)
            .with_outcome_unknown(self.is_ambiguous())
    }

    /// 401, or a 403 about credentials; `were_sent`: the request had an `Authorization` header.
    pub(crate) fn unauthorized(
        &self,
        headers: &HeaderMap,
        were_sent: bool,
        max_challenge_bytes: usize,
    ) -> Error {
        let why = if were_sent {
            "other credentials are required"
        } else {
            "credentials are required, and no Authorization header was sent (HttpServer::bearer, token and header set it)"
        };
        let mut text = format!("the server answered {}: {why}", show(self.status));
        let challenges = challenges(headers, max_challenge_bytes);
        if let Some(described) = challenges.iter().find_map(|challenge| error_description(challenge)) {
            let _ = write!(text, "; the server says: {}", Untrusted::new(&described, SHOWN_BYTES).quoted());
        }
        self.annotate(Error::new(ErrorKind::Unauthorized, text)).with_www_authenticate(challenges)
    }

    pub(crate) fn session_lost(&self) -> Error {
        self.annotate(Error::new(ErrorKind::SessionLost, "the server no longer knows the session"))
    }

    /// 202 or an empty success to a request.
    pub(crate) fn no_answer(&self) -> Error {
        let text = format!("the server answered a request with {} and no message", show(self.status));
        self.annotate(Error::new(ErrorKind::PeerMisbehaved, text)).with_outcome_unknown(true)
    }

    /// Success with something that is no MCP message.
    pub(crate) fn not_mcp(&self, content_type: Option<&str>, body: Option<&str>) -> Error {
        let status = show(self.status);
        let text = match content_type {
            Some(content_type) => {
                let content_type = Untrusted::new(content_type, SHOWN_BYTES).quoted();
                format!("the answer {status} of type {content_type} is no MCP message{}", Shown(body))
            }
            None => format!("the answer {status} without a type is no MCP message{}", Shown(body)),
        };
        self.annotate(Error::new(ErrorKind::PeerMisbehaved, text)).with_outcome_unknown(true)
    }
}

/// The wait that `Retry-After` asks for, in seconds or until a date; one that is over is none.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = if is_number {
        // More digits than fit are more than the longest wait.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        http_date::parse(text, now)?.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

struct Shown<'a>(Option<&'a str>);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.map(str::trim) {
            None | Some("") => Ok(()),
            Some(text) => write!(f, ": {}", Untrusted::new(text, SHOWN_BYTES).quoted()),
        }
    }
}

fn show(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The raw challenges, whole lines only, as long as they fit.
pub(crate) fn challenges(headers: &HeaderMap, max_bytes: usize) -> Vec<String> {
    let mut left = max_bytes;
    let mut lines = Vec::new();
    for line in headers.get_all(WWW_AUTHENTICATE) {
        let Some(rest) = left.checked_sub(line.len()) else { break };
        left = rest;
        lines.push(String::from_utf8_lossy(line.as_bytes()).into_owned());
    }
    lines
}

/// What the challenge says to people (RFC 6750 section 3): the quoted string of `error_description`, without its escapes. Where the
/// parameter stands within another string, a text of the server is shown all the same.
fn error_description(challenge: &str) -> Option<String> {
    const NAME: &str = "error_description=\"";
    let at = challenge.to_ascii_lowercase().find(NAME)? + NAME.len();
    let mut rest = challenge.get(at..)?.chars();
    let mut described = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(described).filter(|text| !text.is_empty()),
            '\\' => described.push(rest.next()?),
            c => described.push(c),
        }
    }
}

/// The provider of credentials has none.
pub(crate) fn no_credentials(cause: Cause) -> Error {
    let error = Error::new(ErrorKind::Unauthorized, "there are no credentials for the request");
    match cause.downcast::<SharedError>() {
        Ok(shared) => error.with_shared_source(shared.0),
        Err(cause) => error.with_source(cause),
    }
}

pub(crate) fn bad_target(bad: BadTarget) -> Error {
    Error::new(ErrorKind::Misuse, bad.to_string())
}

pub(crate) fn bad_proxy(bad: BadProxy) -> Error {
    Error::new(ErrorKind::Misuse, bad.to_string())
}

/// The proxy refused, in place of the server: with a tunnel any status, else 407 only.
pub(crate) fn proxy_refused(proxy: &ProxyServer, status: StatusCode) -> Error {
    let text = match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => "other credentials are required",
        _ => "no tunnel to the server",
    };
    let text = format!("the proxy {proxy} answered {}: {text}", show(status));
    Error::new(ErrorKind::Proxy, text).with_status(status.as_u16())
}

pub(crate) fn bad_header(bad: &BadHeader) -> Error {
    Error::new(ErrorKind::Misuse, bad.to_string())
}

pub(crate) fn bad_session(bad: BadSessionId) -> Error {
    // It comes with the answer: the request was carried out.
    Error::new(ErrorKind::PeerMisbehaved, bad.to_string()).with_outcome_unknown(true)
}

#[cfg(not(feature = "tls"))]
pub(crate) fn tls_missing() -> Error {
    Error::new(ErrorKind::Misuse, "https needs the feature `tls`, which this build does not have")
}

/// What answered in plain HTTP, or did not, speaks TLS there; `cause` is how that was told. None of the request was processed.
pub(crate) fn tls_wanted(cause: Cause) -> Error {
    let text = "the server speaks TLS on this port: the URL must begin with https, not http";
    Error::new(ErrorKind::Tls(TlsFailure::Required), text).with_source(cause)
}

pub(crate) fn redirect(status: StatusCode, refused: &RefusedRedirect) -> Error {
    const SHOWN_URL_BYTES: usize = 512;
    let text = match refused {
        RefusedRedirect::CrossOrigin { origin } => format!(
            "the server redirects to {}, another origin, which is not followed",
            Untrusted::new(origin, SHOWN_URL_BYTES).quoted()
        ),
        // No more of the location: paths may hold secrets.
        RefusedRedirect::ChangesMethod { status, origin } => format!(
            "the server redirects to another path of {} with status {status}, which would change the method",
            Untrusted::new(origin, SHOWN_URL_BYTES).quoted()
        ),
        RefusedRedirect::NoLocation => "the server redirects without a usable location".to_owned(),
        RefusedRedirect::TooMany { limit } => format!("the server redirects more than {limit} times"),
    };
    Error::new(ErrorKind::PeerMisbehaved, text).with_status(status.as_u16())
}

/// A response head beyond a limit, where it is not known which of the two.
pub(crate) fn head_over_limit(limits: &HttpLimits) -> Error {
    let bytes = u64::try_from(limits.max_head_bytes).unwrap_or(u64::MAX);
    let text = format!("the response head exceeds {} fields or {bytes} bytes", limits.max_headers);
    Error::limit_exceeded("max_head_bytes", bytes, text).with_outcome_unknown(true)
}

pub(crate) fn too_many_fields(max_headers: usize) -> Error {
    let limit = u64::try_from(max_headers).unwrap_or(u64::MAX);
    Error::limit_exceeded("max_headers", limit, format!("the response head exceeds {limit} fields"))
        .with_outcome_unknown(true)
}

pub(crate) fn packed(status: StatusCode) -> Error {
    let text = "the response has a content encoding, although none was accepted";
    Error::new(ErrorKind::PeerMisbehaved, text).with_status(status.as_u16()).with_outcome_unknown(true)
}

pub(crate) fn over_limit(name: &'static str, what: &'static str, limit: usize) -> Error {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    Error::limit_exceeded(name, limit, format!("{what} exceeds the limit of {limit} bytes"))
        .with_outcome_unknown(true)
}

pub(crate) fn timeout(what: &'static str, after: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("{what} took longer than {after:?}")).with_outcome_unknown(true)
}

/// The response ended, or its connection did, before the answer came.
pub(crate) fn lost(cause: Option<Cause>) -> Error {
    let text = "the response ended before the answer";
    let error = Error::new(ErrorKind::ConnectionLost, text).with_outcome_unknown(true);
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

/// The one stream of a 2024-11-05 connection ended.
pub(crate) fn channel_lost(cause: Option<Cause>) -> Error {
    let error = Error::new(ErrorKind::ConnectionLost, "the event stream of the server ended");
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

/// The response is complete and was no answer to the request.
pub(crate) fn wrong_answer(status: StatusCode) -> Error {
    let text = "the response holds no answer to the request";
    Error::new(ErrorKind::PeerMisbehaved, text).with_status(status.as_u16()).with_outcome_unknown(true)
}

/// The end of all attempts to reopen a stream; `last` is what the latest of them met.
pub(crate) fn given_up(reason: ReconnectError, last: Option<Error>) -> Error {
    let error = match reason {
        ReconnectError::RetryTooLong { max_retry, .. } => {
            let limit = u64::try_from(max_retry.as_millis()).unwrap_or(u64::MAX);
            Error::limit_exceeded("retry_max", limit, reason.to_string())
        }
        _ => Error::new(ErrorKind::ConnectionLost, format!("the stream was given up: {reason}")),
    };
    match last {
        Some(last) => error.with_source(last),
        None => error,
    }
}

/// Whether trying again may help.
pub(crate) fn is_passing(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Connect | ErrorKind::ConnectionLost | ErrorKind::Timeout => true,
        ErrorKind::Status => {
            error.status().is_some_and(|status| status >= 500 || matches!(status, 408 | 425 | 429))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// auth:LIM-04
    #[test]
    fn challenges_are_kept_raw_and_bounded() {
        let mut headers = HeaderMap::new();
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"a\""));
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        assert_eq!(challenges(&headers, 1024), ["Bearer realm=\"a\"", "Basic"]);
        assert_eq!(challenges(&headers, 21), ["Bearer realm=\"a\"", "Basic"]);
        assert_eq!(challenges(&headers, 20), ["Bearer realm=\"a\""]);
        assert!(challenges(&headers, 15).is_empty());
    }

    /// auth:SEC-15
    #[test]
    fn a_refusal_for_credentials_says_whether_there_were_any_and_what_the_server_says() {
        let refusal = Refusal { status: StatusCode::UNAUTHORIZED, retry_after: None };
        let shown = |challenge: &str, were_sent| {
            let mut headers = HeaderMap::new();
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(challenge).unwrap());
            refusal.unauthorized(&headers, were_sent, 4096).to_string()
        };
        let other = "the server answered 401 Unauthorized: other credentials are required";
        let none = "the server answered 401 Unauthorized: credentials are required, and no Authorization header was sent \
                    (HttpServer::bearer, token and header set it)";
        assert_eq!((&*shown("Bearer", true), &*shown("Bearer", false)), (other, none));
        for (challenge, says) in [
            (r#"Bearer error="x", ERROR_Description="the token expired""#, r#""the token expired""#),
            (r#"Bearer error_description="\"; cause: all is \\ well\"""#, r#""\"; cause: all is \\ well\"""#),
        ] {
            assert_eq!(shown(challenge, true), format!("{other}; the server says: {says}"));
        }
        for value in ["", "\"x", "\"\"", "\"\\", "x"] {
            assert_eq!(shown(&format!("Bearer error_description={value}"), true), other, "{value}");
        }
        let long = shown(&format!("Bearer error_description=\"{}\"", "y".repeat(3000)), true);
        assert!(long.len() < 400 && long.ends_with("\"… (3000 bytes)"), "{long}");
    }

    /// auth:SEC-14, auth:SEC-15, auth:LIM-12
    #[test]
    fn body_text_is_cut_and_escaped() {
        let refusal = Refusal { status: StatusCode::BAD_GATEWAY, retry_after: None };
        let shown = refusal.error(Some(&format!("\u{1b}[31m{}", "x".repeat(10_000)))).to_string();
        assert!(shown.starts_with("the server answered 502 Bad Gateway: \"\\u{1b}[31mxxx"), "{shown}");
        assert!(shown.len() < 400, "{}", shown.len());
        assert_eq!(refusal.error(None).to_string(), "the server answered 502 Bad Gateway");
    }

    #[test]
    fn a_proxy_that_refuses_says_whether_it_is_about_credentials() {
        let proxy = ProxyServer::parse("http://user:canary@proxy:3128").unwrap();
        for (status, expected) in [
            (
                407,
                "the proxy proxy:3128 answered 407 Proxy Authentication Required: other credentials are required",
            ),
            (502, "the proxy proxy:3128 answered 502 Bad Gateway: no tunnel to the server"),
        ] {
            let error = proxy_refused(&proxy, StatusCode::from_u16(status).unwrap());
            assert_eq!((error.to_string().as_str(), error.status()), (expected, Some(status)));
        }
    }

    /// Whether the server may have worked on what a gateway gives up.
    #[test]
    fn a_refusal_of_a_gateway_leaves_the_outcome_open() {
        for (status, unknown) in
            [(400, false), (429, false), (499, false), (500, true), (502, true), (504, true)]
        {
            let refusal = Refusal { status: StatusCode::from_u16(status).unwrap(), retry_after: None };
            assert_eq!(refusal.error(None).outcome_unknown(), unknown, "{status}");
        }
        assert!(bad_session(BadSessionId::Empty).outcome_unknown(), "it came with the answer");
    }

    #[test]
    fn retry_after_is_kept_within_a_day() {
        let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            (" 7 ", Some(7)),
            ("0", Some(0)),
            ("86401", Some(86_400)),
            ("99999999999999999999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("-1", None),
            ("+7", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            let refusal = Refusal::of(StatusCode::TOO_MANY_REQUESTS, &headers, now);
            assert_eq!(refusal.error(None).retry_after(), expected.map(Duration::from_secs), "{text}");
        }
    }
}
