use std::path::PathBuf;
use std::time::Duration;

use mcp_elicitation::{
    ElicitAction, ElicitRequest, ElicitResult, End, Inbox, InboxEntry, RequestRules, Revision, UrlPolicy,
    UrlWarning,
};
use rusqlite::Connection;

use crate::{EndedAs, ErrorKind, Given, Options, SqliteInbox, StoredCall, StoredQuestion};

const FORM: &str = r#"{"message":"Which room?","requestedSchema":{"type":"object","properties":{"room":{"type":"string"}}}}"#;

/// A folder that goes away with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-inbox-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("inbox.db")
    }

    pub(crate) fn open(&self) -> SqliteInbox {
        SqliteInbox::open(self.file()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn entry(id: &str) -> InboxEntry {
    let revision = Revision::V2025_11_25;
    InboxEntry::new(id, "hotel", revision, &ElicitRequest::parse(FORM, revision).unwrap())
}

pub(crate) fn accept(room: &str) -> ElicitResult {
    ElicitResult::accept([("room".to_owned(), room.into())].into_iter().collect::<serde_json::Map<_, _>>())
}

fn told(end: End) -> Given {
    Given::Ended(EndedAs::Told(end))
}

/// auth:SEC-06: whoever answers is warned of a URL that poses as the server's, as whoever asked is.
#[test]
fn a_question_keeps_the_host_of_the_server() {
    let folder = Folder::new("host");
    let revision = Revision::V2026_07_28;
    let params = r#"{"mode":"url","message":"m","url":"https://mcp.example.com.evil.net/"}"#;
    let policy = UrlPolicy::default().server("https://mcp.example.com/mcp");
    let rules = RequestRules::new(revision).url(policy);
    let published = ElicitRequest::parse_with(params, &rules).unwrap();
    folder.open().publish(&InboxEntry::new("q", "srv", revision, &published)).unwrap();
    let found = folder.open().open_questions().unwrap().remove(0);
    let ElicitRequest::Url(found) = found.entry().request().unwrap() else { panic!("a URL") };
    assert_eq!(found.url().warnings(), [UrlWarning::Lookalike]);
}

/// What an older version wrote down is there after an update.
#[test]
fn a_file_of_the_first_version_is_brought_up_to_date() {
    let folder = Folder::new("older");
    folder.open().publish(&entry("q")).unwrap();
    let older = "ALTER TABLE questions DROP COLUMN server_host; PRAGMA user_version = 1;";
    Connection::open(folder.file()).unwrap().execute_batch(older).unwrap();
    let inbox = folder.open();
    assert_eq!(inbox.open_questions().unwrap().len(), 1);
    assert_eq!(inbox.answer("q", &accept("7")).unwrap(), Given::Recorded);
}

/// Only an id that is there already is the caller's doing.
#[test]
fn a_broken_constraint_is_a_duplicate_where_it_is_one() {
    let folder = Folder::new("constraints");
    drop(folder.open());
    let connection = Connection::open(folder.file()).unwrap();
    connection
        .execute_batch("PRAGMA foreign_keys = ON; CREATE TABLE t (a UNIQUE, b NOT NULL DEFAULT 0);")
        .unwrap();
    let call = "INSERT INTO calls (id, server, put_away_ms, state) VALUES";
    let question = "INSERT INTO questions (id, owner, server, revision, published_ms, state, call) VALUES";
    for (sql, kind) in [
        (format!("{call} ('a', 's', 1, 'waiting'), ('a', 's', 1, 'waiting')"), ErrorKind::Duplicate),
        ("INSERT INTO t (a) VALUES (1), (1)".to_owned(), ErrorKind::Duplicate),
        (format!("{call} ('a', 's', 1, 'no such state')"), ErrorKind::Database),
        (format!("{call} ('a', 's', NULL, 'waiting')"), ErrorKind::Database),
        (format!("{call} ('a', 's', 'no number', 'waiting')"), ErrorKind::Database),
        (format!("{question} ('a', 'o', 's', 'r', 1, 'open', 'no such call')"), ErrorKind::Database),
    ] {
        let error = connection.execute_batch(&sql).unwrap_err();
        assert_eq!(crate::Error::from(error).kind(), kind, "{sql}");
    }
}

/// seed:S-30: a question is written down before it is shown, and an answer of another process reaches whoever asked.
#[test]
fn a_question_is_answered_from_another_process_once() {
    let folder = Folder::new("answered");
    let (asking, answering) = (folder.open(), folder.open());
    asking.publish(&entry("q")).unwrap();
    let open = answering.open_questions().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].entry().server, "hotel");
    assert_eq!(open[0].entry().request().unwrap().message(), "Which room?");

    assert_eq!(answering.answer("q", &accept("7")).unwrap(), Given::Recorded);
    assert_eq!(answering.answer("q", &accept("8")).unwrap(), Given::AlreadyAnswered);
    assert!(answering.open_questions().unwrap().is_empty());
    assert!(answering.answers(&["q"]).unwrap().is_empty(), "it did not ask");
    let answers = asking.answers(&["q"]).unwrap();
    assert_eq!((answers.len(), &answers[0].answer), (1, &accept("7")));
    assert!(asking.answers(&["q"]).unwrap().is_empty(), "given already");

    asking.acknowledge("q", ElicitAction::Accept).unwrap();
    assert_eq!(answering.answer("q", &accept("9")).unwrap(), told(End::Answered(ElicitAction::Accept)));
    assert_eq!(answering.answer("other", &accept("9")).unwrap(), Given::Unknown);
}

/// Two desks at one value, or two values at one file: each takes what was answered to its own questions, and nothing else.
#[test]
fn an_answer_is_taken_by_whoever_asked_and_by_nobody_else() {
    let folder = Folder::new("whose");
    let (shared, other) = (folder.open(), folder.open());
    for id in ["a-1", "b-1", "b-'\"2"] {
        shared.publish(&entry(id)).unwrap();
        assert_eq!(other.answer(id, &accept(id)).unwrap(), Given::Recorded);
    }
    other.publish(&entry("c-1")).unwrap();
    shared.answer("c-1", &accept("c-1")).unwrap();
    let taken = |inbox: &SqliteInbox, ids: &[&str]| {
        let answers = inbox.answers(ids).unwrap();
        assert!(answers.iter().all(|given| given.answer == accept(&given.id)));
        let mut taken: Vec<String> = answers.into_iter().map(|given| given.id).collect();
        taken.sort();
        taken
    };
    assert!(taken(&shared, &[]).is_empty());
    assert_eq!(taken(&shared, &["a-1", "a-2", "c-1"]), ["a-1"]);
    assert_eq!(taken(&shared, &["b-1", "b-'\"2"]), ["b-'\"2", "b-1"]);
    assert_eq!(taken(&other, &["a-1", "b-1", "c-1"]), ["c-1"]);
}

#[test]
fn an_answer_that_is_refused_opens_the_question_again_with_the_reason() {
    let folder = Folder::new("refused");
    let (asking, answering) = (folder.open(), folder.open());
    asking.publish(&entry("q")).unwrap();
    answering.answer("q", &accept("7")).unwrap();
    asking.answers(&["q"]).unwrap();
    asking.refuse("q", "room must be a string").unwrap();
    assert_eq!(answering.open_questions().unwrap()[0].refusal(), Some("room must be a string"));
    assert_eq!(answering.answer("q", &accept("8")).unwrap(), Given::Recorded);
    assert_eq!(asking.answers(&["q"]).unwrap()[0].answer, accept("8"));
}

#[test]
fn a_question_that_ended_takes_no_answer_and_keeps_nothing() {
    let folder = Folder::new("ended");
    let inbox = folder.open();
    inbox.publish(&entry("q")).unwrap();
    inbox.answer("q", &accept("a secret room")).unwrap();
    inbox.fail("q", End::TimedOut).unwrap();
    assert!(inbox.answers(&["q"]).unwrap().is_empty());
    assert_eq!(inbox.answer("q", &accept("7")).unwrap(), told(End::TimedOut));
    drop(inbox);
    // Closing the last connection moves the log into the file.
    let bytes = std::fs::read(folder.file()).unwrap();
    for secret in ["a secret room", "Which room?"] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }
}

#[test]
fn a_question_past_its_time_is_neither_listed_nor_answered() {
    let folder = Folder::new("expired");
    let inbox = folder.open();
    let mut long = entry("r");
    long.expires_after = Some(Duration::from_secs(3600));
    inbox.publish(&long).unwrap();
    let mut short = entry("q");
    short.expires_after = Some(Duration::ZERO);
    inbox.publish(&short).unwrap();
    assert_eq!(inbox.open_questions().unwrap().len(), 1);
    assert_eq!(inbox.answer("q", &accept("7")).unwrap(), Given::Expired);
    assert_eq!(inbox.sweep().unwrap(), 1);
    assert_eq!(inbox.answer("q", &accept("7")).unwrap(), Given::Ended(EndedAs::Expired));
}

/// A clock that is set back by a day: for the store, everything in it is from a day later. What was answered, taken or ended
/// stays so; only what is open lives longer.
#[test]
fn a_clock_that_is_set_back_revives_nothing() {
    let folder = Folder::new("set-back");
    let (asking, answering) = (folder.open(), folder.open());
    for id in ["taken", "answered", "acknowledged", "failed", "expired", "open"] {
        let mut question = entry(id);
        let is_over = id == "expired";
        question.expires_after = Some(if is_over { Duration::ZERO } else { Duration::from_secs(60) });
        asking.publish(&question).unwrap();
    }
    answering.answer("taken", &accept("1")).unwrap();
    assert_eq!(asking.answers(&["taken"]).unwrap().len(), 1);
    answering.answer("answered", &accept("2")).unwrap();
    asking.acknowledge("acknowledged", ElicitAction::Accept).unwrap();
    asking.fail("failed", End::Withdrawn).unwrap();
    // It is swept when the last one is published, if not before.
    assert_eq!(answering.sweep().unwrap(), 0);

    let day = 24 * 3600 * 1000_i64;
    let moved = "UPDATE questions SET published_ms = published_ms + ?1, expires_ms = expires_ms + ?1, ended_ms = ended_ms + ?1";
    assert_eq!(asking.connection.lock().unwrap().execute(moved, [day]).unwrap(), 6);
    let reopened = folder.open();
    for inbox in [&asking, &answering, &reopened] {
        assert_eq!(inbox.sweep().unwrap(), 0);
        let open: Vec<String> =
            inbox.open_questions().unwrap().iter().map(|open| open.entry().id.clone()).collect();
        assert_eq!(open, ["open"]);
        for (id, expected) in [
            ("taken", Given::AlreadyAnswered),
            ("answered", Given::AlreadyAnswered),
            ("acknowledged", told(End::Answered(ElicitAction::Accept))),
            ("failed", told(End::Withdrawn)),
            ("expired", Given::Ended(EndedAs::Expired)),
        ] {
            // Nor does another time, or a refusal of what is no answer, open anything.
            inbox.set_expiry(id, None).unwrap();
            if id != "taken" {
                inbox.refuse(id, "why").unwrap();
            }
            assert_eq!(inbox.answer(id, &accept("9")).unwrap(), expected, "{id}");
        }
    }
    let answers = asking.answers(&["taken", "answered"]).unwrap();
    assert_eq!((answers.len(), answers[0].id.as_str(), &answers[0].answer), (1, "answered", &accept("2")));
    assert!(asking.answers(&["taken", "answered"]).unwrap().is_empty(), "given already");
}

#[test]
fn every_limit_is_told_with_its_number() {
    let folder = Folder::new("limits");
    let options = Options {
        max_open_questions: 1,
        max_question_bytes: FORM.len(),
        max_answer_bytes: 60,
        max_calls: 1,
        max_call_bytes: 4,
        ..Options::default()
    };
    let inbox = SqliteInbox::open_with(folder.file(), options).unwrap();
    let refused = |error: crate::Error, limit: usize| {
        assert!(matches!(error.kind(), ErrorKind::Limit { limit: found, .. } if found == limit), "{error}");
        assert!(error.to_string().contains(&limit.to_string()));
    };
    refused(inbox.put_away(&StoredCall::new("c", "hotel", "12345"), &[]).unwrap_err(), 4);
    inbox.put_away(&StoredCall::new("c", "hotel", "1234"), &[]).unwrap();
    refused(inbox.put_away(&StoredCall::new("d", "hotel", "1234"), &[]).unwrap_err(), 1);
    inbox.publish(&entry("q")).unwrap();
    assert!(inbox.publish(&entry("r")).unwrap_err().to_string().contains('1'));
    refused(inbox.answer("q", &accept(&"x".repeat(60))).unwrap_err(), 60);
    inbox.acknowledge("q", ElicitAction::Cancel).unwrap();
    inbox.publish(&entry("r")).unwrap();
}

#[test]
fn what_has_ended_is_remembered_up_to_a_number() {
    let folder = Folder::new("remembered");
    let inbox =
        SqliteInbox::open_with(folder.file(), Options { max_ended: 2, ..Options::default() }).unwrap();
    for id in ["a", "b", "c"] {
        inbox.publish(&entry(id)).unwrap();
        inbox.acknowledge(id, ElicitAction::Accept).unwrap();
    }
    let known = ["a", "b", "c"].iter().filter(|id| inbox.answer(id, &accept("7")).unwrap() != Given::Unknown);
    assert_eq!(known.count(), 2);
}

#[test]
fn an_id_is_published_once() {
    let folder = Folder::new("twice");
    let inbox = folder.open();
    inbox.publish(&entry("q")).unwrap();
    assert!(inbox.publish(&entry("q")).is_err());
}

#[test]
fn a_call_is_claimed_once_when_all_is_answered() {
    let folder = Folder::new("call");
    let (first, second) = (folder.open(), folder.open());
    let questions = ["a", "b"].map(|key| StoredQuestion::new(key, entry(&format!("c-{key}"))));
    first.put_away(&StoredCall::new("c", "hotel", "{}"), &questions).unwrap();
    assert_eq!(second.open_questions().unwrap()[0].call(), Some("c"));
    second.answer("c-a", &accept("7")).unwrap();
    assert!(first.answered_calls().unwrap().is_empty());
    assert!(first.claim("c").unwrap().is_none(), "one answer is missing");
    second.answer("c-b", &ElicitResult::decline()).unwrap();
    assert!(first.answers(&["c-a", "c-b"]).unwrap().is_empty(), "answers of a call go with the call");
    assert_eq!(second.answered_calls().unwrap(), ["c"]);

    let mut claimed = second.claim("c").unwrap().unwrap();
    claimed.answers.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("a".to_owned(), accept("7")), ("b".to_owned(), ElicitResult::decline())];
    assert_eq!(claimed.answers, expected);
    assert!(first.claim("c").unwrap().is_none(), "it is the other's");
    assert_eq!(first.unfinished_calls().unwrap().len(), 1);

    second.ask_again("c", "room is unknown").unwrap();
    assert_eq!(first.open_questions().unwrap()[0].refusal(), Some("room is unknown"));
    first.ask_again("c", "not mine to say").unwrap();
    for id in ["c-a", "c-b"] {
        first.answer(id, &ElicitResult::cancel()).unwrap();
    }
    assert!(first.claim("c").unwrap().is_some());
    first.finish("c").unwrap();
    assert!(first.unfinished_calls().unwrap().is_empty());
    assert!(second.claim("c").unwrap().is_none());
    assert_eq!(second.answer("c-a", &accept("7")).unwrap(), told(End::FlowEnded));
}

#[test]
fn files_of_others_and_of_newer_versions_are_left_alone() {
    let folder = Folder::new("foreign");
    std::fs::write(
        folder.file(),
        "this is a diary and no database, and long enough for its header to be looked at".repeat(20),
    )
    .unwrap();
    assert_eq!(SqliteInbox::open(folder.file()).unwrap_err().kind(), ErrorKind::Foreign);

    let other = folder.0.join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    assert_eq!(SqliteInbox::open(&other).unwrap_err().kind(), ErrorKind::Foreign);

    let newer = folder.0.join("newer.db");
    drop(SqliteInbox::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(SqliteInbox::open(&newer).unwrap_err().kind(), ErrorKind::Newer { found: 99, .. }));

    assert!(SqliteInbox::open(folder.0.join("missing/inbox.db")).is_err());
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("private");
    let inbox = folder.open();
    inbox.publish(&entry("q")).unwrap();
    for found in std::fs::read_dir(&folder.0).unwrap() {
        let mode = found.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[test]
fn an_entry_of_somebody_elses_making_is_an_error_and_no_panic() {
    let folder = Folder::new("odd");
    let inbox = folder.open();
    inbox.publish(&entry("q")).unwrap();
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("UPDATE questions SET params = 'no json'").unwrap();
    inbox.publish(&entry("r")).unwrap();
    other
        .execute_batch(
            "INSERT INTO questions (id, owner, server, revision, params, published_ms, state)
             VALUES ('null', 'x', 's', '2025-11-25', NULL, 0, 'open'), ('newer', 'x', 's', '9999-01-01', '{}', 0, 'open')",
        )
        .unwrap();
    let open = inbox.open_questions().unwrap();
    assert_eq!((open.len(), open[0].entry().id.as_str()), (1, "r"), "one that cannot be read hides no other");
    other.execute_batch("UPDATE questions SET state = 'answered' WHERE id = 'r'").unwrap();
    assert_eq!(inbox.answers(&["r"]).unwrap()[0].answer, ElicitResult::cancel(), "an answer that is none");
    other
        .execute_batch("UPDATE questions SET state = 'answered', answer = 'no json' WHERE id = 'q'")
        .unwrap();
    assert_eq!(inbox.answers(&["q"]).unwrap()[0].answer, ElicitResult::cancel());
}

#[test]
fn a_file_that_somebody_holds_is_busy_in_time() {
    let folder = Folder::new("busy");
    let options = Options { busy_timeout: Duration::from_millis(20), ..Options::default() };
    let inbox = SqliteInbox::open_with(folder.file(), options).unwrap();
    let holder = Connection::open(folder.file()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(inbox.answer("q", &accept("7")).unwrap_err().kind(), ErrorKind::Busy);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(inbox.answer("q", &accept("7")).unwrap(), Given::Unknown);
}

#[test]
fn debug_shows_no_content() {
    let call = StoredCall::new("c", "hotel", "confidential");
    assert!(!format!("{call:?}").contains("confidential"));
}
