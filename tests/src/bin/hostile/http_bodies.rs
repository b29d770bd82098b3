//! Responses that are sound HTTP: what stands in their bodies, and what their heads say about it.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, Head, On, Outcome, Transport};
use crate::letters::{self, Effect, LOG, Letter, RIGHT};

const ANSWERED: [On; 3] = [On::Initialize, On::List, On::Call];

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in ANSWERED {
        for letter in letters::for_any().into_iter().chain(letters::results_for(on)) {
            all.extend(carried(on, &letter));
        }
    }
    for on in [On::Initialize, On::Call] {
        all.extend(statuses(on));
    }
    all.extend(acceptances());
    all
}

pub(crate) fn row(on: On, name: &str, acts: Vec<Act>, expect: Expect) -> Behaviour {
    Behaviour::new(Transport::Http, on, name, acts, expect)
}

pub(crate) fn http(status: &str, fields: &str, framing: Framing, body: impl Into<Vec<u8>>) -> Act {
    Act::Http(Head { status: status.to_owned(), fields: fields.to_owned(), framing }, body.into())
}

pub(crate) const JSON: &str = "content-type: application/json\r\n";
pub(crate) const EVENTS: &str = "content-type: text/event-stream\r\n";

pub(crate) fn json(body: impl Into<Vec<u8>>) -> Act {
    http("200 OK", JSON, Framing::Length, body)
}

/// An event stream that ends in good order.
pub(crate) fn events(body: impl Into<Vec<u8>>) -> Act {
    http("200 OK", EVENTS, Framing::Chunked, body)
}

pub(crate) fn event(data: &[u8]) -> Vec<u8> {
    [b"data: ", data, b"\n\n"].concat()
}

/// A letter as a body, as a stream that ends, and as one that stays open.
pub(crate) fn carried(on: On, letter: &Letter) -> Vec<Behaviour> {
    let stream: Vec<u8> = letter.messages.iter().flat_map(|message| event(message)).collect();
    let expect = |missed| Expect::confined(on, outcome(letter.own, missed));
    let mut all = vec![row(
        on,
        &format!("stream with {}", letter.name),
        vec![events(stream.clone())],
        expect(ErrorKind::Transport),
    )];
    if let [message] = letter.messages.as_slice() {
        let expect = match std::str::from_utf8(message) {
            Ok(_) => expect(ErrorKind::PeerMisbehaved),
            // Streams are decoded with replacement characters, bodies are not.
            Err(_) => Expect::confined(on, Outcome::fails(ErrorKind::PeerMisbehaved)),
        };
        all.push(row(on, &format!("body with {}", letter.name), vec![json(message.clone())], expect));
        if letter.own == Effect::Misses {
            let answered = [stream, event(RIGHT.as_bytes())].concat();
            let name = format!("stream with {}, then the answer", letter.name);
            all.push(row(on, &name, vec![events(answered)], Expect::all_well()));
        }
        if on == On::Call {
            // On the standing stream, between calls and to nobody's question.
            let standing = Act::Bytes(
                [&b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"[..], &event(message)]
                    .concat(),
            );
            let name = format!("standing stream with {}", letter.name);
            let behaviour = row(On::Get, &name, vec![standing, Act::Hold], Expect::all_well());
            all.push(behaviour);
        }
    }
    all
}

pub(crate) fn outcome(effect: Effect, missed: ErrorKind) -> Outcome {
    match effect {
        Effect::Answers => Outcome::ok(),
        Effect::Misses => Outcome::fails(missed),
        Effect::Refuses => Outcome::fails(ErrorKind::Rpc),
        Effect::Spoils => Outcome::fails(ErrorKind::PeerMisbehaved),
        Effect::Unsupported => Outcome::fails(ErrorKind::UnsupportedVersion),
    }
}

/// What a content type says of a body.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Type {
    Events,
    Json,
    Nothing,
    Other,
    Text,
}

const TYPES: [(&str, &str, Type); 8] = [
    ("json", "content-type: application/json\r\n", Type::Json),
    ("JSON with charset", "Content-Type: Application/JSON; charset=utf-8\r\n", Type::Json),
    ("json twice", "content-type: application/json, application/json\r\n", Type::Json),
    ("events", "content-type: Text/Event-Stream;charset=UTF-8\r\n", Type::Events),
    ("html", "content-type: text/html; charset=utf-8\r\n", Type::Text),
    ("octets", "content-type: application/octet-stream\r\n", Type::Other),
    ("no type", "", Type::Nothing),
    ("a broken type", "content-type: /;;=\r\n", Type::Other),
];

/// What a body holds.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Holds {
    Error,
    Nothing,
    Right,
    Text,
}

const BODIES: [(&str, &str, Holds); 5] = [
    ("the answer", RIGHT, Holds::Right),
    ("an error", r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"m"}}"#, Holds::Error),
    (
        "an error without id",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#,
        Holds::Error,
    ),
    ("a page", "<!doctype html><h1>Bad Gateway</h1>", Holds::Text),
    ("nothing", "", Holds::Nothing),
];

const STATUSES: [u16; 33] = [
    200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406,
    409, 410, 413, 415, 421, 429, 451, 500, 502, 503, 504, 599,
];

/// Status by content type by body, against the table of the specification.
fn statuses(on: On) -> Vec<Behaviour> {
    statuses_by(on, |status, kind, holds| meaning(on, status, kind, holds))
}

pub(crate) fn statuses_by(on: On, meaning: impl Fn(u16, Type, Holds) -> Outcome) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for status in STATUSES {
        for (type_name, field, kind) in TYPES {
            // How a type is spelled is the same to every request.
            if on != On::Call && !["json", "events", "html", "no type"].contains(&type_name) {
                continue;
            }
            for (body_name, body, holds) in BODIES {
                let body = if kind == Type::Events && !body.is_empty() {
                    event(body.as_bytes())
                } else {
                    body.as_bytes().to_vec()
                };
                let expect = Expect::confined(on, meaning(status, kind, holds));
                let name = format!("{status} {type_name} with {body_name}");
                all.push(row(
                    on,
                    &name,
                    vec![http(&format!("{status} X"), field, Framing::Close, body)],
                    expect,
                ));
            }
        }
    }
    all
}

pub(crate) fn meaning(on: On, status: u16, kind: Type, holds: Holds) -> Outcome {
    let misbehaved = Outcome::fails(ErrorKind::PeerMisbehaved);
    let refused = match (kind, holds) {
        // A JSON-RPC error is looked for wherever text may be.
        (Type::Json | Type::Nothing | Type::Text, Holds::Error) => Outcome::fails(ErrorKind::Rpc),
        _ => Outcome::fails(ErrorKind::Transport),
    };
    match (status, kind, holds) {
        // A server from before Streamable HTTP refuses the first POST so, and its stream is then asked for.
        (202 | 204 | 205, ..) => misbehaved,
        // These have no body, whatever follows their head.
        (304, ..) => Outcome::fails(ErrorKind::Transport),
        (200..=299, Type::Events, Holds::Right) => Outcome::ok(),
        (200..=299, Type::Events, Holds::Error) => Outcome::fails(ErrorKind::Rpc),
        (200..=299, Type::Events, _) => Outcome::fails(ErrorKind::Transport),
        (200..=299, Type::Json | Type::Nothing, Holds::Right) => Outcome::ok(),
        (200..=299, Type::Json | Type::Nothing, Holds::Error) => Outcome::fails(ErrorKind::Rpc),
        (200..=299, ..) => misbehaved,
        // None of them says whereto.
        (301 | 302 | 303 | 307 | 308, ..) => misbehaved,
        (401, ..) => Outcome::fails(ErrorKind::Unauthorized),
        (403, Type::Json, _) => refused,
        (403, ..) => Outcome::fails(ErrorKind::Unauthorized),
        // The session is lost, and the new one too.
        (404, ..) if on == On::Call => Outcome::fails(ErrorKind::Transport),
        _ => refused,
    }
}

/// The other side: what comes back where only acceptance is due.
fn acceptances() -> Vec<Behaviour> {
    let mut all = Vec::new();
    let bodies: [(&str, &str, &[u8]); 6] = [
        ("nothing", "", b""),
        ("an empty object", JSON, b"{}"),
        ("null", JSON, b"null"),
        ("a message", JSON, LOG.as_bytes()),
        ("a page", "content-type: text/html\r\n", b"<h1>ok</h1>"),
        ("a stream", EVENTS, b"data: {}\n\n"),
    ];
    for status in [200, 201, 202, 204, 299, 301, 307, 400, 401, 403, 404, 405, 406, 415, 429, 500, 502, 503] {
        for (name, fields, body) in bodies {
            let outcome = match (status, fields) {
                (200..=299, _) => Outcome::ok(),
                (301 | 307, _) => Outcome::fails(ErrorKind::PeerMisbehaved),
                (403, JSON) => Outcome::fails(ErrorKind::Transport),
                (401 | 403, _) => Outcome::fails(ErrorKind::Unauthorized),
                _ => Outcome::fails(ErrorKind::Transport),
            };
            let expect = Expect::confined(On::Initialized, outcome);
            let acts = vec![http(&format!("{status} X"), fields, Framing::Close, body)];
            all.push(row(On::Initialized, &format!("{status} with {name}"), acts, expect));
        }
    }
    all
}
