//! How HTTP/2 is spoken where a server offers it.

use std::time::Duration;

/// Settings of HTTP/2 (RFC 9113), given to [`HttpServer::http2`](super::HttpServer::http2).
///
/// All exchanges share one connection, each as a stream of its own; dropping an exchange resets its stream only. When the
/// server's limit of concurrent streams is reached, one more connection is opened. A response with more header fields than [`max_headers`](super::HttpLimits::max_headers) fails with kind `LimitExceeded`;
/// `max_head_bytes` is told to the server, so a larger head has kind `PeerMisbehaved`.
///
/// A request is sent again where the server says that it has not processed it (a refused stream, or one above the last
/// that a `GOAWAY` names), three times at most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http2Options {
    /// Speak HTTP/2 to an `http` URL without asking, for servers that are known to understand it. Default `false`: HTTP/1.1. An
    /// `https` server is asked in the TLS handshake in any case; through a proxy an `http` URL is always HTTP/1.1.
    pub prior_knowledge: bool,
    /// How much of one response may be under way unread, in bytes. Default 1 MiB: enough for full speed over long distances. A
    /// server has to stop there; one that does not is cut off.
    pub stream_window_bytes: u32,
    /// The same for all responses of a connection together. Default 4 MiB, which bounds what a server can make one connection
    /// hold.
    pub connection_window_bytes: u32,
    /// How often a connection with open exchanges is probed when nothing arrives. Default 60 s: a server that vanished without a
    /// word is noticed, and servers that count probes as abuse are not provoked. `None` never probes.
    pub keep_alive_interval: Option<Duration>,
    /// How long the answer to a probe may take before the connection counts as broken. Default 20 s.
    pub keep_alive_timeout: Duration,
    /// How long a connection without exchanges is kept. Default 60 s; longer than for HTTP/1.1, since a closing server says
    /// which requests it did not process.
    pub idle: Duration,
}

impl Http2Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for Http2Options {
    fn default() -> Self {
        Self {
            prior_knowledge: false,
            stream_window_bytes: 1024 * 1024,
            connection_window_bytes: 4 * 1024 * 1024,
            keep_alive_interval: Some(Duration::from_secs(60)),
            keep_alive_timeout: Duration::from_secs(20),
            idle: Duration::from_secs(60),
        }
    }
}
