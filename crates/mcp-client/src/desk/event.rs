//! What a desk tells of the questions of one connection.

use mcp_elicitation::{DeferReason, End, FlowId, FlowOutcome, QuestionId, Refusal};

/// One thing that happened to the questions of a connection, told as
/// [`ClientEvent::Elicitation`](crate::ClientEvent::Elicitation). They are told in the order in which they happened, on
/// whatever thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitationEvent {
    /// The server asks. One [`Ended`](Self::Ended) follows.
    Asked {
        /// The question.
        question: QuestionId,
    },
    /// A call goes on that waited for URL elicitations, or ends with the error that the server refused it with.
    CallContinues {
        /// The wait.
        wait: FlowId,
        /// Whether its request is made again, and why not.
        outcome: FlowOutcome,
    },
    /// Consent to all URLs that a call needs is given. It waits for the server's notices that they are done, or for
    /// [`Desk::continue_call`](crate::Desk::continue_call).
    CallWaits {
        /// The wait.
        wait: FlowId,
    },
    /// A question was declined and nobody saw it: a limit, or nobody is there.
    Deferred {
        /// Why.
        reason: DeferReason,
    },
    /// A question ended.
    Ended {
        /// The question.
        question: QuestionId,
        /// How; [`End::TimedOut`] where nobody answered in time.
        end: End,
    },
    /// The inbox did not take a question, which ended as `cancel`.
    NotPublished {
        /// The question.
        question: QuestionId,
    },
    /// A handler put a question off; it stays open for an answer from elsewhere.
    PutOff {
        /// The question.
        question: QuestionId,
    },
    /// What the server asked was not taken up.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// What a person consented to is complete, as the server says. Once for an id, after the end of its question.
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
