#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(test)]
mod effort;
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
