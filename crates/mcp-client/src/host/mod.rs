//! Many servers at once.

mod config;

pub use config::{
    ConfigError, ConfigLimits, ConfigShape, EntryError, EntryProblem, EntryTransport, HttpEntry, HttpFlavour,
    ServerEntry, ServersConfig, StdioEntry,
};
