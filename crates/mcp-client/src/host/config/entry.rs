//! One server of a configuration.

use std::collections::BTreeSet;
use std::fmt;

use mcp_jsonrpc::RawJson;
#[cfg(feature = "http")]
use mcp_transport::http::HttpServer;
use mcp_transport::stdio::StdioServer;

use super::error::{EntryError, EntryProblem};
use super::names;
use super::read::pointer;
use super::template::{self, Fault, Piece};
use crate::endpoint::Endpoint;
use crate::host::connector::Connector;

/// A server as the configuration describes it. It is only data: nothing has been started or connected.
///
/// `Debug` shows the names of variables, headers and unknown members, and no value.
#[derive(Clone)]
pub struct ServerEntry {
    pub(super) name: String,
    pub(super) pointer: String,
    pub(super) transport: EntryTransport,
    pub(super) disabled: bool,
    pub(super) other: Vec<(String, RawJson)>,
    /// Whether `${` stands for itself.
    pub(super) literal: bool,
    pub(super) max_value_bytes: usize,
    pub(super) max_entry_bytes: usize,
}

/// How a server is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EntryTransport {
    /// Over HTTP.
    Http(HttpEntry),
    /// As a child process.
    Stdio(StdioEntry),
}

/// A program to start.
///
/// `Debug` shows how many arguments there are and the names of variables, and no value.
#[derive(Clone)]
pub struct StdioEntry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: Option<String>,
}

/// A URL to reach.
///
/// `Debug` shows the names of headers, and no value.
#[derive(Clone)]
pub struct HttpEntry {
    pub(super) flavour: HttpFlavour,
    /// The member that held the URL.
    pub(super) url_member: &'static str,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
}

/// Which transport over HTTP a configuration names. A client finds out by itself, so this is for showing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpFlavour {
    /// The two-endpoint transport of 2024-11-05 (`sse`).
    Sse,
    /// Streamable HTTP (`http`, `streamable-http`).
    Streamable,
    /// It does not say.
    Unsaid,
}

impl StdioEntry {
    /// The program.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its arguments.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The variables that are set for it, beside what it inherits. Often secret.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Its working directory.
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }
}

impl HttpEntry {
    /// Which transport the configuration names.
    pub fn flavour(&self) -> HttpFlavour {
        self.flavour
    }

    /// The URL. It may hold secrets in its query.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The headers of every request. Often secret.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }
}

impl ServerEntry {
    /// The name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is reached.
    pub fn transport(&self) -> &EntryTransport {
        &self.transport
    }

    /// Whether the configuration disables it.
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Disables or enables it.
    #[must_use]
    pub fn disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// The members that are not read here, unchanged. Some may be required by the server (`envFile`, `oauth`), others are
    /// meant for the application (`timeout`, `alwaysAllow`). They may hold secrets.
    pub fn other(&self) -> &[(String, RawJson)] {
        &self.other
    }

    /// The names of the variables that it refers to.
    ///
    /// # Errors
    ///
    /// [`EntryProblem::InvalidReference`].
    pub fn variables(&self) -> Result<BTreeSet<String>, EntryError> {
        let mut names = BTreeSet::new();
        if self.literal {
            return Ok(names);
        }
        for (at, text) in self.texts() {
            let pieces = template::pieces(text)
                .map_err(|_| EntryError::new(&self.name, at, EntryProblem::InvalidReference))?;
            names.extend(pieces.into_iter().filter_map(|piece| match piece {
                Piece::Reference { name, .. } => Some(name.to_owned()),
                Piece::Literal(_) => None,
            }));
        }
        Ok(names)
    }

    /// Expands variables: `${NAME}` becomes what `lookup` returns for `NAME`; `${NAME:-default}` likewise, or the default if
    /// `lookup` returns `None`. It applies to the command, the arguments, the working directory, the values of variables, the
    /// URL and the values of headers; never to names. Inserted values are not expanded again, and `$NAME` is left as it is.
    ///
    /// Variables come from `lookup` alone. To expose all of this process's environment, pass `|name|
    /// std::env::var(name).ok()`; to expose less, filter. Names in other syntaxes reach `lookup` unchanged (`env:NAME`,
    /// `input:id`, `workspaceFolder`).
    ///
    /// # Errors
    ///
    /// [`EntryProblem::UnsetVariable`], [`EntryProblem::InvalidReference`] or [`EntryProblem::TooLong`], with a pointer to
    /// the first value concerned.
    pub fn expand(&self, mut lookup: impl FnMut(&str) -> Option<String>) -> Result<Self, EntryError> {
        let mut expanded = self.clone();
        if self.literal {
            return Ok(expanded);
        }
        let (name, limit) = (&self.name, self.max_value_bytes);
        let mut bytes = 0_usize;
        for ((at, text), target) in self.texts().into_iter().zip(expanded.texts_mut()) {
            let filled = template::expand(text, &mut lookup, limit).map_err(|fault| {
                let problem = match fault {
                    Fault::Invalid => EntryProblem::InvalidReference,
                    Fault::TooLong => EntryProblem::TooLong { limit },
                    Fault::Unset(name) => EntryProblem::UnsetVariable { name },
                };
                EntryError::new(name, at.clone(), problem)
            })?;
            bytes = bytes.saturating_add(filled.len());
            if bytes > self.max_entry_bytes {
                return Err(EntryError::new(name, at, EntryProblem::TooLong { limit: self.max_entry_bytes }));
            }
            *target = filled;
        }
        expanded.literal = true;
        Ok(expanded)
    }

    /// Uses the entry as it is written, without expansion.
    #[must_use]
    pub fn as_written(mut self) -> Self {
        self.literal = true;
        self
    }

    /// What to connect to. Starts nothing.
    ///
    /// # Errors
    ///
    /// [`EntryProblem::Disabled`]; [`EntryProblem::Unexpanded`] before [`expand`](Self::expand), where it refers to
    /// variables; [`EntryProblem::HttpMissing`] for a URL without the feature `http`; [`EntryProblem::Refused`] for a URL or
    /// header that cannot be used; [`EntryProblem::Missing`] for a command that became empty.
    pub fn endpoint(&self) -> Result<Endpoint, EntryError> {
        match &self.transport {
            #[cfg(feature = "http")]
            EntryTransport::Http(_) => self.http_server().map(Endpoint::Http),
            #[cfg(not(feature = "http"))]
            EntryTransport::Http(_) => Err(self.no_http()),
            EntryTransport::Stdio(_) => self.stdio_server().map(Endpoint::Stdio),
        }
    }

    /// How a [`Host`](crate::host::Host) reaches it, as often as it connects.
    ///
    /// # Errors
    ///
    /// As [`endpoint`](Self::endpoint).
    pub fn connector(&self) -> Result<Connector, EntryError> {
        match &self.transport {
            #[cfg(feature = "http")]
            EntryTransport::Http(_) => self.http_server().map(Connector::from),
            #[cfg(not(feature = "http"))]
            EntryTransport::Http(_) => Err(self.no_http()),
            EntryTransport::Stdio(_) => self.stdio_server().map(Connector::from),
        }
    }

    /// The program to start, for further configuration or to show it to the user before connecting.
    ///
    /// # Errors
    ///
    /// As [`endpoint`](Self::endpoint); [`EntryProblem::Missing`] where the entry is a URL.
    pub fn stdio_server(&self) -> Result<StdioServer, EntryError> {
        self.check_usable()?;
        let missing = || self.error(self.pointer.clone(), EntryProblem::Missing { member: "command" });
        let EntryTransport::Stdio(entry) = &self.transport else { return Err(missing()) };
        if entry.command.trim().is_empty() {
            return Err(missing());
        }
        let variables = entry.env.iter().map(|(name, value)| (name, value));
        let mut server = StdioServer::new(&entry.command).args(&entry.args).envs(variables);
        if let Some(dir) = &entry.cwd {
            server = server.current_dir(dir);
        }
        Ok(server)
    }

    /// The URL to connect to, for further configuration.
    ///
    /// # Errors
    ///
    /// As [`endpoint`](Self::endpoint); [`EntryProblem::Missing`] where the entry is a program.
    #[cfg(feature = "http")]
    pub fn http_server(&self) -> Result<HttpServer, EntryError> {
        self.check_usable()?;
        let EntryTransport::Http(entry) = &self.transport else {
            return Err(self.error(self.pointer.clone(), EntryProblem::Missing { member: "url" }));
        };
        let refused = |at: String| |error| self.error(at, EntryProblem::Refused(error));
        let mut server =
            HttpServer::new(&entry.url).map_err(refused(pointer(&self.pointer, entry.url_member)))?;
        for (name, value) in &entry.headers {
            let at = pointer(&pointer(&self.pointer, "headers"), name);
            server = server.header(name, value).map_err(refused(at))?;
        }
        Ok(server)
    }

    /// What is said of a URL where nothing can reach it.
    #[cfg(not(feature = "http"))]
    fn no_http(&self) -> EntryError {
        self.error(self.pointer.clone(), EntryProblem::HttpMissing)
    }

    fn check_usable(&self) -> Result<(), EntryError> {
        if self.disabled {
            return Err(self.error(self.pointer.clone(), EntryProblem::Disabled));
        }
        if self.literal {
            return Ok(());
        }
        match self.texts().into_iter().find(|(_, text)| template::has_reference(text)) {
            Some((at, _)) => Err(self.error(at, EntryProblem::Unexpanded)),
            None => Ok(()),
        }
    }

    fn error(&self, pointer: String, problem: EntryProblem) -> EntryError {
        EntryError::new(&self.name, pointer, problem)
    }

    /// Every text that may hold variables, with a pointer to it.
    fn texts(&self) -> Vec<(String, &str)> {
        let at = |member: &str| pointer(&self.pointer, member);
        match &self.transport {
            EntryTransport::Http(entry) => {
                let headers = entry.headers.iter();
                std::iter::once((at(entry.url_member), entry.url.as_str()))
                    .chain(headers.map(|(name, value)| (pointer(&at("headers"), name), value.as_str())))
                    .collect()
            }
            EntryTransport::Stdio(entry) => {
                let args = entry.args.iter().enumerate();
                std::iter::once((at("command"), entry.command.as_str()))
                    .chain(args.map(|(index, arg)| (pointer(&at("args"), &index.to_string()), arg.as_str())))
                    .chain(entry.env.iter().map(|(name, value)| (pointer(&at("env"), name), value.as_str())))
                    .chain(entry.cwd.iter().map(|cwd| (at("cwd"), cwd.as_str())))
                    .collect()
            }
        }
    }

    /// The same texts in the same order.
    fn texts_mut(&mut self) -> Vec<&mut String> {
        match &mut self.transport {
            EntryTransport::Http(entry) => std::iter::once(&mut entry.url)
                .chain(entry.headers.iter_mut().map(|(_, value)| value))
                .collect(),
            EntryTransport::Stdio(entry) => std::iter::once(&mut entry.command)
                .chain(entry.args.iter_mut())
                .chain(entry.env.iter_mut().map(|(_, value)| value))
                .chain(entry.cwd.iter_mut())
                .collect(),
        }
    }
}

impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEntry")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .field("disabled", &self.disabled)
            .field("other", &names(&self.other))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StdioEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Any of the texts may hold what a variable held, the command and the directory too.
        f.debug_struct("StdioEntry")
            .field("args", &self.args.len())
            .field("env", &keys(&self.env))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a token, in its query or elsewhere.
        f.debug_struct("HttpEntry")
            .field("flavour", &self.flavour)
            .field("headers", &keys(&self.headers))
            .finish_non_exhaustive()
    }
}

fn keys(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}
