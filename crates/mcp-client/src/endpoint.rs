//! Where a server is.

#[cfg(feature = "http")]
use mcp_transport::http::HttpServer;
use mcp_transport::stdio::{LineConnection, StdioServer};

use crate::identity::BYTE_STREAM;

/// What [`ClientBuilder::connect`](crate::ClientBuilder::connect) connects to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// A server over Streamable HTTP.
    #[cfg(feature = "http")]
    Http(HttpServer),
    /// An existing connection: any byte stream with one message per line.
    Line(LineConnection),
    /// A program that is started as a child process and connected through its standard input and output.
    Stdio(StdioServer),
}

impl Endpoint {
    /// The command line, or the URL without its query. Either may hold a secret.
    pub(crate) fn describe(&self) -> String {
        match self {
            #[cfg(feature = "http")]
            Self::Http(server) => server.describe(),
            Self::Line(_) => BYTE_STREAM.to_owned(),
            Self::Stdio(server) => server.describe(),
        }
    }
}

#[cfg(feature = "http")]
impl From<HttpServer> for Endpoint {
    fn from(server: HttpServer) -> Self {
        Self::Http(server)
    }
}

impl From<LineConnection> for Endpoint {
    fn from(connection: LineConnection) -> Self {
        Self::Line(connection)
    }
}

impl From<StdioServer> for Endpoint {
    fn from(server: StdioServer) -> Self {
        Self::Stdio(server)
    }
}
