//! Event streams: how they are written, cut and continued; the standing stream, questions, and the end of sessions.

use std::time::Duration;

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome};
use crate::http_bodies::{EVENTS, JSON, event, events, http, json, row};
use crate::letters::{LOG, RIGHT};
use crate::stdio_bytes::answered_questions;
use crate::visit::MAX_MESSAGE;

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in [On::Initialize, On::List, On::Call] {
        all.extend(written(on));
    }
    for on in [On::List, On::Call] {
        all.extend(resumed(on));
        all.extend(lost_sessions(on));
    }
    all.extend(ended());
    all.extend(questions());
    all.extend(standing());
    all.extend(deletions());
    all
}

/// What any stream may be, whatever the server speaks.
pub(crate) fn of_a_call() -> Vec<Behaviour> {
    written(On::Call)
}

fn fails(on: On, kind: ErrorKind) -> Expect {
    Expect::confined(on, Outcome::fails(kind))
}

/// A stream that stays open.
pub(crate) fn open(text: impl AsRef<[u8]>) -> Act {
    let head = format!("HTTP/1.1 200 OK\r\n{EVENTS}\r\n");
    Act::Bytes([head.as_bytes(), text.as_ref()].concat())
}

/// How the one event with the answer is written, or is not.
fn written(on: On) -> Vec<Behaviour> {
    let right = String::from_utf8_lossy(&event(RIGHT.as_bytes())).into_owned();
    let padded = "x".repeat(MAX_MESSAGE + 1);
    let good: Vec<(&str, String)> = vec![
        ("line ends CR LF", format!("data: {RIGHT}\r\n\r\n")),
        ("line ends CR", format!("data: {RIGHT}\r\r")),
        ("line ends mixed", format!("event: message\rdata: {RIGHT}\r\n\n")),
        ("no space", format!("data:{RIGHT}\n\n")),
        ("a byte order mark", format!("\u{feff}data: {RIGHT}\n\n")),
        ("type message", format!("event: message\n{right}")),
        ("type empty", format!("event:\n{right}")),
        ("a priming event", format!("id: 0\nretry: 10\ndata:\n\n{right}")),
        ("an event of another type first", format!("event: ping\ndata: {{\"t\":1}}\n\n{right}")),
        ("comments first", format!(": one\n\n:\n\n: {}\n\n{right}", "c".repeat(10_000))),
        ("unknown fields", format!("foo: bar\nbaz\n{right}")),
        ("retry of letters", format!("retry: soon\n{right}")),
        ("retry of 40 digits", format!("retry: {}\n{right}", "9".repeat(40))),
        ("an id with nul", format!("id: a\0b\n{right}")),
        ("an id of 10 kB", format!("id: {}\n{right}", "i".repeat(10_000))),
        (
            "data over two lines",
            RIGHT.replacen(",\"id\"", ",\ndata: \"id\"", 1).replacen("{\"json", "data: {\"json", 1) + "\n\n",
        ),
        ("2000 logs first", String::from_utf8_lossy(&event(LOG.as_bytes())).repeat(2000) + &right),
        ("1 MB of comments first", ": 0123456789abcdef\n".repeat(50_000) + &right),
        ("300 kB of blank lines first", "\n".repeat(300_000) + &right),
        ("noise in another event first", format!("data: noise\n\n{right}")),
        ("the answer twice", right.repeat(2)),
        ("the answer, then noise", format!("{right}data: noise\n\ndata: {{\n\n")),
        ("the answer, then half an event", format!("{right}data: {{\"js")),
    ];
    let mut all = Vec::new();
    for (name, text) in good {
        all.push(row(on, name, vec![events(text.clone())], Expect::all_well()));
        all.push(row(on, &format!("{name}, left open"), vec![open(text), Act::Hold], Expect::all_well()));
    }
    all.push(row(
        on,
        "the answer, then a reset",
        vec![open(&right), Act::Reset],
        Expect::confined(on, Outcome::fails(ErrorKind::Transport).or_ok()),
    ));
    all.push(row(
        on,
        "the answer, then a broken chunk",
        vec![Act::Bytes(chunked(&right, "zz\r\n"))],
        Expect::all_well(),
    ));
    let none: Vec<(&str, String)> = vec![
        ("nothing", String::new()),
        ("comments only", ": ping\n\n".repeat(20)),
        ("another type", format!("event: reply\n{right}")),
        ("an answer without end", format!("data: {RIGHT}\n")),
        ("an answer without line end", format!("data: {RIGHT}")),
        ("no field name", format!("{RIGHT}\n\n")),
        ("a field in capitals", format!("DATA: {RIGHT}\n\n")),
        ("a space before the field", format!(" data: {RIGHT}\n\n")),
        (
            "progress only",
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n".into(),
        ),
        ("an id with nul, then nothing", "id: a\0b\ndata:\n\n".into()),
        ("an empty id, then nothing", "id\ndata:\n\n".into()),
        ("utf-16", "d\0a\0t\0a\0:\0 \0{\0}\0\n\0\n\0".into()),
    ];
    for (name, text) in none {
        all.push(row(on, name, vec![events(text.clone())], fails(on, ErrorKind::Transport)));
        let acts = vec![open(text.clone()), Act::Reset];
        all.push(row(on, &format!("{name}, by a reset"), acts, fails(on, ErrorKind::Transport)));
        let acts = vec![open(text), Act::Hold];
        all.push(row(on, &format!("{name}, left open"), acts, fails(on, ErrorKind::Timeout)));
    }
    for (name, text) in [
        ("an event over the limit", format!("data: {padded}\n\n{right}")),
        (
            "an event over the limit in many lines",
            format!("{}\n{right}", "data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(MAX_MESSAGE / 16)),
        ),
        ("an id over the limit", format!("id: {padded}\ndata: x\n\n{right}")),
    ] {
        all.push(row(on, name, vec![events(text)], fails(on, ErrorKind::LimitExceeded)));
    }
    all.push(row(
        on,
        "a broken chunk",
        vec![Act::Bytes(chunked(": ping\n\n", "zz\r\n"))],
        fails(on, ErrorKind::Transport),
    ));
    all
}

fn chunked(text: &str, behind: &str) -> Vec<u8> {
    // An id of one digit takes the place of its three letters; the result keeps its own length, so it is not named here.
    let result = r#"{"tools":[],"content":[],"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let text = text.replace("$RESULT", result);
    let length = text.len() - 2 * text.matches("$ID").count();
    let head = format!("HTTP/1.1 200 OK\r\n{EVENTS}transfer-encoding: chunked\r\n\r\n");
    format!("{head}{length:x}\r\n{text}\r\n{behind}").into_bytes()
}

/// A stream that named an id is cut; what the server makes of the request to go on.
fn resumed(on: On) -> Vec<Behaviour> {
    let begun = || vec![events("id: e1\nretry: 5\ndata:\n\n")];
    let right = format!(
        "id: e2\ndata: {}\n\n",
        RIGHT.replace("$ID", "$CALL").replace("$RESULT", r#"{"content":[]}"#)
    );
    let mut all = Vec::new();
    let lost = Outcome::fails(ErrorKind::Transport);
    let misbehaved = Outcome::fails(ErrorKind::PeerMisbehaved);
    let refuse = |status: &str, fields: &str, body: &str| vec![http(status, fields, Framing::Length, body)];
    let mut rows: Vec<(String, Vec<Act>, Outcome)> = vec![
        ("silence".into(), vec![Act::Hold], Outcome::fails(ErrorKind::Timeout)),
        ("a silent stream".into(), vec![open(""), Act::Hold], Outcome::fails(ErrorKind::Timeout)),
        ("a close".into(), vec![Act::End], lost.clone()),
        ("a reset".into(), vec![Act::Reset], lost.clone()),
        ("an empty stream".into(), vec![events("")], lost.clone()),
        ("comments".into(), vec![events(": ping\n\n")], lost.clone()),
        (
            "a broken head".into(),
            vec![Act::Bytes(b"HTTP/1.1 abc\r\n\r\n".to_vec()), Act::End],
            misbehaved.clone(),
        ),
        (
            "a new retry of an hour".into(),
            vec![events("retry: 3600000\n\n")],
            Outcome::fails(ErrorKind::LimitExceeded),
        ),
        ("json".into(), vec![json(RIGHT)], misbehaved.clone()),
        ("a page".into(), refuse("200 OK", "content-type: text/html\r\n", "<p>"), misbehaved.clone()),
        (
            "a packed stream".into(),
            refuse("200 OK", "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", "x"),
            misbehaved.clone(),
        ),
        ("202".into(), refuse("202 Accepted", "", ""), misbehaved.clone()),
        ("204".into(), refuse("204 No Content", "", ""), misbehaved.clone()),
        ("a redirect away".into(), refuse("307 X", "location: http://evil.example/\r\n", ""), misbehaved),
        ("401".into(), refuse("401 X", "", ""), Outcome::fails(ErrorKind::Unauthorized)),
        ("403".into(), refuse("403 X", "", ""), Outcome::fails(ErrorKind::Unauthorized)),
    ];
    for status in ["400", "404", "405", "406", "410", "408", "429", "500", "501", "502", "503", "504"] {
        rows.push((format!("{status} for ever"), refuse(&format!("{status} X"), "", "no"), lost.clone()));
    }
    // Progress each time: only the call's own deadline ends that.
    rows.push((
        "a new id each time".into(),
        vec![events("id: n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")],
        Outcome::fails(ErrorKind::Timeout),
    ));
    for (name, acts, outcome) in rows {
        let behaviour = row(on, &format!("cut, then {name}"), begun(), Expect::confined(on, outcome));
        all.push(behaviour.with_rule(On::Resume, usize::MAX, acts.clone()));
        let transient = [
            "503 for ever",
            "500 for ever",
            "429 for ever",
            "a close",
            "a reset",
            "an empty stream",
            "comments",
        ];
        if on == On::Call && transient.contains(&name.as_str()) {
            let behaviour =
                row(on, &format!("cut, then {name} once, then the answer"), begun(), Expect::all_well());
            all.push(behaviour.with_rule(On::Resume, 1, acts).with_rule(
                On::Resume,
                1,
                vec![events(right.clone())],
            ));
        }
    }
    if on == On::Call {
        for (name, text) in [
            ("the answer", right.clone()),
            ("the answer twice", right.repeat(2)),
            ("noise and the answer", format!("data: noise\n\n: x\n\nevent: y\ndata: z\n\n{right}")),
            (
                "the answer of the other call and the answer",
                format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"id\":$OTHER,\"result\":{{\"content\":[]}}}}\n\n{right}"
                ),
            ),
        ] {
            let behaviour = row(on, &format!("cut, then {name}"), begun(), Expect::all_well());
            all.push(behaviour.with_rule(On::Resume, 1, vec![events(text.clone())]));
            let behaviour = row(
                on,
                &format!("reset, then {name}"),
                vec![open("id: e1\nretry: 5\ndata:\n\n"), Act::Reset],
                Expect::confined(on, Outcome::fails(ErrorKind::Transport).or_ok()),
            );
            all.push(behaviour.with_rule(On::Resume, 1, vec![open(text), Act::Hold]));
        }
    }
    let long = vec![events("id: e1\nretry: 3600000\ndata:\n\n")];
    all.push(row(on, "cut with a retry of an hour", long, fails(on, ErrorKind::LimitExceeded)));
    all
}

/// Streams and bodies whose answer comes after the client gave up.
fn ended() -> Vec<Behaviour> {
    let timeout = fails(On::Call, ErrorKind::Timeout);
    let right = event(RIGHT.as_bytes());
    vec![
        row(
            On::Call,
            "an answer after the cancellation",
            vec![Act::UntilCancelled, json(RIGHT)],
            timeout.clone(),
        ),
        row(
            On::Call,
            "a stream after the cancellation",
            vec![open(""), Act::UntilCancelled, Act::Bytes(right.clone())],
            timeout.clone(),
        ),
        row(
            On::Call,
            "a refusal after the cancellation",
            vec![Act::UntilCancelled, http("500 X", "", Framing::Length, "")],
            timeout.clone(),
        ),
        row(On::Call, "a refused cancellation", vec![Act::Hold], timeout.clone()).with_rule(
            On::Cancelled,
            1,
            vec![http("400 X", JSON, Framing::Length, "{}")],
        ),
        row(On::Call, "a cancellation that hangs", vec![Act::Hold], timeout.clone()).with_rule(
            On::Cancelled,
            1,
            vec![Act::Hold],
        ),
        row(On::Call, "a cancellation that is cut", vec![Act::Hold], timeout).with_rule(
            On::Cancelled,
            1,
            vec![Act::Reset],
        ),
        row(
            On::Call,
            "the answer to the other call beside it",
            vec![events(
                [event(br#"{"jsonrpc":"2.0","id":$OTHER,"result":{"content":[]}}"#), right].concat(),
            )],
            Expect::all_well(),
        ),
    ]
}

/// The server asks in the middle of a call, and takes the answers badly.
fn questions() -> Vec<Behaviour> {
    let mut all = Vec::new();
    let right = event(RIGHT.as_bytes());
    let asks = |question: &str| {
        vec![open(event(question.as_bytes())), Act::UntilAnswered, Act::Bytes(right.clone()), Act::End]
    };
    for (name, question) in answered_questions() {
        all.push(row(On::Call, &format!("question {name}"), asks(&question), Expect::all_well()));
        let acts = vec![open(event(question.as_bytes())), Act::End];
        all.push(row(
            On::Call,
            &format!("question {name}, then the end"),
            acts,
            fails(On::Call, ErrorKind::Transport),
        ));
        // The same over the standing stream, where no call is concerned.
        let acts = vec![open(event(question.as_bytes())), Act::Hold];
        all.push(row(On::Get, &format!("question {name}"), acts, Expect::all_well()));
    }
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#;
    for (name, acts) in [
        ("refused", vec![http("400 X", "", Framing::Length, "no")]),
        ("failed", vec![http("500 X", "", Framing::Length, "no")]),
        ("forbidden", vec![http("403 X", "", Framing::Length, "no")]),
        ("unauthorized", vec![http("401 X", "", Framing::Length, "no")]),
        ("unknown", vec![http("405 X", "", Framing::Length, "no")]),
        ("redirected", vec![http("302 X", "location: /\r\n", Framing::Length, "no")]),
        ("reset", vec![Act::Reset]),
        ("closed", vec![Act::End]),
        ("never accepted", vec![Act::Hold]),
        ("answered itself", vec![json(LOG)]),
        ("answered by a stream", vec![open(event(LOG.as_bytes())), Act::Hold]),
        ("accepted by noise", vec![Act::Bytes(b"noise".to_vec()), Act::End]),
    ] {
        let behaviour =
            row(On::Call, &format!("an answer that is {name}"), asks(question), Expect::all_well());
        all.push(behaviour.with_rule(On::Answer, usize::MAX, acts));
    }
    let many: Vec<u8> = (0..300)
        .flat_map(|n| event(format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#).as_bytes()))
        .collect();
    all.push(row(
        On::Call,
        "300 questions at once",
        vec![open([many, right].concat()), Act::End],
        Expect::all_well(),
    ));
    all
}

/// The standing stream may be anything: calls go on.
fn standing() -> Vec<Behaviour> {
    let mut rows: Vec<(String, Vec<Act>)> = vec![
        ("silence".into(), vec![Act::Hold]),
        ("a reset".into(), vec![Act::Reset]),
        ("a close".into(), vec![Act::End]),
        ("an empty stream again and again".into(), vec![events("")]),
        ("a stream cut by a reset again and again".into(), vec![open(": x\n\n"), Act::Reset]),
        ("a stream with ids again and again".into(), vec![events("id: 1\ndata:\n\n")]),
        ("a silent stream".into(), vec![open(""), Act::Hold]),
        ("half an event".into(), vec![open("data: {"), Act::Hold]),
        (
            "an event over the limit".into(),
            vec![open("data: "), Act::Flood(vec![b'x'; 65_536], 4 * MAX_MESSAGE), Act::Hold],
        ),
        ("a flood of logs".into(), vec![open(""), Act::Flood(event(LOG.as_bytes()), 300_000), Act::Hold]),
        ("a flood of comments".into(), vec![open(""), Act::Flood(b": x\n\n".to_vec(), 300_000), Act::Hold]),
        (
            "a flood of pings".into(),
            vec![
                open(""),
                Act::Flood(event(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#), 20_000),
                Act::Hold,
            ],
        ),
        (
            "dripping".into(),
            vec![open(""), Act::Drip(b"data: slow ".repeat(50), Duration::from_millis(20)), Act::Hold],
        ),
        ("an endless retry".into(), vec![events("retry: 99999999999\n\n")]),
        ("noise".into(), vec![Act::Bytes(b"noise\r\n\r\n".to_vec()), Act::End]),
        (
            "the answer of nobody".into(),
            vec![open(event(br#"{"jsonrpc":"2.0","id":55,"result":{}}"#)), Act::Hold],
        ),
        ("json".into(), vec![json("{}")]),
        ("a redirect for ever".into(), vec![http("307 X", "location: /mcp\r\n", Framing::Length, "")]),
    ];
    for status in [200, 202, 204, 301, 400, 401, 403, 404, 405, 406, 409, 429, 500, 501, 503] {
        rows.push((status.to_string(), vec![http(&format!("{status} X"), "", Framing::Length, "")]));
    }
    rows.into_iter().map(|(name, acts)| row(On::Get, &name, acts, Expect::all_well())).collect()
}

/// Closing is bounded, whatever the server makes of it.
fn deletions() -> Vec<Behaviour> {
    let mut rows: Vec<(String, Vec<Act>)> = vec![
        ("silence".into(), vec![Act::Hold]),
        ("a reset".into(), vec![Act::Reset]),
        ("a close".into(), vec![Act::End]),
        ("noise".into(), vec![Act::Bytes(b"noise".to_vec()), Act::End]),
        ("a stream without end".into(), vec![open(": x\n\n"), Act::Hold]),
        ("a flood".into(), vec![open(""), Act::Flood(vec![b'x'; 65_536], 64 * MAX_MESSAGE)]),
        (
            "dripping".into(),
            vec![Act::Drip(b"HTTP/1.1 200 OK\r\n".to_vec(), Duration::from_millis(200)), Act::Hold],
        ),
        (
            "a redirect away".into(),
            vec![http("307 X", "location: http://evil.example/\r\n", Framing::Length, "")],
        ),
    ];
    for status in [200, 202, 204, 301, 400, 401, 403, 404, 405, 410, 500, 503] {
        rows.push((status.to_string(), vec![http(&format!("{status} X"), "", Framing::Length, "")]));
    }
    rows.into_iter().map(|(name, acts)| row(On::Delete, &name, acts, Expect::all_well())).collect()
}

/// The server forgets the session, and makes something of the new one.
fn lost_sessions(on: On) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, fields, body) in [
        ("nothing", "", ""),
        (
            "an error",
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        (
            "an error with its id",
            JSON,
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"Session not found"}}"#,
        ),
        ("text", "content-type: text/plain\r\n", "Not Found: Session not found"),
    ] {
        let lose = || vec![http("404 Not Found", fields, Framing::Length, body)];
        all.push(row(on, &format!("404 once with {name}"), lose(), Expect::all_well()).times(1));
        let always = row(on, &format!("404 for ever with {name}"), lose(), fails(on, ErrorKind::Transport));
        all.push(always);
    }
    let lose = || vec![http("404 Not Found", "", Framing::Length, "")];
    let unavailable = Outcome::one_of(&[ErrorKind::Closed, ErrorKind::PeerMisbehaved, ErrorKind::Transport]);
    for (name, acts) in [
        ("refused", vec![http("500 X", "", Framing::Length, "")]),
        ("an error", vec![json(r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"m"}}"#)]),
        ("broken", vec![json(r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#)]),
        (
            "of an unknown revision",
            vec![json(
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2099-01-01","capabilities":{}}}"#,
            )],
        ),
        ("reset", vec![Act::Reset]),
        ("never answered", vec![Act::Hold]),
        ("lost as well", vec![http("404 X", "", Framing::Length, "")]),
        ("accepted only", vec![http("202 X", "", Framing::Length, "")]),
    ] {
        let expect = if name == "never answered" {
            Expect {
                after: Outcome::one_of(&[ErrorKind::Timeout, ErrorKind::Closed, ErrorKind::Transport]),
                ..fails(on, ErrorKind::Timeout)
            }
        } else {
            Expect { after: unavailable.clone(), ..Expect::confined(on, unavailable.clone()) }
        };
        let mut behaviour = row(on, &format!("404, and a new session {name}"), lose(), expect).times(1);
        behaviour = behaviour.with_rule(On::Initialize, 1, vec![Act::Proper]);
        all.push(behaviour.with_rule(On::Initialize, usize::MAX, acts));
    }
    all
}
