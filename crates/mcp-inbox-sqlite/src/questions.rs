//! What a process does that answers.

use mcp_elicitation::{ElicitResult, End, InboxEntry};
use rusqlite::{OptionalExtension, params};

use crate::error::{Error, ErrorKind};
use crate::inbox::{SqliteInbox, ended_as, entry, now_ms, sweep};
use crate::text::Text;

/// A question that waits for an answer.
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

    /// Why the last answer was not taken, where there was one. Safe to show.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// The call that was put away and waits for this answer.
    #[must_use]
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Given {
    /// Another answer was first.
    AlreadyAnswered,
    /// The question has ended.
    Ended(EndedAs),
    /// Its time is over.
    Expired,
    /// It is written down, for whoever asked. Whether it fits, and is in time, is theirs to say.
    Recorded,
    /// There is no such question, or it was forgotten.
    Unknown,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedAs {
    /// Its time passed, by the clock of the store, before the process that asked said anything.
    Expired,
    /// In a way that this version has no name for: what the file says of it, which a newer version wrote, or somebody else.
    Other(String),
    /// As the process that asked told.
    Told(End),
}

impl SqliteInbox {
    /// The questions of all processes that can be answered now, oldest first. One that cannot be read here, because
    /// somebody else wrote it, is left out ([`unreadable_questions`](Self::unreadable_questions) counts them).
    ///
    /// The process that asked may have died meanwhile; then nobody takes the answer, unless the question belongs to a call that was
    /// put away.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open_questions(&self) -> Result<Vec<OpenQuestion>, Error> {
        Ok(self.readable_and_not()?.0)
    }

    /// How many open questions cannot be read here, because somebody else wrote them or the file was damaged. No other process
    /// can answer them; they end with their time, or by whoever asked.
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

    /// Answers a question. Whoever asked checks it: one that does not fit is refused, and the question is open again with the
    /// reason ([`OpenQuestion::refusal`]). Check with [`ElicitRequest::check`](mcp_elicitation::ElicitRequest::check) before, to be told at once.
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

    /// Ends the questions whose time is over: those of processes that died. Returns how many. Questions of calls that were put
    /// away stay, unless one that is not answered has a time of its own: then its call is over too. It is done by itself
    /// when a store is opened and before something is put into it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn sweep(&self) -> Result<usize, Error> {
        self.write(|transaction| sweep(transaction, &self.options))
    }
}
