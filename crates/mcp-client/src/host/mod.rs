//! Many servers at once: named connections, what is wanted of them over reconnections, and the `mcpServers` configuration.
//!
//! A [`Host`] holds connections by name and adds no protocol of its own: each of them is a [`Client`](crate::Client). What it
//! adds is the life around them, the rule by which tools of several servers get names of their own ([`ToolNames`]), one table of
//! them that follows every change ([`FreshTools`]), and one stream of events.
//!
//! # The life of a connection
//!
//! ```text
//!                 connect, reconnect                 done
//! Disconnected ───────────────────────> Connecting ────────> Connected
//!      ^   ^                             │    │  ^            │     │
//!      │   └── given up, disconnect ─────┘    │  │ reconnect  │     │ the server ended it
//!      │                              failed  v  │            │     │
//!      │<───────── disconnect ───────────── Failed <──────────┼─────┘
//!      └────────── closed ────────── Closing <── disconnect ──┘
//! ```
//!
//! An attempt lasts until the new connection has been asked for what is desired of it. A disconnect in the middle of that goes
//! by `Closing` too, because there is a connection to close; whoever gives the attempt up does not wait for that.
//!
//! From `Failed` the host connects again by itself where it was told to ([`HostBuilder::reconnect`]).
//!
//! Each attempt to connect has a [`Generation`] that no other one has. Events, answers and outcomes belong to a generation;
//! what comes late from an old one changes nothing about a newer one.

mod attempt;
mod builder;
mod closing;
mod config;
mod connector;
mod desired;
mod event;
mod fresh_tools;
mod handle;
mod lists;
mod reconnect;
mod registry;
mod retrying;
mod tool_names;

pub use builder::{HostBuilder, HostLimits};
pub use config::{
    ConfigError, ConfigLimits, ConfigShape, EntryError, EntryProblem, EntryTransport, HttpEntry, HttpFlavour,
    ServerEntry, ServersConfig, StdioEntry,
};
pub use connector::Connector;
pub use event::{Desired, Generation, HostEvent, HostEvents, ServerState};
pub use fresh_tools::FreshTools;
pub use handle::{Host, ServerStatus};
pub use lists::ServerList;
pub use reconnect::Reconnect;
pub use tool_names::{NamedTool, ToolNames, ToolTable};
