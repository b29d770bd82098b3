//! What is started, with what environment, and what is said when it cannot be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_transport::{
    ErrorKind, SpawnFailure,
    stdio::{InheritEnv, StdioServer},
};
use serde_json::{Value, json};

use super::support::{Folder, Session, gone, peer, sh, within};

fn failure_of(server: &StdioServer) -> (SpawnFailure, String) {
    let error = server.spawn().expect_err("it must not start");
    match error.kind() {
        ErrorKind::Spawn(failure) => (failure, error.to_string()),
        other => panic!("{other:?}: {error}"),
    }
}

#[tokio::test]
async fn arguments_arrive_unchanged() {
    // auth:SEC-08
    let args = [
        "a b",
        "",
        "\"q\" 'q'",
        "; rm -rf ~",
        "& | > <",
        "$(id) `id` $HOME",
        "line\nbreak",
        "%PATH%",
        "\\",
        "漢",
    ];
    let mut session = Session::start(&peer().args(args));
    assert_eq!(session.ask("args").await, json!(args));
}

/// protocol:T-11
#[tokio::test]
async fn fr_022_the_environment_is_the_safe_subset_and_what_was_given() {
    // field:FR-022, protocol:T-17, auth:SEC-08
    async fn names(server: StdioServer) -> Vec<String> {
        let list = Session::start(&server).ask("env").await;
        let list: Vec<String> = serde_json::from_value(list).unwrap();
        list.into_iter().map(|entry| entry.split('=').next().unwrap().to_owned()).collect()
    }
    const SAFE: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    // Any other variable of ours stands for the secrets among them.
    let canary = std::env::vars().map(|(name, _)| name).find(|name| !SAFE.contains(&name.as_str()));
    let canary = canary.expect("the test has an environment of its own");

    let default = names(peer()).await;
    assert!(default.iter().all(|name| SAFE.contains(&name.as_str())), "{default:?}");
    assert!(default.contains(&"PATH".to_owned()));
    let merged = names(peer().env("A", "1")).await;
    assert_eq!(merged.len(), default.len() + 1);
    assert!(merged.contains(&"A".to_owned()));
    let cleared = names(peer().env("A", "1").inherit_env(InheritEnv::Nothing)).await;
    assert_eq!(cleared, ["A"]);
    let all = names(peer().env("A", "1").inherit_env(InheritEnv::All)).await;
    assert!(all.contains(&canary) && all.contains(&"A".to_owned()));
}

#[tokio::test]
async fn fr_022_a_missing_directory_and_a_missing_command_are_two_errors() {
    // field:FR-022
    let (failure, text) = failure_of(&peer().current_dir("/no/such/folder"));
    assert_eq!(failure, SpawnFailure::WorkingDirectory, "{text}");
    let (failure, text) = failure_of(&StdioServer::new("no-such-program-anywhere").current_dir("/"));
    assert_eq!(failure, SpawnFailure::NotFound, "{text}");
    assert!(text.contains("no-such-program-anywhere"), "{text}");
    let (failure, text) = failure_of(&peer().current_dir("/etc/passwd"));
    assert_eq!(failure, SpawnFailure::WorkingDirectory, "{text}");
    let (failure, text) = failure_of(&StdioServer::new("/no/such/program"));
    assert_eq!(failure, SpawnFailure::NotFound, "{text}");
}

/// field:FR-022: what many write into a configuration. What follows the space is not shown: it may be a secret.
#[tokio::test]
async fn fr_022_a_command_line_in_place_of_a_program_is_told_where_its_arguments_go() {
    for program in
        ["no-such-program -y server --token=secret", "/no/such/program --token=secret", "a\tsecret"]
    {
        let (failure, text) = failure_of(&StdioServer::new(program));
        assert_eq!(failure, SpawnFailure::NotFound, "{text}");
        assert!(
            text.contains("; if arguments follow the space in its name, they go into `args`, one by one"),
            "{text}"
        );
        let word = program.split_whitespace().next().unwrap();
        assert!(text.starts_with(&format!("program \"{word} …\" ")) && !text.contains("secret"), "{text}");
    }
    // Whatever keeps it from being started: a token is longer than a file name may be.
    let token = format!("/usr/bin/env --token={}", "secret".repeat(100));
    let (failure, text) = failure_of(&StdioServer::new(&token));
    assert_eq!(failure, SpawnFailure::Os, "{text}");
    assert!(text.starts_with("program \"/usr/bin/env …\" cannot be started; if arguments follow"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    // As a shell would read it.
    let (_, text) = failure_of(&StdioServer::new("API_KEY=secret npx server"));
    assert!(text.starts_with("program \"API_KEY=…\" was not found in PATH; if arguments follow"), "{text}");
    // A program may have a space in its name.
    let folder = Folder::new("spaces");
    folder.file("a program", "#!/bin/sh\nexec \"$PEER\"\n", 0o755);
    let server = StdioServer::new("a program").env("PATH", folder.path()).env("PEER", peer().program());
    assert_eq!(Session::start(&server).ask("ping").await, "ping");
}

#[tokio::test]
async fn fr_022_a_relative_command_is_taken_from_the_working_directory() {
    // field:FR-022
    let folder = Folder::new("relative");
    folder.file("run.sh", "#!/bin/sh\nexec \"$PEER\"\n", 0o755);
    let server = StdioServer::new("./run.sh").current_dir(folder.path()).env("PEER", peer().program());
    let here = std::fs::canonicalize(folder.path()).unwrap();
    assert_eq!(Session::start(&server).ask("cwd").await, json!(here.to_str().unwrap()));
}

#[tokio::test]
async fn fr_014_the_program_is_looked_up_on_the_path_of_the_child() {
    // field:FR-014
    let folder = Folder::new("path");
    folder.file("only-on-the-childs-path", "#!/bin/sh\nexec \"$PEER\"\n", 0o755);
    let server = StdioServer::new("only-on-the-childs-path").env("PEER", peer().program());
    assert_eq!(failure_of(&server).0, SpawnFailure::NotFound);
    let path = format!("/no/such/folder::.:{}:/bin", folder.path().display());
    assert_eq!(Session::start(&server.env("PATH", path)).ask("ping").await, "ping");
    // Without a PATH, the system's own programs are found all the same.
    let mut session =
        Session::start(&sh("exec \"$PEER\"").env("PEER", peer().program()).inherit_env(InheritEnv::Nothing));
    assert_eq!(session.ask("ping").await, "ping");
}

#[tokio::test]
async fn fr_014_relative_entries_of_the_path_are_skipped() {
    // field:FR-014, auth:SEC-08
    let folder = Folder::new("dot");
    folder.file("in-the-folder", "#!/bin/sh\nexec cat\n", 0o755);
    for path in [".", "", ":", "./"] {
        let server = StdioServer::new("in-the-folder").current_dir(folder.path()).env("PATH", path);
        assert_eq!(failure_of(&server).0, SpawnFailure::NotFound, "{path:?}");
    }
}

#[tokio::test]
async fn reasons_why_a_program_cannot_run_are_told_apart() {
    let folder = Folder::new("reasons");
    let check = |server: StdioServer, expected: SpawnFailure, why: &str| {
        let (failure, text) = failure_of(&server);
        assert_eq!((failure, &*text), (expected, &*format!("program {:?} {why}", server.program())));
    };
    let plain = folder.file("plain", "#!/bin/sh\n", 0o644);
    let denied = "has no permission to be executed";
    check(StdioServer::new(&plain), SpawnFailure::PermissionDenied, denied);
    let (failure, said) = failure_of(&StdioServer::new("plain").env("PATH", folder.path()));
    assert_eq!((failure, said), (SpawnFailure::PermissionDenied, format!("program {plain:?} {denied}")));
    check(StdioServer::new(folder.path()), SpawnFailure::PermissionDenied, "is a directory");
    let text = folder.file("text", "just some text\n", 0o755);
    let no_program = "is neither a program for this machine nor begins with a `#!` line";
    check(StdioServer::new(&text), SpawnFailure::NotExecutable, no_program);
    check(StdioServer::new(&text).current_dir("/"), SpawnFailure::NotExecutable, no_program);
    let on_path = StdioServer::new("text").env("PATH", folder.path());
    check(on_path, SpawnFailure::NotExecutable, no_program);
    let script = folder.file("script", "#!/no/such/interpreter\n", 0o755);
    let no_interpreter = "names an interpreter (`#!` line or loader) that does not exist";
    check(StdioServer::new(&script), SpawnFailure::NotExecutable, no_interpreter);
}

#[tokio::test]
async fn what_cannot_be_passed_is_misuse() {
    for server in [
        peer().arg("a\0b"),
        peer().env("A=B", "1"),
        peer().env("A", "\0"),
        StdioServer::new(""),
        StdioServer::new("a\0"),
    ] {
        assert_eq!(server.spawn().expect_err("it must not start").kind(), ErrorKind::Misuse, "{server:?}");
    }
}

#[test]
fn outside_a_runtime_nothing_is_started() {
    let error = peer().spawn().expect_err("there is no runtime");
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn fr_011_a_server_that_exits_at_once_is_told_without_a_wait() {
    // field:FR-011, seed:B29
    let mut session = Session::start(&sh("echo 'no such database' >&2; exit 3"));
    let error = session.end().await;
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(error.exit().and_then(|exit| exit.code()), Some(3));
    assert_eq!(error.stderr_tail(), Some("no such database\n"));
    let text = error.to_string();
    assert!(text.contains("exit code 3") && text.contains("no such database"), "{text}");
    // Later calls fail the same way, and it is known that they did not arrive.
    let later = session.send("late").await.unwrap_err();
    assert_eq!(
        (later.kind(), later.exit(), later.outcome_unknown()),
        (ErrorKind::Closed, error.exit(), false)
    );
}

#[tokio::test]
async fn a_server_can_be_started_again_after_it_died() {
    // protocol:T-15; what an era probe needs: a line before `initialize`, an early exit, another start.
    let server = peer();
    let mut pids = Vec::<Value>::new();
    for _ in 0..2 {
        let mut session = Session::start(&server);
        let pid = session.ask("pid").await;
        assert!(!pids.contains(&pid));
        pids.push(pid);
        session.send("exit/7").await.unwrap();
        assert_eq!(session.end().await.exit().and_then(|exit| exit.code()), Some(7));
    }
    for pid in pids {
        gone(u32::try_from(pid.as_u64().unwrap()).unwrap()).await;
    }
}

#[tokio::test]
async fn lines_of_standard_error_are_offered_to_the_hook() {
    // protocol:T-06
    let (seen, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let server = sh("printf 'one\\r\\n\\377two\\n' >&2; printf 'a tail' >&2; cat >/dev/null")
        .on_stderr(move |line| drop(seen.send(line.to_owned())));
    let session = Session::start(&server);
    assert_eq!(within(lines.recv()).await.as_deref(), Some("one"));
    assert_eq!(within(lines.recv()).await.as_deref(), Some("\u{fffd}two"));
    within(session.sender.close()).await;
    assert_eq!(within(lines.recv()).await.as_deref(), Some("a tail"));
}

#[tokio::test]
async fn a_hook_that_panics_does_not_take_the_connection_along() {
    let called = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&called);
    let mut session = Session::start(&peer().on_stderr(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        panic!("the hook's own fault")
    }));
    assert_eq!(session.ask("stderr/100000").await, "after the log");
    assert_eq!(session.ask("stderr/100000").await, "after the log");
    assert!(called.load(Ordering::SeqCst) > 0);
}
