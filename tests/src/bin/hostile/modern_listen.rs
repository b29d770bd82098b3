//! Subscriptions that are refused, granted in odd ways, lie, or die.

use std::time::Duration;

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome, Told, Transport};
use crate::http_bodies::{EVENTS, JSON, event, events, http, json};
use crate::http_streams::open;
use crate::letters::{LOG, RIGHT};
use crate::modern::{begins, error, fails, result, row, says, tells};
use crate::server::{CHANGE, GRANT};
use crate::visit::MAX_MESSAGE;

const ON: On = On::Listen;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

pub(crate) fn all(transport: Transport) -> Vec<Behaviour> {
    let mut all = refused(transport);
    all.extend(granted(transport));
    all.extend(told(transport));
    all.extend(ended(transport));
    if transport == Transport::Http {
        all.extend(statuses());
        all.extend(lost());
    }
    all
}

fn standing(transport: Transport, name: &str, acts: Vec<Act>, told: Told) -> Behaviour {
    row(transport, ON, name, acts, Expect::all_well()).told(told)
}

/// A notification of the server on this subscription.
fn notice(method: &str, members: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":$ID}"#;
    let members = if members.is_empty() { meta.to_owned() } else { format!("{members},{meta}") };
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{members}}}}}"#)
}

fn grant(notifications: &str) -> String {
    notice("subscriptions/acknowledged", &format!(r#""notifications":{notifications}"#))
}

/// Nothing comes to stand.
fn refused(transport: Transport) -> Vec<Behaviour> {
    let missed = match transport {
        Transport::Http => ErrorKind::PeerMisbehaved,
        Transport::Stdio => ErrorKind::Timeout,
    };
    let mut rows: Vec<(&str, Vec<Act>, ErrorKind)> = vec![
        ("an error", vec![says(transport, error(-32601, ""))], ErrorKind::Rpc),
        ("an error with broken data", vec![says(transport, error(-32603, r#""\x41""#))], ErrorKind::Rpc),
        ("a limit", vec![says(transport, error(-32603, "\"Subscription limit reached\""))], ErrorKind::Rpc),
        ("noise", vec![says(transport, "noise")], missed),
        (
            "the answer of nobody",
            vec![says(transport, r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#)],
            missed,
        ),
        ("a result at once", vec![says(transport, result("{}"))], ErrorKind::PeerMisbehaved),
        ("a result of text", vec![says(transport, result("\"ok\""))], ErrorKind::PeerMisbehaved),
        (
            "a request for input",
            vec![says(transport, result(r#"{"resultType":"input_required","requestState":"s"}"#))],
            ErrorKind::PeerMisbehaved,
        ),
        ("silence", vec![Act::Hold], ErrorKind::Timeout),
        ("a change, and no grant", vec![begins(transport, &[CHANGE]), Act::Hold], ErrorKind::Timeout),
        ("logs, and no grant", vec![begins(transport, &[LOG, LOG]), Act::Hold], ErrorKind::Timeout),
        ("a question, and no grant", vec![begins(transport, &[PING]), Act::Hold], ErrorKind::Timeout),
    ];
    let foreign = GRANT.replace("$ID", "99999");
    rows.push(("a grant of another", vec![begins(transport, &[&foreign]), Act::Hold], ErrorKind::Timeout));
    if transport == Transport::Http {
        rows.extend([
            ("an empty stream", vec![events("")], ErrorKind::Transport),
            ("comments", vec![events(": x\n\n")], ErrorKind::Transport),
            ("half a grant", vec![open("data: {\"json"), Act::End], ErrorKind::Transport),
            ("half a grant, and silence", vec![open("data: {\"json"), Act::Hold], ErrorKind::Timeout),
            ("the grant as a body", vec![json(GRANT)], ErrorKind::PeerMisbehaved),
            (
                "a stream that can be continued",
                vec![events("id: 1\nretry: 1\ndata:\n\n")],
                ErrorKind::Transport,
            ),
            ("a reset", vec![Act::Reset], ErrorKind::Transport),
            ("a close", vec![Act::End], ErrorKind::Transport),
            (
                "an event over the limit",
                vec![open("data: "), Act::Flood(vec![b'x'; 65_536], 2 * MAX_MESSAGE), Act::End],
                ErrorKind::LimitExceeded,
            ),
        ]);
    }
    rows.into_iter().map(|(name, acts, kind)| row(transport, ON, name, acts, fails(ON, kind))).collect()
}

/// The grant is odd, or no grant at all.
fn granted(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, notifications) in [
        ("all of it", r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}"#),
        ("a part", r#"{"toolsListChanged":true}"#),
        (
            "more than was wanted",
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b","c:d"]}"#,
        ),
        ("unknown members", r#"{"toolsListChanged":true,"x":{"y":[1]}}"#),
        ("odd members", r#"{"toolsListChanged":true,"resourceSubscriptions":7,"promptsListChanged":"yes"}"#),
    ] {
        let acts = vec![begins(transport, &[&grant(notifications), CHANGE]), Act::Hold];
        all.push(standing(transport, &format!("grant of {name}"), acts, Told::Change));
    }
    for (name, notifications) in [
        ("nothing", "{}"),
        ("false", r#"{"toolsListChanged":false}"#),
        ("text", r#"{"toolsListChanged":"true"}"#),
    ] {
        let acts = vec![begins(transport, &[&grant(notifications), CHANGE]), Act::Hold];
        all.push(standing(transport, &format!("grant of {name}, then a change"), acts, Told::Nothing));
    }
    for value in ["null", "7", "\"all\"", "[]", "true"] {
        let acts = vec![begins(transport, &[&grant(value)]), Act::Hold];
        // It is no grant, or one of nothing.
        let outcome = Outcome::fails(ErrorKind::Timeout).or_ok();
        let expect = Expect::confined(ON, outcome);
        all.push(row(transport, ON, &format!("grant of {value}"), acts, expect));
    }
    let twice = vec![begins(transport, &[GRANT, GRANT, CHANGE]), Act::Hold];
    all.push(standing(transport, "grant twice", twice, Told::Change));
    let narrowed = vec![begins(transport, &[GRANT, &grant("{}"), CHANGE]), Act::Hold];
    all.push(standing(transport, "a second grant of nothing", narrowed, Told::Change));
    let early = vec![begins(transport, &[CHANGE, GRANT]), Act::Hold];
    all.push(standing(transport, "a change before the grant", early, Told::Change));
    let noisy = vec![begins(transport, &["noise", "{}", PING, LOG, GRANT, "[]", CHANGE]), Act::Hold];
    all.push(standing(transport, "noise around the grant", noisy, Told::Change));
    let text = GRANT.replace("$ID", "\"$ID\"");
    let outcome = Outcome::fails(ErrorKind::Timeout).or_ok();
    let acts = vec![begins(transport, &[&text]), Act::Hold];
    all.push(row(transport, ON, "grant with its id as text", acts, Expect::confined(ON, outcome)));
    all
}

/// What is told to a subscription that stands.
fn told(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let updated = |members: &str| notice("resources/updated", members);
    let foreign = |text: &str| text.replace("$ID", "99999");
    let rows: Vec<(&str, String, Told)> = vec![
        ("a change", CHANGE.into(), Told::Change),
        ("a change of a resource", updated(r#""uri":"a:b""#), Told::Change),
        ("a change of a part of a resource", updated(r#""uri":"a:b/c""#), Told::Change),
        ("a change with more in it", notice("tools/list_changed", r#""x":[1],"y":{}"#), Told::Change),
        ("a change of another subscription", foreign(CHANGE), Told::Nothing),
        ("a change that was not wanted", notice("prompts/list_changed", ""), Told::Nothing),
        ("a change without its resource", updated(""), Told::Nothing),
        ("a change of a resource of no text", updated(r#""uri":7"#), Told::Nothing),
        ("a change with params of text", r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":"x"}"#.into(), Told::Nothing),
        ("a notice of nothing that is known", notice("x/y", ""), Told::Nothing),
        ("a log", LOG.into(), Told::Nothing),
        ("a question", PING.into(), Told::Nothing),
        ("an elicitation", r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#.into(), Told::Nothing),
        ("progress", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}"#.into(), Told::Nothing),
        ("noise", "noise".into(), Told::Nothing),
        ("a batch", format!("[{CHANGE}]"), Told::Nothing),
        ("the answer of nobody", r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#.into(), Told::Nothing),
        ("the end of another", r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999}}"#.into(), Told::Nothing),
        ("an end without params", r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#.into(), Told::Nothing),
        ("an error of nobody", r#"{"jsonrpc":"2.0","id":99999,"error":{"code":1,"message":"m"}}"#.into(), Told::Nothing),
    ];
    for (name, message, told) in rows {
        let acts = vec![begins(transport, &[GRANT, &message]), Act::Hold];
        all.push(standing(transport, &format!("granted, then {name}"), acts, told));
        if told == Told::Nothing {
            let acts = vec![begins(transport, &[GRANT, &message, CHANGE]), Act::Hold];
            all.push(standing(
                transport,
                &format!("granted, then {name}, then a change"),
                acts,
                Told::Change,
            ));
        }
    }
    for (name, piece, bytes) in [
        ("a flood of changes", CHANGE, 400_000),
        ("a flood of logs", LOG, 400_000),
        ("a flood of questions", PING, 100_000),
        ("a flood of noise", "noise noise noise", 400_000),
    ] {
        let piece = match transport {
            Transport::Http => event(piece.as_bytes()),
            Transport::Stdio => format!("{piece}\n").into_bytes(),
        };
        // Logs may push out what else is waiting; the subscriber is told that too.
        let acts = vec![begins(transport, &[GRANT, CHANGE]), Act::Flood(piece, bytes), Act::Hold];
        all.push(standing(transport, &format!("granted, then {name}"), acts, Told::Change));
    }
    all
}

/// The server ends it, in order or not.
fn ended(transport: Transport) -> Vec<Behaviour> {
    let mut all = Vec::new();
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#;
    for (name, message) in [
        ("a result", result("{}")),
        (
            "a result with meta",
            result(r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}"#),
        ),
        ("a result of another kind", result(r#"{"resultType":"later"}"#)),
        ("a broken result", result("\"a\u{7}\"")),
        ("a cancellation", cancelled.to_owned()),
    ] {
        let acts = vec![begins(transport, &[GRANT, &message]), Act::Hold];
        all.push(standing(transport, &format!("ended by {name}"), acts, Told::End));
        let acts = vec![begins(transport, &[GRANT, &message, CHANGE, &message]), Act::Hold];
        all.push(standing(transport, &format!("ended by {name}, and more after it"), acts, Told::End));
    }
    for (name, message, kind) in [
        ("an error", error(-32603, ""), ErrorKind::Rpc),
        ("an error with broken data", error(-32603, r#""\x41""#), ErrorKind::Rpc),
        ("neither result nor error", r#"{"jsonrpc":"2.0","id":$ID}"#.to_owned(), ErrorKind::PeerMisbehaved),
    ] {
        let acts = vec![begins(transport, &[GRANT, &message]), Act::Hold];
        all.push(row(transport, ON, &format!("ended by {name}"), acts, fails(ON, kind)));
    }
    all
}

/// Statuses by bodies, in place of the stream.
fn statuses() -> Vec<Behaviour> {
    let mut all = Vec::new();
    let refusal = error(-32601, "");
    for status in [200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 405, 406, 410, 415, 429, 500, 502, 503] {
        for (name, fields, body) in [
            ("nothing", "", ""),
            ("an error", JSON, refusal.as_str()),
            ("a page", "content-type: text/html\r\n", "<h1>no</h1>"),
            ("the end", JSON, RIGHT),
        ] {
            let kind = match (status, name) {
                (202 | 204 | 301 | 307, _) => ErrorKind::PeerMisbehaved,
                (401, _) => ErrorKind::Unauthorized,
                (_, "an error") => ErrorKind::Rpc,
                (200..=299, _) => ErrorKind::PeerMisbehaved,
                (403, "the end") => ErrorKind::Transport,
                (403, _) => ErrorKind::Unauthorized,
                _ => ErrorKind::Transport,
            };
            let acts = vec![http(&format!("{status} X"), fields, Framing::Close, body)];
            all.push(row(Transport::Http, ON, &format!("{status} with {name}"), acts, fails(ON, kind)));
        }
    }
    all
}

/// The stream is lost, and asked for again from the beginning.
fn lost() -> Vec<Behaviour> {
    let transport = Transport::Http;
    let mut all = Vec::new();
    let stream = [event(GRANT.as_bytes()), event(b"{}")].concat();
    let broken = format!("HTTP/1.1 200 OK\r\n{EVENTS}transfer-encoding: chunked\r\n\r\nzz\r\n").into_bytes();
    for (name, acts) in [
        ("its end", vec![tells(transport, &[GRANT])]),
        ("a close", vec![begins(transport, &[GRANT]), Act::End]),
        ("a reset", vec![begins(transport, &[GRANT]), Act::Hold]),
        ("its end, with an id to continue", vec![events([b"id: 1\nretry: 1\n", stream.as_slice()].concat())]),
        (
            "its end in the middle of an event",
            vec![open([stream.as_slice(), b"data: {\"js"].concat()), Act::End],
        ),
    ] {
        let mut acts = acts;
        if let Some(Act::Hold) = acts.last() {
            // A reset may overtake the grant; after a moment it does not.
            acts.pop();
            acts.extend([Act::Drip(b": x\n\n".to_vec(), Duration::from_millis(10)), Act::Reset]);
        }
        let behaviour = standing(transport, &format!("lost by {name}"), acts.clone(), Told::Restored);
        all.push(behaviour.times(1));
        // A second attempt that fails is not the last one, and nothing that says no ends well.
        let behaviour =
            standing(transport, &format!("lost by {name}, then a refusal"), acts, Told::Nothing).times(1);
        let refuse = vec![says(transport, error(-32601, ""))];
        let expect = fails(ON, ErrorKind::Rpc);
        all.push(Behaviour { expect, told: Told::Restored, ..behaviour }.with_rule(ON, usize::MAX, refuse));
    }
    let acts = vec![Act::Bytes(broken)];
    all.push(row(transport, ON, "a broken chunk", acts, fails(ON, ErrorKind::Transport)));
    all
}
