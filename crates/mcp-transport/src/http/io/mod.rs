//! Sockets: connecting, the pool of idle connections, one request on one connection.

mod bell;
pub(crate) mod body;
pub(crate) mod carrier;
pub(crate) mod clock;
pub(crate) mod connect;
pub(crate) mod jitter;
#[cfg(feature = "http2")]
pub(crate) mod lanes;
#[cfg(feature = "http2")]
pub(crate) mod multiplex;
pub(crate) mod open;
pub(crate) mod pool;
pub(crate) mod stream;
pub(crate) mod tunnel;
pub(crate) mod wire;
