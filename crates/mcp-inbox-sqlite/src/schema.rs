//! The tables, and how older ones become newer ones.
//!
//! A question:
//!
//! ```text
//! open ──answer──> answered ──taken by the asking process──> taken ──> ended
//!   ^                                                          │
//!   └───────────────── refused, with a reason ────────────────┘
//! ```
//!
//! Whoever drives it may end it in each state. A question of a call that was put away is taken with its call.
//!
//! A call that was put away:
//!
//! ```text
//! waiting ──all its questions answered, claimed──> claimed ──> finished
//! ```

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, ErrorKind};

/// Tells the files of this crate from others: "MCPi".
const APPLICATION_ID: i64 = 0x4D43_5069;
/// Each step leads from the version of its index to the next.
const STEPS: [&str; 2] = [
    "CREATE TABLE questions (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        server TEXT NOT NULL,
        revision TEXT NOT NULL,
        params TEXT,
        published_ms INTEGER NOT NULL,
        expires_ms INTEGER,
        state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'taken', 'ended')),
        answer TEXT,
        refusal TEXT,
        ended_as TEXT,
        ended_ms INTEGER,
        call TEXT REFERENCES calls (id) ON DELETE CASCADE,
        key TEXT
    ) STRICT;
    CREATE INDEX questions_by_state ON questions (state, published_ms);
    CREATE INDEX questions_by_call ON questions (call);
    CREATE TABLE calls (
        id TEXT PRIMARY KEY,
        server TEXT NOT NULL,
        data TEXT,
        put_away_ms INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'claimed', 'finished')),
        claimed_by TEXT,
        finished_ms INTEGER
    ) STRICT;
    CREATE INDEX calls_by_state ON calls (state, put_away_ms);",
    "ALTER TABLE questions ADD COLUMN server_host TEXT;",
];

/// Between two attempts at what SQLite does not wait for by itself.
const PAUSE: Duration = Duration::from_millis(5);

/// Makes the connection what the crate's promises need, and brings the tables up to date.
///
/// What is no inbox, or a newer one, stays as it is: nothing is written before that is known. `path` is the file's; others who
/// hold it are waited for, as long as `patience` for each step.
pub(crate) fn prepare(connection: &mut Connection, path: &Path, patience: Duration) -> Result<(), Error> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // The log that a process left behind which died would be moved into the file by whoever closes it last.
    let is_left_behind = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let keeps_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keeps_log, is_left_behind)?;
    version(&*connection.transaction()?)?;
    connection.set_db_config(keeps_log, false)?;
    write_ahead(connection, patience)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA secure_delete = ON;
         PRAGMA trusted_schema = OFF;",
    )?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again: another process may have made the tables meanwhile, or something else of the file.
    let found = version(&transaction)?;
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    if found < known() {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
            known()
        ))?;
    }
    transaction.commit()?;
    Ok(())
}

/// Switches to the write-ahead log. That takes the file for oneself alone, and SQLite refuses it at once where others hold it:
/// they may be waiting for the same.
fn write_ahead(connection: &Connection, patience: Duration) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        // The answer names the mode that is in force: in-memory databases have no other than their own.
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(Error::from) {
            Err(error) if error.kind() == ErrorKind::Busy && begun.elapsed() < patience => {
                thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// The version of the tables: 0 for a new file.
fn version(connection: &Connection) -> Result<i64, Error> {
    let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let (application, found) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = application == 0 && found == 0 && tables == 0;
    if application != APPLICATION_ID && !is_new {
        return Err(Error::new(ErrorKind::Foreign));
    }
    if found > known() {
        return Err(Error::new(ErrorKind::Newer { found, known: known() }));
    }
    Ok(found)
}

fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}
