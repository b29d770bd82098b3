//! Model Context Protocol transports: stdio and Streamable HTTP.
//!
//! A transport carries JSON-RPC envelopes, each decoded once and handed over as [`Received`]. It knows no MCP methods, correlates
//! nothing and starts nothing again by itself; that is the business of whoever owns the connection. Each transport
//! is a feature and a module, with its core apart from the adapters that do I/O.
//!
//! Every buffer, queue and wait that a peer can grow has a limit in the configuration of its transport. Text that a peer
//! wrote is kept apart from our own and is shown through [`Untrusted`] only.

#![forbid(unsafe_code)]

mod error;
mod exit;
#[cfg(feature = "http")]
pub mod http;
mod received;
#[cfg(feature = "stdio")]
pub mod stdio;
mod untrusted;

pub use error::{Error, ErrorKind, Limit, SpawnFailure};
pub use exit::ProcessExit;
pub use received::Received;
pub use untrusted::Untrusted;

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "stdio", feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
