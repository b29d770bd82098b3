//! What the machine tells its host, and what it wants sent.

use std::{fmt, sync::Arc, time::Instant};

use crate::{AnswerError, ElicitAction, ElicitRequest, ElicitResult, RequestError, violation::summarize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(super) u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

id! {
    /// One connection to a server. Never used again, so that nothing late can reach a newer connection.
    ConnectionId;
    /// The id of a question to the user.
    QuestionId;
    /// One call that waits for URL elicitations before its retry.
    FlowId;
    /// One wait for a completion notice.
    WaiterId;
}

/// Where a question came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin<K> {
    /// A request of the server with this key: it gets exactly one reply, unless it is withdrawn or the
    /// connection is lost.
    Request(K),
    /// An entry of a -32042 error: nothing is sent to the server.
    Flow {
        /// The waiting call.
        flow: FlowId,
        /// The entry's place in the error's list, from 0.
        index: usize,
    },
}

/// A question that should be shown now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asked<S, K> {
    /// Names the question in commands.
    pub question: QuestionId,
    /// The server that asks. Show it to the user.
    pub server: S,
    /// The connection on which it asks.
    pub connection: ConnectionId,
    /// Where the question came from.
    pub origin: Origin<K>,
    /// What is asked.
    pub request: Arc<ElicitRequest>,
    /// When the question ends as `cancel`; `None` is never.
    pub deadline: Option<Instant>,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The user answered.
    Answered(ElicitAction),
    /// The connection was lost; nothing can be sent.
    ConnectionLost,
    /// The host's handler failed; the server got `cancel`.
    Failed,
    /// The call that the question belonged to ended or timed out.
    FlowEnded,
    /// Nobody could answer; the server got `decline`.
    NoHost,
    /// Nobody answered in time; the server got `cancel`.
    TimedOut,
    /// The server withdrew the question; nothing is sent.
    Withdrawn,
}

/// Why a question was declined without being shown. A deferred question ([`QuestionState::Deferred`](crate::QuestionState::Deferred))
/// is another thing: it stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeferReason {
    /// The limit of open questions is reached.
    CapacityExceeded,
    /// The server's limit of open questions is reached.
    ServerQuotaExceeded,
    /// The server's limit of remembered URL elicitations is reached.
    HistoryFull,
    /// There is no handler and no listener.
    NoInteractiveHost,
}

impl DeferReason {
    /// The reason in snake case, for logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CapacityExceeded => "capacity_exceeded",
            Self::ServerQuotaExceeded => "server_quota_exceeded",
            Self::HistoryFull => "history_full",
            Self::NoInteractiveHost => "no_interactive_host",
        }
    }
}

/// Why a request or a -32042 error of a server was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The limits of the host; a request was declined.
    Deferred(DeferReason),
    /// A question with the same request key is open on the connection. Nothing is sent: any reply would answer
    /// the open question.
    DuplicateRequest,
    /// The `elicitationId` ended before; no later completion or consent can count for it.
    IdFinished,
    /// A question with the same `elicitationId` is open.
    IdInUse,
    /// The `elicitationId` belongs to another URL.
    IdWithOtherUrl,
    /// The request is invalid.
    Invalid(RequestError),
    /// The limit of calls that wait for URL elicitations is reached.
    TooManyFlows,
    /// The connection is not open.
    UnknownConnection,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deferred(reason) => return write!(f, "not shown: {}", reason.as_str()),
            Self::DuplicateRequest => "a question with this request id is open",
            Self::IdFinished => "the elicitation id was used before",
            Self::IdInUse => "a question with this elicitation id is open",
            Self::IdWithOtherUrl => "the elicitation id was used with another url",
            // The cause has the details.
            Self::Invalid(_) => "the request is not right",
            Self::TooManyFlows => "too many calls wait for url elicitations",
            Self::UnknownConnection => "the connection is not open",
        })
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

/// The outcome of a call's wait for URL elicitations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowOutcome {
    /// Everything was consented to and completed: send the call once more, with a new request id.
    Retry,
    /// The caller gave up.
    Abandoned,
    /// The user cancelled a question, or its handler failed.
    Cancelled,
    /// The connection was lost.
    ConnectionLost,
    /// The user declined, or nobody could answer.
    Declined,
    /// A question could not be shown.
    Deferred(DeferReason),
    /// Nobody answered, or no completion came, in time.
    TimedOut,
}

/// What the state machine reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<S, K> {
    /// Show this question. Every `Asked` is followed by exactly one `Ended`.
    Asked(Asked<S, K>),
    /// A question was declined without being shown.
    Deferred {
        /// Who asked.
        server: S,
        /// On which connection.
        connection: ConnectionId,
        /// Why.
        reason: DeferReason,
    },
    /// A question ended; take it off the screen.
    Ended {
        /// The question.
        question: QuestionId,
        /// Who asked.
        server: S,
        /// How it ended.
        end: End,
    },
    /// A waiting call continues or fails.
    FlowEnded {
        /// The call.
        flow: FlowId,
        /// The outcome. For everything but `Retry` the call fails with its original error.
        outcome: FlowOutcome,
    },
    /// The user has consented to everything that a waiting call needs. It now waits until the completions arrive, the user
    /// confirms ([`Elicitations::continue_flow`](crate::Elicitations::continue_flow)), or its time has passed.
    FlowWaiting {
        /// The call.
        flow: FlowId,
        /// When it ends by itself; `None` is never.
        deadline: Option<Instant>,
    },
    /// A server's request was refused.
    Refused {
        /// The server.
        server: S,
        /// On which connection.
        connection: ConnectionId,
        /// Why.
        refusal: Refusal,
    },
    /// The server reports that an elicitation to which the user consented is complete. Always after the `Ended` of its
    /// question, and once per id.
    UrlCompleted {
        /// The server.
        server: S,
        /// The `elicitationId`.
        elicitation_id: String,
    },
    /// A wait ended.
    WaitEnded {
        /// The waiter.
        waiter: WaiterId,
        /// Whether the elicitation is complete.
        completed: bool,
    },
}

/// One reply for the server: an answer to its `elicitation/create`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply<K> {
    /// The connection it goes to; if that is gone, the reply is void.
    pub connection: ConnectionId,
    /// The key of the server's request.
    pub key: K,
    /// The content.
    pub body: ReplyBody,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyBody {
    /// A result, ready to be sent.
    Result(ElicitResult),
    /// A JSON-RPC error. The message refers only to the server's own request.
    Error {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
    },
}

/// A command that cannot be carried out. Nothing has changed. `mcp-client` re-exports it as `DeskMisuse`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// The server still has open connections.
    ConnectionsOpen,
    /// The call still waits for consent, so there is nothing to continue.
    FlowNotWaiting,
    /// The answer breaks the form's rules; the question stays open. `Display` says the first of them, the error in here has all.
    InvalidAnswer(AnswerError),
    /// The limit of waiters is reached.
    TooManyWaiters {
        /// The limit.
        limit: usize,
    },
    /// The call waits no longer, or never did.
    UnknownFlow,
    /// The question has ended, or never was.
    UnknownQuestion,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionsOpen => f.write_str("the server has open connections"),
            Self::FlowNotWaiting => f.write_str("the call still waits for consent"),
            Self::InvalidAnswer(error) => {
                f.write_str("the answer breaks the rules of the form: ")?;
                summarize(error.violations(), f)
            }
            Self::TooManyWaiters { limit } => write!(f, "there are {limit} waiters, as many as may be"),
            Self::UnknownFlow => f.write_str("no such call waits"),
            Self::UnknownQuestion => f.write_str("no such question is open"),
        }
    }
}

// `Display` says what an `AnswerError` would, so that is no source.
impl std::error::Error for Misuse {}

/// The result of waiting for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Known at once: complete, or (unknown, not yet consented to, declined, cancelled) not.
    Done(bool),
    /// An [`Event::WaitEnded`] will follow.
    Waiting(WaiterId),
}
