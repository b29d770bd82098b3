//! Responses that are no sound HTTP, or whose heads lead astray; and connections that break.

use std::time::Duration;

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome};
use crate::http_bodies::{EVENTS, JSON, http, json, row};
use crate::letters::RIGHT;
use crate::visit::MAX_MESSAGE;

/// Where an answer is due.
const ANSWERED: [On; 3] = [On::Initialize, On::List, On::Call];

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in ANSWERED {
        all.extend(raw(on));
        all.extend(sound(on));
        all.extend(lengths(on));
        all.extend(astray(on));
    }
    for on in [On::Initialize, On::Call] {
        all.extend(cuts(on));
    }
    for on in [On::Initialized, On::Initialize, On::List, On::Call] {
        all.extend(breaks(on));
    }
    all.extend(sessions());
    all
}

/// What any response may be, whatever the server speaks.
pub(crate) fn of_a_call() -> Vec<Behaviour> {
    let on = On::Call;
    [raw(on), sound(on), lengths(on), astray(on), cuts(on), breaks(on)].concat()
}

fn fails(on: On, kind: ErrorKind) -> Expect {
    Expect::confined(on, Outcome::fails(kind))
}

fn bytes(text: impl Into<Vec<u8>>) -> Act {
    Act::Bytes(text.into())
}

/// An answer whose length is known before it is filled in: the ids here have one digit.
fn fixed(on: On) -> (String, usize) {
    let result = match on {
        On::Initialize => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#,
        On::List => r#"{"tools":[]}"#,
        _ => r#"{"content":[]}"#,
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
    let length = text.len() - 2;
    (text, length)
}

/// Nothing that HTTP allows: the exchange fails, whatever the connection then does.
fn raw(on: On) -> Vec<Behaviour> {
    let (answer, length) = fixed(on);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(150));
    let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "x".repeat(70_000));
    let endless_name = format!("HTTP/1.1 200 OK\r\n{}", "x".repeat(70_000));
    // A server that has spoken HTTP before only misbehaves.
    let tls = if on == On::Discover { ErrorKind::Tls } else { ErrorKind::PeerMisbehaved };
    let rows: Vec<(&str, Vec<u8>, ErrorKind)> = vec![
        ("blank lines only", b"\r\n\r\n\r\n".to_vec(), ErrorKind::Transport),
        ("a greeting", b"220 mail.example ESMTP\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("the bare answer", answer.clone().into_bytes(), ErrorKind::PeerMisbehaved),
        ("tls", b"\x16\x03\x01\x00\x05hello".to_vec(), tls),
        ("http 2 by surprise", b"\0\0\x12\x04\0\0\0\0\0".to_vec(), ErrorKind::PeerMisbehaved),
        ("only nul", vec![0; 1000], ErrorKind::PeerMisbehaved),
        ("only 0xff", vec![0xff; 1000], ErrorKind::PeerMisbehaved),
        ("a version of tomorrow", b"HTTP/3.0 200 OK\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("lower case", b"http/1.1 200 ok\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("status of two digits", b"HTTP/1.1 99 Low\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("status of four digits", b"HTTP/1.1 2000 High\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("status of letters", b"HTTP/1.1 abc OK\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("status missing", b"HTTP/1.1\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        (
            "another protocol",
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        ("continue for ever", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(500), ErrorKind::Transport),
        (
            "a field without colon",
            b"HTTP/1.1 200 OK\r\nbad field\r\n\r\n".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        ("nul in a name", b"HTTP/1.1 200 OK\r\nna\0me: x\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        ("nul in a value", b"HTTP/1.1 200 OK\r\nname: x\0y\r\n\r\n".to_vec(), ErrorKind::PeerMisbehaved),
        (
            "a space before the colon",
            b"HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\n{}".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        ("150 fields", many.into_bytes(), ErrorKind::LimitExceeded),
        ("a field of 70 kB", long.into_bytes(), ErrorKind::LimitExceeded),
        ("a name of 70 kB", endless_name.into_bytes(), ErrorKind::LimitExceeded),
        (
            "length negative",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        (
            "length of letters",
            b"HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        (
            "length beyond 64 bits",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n".to_vec(),
            ErrorKind::PeerMisbehaved,
        ),
        (
            "two lengths",
            format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {length}\r\ncontent-length: 2\r\n\r\n{answer}")
                .into_bytes(),
            ErrorKind::PeerMisbehaved,
        ),
        (
            "chunk size of letters",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\nzz\r\n").into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "chunk size beyond 64 bits",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n")
                .into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "chunk size negative",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n-5\r\n{answer}\r\n")
                .into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "chunk size too small",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n5\r\n{answer}\r\n0\r\n\r\n")
                .into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "chunk without end",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{answer}\r\n")
                .into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "length too large",
            format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 5000\r\n\r\n{answer}").into_bytes(),
            ErrorKind::Transport,
        ),
        (
            "an endless chunk extension",
            format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n5;{}", "x".repeat(70_000))
                .into_bytes(),
            ErrorKind::Transport,
        ),
    ];
    let mut all = Vec::new();
    for (name, text, kind) in rows {
        for (how, end) in [("end", Act::End), ("reset", Act::Reset)] {
            // A reset may overtake what was sent before it.
            let outcome = match how {
                "reset" => Outcome::one_of(&[kind, ErrorKind::Transport]),
                _ => Outcome::fails(kind),
            };
            let acts = vec![bytes(text.clone()), end];
            all.push(row(on, &format!("{name}, then {how}"), acts, Expect::confined(on, outcome)));
        }
    }
    all
}

/// Odd, and right all the same.
fn sound(on: On) -> Vec<Behaviour> {
    let (answer, length) = fixed(on);
    let head = format!("{JSON}content-length: {length}\r\n");
    let slow = Duration::from_millis(1);
    let rows: Vec<(&str, String)> = vec![
        ("no reason", format!("HTTP/1.1 200\r\n{head}\r\n{answer}")),
        ("a strange reason", format!("HTTP/1.1 200 \u{e9}\u{2603}\r\n{head}\r\n{answer}")),
        (
            "line feeds only",
            format!("HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: {length}\n\n{answer}"),
        ),
        ("http 1.0 until the end", format!("HTTP/1.0 200 OK\r\n{JSON}\r\n{answer}")),
        ("continue first", format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n{head}\r\n{answer}")),
        (
            "early hints first",
            format!("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n{head}\r\n{answer}"),
        ),
        (
            "the same length twice",
            format!("HTTP/1.1 200 OK\r\n{head}content-length: {length}\r\n\r\n{answer}"),
        ),
        ("90 fields", format!("HTTP/1.1 200 OK\r\n{head}{}\r\n{answer}", "a: b\r\n".repeat(90))),
        ("a field of 50 kB", format!("HTTP/1.1 200 OK\r\n{head}a: {}\r\n\r\n{answer}", "x".repeat(50_000))),
        ("a field that is no ascii", format!("HTTP/1.1 200 OK\r\n{head}a: \u{e9}\u{2603}\r\n\r\n{answer}")),
        (
            "a chunk extension",
            format!(
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n{length:x};a=b\r\n{answer}\r\n0\r\n\r\n"
            ),
        ),
        (
            "a trailer",
            format!(
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{answer}\r\n0\r\na: b\r\n\r\n"
            ),
        ),
        (
            "content encoding identity",
            format!("HTTP/1.1 200 OK\r\n{head}content-encoding: identity\r\n\r\n{answer}"),
        ),
        (
            "cookies and more",
            format!(
                "HTTP/1.1 200 OK\r\n{head}set-cookie: a=b\r\nmcp-session-id: other\r\nalt-svc: h3=\":1\"\r\n\r\n{answer}"
            ),
        ),
    ];
    let mut all = Vec::new();
    for (name, text) in rows {
        // To close a connection that may be used again is to lose what is on its way: only one that says so ends.
        let end = || name.starts_with("http 1.0").then_some(Act::End);
        let acts = [bytes(text.clone())].into_iter().chain(end()).collect();
        all.push(row(on, name, acts, Expect::all_well()));
        if text.len() < 1000 {
            let acts = [Act::Drip(text.into_bytes(), slow)].into_iter().chain(end()).collect();
            all.push(row(on, &format!("{name}, byte by byte"), acts, Expect::all_well()));
        }
    }
    all
}

/// Bodies that are longer or shorter than they say, on a connection that is used again.
fn lengths(on: On) -> Vec<Behaviour> {
    let (answer, length) = fixed(on);
    let mut all = Vec::new();
    let ok = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {length}\r\n\r\n{answer}");
    let forged = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    let second = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{forged}", forged.len());
    for (name, text) in [
        ("noise after the answer", format!("{ok}noise")),
        ("a second answer that nobody asked for", format!("{ok}{second}")),
        ("blank lines after the answer", format!("{ok}\r\n\r\n")),
    ] {
        all.push(row(on, name, vec![bytes(text)], Expect::all_well()));
    }
    let short = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{answer}", length - 5);
    all.push(row(on, "length too small", vec![bytes(short)], fails(on, ErrorKind::PeerMisbehaved)));
    let zero = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 0\r\n\r\n{answer}");
    all.push(row(on, "length zero", vec![bytes(zero)], fails(on, ErrorKind::PeerMisbehaved)));
    let piece = vec![b'x'; 64 * 1024];
    for (name, head) in [("body", JSON), ("event", EVENTS)] {
        let start = format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\ndata: ");
        let acts = vec![bytes(start), Act::Flood(piece.clone(), 16 * MAX_MESSAGE), Act::End];
        all.push(row(on, &format!("an endless {name}"), acts, fails(on, ErrorKind::LimitExceeded)));
    }
    let huge = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 9999999999\r\n\r\n");
    all.push(row(
        on,
        "a body announced too large",
        vec![bytes(huge), Act::Hold],
        fails(on, ErrorKind::LimitExceeded),
    ));
    for status in ["400 Bad Request", "500 Oops"] {
        let start = format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\n\r\n");
        let acts = vec![bytes(start), Act::Flood(piece.clone(), 16 * MAX_MESSAGE), Act::End];
        all.push(row(on, &format!("an endless {status}"), acts, fails(on, ErrorKind::Transport)));
    }
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n";
    let acts = vec![bytes(start), Act::Flood(piece, 16 * MAX_MESSAGE), Act::End];
    all.push(row(on, "an endless page", acts, fails(on, ErrorKind::PeerMisbehaved)));
    all
}

/// Where the head leads elsewhere, or packs the body.
fn astray(on: On) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for coding in ["gzip", "br", "deflate", "zstd", "compress", "gzip, identity", "x-none"] {
        let fields = format!("{JSON}content-encoding: {coding}\r\n");
        let acts = vec![http("200 OK", &fields, Framing::Length, RIGHT)];
        all.push(row(on, &format!("packed by {coding}"), acts, fails(on, ErrorKind::PeerMisbehaved)));
    }
    for status in ["301", "302", "303", "307", "308"] {
        for location in [
            "http://evil.example/mcp",
            "//evil.example/mcp",
            "https://127.0.0.1/mcp",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http://",
            "http://127.0.0.1:99999/",
            "\u{e9}",
            "",
            "http://user:secret@127.0.0.1:1/",
        ] {
            let fields = format!("location: {location}\r\n");
            let acts = vec![http(&format!("{status} X"), &fields, Framing::Length, "")];
            all.push(row(
                on,
                &format!("{status} to {location:?}"),
                acts,
                fails(on, ErrorKind::PeerMisbehaved),
            ));
        }
    }
    for status in ["307", "308"] {
        let acts = || vec![http(&format!("{status} X"), "location: /other\r\n", Framing::Length, "")];
        all.push(row(on, &format!("{status} for ever"), acts(), fails(on, ErrorKind::PeerMisbehaved)));
        all.push(row(on, &format!("{status} once"), acts(), Expect::all_well()).times(1));
        all.push(row(on, &format!("{status} three times"), acts(), Expect::all_well()).times(3));
    }
    for (name, fields) in [
        ("without challenge", ""),
        ("with a challenge", "www-authenticate: Bearer realm=\"a\", scope=\"b\"\r\n"),
        ("with a broken challenge", "www-authenticate: =,\"\r\nwww-authenticate: \u{e9}\r\n"),
        ("with an empty challenge", "www-authenticate:\r\n"),
        ("with a retry in the past", "retry-after: -1\r\n"),
    ] {
        let acts = vec![http("401 Unauthorized", fields, Framing::Length, "no")];
        all.push(row(on, &format!("401 {name}"), acts, fails(on, ErrorKind::Unauthorized)));
        let acts = vec![http("429 Slow Down", fields, Framing::Length, "no")];
        all.push(row(on, &format!("429 {name}"), acts, fails(on, ErrorKind::Transport)));
    }
    let many = format!("{JSON}{}", "www-authenticate: Bearer a=\"b\"\r\n".repeat(80));
    let acts = vec![http("401 Unauthorized", &many, Framing::Length, "no")];
    all.push(row(on, "401 with 80 challenges", acts, fails(on, ErrorKind::Unauthorized)));
    all
}

/// A good response that breaks off, at many places.
fn cuts(on: On) -> Vec<Behaviour> {
    let (answer, length) = fixed(on);
    let event = format!("data: {answer}\n\n");
    let event_length = length + 8;
    // With each, how much of it is enough.
    let responses = [
        ("body", format!("HTTP/1.1 200 OK\r\n{JSON}content-length: {length}\r\n\r\n{answer}"), 0),
        (
            "chunks",
            format!(
                "HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{answer}\r\n0\r\n\r\n"
            ),
            0,
        ),
        (
            "stream",
            format!(
                "HTTP/1.1 200 OK\r\n{EVENTS}transfer-encoding: chunked\r\n\r\n{event_length:x}\r\n{event}\r\n0\r\n\r\n"
            ),
            7,
        ),
        ("stream until the end", format!("HTTP/1.1 200 OK\r\n{EVENTS}connection: close\r\n\r\n{event}"), 0),
    ];
    let mut all = Vec::new();
    for (name, response, spare) in responses {
        for cut in (0..response.len()).step_by(6) {
            // Not inside of the placeholder.
            let text = response.get(..cut).unwrap_or_default();
            if text.ends_with('$') || text.ends_with("$I") {
                continue;
            }
            let enough = cut + spare >= response.len();
            for (how, end) in [("end", Act::End), ("reset", Act::Reset)] {
                let lost = Outcome::fails(ErrorKind::Transport);
                let outcome = if enough && how == "reset" {
                    lost.or_ok()
                } else if enough {
                    Outcome::ok()
                } else {
                    lost
                };
                let acts = vec![bytes(text), end];
                all.push(row(
                    on,
                    &format!("{name} cut at {cut} by {how}"),
                    acts,
                    Expect::confined(on, outcome),
                ));
            }
        }
    }
    all
}

/// Connections that fall silent or go away.
fn breaks(on: On) -> Vec<Behaviour> {
    let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 500\r\n\r\n");
    let stream = format!("HTTP/1.1 200 OK\r\n{EVENTS}\r\n");
    let slow = Duration::from_millis(200);
    let (lost, timeout) = (fails(on, ErrorKind::Transport), fails(on, ErrorKind::Timeout));
    let mut all = vec![
        row(on, "closed at once", vec![Act::End], lost.clone()),
        row(on, "reset at once", vec![Act::Reset], lost),
        row(on, "silence", vec![Act::Hold], timeout.clone()),
        row(on, "half a status line", vec![bytes("HTTP/1.1 2"), Act::Hold], timeout.clone()),
        row(on, "half a head", vec![bytes("HTTP/1.1 200 OK\r\ncontent-"), Act::Hold], timeout.clone()),
        row(
            on,
            "a dripping head",
            vec![Act::Drip(head.clone().into_bytes(), slow), Act::Hold],
            timeout.clone(),
        ),
    ];
    // Where only acceptance is due, the head says it all.
    let after_head = if on == On::Initialized { Expect::all_well() } else { timeout };
    for (name, acts) in [
        ("half a body", vec![bytes(head.clone() + "{\"json"), Act::Hold]),
        ("a dripping body", vec![bytes(head), Act::Drip(vec![b' '; 400], slow), Act::Hold]),
        ("a silent stream", vec![bytes(stream.clone()), Act::Hold]),
        ("half an event", vec![bytes(stream.clone() + "data: {\"json"), Act::Hold]),
        (
            "a dripping event",
            vec![bytes(stream.clone() + "data: "), Act::Drip(vec![b' '; 400], slow), Act::Hold],
        ),
        (
            "a stream of comments",
            vec![bytes(stream), Act::Drip(b": ping\n\n".repeat(50), Duration::from_millis(20)), Act::Hold],
        ),
    ] {
        all.push(row(on, name, acts, after_head.clone()));
    }
    all
}

fn sessions() -> Vec<Behaviour> {
    let on = On::Initialize;
    let mut all = Vec::new();
    let long = "s".repeat(5000);
    for (name, value, is_good) in [
        ("empty", "", false),
        ("of blanks", "   ", false),
        ("with a space", "a b", false),
        ("with a tab", "a\tb", false),
        ("with a letter that is no ascii", "\u{e9}", false),
        ("of 5000 letters", long.as_str(), false),
        ("of 1000 letters", long.get(..1000).unwrap_or_default(), true),
        ("of one letter", "x", true),
        ("of marks", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~", true),
    ] {
        let fields = format!("{JSON}mcp-session-id: {value}\r\n");
        let acts = vec![http("200 OK", &fields, Framing::Length, RIGHT)];
        let expect = if is_good { Expect::all_well() } else { fails(on, ErrorKind::PeerMisbehaved) };
        all.push(row(on, &format!("session id {name}"), acts, expect));
    }
    let none = vec![json(RIGHT)];
    all.push(row(on, "no session id", none, Expect::all_well()));
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"m"}}"#;
    let acts = vec![http("200 OK", &format!("{JSON}mcp-session-id: a\r\n"), Framing::Length, error)];
    all.push(row(on, "session id with an error", acts, fails(on, ErrorKind::Rpc)));
    all
}
