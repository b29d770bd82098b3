//! What a process can write on its standard output and error while it lives.

use std::time::Duration;

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, On, Outcome, Transport};
use crate::letters::{self, Effect, LOG, Letter, RIGHT};
use crate::visit::MAX_MESSAGE;

/// Where an answer is due.
const ANSWERED: [On; 3] = [On::Initialize, On::List, On::Call];

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in ANSWERED {
        for letter in letters::for_any().into_iter().chain(letters::results_for(on)) {
            all.extend(beside_the_answer(on, &letter));
            let expect = Expect::confined(on, outcome(letter.shared));
            all.push(row(on, &letter.name, vec![lines(&letter.messages)], expect));
        }
        all.extend(framing(on));
        all.extend(floods(on));
    }
    all.extend(late());
    all.extend(progress());
    all.extend(questions());
    all
}

pub(crate) fn row(on: On, name: &str, acts: Vec<Act>, expect: Expect) -> Behaviour {
    Behaviour::new(Transport::Stdio, on, name, acts, expect)
}

fn well(on: On, name: &str, acts: Vec<Act>) -> Behaviour {
    row(on, name, acts, Expect::all_well())
}

pub(crate) fn outcome(effect: Effect) -> Outcome {
    match effect {
        Effect::Answers => Outcome::ok(),
        Effect::Misses => Outcome::fails(ErrorKind::Timeout),
        Effect::Refuses => Outcome::fails(ErrorKind::Rpc),
        Effect::Spoils => Outcome::fails(ErrorKind::PeerMisbehaved),
        Effect::Unsupported => Outcome::fails(ErrorKind::UnsupportedVersion),
    }
}

pub(crate) fn lines(messages: &[Vec<u8>]) -> Act {
    let mut bytes = messages.join(&b'\n');
    bytes.push(b'\n');
    Act::Bytes(bytes)
}

fn text(text: &str) -> Act {
    Act::Bytes(text.as_bytes().to_vec())
}

fn line(message: &str) -> Act {
    text(&format!("{message}\n"))
}

/// What is no answer harms none: not before the answer, not after it. After it, nothing does.
fn beside_the_answer(on: On, letter: &Letter) -> Vec<Behaviour> {
    let mut all = Vec::new();
    if letter.messages.len() == 1 && letter.shared == Effect::Misses {
        let acts = vec![lines(&letter.messages), Act::Proper];
        all.push(well(on, &format!("{}, then the answer", letter.name), acts));
    }
    if letter.messages.len() == 1 && on == On::Call {
        let acts = vec![Act::Proper, lines(&letter.messages)];
        all.push(well(on, &format!("the answer, then {}", letter.name), acts));
    }
    all
}

fn framing(on: On) -> Vec<Behaviour> {
    let pause = Duration::from_millis(1);
    let padded = |size: usize| {
        let frame = r#"{"jsonrpc":"2.0","id":$ID,"x":"","result":$RESULT}"#;
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(size)))
    };
    let over = vec![line(&padded(MAX_MESSAGE))];
    let timeout = Expect::confined(on, Outcome::fails(ErrorKind::Timeout));
    let oversized = match on {
        // Its deadline is short.
        On::Initialize => Outcome::one_of(&[ErrorKind::LimitExceeded, ErrorKind::Timeout]),
        _ => Outcome::fails(ErrorKind::LimitExceeded),
    };
    vec![
        well(on, "lines that end in CR LF", vec![text(&format!("\r\n{RIGHT}\r\n\r\n"))]),
        well(on, "blank lines", vec![text("\n\n \n\t\n\r\n"), Act::Proper, text("\n")]),
        well(on, "ten thousand blank lines", vec![Act::Flood(b"\n".to_vec(), 10_000), Act::Proper]),
        well(on, "header lines of another framing", vec![text("Content-Length: 87\r\n\r\n"), Act::Proper]),
        well(on, "byte by byte", vec![Act::Drip(format!("{RIGHT}\n").into_bytes(), pause)]),
        well(on, "a large answer", vec![line(&padded(MAX_MESSAGE / 2))]),
        row(on, "an answer over the limit", over, Expect::confined(on, oversized)),
        row(on, "silence", Vec::new(), timeout.clone()),
        row(on, "a line feed only", vec![text("\n")], timeout.clone()),
        row(on, "carriage returns only", vec![text(&format!("{RIGHT}\r{LOG}\r\n"))], spoilt(on)),
    ]
}

fn spoilt(on: On) -> Expect {
    Expect::confined(on, Outcome::fails(ErrorKind::PeerMisbehaved))
}

fn floods(on: On) -> Vec<Behaviour> {
    let flood = |piece: &str, bytes: usize| Act::Flood(piece.as_bytes().to_vec(), bytes);
    let unknown = format!("{}\n", r#"{"jsonrpc":"2.0","id":88888,"result":{}}"#);
    let question = format!(
        "{}\n",
        r#"{"jsonrpc":"2.0","id":"f","method":"elicitation/create","params":{"message":"m"}}"#
    );
    vec![
        well(
            on,
            "500 kB of noise",
            vec![flood("2026-01-01 INFO to the wrong stream\n", 500_000), Act::Proper],
        ),
        well(on, "2 MB on one line", vec![flood("xxxxxxxxxxxxxxxx", 2_000_000), text("\n"), Act::Proper]),
        well(on, "2 MB of brackets", vec![flood("[[[[[[[[[[[[[[[[", 2_000_000), text("\n"), Act::Proper]),
        well(on, "2 MB on standard error", vec![Act::Stderr(b"DEBUG x\n".to_vec(), 2_000_000), Act::Proper]),
        well(
            on,
            "2 MB on one line of standard error",
            vec![Act::Stderr(vec![b'x'; 64], 2_000_000), Act::Proper],
        ),
        well(on, "1 MB of nul", vec![flood("\0\0\0\0\0\0\0\0", 1_000_000), text("\n"), Act::Proper]),
        well(on, "5000 logs", vec![flood(&format!("{LOG}\n"), 5000 * (LOG.len() + 1)), Act::Proper]),
        well(on, "5000 answers to nobody", vec![flood(&unknown, 5000 * unknown.len()), Act::Proper]),
        well(on, "200 broken questions", vec![flood(&question, 200 * question.len()), Act::Proper]),
    ]
}

/// The server comes back to a call that was given up.
fn late() -> Vec<Behaviour> {
    let timeout = |on| Expect::confined(on, Outcome::fails(ErrorKind::Timeout));
    let mut all = Vec::new();
    for on in [On::List, On::Call] {
        let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32800,"message":"cancelled"}}"#;
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":9}}"#;
        for (name, acts) in [
            ("an answer after the cancellation", vec![Act::UntilCancelled, Act::Proper]),
            ("an error after the cancellation", vec![Act::UntilCancelled, line(error)]),
            ("progress after the cancellation", vec![Act::UntilCancelled, line(progress)]),
            ("two answers after the cancellation", vec![Act::UntilCancelled, Act::Proper, Act::Proper]),
            ("noise after the cancellation", vec![Act::UntilCancelled, line("noise")]),
            (
                "a cut answer after the cancellation",
                vec![Act::UntilCancelled, line(r#"{"jsonrpc":"2.0","id":$ID,"#)],
            ),
        ] {
            all.push(row(on, name, acts, timeout(on)));
        }
        // Ids are the server's to mix up; a result is a result to whichever call it names.
        let swapped = format!("{}\n", r#"{"jsonrpc":"2.0","id":$OTHER,"result":{"content":[]}}"#);
        all.push(row(on, "the answer of the other call only", vec![text(&swapped)], timeout(on)));
        let both = vec![text(&swapped), Act::Proper];
        all.push(well(on, "the answers in the other order", both));
        let spoilt_other = line(r#"{"jsonrpc":"2.0","id":$OTHER,"result":[]}"#);
        let expect = Expect { other: Outcome::fails(ErrorKind::PeerMisbehaved), ..Expect::all_well() };
        all.push(row(on, "a broken answer to the other call", vec![spoilt_other, Act::Proper], expect));
        let refused_other = line(r#"{"jsonrpc":"2.0","id":$OTHER,"error":{"code":1,"message":"no"}}"#);
        let expect = Expect { other: Outcome::fails(ErrorKind::Rpc), ..Expect::all_well() };
        all.push(row(on, "an error to the other call", vec![refused_other, Act::Proper], expect));
        let deaf = vec![Act::Proper, Act::Release, Act::Deaf];
        let expect = Expect { after: Outcome::fails(ErrorKind::Timeout), ..Expect::all_well() };
        all.push(row(on, "the answer, then deaf for ever", deaf, expect));
        let expect =
            Expect { other: Outcome::ok(), after: Outcome::fails(ErrorKind::Timeout), ..timeout(on) };
        all.push(row(on, "deaf for ever", vec![Act::Release, Act::Deaf], expect));
    }
    all
}

/// Progress that no honest server sends never touches the call.
fn progress() -> Vec<Behaviour> {
    let params = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#) + "\n"
    };
    let of = |rest: &str| params(&format!(r#"{{"progressToken":$TOKEN,{rest}}}"#));
    let rows = [
        ("rising", of(r#""progress":1"#) + &of(r#""progress":2,"total":2"#)),
        ("falling", of(r#""progress":2"#) + &of(r#""progress":1"#) + &of(r#""progress":-5"#)),
        ("the same again", of(r#""progress":1"#).repeat(100)),
        ("text", of(r#""progress":"half""#)),
        ("null", of(r#""progress":null"#)),
        ("missing", params(r#"{"progressToken":$TOKEN}"#)),
        ("beyond floats", of(r#""progress":1e999"#)),
        ("total of text", of(r#""progress":1,"total":"many""#)),
        ("message of a number", of(r#""progress":1,"message":7"#)),
        ("message of 100 kB", of(&format!(r#""progress":1,"message":"{}""#, "m".repeat(100_000)))),
        ("token as text", params(r#"{"progressToken":"$TOKEN","progress":1}"#)),
        ("token null", params(r#"{"progressToken":null,"progress":1}"#)),
        ("token missing", params(r#"{"progress":1}"#)),
        ("token of the other call", params(r#"{"progressToken":$OTHER,"progress":1}"#)),
        ("an array", params(r"[$TOKEN,1]")),
        ("no params", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n".to_owned()),
        ("as a request", r#"{"jsonrpc":"2.0","id":"r","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#.to_owned() + "\n"),
        ("5000 times", (0..5000).map(|n| of(&format!("\"progress\":{n}"))).collect()),
    ];
    let mut all: Vec<Behaviour> = rows
        .into_iter()
        .map(|(name, bytes)| well(On::Call, &format!("progress {name}"), vec![text(&bytes), Act::Proper]))
        .collect();
    // Progress is no reason to wait longer than the call's own deadline.
    let drip: Vec<Act> = (1..40)
        .flat_map(|n| {
            let progress = of(&format!("\"progress\":{n}"));
            [text(&progress), Act::Drip(b"  ".to_vec(), Duration::from_millis(10))]
        })
        .collect();
    let timeout = Expect::confined(On::Call, Outcome::fails(ErrorKind::Timeout));
    let mut acts = vec![Act::Release];
    acts.extend(drip);
    acts.push(text("\n"));
    all.push(row(On::Call, "progress for longer than the deadline", acts, timeout));
    all
}

/// Questions in the middle of a call. Whatever they are, the call gets its answer when the server has got one, or gives up.
fn questions() -> Vec<Behaviour> {
    let answer = r#"{"jsonrpc":"2.0","id":$CALL,"result":{"content":[]}}"#;
    let mut all = Vec::new();
    for (name, question) in answered_questions() {
        let behaviour = well(On::Call, &format!("question {name}"), vec![line(&question)]);
        all.push(behaviour.with_rule(On::Answer, 1, vec![line(answer)]));
        let twice = vec![line(&question), line(&question), Act::Proper];
        all.push(well(On::Call, &format!("question {name}, twice and not waited for"), twice));
        let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
        let acts = vec![line(&question), line(withdrawn), Act::Proper];
        all.push(well(On::Call, &format!("question {name}, withdrawn"), acts));
        let dead = vec![line(&question), Act::Exit(3)];
        let closed = Expect::fatal(On::Call, Outcome::fails(ErrorKind::Closed));
        all.push(row(On::Call, &format!("question {name}, then death"), dead, closed));
    }
    for (name, question) in UNANSWERABLE {
        let acts = vec![line(question), Act::Proper];
        all.push(well(On::Call, &format!("question {name}"), acts));
    }
    let many: String = (0..500)
        .map(|n| {
            format!(
                "{}\n",
                elicitation(
                    &n.to_string(),
                    r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#
                )
            )
        })
        .collect();
    all.push(well(On::Call, "500 questions at once", vec![text(&many), Act::Proper]));
    all
}

fn elicitation(id: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#)
}

/// Questions that get a result or an error, since they have an id.
pub(crate) fn answered_questions() -> Vec<(&'static str, String)> {
    let form = |schema: &str| format!(r#"{{"message":"m","requestedSchema":{schema}}}"#);
    let deep = format!(
        r#"{{"type":"object","properties":{{"a":{}{}}}}}"#,
        "{\"a\":".repeat(60) + "1",
        "}".repeat(60)
    );
    let wide: Vec<String> = (0..2000).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
    let wide = format!(r#"{{"type":"object","properties":{{{}}}}}"#, wide.join(","));
    let rows: Vec<(&str, String)> = vec![
        ("of a right form", form(r#"{"type":"object","properties":{"a":{"type":"string","default":"x"}}}"#)),
        (
            "of a form without defaults",
            form(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#),
        ),
        ("without message", r#"{"requestedSchema":{"type":"object","properties":{}}}"#.into()),
        ("without schema", r#"{"message":"m"}"#.into()),
        ("with params null", "null".into()),
        ("with params array", "[]".into()),
        ("with an empty object", "{}".into()),
        ("of a schema of text", form("\"s\"")),
        (
            "of a nested schema",
            form(r#"{"type":"object","properties":{"a":{"type":"object","properties":{}}}}"#),
        ),
        ("of a deep schema", form(&deep)),
        ("of 2000 fields", form(&wide)),
        (
            "of a hostile pattern",
            form(
                r#"{"type":"object","properties":{"a":{"type":"string","pattern":"(a+)+$","default":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}}}"#,
            ),
        ),
        (
            "of impossible bounds",
            form(
                r#"{"type":"object","properties":{"a":{"type":"integer","minimum":9,"maximum":1,"default":5}}}"#,
            ),
        ),
        ("of an unknown mode", r#"{"mode":"telepathy","message":"m"}"#.into()),
        (
            "of a script url",
            r#"{"mode":"url","message":"m","elicitationId":"e","url":"javascript:alert(1)"}"#.into(),
        ),
        (
            "of a file url",
            r#"{"mode":"url","message":"m","elicitationId":"e","url":"file:///etc/passwd"}"#.into(),
        ),
        ("of no url", r#"{"mode":"url","message":"m","elicitationId":"e","url":""}"#.into()),
        (
            "of a right url",
            r#"{"mode":"url","message":"m","elicitationId":"e","url":"https://example.com/"}"#.into(),
        ),
    ];
    let mut all: Vec<_> =
        rows.into_iter().map(|(name, params)| (name, elicitation("\"q\"", &params))).collect();
    for (name, rest) in [
        (
            "with the id of the call",
            r#""id":$ID,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
        ),
        (
            "for a sample, undeclared",
            r#""id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}"#,
        ),
        ("for roots, undeclared", r#""id":"q","method":"roots/list""#),
        ("of an unknown method", r#""id":"q","method":"no/such","params":{"a":1}"#),
        ("of an empty method", r#""id":"q","method":"""#),
        ("to initialize", r#""id":"q","method":"initialize","params":{}"#),
        ("to call a tool of ours", r#""id":"q","method":"tools/call","params":{"name":"x"}"#),
        ("to ping with odd params", r#""id":"q","method":"ping","params":{"_meta":7}"#),
    ] {
        all.push((name, format!(r#"{{"jsonrpc":"2.0",{rest}}}"#)));
    }
    all
}

/// Questions that nobody can answer.
const UNANSWERABLE: &[(&str, &str)] = &[
    ("with id null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
    ("with id object", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
    ("with id fraction", r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#),
    ("with id true", r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#),
    ("as a notification", r#"{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"m"}}"#),
    ("without version", r#"{"id":"q","method":"ping"}"#),
    ("cut", r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mess"#),
    (
        "complete of nothing",
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"none"}}"#,
    ),
];
