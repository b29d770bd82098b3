//! The life of a connection.
//!
//! ```text
//!   Idle ──start()──> Initializing ──result, revision ours──> Confirming ──`initialized` delivered──> Ready
//!                         │   ▲ │                                  │                                    │
//!                         │   └─┘ refused with revisions we have   │                                    │
//!                         │      in common: once more              │                                    │
//!                         └──error, foreign revision, timeout──────┴───────closed by either side────────┴──> Closed
//! ```
//!
//! While `Initializing` and `Confirming` the server may already ping and log; nothing but the handshake goes out
//! from our side, apart from answers.

use mcp_jsonrpc::RawJson;
use mcp_model::{Implementation, ProtocolVersion, ServerCapabilities};

use crate::renewal::Renewal;

#[derive(Debug)]
pub(crate) enum Phase {
    Idle,
    Initializing {
        renegotiated: bool,
    },
    Confirming {
        server: Box<ServerFacts>,
    },
    Ready {
        server: Box<ServerFacts>,
    },
    /// The server lost the session, and a call makes a new one; see `renewal`.
    Renewing(Box<Renewal>),
    /// The server lost the session, and the next call makes a new one.
    Lost {
        server: Box<ServerFacts>,
    },
    Closed,
}

/// What the server said about itself in the handshake.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The negotiated protocol revision.
    pub protocol_version: ProtocolVersion,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// Name and version, as the server tells them: never a base for trust. `None` if it sent none that can be read.
    pub server_info: Option<Implementation>,
    /// Hints for the model, untrusted text.
    pub instructions: Option<String>,
    /// The whole result as it came.
    pub raw: RawJson,
}

impl Phase {
    /// For logs.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Initializing { .. } => "initializing",
            Self::Confirming { .. } => "confirming",
            Self::Ready { .. } => "ready",
            Self::Renewing(_) => "renewing",
            Self::Lost { .. } => "lost",
            Self::Closed => "closed",
        }
    }

    pub(crate) fn server(&self) -> Option<&ServerFacts> {
        match self {
            Self::Confirming { server } | Self::Ready { server } | Self::Lost { server } => Some(server),
            Self::Renewing(renewal) => Some(&renewal.server),
            Self::Idle | Self::Initializing { .. } | Self::Closed => None,
        }
    }
}
