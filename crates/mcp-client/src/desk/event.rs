//! What a desk reports about the questions of one connection.

use mcp_elicitation::{DeferReason, End, FlowId, FlowOutcome, QuestionId, Refusal};

/// Something that happened to the elicitations of a connection, reported as
/// [`ClientEvent::Elicitation`](crate::ClientEvent::Elicitation), in the order in which it happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitationEvent {
    /// The server asks a question. One [`Ended`](Self::Ended) follows.
    Asked {
        /// The question.
        question: QuestionId,
    },
    /// A call that waited for URL elicitations continues, or fails with the server's error.
    CallContinues {
        /// The wait.
        wait: FlowId,
        /// Whether its request is repeated, or why not.
        outcome: FlowOutcome,
    },
    /// The user has consented to all URLs that a call needs. The call waits for the server's completion notices, or for
    /// [`Desk::continue_call`](crate::Desk::continue_call).
    CallWaits {
        /// The wait.
        wait: FlowId,
    },
    /// A handler deferred a question ([`ElicitReply::Defer`](crate::ElicitReply::Defer)); it stays open for an answer from elsewhere
    /// ([`QuestionState::Deferred`](crate::QuestionState::Deferred)). Not reported for
    /// [`PendingElicitation::defer`](crate::PendingElicitation::defer), whose caller knows.
    Deferred {
        /// The question.
        question: QuestionId,
    },
    /// A question ended.
    Ended {
        /// The question.
        question: QuestionId,
        /// How; [`End::TimedOut`] if nobody answered in time.
        end: End,
    },
    /// The inbox failed to store a question, which ended as `cancel`.
    NotPublished {
        /// The question.
        question: QuestionId,
    },
    /// A question was declined without being shown: a limit was hit, or nobody can answer. Not a [`Deferred`](Self::Deferred) one,
    /// which stays open.
    NotShown {
        /// Why.
        reason: DeferReason,
    },
    /// A request of the server was refused.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// The server reports that a URL elicitation to which the user consented is complete. Once per id, after the end of its
    /// question.
    UrlCompleted {
        /// The server's `elicitationId`.
        elicitation_id: String,
    },
}

impl ElicitationEvent {
    /// Text of the peer in it, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::UrlCompleted { elicitation_id } => elicitation_id.len(),
            _ => 0,
        }
    }
}
