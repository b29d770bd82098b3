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
use crate::error::{Error, Place};
use crate::event::ClientEvent;
use crate::event_queue::EventQueue;
use crate::sampling::{ErasedSampling, SamplingHandler};

/// What stands for a server that was handed over as a stream.
const BYTE_STREAM: &str = "a byte stream";

/// Sets up a [`Client`]. Made by [`Client::builder`].
///
/// What is not set here is not offered to the server: without a handler no elicitation capability is declared,
/// without roots none. A clone sets up a further client the same way.
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
    cache_is_set: bool,
    /// Which server of a host it is for.
    place: Option<Arc<Place>>,
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
            cache_is_set: false,
            place: None,
        }
    }

    /// Answers the questions of the server with `handler`, and declares both elicitation modes.
    pub fn on_elicitation(mut self, handler: impl ElicitationHandler) -> Self {
        self.elicitation = Some(AnyElicitationHandler::new(handler));
        self
    }

    /// Declares both elicitation modes, and keeps the questions that no handler takes for
    /// [`Client::elicitations`](crate::Client::elicitations): also those that come before it is called.
    pub fn elicitation_stream(mut self) -> Self {
        self.listens = true;
        self
    }

    /// Brings the questions of the server to a desk that this client shares with others, where they count for the server
    /// of this name: its quota, and its URL elicitations, which the desk remembers over connections. Both modes are declared
    /// if the desk [is staffed](Desk::is_staffed) when the client connects.
    pub fn desk(mut self, desk: &Desk, server: impl Into<Arc<str>>) -> Self {
        self.shared_desk = Some((desk.clone(), server.into()));
        self
    }

    /// How the client's own desk treats questions. Has no effect with [`desk`](Self::desk). Both modes are declared if it has
    /// an inbox through which somebody may answer.
    pub fn desk_config(mut self, config: DeskConfig) -> Self {
        self.desk_config = config;
        self
    }

    /// Counts and lengths that a question may reach; a question beyond them is refused with -32602. Default:
    /// [`RequestLimits::default`], each field of which says its value.
    pub fn elicitation_limits(mut self, limits: RequestLimits) -> Self {
        self.config.elicitation_limits = limits;
        self
    }

    /// Which URLs the server may send people to. Default: https without credentials, and http on loopback hosts. Over HTTP
    /// people are warned of hosts that look like the server's own, unless the policy names another.
    pub fn elicitation_urls(mut self, policy: UrlPolicy) -> Self {
        self.config.elicitation_urls = policy;
        self
    }

    /// Answers `sampling/createMessage` with `handler`, and declares sampling (without tools and context).
    pub fn on_sampling(mut self, handler: impl SamplingHandler) -> Self {
        self.sampling = Some(Arc::new(handler));
        self.config.sampling = true;
        self
    }

    /// Declares that the sampling handler also serves requests with tools (2025-11-25 and later). Without it they are refused
    /// before they reach it. Has no effect without a handler.
    pub fn sampling_with_tools(mut self) -> Self {
        self.config.sampling_tools = true;
        self
    }

    /// Declares these elicitation modes instead of both. Has no effect where nobody is there to answer.
    pub fn elicitation_modes(mut self, modes: ElicitationSupport) -> Self {
        self.modes = Some(modes);
        self
    }

    /// Calls `listener` with each event, those during the handshake included: with one after another, in the order in which
    /// they happened, and on a task that noticed one. It must not block: the connection waits for it, and what others notice
    /// meanwhile waits within [`event_capacity`](Self::event_capacity) and its bytes. For anything slow take
    /// [`Client::events`]. If it panics, the event is lost to it and the connection goes on.
    pub fn on_event(mut self, listener: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// Offers these roots to the server. They can be replaced later with [`Client::set_roots`].
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.config.roots = Some(roots.into_iter().collect());
        self
    }

    /// How to find out which protocol era the server belongs to. Default: [`Mode::Auto`], which asks. The verdict of a
    /// connection is in [`ServerFacts::verdict`](crate::ServerFacts::verdict); given to the next one as [`Mode::Known`]
    /// it saves a legacy server the question.
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

    /// How long the handshake may take in all: asking for the era, `initialize`, and doing that over again with a program that
    /// ended when it was asked, or over the HTTP transport of 2024-11-05. Default 60 s.
    ///
    /// A connect that fails ends what it began before it returns, so it may take longer by the time that closing has: for a
    /// program the steps of [`CloseWaits`](crate::transport::stdio::CloseWaits), 7 s if it resists all of them (one that ends with
    /// its input takes milliseconds); for an HTTP session [`HttpTimeouts::close`](crate::transport::http::HttpTimeouts::close), 5 s
    /// (nothing where there is none). To be done at a certain time, drop the future: what it began is ended in the background.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.config.initialize_timeout = timeout;
        self
    }

    /// How long a call waits for its answer unless it says otherwise. Default 60 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.defaults.options.timeout = timeout;
        self
    }

    /// The hard end of a call that says none of its own ([`Call::max_total`](crate::Call::max_total)), however long people think in
    /// the middle of it. Default: 30 minutes, or the call's timeout where that is longer.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.defaults.max_total = Some(max_total);
        self
    }

    /// How long a question of the server stays open before it is answered with `cancel`, or with an error where it is no
    /// elicitation. Default 180 s. A handler may have a time of its own.
    pub fn server_request_timeout(mut self, timeout: Duration) -> Self {
        self.question_timeout = Some(timeout);
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

    /// What is kept of lists and read resources for as long as a server of the modern era says that they are fresh. Until
    /// then they are answered from memory; a notice of a change, a new subscription and [`Call::fresh`](crate::Call::fresh)
    /// ask the server. Default: [`CacheConfig::default`], 256 results of 4 MiB in all; [`CacheConfig::off`] keeps nothing. Where an HTTP server is given credentials that may change by
    /// themselves, only what it calls public is kept, unless a configuration is given here: then tell the client with
    /// [`Client::authorization_changed`].
    pub fn cache(mut self, cache: CacheConfig) -> Self {
        self.config.cache = cache;
        self.cache_is_set = true;
        self
    }

    /// Takes tasks: a server may answer a tool call with one, and a tool that must be one under 2025-11-25 is called as
    /// such. Declares the extension `io.modelcontextprotocol/tasks` with each request of the modern era. Awaiting a call
    /// waits for its task, for 30 minutes at most; [`Call::as_task`](crate::Call::as_task) gives it into the application's
    /// hands. Default: no tasks.
    pub fn tasks(mut self, tasks: mcp_proto::TaskConfig) -> Self {
        self.config.tasks = Some(tasks);
        self
    }

    /// Whether and how calls are tried again that failed on their way to an HTTP server: any call of which no byte was sent,
    /// and lists, reads, completions and the handshake where the connection broke or a gateway refused; a tool call of which the
    /// server may have seen anything is never repeated. Each time is told as a diagnostic. Default:
    /// [`RetryConfig::default`], three attempts in all, the second at most 250 ms after the first; [`RetryConfig::off`] never
    /// tries again.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.config.retry = retry;
        self
    }

    /// What a connection may hold at once. Default: [`Limits::default`](crate::Limits), each field of which says its value. One that
    /// lets nothing through is refused when connecting ([`Misuse`](crate::ErrorKind::Misuse)). Bounds on single messages belong to the
    /// transport: `StdioServer::limits` takes [`LineLimits`](crate::transport::stdio::LineLimits), `HttpServer::limits` takes
    /// `transport::http::HttpLimits`; those of questions belong to [`DeskConfig`](crate::DeskConfig).
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
    /// Where two attempts were made, the error is that of the second and names both
    /// ([`Error::first_attempt`]).
    pub async fn connect(self, endpoint: impl Into<Endpoint>) -> Result<Client, Error> {
        self.connect_to(endpoint.into()).await
    }

    /// Not generic and boxed, so that all of this is compiled in this crate and not in each that connects.
    fn connect_to(self, endpoint: Endpoint) -> Pin<Box<dyn Future<Output = Result<Client, Error>> + Send>> {
        Box::pin(self.connecting(endpoint))
    }

    async fn connecting(mut self, endpoint: Endpoint) -> Result<Client, Error> {
        self.config.limits.check().map_err(Error::misuse)?;
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
        connected.map_err(Error::without_effect)
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
        let Some(status @ (400 | 404 | 405)) = error.status().filter(|_| legacy) else { return Err(error) };
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
            Ok(Ok(None) | Err(_)) | Err(_) => Err(error),
        }
    }

    /// Where the client is going to bring its questions.
    fn seat(&self, endpoint: &Endpoint) -> Seat {
        let (desk, server) = self.shared_desk.clone().unwrap_or_else(|| {
            let name = match endpoint {
                #[cfg(feature = "http")]
                Endpoint::Http(server) => server.describe(),
                Endpoint::Line(_) => BYTE_STREAM.to_owned(),
                Endpoint::Stdio(server) => server.describe(),
            };
            (Desk::new(self.desk_config.clone()), name.into())
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
        Driver::new(core, link, name, self.place.clone(), listeners, seat)
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

    /// The errors of the client name this server.
    pub(crate) fn named(mut self, server: &Arc<str>) -> Self {
        self.place = Some(Arc::new(Place { server: Arc::clone(server), tool: None }));
        self
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
