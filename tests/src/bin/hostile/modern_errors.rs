//! The errors of the modern era that a client acts on, with data of every kind; and results of kinds that nobody declared.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome, Transport};
use crate::http_bodies::{JSON, http};
use crate::modern::{error, fails, result, row, says};

const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;

pub(crate) fn all(transport: Transport) -> Vec<Behaviour> {
    let mut all = result_types(transport);
    all.extend(refusals(transport));
    all.extend(versions(transport));
    all.extend(mismatches(transport));
    all
}

/// Data that belongs to none of the errors, or to another one.
pub(crate) fn odd_data() -> Vec<(&'static str, String)> {
    vec![
        ("none", String::new()),
        ("null", "null".into()),
        ("true", "true".into()),
        ("a number", "7".into()),
        ("text", "\"2026-07-28\"".into()),
        ("an array", r#"["2026-07-28"]"#.into()),
        ("an empty object", "{}".into()),
        ("null members", r#"{"supported":null,"requested":null,"requiredCapabilities":null}"#.into()),
        (
            "members of text",
            r#"{"supported":"2026-07-28","requested":7,"requiredCapabilities":"all"}"#.into(),
        ),
        ("members of numbers", r#"{"supported":[20260728],"requiredCapabilities":[1]}"#.into()),
        ("controls", r#"{"supported":"\u001b[2J\u202e","header":"\u0000"}"#.into()),
        ("a deep nest", format!("{}{}", "[".repeat(90), "]".repeat(90))),
        ("100 kB", format!(r#"{{"x":"{}"}}"#, "d".repeat(100_000))),
        ("a raw control character", "\"a\u{7}b\"".into()),
        ("a broken escape", r#""\x41""#.into()),
    ]
}

/// As a body with status 200, and over HTTP with the status that the specification gives it.
fn answers(transport: Transport, message: &str) -> Vec<(&'static str, Act)> {
    let mut all = vec![("", says(transport, message))];
    if transport == Transport::Http {
        all.push((" with 400", http("400 Bad Request", JSON, Framing::Length, message)));
        all.push((" with 404", http("404 Not Found", JSON, Framing::Length, message)));
    }
    all
}

fn result_types(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let long = format!("\"{}\"", "t".repeat(100_000));
    let rows = [
        ("complete", "\"complete\"", true),
        ("null", "null", true),
        ("later", "\"later\"", false),
        ("task", "\"task\"", false),
        ("in capitals", "\"COMPLETE\"", false),
        ("empty", "\"\"", false),
        ("with a space", "\"complete \"", false),
        ("with controls", "\"\\u001b[2J\\u202e\"", false),
        ("a number", "1", false),
        ("true", "true", false),
        ("an array", "[\"complete\"]", false),
        ("an object", "{}", false),
        ("of 100 kB", long.as_str(), false),
        ("twice", "\"complete\",\"resultType\":\"complete\"", false),
        ("input required, with nothing", "\"input_required\"", false),
        ("input_required twice", "\"input_required\",\"resultType\":\"input_required\"", false),
    ];
    for on in [On::Call, On::List] {
        for (name, value, is_good) in rows {
            let message = result(&format!(r#"{{"content":[],"tools":[],"resultType":{value}}}"#));
            let expect = if is_good { Expect::all_well() } else { fails(on, ErrorKind::PeerMisbehaved) };
            all.push(row(
                transport,
                on,
                &format!("resultType {name}"),
                vec![says(transport, message)],
                expect,
            ));
        }
        // Questions are only for calls.
        let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
        let acts = vec![says(transport, result(asks))];
        let expect = if on == On::Call { Expect::all_well() } else { fails(on, ErrorKind::PeerMisbehaved) };
        all.push(row(transport, on, "input required", acts, expect));
    }
    all
}

/// Errors that only say no.
fn refusals(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let codes = [MISSING_CAPABILITY, -32042, -32602, -32601, 0, i64::MAX, i64::MIN];
    for on in [On::Call, On::List] {
        for code in codes {
            for (name, data) in odd_data() {
                let row = |how: &str, act| {
                    let name = format!("error {code} with {name}{how}");
                    row(transport, on, &name, vec![act], fails(on, ErrorKind::Rpc))
                };
                // How it comes is the same to all codes.
                let ways = answers(transport, &error(code, &data));
                let count = if code == MISSING_CAPABILITY { ways.len() } else { 1 };
                all.extend(ways.into_iter().take(count).map(|(how, act)| row(how, act)));
            }
        }
    }
    all
}

/// The server refuses the revision that it spoke until now.
fn versions(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let many: Vec<String> = (0..5000).map(|year| format!("\"{year}-01-01\"")).collect();
    let mut rows = odd_data();
    rows.extend([
        ("no revision", r#"{"supported":[]}"#.into()),
        ("an unknown revision", r#"{"supported":["2099-01-01"],"requested":"2026-07-28"}"#.into()),
        ("older revisions", r#"{"supported":["2025-11-25","2024-11-05"]}"#.into()),
        ("5000 revisions", format!(r#"{{"supported":[{}]}}"#, many.join(","))),
        ("a revision of 100 kB", format!(r#"{{"supported":["{}"]}}"#, "9".repeat(100_000))),
    ]);
    for on in [On::Call, On::List] {
        for (name, data) in &rows {
            // One that names older revisions alone says that another server is there now.
            let kind =
                if *name == "older revisions" { ErrorKind::UnsupportedVersion } else { ErrorKind::Rpc };
            for (how, act) in answers(transport, &error(UNSUPPORTED_VERSION, data)) {
                let name = format!("unsupported version with {name}{how}");
                all.push(row(transport, on, &name, vec![act], fails(on, kind)));
            }
        }
        // The one it was asked under: it is asked once more.
        let same = error(UNSUPPORTED_VERSION, r#"{"supported":["2026-07-28"],"requested":"2026-07-28"}"#);
        for (how, act) in answers(transport, &same) {
            let name = format!("unsupported version with the same revision{how}");
            all.push(row(
                transport,
                on,
                &format!("{name}, always"),
                vec![act.clone()],
                fails(on, ErrorKind::Rpc),
            ));
            all.push(row(transport, on, &format!("{name}, once"), vec![act], Expect::all_well()).times(1));
        }
    }
    all
}

/// The server says that head and body disagree. Over HTTP the tools are listed anew and the call is made once more.
fn mismatches(transport: Transport) -> Vec<Behaviour> {
    let on = On::Call;
    let mut all = Vec::new();
    for (name, data) in odd_data() {
        for (how, act) in answers(transport, &error(HEADER_MISMATCH, &data)) {
            let name = format!("header mismatch with {name}{how}");
            all.push(row(
                transport,
                on,
                &format!("{name}, always"),
                vec![act.clone()],
                fails(on, ErrorKind::Rpc),
            ));
            let expect = match transport {
                Transport::Http => Expect::all_well(),
                // There are no heads on a pipe, so there is nothing to do better.
                Transport::Stdio => fails(on, ErrorKind::Rpc),
            };
            all.push(row(transport, on, &format!("{name}, once"), vec![act], expect).times(1));
        }
    }
    if transport == Transport::Http {
        let mismatch = || vec![says(transport, error(HEADER_MISMATCH, ""))];
        for (name, acts, kinds) in [
            ("an error", vec![says(transport, error(-32601, ""))], &[ErrorKind::Rpc][..]),
            ("noise", vec![says(transport, "noise")], &[ErrorKind::PeerMisbehaved]),
            ("no list", vec![says(transport, result("{}"))], &[ErrorKind::Rpc, ErrorKind::PeerMisbehaved]),
            (
                "a request for input",
                vec![says(transport, result(r#"{"resultType":"input_required"}"#))],
                &[ErrorKind::Rpc, ErrorKind::PeerMisbehaved],
            ),
            ("500", vec![http("500 X", "", Framing::Length, "")], &[ErrorKind::Transport]),
            ("401", vec![http("401 X", "", Framing::Length, "")], &[ErrorKind::Unauthorized]),
            ("a reset", vec![Act::Reset], &[ErrorKind::Transport]),
            ("silence", vec![Act::Hold], &[ErrorKind::Timeout]),
            (
                "the same cursor for ever",
                vec![says(transport, result(r#"{"tools":[],"nextCursor":"a"}"#))],
                &[],
            ),
        ] {
            let outcome = if kinds.is_empty() { Outcome::ok() } else { Outcome::one_of(kinds) };
            let name = format!("header mismatch, and for the list {name}");
            let behaviour = row(transport, on, &name, mismatch(), Expect::confined(on, outcome)).times(1);
            all.push(behaviour.with_rule(On::List, usize::MAX, acts));
        }
    }
    all
}
