//! A small MCP server that speaks 2025-11-25, for the quickstart and for tests.
//!
//! It is a real peer, not a recording: it negotiates, keeps sessions, checks what clients send and refuses what the
//! specification forbids, and each of its queues and waits has a limit (`limits.rs`). It shares no code with the client
//! crates, so that a misreading of the specification over there does not meet the same misreading here.
//!
//! Four tools, listed in two pages: `count` reports progress, `book_table` asks a form question in the middle of the call,
//! `connect_account` asks for consent to a URL, `echo` answers at once.
//!
//! What it deliberately leaves out: resources, prompts, event ids (so its streams cannot be resumed), and revisions other
//! than 2025-11-25, which it always answers.
//!
//! ```text
//! stdio ──┐
//!         ├─> session (phases, calls, questions) ──> tools
//! http ───┘
//! ```

#![forbid(unsafe_code)]

mod http;
mod limits;
mod message;
mod session;
mod stdio;
#[cfg(test)]
mod tests;
mod tools;

pub use http::serve_http;
pub use stdio::{serve_stdio, serve_stdio_process};

use limits::Limits;

/// The only protocol revision this server speaks.
pub const PROTOCOL_VERSION: &str = "2025-11-25";
