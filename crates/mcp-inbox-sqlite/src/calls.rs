//! Calls that were put away, with their questions.

use std::fmt;

use mcp_elicitation::{ElicitResult, InboxEntry};
use rusqlite::{OptionalExtension, params};

use crate::error::{Error, ErrorKind};
use crate::inbox::{ENDED, FINISHED, SqliteInbox, forget, insert, now_ms, room};
use crate::text::Text;

/// A stored call. `Debug` shows sizes.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoredCall {
    /// Unique over processes and restarts.
    pub id: String,
    /// The server that it was made to, by the host's name for it.
    pub server: String,
    /// The data to resume it, as text: a `SuspendedCall` of `mcp-client` as JSON. Not interpreted.
    pub data: String,
}

impl StoredCall {
    /// A call.
    #[must_use]
    pub fn new(id: impl Into<String>, server: impl Into<String>, data: impl Into<String>) -> Self {
        Self { id: id.into(), server: server.into(), data: data.into() }
    }
}

impl fmt::Debug for StoredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCall")
            .field("id", &self.id)
            .field("server_bytes", &self.server.len())
            .field("data_bytes", &self.data.len())
            .finish()
    }
}

/// A question of a suspended call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredQuestion {
    /// Its key among the call's questions.
    pub key: String,
    /// The question.
    pub entry: InboxEntry,
}

impl StoredQuestion {
    /// A question under its key.
    #[must_use]
    pub fn new(key: impl Into<String>, entry: InboxEntry) -> Self {
        Self { key: key.into(), entry }
    }
}

/// A call that this process may resume, with an answer for each of its questions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimedCall {
    /// The call.
    pub call: StoredCall,
    /// The answers by key, not validated. One that cannot be read, because another program wrote it, is `cancel`.
    pub answers: Vec<(String, ElicitResult)>,
}

impl SqliteInbox {
    /// Stores a suspended call and its questions until they are answered, whatever happens to this process.
    ///
    /// # Errors
    /// The store cannot be written, a limit is reached, or an id exists already. Nothing was stored then.
    pub fn put_away(&self, call: &StoredCall, questions: &[StoredQuestion]) -> Result<(), Error> {
        if call.data.len() > self.options.max_call_bytes {
            return Err(Error::limit("a call's size in bytes", self.options.max_call_bytes));
        }
        self.write(|transaction| {
            room(transaction, &self.options, questions.len())?;
            let kept: i64 =
                transaction.query_row("SELECT count(*) FROM calls WHERE state <> 'finished'", [], |row| {
                    row.get(0)
                })?;
            if usize::try_from(kept).unwrap_or(usize::MAX) >= self.options.max_calls {
                return Err(Error::limit("the number of calls", self.options.max_calls));
            }
            transaction.execute(
                "INSERT INTO calls (id, server, data, put_away_ms, state) VALUES (?1, ?2, ?3, ?4, 'waiting')",
                params![call.id, call.server, call.data, now_ms()],
            )?;
            for question in questions {
                let owner = Some((call.id.as_str(), question.key.as_str()));
                insert(transaction, &self.options, &self.owner, &question.entry, owner)?;
            }
            Ok(())
        })
    }

    /// The ids of the calls whose questions are all answered, oldest first: those that [`claim`](Self::claim) gives.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn answered_calls(&self) -> Result<Vec<String>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare(
                "SELECT id FROM calls WHERE state = 'waiting' AND NOT EXISTS
                 (SELECT 1 FROM questions WHERE call = calls.id AND state <> 'answered') ORDER BY put_away_ms, id",
            )?;
            let rows = statement.query_map([], |row| row.get::<_, Text>(0))?;
            // One whose id cannot be read cannot be named, and must not hide the others.
            rows.filter_map(|id| id.map(Text::exact).map_err(Error::from).transpose()).collect()
        })
    }

    /// Claims a call whose questions are all answered. Exactly one caller gets it, and it is never handed out again
    /// automatically: it is unknown whether the server got the answers of a process that died in between. `None`: it does not
    /// exist, is not answered, or was claimed by another caller.
    ///
    /// # Errors
    /// The store cannot be written, or holds data that cannot be read.
    pub fn claim(&self, id: &str) -> Result<Option<ClaimedCall>, Error> {
        self.write(|transaction| {
            let claimed = transaction
                .query_row(
                    "UPDATE calls SET state = 'claimed', claimed_by = ?2 WHERE id = ?1 AND state = 'waiting'
                     AND NOT EXISTS (SELECT 1 FROM questions WHERE call = ?1 AND state <> 'answered')
                     RETURNING server, data",
                    params![id, self.owner],
                    |row| Ok((row.get::<_, Text>(0)?.exact(), row.get::<_, Text>(1)?.exact())),
                )
                .optional()?;
            let Some((server, data)) = claimed else { return Ok(None) };
            let unreadable = || Error::new(ErrorKind::Unreadable);
            let (server, data) = server.zip(data).ok_or_else(unreadable)?;
            let mut statement = transaction
                .prepare("UPDATE questions SET state = 'taken' WHERE call = ?1 RETURNING key, answer")?;
            let rows =
                statement.query_map([id], |row| Ok((row.get::<_, Text>(0)?, row.get::<_, Text>(1)?)))?;
            let answers = rows.map(|row| {
                let (key, answer) = row?;
                let key = key.exact().ok_or_else(unreadable)?;
                // As for a question of its own: one that cannot be read is none.
                let answer = answer.exact().and_then(|answer| serde_json::from_str(&answer).ok());
                Ok((key, answer.unwrap_or_else(ElicitResult::cancel)))
            });
            let answers = answers.collect::<Result<Vec<_>, Error>>()?;
            Ok(Some(ClaimedCall { call: StoredCall::new(id, server, data), answers }))
        })
    }

    /// The call has ended, or was given up: it and its questions are removed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn finish(&self, id: &str) -> Result<(), Error> {
        self.write(|transaction| {
            transaction.execute(
                &format!(
                    "UPDATE questions SET {ENDED}, ended_as = 'call ended', ended_ms = ?2 WHERE call = ?1"
                ),
                params![id, now_ms()],
            )?;
            transaction.execute(
                &format!("UPDATE calls SET {FINISHED}, finished_ms = ?2 WHERE id = ?1"),
                params![id, now_ms()],
            )?;
            forget(transaction, self.options.max_ended)
        })
    }

    /// An answer of a claimed call was refused by the client (then nothing was sent): the call waits again, and its questions
    /// are open again with this reason.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ask_again(&self, id: &str, reason: &str) -> Result<(), Error> {
        self.write(|transaction| {
            let given_back = transaction.execute(
                "UPDATE calls SET state = 'waiting', claimed_by = NULL WHERE id = ?1 AND state = 'claimed' AND claimed_by = ?2",
                params![id, self.owner],
            )?;
            if given_back > 0 {
                transaction.execute(
                    "UPDATE questions SET state = 'open', answer = NULL, refusal = ?2 WHERE call = ?1",
                    params![id, reason],
                )?;
            }
            Ok(())
        })
    }

    /// The calls that a process, this one or another, claimed and did not finish, oldest first. If that process died, the
    /// outcome is unknown: the server may have got the answers. Remove the call with [`finish`](Self::finish).
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unfinished_calls(&self) -> Result<Vec<StoredCall>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare(
                "SELECT id, server, data FROM calls WHERE state = 'claimed' ORDER BY put_away_ms, id",
            )?;
            let rows = statement.query_map([], |row| {
                let (server, data) = (row.get::<_, Text>(1)?.lossy(), row.get::<_, Text>(2)?.lossy());
                let id = row.get::<_, Text>(0)?.exact();
                Ok(id.map(|id| StoredCall {
                    id,
                    server: server.unwrap_or_default(),
                    data: data.unwrap_or_default(),
                }))
            })?;
            rows.filter_map(|call| call.map_err(Error::from).transpose()).collect()
        })
    }
}
