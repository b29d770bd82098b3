//! The handle of the application on one server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mcp_jsonrpc::RawJson;
use mcp_model::{Implementation, ProtocolVersion, Root};
use mcp_proto::{CallOptions, Connection, DiagnosticKind, Misuse, ServerFacts};
use mcp_transport::stdio::CloseReport;
use tokio::task::AbortHandle;

use crate::builder::ClientBuilder;
use crate::close_reason::CloseReason;
use crate::defaults::Defaults;
use crate::desk::{Desk, ElicitationRoute, Elicitations};
use crate::driver::spans;
use crate::driver::{Driver, Link, Receiver, SessionHead};
use crate::elicitation::ElicitationHandler;
use crate::error::Error;
use crate::event::Events;

/// A connection to one MCP server.
///
/// Cheap to clone; all clones share the connection. Every method may be called from any task at any time.
///
/// # Order
///
/// Over stdio and any other byte stream messages are sent in the order in which they are submitted: a call when its future is
/// first polled, [`notify`](Self::notify) and [`set_roots`](Self::set_roots) when they are called, an answer to the server
/// when its handler returns, and the cancellation of a call between its request and whatever follows from its end. This also
/// holds while the server does not read: nothing overtakes anything, and no future that is not polled holds up what comes
/// after it. A call that is given up before its request was sent is removed, and the server does not learn of it. Messages
/// that two threads submit at the same time are sent in either order.
///
/// Over HTTP each message is a request of its own, and they may overtake each other; the protocol defines no order. Only what
/// [`notify`](Self::notify) and [`set_roots`](Self::set_roots) send keeps its order: each is posted after the server has
/// accepted the one before, or after that failed. To make sure that the server knows something before a call, send it in a
/// call and wait for the answer.
///
/// # End
///
/// [`close`](Self::close) ends the connection gracefully. If the last clone is dropped without it, the connection ends in the
/// background: a child process is shut down in the same steps as by `close`, or killed with its process group if the runtime
/// shuts down before; sockets are closed, and an HTTP session is left to expire.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    driver: Arc<Driver>,
    defaults: Defaults,
    #[cfg(feature = "schema")]
    output_checks: Option<Arc<crate::schema::OutputChecks>>,
    server: OnceLock<ServerFacts>,
    /// The reader of the connection (the pipe, or the standing HTTP stream).
    reader: Mutex<Option<AbortHandle>>,
    /// What the request carries that ends the session, from when the connection was closed.
    head: OnceLock<SessionHead>,
}

/// The result of [`Client::close`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// How the child process ended, if there was one.
    pub process: Option<CloseReport>,
}

impl Client {
    /// Configures a client with this `name` and `version` as its `clientInfo`.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// Configures a client with a full `clientInfo`: title, description, icons, website.
    pub fn builder_for(client_info: Implementation) -> ClientBuilder {
        ClientBuilder::new(client_info)
    }

    pub(crate) fn new(driver: Arc<Driver>, defaults: Defaults, receiver: Option<Receiver>) -> Self {
        let reader = receiver.map(|receiver| driver.spawn_channel_reader(receiver));
        Self {
            inner: Arc::new(Inner {
                driver,
                #[cfg(feature = "schema")]
                output_checks: defaults.output.clone().map(crate::schema::OutputChecks::new).map(Arc::new),
                defaults,
                server: OnceLock::new(),
                reader: Mutex::new(reader),
                head: OnceLock::new(),
            }),
        }
    }

    /// Does the handshake and opens the standing stream. What was begun is ended if it fails. `begun`: from when on the time
    /// of the handshake counts.
    pub(crate) async fn finish_connecting(self, begun: Instant) -> Result<Self, Error> {
        let driver = &self.inner.driver;
        match spans::traced(spans::connect(driver), Arc::clone(driver).handshake(begun)).await {
            Ok(server) => {
                spans::connected(driver, &server);
                // Invariant: this runs once for each client, so the cell is empty.
                let _ = self.inner.server.set(server);
                if let Some(reader) = self.inner.driver.spawn_stream_reader().await {
                    *self.inner.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
                }
                Ok(self)
            }
            Err(error) => {
                self.close().await;
                let driver = &self.inner.driver;
                let error = error.with_stdout_noise(driver.noise()).with_diagnostics(driver.diagnostics());
                Err(match driver.link() {
                    Link::Line(link) => error.with_stderr_tail(link.stderr_tail()),
                    _ => error,
                })
            }
        }
    }

    /// What the server declared in the handshake.
    pub fn server(&self) -> &ServerFacts {
        // Invariant: an application only gets a client whose handshake succeeded.
        #[expect(clippy::expect_used, reason = "see the invariant above")]
        self.inner.server.get().expect("the handshake is complete")
    }

    /// The negotiated protocol revision.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.server().protocol_version
    }

    /// The events from now on. See [`Events`] for slow listeners.
    pub fn events(&self) -> Events {
        Events::new(self.inner.driver.listen())
    }

    /// How many diagnostics of each kind there have been on this connection, including those of the handshake and those that were not
    /// reported singly ([`Diagnostic`](crate::Diagnostic)), in the order in which the kinds first occurred; kinds without any are left out.
    /// Still available after the connection has ended.
    ///
    /// Cheap, and needs no listener: call it when a call failed, say. The totals of a connection that could not be made are in the error:
    /// [`Error::diagnostics`](crate::Error::diagnostics).
    ///
    /// ```
    /// # fn show(client: &mcp_client::Client) {
    /// for (kind, total) in client.diagnostics() {
    ///     println!("{}: {total}", kind.as_str());
    /// }
    /// # }
    /// ```
    pub fn diagnostics(&self) -> Vec<(DiagnosticKind, u64)> {
        self.inner.driver.diagnostics()
    }

    /// The desk that handles the elicitations of this client.
    pub fn desk(&self) -> &Desk {
        self.inner.driver.intake().desk()
    }

    /// The elicitations of this client's server that no handler takes, as a stream: the alternative to a handler. Call
    /// [`elicitation_stream`](ClientBuilder::elicitation_stream) before connecting, so that the capability is declared.
    pub fn elicitations(&self) -> Elicitations {
        let intake = self.inner.driver.intake();
        intake.desk().listen(Some(intake.connection()))
    }

    /// Answers elicitations in the middle of calls with this [`elicitation_key`](crate::Call::elicitation_key) with `handler`,
    /// until the returned value is dropped: see [`Desk::route`].
    pub fn route_elicitations(
        &self,
        key: impl Into<Arc<str>>,
        handler: impl ElicitationHandler,
    ) -> ElicitationRoute {
        self.desk().route(key, handler)
    }

    /// Waits until the server reports that a URL elicitation is complete: see [`Desk::completed`]. Cancel safe.
    pub async fn elicitation_completed(&self, elicitation_id: &str, timeout: Option<Duration>) -> bool {
        let intake = self.inner.driver.intake();
        intake.desk().completed(intake.server(), elicitation_id, timeout).await
    }

    /// Replaces the declared roots, and notifies the server if they differ (legacy era; a modern server asks when it needs them).
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) if the builder declared no roots. [`Closed`](crate::ErrorKind::Closed) and
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) as for [`notify`](Self::notify).
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        self.check_notices()?;
        let roots = roots.into_iter().collect();
        self.said(|core| core.set_roots(roots))
    }

    /// Sends a notification that this library has no method for.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) if `params` is not a JSON object, or if the connection itself sends this
    /// notification; [`Closed`](crate::ErrorKind::Closed); [`LimitExceeded`](crate::ErrorKind::LimitExceeded) while
    /// [`Limits::max_waiting_notices`](crate::Limits::max_waiting_notices) messages (8,192) are queued for a server that does
    /// not read.
    pub fn notify(&self, method: &str, params: Option<RawJson>) -> Result<(), Error> {
        self.check_notices()?;
        self.said(|core| core.notify(method, params.as_ref()))
    }

    fn said(&self, say: impl FnOnce(&mut Connection) -> Result<(), Misuse>) -> Result<(), Error> {
        let driver = &self.inner.driver;
        driver.say(say).map_err(|misuse| match misuse {
            Misuse::Closed => driver.closed_error(false),
            misuse => driver.here(Error::misuse(misuse)),
        })
    }

    fn check_notices(&self) -> Result<(), Error> {
        if self.is_closed() || self.inner.driver.takes_notices() {
            return Ok(());
        }
        let driver = &self.inner.driver;
        let limit = driver.limits().max_waiting_notices;
        Err(driver.here(Error::limit_exceeded("max_waiting_notices", limit)))
    }

    /// Tells the client that its requests use another authorization from now on (another user, another token), so that no
    /// result cached for the old one is used again. See [`ClientBuilder::cache`].
    pub fn authorization_changed(&self) {
        self.inner.driver.with(|core, _| core.handle_authorization_changed());
    }

    /// Ends the connection gracefully: calls in flight fail with kind `Closed`, open requests of the server are withdrawn, an
    /// HTTP session is deleted, a child process gets the end of its input, then time, then signals. The time is bounded by the
    /// transport's configuration: for a program or a byte stream by
    /// [`CloseWaits::total`](crate::transport::stdio::CloseWaits::total), 6.75 s by default; for an HTTP session by
    /// `HttpTimeouts::close`, 5 s by default.
    ///
    /// Concurrent callers share one closing and get the same result, whichever of them is polled; a later call returns it
    /// again. Cancel safe: another call continues where a dropped one stopped.
    ///
    /// Handlers of open requests are dropped, except one that calls `close` from its own task: it runs on.
    pub async fn close(&self) -> Closed {
        self.closing().await
    }

    /// Boxed, so that it is compiled in this crate and not in each that closes a client.
    fn closing(&self) -> Pin<Box<dyn Future<Output = Closed> + Send + '_>> {
        Box::pin(self.close_once())
    }

    /// Nobody who closes depends on another one's future being polled.
    async fn close_once(&self) -> Closed {
        // That of the session, which is unknown once the connection is given up.
        let head = self.inner.head.get_or_init(|| self.inner.driver.head()).clone();
        self.inner.driver.give_up();
        let process = match self.inner.driver.link() {
            Link::Line(link) => Some(link.close().await),
            Link::Sse(link) => {
                link.stop();
                None
            }
            Link::Http(link) => {
                // The standing stream first: a server may wait for it before it lets the session go.
                self.inner.stop_reader();
                link.close(head).await;
                None
            }
        };
        self.inner.stop_reader();
        Closed { process }
    }

    /// Whether the connection has ended, by either side.
    pub fn is_closed(&self) -> bool {
        self.inner.driver.is_closed()
    }

    /// Why the connection ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.inner.driver.close_reason()
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.inner.driver
    }

    /// Whether the builder declared tasks.
    pub(crate) fn takes_tasks(&self) -> bool {
        self.inner.driver.with(|core, _| core.takes_tasks())
    }

    #[cfg(feature = "schema")]
    pub(crate) fn output_checks(&self) -> Option<&Arc<crate::schema::OutputChecks>> {
        self.inner.output_checks.as_ref()
    }

    /// Gives a call the hard end that the client has for those that say none.
    pub(crate) fn end_by_default(&self, options: &mut CallOptions) {
        options.max_total = options.max_total.or(self.inner.defaults.max_total);
    }

    pub(crate) fn request_options(&self) -> CallOptions {
        self.inner.defaults.options()
    }
}

impl Inner {
    fn stop_reader(&self) {
        if let Some(reader) = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reader.abort();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.driver.give_up();
        self.stop_reader();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
