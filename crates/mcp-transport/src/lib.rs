#![cfg_attr(all(feature = "stdio", feature = "http"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "stdio", feature = "http")),
    doc = "Model Context Protocol transports: stdio and Streamable HTTP, each a feature."
)]
#![forbid(unsafe_code)]

mod error;
mod exit;
#[cfg(feature = "http")]
pub mod http;
mod received;
#[cfg(feature = "stdio")]
pub mod stdio;
#[doc(hidden)]
pub mod watched;

pub use error::{Error, ErrorKind, Limit, SpawnFailure, TlsFailure};
pub use exit::ProcessExit;
pub use mcp_jsonrpc::Untrusted;
pub use received::{Received, Taker};
