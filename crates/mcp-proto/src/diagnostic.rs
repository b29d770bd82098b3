//! Oddities of the peer that end nothing: counted, described, handed to whoever listens.

use std::fmt;

use mcp_jsonrpc::Untrusted;

/// One oddity, or the latest of many of one kind. `Display` is one line, safe to print: peer text in it is cut and its control
/// characters are escaped.
///
/// A peer can cause most kinds as often as it can write. So the first
/// [`Limits::max_single_diagnostics`](crate::Limits::max_single_diagnostics) of a kind are told one by one, after them one each time that
/// their number has doubled, and what is left when the connection ends. Kinds that take something that the application did are always
/// told one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind of oddity.
    pub kind: DiagnosticKind,
    /// What exactly, for people: of the latest, where it stands for many.
    pub message: String,
    /// How many it stands for: those of its kind since the one that was told before it, itself included. Mostly 1.
    pub count: u64,
    /// How many of its kind there have been on this connection so far.
    pub total: u64,
}

impl Diagnostic {
    /// A diagnostic of the given kind. `message` must be safe to show: escape what a peer wrote.
    pub fn new(kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), count: 1, total: 1 }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)?;
        if self.count > 1 {
            write!(f, " ({} since the last report, {} in all)", self.count, self.total)?;
        }
        Ok(())
    }
}

/// The kinds of [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// A call that failed on its way is tried again.
    CallRetried,
    /// A notice of a change that no subscription asked for.
    ChangeIgnored,
    /// A feature is in use that the revision means to drop; told once a connection for each.
    DeprecatedFeature,
    /// The application's answer to an elicitation broke the requested schema; `cancel` was sent instead.
    ElicitationAnswerInvalid,
    /// The server's elicitation was refused with an error.
    ElicitationRequestInvalid,
    /// A message that is no JSON-RPC message, or text that is no JSON.
    InvalidMessage,
    /// An answer to a call that had ended before.
    LateResponse,
    /// A known notification whose params do not have the shape the protocol gives it.
    MalformedNotification,
    /// A message over the transport's size limit is skipped; told as soon as it is known, for one that never ends too.
    OversizedMessage,
    /// Progress that does not increase, or for no call in flight.
    ProgressIgnored,
    /// A list gave a cursor that had been followed before; it was cut there.
    RepeatedCursor,
    /// A question with the id of one that is still open, or a copy of one that ended a moment ago; dropped.
    RepeatedServerRequest,
    /// The server's sampling request was refused with an error.
    SamplingRequestInvalid,
    /// An application's answer that was no JSON; an error was sent instead.
    ServerRequestAnswerInvalid,
    /// The server has asked more at once than the limit allows.
    ServerRequestLimit,
    /// A question of the server timed out and was answered for the user.
    ServerRequestTimeout,
    /// The server withdrew a question and gave a reason.
    ServerRequestWithdrawn,
    /// The server lost the session, and a new one could not be opened; the connection is closed.
    SessionNotRenewed,
    /// What the application had set up (log level, a subscription) was refused in a new session.
    SetupNotRestored,
    /// The stream on which a legacy server over HTTP says what belongs to no call was lost and did not come back: until there is a
    /// new session, changes are not heard of.
    StreamLost,
    /// A tool was left out of its list, because it says wrongly which arguments go into headers.
    ToolDropped,
    /// A list went on for more pages than allowed; it was cut there.
    TooManyPages,
    /// A JSON array where the negotiated revision has no batches.
    UnexpectedBatch,
    /// An answer to something that was never asked.
    UnknownResponse,
    /// An item of a list that does not have the shape of the protocol was left out.
    UnreadableItem,
    /// A request of a server that must not send any, because it is modern or not known yet; dropped without an answer.
    UnexpectedRequest,
    /// A request for a method that this client does not serve; answered with "method not found".
    UnservedRequest,
}

impl DiagnosticKind {
    /// Whether each one takes something that the application did, so that a peer cannot make a flood of them.
    pub(crate) const fn is_told_singly(self) -> bool {
        match self {
            Self::CallRetried
            | Self::DeprecatedFeature
            | Self::RepeatedCursor
            | Self::SessionNotRenewed
            | Self::SetupNotRestored
            | Self::TooManyPages => true,
            Self::ChangeIgnored
            | Self::ElicitationAnswerInvalid
            | Self::ElicitationRequestInvalid
            | Self::InvalidMessage
            | Self::LateResponse
            | Self::MalformedNotification
            | Self::OversizedMessage
            | Self::ProgressIgnored
            | Self::RepeatedServerRequest
            | Self::SamplingRequestInvalid
            | Self::ServerRequestAnswerInvalid
            | Self::ServerRequestLimit
            | Self::ServerRequestTimeout
            | Self::ServerRequestWithdrawn
            | Self::StreamLost
            | Self::ToolDropped
            | Self::UnexpectedBatch
            | Self::UnexpectedRequest
            | Self::UnknownResponse
            | Self::UnreadableItem
            | Self::UnservedRequest => false,
        }
    }

    /// The name in `snake_case`, for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallRetried => "call_retried",
            Self::ChangeIgnored => "change_ignored",
            Self::DeprecatedFeature => "deprecated_feature",
            Self::ElicitationAnswerInvalid => "elicitation_answer_invalid",
            Self::ElicitationRequestInvalid => "elicitation_request_invalid",
            Self::InvalidMessage => "invalid_message",
            Self::LateResponse => "late_response",
            Self::MalformedNotification => "malformed_notification",
            Self::OversizedMessage => "oversized_message",
            Self::ProgressIgnored => "progress_ignored",
            Self::RepeatedCursor => "repeated_cursor",
            Self::RepeatedServerRequest => "repeated_server_request",
            Self::SamplingRequestInvalid => "sampling_request_invalid",
            Self::ServerRequestAnswerInvalid => "server_request_answer_invalid",
            Self::ServerRequestLimit => "server_request_limit",
            Self::ServerRequestTimeout => "server_request_timeout",
            Self::ServerRequestWithdrawn => "server_request_withdrawn",
            Self::SessionNotRenewed => "session_not_renewed",
            Self::SetupNotRestored => "setup_not_restored",
            Self::StreamLost => "stream_lost",
            Self::ToolDropped => "tool_dropped",
            Self::TooManyPages => "too_many_pages",
            Self::UnexpectedBatch => "unexpected_batch",
            Self::UnknownResponse => "unknown_response",
            Self::UnreadableItem => "unreadable_item",
            Self::UnexpectedRequest => "unexpected_request",
            Self::UnservedRequest => "unserved_request",
        }
    }
}

/// Text of the peer made safe to show: at most `max_bytes` of it.
pub(crate) fn excerpt(text: &str, max_bytes: usize) -> String {
    Untrusted::new(text, max_bytes).to_string()
}
