//! The one program that visits servers of both eras over both transports, and must see the same everywhere.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::left::Mark;
use super::{Peer, Transport, VISIT_LIMIT, serve};
use crate::support::peers;
use crate::support::process::{self, Background, End, Output};

/// What a server of ours says when a stream that was cut is continued; see `tests/peers/servers`.
const CONTINUED: &str = "continued after an event";
/// The revisions whose streams can be continued, over HTTP.
const CONTINUES: &[&str] = &["2025-11-25"];
/// How long it may take from what a server writes to what is known of it here.
const SAID_LIMIT: Duration = Duration::from_secs(20);

pub(super) fn visit(peer: &Peer, program: &Path, version: &str) -> Result<(), String> {
    let path = peers::folder().join("servers/expected.jsonl");
    let expected = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mark = Mark::new();
    let server = if peer.transport == Transport::Http { Some(serve(peer, &mark)?) } else { None };
    let mut command = Command::new(program);
    // It hands the mark on to the server that it starts.
    command.current_dir(&peer.folder).envs(mark.as_str().split_once('='));
    match &server {
        Some((_, url)) => command.args(["http", url]),
        None => command.arg("stdio").args(&peer.command),
    };
    let finished = process::run(command, VISIT_LIMIT, Output::Capture);
    let outcome = match &finished.end {
        End::Exited(status) if status.success() => compare(&finished.stdout, &expected, version),
        other => Err(other.to_string()),
    };
    let outcome = outcome.and_then(|()| match &server {
        Some((server, _)) => continued(&said(server, CONTINUES.contains(&version)), version),
        None => Ok(()),
    });
    drop(server);
    let tail = || format!("{}\n{}", process::tail(&finished.stdout, 3), process::tail(&finished.stderr, 8));
    outcome.and(mark.is_gone()).map_err(|why| format!("{why}\n{}", tail()))
}

/// The first line says what the server speaks; all others must be as expected.
fn compare(seen: &str, expected: &str, version: &str) -> Result<(), String> {
    let (facts, seen) = seen.split_once('\n').ok_or("the program printed nothing")?;
    let facts: Value = serde_json::from_str(facts).map_err(|error| format!("{facts}: {error}"))?;
    if facts.pointer("/facts/version").and_then(Value::as_str) != Some(version) {
        return Err(format!("it should speak {version}: {facts}"));
    }
    let deviation = seen.lines().zip(expected.lines()).find(|(seen, expected)| seen != expected);
    if let Some((seen, expected)) = deviation {
        return Err(format!("the program saw     {seen}\nwhere it should see {expected}"));
    }
    let (seen, expected) = (seen.lines().count(), expected.lines().count());
    if seen == expected { Ok(()) } else { Err(format!("{seen} steps in place of {expected}")) }
}

/// What the server has said. Of something that is due it waits a while: what was written may not have been read yet.
fn said(server: &Background, is_continued: bool) -> String {
    let deadline = Instant::now() + SAID_LIMIT;
    loop {
        let said = server.so_far();
        if said.contains(CONTINUED) || !is_continued || Instant::now() >= deadline {
            return said;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A stream was cut and continued exactly where that can be.
fn continued(said: &str, version: &str) -> Result<(), String> {
    let due = CONTINUES.contains(&version);
    match (said.contains(CONTINUED), due) {
        (true, false) => Err("a stream was continued in an era that cannot".into()),
        (false, true) => Err("the stream that was cut was not continued".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: &str = "{\"facts\":{\"version\":\"2026-07-28\"}}\n{\"step\":1}\n{\"step\":2}\n";

    #[test]
    fn the_same_steps_in_the_right_era_pass_and_every_deviation_fails() {
        let expected = "{\"step\":1}\n{\"step\":2}\n";
        assert_eq!(compare(SEEN, expected, "2026-07-28"), Ok(()));
        assert!(compare(SEEN, expected, "2025-11-25").is_err());
        assert!(
            compare(SEEN, "{\"step\":1}\n{\"step\":3}\n", "2026-07-28").unwrap_err().contains("step\":3")
        );
        assert!(compare(SEEN, "{\"step\":1}\n", "2026-07-28").is_err());
        assert!(compare(SEEN, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n", "2026-07-28").is_err());
        assert!(compare("", expected, "2026-07-28").is_err());
    }

    #[test]
    fn a_cut_stream_is_continued_where_it_can_be_and_nowhere_else() {
        assert_eq!(continued(CONTINUED, "2025-11-25"), Ok(()));
        assert_eq!(continued("", "2026-07-28"), Ok(()));
        assert!(continued("", "2025-11-25").is_err());
        assert!(continued(CONTINUED, "2026-07-28").is_err());
    }
}
