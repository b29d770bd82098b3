//! What the driver must send, and what it needs to know to send it.

use std::fmt;

use bytes::Bytes;
use mcp_jsonrpc::RequestId;
use mcp_model::ProtocolVersion;

use crate::call::CallId;

/// One message for the peer. `Debug` shows the length of the message only: it may hold secrets.
#[derive(Clone)]
#[non_exhaustive]
pub struct Transmit {
    /// The JSON text, one line without a line end.
    pub message: Bytes,
    /// What it is.
    pub kind: TransmitKind,
    /// The call whose driver sends it and waits for what comes back; `None`: nobody waits.
    pub owner: Option<CallId>,
    /// The negotiated revision, for transports that name it beside the message (the `MCP-Protocol-Version` header).
    /// `None` before a revision was negotiated.
    pub protocol_version: Option<ProtocolVersion>,
}

impl fmt::Debug for Transmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transmit")
            .field("bytes", &self.message.len())
            .field("kind", &self.kind)
            .field("owner", &self.owner)
            .field("protocol_version", &self.protocol_version)
            .finish()
    }
}

/// The three kinds of message a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransmitKind {
    /// A request; its answer is expected.
    Request {
        /// Its JSON-RPC id.
        id: RequestId,
        /// Whether a successful answer opens a session of the transport (`initialize`).
        establishes_session: bool,
        /// Whether a lost response stream may be resumed instead of failing the call (legacy revisions only).
        resumable: bool,
    },
    /// A notification.
    Notification,
    /// The answer to a request of the server.
    Response,
}
