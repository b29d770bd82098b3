//! The stdio transport against real child processes and in-memory streams.

mod death;
mod flood;
mod framing;
mod load;
mod oversized;
mod shutdown;
mod spawning;
mod streams;
pub(crate) mod support;
