//! How a client is set up before it connects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Implementation, ProtocolVersion, Root};
use mcp_proto::{CallOptions, Config, Connection, ElicitationSupport, Mode, Verdict, VerdictReason, Wire};

use crate::client::Client;
use crate::driver::{Driver, EventFn, Handlers, HttpLink, LineLink, Link, Listeners};
use crate::elicitation::{ElicitationHandler, ErasedHandler};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::sampling::{ErasedSampling, SamplingHandler};

/// Sets up a [`Client`]. Made by [`Client::builder`].
///
/// What is not set here is not offered to the server: without a handler no elicitation capability is declared,
/// without roots none.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    config: Config,
    elicitation: Option<Arc<dyn ErasedHandler>>,
    sampling: Option<Arc<dyn ErasedSampling>>,
    request: CallOptions,
    on_event: Option<EventFn>,
    event_capacity: usize,
}

impl ClientBuilder {
    pub(crate) fn new(client_info: Implementation) -> Self {
        Self {
            config: Config::new(client_info),
            elicitation: None,
            sampling: None,
            request: CallOptions::default(),
            on_event: None,
            event_capacity: 1024,
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

    /// Answers `sampling/createMessage` with `handler`, and declares sampling (without tools and context).
    pub fn on_sampling(mut self, handler: impl SamplingHandler) -> Self {
        self.sampling = Some(Arc::new(handler));
        self.config.sampling = true;
        self
    }

    /// Declares these elicitation modes instead of both. Has no effect without a handler.
    pub fn elicitation_modes(mut self, modes: ElicitationSupport) -> Self {
        self.config.elicitation = modes;
        self
    }

    /// Calls `listener` with each event, those during the handshake included, in order and on the task that noticed
    /// it. It must not block: the connection waits for it. For anything slow take [`Client::events`].
    pub fn on_event(mut self, listener: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// Offers these roots to the server. They can be replaced later with [`Client::set_roots`].
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.config.roots = Some(roots.into_iter().collect());
        self
    }

    /// How to find out which protocol era the server belongs to. Default: see [`Mode`]'s use in the README of this
    /// crate; the verdict of a connection is in [`ServerFacts::verdict`](crate::ServerFacts::verdict).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = mode;
        self
    }

    /// How long a program may be silent when it is asked for its era, before it is taken for a legacy server. Default 3 s.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.probe_timeout = timeout;
        self
    }

    /// Whether requests of the modern era say who the client is. Default: yes. `initialize` always does.
    pub fn send_client_info(mut self, send: bool) -> Self {
        self.config.send_client_info = send;
        self
    }

    /// How long the handshake may take in all. Default 60 s.
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

    /// What the protocol core may hold at once.
    pub fn limits(mut self, limits: mcp_proto::Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Bounds on a single message.
    pub fn decode_limits(mut self, limits: mcp_jsonrpc::DecodeLimits) -> Self {
        self.config.decode = limits;
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
                let (client, driver) = self.line_client(connection, name.clone());
                match client.finish_connecting().await {
                    Err(_) if driver.wants_restart() => {
                        // It ended when it was asked what it is. It is started once more and taken for what it is.
                        let legacy =
                            Verdict::new(ProtocolVersion::LATEST_LEGACY, VerdictReason::ExitedOnProbe);
                        self.config.mode = Mode::Known(legacy);
                        let connection = server.spawn().map_err(Error::transport_failed)?;
                        self.line_client(connection, name).0.finish_connecting().await
                    }
                    connected => connected,
                }
            }
            Endpoint::Line(connection) => {
                self.line_client(connection, "a byte stream".to_owned()).0.finish_connecting().await
            }
            Endpoint::Http(server) => {
                let name = server.describe();
                let link = HttpLink::new(server.connect());
                self.config.wire = Wire::Exchanges;
                let driver = self.driver(Link::Http(link), name);
                let client = Client::new(driver, self.request, None);
                client.finish_connecting().await
            }
        }
    }

    fn line_client(
        &self,
        connection: mcp_transport::stdio::LineConnection,
        name: String,
    ) -> (Client, Arc<Driver>) {
        let (sender, receiver) = connection.split();
        let driver = self.driver(Link::Line(LineLink::new(sender)), name);
        let client = Client::new(Arc::clone(&driver), self.request.clone(), Some(receiver));
        (client, driver)
    }

    fn handlers(&self) -> Handlers {
        Handlers { elicitation: self.elicitation.clone(), sampling: self.sampling.clone() }
    }

    fn driver(&self, link: Link, name: String) -> Arc<Driver> {
        let core = Connection::new(self.config.clone());
        let listeners = Listeners::new(self.handlers(), self.on_event.clone(), self.event_capacity);
        Driver::new(core, link, name, listeners)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("elicitation_handler", &self.elicitation.is_some())
            .field("sampling_handler", &self.sampling.is_some())
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
