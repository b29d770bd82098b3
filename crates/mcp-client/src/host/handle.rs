//! The handle of the application on all its servers.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use mcp_model::{CallToolResult, LoggingLevel, Root, SubscriptionFilter};
use serde::Serialize;

use super::builder::HostBuilder;
use super::closing::ends;
use super::config::is_name;
use super::connector::Connector;
use super::event::{Generation, HostEvents, ServerState};
use super::registry::{Phase, Registry, Server, host_closed, unknown};
use super::tool_names::NamedTool;
use crate::builder::ClientBuilder;
use crate::client::{Client, Closed};
use crate::desk::Desk;
use crate::error::{Error, Place};
use crate::requests::Call;

/// Connections to many servers, by name.
///
/// Cheap to clone; all clones are the same host. Names are the application's: not empty, at most 256 bytes, no control
/// characters. No name means anything to another one: `srv` and `srv:child` are two servers.
///
/// ```no_run
/// use mcp_client::host::{Host, ServersConfig, ToolNames};
/// use mcp_client::Client;
/// use serde_json::json;
///
/// # async fn example(config: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::new(Client::builder("my-app", "1.0"));
/// for entry in ServersConfig::parse(config)?.entries().iter().filter(|entry| !entry.is_disabled()) {
///     // An application shows `entry.stdio_server()?.describe()` and asks before it starts what a file names.
///     match entry.expand(|name| std::env::var(name).ok()).and_then(|entry| entry.connector()) {
///         Ok(connector) => {
///             let _ = host.connect(entry.name(), connector).await.inspect_err(|error| eprintln!("{error}"));
///         }
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// let tools = ToolNames::default().table(host.list_tools().await);
/// for tool in tools.iter() {
///     println!("{}: {}", tool.name(), tool.tool().description.as_deref().unwrap_or_default());
/// }
/// if let Some(tool) = tools.resolve("files__read") {
///     println!("{:?}", host.call_tool(tool, json!({ "path": "notes.txt" }))?.await?);
/// }
/// host.close().await;
/// # Ok(()) }
/// ```
///
/// When the last clone is dropped every connection is closed in the background, in the way of [`Client::close`], also those
/// of which the application holds a [`Client`].
#[derive(Clone)]
pub struct Host {
    registry: Arc<Registry>,
}

/// What a host knows of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Where it is in its life.
    pub state: ServerState,
    /// The newest attempt to connect; `None` where there was none.
    pub generation: Option<Generation>,
    /// Why there is no connection, or why closing the last one was not a clean affair. Empty again with the next attempt, and where the
    /// application disconnects a server that had failed.
    pub last_error: Option<Error>,
    /// When the host connects again by itself, where it will ([`HostBuilder::reconnect`]).
    pub next_attempt: Option<Instant>,
}

impl Host {
    /// A host without servers, whose clients are set up like `client`.
    pub fn new(client: ClientBuilder) -> Self {
        Self::builder(client).build()
    }

    /// Begins to set up a host whose clients are set up like `client`. [`Connector::configure`] adds what a single server needs
    /// beside that.
    pub fn builder(client: ClientBuilder) -> HostBuilder {
        HostBuilder::new(client)
    }

    pub(super) fn build(builder: HostBuilder) -> Self {
        Self { registry: Arc::new(Registry::new(builder)) }
    }

    /// Connects to a server and remembers it under this name. What is desired of a server of this name (log level,
    /// subscription, and the host's roots) is asked for before this returns, for
    /// [`HostLimits::restore_timeout`](super::HostLimits::restore_timeout) at most. Until then the server is
    /// [`Connecting`](ServerState::Connecting); what it does not agree to keeps it from nothing and is told as
    /// [`NotRestored`](super::HostEvent::NotRestored).
    ///
    /// Must run inside a tokio runtime. Where a server of this name is being closed, this waits for that, for
    /// [`HostLimits::close_timeout`](super::HostLimits::close_timeout) at most. If the future is dropped the attempt is given
    /// up, however far it is, with those that the host has made after it by itself, and nothing is left behind but the name: a
    /// connection that stands already, and that nobody was given, is closed in the background.
    ///
    /// # Errors
    ///
    /// Those of [`ClientBuilder::connect`]; [`Misuse`](crate::ErrorKind::Misuse) where the name cannot be one, or where a
    /// server of this name is connected or connecting; [`LimitExceeded`](crate::ErrorKind::LimitExceeded) at
    /// [`HostLimits::max_servers`](super::HostLimits::max_servers); [`Closed`](crate::ErrorKind::Closed) where the server
    /// was disconnected or the host closed meanwhile. A server that cannot be connected to stays known as
    /// [`Failed`](ServerState::Failed), for [`reconnect`](Self::reconnect); a host that
    /// [connects again](HostBuilder::reconnect) by itself tries it [so many times](super::Reconnect::max_attempts) more, but not after
    /// an error that [would come again](super::Reconnect).
    pub async fn connect(&self, name: &str, connector: impl Into<Connector>) -> Result<Client, Error> {
        if !is_name(name) {
            return Err(Error::misuse_because(
                "the name of a server is empty, too long or has control characters",
            ));
        }
        let taken = || Error::misuse_because("it is connected already").at_server(name);
        let (connector, name): (Connector, Arc<str>) = (connector.into(), Arc::from(name));
        loop {
            // Dropped when the lock is free: what it owns may be of this host.
            let mut _old = None;
            let waiting = {
                let mut state = self.registry.lock();
                if state.closed {
                    return Err(host_closed());
                }
                let (known, limit) = (state.servers.len(), self.registry.limits.max_servers);
                if !state.servers.contains_key(&name) && known >= limit {
                    return Err(Error::limit_exceeded("max_servers", limit));
                }
                let server =
                    state.servers.entry(Arc::clone(&name)).or_insert_with(|| Server::new(connector.clone()));
                match &server.phase {
                    Phase::Closing(closing) => Err(Arc::clone(closing)),
                    Phase::Connected(_) => return Err(taken()),
                    Phase::Connecting { .. } => return Err(taken()),
                    Phase::Disconnected | Phase::Failed(_) => {
                        let replaced = std::mem::replace(&mut server.connector, connector.clone());
                        let begun = self.registry.begin(&mut state, &name);
                        let (waiting, phase) = begun.unzip();
                        _old = Some((replaced, phase));
                        Ok(waiting.ok_or_else(|| unknown(&name))?)
                    }
                }
            };
            match waiting {
                Ok(attempt) => return attempt.outcome().await,
                Err(closing) => drop(closing.outcome().await),
            }
        }
    }

    /// Connects to a server anew, the way it was connected to before. A connection that stands is closed first. Several who
    /// ask at the same time share one attempt: it is given up when the last of their futures is dropped. A closing that was
    /// begun goes on.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect); [`Misuse`](crate::ErrorKind::Misuse) for a name that no server has.
    pub async fn reconnect(&self, name: &str) -> Result<Client, Error> {
        let mut before = None;
        loop {
            // As in `connect`.
            let mut _old = None;
            let step = {
                let mut state = self.registry.lock();
                if state.closed {
                    return Err(host_closed());
                }
                let (key, _) = state.servers.get_key_value(name).ok_or_else(|| unknown(name))?;
                let key = Arc::clone(key);
                let server = state.servers.get_mut(name).ok_or_else(|| unknown(name))?;
                let generation = server.generation;
                let before = *before.get_or_insert(generation);
                match &mut server.phase {
                    // Somebody else asked for the same, and it is done.
                    Phase::Connected(connected) if generation > before => return Ok(connected.take()),
                    Phase::Connected(_) | Phase::Closing(_) => None,
                    Phase::Connecting { attempt, .. } => Some(self.registry.join(&key, attempt)),
                    Phase::Failed(_) | Phase::Disconnected => {
                        let (waiting, phase) = self.registry.begin(&mut state, &key).unzip();
                        _old = phase;
                        Some(waiting.ok_or_else(|| unknown(name))?)
                    }
                }
            };
            match step {
                Some(attempt) => return attempt.outcome().await,
                None => drop(self.disconnect(name).await),
            }
        }
    }

    /// Closes the connection of a server, or gives up the attempt to connect to it, and keeps its name with what is desired
    /// of it, for [`reconnect`](Self::reconnect). Calls in flight end as closed, open questions as withdrawn. No other
    /// server notices. One that has failed counts as disconnected from then on, so that whoever connects failed servers again
    /// leaves it alone.
    ///
    /// Several who ask at the same time share one closing. It goes on when the future is dropped, and takes no longer than
    /// [`HostLimits::close_timeout`](super::HostLimits::close_timeout). It runs on the runtime where the server was
    /// connected; where nobody drives that one, the time is up all the same on the runtime of whoever waits, and where it
    /// has ended, the connection has ended with it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name that no server has, [`Timeout`](crate::ErrorKind::Timeout).
    pub async fn disconnect(&self, name: &str) -> Result<Closed, Error> {
        match self.registry.begin_closing(name)? {
            Some(closing) => closing.outcome().await.map_err(|error| error.at_server(name)),
            None => Ok(Closed { process: None }),
        }
    }

    /// Disconnects a server and forgets it, with everything that is desired of it and its URL elicitations. If the future is
    /// dropped the closing goes on, and the server is not forgotten.
    ///
    /// # Errors
    ///
    /// Those of [`disconnect`](Self::disconnect). It is forgotten all the same.
    pub async fn remove(&self, name: &str) -> Result<Closed, Error> {
        let closed = self.disconnect(name).await;
        let mut state = self.registry.lock();
        let gone = match state.servers.get(name).map(|server| &server.phase) {
            Some(Phase::Disconnected | Phase::Failed(_)) => state.servers.remove(name),
            // Somebody connects it again at the same time.
            _ => None,
        };
        drop(state);
        if gone.is_some() {
            // Refused only while a connection of it is open somewhere else.
            let _ = self.registry.desk.forget_server(name);
        }
        drop(gone);
        closed
    }

    /// Closes every connection, all at the same time, gives up every attempt, and ends the streams of events. No further
    /// connection can be made. Gives back how each connection was closed.
    ///
    /// It takes no longer than [`HostLimits::close_timeout`](super::HostLimits::close_timeout). If the future is dropped the
    /// closings go on; calling this again waits for them and then ends the streams.
    pub async fn close(&self) -> Vec<(Arc<str>, Result<Closed, Error>)> {
        let names: Vec<Arc<str>> = {
            let mut state = self.registry.lock();
            state.closed = true;
            state.servers.keys().cloned().collect()
        };
        let begun = names.into_iter().filter_map(|name| {
            let closing = self.registry.begin_closing(&name).ok()??;
            Some((name, closing))
        });
        let closings: Vec<_> = begun.collect();
        let ends = ends(self.registry.limits.close_timeout);
        let mut closed = Vec::new();
        for (name, closing) in closings {
            closed.push((name, closing.outcome_by(ends).await));
        }
        self.registry.events.end();
        closed
    }

    /// The connection of a server.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name that no server has, [`Closed`](crate::ErrorKind::Closed) where it is
    /// not connected.
    pub fn client(&self, name: &str) -> Result<Client, Error> {
        self.registry.client(name)
    }

    /// What is known of a server.
    pub fn server(&self, name: &str) -> Option<ServerStatus> {
        let state = self.registry.lock();
        state.servers.get_key_value(name).map(|(name, server)| status(name, server))
    }

    /// What is known of every server, in the order of their names.
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.registry.lock().servers.iter().map(|(name, server)| status(name, server)).collect()
    }

    /// The events of every server from now on. See [`HostEvents`] for what a slow listener sees.
    pub fn events(&self) -> HostEvents {
        HostEvents { listener: self.registry.events.listen() }
    }

    /// The desk where the questions of every server wait for their answers, under the names of the servers. Capacity is shared
    /// by all of them, and each has its quota. A question ends with the connection that asked it: an answer that comes
    /// later is refused.
    pub fn desk(&self) -> &Desk {
        &self.registry.desk
    }

    /// A call of a tool by the table that holds it ([`ToolNames`](super::ToolNames)). Its errors, those that come at once included, say
    /// which server and which tool. Those of a call on a [`Client`] of the host say which server.
    ///
    /// # Errors
    ///
    /// Those of [`client`](Self::client).
    pub fn call_tool(
        &self,
        tool: &NamedTool,
        arguments: impl Serialize,
    ) -> Result<Call<CallToolResult>, Error> {
        let place =
            Place { server: Arc::from(tool.server()), tool: Some(Arc::from(tool.tool().name.as_str())) };
        let client = self.client(tool.server()).map_err(|error| error.at(&place))?;
        Ok(client.call_tool(tool.tool().name.clone(), arguments).at(place))
    }

    /// Replaces the roots that are offered to every server, now and later. Each connected server is told once, if they differ
    /// from those that it was offered before.
    ///
    /// Gives back which servers could not be told, and why: one that was connected while no roots were offered at all has
    /// been told that this client has none, and hears of them with its next connection
    /// ([`Misuse`](crate::ErrorKind::Misuse)).
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Vec<(Arc<str>, Error)> {
        self.registry.set_roots(roots.into_iter().collect())
    }

    /// Asks a server for log messages of this level and above, on this connection and on each later one. Waits until the
    /// server agrees, where it is connected. The level is remembered from the start of the call, whether or not the server
    /// agrees or the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name that no server has, and where the server has no logging; those of a
    /// call.
    pub async fn set_logging_level(&self, name: &str, level: LoggingLevel) -> Result<(), Error> {
        let asking = self.registry.desire(name, |server| server.logging_level = Some(level)).await?;
        let Some(asking) = asking else { return Ok(()) };
        asking.connection.ask_for_level().await
    }

    /// Asks a server to tell of these changes, on this connection and on each later one. They come as
    /// [`ListChanged`](crate::ClientEvent::ListChanged) and [`ResourceUpdated`](crate::ClientEvent::ResourceUpdated) among the
    /// [`events`](Self::events). The filter takes the place of the one before; an empty one asks for nothing. Gives back
    /// what the server granted, or `None` where it is not connected. The filter is remembered from the start of the call,
    /// whether or not the server agrees or the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for a name that no server has; those of [`Client::subscription`], and then the
    /// subscription that stood before goes on.
    pub async fn set_subscription(
        &self,
        name: &str,
        wanted: SubscriptionFilter,
    ) -> Result<Option<SubscriptionFilter>, Error> {
        let wanted = Some(wanted).filter(|wanted| !wanted.is_empty());
        let asking = self.registry.desire(name, |server| server.subscription = wanted).await?;
        let Some(asking) = asking else { return Ok(None) };
        asking.connection.ask_for_subscription().await.map(Some)
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
}

fn status(name: &Arc<str>, server: &Server) -> ServerStatus {
    ServerStatus {
        name: Arc::clone(name),
        state: server.phase.state(),
        generation: server.generation,
        last_error: server.last_error.clone(),
        next_attempt: server.phase.next_attempt(),
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not written under the lock: where it goes to is the application's.
        let servers = self.servers();
        f.debug_map().entries(servers.iter().map(|server| (&server.name, server.state))).finish()
    }
}
