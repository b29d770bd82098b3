//! Responses of a modern server, whole and in pieces: status, type, body, stream, and what only sessions had.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome, Transport};
use crate::http_bodies::{EVENTS, Holds, JSON, Type, carried, events, http, meaning, statuses_by};
use crate::http_streams::open;
use crate::letters::{self, RIGHT};
use crate::modern::{fails, row};
use crate::{http_heads, http_streams};

pub(crate) fn all() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for on in [On::List, On::Call] {
        for letter in letters::for_any().into_iter().chain(letters::results_for(on)) {
            all.extend(carried(on, &letter));
        }
    }
    // There is no standing stream.
    all.retain(|behaviour| behaviour.rules.iter().all(|rule| rule.on != On::Get));
    all.extend(statuses_by(On::Call, call));
    all.extend(statuses_by(On::Discover, probe));
    all.extend(http_heads::of_a_call());
    all.extend(http_streams::of_a_call());
    let mut all: Vec<Behaviour> = all.into_iter().map(Behaviour::modern).collect();
    all.extend(asked().into_iter().map(|(status, kind)| asked_by_a_legacy_client(status, kind)));
    all.extend(sessions());
    all.extend(late());
    all
}

fn call(status: u16, kind: Type, holds: Holds) -> Outcome {
    // There is no session that a 404 could be about.
    let status = if status == 404 { 410 } else { status };
    meaning(On::Call, status, kind, holds)
}

/// What a status shows of the era, to a client that knows it: a legacy server is one that it cannot use.
fn probe(status: u16, kind: Type, holds: Holds) -> Outcome {
    let about_the_era = !matches!(status, 401 | 403 | 408 | 429 | 500..);
    let outcome = call(status, kind, holds);
    let refused = outcome.kinds == [ErrorKind::Rpc] && (about_the_era || status < 300);
    let failed = outcome.kinds == [ErrorKind::Transport] && about_the_era && status >= 300;
    if refused || failed { Outcome::fails(ErrorKind::UnsupportedVersion) } else { outcome }
}

/// Statuses without a body, to a client that asks what the server speaks: some show a legacy server, which this one is.
fn asked() -> Vec<(u16, Option<ErrorKind>)> {
    let mut all: Vec<(u16, Option<ErrorKind>)> =
        [400, 404, 405, 406, 409, 410, 415, 422, 451].into_iter().map(|status| (status, None)).collect();
    all.extend([401, 403].map(|status| (status, Some(ErrorKind::Unauthorized))));
    all.extend([408, 429, 500, 502, 503, 504].map(|status| (status, Some(ErrorKind::Transport))));
    all.extend([202, 204, 301, 307].map(|status| (status, Some(ErrorKind::PeerMisbehaved))));
    all
}

fn asked_by_a_legacy_client(status: u16, kind: Option<ErrorKind>) -> Behaviour {
    let acts = vec![http(&format!("{status} X"), "", Framing::Close, "")];
    let expect = kind.map_or_else(Expect::all_well, |kind| fails(On::Discover, kind));
    Behaviour::new(Transport::Http, On::Discover, &format!("{status} alone"), acts, expect)
}

/// What belongs to sessions and to streams that can be continued is not looked at, and never sent back: the server would
/// note that.
fn sessions() -> Vec<Behaviour> {
    let mut all = Vec::new();
    let row = |on, name: &str, acts, expect| row(Transport::Http, on, name, acts, expect);
    let long = "s".repeat(5000);
    for on in [On::Discover, On::List, On::Call] {
        for (name, value) in [
            ("", "abc"),
            (" of nothing", ""),
            (" with a space", "a b"),
            (" that is no ascii", "\u{e9}"),
            (" of 5000 letters", long.as_str()),
        ] {
            let fields = format!("{JSON}mcp-session-id: {value}\r\nlast-event-id: 7\r\n");
            let acts = vec![http("200 OK", &fields, Framing::Length, RIGHT)];
            all.push(row(on, &format!("a session id{name}"), acts, Expect::all_well()));
        }
        for (name, version) in [("older", "2025-11-25"), ("unknown", "2099-01-01"), ("empty", "")] {
            let fields = format!("{JSON}mcp-protocol-version: {version}\r\n");
            let acts = vec![http("200 OK", &fields, Framing::Length, RIGHT)];
            all.push(row(on, &format!("an {name} version in the head"), acts, Expect::all_well()));
        }
    }
    for on in [On::List, On::Call] {
        for (name, text) in [
            ("an id", "id: e1\ndata:\n\n"),
            ("an id and a retry", "id: e1\nretry: 1\ndata:\n\n"),
            ("an id and a notice", "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"),
            ("a retry of an hour", "retry: 3600000\n\n"),
            ("an id of nothing", "id\ndata:\n\n"),
        ] {
            for (how, acts) in [
                ("the end", vec![events(text)]),
                ("a close", vec![open(text), Act::End]),
                ("a reset", vec![open(text), Act::Reset]),
            ] {
                let name = format!("{name}, then {how}");
                all.push(row(on, &name, acts, fails(on, ErrorKind::Transport)));
            }
        }
    }
    all
}

/// A call that is given up drops its stream, and nothing is posted about it: the server would note that.
fn late() -> Vec<Behaviour> {
    let on = On::Call;
    let row = |name: &str, acts| row(Transport::Http, on, name, acts, fails(on, ErrorKind::Timeout));
    let progress = |from: u32, to: u32| -> Vec<u8> {
        let line = |step| {
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":$TOKEN,\"progress\":{step}}}}}\n\n"
            )
        };
        (from..to).map(line).collect::<String>().into_bytes()
    };
    vec![
        row("no head", vec![Act::Hold]),
        row(
            "a head and no body",
            vec![Act::Bytes(format!("HTTP/1.1 200 OK\r\n{EVENTS}\r\n").into_bytes()), Act::Hold],
        ),
        row("progress, then nothing", vec![open(progress(0, 3)), Act::Hold]),
        row("1000 times progress, then nothing", vec![open(progress(0, 1000)), Act::Hold]),
        row(
            "a question, then nothing",
            vec![open("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n"), Act::Hold],
        ),
        row(
            "a cancellation, then nothing",
            vec![
                open(
                    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":$ID}}\n\n",
                ),
                Act::Hold,
            ],
        ),
    ]
}
