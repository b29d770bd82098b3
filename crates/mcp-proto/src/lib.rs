//! The Model Context Protocol client as a state machine without I/O: lifecycle, correlation, deadlines, progress,
//! cancellation and the questions of the server.
//!
//! What it deliberately does not do: read or write anything, know a transport, spawn tasks, ask a clock, hold
//! credentials. Time comes in as an argument, messages come in decoded and go out as text, so the whole protocol can
//! be driven in a test in virtual time, or by another runtime than the one this workspace uses.
//!
//! [`Connection`] is the whole of it. It speaks both eras of the protocol: the revisions that begin with `initialize`
//! (2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25), and 2026-07-28, which says everything in each request.
//!
//! ```
//! use std::time::Instant;
//! use mcp_jsonrpc::{DecodeLimits, decode};
//! use mcp_model::Implementation;
//! use mcp_proto::{Config, Connection, Event, Origin};
//!
//! let mut connection = Connection::new(Config::new(Implementation::new("docs", "1.0")));
//! let now = Instant::now();
//! let call = connection.start(now)?;
//! let initialize = connection.poll_transmit().expect("the handshake begins");
//! connection.handle_dispatched(call);
//! // ... send `initialize.message`, and when the answer arrives:
//! let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
//!     "serverInfo":{"name":"s","version":"1"}}}"#;
//! connection.handle_incoming(now, Origin::Channel, decode(answer, &DecodeLimits::default())?);
//! assert!(matches!(connection.poll_event(), Some(Event::CallEnded { outcome: Ok(_), .. })));
//! let initialized = connection.poll_transmit().expect("the handshake goes on");
//! // ... once `initialized.message` is delivered:
//! connection.handle_initialized_delivered(now);
//! assert!(matches!(connection.poll_event(), Some(Event::Ready)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cache;
mod call;
mod config;
mod connection;
mod diagnostic;
mod envelope;
mod era;
mod error;
mod event;
mod gate;
mod incoming;
mod lifecycle;
mod listen;
mod modern;
mod mrtr;
mod phase;
mod probe;
mod renewal;
mod roots;
mod server_requests;
mod suspended;
mod tasks;
#[cfg(test)]
mod tests;
mod tool_headers;
mod tools;
mod transmit;
mod urls_required;

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use cache::{CacheConfig, CacheUse};
pub use call::{CallId, CallIdHasher, CallMap, CallOptions};
pub use config::{Config, ElicitationSupport, Limits};
pub use connection::Connection;
pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use era::{Era, ExchangeFailure, Mode, Verdict, VerdictReason, Wire};
pub use error::{CallError, Misuse};
pub use event::{Answer, EndReason, Event, InputRequest, ListKind, ServerRequest, ServerRequestId};
pub use incoming::Origin;
pub use phase::ServerFacts;
pub use suspended::SuspendedCall;
pub use tasks::{StoredTask, TaskConfig, TaskError, TaskOptions, TaskUpdate};
pub use tool_headers::{ToolHeaders, ToolHeadersError};
pub use transmit::{Head, Routing, Transmit, TransmitKind};
pub use urls_required::UrlsRequired;
