//! A small MCP server that speaks 2025-11-25 or 2026-07-28, for the examples and for tests.
//!
//! It is a real peer, not a recording: it negotiates, keeps sessions, checks what clients send and refuses what the
//! specification forbids, and each of its queues and waits has a limit (`limits.rs`). It shares no code with the client
//! crates, so that a misreading of the specification over there does not meet the same misreading here.
//!
//! Four tools, listed in two pages: `count` reports progress, `book_table` asks a form question in the middle of the call,
//! `connect_account` asks for consent to a URL, `echo` answers at once.
//!
//! [`serve_notebook`] has other tools, and resources: what it lists changes while a client looks at it.
//!
//! What it deliberately leaves out: prompts, event ids (so its streams cannot be resumed), and other revisions. A server is of one
//! era, as most are: the `serve_modern_*` functions know no `initialize`, and the others no `server/discover`.
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
mod modern;
mod notebook;
mod session;
mod stdio;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;

pub use http::{serve_http, serve_modern_http};
pub use stdio::{
    serve_modern_notebook, serve_modern_stdio_process, serve_notebook, serve_stdio, serve_stdio_process,
};

use limits::Limits;

/// The only legacy revision that is spoken here.
pub const PROTOCOL_VERSION: &str = "2025-11-25";

/// The only modern revision that is spoken here.
pub const MODERN_PROTOCOL_VERSION: &str = "2026-07-28";

/// Which kind of client is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// One that begins with `initialize`.
    Legacy,
    /// One that says everything in each request.
    Modern,
}
