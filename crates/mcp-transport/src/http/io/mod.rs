//! Sockets: connecting, the pool of idle connections, one request on one connection.

pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod jitter;
pub(crate) mod open;
pub(crate) mod pool;
pub(crate) mod stream;
pub(crate) mod tunnel;
pub(crate) mod wire;
