#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod calls;
mod error;
#[cfg(test)]
mod hostile_tests;
mod inbox;
mod options;
mod questions;
mod schema;
#[cfg(test)]
mod tests;
mod text;

pub use calls::{ClaimedCall, StoredCall, StoredQuestion};
pub use error::{Error, ErrorKind};
pub use inbox::SqliteInbox;
pub use options::Options;
pub use questions::{EndedAs, Given, OpenQuestion};
