//! Server-Sent Events without I/O: a parser that lends events, an encoder, and a reconnect schedule.
//!
//! Nothing here reads a socket, a clock or JSON. The caller brings the bytes of an event stream in
//! whatever pieces they arrive and gets the events; when the stream ends, the caller asks how long to
//! wait and connects again with the last event id:
//!
//! ```
//! use mcp_sse::{Limits, Parser, Reconnect, ReconnectConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let connections: [&[&[u8]]; 2] = [
//! #     &[b"id: 1\ndata: {\"progress\":1}\n\nretry: 50\nid: 2\nda", b"ta: {}\r\n\r"],
//! #     &[b"data: {\"progress\":2}\n", b"\n"],
//! # ];
//! let mut parser = Parser::new(Limits::default());
//! let mut schedule = Reconnect::new(ReconnectConfig::default());
//! let mut seen = Vec::new();
//! for pieces in connections {
//!     for mut piece in pieces.iter().copied() {
//!         // Lent until the next call; `next_owned` gives events that live on.
//!         while let Some(event) = parser.next(&mut piece)? {
//!             if event.event_type() == "message" {
//!                 seen.push(event.data().to_owned());
//!             }
//!         }
//!     }
//!     // The connection ended. A random share of the delay spreads clients over time.
//!     schedule.observe(parser.last_event_id(), parser.retry());
//!     let wait = schedule.next_delay(0.25)?;
//!     assert_eq!(wait.as_millis(), 50);
//!     // Wait, send the request again with `Last-Event-ID`, and go on:
//!     assert_eq!(parser.last_event_id(), "2");
//!     parser.reset();
//! }
//! assert_eq!(seen, [r#"{"progress":1}"#, "{}", r#"{"progress":2}"#]);
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! [`Parser`] implements the [WHATWG HTML standard, section 9.2][standard], completely and alike for
//! every way of cutting the stream: BOM, CR, LF and CRLF, fields without a colon, NUL in ids, repair
//! of invalid UTF-8. The end of the stream needs no call; an unfinished block is no event and leaves
//! the last event id alone.
//!
//! # Hostile peers
//!
//! Every byte that is kept counts against a bound in [`Limits`], and breaking one is the only error.
//! It costs the event, not the stream: the parser can be called again and goes on behind the event.
//! The cost is linear in the input for every cutting, nothing recurses, and a wait that a server asks
//! for is bounded by [`ReconnectConfig::max_retry`].
//!
//! # Cost
//!
//! Lending allocates nothing in steady state; an [`OwnedEvent`] is one allocation. Single-line events
//! that lie in one piece are lent from the caller's bytes. Buffers that a large event needed are given
//! back after it. The feature `simdutf8` makes large texts outside of ASCII faster and changes nothing
//! else.
//!
//! [standard]: https://html.spec.whatwg.org/multipage/server-sent-events.html

#![forbid(unsafe_code)]

pub mod encode;
mod event;
mod fields;
mod limits;
mod lines;
mod parser;
mod reconnect;
mod text;

pub use event::{Event, OwnedEvent};
pub use limits::{Limit, LimitError, Limits};
pub use parser::Parser;
pub use reconnect::{Reconnect, ReconnectConfig, ReconnectError};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
