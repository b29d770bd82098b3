//! Limits and deadlines of Streamable HTTP, each with its reason and its effect.

use std::time::Duration;

use mcp_jsonrpc::DecodeLimits;

use super::core::address::AddressPolicy;
use super::core::proxy::Rules;
use super::credentials::Provider;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Limits on what one HTTP server can make this client hold or do.
///
/// Limits are enforced while bytes arrive; a declared `Content-Length` is only used to refuse early.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Largest JSON response body, in bytes. Default 16 MiB: a base64 image of 12 MB fits, a hostile peer cannot fill
    /// memory. Beyond it the exchange fails with kind `LimitExceeded` and the connection is closed.
    pub max_body_bytes: usize,
    /// Largest Server-Sent Event (the `data` of one message), in bytes. Default 16 MiB, as for a body. Beyond it the
    /// exchange fails with kind `LimitExceeded`; on a stream that belongs to no single request the event is passed over and
    /// reported, by [`Received::OversizedStart`](crate::Received::OversizedStart) where its end has not come yet and by
    /// [`Received::Oversized`](crate::Received::Oversized) at its end. Many small events are never counted together.
    pub max_event_bytes: usize,
    /// Longest id of a Server-Sent Event, and longest type, in bytes. Default 64 KiB: ids come back in the head of a request, where
    /// servers take less. Beyond it the event counts as one above [`max_event_bytes`](Self::max_event_bytes).
    pub max_event_id_bytes: usize,
    /// How much of the body of a refused request (status 4xx or 5xx) is read to look for a JSON-RPC error, in bytes.
    /// Default 256 KiB. A longer body is cut and the status alone is reported.
    pub max_error_body_bytes: usize,
    /// Largest number of header fields of a response. Default 100, as most servers and proxies have it. Beyond it the
    /// response is refused with kind `LimitExceeded`.
    pub max_headers: usize,
    /// Largest size of a response head, in bytes. Default 64 KiB; values below 8 KiB count as 8 KiB. Beyond it the
    /// response is refused with kind `LimitExceeded`. It also bounds the size of one read.
    pub max_head_bytes: usize,
    /// Longest session id that is taken from a server, in bytes. Default 1 KiB. A longer one makes the exchange that
    /// opens the session fail with kind `PeerMisbehaved`.
    pub max_session_id_bytes: usize,
    /// How much of a `WWW-Authenticate` header is kept, in bytes, over all its lines. Default 16 KiB; lines beyond it
    /// are left out whole.
    pub max_challenge_bytes: usize,
    /// Idle connections kept for reuse. Default 32: enough for bursts of parallel calls, few enough to hold a
    /// thousand servers at once. Connections beyond it are closed when their exchange ends.
    pub max_idle_connections: usize,
    /// Redirects followed for one request. Default 3, which covers `/mcp` to `/mcp/` and a moved path; only those within
    /// the same origin that leave the method as it is are followed at all: 307, 308, of a GET all, of a DELETE 301 and 302.
    /// Beyond it the request fails with kind `PeerMisbehaved`.
    pub max_redirects: u32,
    /// Consecutive attempts to reopen a stream that bring no progress. Default 5. After them the stream ends with the
    /// error of the last attempt.
    pub max_reconnect_attempts: u32,
    /// Reconnects in a row after a `retry` of the server that is shorter than [`HttpTimeouts::retry_min`]. Default 10. After
    /// them `retry_min` is waited, whatever the server asks for and however much each connection brings, until a
    /// connection lasts for 10 s: a server must not make this client connect as fast as it can.
    pub max_quick_reconnects: u32,
    /// How deep JSON may nest. Default 127, the depth the JSON parser itself stops at. A deeper message is handed over as
    /// invalid.
    pub max_json_depth: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            max_body_bytes: 16 * MIB,
            max_event_bytes: 16 * MIB,
            max_event_id_bytes: 64 * KIB,
            max_error_body_bytes: 256 * KIB,
            max_headers: 100,
            max_head_bytes: 64 * KIB,
            max_session_id_bytes: KIB,
            max_challenge_bytes: 16 * KIB,
            max_idle_connections: 32,
            max_redirects: 3,
            max_reconnect_attempts: 5,
            max_quick_reconnects: 10,
            max_json_depth: 127,
        }
    }
}

impl HttpLimits {
    /// What the decoder of messages is held to.
    pub(crate) fn decode_limits(&self) -> DecodeLimits {
        DecodeLimits::new()
            .with_max_bytes(self.max_body_bytes.max(self.max_event_bytes))
            .with_max_depth(self.max_json_depth)
    }
}

/// How long each step with an HTTP server may take.
///
/// Limiting the time of a whole call is up to the caller (drop the exchange to end it); these deadlines stop a peer that
/// stalls where no call is waiting, or that sends single bytes slowly.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpTimeouts {
    /// From the start of a connection attempt to its end, over all addresses of the host and the TLS handshake. Default
    /// 10 s. Ends with kind `Connect`.
    pub connect: Duration,
    /// From the sending of a notification or a response to the head of its HTTP response. Default 30 s. Ends with kind
    /// `Timeout`.
    pub head: Duration,
    /// The same for a posted request and for a GET. Default `None`: a server that answers in JSON sends its head only when
    /// the work is done, and some send the head of a stream only with its first event, so this time is left to
    /// the deadline of the caller.
    pub request_head: Option<Duration>,
    /// From the first byte of a message (an event of a stream, or a JSON body) to its last. Default 30 s, so that a peer
    /// that sends single bytes slowly cannot occupy a stream and a buffer for ever. The time between events is not counted, and
    /// comments start nothing. Ends with kind `Timeout`.
    pub message: Duration,
    /// Longest time without any bytes on an open stream; comments count as activity. Default `None`: servers may be silent for as long as
    /// their work takes. When it passes, the stream counts as broken and is reopened where that is possible.
    pub stream_idle: Option<Duration>,
    /// The whole of the DELETE that ends a session. Default 5 s; closing never waits longer.
    pub close: Duration,
    /// How long an idle connection is kept for reuse. Default 4 s, because common servers (Node.js, uvicorn) close after
    /// 5 s, and a request that meets the closing may or may not have been processed.
    pub pool_idle: Duration,
    /// How long the rest of a response that nobody needs may take before its connection is closed instead of reused.
    /// Default 250 ms. Nothing waits for it.
    pub linger: Duration,
    /// First delay before a broken stream is reopened, when the server named none with `retry`. Default 1 s; it grows
    /// by half with each attempt without progress, up to `reconnect_cap`, with jitter.
    pub reconnect_initial: Duration,
    /// Longest own delay before a broken stream is reopened. Default 30 s. A `retry` of the server is never shortened
    /// by it.
    pub reconnect_cap: Duration,
    /// Longest `retry` that is obeyed. Default 5 min. A server that asks for more ends the stream with kind
    /// `LimitExceeded`, since reconnecting earlier would break the rule to wait.
    pub retry_max: Duration,
    /// Shortest `retry` that is obeyed without a bound on how often in a row. Default 500 ms; see
    /// [`HttpLimits::max_quick_reconnects`].
    pub retry_min: Duration,
}

impl Default for HttpTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
            request_head: None,
            message: Duration::from_secs(30),
            stream_idle: None,
            close: Duration::from_secs(5),
            pool_idle: Duration::from_secs(4),
            linger: Duration::from_millis(250),
            reconnect_initial: Duration::from_secs(1),
            reconnect_cap: Duration::from_secs(30),
            retry_max: Duration::from_secs(300),
            retry_min: Duration::from_millis(500),
        }
    }
}

/// All of it, shared by everything that belongs to one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) limits: HttpLimits,
    pub(crate) timeouts: HttpTimeouts,
    pub(crate) addresses: AddressPolicy,
    pub(crate) credentials: Provider,
    pub(crate) proxies: Rules,
    /// Present where HTTP/2 may be spoken.
    #[cfg(feature = "http2")]
    pub(crate) http2: Option<super::http2::Http2Options>,
    /// Connected to in place of the host's addresses.
    #[cfg(unix)]
    pub(crate) unix_socket: Option<std::path::PathBuf>,
    /// Present for `https` servers.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<super::tls::Tls>,
}

#[cfg(feature = "tls")]
impl Config {
    /// Whether the application chose HTTP/2, if the server will.
    #[cfg(feature = "http2")]
    pub(crate) fn may_speak_http2(&self) -> bool {
        self.http2.is_some()
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_self, reason = "the same call with the feature asks the options")]
    pub(crate) fn may_speak_http2(&self) -> bool {
        false
    }
}
