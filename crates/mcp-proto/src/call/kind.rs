//! What a request of ours is for.

use super::CallId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `initialize`: never cancelled on the wire; its answer opens the connection.
    Initialize,
    /// `server/discover` in place of it: never cancelled either, because a legacy server must hear of nothing but
    /// `initialize`.
    Probe,
    /// A request of the application.
    Ordinary,
    /// A subscription: it ends when somebody ends it.
    Listen,
    /// What a legacy server is asked for one resource of this subscription. Internal.
    Subscribe(CallId),
    /// The list of tools, asked for in the middle of a call whose headers the server refused.
    Relist,
    /// `initialize` for a session in place of one that the server lost. Internal: nobody is told how it ended.
    Renew,
    /// Sets up again in a new session what the application had set up in the old one. Internal too.
    Restore,
    /// Tells the server that something is not wanted any more: a resource, a task. Internal, and whatever comes of it is no matter.
    Courtesy,
}

impl CallKind {
    /// Whether its answer opens a connection. Never cancelled on the wire.
    pub(crate) const fn is_handshake(self) -> bool {
        matches!(self, Self::Initialize | Self::Probe | Self::Renew)
    }

    /// Whether somebody is told how it ended.
    pub(crate) const fn is_told(self) -> bool {
        matches!(self, Self::Initialize | Self::Listen | Self::Ordinary | Self::Probe | Self::Relist)
    }

    /// Whether its answer opens a session of the transport.
    pub(crate) const fn establishes_session(self) -> bool {
        matches!(self, Self::Initialize | Self::Renew)
    }
}
