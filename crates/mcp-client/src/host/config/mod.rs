//! The `mcpServers` JSON of desktop hosts and editors, as data.
//!
//! Parsing starts nothing, looks nothing up and touches no file: what to run stays the application's choice. It reads the
//! file ([`ServersConfig::parse`]), fills in the variables ([`ServerEntry::expand`]), shows the user what would run
//! ([`StdioServer::describe`](crate::StdioServer::describe)) and only then connects to [`ServerEntry::endpoint`].
//!
//! One bad entry does not spoil the others: it becomes an [`EntryError`] with its name, a JSON pointer and the reason.

mod entry;
mod error;
mod members;
mod read;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;

use mcp_jsonrpc::RawJson;

pub use entry::{EntryTransport, HttpEntry, HttpFlavour, ServerEntry, StdioEntry};
pub use error::{ConfigError, EntryError, EntryProblem};

use members::Members;
use read::pointer;

pub(super) use read::is_name;

/// What a configuration may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigLimits {
    /// The length of the whole text, in bytes. Default 1 MiB; real files have a few KiB. Above it nothing is read and
    /// [`ConfigError::TooLong`] says so.
    pub max_bytes: usize,
    /// How many servers it may name. Default 256, four times what a host connects to by default. Above it nothing is read and
    /// [`ConfigError::TooManyServers`] says so.
    pub max_servers: usize,
    /// The length of one value after its variables were filled in, in bytes. Default 128 KiB, which is what Linux takes as
    /// one argument or variable. A longer one fails [`ServerEntry::expand`].
    pub max_value_bytes: usize,
    /// The length of all values of one entry together after their variables were filled in, in bytes. Default 4 MiB, above
    /// what systems take as arguments and variables of one program. More fails [`ServerEntry::expand`].
    pub max_entry_bytes: usize,
}

impl Default for ConfigLimits {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_servers: 256, max_value_bytes: 128 << 10, max_entry_bytes: 4 << 20 }
    }
}

/// A parsed configuration: the servers it names, and what was wrong with the others.
///
/// ```
/// use mcp_client::host::ServersConfig;
///
/// let config = ServersConfig::parse(r#"{
///     "mcpServers": {
///         "files": { "command": "npx", "args": ["-y", "server-files", "${HOME}"] },
///         "search": { "type": "http", "url": "https://search.example/mcp", "headers": { "Authorization": "Bearer ${TOKEN:-none}" } },
///         "broken": { "command": ["npx"] }
///     }
/// }"#)?;
/// assert_eq!(config.entries().len(), 2);
/// assert_eq!(config.errors()[0].to_string(), "server \"broken\": /mcpServers/broken/command must be a string");
///
/// let variables = |name: &str| (name == "HOME").then(|| "/var/ada".to_owned());
/// for entry in config.entries() {
///     let endpoint = entry.expand(variables)?.endpoint()?;
///     println!("{}: {endpoint:?}", entry.name());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `Debug` shows names, never values: arguments, variables, headers and unknown members often hold secrets.
#[derive(Clone)]
pub struct ServersConfig {
    shape: ConfigShape,
    entries: Vec<ServerEntry>,
    errors: Vec<EntryError>,
    other: Vec<(String, RawJson)>,
}

/// Which member held the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigShape {
    /// `mcpServers`, as most hosts write it.
    McpServers,
    /// `servers`, as VS Code writes it in `mcp.json`.
    Servers,
}

impl ConfigShape {
    /// The member's name.
    pub const fn member(self) -> &'static str {
        match self {
            Self::McpServers => "mcpServers",
            Self::Servers => "servers",
        }
    }
}

impl ServersConfig {
    /// Reads a configuration: a JSON object with an object `mcpServers`, or else `servers`, that has an entry for each server
    /// by its name.
    ///
    /// An entry has a `command` (with `args`, `env`, `cwd`) or a `url` (with `headers`), and may say with `type` which of the
    /// two it is: `stdio` (or `local`), `http` (or `streamable-http`, `sse`). `transport` and `transportType` are read as
    /// `type`, `serverUrl` and `httpUrl` as `url`, since some hosts write them so. `"disabled": true` and `"enabled": false`
    /// put an entry out of use ([`ServerEntry::is_disabled`]). Other members are kept ([`ServerEntry::other`]).
    ///
    /// Numbers and booleans in `env` are taken as their text; every other value must be a string. An array is never read as a
    /// command line, nor a command line split into arguments. A name or a member that comes twice makes its entry an error,
    /// because readers disagree about which one counts. Comments are no JSON and are not read.
    ///
    /// A name with an escape for half a surrogate pair (`"\ud800"`) is JSON and no text. As the name of a server, of a
    /// variable or of a header it makes that entry an error ([`EntryProblem::LoneSurrogate`]); a member that nothing here reads
    /// is kept. Both have the name as the JSON text writes it.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] where the text as a whole is no configuration. What is wrong with single entries is in
    /// [`errors`](Self::errors).
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_within(text, &ConfigLimits::default())
    }

    /// Reads a configuration within these limits.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_within(text: &str, limits: &ConfigLimits) -> Result<Self, ConfigError> {
        if text.len() > limits.max_bytes {
            return Err(ConfigError::TooLong { bytes: text.len(), limit: limits.max_bytes });
        }
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let top = Members::parse(text).map_err(|error| ConfigError::from_json(&error))?;
        let Some(top) = top else { return Err(ConfigError::NotAnObject { pointer: String::new() }) };
        let shape = [ConfigShape::McpServers, ConfigShape::Servers]
            .into_iter()
            .find(|shape| top.has(shape.member()))
            .ok_or(ConfigError::NoServers)?;
        let pointer_to_servers = pointer("", shape.member());
        if top.repeats(shape.member()) {
            return Err(ConfigError::Repeated { pointer: pointer_to_servers });
        }
        let servers = top.value(shape.member()).unwrap_or("null");
        let servers = Members::parse(servers).map_err(|error| ConfigError::from_json(&error))?;
        let Some(servers) = servers else {
            return Err(ConfigError::NotAnObject { pointer: pointer_to_servers });
        };
        if servers.len() > limits.max_servers {
            return Err(ConfigError::TooManyServers { servers: servers.len(), limit: limits.max_servers });
        }
        let (mut entries, mut errors) = (Vec::new(), Vec::new());
        for member in servers.iter() {
            let name = member.name.as_str();
            let at = pointer(&pointer_to_servers, name);
            let read = if !member.is_text {
                Err(EntryError::new(name, at, EntryProblem::LoneSurrogate))
            } else if servers.repeats(name) {
                Err(EntryError::new(name, at, EntryProblem::Repeated))
            } else {
                read::entry(name, at, member.value(), limits)
            };
            match read {
                Ok(entry) => entries.push(entry),
                Err(error) => errors.push(error),
            }
        }
        Ok(Self { shape, entries, errors, other: top.others(&[shape.member()]) })
    }

    /// The entries that can be used, in the order of the text. Disabled ones are among them.
    pub fn entries(&self) -> &[ServerEntry] {
        &self.entries
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&ServerEntry> {
        self.entries.iter().find(|entry| entry.name() == name)
    }

    /// What is wrong with the entries that cannot be used, in the order of the text.
    pub fn errors(&self) -> &[EntryError] {
        &self.errors
    }

    /// The members beside the servers (such as `inputs`), which nothing here reads.
    pub fn other(&self) -> &[(String, RawJson)] {
        &self.other
    }

    /// Which member held the servers.
    pub fn shape(&self) -> ConfigShape {
        self.shape
    }
}

impl fmt::Debug for ServersConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServersConfig")
            .field("shape", &self.shape)
            .field("entries", &self.entries)
            .field("errors", &self.errors)
            .field("other", &names(&self.other))
            .finish()
    }
}

fn names(members: &[(String, RawJson)]) -> Vec<&str> {
    members.iter().map(|(name, _)| name.as_str()).collect()
}
