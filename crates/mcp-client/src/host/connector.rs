//! Where a server is and how its client is configured, for each connection to it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg(feature = "http")]
use mcp_transport::http::HttpServer;
use mcp_transport::stdio::StdioServer;

use super::policy::ServerPolicy;
use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::error::Error;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Dialling = Pin<Box<dyn Future<Output = Result<Endpoint, BoxError>> + Send>>;

/// How a [`Host`](crate::host::Host) connects to a server, each time that it does.
///
/// A [`StdioServer`] or an [`HttpServer`] converts into one. [`new`](Self::new) takes a function, for what differs from one
/// connection to the next: fresh credentials, another address.
#[derive(Clone)]
pub struct Connector {
    dial: Arc<dyn Fn() -> Dialling + Send + Sync>,
    configure: Vec<Arc<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>>,
    own_policy: ServerPolicy,
}

impl Connector {
    /// Calls `dial` for the endpoint of each connection. Its error becomes the source of an error of kind
    /// [`Transport`](crate::ErrorKind::Transport); an [`Error`](crate::Error) is passed on unchanged.
    pub fn new<F, R, E>(dial: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<E, BoxError>> + Send + 'static,
        E: Into<Endpoint>,
    {
        let dial = move || -> Dialling {
            let dialling = dial();
            Box::pin(async move { dialling.await.map(Into::into) })
        };
        Self { dial: Arc::new(dial), configure: Vec::new(), own_policy: ServerPolicy::default() }
    }

    /// Configures the client of this server beyond the host's template: a protocol era, other timeouts, its own handler. Roots,
    /// a desk and a [name](ClientBuilder::server_name) set here are replaced by the host's.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure.push(Arc::new(configure));
        self
    }

    /// What holds for this server in another way than for the others of the host, in place of what was said here before. It holds from
    /// when the host connects with this connector.
    #[must_use]
    pub fn policy(mut self, policy: ServerPolicy) -> Self {
        self.own_policy = policy;
        self
    }

    pub(super) fn own_policy(&self) -> &ServerPolicy {
        &self.own_policy
    }

    pub(super) fn configured(&self, builder: ClientBuilder) -> ClientBuilder {
        self.configure.iter().fold(builder, |builder, configure| configure(builder))
    }

    pub(super) async fn connect(&self, builder: ClientBuilder) -> Result<Client, Error> {
        let endpoint = (self.dial)().await.map_err(Error::no_endpoint)?;
        builder.connect(endpoint).await
    }
}

impl From<StdioServer> for Connector {
    fn from(server: StdioServer) -> Self {
        Self::new(move || std::future::ready(Ok(server.clone())))
    }
}

#[cfg(feature = "http")]
impl From<HttpServer> for Connector {
    fn from(server: HttpServer) -> Self {
        Self::new(move || std::future::ready(Ok(server.clone())))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("configured", &self.configure.len())
            .field("policy", &self.own_policy)
            .finish_non_exhaustive()
    }
}
