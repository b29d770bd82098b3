//! Checking what tools return against the schemas that they declare.
//!
//! Off until it is asked for: for a client with [`ClientBuilder::check_output`], which then checks every `tools/call` of a tool
//! that was listed through it, or for one call with [`Call::check_output`]. Checked is `structuredContent`, against the
//! `outputSchema` of the newest listing; a tool that was not listed is not checked, and a diagnostic
//! ([`OutputUnchecked`](crate::DiagnosticKind::OutputUnchecked)) says so and what to do. A result that says of itself that the tool failed (`isError`) is never checked, so that
//! a schema cannot hide what went wrong. Where a schema is declared, structured content must be there; `null` is content.
//!
//! Results that come by a task which the application holds itself are not checked; [`OutputSchema`] does it by hand.
//!
//! An output that does not count makes the call fail: [`Error::output_error`] says in which ways, and holds the result. A schema
//! that cannot be used costs the calls of its own tool and nothing else.
//!
//! A schema is the server's word as much as the value: it is never fetched from anywhere, and its size, its regular expressions
//! and the work it makes are bounded ([`SchemaLimits`]).
//!
//! ```no_run
//! use mcp_client::schema::{SchemaError, SchemaLimits};
//! use mcp_client::{Client, StdioServer};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), mcp_client::Error> {
//! let client = Client::builder("my-app", "1.0")
//!     .check_output(SchemaLimits::default())
//!     .connect(StdioServer::new("my-server"))
//!     .await?;
//! client.list_tools().all().await?;
//! match client.call_tool("get-sum", json!({ "a": 2, "b": 3 })).await {
//!     Ok(result) => println!("{:?}", result.structured_content),
//!     Err(error) => match error.output_error().map(|output| &output.error) {
//!         Some(SchemaError::Violated { violations, .. }) => {
//!             violations.iter().for_each(|violation| println!("{}: {}", violation.pointer, violation.message));
//!         }
//!         _ => return Err(error),
//!     },
//! }
//! # Ok(()) }
//! ```
//!
//! [`ClientBuilder::check_output`]: crate::ClientBuilder::check_output
//! [`Call::check_output`]: crate::Call::check_output
//! [`Error::output_error`]: crate::Error::output_error

mod checks;
mod cost;
mod error;
mod guard;
mod limits;
mod output_schema;
mod targets;
#[cfg(test)]
mod tests;

pub(crate) use checks::OutputChecks;
pub use error::{OutputError, SchemaError, Violation};
pub use limits::SchemaLimits;
pub use output_schema::OutputSchema;
