//! What becomes of a process: how it starts, when it dies, what it leaves behind.

use std::path::PathBuf;

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Launch, On, Outcome, Transport};
use crate::letters::RIGHT;
use crate::stdio_bytes::row;

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in [On::Initialize, On::Initialized, On::List, On::Call] {
        all.extend(deaths(on));
    }
    all.extend(starts());
    all.extend(ends());
    all
}

fn closed() -> Outcome {
    Outcome::fails(ErrorKind::Closed)
}

fn deaths(on: On) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let half = RIGHT.split_at(RIGHT.len() / 2).0;
    let right = format!("{RIGHT}\n");
    let before_aimed = matches!(on, On::Initialize | On::Initialized);
    for (how, death) in [("exit 0", Act::End), ("exit 3", Act::Exit(3)), ("abort", Act::Abort)] {
        let bytes = |text: &str| Act::Bytes(text.as_bytes().to_vec());
        let dying = |outcome| {
            let expect = Expect::fatal(on, outcome);
            // Where the handshake may succeed by chance, the calls find the connection closed.
            if before_aimed { Expect { aimed: closed(), ..expect } } else { expect }
        };
        if on == On::Initialized {
            let expect = dying(closed().or_ok());
            all.push(row(on, &format!("{how} at once"), vec![death.clone()], expect.clone()));
            all.push(row(
                on,
                &format!("noise, then {how}"),
                vec![bytes("noise\n"), death.clone()],
                expect.clone(),
            ));
            all.push(row(
                on,
                &format!("half a line, then {how}"),
                vec![bytes("{\"jsonrpc\":"), death.clone()],
                expect,
            ));
            continue;
        }
        let unread = Outcome::one_of(&[ErrorKind::Closed, ErrorKind::PeerMisbehaved]);
        let after = if on == On::Initialize { closed().or_ok() } else { Outcome::ok() };
        let stderr = Act::Stderr(b"fatal: \x1b[31mout of luck\x1b[0m\n".to_vec(), 100_000);
        for (name, acts, expect) in [
            (format!("{how} at once"), vec![], dying(closed())),
            (format!("last words, then {how}"), vec![stderr], dying(closed())),
            (format!("noise, then {how}"), vec![bytes("noise\n")], dying(closed())),
            (format!("half the answer, then {how}"), vec![bytes(half)], dying(unread)),
            (format!("the answer, then {how}"), vec![bytes(&right)], dying(after.clone())),
            (format!("the answer without line end, then {how}"), vec![bytes(RIGHT)], dying(after)),
        ] {
            let acts = acts.into_iter().chain([death.clone()]).collect();
            all.push(row(on, &name, acts, expect));
        }
        if !before_aimed {
            let acts = vec![Act::Release, death.clone()];
            let expect = Expect { other: Outcome::ok(), ..dying(closed()) };
            all.push(row(on, &format!("the other answer, then {how}"), acts, expect));
        }
    }
    all
}

fn launched(name: &str, launch: Launch, expect: Expect) -> Behaviour {
    let mut behaviour =
        Behaviour::new(Transport::Stdio, On::Initialize, name, Vec::new(), expect).launched(launch);
    // Where the peer itself runs, it is an honest one.
    behaviour.rules.clear();
    behaviour
}

/// Programs that are no server, or not for long.
fn starts() -> Vec<Behaviour> {
    let failing = |outcome| Expect::confined(On::Initialize, outcome);
    let (timeout, transport) = (Outcome::fails(ErrorKind::Timeout), Outcome::fails(ErrorKind::Transport));
    let mut all: Vec<Behaviour> = [
        ("exit 0 unread", "exit 0"),
        ("exit 1 unread", "exit 1"),
        ("exit 2 unread", "exit 2"),
        ("exit 42 unread", "exit 42"),
        ("exit 126 unread", "exit 126"),
        ("exit 127 unread", "exit 127"),
        ("exit 255 unread", "exit 255"),
        ("exit with a message", "echo 'no such database' >&2; exit 3"),
        ("exit with a usage text on standard output", "echo 'usage: server [options]'; exit 2"),
        ("exit after half a line", "printf '{\"jsonrpc\"'; exit 0"),
        ("exit after a flood of errors", "head -c 500000 /dev/zero >&2; exit 1"),
        ("exit after reading", "read line; exit 0"),
        ("command not found inside", "no-such-command-here"),
        ("killed", "kill -KILL $$"),
        ("terminated", "kill -TERM $$"),
        ("hung up", "kill -HUP $$"),
        ("interrupted", "kill -INT $$"),
        ("fault of memory", "kill -SEGV $$"),
        ("aborted", "kill -ABRT $$"),
        ("broken pipe", "kill -PIPE $$"),
        ("output closed, alive", "exec >&-; exec sleep 60"),
        ("input and output closed, alive", "exec <&- >&-; exec sleep 60"),
        ("output closed after reading, alive", "read line; exec >&-; exec sleep 60"),
    ]
    .into_iter()
    .map(|(name, script)| launched(name, Launch::Shell(script), failing(closed())))
    .collect();
    for (name, script, outcome) in [
        ("silent", "exec sleep 60", timeout.clone()),
        ("silent and deaf to signals", "trap '' TERM INT HUP; while :; do sleep 1; done", timeout.clone()),
        ("stopped", "kill -STOP $$", timeout.clone()),
        ("an endless line", "exec cat /dev/zero", timeout.clone()),
        ("endless lines", "exec yes", timeout.clone()),
        ("endless errors", "yes >&2 & exec sleep 60", timeout.clone()),
        ("endless errors, output closed", "exec yes >&2", closed()),
        (
            "input closed, alive",
            "exec <&-; exec sleep 60",
            Outcome::one_of(&[ErrorKind::Timeout, ErrorKind::Closed]),
        ),
        // It asks us to initialize, and our refusal comes back as its own.
        ("an echo", "exec cat", Outcome::fails(ErrorKind::Rpc)),
    ] {
        all.push(launched(name, Launch::Shell(script), failing(outcome)));
    }
    for (name, program) in [
        ("no such program", "/nonexistent/program"),
        ("no such name on the path", "mcp-no-such-server-here"),
        ("a folder", "/"),
        ("a file that is no program", "/etc/passwd"),
    ] {
        all.push(launched(name, Launch::Program(PathBuf::from(program)), failing(transport.clone())));
    }
    let misuse = failing(Outcome::fails(ErrorKind::Misuse));
    all.push(launched("an empty name", Launch::Program(PathBuf::new()), misuse));
    all.push(launched("no such working folder", Launch::NoFolder, failing(transport)));
    all
}

/// An honest server in bad company: all goes well, and closing is bounded.
fn ends() -> Vec<Behaviour> {
    [
        ("a banner first", "echo 'Widget server v1.0 started OK'; exec \"$0\" \"$@\""),
        ("a banner in colours", "printf '\\033[32mINFO\\033[0m up\\n'; exec \"$0\" \"$@\""),
        ("a banner without line end on standard error", "printf up >&2; exec \"$0\" \"$@\""),
        ("logs beside it", "(while echo log; do sleep 0.01; done) >&2 & exec \"$0\" \"$@\""),
        ("lines beside it", "(while echo line; do sleep 0.01; done) & exec \"$0\" \"$@\""),
        ("a pipe behind it", "\"$0\" \"$@\" | cat"),
        ("a pipe before it", "cat | \"$0\" \"$@\""),
        ("stays after its end", "\"$0\" \"$@\"; exec sleep 60"),
        ("stays and ignores signals", "trap '' TERM INT HUP; \"$0\" \"$@\"; while :; do sleep 1; done"),
        ("fails at its end", "\"$0\" \"$@\"; exit 9"),
        ("crashes at its end", "\"$0\" \"$@\"; kill -SEGV $$"),
        ("floods at its end", "\"$0\" \"$@\"; exec yes"),
        ("floods errors at its end", "\"$0\" \"$@\"; exec yes >&2"),
        ("closes its output and stays", "\"$0\" \"$@\"; exec >&-; exec sleep 60"),
        ("leaves a child with its pipes", "sleep 60 & exec \"$0\" \"$@\""),
        ("leaves a child of another group with its pipes", "setsid sleep 5 & exec \"$0\" \"$@\""),
        ("stops at its end", "\"$0\" \"$@\"; kill -STOP $$"),
    ]
    .into_iter()
    .map(|(name, script)| launched(name, Launch::Shell(script), Expect::all_well()))
    .collect()
}
