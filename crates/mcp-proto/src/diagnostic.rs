//! Diagnostics: irregularities that end nothing.

use std::fmt;

use mcp_jsonrpc::Untrusted;

/// One irregularity, or the latest of many of one kind. `Display` is one line, safe to print: peer text in it is truncated and
/// escaped.
///
/// A peer can cause most kinds as often as it likes. So the first
/// [`Limits::max_single_diagnostics`](crate::Limits::max_single_diagnostics) of a kind are reported one by one, then one each
/// time their number has doubled, and the rest when the connection ends. Kinds that the application causes are always reported
/// one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The kind.
    pub kind: DiagnosticKind,
    /// A description for people: of the latest, if it stands for many.
    pub message: String,
    /// How many it stands for: those of its kind since the last report, itself included. Mostly 1.
    pub count: u64,
    /// The number of its kind on this connection so far.
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
    /// A call that failed on its way is retried.
    CallRetried,
    /// A change notification without a subscription for it.
    ChangeIgnored,
    /// A feature that the revision deprecates is in use; reported once per connection for each.
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
    /// The output of a tool could not be validated, because the tool was not listed; reported once per tool.
    OutputUnchecked,
    /// A message over the transport's size limit is skipped; reported as soon as it is known, even if the message never ends.
    OversizedMessage,
    /// Progress that does not increase, or for no call in flight.
    ProgressIgnored,
    /// A list repeated a cursor; it was cut there.
    RepeatedCursor,
    /// A server request with the id of an open one, or a copy of one that ended recently; dropped.
    RepeatedServerRequest,
    /// The server's sampling request was refused with an error.
    SamplingRequestInvalid,
    /// An application's answer that is not JSON; an error was sent instead.
    ServerRequestAnswerInvalid,
    /// The server has more open requests than the limit allows.
    ServerRequestLimit,
    /// A server request timed out and was answered automatically.
    ServerRequestTimeout,
    /// The server withdrew a request and gave a reason.
    ServerRequestWithdrawn,
    /// The server lost the session, and a new one could not be opened; the connection is closed.
    SessionNotRenewed,
    /// A setting of the application (log level, a subscription) was refused in a new session.
    SetupNotRestored,
    /// The GET stream of a legacy server over HTTP was lost and did not come back, or turned out to be none after subscriptions
    /// were granted: changes are not reported until there is a new session.
    StreamLost,
    /// A tool was left out of its list, because its header annotations are invalid.
    ToolDropped,
    /// A list exceeded the limit of pages or bytes; it was cut there.
    TooManyPages,
    /// A JSON-RPC batch in a revision without batches.
    UnexpectedBatch,
    /// An answer to an unknown request.
    UnknownResponse,
    /// A malformed list item was left out.
    UnreadableItem,
    /// A request of a server that must not send any (it is modern, or its era is not known yet); dropped without an answer.
    UnexpectedRequest,
    /// A request for a method that this client does not support; answered with "method not found".
    UnservedRequest,
}

impl DiagnosticKind {
    /// Whether each one takes something that the application did, so that a peer cannot make a flood of them.
    pub(crate) const fn is_told_singly(self) -> bool {
        match self {
            Self::CallRetried
            | Self::DeprecatedFeature
            | Self::OutputUnchecked
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
            Self::OutputUnchecked => "output_unchecked",
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
