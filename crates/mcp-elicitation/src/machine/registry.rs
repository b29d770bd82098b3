//! What is remembered of one server's URL elicitations.
//!
//! ```text
//!              accept                        completion notice
//!  Pending ───────────────────> Accepted ───────────────────────> Finished
//!     │  completion notice: remembered;   └─ "continue" of the user ─┘  ^
//!     │  accept then leads straight on ──────────────────────────────────┤ completed
//!     └─ decline, cancel, timeout, loss: a remembered notice is dropped ─┘ not completed
//! ```
//!
//! Nothing leads out of `Finished`: an id that ended can neither be asked again nor authorise a retry.

use std::collections::HashMap;

use super::event::{ConnectionId, DeferReason, End, QuestionId, Refusal};
use crate::ElicitAction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlState {
    Pending {
        completed: bool,
    },
    Accepted,
    /// With how its question ended, `None` once completed.
    Finished(Option<End>),
}

struct Entry {
    /// The normalised URL; empty once finished, when nothing is compared with it any more.
    url: String,
    state: UrlState,
    connection: ConnectionId,
    question: Option<QuestionId>,
}

#[derive(Default)]
pub(super) struct Registry {
    entries: HashMap<String, Entry>,
}

/// What the end of a question did to its elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// A remembered completion counts now.
    Completed,
    /// It can never complete any more.
    Over,
    /// It is accepted, or had ended before.
    Unchanged,
}

/// What a completion notice did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// The consented elicitation is complete now.
    Completed,
    /// Unknown, or finished before.
    Ignored,
    /// The question is still open; the notice counts once it is accepted.
    Remembered,
}

impl Registry {
    /// Whether an id may be asked with a URL, `reserved` new ids being on their way.
    pub(super) fn admit(&self, id: &str, url: &str, limit: usize, reserved: usize) -> Result<bool, Refusal> {
        match self.entries.get(id) {
            None if self.entries.len() + reserved >= limit => {
                Err(Refusal::Deferred(DeferReason::HistoryFull))
            }
            None => Ok(true),
            Some(Entry { state: UrlState::Finished(_), .. }) => Err(Refusal::IdFinished),
            Some(entry) if entry.url != url => Err(Refusal::IdWithOtherUrl),
            Some(_) => Ok(false),
        }
    }

    /// Remembers an admitted id. One that is known keeps its state.
    pub(super) fn remember(&mut self, id: &str, url: &str, connection: ConnectionId) {
        self.entries.entry(id.to_owned()).or_insert_with(|| Entry {
            url: url.to_owned(),
            state: UrlState::Pending { completed: false },
            connection,
            question: None,
        });
    }

    pub(super) fn state(&self, id: &str) -> Option<UrlState> {
        self.entries.get(id).map(|entry| entry.state)
    }

    pub(super) fn question(&self, id: &str) -> Option<QuestionId> {
        self.entries.get(id).and_then(|entry| entry.question)
    }

    pub(super) fn set_question(&mut self, id: &str, question: QuestionId, connection: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.question = Some(question);
            entry.connection = connection;
        }
    }

    /// Takes the question off an entry without an answer, for another call to ask it again.
    pub(super) fn release(&mut self, id: &str) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.question = None;
        }
    }

    /// Forgets an id that nobody was ever asked about.
    pub(super) fn forget_unasked(&mut self, id: &str) {
        let is_unasked =
            |entry: &Entry| matches!(entry.state, UrlState::Pending { .. }) && entry.question.is_none();
        if self.entries.get(id).is_some_and(is_unasked) {
            self.entries.remove(id);
        }
    }

    /// Takes the end of an entry's question, and says what became of the elicitation by it.
    pub(super) fn settle(&mut self, id: &str, end: End) -> Settled {
        let Some(entry) = self.entries.get_mut(id) else {
            return Settled::Unchanged;
        };
        entry.question = None;
        let is_accepted = end == End::Answered(ElicitAction::Accept);
        match entry.state {
            // Completed while it was asked once more.
            UrlState::Finished(_) => Settled::Unchanged,
            UrlState::Pending { completed: true } if is_accepted => {
                entry.finish(None);
                Settled::Completed
            }
            UrlState::Pending { .. } | UrlState::Accepted if is_accepted => {
                entry.state = UrlState::Accepted;
                Settled::Unchanged
            }
            UrlState::Pending { .. } | UrlState::Accepted => {
                entry.finish(Some(end));
                Settled::Over
            }
        }
    }

    pub(super) fn complete(&mut self, id: &str) -> Completion {
        let Some(entry) = self.entries.get_mut(id) else {
            return Completion::Ignored;
        };
        match entry.state {
            UrlState::Pending { .. } => {
                entry.state = UrlState::Pending { completed: true };
                Completion::Remembered
            }
            // Asked a second time after consent: the first consent still stands, the open question ends as the
            // person ends it.
            UrlState::Accepted => {
                entry.finish(None);
                Completion::Completed
            }
            UrlState::Finished(_) => Completion::Ignored,
        }
    }

    /// Finishes everything that was asked on a lost connection; gives the ids.
    pub(super) fn lose(&mut self, connection: ConnectionId) -> Vec<String> {
        let mut lost = Vec::new();
        for (id, entry) in &mut self.entries {
            if entry.connection == connection && !matches!(entry.state, UrlState::Finished(_)) {
                entry.finish(Some(End::ConnectionLost));
                lost.push(id.clone());
            }
        }
        lost
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn finish(&mut self, end: Option<End>) {
        self.state = UrlState::Finished(end);
        self.url = String::new();
    }
}
