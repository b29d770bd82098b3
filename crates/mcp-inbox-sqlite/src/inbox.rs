//! The store, and what the asking process does with it.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_elicitation::{ElicitAction, ElicitResult, End, Inbox, InboxAnswer, InboxEntry, InboxError};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::questions::EndedAs;
use crate::schema;
use crate::text::Text;

/// How a question ends, whatever ended it: nothing of what people wrote stays behind.
pub(crate) const ENDED: &str = "state = 'ended', params = NULL, answer = NULL, refusal = NULL";
/// The same for a call, whose data holds what the server said.
pub(crate) const FINISHED: &str = "state = 'finished', data = NULL";

/// How a question ended that nobody ended in its time.
const EXPIRED: &str = "expired";

/// A store of open questions in a file.
///
/// # Time
///
/// Deadlines are stored in wall-clock time, which processes share and which outlives them; the process that asked uses a
/// monotonic clock. Where the two differ, the store never decides:
///
/// - While the machine sleeps the wall clock goes on. A question may have expired for the store and be open for its process; then no
///   other process can answer it, and its own process ends it in time.
/// - A clock that is set forward does the same. An answer that was stored and not yet fetched is lost, and the question
///   ends as if unanswered.
/// - A clock that is set back makes open questions live longer here than in their process, and an answer may come too late for it.
///   What was answered, taken or ended stays so whatever the clock says.
///
/// Answers go to the value that published the question, and there to the caller that asks for the ids of its own questions. So
/// several desks may share a value, and one process may open a file several times. Methods may block for up to
/// [`Options::busy_timeout`], and each is one transaction: it has happened completely when it returns, and not at all when it
/// fails.
pub struct SqliteInbox {
    pub(crate) connection: Mutex<Connection>,
    pub(crate) options: Options,
    /// Tells this end from all others, restarts of the same program included.
    pub(crate) owner: String,
}

impl SqliteInbox {
    /// Opens the store in this file, and creates it if it does not exist: on Unix with access for its owner only. Questions in
    /// it whose deadline has passed are ended ([`sweep`](Self::sweep)).
    ///
    /// A file that is not an inbox, or has a newer version, is not modified.
    ///
    /// `path` is always a file path, even if SQLite would give such a name another meaning (`:memory:`, `file:...`).
    ///
    /// # Errors
    /// The folder is missing, the file is no inbox, or it is one of a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Options::default())
    }

    /// As [`open`](Self::open), with other limits.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(|_| Error::new(ErrorKind::Database))?;
        create_private(&path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(options.busy_timeout)?;
        schema::prepare(&mut connection, &path, options.busy_timeout)?;
        let random = || RandomState::new().build_hasher().finish();
        let owner = format!("{:016x}{:016x}", random(), random());
        let inbox = Self { connection: Mutex::new(connection), options, owner };
        inbox.sweep()?;
        Ok(inbox)
    }

    /// Runs one transaction that may write.
    pub(crate) fn write<R>(
        &self,
        act: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        // A holder that panicked left its transaction rolled back.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Immediate: a transaction that begins as a reader can fail in the middle when another one writes first.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outcome = act(&transaction)?;
        transaction.commit()?;
        Ok(outcome)
    }

    /// Runs one transaction that only reads.
    pub(crate) fn read<R>(&self, act: impl FnOnce(&Transaction<'_>) -> Result<R, Error>) -> Result<R, Error> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        act(&transaction)
    }

    /// Ends a question and forgets what was in it.
    fn end(&self, id: &str, ended_as: &str) -> Result<(), Error> {
        self.write(|transaction| {
            transaction.execute(
                &format!(
                    "UPDATE questions SET {ENDED}, ended_as = ?2, ended_ms = ?3
                     WHERE id = ?1 AND state <> 'ended'"
                ),
                params![id, ended_as, now_ms()],
            )?;
            forget(transaction, self.options.max_ended)
        })
    }
}

impl Inbox for SqliteInbox {
    fn publish(&self, entry: &InboxEntry) -> Result<(), InboxError> {
        let published = self.write(|transaction| {
            room(transaction, &self.options, 1)?;
            insert(transaction, &self.options, &self.owner, entry, None)
        });
        Ok(published?)
    }

    fn acknowledge(&self, id: &str, action: ElicitAction) -> Result<(), InboxError> {
        Ok(self.end(id, action_name(action))?)
    }

    fn fail(&self, id: &str, end: End) -> Result<(), InboxError> {
        Ok(self.end(id, end_name(end))?)
    }

    fn answers(&self, ids: &[&str]) -> Result<Vec<InboxAnswer>, InboxError> {
        let ids = serde_json::to_string(ids).map_err(|_| Error::new(ErrorKind::Unreadable))?;
        let given = self.write(|transaction| {
            // Taking and reading are one step: no other look, and no other process, sees the same answer.
            let mut statement = transaction.prepare(
                "UPDATE questions SET state = 'taken' WHERE state = 'answered' AND owner = ?1 AND call IS NULL
                 AND id IN (SELECT value FROM json_each(?2)) RETURNING id, answer",
            )?;
            let rows = statement.query_map(params![self.owner, ids], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<Vec<(String, Text)>, _>>().map_err(Error::from)
        });
        let given = given?;
        Ok(given
            .into_iter()
            .map(|(id, answer)| {
                // One that cannot be read was written by something else: nobody answered then.
                let answer = answer.exact().and_then(|answer| serde_json::from_str(&answer).ok());
                let answer = answer.unwrap_or_else(ElicitResult::cancel);
                InboxAnswer::new(id, answer)
            })
            .collect())
    }

    fn refuse(&self, id: &str, reason: &str) -> Result<(), InboxError> {
        let refused = self.write(|transaction| {
            transaction.execute(
                "UPDATE questions SET state = 'open', answer = NULL, refusal = ?2 WHERE id = ?1 AND state = 'taken'",
                params![id, reason],
            )?;
            Ok(())
        });
        Ok(refused?)
    }

    fn set_expiry(&self, id: &str, expires_after: Option<Duration>) -> Result<(), InboxError> {
        let set = self.write(|transaction| {
            transaction.execute(
                "UPDATE questions SET expires_ms = ?2 WHERE id = ?1 AND state <> 'ended'",
                params![id, expires_after.map(expiry_ms)],
            )?;
            Ok(())
        });
        Ok(set?)
    }
}

/// When something is over that lasts so long from now.
fn expiry_ms(after: Duration) -> i64 {
    now_ms().saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX))
}

/// Writes a question down; `call` is the call that it belongs to, and its key there.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    options: &Options,
    owner: &str,
    entry: &InboxEntry,
    call: Option<(&str, &str)>,
) -> Result<(), Error> {
    let params = entry.params.as_str();
    if params.len() > options.max_question_bytes {
        return Err(Error::limit("a question's size in bytes", options.max_question_bytes));
    }
    let now = now_ms();
    let expires = entry.expires_after.map(expiry_ms);
    transaction.execute(
        "INSERT INTO questions (id, owner, server, revision, params, published_ms, expires_ms, state, call, key, server_host)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', ?8, ?9, ?10)",
        params![
            entry.id,
            owner,
            entry.server,
            entry.revision.as_str(),
            params,
            now,
            expires,
            call.map(|(call, _)| call),
            call.map(|(_, key)| key),
            entry.server_host,
        ],
    )?;
    Ok(())
}

/// Whether so many more questions may be open. Those whose time is over make room: their process may have died.
pub(crate) fn room(transaction: &Transaction<'_>, options: &Options, more: usize) -> Result<(), Error> {
    let max = options.max_open_questions;
    sweep(transaction, options)?;
    let open: i64 =
        transaction
            .query_row("SELECT count(*) FROM questions WHERE state <> 'ended'", [], |row| row.get(0))?;
    let open = usize::try_from(open).unwrap_or(usize::MAX);
    if open.saturating_add(more) > max {
        Err(Error::limit("the number of open questions", max))
    } else {
        Ok(())
    }
}

/// Ends the questions whose time is over, and with them the calls that need them. Returns how many.
pub(crate) fn sweep(transaction: &Transaction<'_>, options: &Options) -> Result<usize, Error> {
    let now = now_ms();
    // An answer that is missing and comes too late: nobody could ever claim the call.
    transaction.execute(
        &format!(
            "UPDATE calls SET {FINISHED}, finished_ms = ?1 WHERE state = 'waiting' AND EXISTS
             (SELECT 1 FROM questions WHERE call = calls.id AND state = 'open' AND expires_ms <= ?1)"
        ),
        [now],
    )?;
    let swept = transaction.execute(
        &format!(
            "UPDATE questions SET {ENDED}, ended_as = '{EXPIRED}', ended_ms = ?1
             WHERE state <> 'ended' AND CASE WHEN call IS NULL THEN expires_ms <= ?1
             ELSE EXISTS (SELECT 1 FROM calls WHERE id = call AND state = 'finished') END"
        ),
        [now],
    )?;
    if swept > 0 {
        forget(transaction, options.max_ended)?;
    }
    Ok(swept)
}

/// Drops the oldest of what has ended.
pub(crate) fn forget(transaction: &Transaction<'_>, max: usize) -> Result<(), Error> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    transaction.execute(
        "DELETE FROM questions WHERE state = 'ended' AND call IS NULL AND id NOT IN
         (SELECT id FROM questions WHERE state = 'ended' AND call IS NULL ORDER BY ended_ms DESC LIMIT ?1)",
        [max],
    )?;
    transaction.execute(
        "DELETE FROM calls WHERE state = 'finished' AND id NOT IN
         (SELECT id FROM calls WHERE state = 'finished' ORDER BY finished_ms DESC LIMIT ?1)",
        [max],
    )?;
    Ok(())
}

/// Milliseconds since 1970, as the clock on the wall says: see [`SqliteInbox`].
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What a name of the table says.
pub(crate) fn ended_as(name: String) -> EndedAs {
    let answered = [ElicitAction::Accept, ElicitAction::Decline, ElicitAction::Cancel].map(End::Answered);
    let others =
        [End::ConnectionLost, End::Failed, End::FlowEnded, End::NoHost, End::TimedOut, End::Withdrawn];
    match answered.into_iter().chain(others).find(|end| end_name(*end) == name) {
        Some(end) => EndedAs::Told(end),
        None if name == EXPIRED => EndedAs::Expired,
        None => EndedAs::Other(name),
    }
}

fn action_name(action: ElicitAction) -> &'static str {
    match action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        ElicitAction::Cancel => "cancel",
        _ => "answered",
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::Answered(action) => action_name(action),
        End::ConnectionLost => "connection lost",
        End::Failed => "failed",
        End::FlowEnded => "call ended",
        End::NoHost => "nobody there",
        End::TimedOut => "timed out",
        End::Withdrawn => "withdrawn",
        _ => "ended",
    }
}

/// Makes the file before SQLite does, so that it is never readable by others. SQLite gives its side files the same rights.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    // It may be there already; anything else SQLite will say better.
    if options.open(path).is_err() && path.is_symlink() && !path.exists() {
        // SQLite would make what the link leads to. Nobody has it open, so that no lock of this process goes with the handle.
        drop(options.create_new(false).create(true).truncate(false).open(path));
    }
}

impl fmt::Debug for SqliteInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteInbox").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Reads what a row says of its question.
pub(crate) fn entry(
    (id, server, revision, params, expires_ms, server_host): (Text, Text, Text, Text, Option<i64>, Text),
) -> Result<InboxEntry, Error> {
    let unreadable = || Error::new(ErrorKind::Unreadable);
    let (Some(id), Some(server), Some(revision)) = (id.exact(), server.exact(), revision.exact()) else {
        return Err(unreadable());
    };
    let revision = revision.parse().map_err(|_| unreadable())?;
    let params = params.exact().ok_or_else(unreadable)?;
    let params = mcp_elicitation::InboxParams::from_text(params).map_err(|_| unreadable())?;
    let mut entry = InboxEntry::from_parts(id, server, revision, params);
    // One that cannot be read costs a warning, not the question.
    entry.server_host = server_host.exact();
    entry.expires_after =
        expires_ms.map(|at| Duration::from_millis(u64::try_from(at.saturating_sub(now_ms())).unwrap_or(0)));
    Ok(entry)
}
