//! Validation of tool output against the schemas that the tools declare.
//!
//! Off by default. [`ClientBuilder::check_output`] turns it on for a client, which then validates every `tools/call` of a tool that
//! was listed through it; [`Call::check_output`] for one call. `structuredContent` is validated against the `outputSchema` of the
//! newest listing; a tool that was not listed is not validated, and a diagnostic
//! ([`OutputUnchecked`](crate::DiagnosticKind::OutputUnchecked)) says so and what to do. If a tool declares a schema, its results must
//! have structured content; `null` is content. A result with `isError` is never validated, so that a schema cannot hide the error.
//!
//! Each client remembers the tools of its own connection: servers with tools of the same name do not affect each other, and after
//! connecting again the tools have to be listed again.
//!
//! The result of a task that the application holds itself ([`Task`](crate::Task)) is not validated; use [`OutputSchema`] for it.
//!
//! Output that violates its schema makes the call fail: [`Error::output_error`] lists the violations and holds the result. A schema
//! that cannot be used only affects the calls of its own tool.
//!
//! Schemas come from the server, like the output: they are never fetched from anywhere, and their size, their regular expressions and
//! the work of validation are limited ([`SchemaLimits`]).
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
