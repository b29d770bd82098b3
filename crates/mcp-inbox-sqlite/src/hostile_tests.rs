//! What crashes, full disks and others who write to the file must not do.

use std::time::Duration;

use mcp_elicitation::{ElicitAction, ElicitResult, Inbox, InboxEntry};
use rusqlite::Connection;

use crate::tests::{Folder, accept, entry};
use crate::{EndedAs, ErrorKind, Given, Options, SqliteInbox, StoredCall, StoredQuestion};

fn lasting(id: &str, time: Duration) -> InboxEntry {
    let mut entry = entry(id);
    entry.expires_after = Some(time);
    entry
}

/// What processes left behind that died takes no place once its time is over.
#[test]
fn questions_of_dead_processes_make_room_for_new_ones() {
    let folder = Folder::new("room");
    let options = Options { max_open_questions: 2, ..Options::default() };
    for at in 0..5 {
        let inbox = SqliteInbox::open_with(folder.file(), options).unwrap();
        for question in ["a", "b"] {
            inbox.publish(&lasting(&format!("{at}{question}"), Duration::ZERO)).unwrap();
        }
    }
    drop(folder.open());
    let left: i64 = Connection::open(folder.file())
        .unwrap()
        .query_row("SELECT count(*) FROM questions WHERE params IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0, "what was asked is forgotten with its time");
}

/// A call whose answer came too late can never be claimed: it is over, and takes no place.
#[test]
fn a_call_with_a_question_past_its_time_is_over() {
    let folder = Folder::new("late-call");
    let options = Options { max_calls: 1, ..Options::default() };
    let inbox = SqliteInbox::open_with(folder.file(), options).unwrap();
    let questions =
        [StoredQuestion::new("a", lasting("a", Duration::ZERO)), StoredQuestion::new("b", entry("b"))];
    inbox.put_away(&StoredCall::new("c", "hotel", "{}"), &questions).unwrap();
    assert_eq!(inbox.answer("a", &accept("7")).unwrap(), Given::Expired);
    inbox.put_away(&StoredCall::new("d", "hotel", "{}"), &[StoredQuestion::new("a", entry("d-a"))]).unwrap();
    assert!(inbox.claim("c").unwrap().is_none());
    assert_eq!(inbox.answer("b", &accept("7")).unwrap(), Given::Ended(EndedAs::Expired));
    // One that is answered in time stays, however long its process takes.
    inbox.finish("d").unwrap();
    let in_time = [StoredQuestion::new("a", lasting("e-a", Duration::from_secs(3600)))];
    inbox.put_away(&StoredCall::new("e", "hotel", "{}"), &in_time).unwrap();
    assert_eq!(inbox.answer("e-a", &accept("7")).unwrap(), Given::Recorded);
    let past = "UPDATE questions SET expires_ms = 1 WHERE id = 'e-a'";
    assert_eq!(inbox.connection.lock().unwrap().execute(past, []).unwrap(), 1, "its time is over");
    assert_eq!(inbox.sweep().unwrap(), 0);
    assert!(inbox.claim("e").unwrap().is_some());
}

#[test]
fn a_question_that_is_given_more_time_takes_answers_that_long() {
    let folder = Folder::new("more-time");
    let inbox = folder.open();
    inbox.publish(&lasting("q", Duration::ZERO)).unwrap();
    inbox.publish(&lasting("r", Duration::ZERO)).unwrap_or_default();
    assert_eq!(inbox.answer("r", &accept("7")).unwrap(), Given::Expired);
    inbox.set_expiry("r", Some(Duration::from_secs(60))).unwrap();
    assert_eq!(inbox.answer("r", &accept("7")).unwrap(), Given::Recorded);
    inbox.publish(&lasting("s", Duration::from_secs(60))).unwrap();
    inbox.set_expiry("s", Some(Duration::ZERO)).unwrap();
    assert_eq!(inbox.answer("s", &accept("7")).unwrap(), Given::Expired);
    inbox.publish(&lasting("t", Duration::ZERO)).unwrap();
    inbox.set_expiry("t", None).unwrap();
    assert_eq!(inbox.answer("t", &accept("7")).unwrap(), Given::Recorded);
}

/// A disk without room: what was not written down is not there, and all goes on when there is room.
#[test]
fn a_full_disk_loses_nothing_that_was_written_down() {
    let folder = Folder::new("full");
    let inbox = folder.open();
    inbox.publish(&entry("first")).unwrap();
    let limit = |pages: u32| {
        let connection = inbox.connection.lock().unwrap();
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    limit(1);
    let published = (0..1000).take_while(|at| inbox.publish(&entry(&format!("q{at}"))).is_ok()).count();
    assert!(published < 1000);
    let error = inbox.answer("first", &accept(&"x".repeat(100_000))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Database);
    assert_eq!(inbox.open_questions().unwrap().len(), published + 1);
    limit(100_000);
    assert_eq!(inbox.answer("first", &accept("7")).unwrap(), Given::Recorded);
    assert_eq!(inbox.answers(&["first"]).unwrap().len(), 1);
}

#[test]
fn a_damaged_file_is_an_error() {
    let folder = Folder::new("damaged");
    let inbox = folder.open();
    for at in 0..50 {
        inbox.publish(&entry(&format!("q{at}"))).unwrap();
    }
    drop(inbox);
    let mut bytes = std::fs::read(folder.file()).unwrap();
    for start in [100, 4096, 8192, 12_288] {
        if let Some(part) = bytes.get_mut(start..start + 2000) {
            part.fill(0xa5);
        }
    }
    std::fs::write(folder.file(), bytes).unwrap();
    let outcome = SqliteInbox::open(folder.file()).and_then(|inbox| inbox.open_questions());
    assert!(matches!(outcome.unwrap_err().kind(), ErrorKind::Database | ErrorKind::Foreign));
}

/// Names that SQLite gives a meaning of its own are files like others.
#[test]
fn a_path_is_a_path() {
    let folder = Folder::new("path");
    for name in [":memory:", "file:inbox.db?mode=memory"] {
        let path = folder.0.join(name);
        let inbox = SqliteInbox::open(&path).unwrap();
        inbox.publish(&entry("q")).unwrap();
        assert_eq!(SqliteInbox::open(&path).unwrap().open_questions().unwrap().len(), 1, "{name}");
    }
    assert!(SqliteInbox::open("").is_err());
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("link");
    let (link, target) = (folder.0.join("link.db"), folder.0.join("target.db"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let inbox = SqliteInbox::open(&link).unwrap();
    inbox.publish(&entry("q")).unwrap();
    for found in std::fs::read_dir(&folder.0).unwrap() {
        let found = found.unwrap();
        if !found.file_type().unwrap().is_symlink() {
            assert_eq!(found.metadata().unwrap().permissions().mode() & 0o077, 0, "{found:?}");
        }
    }
    assert!(target.exists());
}

/// What is no inbox, or a newer one, keeps each of its bytes, and gets no files beside it.
#[test]
fn a_file_that_is_refused_is_not_changed() {
    let folder = Folder::new("unchanged");
    let newer = |mode: &str| {
        drop(folder.open());
        let settings = format!("PRAGMA journal_mode = {mode}; PRAGMA user_version = 99;");
        Connection::open(folder.file()).unwrap().execute_batch(&settings).unwrap();
    };
    let foreign = |mode: &str| {
        let made =
            format!("PRAGMA journal_mode = {mode}; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);");
        Connection::open(folder.file()).unwrap().execute_batch(&made).unwrap();
    };
    let check = |kind: ErrorKind| {
        let before = std::fs::read(folder.file()).unwrap();
        assert_eq!(SqliteInbox::open(folder.file()).unwrap_err().kind(), kind);
        assert!(std::fs::read(folder.file()).unwrap() == before, "{kind:?}");
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "{kind:?}");
        std::fs::remove_file(folder.file()).unwrap();
    };
    for mode in ["DELETE", "WAL"] {
        newer(mode);
        check(ErrorKind::Newer { found: 99, known: 2 });
        foreign(mode);
        check(ErrorKind::Foreign);
    }
}

/// The log of a process that died belongs to whoever understands the file.
#[test]
fn the_log_beside_a_foreign_file_is_left_as_it_is() {
    let (theirs, folder) = (Folder::new("log-theirs"), Folder::new("log"));
    let writing = Connection::open(theirs.file()).unwrap();
    writing
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);")
        .unwrap();
    let name = |folder: &Folder, log: &str| folder.0.join(format!("inbox.db{log}"));
    let files = ["", "-wal"];
    for log in files {
        // As a crash leaves them.
        std::fs::copy(name(&theirs, log), name(&folder, log)).unwrap();
    }
    let read = || files.map(|log| std::fs::read(name(&folder, log)).unwrap());
    let before = read();
    assert!(!before[1].is_empty());
    assert_eq!(SqliteInbox::open(folder.file()).unwrap_err().kind(), ErrorKind::Foreign);
    assert!(read() == before);
}

#[test]
fn a_file_that_many_open_at_once_is_made_once() {
    for _ in 0..5 {
        let folder = Folder::new("at-once");
        let begin = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for at in 0..8 {
                let (begin, file) = (&begin, folder.file());
                scope.spawn(move || {
                    begin.wait();
                    let options = Options { busy_timeout: Duration::from_secs(120), ..Options::default() };
                    let inbox = SqliteInbox::open_with(file, options).unwrap();
                    inbox.publish(&entry(&at.to_string())).unwrap();
                });
            }
        });
        assert_eq!(folder.open().open_questions().unwrap().len(), 8);
    }
}

/// Whoever makes the tables needs the new file alone, and waits for those who are about to write to it.
#[test]
fn a_new_file_that_somebody_writes_to_is_waited_for() {
    let folder = Folder::new("written");
    let writing = Connection::open(folder.file()).unwrap();
    writing.execute_batch("BEGIN IMMEDIATE").unwrap();
    let options = Options { busy_timeout: Duration::from_millis(50), ..Options::default() };
    let begun = std::time::Instant::now();
    assert_eq!(SqliteInbox::open_with(folder.file(), options).unwrap_err().kind(), ErrorKind::Busy);
    assert!(begun.elapsed() >= Duration::from_millis(50), "given up at once");
    writing.execute_batch("COMMIT").unwrap();
    SqliteInbox::open_with(folder.file(), options).unwrap();
}

/// Whatever column of a row is in a broken encoding: the others are read as if it were not there.
#[test]
fn a_row_in_a_broken_encoding_hides_no_other() {
    for column in ["id", "owner", "server", "revision", "params", "refusal"] {
        let folder = Folder::new(&format!("broken-{column}"));
        let inbox = folder.open();
        for id in ["bad", "good"] {
            inbox.publish(&entry(id)).unwrap();
        }
        damage(&folder, "questions", column, "bad");
        let open = inbox.open_questions().unwrap();
        assert!(open.iter().any(|open| open.entry().id == "good"), "{column}");
        let is_whole = matches!(column, "owner" | "refusal");
        assert_eq!(inbox.unreadable_questions().unwrap(), usize::from(!is_whole), "{column}");
        assert_eq!(open.len(), 1 + usize::from(is_whole), "{column}");
        assert_eq!(inbox.answer("good", &accept("7")).unwrap(), Given::Recorded);
        assert_eq!(inbox.answers(&["bad", "good"]).unwrap().len(), 1, "{column}");
    }
}

#[test]
fn an_answer_in_a_broken_encoding_is_none_and_blocks_no_other() {
    let folder = Folder::new("broken-answer");
    let inbox = folder.open();
    for id in ["bad", "good"] {
        inbox.publish(&entry(id)).unwrap();
        inbox.answer(id, &accept("7")).unwrap();
    }
    damage(&folder, "questions", "answer", "bad");
    for given in inbox.answers(&["bad", "good"]).unwrap() {
        let expected = if given.id == "bad" { ElicitResult::cancel() } else { accept("7") };
        assert_eq!(given.answer, expected, "{}", given.id);
    }
    inbox.acknowledge("bad", ElicitAction::Cancel).unwrap();
    damage(&folder, "questions", "ended_as", "bad");
    assert!(matches!(inbox.answer("bad", &accept("8")).unwrap(), Given::Ended(_)));
}

#[test]
fn a_call_in_a_broken_encoding_hides_no_other() {
    for column in ["server", "data"] {
        let folder = Folder::new(&format!("broken-call-{column}"));
        let inbox = folder.open();
        for id in ["bad", "good"] {
            let question = [StoredQuestion::new("k", entry(&format!("{id}-k")))];
            inbox.put_away(&StoredCall::new(id, "hotel", "{}"), &question).unwrap();
            inbox.answer(&format!("{id}-k"), &accept("7")).unwrap();
        }
        damage(&folder, "calls", column, "bad");
        assert_eq!(inbox.answered_calls().unwrap().len(), 2);
        assert_eq!(inbox.claim("bad").unwrap_err().kind(), ErrorKind::Unreadable, "{column}");
        assert!(inbox.claim("good").unwrap().is_some());
        assert_eq!(inbox.unfinished_calls().unwrap().len(), 1);
        inbox.finish("bad").unwrap();
        assert!(inbox.answered_calls().unwrap().is_empty());
    }
    let folder = Folder::new("broken-call-answer");
    let inbox = folder.open();
    inbox.put_away(&StoredCall::new("c", "hotel", "{}"), &[StoredQuestion::new("k", entry("q"))]).unwrap();
    inbox.answer("q", &accept("7")).unwrap();
    damage(&folder, "questions", "answer", "q");
    let claimed = inbox.claim("c").unwrap().unwrap();
    assert_eq!(claimed.answers, [("k".to_owned(), ElicitResult::cancel())]);
    damage(&folder, "calls", "data", "c");
    assert_eq!(inbox.unfinished_calls().unwrap()[0].id, "c", "it can be given up");
}

fn damage(folder: &Folder, table: &str, column: &str, id: &str) {
    let broken = format!("UPDATE {table} SET {column} = CAST(x'ff22' AS TEXT) WHERE id = '{id}'");
    assert_eq!(Connection::open(folder.file()).unwrap().execute(&broken, []).unwrap(), 1);
}
