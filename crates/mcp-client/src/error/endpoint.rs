//! Whether what answers at a URL seems to be something else than an MCP endpoint.

use mcp_proto::DiagnosticKind;
use mcp_transport::ErrorKind as TransportKind;

use super::{Cause, Error};

impl Error {
    /// It is how connecting to an HTTP server failed: says so if a page or another service seems to be there.
    pub(crate) fn with_endpoint_hint(mut self) -> Self {
        self.inner.is_no_endpoint = self.is_of_no_endpoint();
        self
    }

    /// Not where the server answered in JSON-RPC, nor for a status that an endpoint has as well: about credentials, because it is
    /// busy, or because it fails. A 400 is most often that of an endpoint which dislikes a header.
    fn is_of_no_endpoint(&self) -> bool {
        match &self.inner.cause {
            Cause::Transport(error) if error.body_error().is_some() => false,
            Cause::Transport(error) => match (error.kind(), error.status()) {
                // A redirect that is not followed, a page, an empty success, JSON that is no answer.
                (TransportKind::PeerMisbehaved, Some(status)) => status < 400 && !self.spoke_json_rpc(),
                (TransportKind::Status, Some(status)) => matches!(status, 404 | 405 | 410),
                _ => false,
            },
            _ => false,
        }
    }

    /// Messages came, if odd ones: then it is no page that answered.
    fn spoke_json_rpc(&self) -> bool {
        self.inner.diagnostics.iter().any(|(kind, _)| *kind != DiagnosticKind::InvalidMessage)
    }
}
