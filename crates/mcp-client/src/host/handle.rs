//! The application's handle on all servers.

use std::borrow::Cow;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_model::methods::TOOLS_CALL;
use mcp_model::{CallToolResult, LoggingLevel, Root, SubscriptionFilter};
use serde::Serialize;

use super::builder::HostBuilder;
use super::config::is_name;
use super::connector::Connector;
use super::event::{Generation, HostEvents, ServerState};
use super::reconnect::GivenUp;
use super::registry::{Phase, Registry, Server, host_closed, unknown};
use super::tool_names::NamedTool;
use crate::builder::ClientBuilder;
use crate::client::{Client, Closed};
use crate::desk::Desk;
use crate::error::{Called, Error};
use crate::identity::bad_name;
use crate::requests::Call;

/// Connections to many servers, by name.
///
/// Cheap to clone; all clones are the same host. The application chooses the names of servers: not empty, at most 256 bytes,
/// no control characters. Names have no structure: `srv` and `srv:child` are unrelated.
///
/// ```no_run
/// use mcp_client::host::{Host, ServersConfig, ToolNames};
/// use mcp_client::{Client, ErrorReport};
/// use serde_json::json;
/// use tokio::task::JoinSet;
///
/// # async fn example(config: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::new(Client::builder("my-app", "1.0"));
/// let mut connecting = JoinSet::new();
/// for entry in ServersConfig::parse(config)?.entries().iter().filter(|entry| !entry.is_disabled()) {
///     // An application shows `entry.stdio_server()?.describe()` and asks before it starts what a file names.
///     match entry.expand(|name| std::env::var(name).ok()).and_then(|entry| entry.connector()) {
///         Ok(connector) => {
///             let (host, name) = (host.clone(), entry.name().to_owned());
///             connecting.spawn(async move { host.connect(&name, connector).await });
///         }
///         Err(error) => eprintln!("{}", ErrorReport::new(&error)),
///     }
/// }
/// while let Some(connected) = connecting.join_next().await {
///     let _ = connected?.inspect_err(|error| eprintln!("{}", error.report())); // the error names the server
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
/// When the last clone is dropped, every connection is closed in the background, as by [`Client::close`], even if the
/// application still holds its [`Client`].
#[derive(Clone)]
pub struct Host {
    registry: Arc<Registry>,
}

/// The status of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Its state.
    pub state: ServerState,
    /// The latest attempt to connect; `None` if there was none.
    pub generation: Option<Generation>,
    /// Why there is no connection, or why closing the last one did not succeed cleanly. While an attempt is under way: why there was no
    /// connection before it. Reset when a connection stands, and when the application disconnects the server or gives up the attempt.
    pub last_error: Option<Error>,
    /// The time of the next reconnect attempt ([`HostBuilder::reconnect`]), if there will be one.
    pub next_attempt: Option<Instant>,
    /// Why there will be none, if the server has [failed](ServerState::Failed).
    pub given_up: Option<GivenUp>,
    /// Attempts to connect since the server was added, by the application and by the host, including the current one. A program may have
    /// been [started twice](crate::Error::first_attempt) in one attempt.
    pub attempts: u64,
    /// How many of these attempts led to a connection.
    pub connections: u64,
    /// Consecutive attempts of the host itself, including the current or next one, out of
    /// [`ReconnectPolicy::max_attempts`](super::ReconnectPolicy::max_attempts). Reset by an attempt of the application, and when a
    /// [stable](super::ReconnectPolicy::stable_after) connection ends.
    pub consecutive_attempts: u32,
}

impl ServerStatus {
    /// Whether there may be a connection without the application doing anything for it.
    fn is_on_its_way(&self) -> bool {
        match self.state {
            ServerState::Closing | ServerState::Connected | ServerState::Connecting => true,
            ServerState::Disconnected => false,
            ServerState::Failed => self.next_attempt.is_some(),
        }
    }
}

impl Host {
    /// Creates a host without servers. Its clients are configured like `client`.
    pub fn new(client: ClientBuilder) -> Self {
        Self::builder(client).build()
    }

    /// Configures a host whose clients are configured like `client`. [`Connector::configure`] adds what a single server needs.
    pub fn builder(client: ClientBuilder) -> HostBuilder {
        HostBuilder::new(client)
    }

    pub(super) fn build(builder: HostBuilder) -> Self {
        Self { registry: Arc::new(Registry::new(builder)) }
    }

    /// Connects to a server and stores it under this name. The desired settings of a server with this name (log level,
    /// subscription, the host's roots) are requested before this returns, for
    /// [`HostLimits::restore_timeout`](super::HostLimits::restore_timeout) at most. Until then the server is
    /// [`Connecting`](ServerState::Connecting). A setting that the server refuses does not prevent the connection; it is
    /// reported as [`NotRestored`](super::HostEvent::NotRestored).
    ///
    /// The connector may be that of another server than before, so nothing of the last connection is kept but the settings:
    /// tools that it listed are [departed](super::ToolTable::departed) no longer. [`reconnect`](Self::reconnect) is for the same server.
    ///
    /// Each call waits for its own server only; to connect to several servers at the same time, call it concurrently.
    ///
    /// Must run inside a tokio runtime. If a server of this name is being closed, this waits for it, for
    /// [`HostLimits::close_timeout`](super::HostLimits::close_timeout) at most. If the future is dropped, the attempt is given
    /// up, with those that the host makes after it by itself, and only the name remains: a connection that exists already is
    /// closed in the background.
    ///
    /// # Errors
    ///
    /// Those of [`ClientBuilder::connect`]; [`Misuse`](crate::ErrorKind::Misuse) for an invalid name, or if a server of this
    /// name is connected or connecting; [`LimitExceeded`](crate::ErrorKind::LimitExceeded) at
    /// [`HostLimits::max_servers`](super::HostLimits::max_servers); [`Closed`](crate::ErrorKind::Closed) if the server was
    /// disconnected or the host closed meanwhile. A server that cannot be connected stays known as
    /// [`Failed`](ServerState::Failed), for [`reconnect`](Self::reconnect); a host that [reconnects](HostBuilder::reconnect)
    /// by itself makes up to [`max_attempts`](super::ReconnectPolicy::max_attempts) more attempts, but not after an error that
    /// [would recur](super::ReconnectPolicy).
    pub async fn connect(&self, name: &str, connector: impl Into<Connector>) -> Result<Client, Error> {
        if !is_name(name) {
            return Err(bad_name());
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
                let last = state.last_attempt();
                let server = state.server(&name, &connector);
                match &server.phase {
                    Phase::Closing(closing) => Err(Arc::clone(closing)),
                    Phase::Connected(_) => return Err(taken()),
                    Phase::Connecting { .. } => return Err(taken()),
                    Phase::Disconnected | Phase::Failed(_) => {
                        let replaced = server.replace(connector.clone(), last);
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

    /// Connects to a server again, in the same way as before. An existing connection is closed first. Concurrent callers share
    /// one attempt, which is given up when the last of their futures is dropped. Closing, once begun, is completed.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect); [`Misuse`](crate::ErrorKind::Misuse) for an unknown name.
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

    /// Closes the connection of a server, or gives up the attempt to connect to it, and keeps its name and its desired
    /// settings, for [`reconnect`](Self::reconnect). Calls in flight fail with kind `Closed`, open questions are withdrawn.
    /// Other servers are not affected. A server that has failed counts as disconnected from then on, so that it is not
    /// reconnected.
    ///
    /// Concurrent callers share one closing. It continues if the future is dropped, and takes no longer than
    /// [`HostLimits::close_timeout`](super::HostLimits::close_timeout). It runs on the runtime on which the server was
    /// connected; if nothing drives that one, the timeout still applies on the caller's runtime, and if it has shut down, the
    /// connection has ended with it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown name, [`Timeout`](crate::ErrorKind::Timeout).
    pub async fn disconnect(&self, name: &str) -> Result<Closed, Error> {
        match self.registry.begin_closing(name)? {
            Some(closing) => closing.outcome().await.map_err(|error| error.at_server(name)),
            None => Ok(Closed { process: None }),
        }
    }

    /// Disconnects a server and forgets it, including its desired settings and its URL elicitations. If the future is dropped,
    /// closing continues, but the server is not forgotten.
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
            self.registry.removals.set(());
            // Refused only while a connection of it is open somewhere else.
            let _ = self.registry.desk.forget_server(name);
        }
        drop(gone);
        closed
    }

    /// Closes all connections concurrently, gives up all attempts, and ends the event streams. No further connection can be
    /// made. Returns how each connection was closed.
    ///
    /// It takes no longer than [`HostLimits::close_timeout`](super::HostLimits::close_timeout), or the longest one in a
    /// [policy](super::ServerPolicy::close_timeout). If the future is dropped,
    /// closing continues; calling this again waits for it and then ends the streams.
    pub async fn close(&self) -> Vec<(Arc<str>, Result<Closed, Error>)> {
        let names: Vec<Arc<str>> = {
            let mut state = self.registry.lock();
            state.closed = true;
            state.servers.keys().cloned().collect()
        };
        let begun = names.into_iter().filter_map(|name| {
            let closing = self.registry.begin_closing(&name).ok()??;
            let ends = closing.ends();
            Some((name, closing, ends))
        });
        let closings: Vec<_> = begun.collect();
        let mut closed = Vec::new();
        for (name, closing, ends) in closings {
            closed.push((name, closing.outcome_by(ends).await));
        }
        self.registry.events.end();
        closed
    }

    /// The connection of a server.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown name, [`Closed`](crate::ErrorKind::Closed) where it is
    /// not connected: the message says how many attempts there were and when the next one is made, the source is the newest error, and
    /// [`Error::server_status`] has all of it.
    pub fn client(&self, name: &str) -> Result<Client, Error> {
        self.registry.client(name)
    }

    /// Waits until the server is connected, and returns the connection: [`client`](Self::client) for a caller that would rather wait than
    /// fail while the host connects again. It makes no attempt of its own and closes nothing, so any number of callers may wait. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// Those of [`client`](Self::client): at once if no connection is to be expected, as the server is unknown, was disconnected by the
    /// application, or has failed and is not tried again; else after `limit`.
    pub async fn connected(&self, name: &str, limit: Duration) -> Result<Client, Error> {
        // Before the first look: what changes in between must be told.
        let mut events = self.events();
        let mut limit = pin!(tokio::time::sleep(limit));
        loop {
            let error = match self.client(name) {
                Ok(client) if !client.is_closed() => return Ok(client),
                // The host is about to hear of it.
                Ok(client) => client.driver().closed_error(false),
                Err(error) if error.server_status().is_some_and(ServerStatus::is_on_its_way) => error,
                Err(error) => return Err(error),
            };
            tokio::select! {
                event = events.next() => if event.is_none() { return Err(error) },
                () = &mut limit => return Err(error),
            }
        }
    }

    /// The status of a server.
    pub fn server(&self, name: &str) -> Option<ServerStatus> {
        let state = self.registry.lock();
        state.servers.get_key_value(name).map(|(name, server)| status(name, server))
    }

    /// The status of every server, in the order of their names.
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.registry.lock().servers.iter().map(|(name, server)| status(name, server)).collect()
    }

    /// The events of all servers from now on. See [`HostEvents`] for slow listeners.
    pub fn events(&self) -> HostEvents {
        HostEvents { listener: self.registry.events.listen() }
    }

    /// The desk that handles the elicitations of all servers, under their names. They share its capacity, and each has its
    /// quota. A question ends with its connection: a later answer is refused.
    pub fn desk(&self) -> &Desk {
        &self.registry.desk
    }

    /// Calls a tool of a table ([`ToolNames`](super::ToolNames)), by the names of its server and its own, over the connection that
    /// the server has now. All its errors name the server and the tool. Errors of calls on a [`Client`] of the host name the
    /// server.
    ///
    /// The tool may have been listed over an [earlier connection](NamedTool::generation), in a table from before or as a
    /// [departed](super::ToolTable::departed) one: then the server may describe it differently now, or refuse it as unknown. Where
    /// an approval is for one connection only, compare with [`ServerStatus::generation`].
    ///
    /// # Errors
    ///
    /// Those of [`client`](Self::client).
    pub fn call_tool(
        &self,
        tool: &NamedTool,
        arguments: impl Serialize,
    ) -> Result<Call<CallToolResult>, Error> {
        let (server, name) = (tool.server(), &tool.tool().name);
        let called = || Called { method: Cow::Borrowed(TOOLS_CALL), tool: Some(Arc::from(name.as_str())) };
        let client = self.client(server).map_err(|error| error.at_server(server).of(&called()))?;
        Ok(client.call_tool(name.as_str(), arguments))
    }

    /// Replaces the roots that are declared to all servers, now and later. Each connected server is notified once, if they
    /// differ from its current ones.
    ///
    /// Returns the servers that could not be notified, and why: a server that was connected while no roots were declared was
    /// told that this client has none, and gets them with its next connection ([`Misuse`](crate::ErrorKind::Misuse)).
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Vec<(Arc<str>, Error)> {
        self.registry.set_roots(roots.into_iter().collect())
    }

    /// Requests log messages of this level and above from a server, on this connection and on each later one. Waits for the
    /// server's answer, if it is connected. The level is remembered from the start of the call, even if the server refuses or
    /// the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown name, and where the server has no logging; those of a
    /// call.
    pub async fn set_logging_level(&self, name: &str, level: LoggingLevel) -> Result<(), Error> {
        let asking = self.registry.desire(name, |server| server.logging_level = Some(level)).await?;
        let Some(asking) = asking else { return Ok(()) };
        asking.connection.ask_for_level().await
    }

    /// Subscribes to changes of a server, on this connection and on each later one. They are reported as
    /// [`ListChanged`](crate::ClientEvent::ListChanged) and [`ResourceUpdated`](crate::ClientEvent::ResourceUpdated) among the
    /// [`events`](Self::events). The filter replaces the one before; an empty one ends the subscription. Returns what the
    /// server granted, or `None` if it is not connected. The filter is remembered from the start of the call, even if the
    /// server refuses or the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown name; those of [`Client::subscription`], and then the
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

pub(super) fn status(name: &Arc<str>, server: &Server) -> ServerStatus {
    ServerStatus {
        name: Arc::clone(name),
        state: server.phase.state(),
        generation: server.generation,
        last_error: server.last_error.clone(),
        next_attempt: server.phase.next_attempt(),
        given_up: server
            .phase
            .given_up()
            .and_then(|reason| Some(GivenUp { reason, error: server.last_error.clone()? })),
        attempts: server.attempts,
        connections: server.connections,
        consecutive_attempts: server.row.attempts(),
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not written under the lock: where it goes to is the application's.
        let servers = self.servers();
        f.debug_map().entries(servers.iter().map(|server| (&server.name, server.state))).finish()
    }
}
