//! The life of a connection.
//!
//! ```text
//!           ┌──asked again under a revision in common: once
//!           ▼ │
//!   Idle ──> Probing ──DiscoverResult, revision ours──────────────────────────────────> Ready (modern)
//!    │        │   ▲
//!    │ signs  │   │ refused as a modern server does: once
//!    │ of a   ▼   │
//!    │ legacy server
//!    └──────> Initializing ──result, revision ours──> Confirming ──`initialized` delivered──> Ready (legacy)
//!                │   ▲                                                                         │ ▲
//!                └───┘ refused with revisions we                  over exchanges: session lost │ │ a new one
//!                      have in common: once                                                    ▼ │
//!                                                                                          Renewing <──> Lost
//!
//!   each of them ──closed by either side──> Closed
//!   Probing, Initializing, Renewing ──error, foreign revision, out of time──> Closed
//! ```
//!
//! How a session is renewed, see `renewal`.
//!
//! While `Probing` nothing is answered: a modern server must never get a response. While `Initializing` and `Confirming`
//! the server may already ping and log; nothing but the handshake goes out from our side, apart from answers.

use std::time::Instant;

use mcp_jsonrpc::{ErrorObject, RawJson};
use mcp_model::{Implementation, ProtocolVersion, ServerCapabilities};

use crate::call::CallId;
use crate::era::{Era, Verdict, VerdictReason};
use crate::renewal::Renewal;

#[derive(Debug)]
pub(crate) enum Phase {
    Idle,
    /// `server/discover` is under way; see `probe`.
    Probing(Box<Handshake>),
    Initializing(Box<Handshake>),
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

/// What a handshake has been through.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) began: Instant,
    /// When it fails at the latest, whatever it tries; `None` = the clock cannot express it.
    pub(crate) ends: Option<Instant>,
    /// The revision that the request under way is made under, or offers.
    pub(crate) version: ProtocolVersion,
    pub(crate) reason: VerdictReason,
    /// `server/discover` was sent again under another revision.
    pub(crate) reprobed: bool,
    /// `initialize` was sent again with another revision.
    pub(crate) renegotiated: bool,
    /// The HTTP status of the answer under way.
    pub(crate) status: Option<u16>,
    /// The refusal of the probe, where it says more than the one of `initialize` will.
    pub(crate) refusal: Option<ErrorObject>,
}

/// What the server declared in the handshake.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The negotiated protocol revision.
    pub protocol_version: ProtocolVersion,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// Name and version, as the server reports them: never a basis for trust. `None` if missing or malformed.
    pub server_info: Option<Implementation>,
    /// Hints for the model, untrusted text.
    pub instructions: Option<String>,
    /// Its era and how that was detected. May be stored for the next connection to the same server.
    pub verdict: Verdict,
    /// The whole result as it came: of `server/discover`, or of `initialize`.
    pub raw: RawJson,
}

impl ServerFacts {
    /// The era of the server.
    pub const fn era(&self) -> Era {
        self.verdict.era()
    }
}

impl Phase {
    /// For logs.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Probing(_) => "probing",
            Self::Initializing(_) => "initializing",
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
            Self::Idle | Self::Probing(_) | Self::Initializing(_) | Self::Closed => None,
        }
    }

    /// Whether a session is being renewed for which this call waits.
    pub(crate) fn holds(&self, call: CallId) -> bool {
        matches!(self, Self::Renewing(renewal) if renewal.holds(call))
    }

    /// The modern revision that requests are made under now; `None` in the legacy era and before anything is known.
    pub(crate) fn modern(&self) -> Option<ProtocolVersion> {
        match self {
            Self::Probing(handshake) => Some(handshake.version),
            Self::Ready { server } => Some(server.protocol_version).filter(|version| version.is_modern()),
            _ => None,
        }
    }
}
