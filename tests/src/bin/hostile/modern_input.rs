//! Calls in whose middle the server needs something, and asks for it in every wrong way.

use mcp_client::ErrorKind;

use crate::behaviour::{Act, Behaviour, Expect, Framing, On, Outcome, Transport};
use crate::http_bodies::{event, http};
use crate::http_streams::open;
use crate::modern::{begins, error, fails, result, row, says, tells};
use crate::visit::MAX_MESSAGE;

/// A right question.
const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}}"#;

pub(crate) fn all(transport: Transport) -> Vec<Behaviour> {
    let mut all = shapes(transport);
    all.extend(questions(transport));
    all.extend(states(transport));
    all.extend(rounds(transport));
    all.extend(retries(transport));
    if transport == Transport::Http {
        all.extend(cuts());
    }
    all
}

fn required(members: &str) -> String {
    result(&format!(r#"{{"resultType":"input_required",{members}}}"#))
}

/// A result that asks these questions, and goes on right when it is answered.
fn asking(transport: Transport, name: &str, members: &str, outcome: Outcome) -> Behaviour {
    let acts = vec![says(transport, required(members))];
    row(transport, On::Call, &format!("input {name}"), acts, Expect::confined(On::Call, outcome))
}

/// What stands where the questions and the state belong.
fn shapes(transport: Transport) -> Vec<Behaviour> {
    let (ok, bad) = (Outcome::ok(), Outcome::fails(ErrorKind::PeerMisbehaved));
    let form = format!(r#""inputRequests":{{"q":{FORM}}}"#);
    let mut rows: Vec<(String, String, Outcome)> = vec![
        ("of one right form".into(), form.clone(), ok.clone()),
        ("of a right form and a state".into(), format!(r#"{form},"requestState":"s""#), ok.clone()),
        ("of a right form, a state of null".into(), format!(r#"{form},"requestState":null"#), ok.clone()),
        ("of a right form, further members".into(), format!(r#"{form},"x":[1],"content":[]"#), ok.clone()),
        ("of nothing".into(), r#""x":1"#.into(), bad.clone()),
        ("of no questions and no state".into(), r#""inputRequests":{}"#.into(), bad.clone()),
        ("of nulls".into(), r#""inputRequests":null,"requestState":null"#.into(), bad.clone()),
        ("of no questions and a state".into(), r#""inputRequests":{},"requestState":"s""#.into(), ok.clone()),
        ("twice".into(), format!("{form},{form}"), bad.clone()),
        ("with the state twice".into(), r#""requestState":"a","requestState":"b""#.into(), bad.clone()),
        ("with meta of text".into(), format!(r#"{form},"_meta":"x""#), ok.clone()),
    ];
    for value in ["7", "true", "\"all\"", "[]", "[{}]", "[[\"q\",{}]]"] {
        rows.push((format!("questions {value}"), format!(r#""inputRequests":{value}"#), bad.clone()));
    }
    for value in ["7", "1e999", "true", "{}", "[]", "[\"s\"]", "{\"a\":1}"] {
        rows.push((format!("state {value}"), format!(r#""requestState":{value}"#), bad.clone()));
        rows.push((
            format!("state {value} and a form"),
            format!(r#"{form},"requestState":{value}"#),
            bad.clone(),
        ));
    }
    for key in
        ["", " ", "q\\u0000", "\\u202e", "../../etc/passwd", "__proto__", "q\\\"", "\\ud800", "\u{1f980}"]
    {
        let members = format!(r#""inputRequests":{{"{key}":{FORM}}}"#);
        rows.push((format!("key {key:?}"), members, ok.clone().or_misbehaved(key == "\\ud800")));
    }
    let long = "k".repeat(100_000);
    rows.push(("key of 100 kB".into(), format!(r#""inputRequests":{{"{long}":{FORM}}}"#), ok.clone()));
    rows.push((
        "key twice".into(),
        format!(r#""inputRequests":{{"q":{FORM},"q":{FORM}}}"#),
        ok.clone().or_misbehaved(true),
    ));
    let too_many = Outcome::fails(ErrorKind::LimitExceeded);
    for (count, outcome) in [(2, ok.clone()), (64, ok), (65, too_many.clone()), (1000, too_many)] {
        let questions: Vec<String> = (0..count).map(|n| format!(r#""q{n}":{FORM}"#)).collect();
        rows.push((
            format!("{count} questions"),
            format!(r#""inputRequests":{{{}}}"#, questions.join(",")),
            outcome,
        ));
    }
    rows.into_iter().map(|(name, members, outcome)| asking(transport, &name, &members, outcome)).collect()
}

impl Outcome {
    /// Or with this error, where both are right.
    fn or_misbehaved(mut self, either: bool) -> Self {
        if either {
            self.kinds.push(ErrorKind::PeerMisbehaved);
        }
        self
    }
}

/// Questions that are none, or none that was allowed. Nobody is asked, and the call fails.
fn questions(transport: Transport) -> Vec<Behaviour> {
    let bad = || Outcome::fails(ErrorKind::PeerMisbehaved);
    let elicit = |params: &str| format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
    let schema = |schema: &str| elicit(&format!(r#"{{"message":"m","requestedSchema":{schema}}}"#));
    let property =
        |property: &str| schema(&format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#));
    let url = |url: &str| elicit(&format!(r#"{{"mode":"url","message":"m","url":{url}}}"#));
    let long = format!("\"https://example.com/{}\"", "u".repeat(100_000));
    let mut rows: Vec<(String, String)> = Vec::new();
    for value in ["null", "7", "true", "\"elicitation/create\"", "[]", "[1]", "{}"] {
        rows.push((value.to_owned(), value.to_owned()));
    }
    for method in [
        "null",
        "7",
        "\"\"",
        "\"no/such\"",
        "\"ping\"",
        "\"tools/call\"",
        "\"Elicitation/Create\"",
        "\"elicitation/create \"",
    ] {
        rows.push((format!("method {method}"), format!(r#"{{"method":{method},"params":{{}}}}"#)));
    }
    rows.extend([
        ("without method".to_owned(), r#"{"params":{"message":"m"}}"#.to_owned()),
        ("with the method twice".into(), r#"{"method":"ping","method":"elicitation/create"}"#.into()),
        (
            "for sampling that was not declared".into(),
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#.into(),
        ),
        ("for roots that were not declared".into(), r#"{"method":"roots/list"}"#.into()),
        ("for roots, with params".into(), r#"{"method":"roots/list","params":{}}"#.into()),
        ("without params".into(), r#"{"method":"elicitation/create"}"#.into()),
    ]);
    for params in ["null", "7", "\"x\"", "[]", "{}", r#"{"message":7}"#, r#"{"message":null}"#] {
        rows.push((format!("params {params}"), elicit(params)));
    }
    for mode in ["7", "null ", "\"\"", "\"telepathy\"", "\"FORM\"", "[\"form\"]"] {
        let params = format!(r#"{{"mode":{mode},"message":"m"}}"#);
        rows.push((format!("mode {mode}"), elicit(&params)));
    }
    for value in [
        "null",
        "7",
        "\"s\"",
        "[]",
        "{}",
        r#"{"type":"array","items":{}}"#,
        r#"{"type":"object","properties":[]}"#,
        r#"{"type":"object","properties":7}"#,
    ] {
        rows.push((format!("schema {value}"), schema(value)));
    }
    for value in [
        "null",
        "7",
        "[]",
        r#"{"type":"object","properties":{}}"#,
        r#"{"type":"null"}"#,
        r#"{"type":7}"#,
        r#"{"type":["string","null"]}"#,
        r##"{"$ref":"#/a"}"##,
        r#"{"type":"string","minLength":-1}"#,
        r#"{"type":"string","minLength":9,"maxLength":1}"#,
        r#"{"type":"integer","minimum":9,"maximum":1}"#,
        r#"{"type":"string","enum":[]}"#,
        r#"{"type":"string","enum":7}"#,
        r#"{"type":"array","items":{"type":"object"}}"#,
        r#"{"type":"string","pattern":"("}"#,
    ] {
        rows.push((format!("property {value}"), property(value)));
    }
    for value in [
        "null",
        "7",
        "\"\"",
        "\"/relative\"",
        "\"javascript:alert(1)\"",
        "\"file:///etc/passwd\"",
        "\"data:text/html,x\"",
        "\"https://\"",
        "\"https://user:secret@example.com/\"",
        "\"ftp://example.com/\"",
        "\"http://example.com/\"",
        "\"https://exa mple.com/\"",
        "\"https://example.com/\\u0000\"",
        "\" https://example.com\\n\"",
    ] {
        rows.push((format!("url {value}"), url(value)));
    }
    rows.push(("url of 100 kB".into(), url(&long)));
    let mut all = Vec::new();
    for (name, question) in rows {
        let members = format!(r#""inputRequests":{{"q":{question}}}"#);
        // Odd, and good enough to be shown to somebody: then the call goes on.
        let lenient = is_lenient(&name);
        let outcome = if lenient { bad().or_ok() } else { bad() };
        all.push(asking(transport, &format!("question {name}"), &members, outcome.clone()));
        let members = format!(r#""inputRequests":{{"good":{FORM},"q":{question}}},"requestState":"s""#);
        all.push(asking(transport, &format!("question {name}, beside a good one"), &members, outcome));
    }
    all
}

/// What a client may as well understand.
fn is_lenient(name: &str) -> bool {
    [
        "mode null ",
        "property {\"type\":\"string\",\"pattern\":\"(\"}",
        "property {\"type\":\"string\",\"minLength\":9,\"maxLength\":1}",
        "property {\"type\":\"integer\",\"minimum\":9,\"maximum\":1}",
        "url \" https://example.com\\n\"",
    ]
    .contains(&name)
}

/// States of every content: they go back as they came.
fn states(transport: Transport) -> Vec<Behaviour> {
    let mut rows: Vec<(String, String, Outcome)> = Vec::new();
    for state in [
        "",
        " ",
        "\\u0000",
        "\\u001b[2J\\u202e",
        "\\ud83e\\udd80",
        "{\\\"a\\\":1}",
        "$ID",
        "\\\\",
        "\\/",
        "\u{2028}",
    ] {
        rows.push((format!("{state:?}"), state.to_owned(), Outcome::ok()));
    }
    rows.push(("a lone surrogate".into(), "\\ud800".into(), Outcome::ok().or_misbehaved(true)));
    let large = "s".repeat(MAX_MESSAGE - 4096);
    rows.push(("nearly the limit".into(), large, Outcome::ok()));
    let over = Outcome::fails(ErrorKind::LimitExceeded);
    rows.push(("over the limit".into(), "s".repeat(MAX_MESSAGE), over.clone()));
    let controls = "\\u0001".repeat(MAX_MESSAGE / 6 - 1000);
    rows.push(("of controls only".into(), controls, Outcome::ok()));
    rows.into_iter()
        .map(|(name, state, outcome)| {
            asking(transport, &format!("state {name}"), &format!(r#""requestState":"{state}""#), outcome)
        })
        .collect()
}

/// Again and again.
fn rounds(transport: Transport) -> Vec<Behaviour> {
    let on = On::Call;
    let mut all = Vec::new();
    let form = format!(r#""inputRequests":{{"q":{FORM}}}"#);
    for (name, members) in [
        ("a state", r#""requestState":"again""#.to_owned()),
        ("a question", form.clone()),
        ("a question and a state", format!(r#"{form},"requestState":"again""#)),
        ("no question and a state", r#""inputRequests":{},"requestState":"again""#.to_owned()),
    ] {
        let ask = || vec![says(transport, required(&members))];
        let endless = row(
            transport,
            on,
            &format!("input for ever with {name}"),
            ask(),
            fails(on, ErrorKind::LimitExceeded),
        );
        all.push(endless.with_rule(On::Retry, usize::MAX, ask()));
        for (times, outcome) in
            [(8, Outcome::ok()), (9, Outcome::ok()), (10, Outcome::fails(ErrorKind::LimitExceeded))]
        {
            let expect = Expect::confined(on, outcome);
            let name = format!("input in {} rounds with {name}", times + 1);
            all.push(row(transport, on, &name, ask(), expect).with_rule(On::Retry, times, ask()));
        }
    }
    all
}

/// What becomes of the call when it is made once more.
fn retries(transport: Transport) -> Vec<Behaviour> {
    let on = On::Call;
    let mut all = Vec::new();
    let missed = match transport {
        Transport::Http => ErrorKind::PeerMisbehaved,
        Transport::Stdio => ErrorKind::Timeout,
    };
    let mut rows: Vec<(&str, Vec<Act>, ErrorKind)> = vec![
        ("noise", vec![says(transport, "noise")], missed),
        (
            "the id of the first request",
            vec![says(transport, r#"{"jsonrpc":"2.0","id":$CALL,"result":$RESULT}"#.replace("$CALL", "0"))],
            missed,
        ),
        (
            "the id of nobody",
            vec![says(transport, r#"{"jsonrpc":"2.0","id":99999,"result":$RESULT}"#)],
            missed,
        ),
        ("an error", vec![says(transport, error(-32000, ""))], ErrorKind::Rpc),
        (
            "an error about its state",
            vec![says(transport, error(-32602, r#"{"reason":"invalid_request_state"}"#))],
            ErrorKind::Rpc,
        ),
        (
            "an error about its revision",
            vec![says(transport, error(-32022, r#"{"supported":[]}"#))],
            ErrorKind::Rpc,
        ),
        ("a broken answer", vec![says(transport, result("7"))], ErrorKind::PeerMisbehaved),
        (
            "a broken question",
            vec![says(transport, required(r#""inputRequests":{"q":7}"#))],
            ErrorKind::PeerMisbehaved,
        ),
        (
            "an unknown kind of result",
            vec![says(transport, result(r#"{"resultType":"later"}"#))],
            ErrorKind::PeerMisbehaved,
        ),
        ("silence", vec![Act::Hold], ErrorKind::Timeout),
        (
            "progress and silence",
            vec![
                begins(
                    transport,
                    &[
                        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#,
                    ],
                ),
                Act::Hold,
            ],
            ErrorKind::Timeout,
        ),
    ];
    if transport == Transport::Http {
        rows.extend([
            ("a reset", vec![Act::Reset], ErrorKind::Transport),
            ("a close", vec![Act::End], ErrorKind::Transport),
            ("an empty stream", vec![tells(transport, &[])], ErrorKind::Transport),
            (
                "a stream that can be continued",
                vec![open("id: 1\nretry: 1\ndata:\n\n"), Act::Reset],
                ErrorKind::Transport,
            ),
            ("202", vec![http("202 X", "", Framing::Length, "")], ErrorKind::PeerMisbehaved),
            ("404", vec![http("404 X", "", Framing::Length, "")], ErrorKind::Transport),
            ("401", vec![http("401 X", "", Framing::Length, "")], ErrorKind::Unauthorized),
            ("503", vec![http("503 X", "", Framing::Length, "")], ErrorKind::Transport),
        ]);
    }
    for (how, members) in [
        ("a state", r#""requestState":"s""#.to_owned()),
        ("a question", format!(r#""inputRequests":{{"q":{FORM}}}"#)),
    ] {
        for (name, acts, kind) in &rows {
            let ask = vec![says(transport, required(&members))];
            let name = format!("input with {how}, then {name}");
            let behaviour = row(transport, on, &name, ask, fails(on, *kind));
            all.push(behaviour.with_rule(On::Retry, usize::MAX, acts.clone()));
        }
        // The rest of the stream belongs to a request that is over.
        let late = [required(&members), r#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT}"#.to_owned()];
        let late: Vec<&str> = late.iter().map(String::as_str).collect();
        all.push(row(
            transport,
            on,
            &format!("input with {how}, and an answer beside it"),
            vec![tells(transport, &late)],
            Expect::all_well(),
        ));
        let twice = [required(&members), required(&members)];
        let twice: Vec<&str> = twice.iter().map(String::as_str).collect();
        all.push(row(
            transport,
            on,
            &format!("input with {how}, twice"),
            vec![tells(transport, &twice)],
            Expect::all_well(),
        ));
    }
    all
}

/// The stream with the questions breaks off, at every place.
fn cuts() -> Vec<Behaviour> {
    let on = On::Call;
    let stream = event(required(&format!(r#""inputRequests":{{"q":{FORM}}},"requestState":"s""#)).as_bytes());
    let mut all = Vec::new();
    for cut in 0..=stream.len() {
        let Some(text) = stream.get(..cut).filter(|text| !text.ends_with(b"$") && !text.ends_with(b"$I"))
        else {
            continue;
        };
        let expect = if cut == stream.len() { Expect::all_well() } else { fails(on, ErrorKind::Transport) };
        let name = format!("input cut at {cut}");
        all.push(row(Transport::Http, on, &name, vec![open(text), Act::End], expect));
    }
    all
}
