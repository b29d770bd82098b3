//! What a process does that answers.

use mcp_elicitation::{ElicitResult, End, InboxEntry};
use rusqlite::{OptionalExtension, params};

use crate::error::{Error, ErrorKind};
use crate::inbox::{SqliteInbox, ended_as, entry, now_ms, sweep};
use crate::text::Text;

/// An open question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenQuestion {
    entry: InboxEntry,
    refusal: Option<String>,
    call: Option<String>,
}

impl OpenQuestion {
    /// The question. Its [`expires_after`](InboxEntry::expires_after) counts from now.
    #[must_use]
    pub fn entry(&self) -> &InboxEntry {
        &self.entry
    }

    /// Why the last answer was refused, if there was one. Safe to show.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The suspended call that waits for this answer.
    #[must_use]
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }
}

/// The result of giving an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given {
    /// Another answer was first.
    AlreadyAnswered,
    /// The question has ended.
    Ended(EndedAs),
    /// Its deadline has passed.
    Expired,
    /// It is stored for the process that asked, which decides whether it is valid and in time.
    Recorded,
    /// There is no such question, or it was forgotten.
    Unknown,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedAs {
    /// Its deadline passed, by the clock of the store, before the process that asked ended it.
    Expired,
    /// In a way that this version does not know: the text in the file, which a newer version or another program wrote.
    Other(String),
    /// As the process that asked recorded.
    Told(End),
}

impl SqliteInbox {
    /// The questions of all processes that can be answered now, oldest first. Questions that cannot be read here, because
    /// another program wrote them, are left out ([`unreadable_questions`](Self::unreadable_questions) counts them).
    ///
    /// The process that asked may have died meanwhile; then the answer has no effect, unless the question belongs to a
    /// suspended call.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open_questions(&self) -> Result<Vec<OpenQuestion>, Error> {
        Ok(self.readable_and_not()?.0)
    }

    /// How many open questions cannot be read here, because another program wrote them or the file was damaged. No other
    /// process can answer them; they end at their deadline, or by the process that asked.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unreadable_questions(&self) -> Result<usize, Error> {
        Ok(self.readable_and_not()?.1)
    }

    fn readable_and_not(&self) -> Result<(Vec<OpenQuestion>, usize), Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare(
                "SELECT id, server, revision, params, expires_ms, server_host, refusal, call FROM questions
                 WHERE state = 'open' AND (expires_ms IS NULL OR expires_ms > ?1) ORDER BY published_ms, id",
            )?;
            let rows = statement.query_map([now_ms()], |row| {
                let parts = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
                Ok((parts, row.get::<_, Text>(6)?.lossy(), row.get::<_, Text>(7)?.lossy()))
            })?;
            let (mut open, mut unreadable) = (Vec::new(), 0);
            for row in rows {
                let (parts, refusal, call) = row?;
                // Nobody could answer it, and it must not hide the others.
                match entry(parts) {
                    Ok(entry) => open.push(OpenQuestion { entry, refusal, call }),
                    Err(_) => unreadable += 1,
                }
            }
            Ok((open, unreadable))
        })
    }

    /// Answers a question. The process that asked validates the answer: an invalid one is refused, and the question is open
    /// again with the reason ([`OpenQuestion::refusal`]). Use [`ElicitRequest::check`](mcp_elicitation::ElicitRequest::check)
    /// first to find out at once.
    ///
    /// # Errors
    /// The store cannot be written, or the answer is too large.
    pub fn answer(&self, id: &str, answer: &ElicitResult) -> Result<Given, Error> {
        let text = serde_json::to_string(answer).map_err(|_| Error::new(ErrorKind::Unreadable))?;
        if text.len() > self.options.max_answer_bytes {
            return Err(Error::limit("an answer's size in bytes", self.options.max_answer_bytes));
        }
        self.write(|transaction| {
            let recorded = transaction.execute(
                "UPDATE questions SET state = 'answered', answer = ?2, refusal = NULL
                 WHERE id = ?1 AND state = 'open' AND (expires_ms IS NULL OR expires_ms > ?3)",
                params![id, text, now_ms()],
            )?;
            if recorded > 0 {
                return Ok(Given::Recorded);
            }
            let found = transaction
                .query_row("SELECT state, ended_as FROM questions WHERE id = ?1", [id], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, Text>(1)?.lossy()))
                })
                .optional()?;
            Ok(match found {
                None => Given::Unknown,
                Some((state, name)) if state == "ended" => Given::Ended(ended_as(name.unwrap_or_default())),
                Some((state, _)) if state == "open" => Given::Expired,
                Some(_) => Given::AlreadyAnswered,
            })
        })
    }

    /// Ends the questions whose deadline has passed: those of processes that died. Returns how many. Questions of suspended
    /// calls stay, unless an unanswered one has a deadline of its own: then its call ends too. This happens automatically when
    /// a store is opened and before something is stored.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn sweep(&self) -> Result<usize, Error> {
        self.write(|transaction| sweep(transaction, &self.options))
    }
}
