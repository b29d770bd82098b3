//! `kill -9` at every step and at any moment: what was promised is there, and nothing is answered twice.
//!
//! The processes that die are this test program, started again with a role in its environment.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_elicitation::{ElicitAction, ElicitRequest, ElicitResult, End, Inbox, InboxEntry, Revision};
use mcp_inbox_sqlite::{EndedAs, Given, Options, SqliteInbox, StoredCall, StoredQuestion};

const ROLE: &str = "INBOX_TEST_ROLE";
const FILE: &str = "INBOX_TEST_FILE";
const FORM: &str =
    r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#;

fn entry(id: &str) -> InboxEntry {
    let revision = Revision::V2026_07_28;
    InboxEntry::new(id, "srv", revision, &ElicitRequest::parse(FORM, revision).unwrap())
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mcp-inbox-crash-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Waits for the others for as long as a busy machine keeps them from writing.
fn open(file: &Path) -> Result<SqliteInbox, mcp_inbox_sqlite::Error> {
    let mut options = Options::default();
    options.busy_timeout = Duration::from_secs(120);
    SqliteInbox::open_with(file, options)
}

/// Says what has returned, in a form that a dying process cannot leave half said.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn start(role: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_role_of_a_process_that_dies", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a process said before it was killed; `until` is told each line and says when to kill.
fn kill_when(mut child: Child, mut until: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut said = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        let Some(line) = line.strip_prefix('@') else { continue };
        said.push(line.to_owned());
        if until(line) {
            break;
        }
    }
    child.kill().unwrap();
    // What it said between our look and its death.
    said.extend(lines.map_while(Result::ok).filter_map(|line| line.strip_prefix('@').map(str::to_owned)));
    child.wait().unwrap();
    said
}

#[test]
fn the_role_of_a_process_that_dies() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else { return };
    let inbox = open(Path::new(&file)).unwrap();
    match role.as_str() {
        "published" | "taken" | "acknowledged" => {
            // Goes no further than it is to, however late the end comes.
            inbox.publish(&entry("q")).unwrap();
            say("published");
            if role != "published" {
                while inbox.answers(&["q"]).unwrap().is_empty() {
                    std::thread::yield_now();
                }
                say("taken");
            }
            if role == "acknowledged" {
                inbox.acknowledge("q", ElicitAction::Accept).unwrap();
                say("acknowledged");
            }
        }
        "put away" => {
            let questions = [StoredQuestion::new("k", entry("c-k"))];
            inbox.put_away(&StoredCall::new("c", "srv", "data"), &questions).unwrap();
            say("put away");
        }
        "resume" => {
            let claimed = inbox.claim("c").unwrap();
            say(if claimed.is_some() { "claimed" } else { "not mine" });
            if claimed.is_some() && std::env::var("INBOX_TEST_FINISH").is_ok() {
                inbox.finish("c").unwrap();
                say("finished");
            }
        }
        "publish without end" => {
            let own = std::process::id();
            for number in 0.. {
                let id = format!("{own}-{number}");
                inbox.publish(&entry(&id)).unwrap();
                say(&id);
            }
        }
        "answer without end" => loop {
            for open in inbox.open_questions().unwrap() {
                let id = open.entry().id.clone();
                if inbox.answer(&id, &ElicitResult::decline()).unwrap() == Given::Recorded {
                    say(&id);
                }
            }
        },
        "claim all" => {
            for id in inbox.answered_calls().unwrap() {
                if inbox.claim(&id).unwrap().is_some() {
                    say(&id);
                }
            }
        }
        other => panic!("there is no role {other:?}"),
    }
    // The end comes from outside.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// seed:S-30: what was published is there after the asking process was killed, in whichever state it had.
#[test]
fn killed_at_each_step_the_question_is_as_it_was_said() {
    for (step, expected) in [
        ("published", Given::Recorded),
        ("taken", Given::AlreadyAnswered),
        ("acknowledged", Given::Ended(EndedAs::Told(End::Answered(ElicitAction::Accept)))),
    ] {
        let folder = folder(step);
        let file = folder.join("inbox.db");
        let answering = open(&file).unwrap();
        kill_when(start(step, &file), |line| {
            if line == "published" && step != "published" {
                assert_eq!(answering.answer("q", &ElicitResult::decline()).unwrap(), Given::Recorded);
            }
            line == step
        });
        assert_eq!(answering.answer("q", &ElicitResult::decline()).unwrap(), expected, "{step}");
        // A new start of the same program is another process: it never takes answers to questions that it did not ask.
        assert!(open(&file).unwrap().answers(&["q"]).unwrap().is_empty(), "{step}");
        drop(answering);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_call_survives_those_who_put_it_away_and_is_never_resumed_twice() {
    for finish in [false, true] {
        let folder = folder(if finish { "finish" } else { "claim" });
        let file = folder.join("inbox.db");
        kill_when(start("put away", &file), |line| line == "put away");
        let inbox = open(&file).unwrap();
        assert_eq!(inbox.open_questions().unwrap()[0].call(), Some("c"));
        assert_eq!(inbox.answer("c-k", &ElicitResult::decline()).unwrap(), Given::Recorded);
        let mut command = start_finishing("resume", &file, finish);
        let said =
            kill_when(command.take().unwrap(), |line| line == if finish { "finished" } else { "claimed" });
        assert_eq!(said.first().map(String::as_str), Some("claimed"));
        let again = kill_when(start("resume", &file), |line| !line.is_empty());
        assert_eq!(again, ["not mine"]);
        // Where it was not finished, that is told: the server may have got the answers or not.
        assert_eq!(inbox.unfinished_calls().unwrap().len(), usize::from(!finish));
        drop(inbox);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

fn start_finishing(role: &str, file: &Path, finish: bool) -> Option<Child> {
    if !finish {
        return Some(start(role, file));
    }
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_role_of_a_process_that_dies", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, file)
        .env("INBOX_TEST_FINISH", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .stdin(Stdio::piped())
        .spawn()
        .ok()
}

/// Kills publishers and answerers in the middle of whatever they do.
#[test]
fn killed_at_any_moment_nothing_is_lost_and_nothing_answered_twice() {
    let folder = folder("any");
    let file = folder.join("inbox.db");
    let watching = open(&file).unwrap();
    let (mut published, mut answered) = (HashSet::new(), HashSet::new());
    for round in 0..6_u64 {
        let publisher = start("publish without end", &file);
        let answerer = start("answer without end", &file);
        let until = Instant::now() + Duration::from_millis(20 + 13 * round);
        let mut said = 0;
        for id in kill_when(publisher, |_| {
            said += 1;
            said > 3 && Instant::now() >= until
        }) {
            assert!(published.insert(id), "an id is published once");
        }
        let mut said = 0;
        for id in kill_when(answerer, |_| {
            said += 1;
            said > 3
        }) {
            assert!(answered.insert(id.clone()), "{id} was answered twice");
        }
    }
    let open: HashSet<String> =
        watching.open_questions().unwrap().iter().map(|open| open.entry().id.clone()).collect();
    for id in &published {
        let is_open = open.contains(id);
        let state = watching.answer(id, &ElicitResult::cancel()).unwrap();
        match state {
            Given::Recorded => assert!(is_open && !answered.contains(id), "{id}"),
            // Either somebody said so, or died between doing it and saying it.
            Given::AlreadyAnswered => assert!(!is_open, "{id}"),
            other => panic!("{id} was published and is {other:?}"),
        }
    }
    assert!(!published.is_empty() && !answered.is_empty());
    drop(watching);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn of_many_processes_each_call_has_one_owner() {
    let folder = folder("owners");
    let file = folder.join("inbox.db");
    let inbox = open(&file).unwrap();
    for number in 0..20 {
        let question = [StoredQuestion::new("k", entry(&format!("{number}-k")))];
        inbox.put_away(&StoredCall::new(format!("{number}"), "srv", "data"), &question).unwrap();
        inbox.answer(&format!("{number}-k"), &ElicitResult::decline()).unwrap();
    }
    let children: Vec<Child> = (0..3).map(|_| start("claim all", &file)).collect();
    let mut claimed = HashSet::new();
    let mut all = Vec::new();
    for mut child in children {
        // Its input ends, and with it the process; then its output is complete.
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        all.extend(
            String::from_utf8_lossy(&output.stdout)
                .lines()
                .filter_map(|line| line.strip_prefix('@').map(str::to_owned)),
        );
    }
    for id in all {
        assert!(claimed.insert(id.clone()), "{id} was claimed twice");
    }
    assert_eq!(claimed.len(), 20);
    drop(inbox);
    std::fs::remove_dir_all(folder).unwrap();
}
