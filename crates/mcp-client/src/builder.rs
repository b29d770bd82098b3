//! How a client is set up before it connects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Implementation, Root};
use mcp_proto::{CallOptions, Config, Connection, ElicitationSupport};
use mcp_transport::http::HttpServer;
use mcp_transport::stdio::LineConnection;

use crate::client::Client;
use crate::driver::{ChannelLink, Driver, EventFn, HttpLink, Link, Listeners, Receiver, Sender};
use crate::elicitation::{ElicitationHandler, ErasedHandler};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::EventQueue;

/// Sets up a [`Client`]. Made by [`Client::builder`].
///
/// What is not set here is not offered to the server: without a handler no elicitation capability is declared,
/// without roots none.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    config: Config,
    elicitation: Option<Arc<dyn ErasedHandler>>,
    request: CallOptions,
    on_event: Option<EventFn>,
    event_capacity: usize,
    event_capacity_bytes: usize,
}

impl ClientBuilder {
    pub(crate) fn new(client_info: Implementation) -> Self {
        Self {
            config: Config::new(client_info),
            elicitation: None,
            request: CallOptions::default(),
            on_event: None,
            event_capacity: 1024,
            event_capacity_bytes: 16 * 1024 * 1024,
        }
    }

    /// Answers the questions of the server with `handler`, and declares both elicitation modes.
    pub fn on_elicitation(mut self, handler: impl ElicitationHandler) -> Self {
        self.elicitation = Some(Arc::new(handler));
        if self.config.elicitation == ElicitationSupport::default() {
            self.config.elicitation = ElicitationSupport::all();
        }
        self
    }

    /// Declares these elicitation modes instead of both. Has no effect without a handler.
    pub fn elicitation_modes(mut self, modes: ElicitationSupport) -> Self {
        self.config.elicitation = modes;
        self
    }

    /// Calls `listener` with each event, those during the handshake included, in order and on the task that noticed
    /// it. It must not block: the connection waits for it. For anything slow take [`Client::events`]. If it panics, the
    /// event is lost to it and the connection goes on.
    pub fn on_event(mut self, listener: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// Offers these roots to the server. They can be replaced later with [`Client::set_roots`].
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.config.roots = Some(roots.into_iter().collect());
        self
    }

    /// How long the handshake may take. Default 60 s.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.config.initialize_timeout = timeout;
        self
    }

    /// How long a call waits for its answer unless it says otherwise. Default 60 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout = timeout;
        self
    }

    /// How long a question of the server stays open before it is answered with `cancel`. Default 180 s.
    pub fn server_request_timeout(mut self, timeout: Duration) -> Self {
        self.config.server_request_timeout = timeout;
        self
    }

    /// How many events wait for a slow listener before it loses the oldest. Default 1,024.
    pub fn event_capacity(mut self, events: usize) -> Self {
        self.event_capacity = events;
        self
    }

    /// How many bytes of events wait for a slow listener before it loses the oldest. Default 16 MiB: one message of the
    /// greatest default size. The newest event is kept whatever its size.
    pub fn event_capacity_bytes(mut self, bytes: usize) -> Self {
        self.event_capacity_bytes = bytes;
        self
    }

    /// What the protocol core may hold at once. Bounds on single messages belong to the transport: see `limits` of
    /// [`StdioServer`](crate::StdioServer) and [`HttpServer`](crate::HttpServer).
    pub fn limits(mut self, limits: mcp_proto::Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Starts or reaches the server and does the handshake. Returns when ordinary calls are allowed.
    ///
    /// Must run inside a tokio runtime with time and I/O enabled. When it fails or is dropped nothing is left
    /// behind: a child process and everything in its process group is ended.
    ///
    /// # Errors
    ///
    /// [`Transport`](crate::ErrorKind::Transport) where the server cannot be started or reached,
    /// [`Closed`](crate::ErrorKind::Closed) where its process ends during the handshake (the message has its exit
    /// status and last words), [`Timeout`](crate::ErrorKind::Timeout),
    /// [`UnsupportedVersion`](crate::ErrorKind::UnsupportedVersion), [`Rpc`](crate::ErrorKind::Rpc) where it refuses.
    pub async fn connect(mut self, endpoint: impl Into<Endpoint>) -> Result<Client, Error> {
        if self.elicitation.is_none() {
            self.config.elicitation = ElicitationSupport::default();
        }
        match endpoint.into() {
            Endpoint::Stdio(server) => {
                let name = server.describe();
                let connection = server.spawn().map_err(Error::transport_failed)?;
                self.connect_line(connection, name).await
            }
            Endpoint::Line(connection) => self.connect_line(connection, "a byte stream".to_owned()).await,
            Endpoint::Http(server) => self.connect_http(&server).await,
        }
    }

    async fn connect_line(self, connection: LineConnection, name: String) -> Result<Client, Error> {
        let (sender, receiver) = connection.split();
        self.connect_channel(Sender::Line(sender), Receiver::Line(Box::new(receiver)), name).await
    }

    async fn connect_channel(
        self,
        sender: Sender,
        receiver: Receiver,
        name: String,
    ) -> Result<Client, Error> {
        let driver = self.driver(Link::Channel(ChannelLink::new(sender)), name);
        Client::new(driver, self.request, Some(receiver)).finish_connecting().await
    }

    async fn connect_http(self, server: &HttpServer) -> Result<Client, Error> {
        let connection = server.connect();
        let driver = self.driver(Link::Http(HttpLink::new(connection.clone())), server.describe());
        let error = match Client::new(driver, self.request.clone(), None).finish_connecting().await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        // A server from before Streamable HTTP refuses the POST of `initialize` in one of these ways, and serves an
        // event stream at the same URL instead (transports, "Backwards Compatibility").
        if !matches!(error.status(), Some(400 | 404 | 405)) || error.error_object().is_some() {
            return Err(error);
        }
        match connection.open_sse_channel().await {
            Ok(Some((sender, receiver))) => {
                let (sender, receiver) = (Sender::Sse(sender), Receiver::Sse(Box::new(receiver)));
                self.connect_channel(sender, receiver, server.describe()).await
            }
            // What the server said to the newer transport says more than that it has not the older one either.
            Ok(None) | Err(_) => Err(error),
        }
    }

    fn driver(&self, link: Link, name: String) -> Arc<Driver> {
        let core = Connection::new(self.config.clone());
        let listeners = Listeners::new(
            self.elicitation.clone(),
            self.on_event.clone(),
            EventQueue::new(self.event_capacity, self.event_capacity_bytes),
        );
        Driver::new(core, link, name, listeners)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("elicitation", &self.elicitation.is_some())
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
