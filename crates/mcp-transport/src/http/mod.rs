//! Streamable HTTP: one POST per message, answered by JSON or by an event stream that is read while it is open.
//!
//! What this does not do: it knows no MCP method, starts no background task for an exchange, and opens no stream on its
//! own. The caller drives each [`Exchange`] in its own task; dropping it drops the response.
//!
//! `core` holds the rules, without I/O and without a clock: which response means what, which headers a request carries,
//! what a stream does when it is cut. `io` holds sockets: connecting, the pool of idle connections, one request on one
//! connection.
//!
//! Spec: `basic/transports/streamable-http` (2026-07-28), `basic/transports` (2025-03-26 to 2025-11-25).

mod config;
mod connection;
mod core;
mod credentials;
mod downstream;
mod event_stream;
mod exchange;
mod fetch;
#[cfg(feature = "http2")]
mod http2;
mod io;
mod joint;
mod post;
mod proxy;
mod server;
mod sse_channel;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_failure;

pub use self::config::{HttpLimits, HttpTimeouts};
pub use self::connection::HttpConnection;
pub use self::core::address::{AddressClass, AddressPolicy};
pub use self::credentials::{Credentials, CredentialsFuture, Refused};
pub use self::event_stream::EventStream;
pub use self::exchange::Exchange;
pub use self::fetch::{Document, FetchLimits, Fetcher};
#[cfg(feature = "http2")]
pub use self::http2::Http2Options;
pub use self::post::{Departure, Post, PostKind, RequestHead};
pub use self::proxy::Proxy;
pub use self::server::HttpServer;
pub use self::sse_channel::{SseReceiver, SseSender};
#[cfg(feature = "tls")]
pub use self::tls::TlsOptions;
