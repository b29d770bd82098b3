#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cache;
mod call;
mod config;
mod connection;
mod deprecated;
mod diagnostic;
mod diagnostic_tally;
mod ended_requests;
mod envelope;
mod era;
mod error;
mod event;
mod exchange_failure;
mod gate;
mod incoming;
mod lifecycle;
mod limits;
mod listen;
mod modern;
mod mrtr;
mod phase;
mod probe;
mod renewal;
mod retry;
mod roots;
mod sampling;
mod sending;
mod server_requests;
mod shown_time;
mod standstill;
mod suspended;
mod taking;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;
mod tool_headers;
mod tools;
mod transmit;
mod urls_required;
mod whole_number;
mod withdrawal;

pub use cache::{CacheConfig, CacheUse};
pub use call::{CallId, CallIdHasher, CallMap, CallOptions};
pub use config::{Config, ElicitationSupport};
pub use connection::Connection;
pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use era::{Era, Mode, Verdict, VerdictReason, Wire};
pub use error::{CallError, Misuse, TimeLimit};
pub use event::{Answer, EndReason, Event, InputRequest, ListKind, ServerRequest, ServerRequestId};
pub use exchange_failure::ExchangeFailure;
pub use incoming::Origin;
pub use limits::Limits;
pub use phase::ServerFacts;
pub use retry::RetryConfig;
pub use sampling::max_tokens;
#[doc(hidden)]
pub use shown_time::shown_time;
pub use suspended::{SuspendedCall, UnreadableQuestion};
pub use taking::Taking;
pub use tasks::{StoredTask, TaskConfig, TaskError, TaskOptions, TaskUpdate};
pub use tool_headers::{ToolHeaders, ToolHeadersError};
pub use transmit::{Head, Routing, Transmit, TransmitKind};
pub use urls_required::UrlsRequired;
