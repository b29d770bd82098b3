//! Several servers at once: named connections, settings that outlive a connection, and the `mcpServers` configuration.
//!
//! A [`Host`] holds connections by name; each of them is a [`Client`](crate::Client). It adds their life cycle, unique names
//! for the tools of several servers ([`ToolNames`]), one table of all tools that follows every change ([`FreshTools`]), and
//! one stream of events. It adds no protocol of its own.
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
//! An attempt lasts until the desired settings (log level, subscription) have been requested on the new connection. A
//! disconnect before that also goes through `Closing`, because there is a connection to close; whoever gives up the attempt
//! does not wait for it.
//!
//! From `Failed` the host reconnects by itself if configured to ([`HostBuilder::reconnect`], [`ServerPolicy::reconnect`]).
//!
//! Each attempt to connect has a unique [`Generation`]. Events, answers and outcomes belong to a generation; what arrives late
//! from an old one does not affect a newer one.

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
mod not_connected;
mod policy;
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
pub(crate) use not_connected::NotConnected;
pub use policy::ServerPolicy;
pub use reconnect::{GiveUpReason, GivenUp, ReconnectPolicy};
pub use tool_names::{NamedTool, ToolNames, ToolTable};
