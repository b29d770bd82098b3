//! How a client is set up before it connects.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicitation::{RequestLimits, UrlPolicy};
use mcp_model::{Implementation, ProtocolVersion, Root};
use mcp_proto::{
    CacheConfig, Config, Connection, ElicitationSupport, Mode, RetryConfig, Verdict, VerdictReason,
};
#[cfg(feature = "http")]
use mcp_transport::http::HttpServer;
use mcp_transport::stdio::{LineConnection, StdioServer};

use crate::client::Client;
use crate::defaults::Defaults;
use crate::desk::{AnyElicitationHandler, Desk, DeskConfig, Seat};
use crate::driver::{Driver, EventFn, LineLink, Link, Listeners, Receiver, now};
use crate::elicitation::ElicitationHandler;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::EventQueue;
use crate::identity::{BYTE_STREAM, Identity, check_name};
use crate::sampling::{ErasedSampling, SamplingHandler};

/// Configures a [`Client`]. Created by [`Client::builder`].
///
/// What is not configured is not declared to the server: no elicitation capability without a handler, no roots capability
/// without roots. A clone configures another client in the same way.
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    pub(crate) config: Config,
    elicitation: Option<AnyElicitationHandler>,
    modes: Option<ElicitationSupport>,
    listens: bool,
    question_timeout: Option<Duration>,
    shared_desk: Option<(Desk, Arc<str>)>,
    desk_config: DeskConfig,
    sampling: Option<Arc<dyn ErasedSampling>>,
    pub(crate) defaults: Defaults,
    on_event: Option<EventFn>,
    event_capacity: usize,
    event_capacity_bytes: usize,
    stdout_noise_bytes: usize,
    cache_is_set: bool,
    /// Which server it is for, by name.
    server_name: Option<Arc<str>>,
}

impl ClientBuilder {
    pub(crate) fn new(client_info: Implementation) -> Self {
        let mut config = Config::new(client_info);
        config.mode = Mode::Auto;
        Self {
            config,
            elicitation: None,
            modes: None,
            listens: false,
            question_timeout: None,
            shared_desk: None,
            desk_config: DeskConfig::default(),
            sampling: None,
            defaults: Defaults::default(),
            on_event: None,
            event_capacity: 1024,
            event_capacity_bytes: 16 * 1024 * 1024,
            stdout_noise_bytes: 2048,
            cache_is_set: false,
            server_name: None,
        }
    }

    /// Gives the server a name: the application's own, stable when the URL or the command line changes, and unique among its
    /// servers. It replaces the description of the endpoint wherever this library reports or stores which server it is:
    ///
    /// * in [`SuspendedCall::server`](crate::SuspendedCall::server) and [`StoredTask::server`](crate::StoredTask::server): a
    ///   client resumes what a client with this name for its server stored. What was stored without a name can be resumed too, if it
    ///   comes from the same command line or URL (or from any byte stream: nothing distinguishes those);
    /// * in [`ElicitationContext::server`](crate::ElicitationContext::server), at the desk with its quotas and inbox (unless
    ///   [`desk`](Self::desk) gives another one there), and in [`SamplingContext::server`](crate::SamplingContext::server);
    /// * in errors ([`Error::server_name`]) and in the log.
    ///
    /// It is shown and stored as it is, so it must not contain secrets. It has 1 to 256 bytes and no control characters, otherwise
    /// connecting fails with [`Misuse`](crate::ErrorKind::Misuse). A [`Host`](crate::host::Host) replaces it by the server's name in the
    /// host. Default: none; then the program or the origin of the URL is stored, with a SHA-256 digest of the whole command line or of the
    /// URL without its query, so that a changed argument makes it another server.
    pub fn server_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Answers elicitations of the server with `handler`, and declares both elicitation modes.
    pub fn on_elicitation(mut self, handler: impl ElicitationHandler) -> Self {
        self.elicitation = Some(AnyElicitationHandler::new(handler));
        self
    }

    /// Declares both elicitation modes, and queues the elicitations that no handler takes for
    /// [`Client::elicitations`](crate::Client::elicitations), including those that arrive before it is called.
    pub fn elicitation_stream(mut self) -> Self {
        self.listens = true;
        self
    }

    /// Sends elicitations to a desk that this client shares with others. `server` is the name under which they count there:
    /// for the quota of the server and for its URL elicitations, which the desk remembers across connections. Both modes are
    /// declared if the desk [is staffed](Desk::is_staffed) when the client connects.
    pub fn desk(mut self, desk: &Desk, server: impl Into<Arc<str>>) -> Self {
        self.shared_desk = Some((desk.clone(), server.into()));
        self
    }

    /// Configures the client's own desk. Has no effect with [`desk`](Self::desk). Both modes are declared if the configuration
    /// has an inbox through which another process may answer.
    pub fn desk_config(mut self, config: DeskConfig) -> Self {
        self.desk_config = config;
        self
    }

    /// Size limits for elicitation requests; a larger one is refused with -32602. Default: [`RequestLimits::default`], see its
    /// fields.
    pub fn elicitation_limits(mut self, limits: RequestLimits) -> Self {
        self.config.elicitation_limits = limits;
        self
    }

    /// Which URLs the server may ask the user to visit. Default: https without credentials, and http on loopback hosts. Over
    /// HTTP the user is warned of hosts that look like the server's own, unless the policy names another host.
    pub fn elicitation_urls(mut self, policy: UrlPolicy) -> Self {
        self.config.elicitation_urls = policy;
        self
    }

    /// Answers `sampling/createMessage` with `handler`, and declares sampling (without tools and without context).
    pub fn on_sampling(mut self, handler: impl SamplingHandler) -> Self {
        self.sampling = Some(Arc::new(handler));
        self.config.sampling = true;
        self
    }

    /// Declares that the sampling handler also supports requests with tools (2025-11-25 and later). Otherwise they are refused
    /// before they reach it. Has no effect without a handler.
    pub fn sampling_with_tools(mut self) -> Self {
        self.config.sampling_tools = true;
        self
    }

    /// Declares these elicitation modes instead of both. Has no effect if nobody can answer (no handler, stream or inbox).
    pub fn elicitation_modes(mut self, modes: ElicitationSupport) -> Self {
        self.modes = Some(modes);
        self
    }

    /// Calls `listener` with each event, including those during the handshake: one at a time, in the order in which they
    /// happened, on a task of the connection. It must not block: the connection waits for it, and events from other tasks
    /// queue up meanwhile, within [`event_capacity`](Self::event_capacity) and
    /// [`event_capacity_bytes`](Self::event_capacity_bytes). For slow work use [`Client::events`]. If it panics, that event is
    /// lost to it and the connection goes on.
    pub fn on_event(mut self, listener: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// Declares these roots to the server. Replace them later with [`Client::set_roots`].
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.config.roots = Some(roots.into_iter().collect());
        self
    }

    /// How to detect the protocol era of the server. Default: [`Mode::Auto`], which probes. The verdict is in
    /// [`ServerFacts::verdict`](crate::ServerFacts::verdict); passed to the next connection as [`Mode::Known`] it saves a
    /// legacy server the probe.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = mode;
        self
    }

    /// How long a stdio server may take to answer the probe for its era before it counts as a legacy server. Default 3 s.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.probe_timeout = timeout;
        self
    }

    /// Whether requests of the modern era contain `clientInfo`. Default: yes. `initialize` always does.
    pub fn send_client_info(mut self, send: bool) -> Self {
        self.config.send_client_info = send;
        self
    }

    /// The deadline of the whole handshake: the probe, `initialize`, and a second attempt with a program that exited on the
    /// probe or over the HTTP transport of 2024-11-05. Default 60 s.
    ///
    /// A failed connect cleans up before it returns, so it may take longer by the time of closing: for a program
    /// [`CloseWaits::total`](crate::transport::stdio::CloseWaits::total), at most 6.75 s by default (milliseconds if it exits
    /// at the end of its input); for an HTTP session [`HttpTimeouts::close`](crate::transport::http::HttpTimeouts::close), at
    /// most 5 s by default. To stop at a certain time drop the future: cleanup then happens in the background.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.config.initialize_timeout = timeout;
        self
    }

    /// The default timeout of a call ([`Call::timeout`](crate::Call::timeout)). Default 60 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.defaults.options.timeout = timeout;
        self
    }

    /// The default of [`Call::max_total`](crate::Call::max_total): the time limit of a call including the time in which the
    /// user answers questions. Default: 30 minutes, or the call's timeout if that is longer.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.defaults.max_total = Some(max_total);
        self
    }

    /// How long a request of the server (elicitation, sampling) stays open before it is answered automatically: an elicitation
    /// with `cancel`, others with an error. Default 180 s. An elicitation handler may have its own timeout
    /// ([`ElicitationHandler::timeout`]).
    pub fn server_request_timeout(mut self, timeout: Duration) -> Self {
        self.question_timeout = Some(timeout);
        self.config.server_request_timeout = timeout;
        self
    }

    /// How many events are queued for a slow listener before it loses the oldest. Default 1,024.
    pub fn event_capacity(mut self, events: usize) -> Self {
        self.event_capacity = events;
        self
    }

    /// How many bytes of events are queued for a slow listener before it loses the oldest. Default 16 MiB, the default maximum
    /// size of a message. The newest event is kept whatever its size.
    pub fn event_capacity_bytes(mut self, bytes: usize) -> Self {
        self.event_capacity_bytes = bytes;
        self
    }

    /// How many bytes are kept of the lines that a server writes to standard output, or to another byte stream, and that are no messages, for
    /// [`Error::stdout_noise`]. Default 2 KiB, as much as the message of an error shows; older lines are dropped. 0 keeps nothing, where they
    /// may hold what must not get into a log. Of one line at most
    /// [`LineLimits::excerpt_bytes`](crate::transport::stdio::LineLimits::excerpt_bytes) (256) are kept.
    pub fn stdout_noise_bytes(mut self, bytes: usize) -> Self {
        self.stdout_noise_bytes = bytes;
        self
    }

    /// The cache for lists and resources that a server of the modern era declares fresh. Until they expire they are answered
    /// from memory, unless the server reports a change, a new subscription begins, or [`Call::fresh`](crate::Call::fresh) is
    /// used. Default: [`CacheConfig::default`], 256 results, 4 MiB in all, 24 hours; [`CacheConfig::off`] disables it.
    ///
    /// If an HTTP server has credentials that may change by themselves (`HttpServer::token`, `HttpServer::credentials`), only
    /// results that it declares public are cached, unless a configuration is given here: then call
    /// [`Client::authorization_changed`] when they change.
    pub fn cache(mut self, cache: CacheConfig) -> Self {
        self.config.cache = cache;
        self.cache_is_set = true;
        self
    }

    /// Enables tasks: a server may answer a tool call with a task, and a tool that must be a task under 2025-11-25 is called
    /// as one. Declares the extension `io.modelcontextprotocol/tasks` with each request of the modern era. Awaiting a call
    /// waits for its task, for 30 minutes at most; [`Call::as_task`](crate::Call::as_task) returns the task instead. Default:
    /// no tasks.
    pub fn tasks(mut self, tasks: mcp_proto::TaskConfig) -> Self {
        self.config.tasks = Some(tasks);
        self
    }

    /// Retries of calls that failed on their way to an HTTP server: any call of which no byte was sent, and lists, reads,
    /// completions and the handshake where the connection broke or the status was 429, 500, 502, 503 or 504. A tool call that
    /// the server may have seen is never repeated. Each retry is reported as a diagnostic. Default: [`RetryConfig::default`],
    /// three attempts in all, the second after at most 250 ms; [`RetryConfig::off`] disables retries.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.config.retry = retry;
        self
    }

    /// The limits of a connection. Default: [`Limits::default`](crate::Limits), see its fields. A limit that would let nothing
    /// through makes connecting fail ([`Misuse`](crate::ErrorKind::Misuse)). Limits on single messages belong to the
    /// transport: `StdioServer::limits` takes [`LineLimits`](crate::transport::stdio::LineLimits), `HttpServer::limits` takes
    /// `transport::http::HttpLimits`. Those of elicitations belong to [`DeskConfig`](crate::DeskConfig).
    pub fn limits(mut self, limits: mcp_proto::Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Starts or reaches the server and performs the handshake. Returns when ordinary calls are allowed.
    ///
    /// Must run inside a tokio runtime with time and I/O enabled. If it fails or is dropped, nothing is left behind: a child
    /// process and its process group are ended.
    ///
    /// # Errors
    ///
    /// [`Transport`](crate::ErrorKind::Transport) if the server cannot be started or reached, [`Tls`](crate::ErrorKind::Tls),
    /// [`Unauthorized`](crate::ErrorKind::Unauthorized), [`Closed`](crate::ErrorKind::Closed) if its process exits during the
    /// handshake (the message has its exit status and the end of its standard error), [`Timeout`](crate::ErrorKind::Timeout),
    /// [`UnsupportedVersion`](crate::ErrorKind::UnsupportedVersion), [`Rpc`](crate::ErrorKind::Rpc) if the server refuses the
    /// handshake, [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) and [`LimitExceeded`](crate::ErrorKind::LimitExceeded)
    /// if its answer is invalid or too large, [`Misuse`](crate::ErrorKind::Misuse) for a configuration that cannot work. If
    /// two attempts were made, the error is that of the second and names both ([`Error::first_attempt`]).
    pub async fn connect(self, endpoint: impl Into<Endpoint>) -> Result<Client, Error> {
        self.connect_to(endpoint.into()).await
    }

    /// Not generic and boxed, so that all of this is compiled in this crate and not in each that connects.
    fn connect_to(self, endpoint: Endpoint) -> Pin<Box<dyn Future<Output = Result<Client, Error>> + Send>> {
        Box::pin(self.connecting(endpoint))
    }

    async fn connecting(mut self, endpoint: Endpoint) -> Result<Client, Error> {
        self.config.limits.check().map_err(Error::misuse)?;
        if let Some(name) = &self.server_name {
            check_name(name)?;
        }
        let identity = Identity::new(endpoint.describe(), self.server_name.clone());
        let seat = self.seat(&endpoint);
        if self.elicitation.is_some() || self.listens || seat.desk.is_staffed() {
            self.config.elicitation = self.modes.unwrap_or(ElicitationSupport::all());
        }
        let begun = now();
        let connected = match endpoint {
            Endpoint::Stdio(server) => self.connect_stdio(begun, &server, seat).await,
            Endpoint::Line(connection) => {
                self.line_client(connection, BYTE_STREAM.to_owned(), seat).0.finish_connecting(begun).await
            }
            #[cfg(feature = "http")]
            Endpoint::Http(server) => self.connect_http(begun, &server, seat).await,
        };
        connected.map_err(|error| error.without_effect().at(identity.server()))
    }

    async fn connect_stdio(
        mut self,
        begun: Instant,
        server: &StdioServer,
        seat: Seat,
    ) -> Result<Client, Error> {
        let name = server.describe();
        let connection = server.spawn().map_err(Error::transport_failed)?;
        let (client, driver) = self.line_client(connection, name.clone(), seat.clone());
        let error = match client.finish_connecting(begun).await {
            Err(error) if driver.wants_restart() => error,
            connected => return connected,
        };
        // It ended when it was asked what it is. It is started once more and taken for what it is.
        let legacy = Verdict::new(ProtocolVersion::LATEST_LEGACY, VerdictReason::ExitedOnProbe);
        self.config.mode = Mode::Known(legacy);
        let again = match server.spawn() {
            Ok(connection) => self.line_client(connection, name, seat).0.finish_connecting(begun).await,
            Err(failed) => Err(Error::transport_failed(failed)),
        };
        again.map_err(|again| again.after(error))
    }

    fn line_client(&self, connection: LineConnection, name: String, seat: Seat) -> (Client, Arc<Driver>) {
        let (sender, receiver) = connection.split();
        self.channel_client(Link::Line(LineLink::new(sender)), Receiver::Line(Box::new(receiver)), name, seat)
    }

    fn channel_client(
        &self,
        link: Link,
        receiver: Receiver,
        name: String,
        seat: Seat,
    ) -> (Client, Arc<Driver>) {
        let driver = self.driver(link, name, seat);
        let client = Client::new(Arc::clone(&driver), self.defaults.clone(), Some(receiver));
        (client, driver)
    }

    #[cfg(feature = "http")]
    async fn connect_http(
        mut self,
        begun: Instant,
        server: &HttpServer,
        seat: Seat,
    ) -> Result<Client, Error> {
        use crate::driver::{HttpLink, SseLink};
        use mcp_proto::Wire;

        let connection = server.connect();
        if self.config.elicitation_urls.server_host().is_none() {
            self.config.elicitation_urls = self.config.elicitation_urls.server(&server.describe());
        }
        self.config.wire = Wire::Exchanges;
        if server.has_changing_credentials() && !self.cache_is_set {
            self.config.cache.keep_private = false;
        }
        let driver = self.driver(
            Link::Http(HttpLink::new(connection.clone(), &self.config.limits)),
            server.describe(),
            seat.clone(),
        );
        let error = match Client::new(driver, self.defaults.clone(), None).finish_connecting(begun).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        // A server from before Streamable HTTP refuses the POST of `initialize` in one of these ways, and serves an
        // event stream at the same URL instead (transports, "Backwards Compatibility").
        let legacy = !matches!(self.config.mode, Mode::Pinned(version) if version.is_modern());
        let Some(status @ (400 | 404 | 405)) = error.status().filter(|_| legacy) else {
            return Err(error.with_endpoint_hint());
        };
        if error.error_object().is_some() {
            return Err(error);
        }
        let opening = connection.open_sse_channel();
        let opened = match begun.checked_add(self.config.initialize_timeout) {
            Some(ends) => tokio::time::timeout_at(ends.into(), opening).await,
            None => Ok(opening.await),
        };
        match opened {
            Ok(Ok(Some((sender, receiver)))) => {
                self.config.wire = Wire::Channel;
                if !matches!(self.config.mode, Mode::Pinned(_)) {
                    let reason = VerdictReason::RefusedWithStatus(status);
                    self.config.mode = Mode::Known(Verdict::new(ProtocolVersion::V2024_11_05, reason));
                }
                let (link, receiver) =
                    (Link::Sse(SseLink::new(sender, &self.config.limits)), Receiver::Sse(Box::new(receiver)));
                let (client, _) = self.channel_client(link, receiver, server.describe(), seat);
                client.finish_connecting(begun).await.map_err(|again| again.after(error))
            }
            // What the server said to the newer transport says more than that it has not the older one either.
            Ok(Ok(None)) => Err(error.with_endpoint_hint()),
            // Something is there, and it is not for the path of the URL that it was of no use.
            Ok(Err(_)) | Err(_) => Err(error),
        }
    }

    /// Where the client is going to bring its questions.
    fn seat(&self, endpoint: &Endpoint) -> Seat {
        let (desk, server) = self.shared_desk.clone().unwrap_or_else(|| {
            let name = self.server_name.clone();
            (Desk::new(self.desk_config.clone()), name.unwrap_or_else(|| endpoint.describe().into()))
        });
        Seat {
            desk,
            server,
            handler: self.elicitation.clone(),
            timeout: self.question_timeout,
            waits_for_listener: self.listens,
        }
    }

    fn driver(&self, link: Link, name: String, seat: Seat) -> Arc<Driver> {
        let mut config = self.config.clone();
        if config.retry.jitter_seed == 0 {
            // Each `RandomState` has keys of its own.
            config.retry.jitter_seed = RandomState::new().hash_one(0_u8);
        }
        let core = Connection::new(config);
        let listeners = Listeners::new(
            self.sampling.clone(),
            self.on_event.clone(),
            EventQueue::new(self.event_capacity, self.event_capacity_bytes),
        );
        let identity = Identity::new(name, self.server_name.clone());
        Driver::new(core, link, identity, listeners, seat, self.stdout_noise_bytes)
    }
}

/// What a host needs of the client that its own are set up like.
#[cfg(feature = "host")]
impl ClientBuilder {
    /// Calls `listener` with each event before the application's own listener.
    pub(crate) fn first_on_event(mut self, listener: impl Fn(&ClientEvent) + Send + Sync + 'static) -> Self {
        let next = self.on_event.take();
        self.on_event(move |event| {
            listener(&event);
            if let Some(next) = &next {
                next(event);
            }
        })
    }

    /// The desk that it was given, or one like its own would be.
    pub(crate) fn common_desk(&self) -> Desk {
        let given = self.shared_desk.as_ref().map(|(desk, _)| desk.clone());
        given.unwrap_or_else(|| Desk::new(self.desk_config.clone()))
    }

    /// The roots that are offered.
    pub(crate) fn offered_roots(&self) -> Option<&[Root]> {
        self.config.roots.as_deref()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("elicitation", &self.elicitation.is_some())
            .field("sampling", &self.sampling.is_some())
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}
