//! What crashes, full disks and others who write to the file must not do.

use std::time::Duration;

use mcp_elicitation::{Inbox, InboxEntry};
use rusqlite::Connection;

use crate::tests::{Folder, accept, entry};
use crate::{ErrorKind, Given, Options, SqliteInbox, StoredCall, StoredQuestion};

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
    assert_eq!(inbox.answer("b", &accept("7")).unwrap(), Given::Ended("expired".to_owned()));
    // One that is answered in time stays, however long its process takes.
    inbox.finish("d").unwrap();
    let short = [StoredQuestion::new("a", lasting("e-a", Duration::from_millis(300)))];
    inbox.put_away(&StoredCall::new("e", "hotel", "{}"), &short).unwrap();
    assert_eq!(inbox.answer("e-a", &accept("7")).unwrap(), Given::Taken);
    std::thread::sleep(Duration::from_millis(350));
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
    assert_eq!(inbox.answer("r", &accept("7")).unwrap(), Given::Taken);
    inbox.publish(&lasting("s", Duration::from_secs(60))).unwrap();
    inbox.set_expiry("s", Some(Duration::ZERO)).unwrap();
    assert_eq!(inbox.answer("s", &accept("7")).unwrap(), Given::Expired);
    inbox.publish(&lasting("t", Duration::ZERO)).unwrap();
    inbox.set_expiry("t", None).unwrap();
    assert_eq!(inbox.answer("t", &accept("7")).unwrap(), Given::Taken);
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
    assert_eq!(inbox.answer("first", &accept("7")).unwrap(), Given::Taken);
    assert_eq!(inbox.answers().unwrap().len(), 1);
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
