//! Answers to `server/discover`: to a client that knows what the server speaks, and to one that asks a legacy server.

use mcp_client::ErrorKind;

use crate::behaviour::{Behaviour, Expect, On, Outcome, Transport};
use crate::modern::{error, result, row, says};
use crate::modern_errors::odd_data;

const ON: On = On::Discover;

/// What an answer shows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shows {
    /// Nothing that a legacy server would write.
    Broken,
    /// A modern server without a revision in common.
    Foreign,
    Legacy,
    Modern,
    /// An error that is none about the era.
    Refusal,
}

pub(crate) fn all(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, message, shows) in results(transport).into_iter().chain(errors()) {
        let outcome = |outcome| Expect::confined(ON, outcome);
        let fails = |kind| outcome(Outcome::fails(kind));
        let known = match shows {
            Shows::Modern => Expect::all_well(),
            Shows::Foreign | Shows::Legacy => fails(ErrorKind::UnsupportedVersion),
            Shows::Refusal => fails(ErrorKind::Rpc),
            Shows::Broken => fails(ErrorKind::PeerMisbehaved),
        };
        let acts = || vec![says(transport, &message)];
        all.push(row(transport, ON, &name, acts(), known));
        // To a client that asks, a legacy server may say all that, and `initialize` then does.
        let asked = match shows {
            // It would be spoken to in the modern way, which this one does not know.
            Shows::Modern => continue,
            Shows::Legacy => Expect::all_well(),
            Shows::Foreign => fails(ErrorKind::UnsupportedVersion),
            Shows::Refusal => fails(ErrorKind::Rpc),
            Shows::Broken => fails(ErrorKind::PeerMisbehaved),
        };
        all.push(Behaviour::new(transport, ON, &name, acts(), asked));
    }
    all
}

fn results(transport: Transport) -> Vec<(String, String, Shows)> {
    let rest = r#""capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#;
    let typed = match transport {
        Transport::Http => Shows::Broken,
        // Whatever a legacy server writes on a pipe, it can only be told by `initialize`.
        Transport::Stdio => Shows::Legacy,
    };
    let many: Vec<String> = (0..5000).map(|year| format!("\"{year}-01-01\"")).collect();
    let many_and_ours = format!("[{},\"2026-07-28\"]", many.join(","));
    let long = format!("[\"{}\",\"2026-07-28\"]", "9".repeat(100_000));
    let mut all: Vec<(String, String, Shows)> = Vec::new();
    for (name, versions, shows) in [
        ("ours", r#"["2026-07-28"]"#, Shows::Modern),
        ("ours among others", r#"["2099-01-01","2026-07-28","2025-11-25"]"#, Shows::Modern),
        ("ours twice", r#"["2026-07-28","2026-07-28"]"#, Shows::Modern),
        ("ours among 5000", many_and_ours.as_str(), Shows::Modern),
        ("ours beside one of 100 kB", long.as_str(), Shows::Modern),
        ("none", "[]", Shows::Foreign),
        ("an unknown one", r#"["2099-01-01"]"#, Shows::Foreign),
        ("controls", r#"["\u001b[2J\u202e"]"#, Shows::Foreign),
        ("an older one", r#"["2025-11-25"]"#, Shows::Legacy),
        ("text", r#""2026-07-28""#, Shows::Legacy),
        ("null", "null", Shows::Foreign),
        ("a number", "20260728", Shows::Legacy),
        ("an object", r#"{"2026-07-28":true}"#, Shows::Legacy),
    ] {
        all.push((
            format!("versions {name}"),
            format!(r#"{{"supportedVersions":{versions},{rest}}}"#),
            shows,
        ));
    }
    for (name, members, shows) in [
        ("nothing", String::new(), Shows::Legacy),
        ("no versions", rest.to_owned(), Shows::Legacy),
        (
            "the versions twice",
            format!(r#""supportedVersions":["2026-07-28"],"supportedVersions":[],{rest}"#),
            Shows::Legacy,
        ),
        (
            "capabilities of text",
            r#""supportedVersions":["2026-07-28"],"capabilities":"all""#.into(),
            Shows::Legacy,
        ),
        (
            "capabilities of an array",
            r#""supportedVersions":["2026-07-28"],"capabilities":[]"#.into(),
            Shows::Legacy,
        ),
        (
            "instructions of a number",
            format!(r#""supportedVersions":["2026-07-28"],{rest},"instructions":7"#),
            Shows::Modern,
        ),
        ("meta of text", format!(r#""supportedVersions":["2026-07-28"],{rest},"_meta":"x""#), Shows::Modern),
        (
            "server info of text",
            format!(
                r#""supportedVersions":["2026-07-28"],{rest},"_meta":{{"io.modelcontextprotocol/serverInfo":"me"}}"#
            ),
            Shows::Modern,
        ),
        (
            "a time to live of text",
            format!(r#""supportedVersions":["2026-07-28"],{rest},"ttlMs":"long","cacheScope":7"#),
            Shows::Modern,
        ),
        (
            "a negative time to live",
            format!(r#""supportedVersions":["2026-07-28"],{rest},"ttlMs":-1"#),
            Shows::Modern,
        ),
        (
            "an endless time to live",
            format!(r#""supportedVersions":["2026-07-28"],{rest},"ttlMs":1e300"#),
            Shows::Modern,
        ),
        (
            "what initialize answers",
            r#""protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"n","version":"1"}"#
                .into(),
            Shows::Legacy,
        ),
        ("a request for input", r#""resultType":"input_required","requestState":"s""#.into(), typed),
        (
            "an unknown kind",
            format!(r#""resultType":"later","supportedVersions":["2026-07-28"],{rest}"#),
            typed,
        ),
        ("completeness and no versions", r#""resultType":"complete""#.into(), typed),
        (
            "a kind of no text",
            format!(r#""resultType":7,"supportedVersions":["2026-07-28"],{rest}"#),
            Shows::Legacy,
        ),
    ] {
        all.push((format!("result of {name}"), format!("{{{members}}}"), shows));
    }
    for value in ["null", "7", "\"ok\"", "[]", "true"] {
        all.push((format!("result {value}"), value.to_owned(), Shows::Legacy));
    }
    all.into_iter().map(|(name, members, shows)| (name, result(&members), shows)).collect()
}

fn errors() -> Vec<(String, String, Shows)> {
    let mut all = Vec::new();
    for code in [-32601, -32602, -32600, -32700, -32000, 0, -32020, -32021, -32022, -32042] {
        for (name, data) in odd_data() {
            let shows = match code {
                -32020 | -32021 => Shows::Refusal,
                // A list without a revision that can be read names none.
                -32022 if ["null members", "members of numbers"].contains(&name) => Shows::Foreign,
                _ => Shows::Legacy,
            };
            all.push((format!("error {code} with {name}"), error(code, &data), shows));
        }
    }
    for (name, supported, shows) in [
        ("none", "[]", Shows::Foreign),
        ("an unknown revision", r#"["2099-01-01"]"#, Shows::Foreign),
        ("an older revision", r#"["2025-11-25"]"#, Shows::Legacy),
        // Asked again under it, and refused again.
        ("the same revision", r#"["2026-07-28"]"#, Shows::Refusal),
    ] {
        let data = format!(r#"{{"supported":{supported},"requested":"2026-07-28"}}"#);
        all.push((format!("error -32022 that wants {name}"), error(-32022, &data), shows));
    }
    all
}
