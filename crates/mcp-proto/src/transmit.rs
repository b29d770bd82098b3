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
    /// The call whose driver sends it and waits for what comes back; `None`: nobody waits. A call that nobody was given is one of the
    /// connection's own (for a subscription, for a new session): whoever drives that must not depend on a caller.
    pub owner: Option<CallId>,
    /// What transports with a head of their own say beside the message.
    pub head: Head,
}

/// What a transport repeats of a message where intermediaries can read it (the headers of Streamable HTTP). `Debug`
/// leaves names and values out: they are the user's own.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The negotiated revision, or the one that the message is made under. `None` before there is one.
    pub protocol_version: Option<ProtocolVersion>,
    /// The routing of a modern message on exchanges; `None` in the legacy era and on a channel.
    pub routing: Option<Box<Routing>>,
}

/// What a modern message repeats of itself.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routing {
    /// The method.
    pub method: String,
    /// The tool, prompt, resource or task that the params name, as plain text.
    pub name: Option<String>,
    /// Header suffix and plain text of each tool argument that the server wants repeated.
    pub params: Vec<(String, String)>,
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("protocol_version", &self.protocol_version)
            .field("routing", &self.routing)
            .finish()
    }
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routing")
            .field("method", &self.method)
            .field("has_name", &self.name.is_some())
            .field("params", &self.params.len())
            .finish()
    }
}

impl fmt::Debug for Transmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transmit")
            .field("bytes", &self.message.len())
            .field("kind", &self.kind)
            .field("owner", &self.owner)
            .field("head", &self.head)
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
