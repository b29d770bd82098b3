//! What a server may write in place of an answer, whatever carries it: message by message, with what the client must make
//! of it over a shared channel and in a response of its own.

use crate::behaviour::On;

/// What a call gets out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The right result.
    Answers,
    /// Nothing: no answer to the call can be seen in it.
    Misses,
    /// An error object of the server.
    Refuses,
    /// The certainty that its answer is broken.
    Spoils,
    /// A revision that the client does not speak.
    Unsupported,
}
use Effect::{Answers, Misses, Refuses, Spoils, Unsupported};

/// Messages that stand in for one answer.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) name: String,
    pub(crate) messages: Vec<Vec<u8>>,
    /// Over a channel that all calls share.
    pub(crate) shared: Effect,
    /// In the response to the call's own POST.
    pub(crate) own: Effect,
}

impl Letter {
    fn new(name: impl Into<String>, message: impl Into<Vec<u8>>, shared: Effect, own: Effect) -> Self {
        Self { name: name.into(), messages: vec![message.into()], shared, own }
    }
}

pub(crate) const RIGHT: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT}"#;
pub(crate) const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;

/// Whatever was asked.
pub(crate) fn for_any() -> Vec<Letter> {
    let mut all = text();
    all.extend(envelopes());
    all.extend(several());
    all
}

/// What is asked with this message.
pub(crate) fn results_for(on: On) -> Vec<Letter> {
    let rows: &[(&str, &str, Effect)] = match on {
        On::Initialize => INITIALIZE_RESULTS,
        On::List => LIST_RESULTS,
        _ => CALL_RESULTS,
    };
    let letter = |(name, result, effect): &(&str, &str, Effect)| {
        let message = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
        Letter::new(format!("result {name}"), message, *effect, *effect)
    };
    rows.iter().map(letter).collect()
}

/// Text that is no JSON, or not quite, or too much of it.
fn text() -> Vec<Letter> {
    let both = |name: &str, text: &[u8], effect| Letter::new(name, text, effect, effect);
    let framed = |inside: &[u8]| {
        [&br#"{"jsonrpc":"2.0","id":$ID,"x":""#[..], inside, br#"","result":$RESULT}"#].concat()
    };
    let within =
        |inside: &[u8]| [&br#"{"jsonrpc":"2.0","id":$ID,"result":{"x":""#[..], inside, br#""}}"#].concat();
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"x":{open}{close}}}}}"#)
    };
    let mut all = vec![
        both("a greeting", b"hello", Misses),
        both("html", b"<!doctype html><title>Sign in</title>", Misses),
        both("http over the wire", b"HTTP/1.1 400 Bad Request", Misses),
        both("an escape sequence", b"\x1b[32mINFO\x1b[0m listening", Misses),
        both("a cut object", br#"{"jsonrpc":"2.0","id":$ID,"result":{"#, Spoils),
        both("a cut string", br#"{"jsonrpc":"2.0","id":$ID,"result":{"a":"b"#, Spoils),
        both("a cut key", br#"{"jsonrpc":"2.0","i"#, Misses),
        both("a trailing comma", br#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT,}"#, Spoils),
        both("single quotes", b"{'jsonrpc':'2.0','id':$ID,'result':{}}", Misses),
        both("nan", br#"{"jsonrpc":"2.0","id":$ID,"result":{"x":NaN}}"#, Spoils),
        both("a comment", br#"{/* hi */"jsonrpc":"2.0","id":$ID,"result":$RESULT}"#, Misses),
        both("trailing text", br#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT} done"#, Spoils),
        both(
            "two in one",
            br#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT}{"jsonrpc":"2.0","method":"x"}"#,
            Spoils,
        ),
        both("wrong brackets", br#"{"jsonrpc":"2.0","id":$ID,"result":[}}"#, Spoils),
        both("spaces around", b" \t {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":$RESULT} \t ", Answers),
        both("nul in a string", &within(b"a\0b"), Spoils),
        both("nul in a string, in a member of no meaning", &framed(b"a\0b"), Answers),
        both("a control character", &within(b"a\x07b"), Spoils),
        both("a control character, in a member of no meaning", &framed(b"a\x07b"), Answers),
        both("legacy code page", &framed(b"\xb0\xa1\xc7\xd1"), Answers),
        both("overlong utf-8", &framed(b"\xc0\xaf"), Answers),
        both("a surrogate in utf-8", &framed(b"\xed\xa0\x80"), Answers),
        both("an escaped lone surrogate", &framed(br"\ud800"), Answers),
        both("a broken escape", &within(br"\x41"), Spoils),
        both("a broken escape, in a member of no meaning", &framed(br"\x41"), Answers),
        both("utf-16", b"{\0\"\0j\0s\0o\0n\0r\0p\0c\0\"\0:\0\"\x002\0.\x000\0\"\0}\0", Misses),
        both("only nul", b"\0\0\0\0\0\0\0\0", Misses),
        both("only 0xff", b"\xff\xff\xff\xff", Misses),
        both("too deep", deep(200).as_bytes(), Spoils),
        both("far too deep", deep(100_000).as_bytes(), Spoils),
        both("deep enough", deep(100).as_bytes(), Answers),
        both("a number beyond floats", br#"{"jsonrpc":"2.0","id":$ID,"result":{"x":1e999}}"#, Spoils),
        both(
            "an integer of 5000 digits",
            format!(r#"{{"jsonrpc":"2.0","id":$ID,"x":{},"result":$RESULT}}"#, "9".repeat(5000)).as_bytes(),
            Answers,
        ),
        both(
            "a key of 100 kB",
            format!(r#"{{"jsonrpc":"2.0","{}":1,"id":$ID,"result":$RESULT}}"#, "k".repeat(100_000))
                .as_bytes(),
            Answers,
        ),
        both(
            "10000 members",
            format!(r#"{{"jsonrpc":"2.0",{}"id":$ID,"result":$RESULT}}"#, r#""k":1,"#.repeat(10_000))
                .as_bytes(),
            Answers,
        ),
    ];
    // The visit cares only that such a result is read or refused, whichever result was asked for.
    all.retain(|letter| letter.name != "a number beyond floats" && letter.name != "deep enough");
    all
}

/// JSON, and no right answer.
fn envelopes() -> Vec<Letter> {
    let mut all: Vec<Letter> = ENVELOPES
        .iter()
        .map(|(name, message, shared, own)| Letter::new(*name, *message, *shared, *own))
        .collect();
    for bare in ["{}", "[]", "null", "true", "42", "\"text\"", "[[]]", "[{}]", "[1,2,3]"] {
        all.push(Letter::new(format!("bare {bare}"), bare, Misses, Misses));
    }
    let long = "i".repeat(5000);
    let message = format!(r#"{{"jsonrpc":"2.0","id":"{long}","result":$RESULT}}"#);
    all.push(Letter::new("id of 5000 characters", message, Misses, Misses));
    all
}

/// Name, message, what it is over a shared channel, what it is in the call's own response.
const ENVELOPES: &[(&str, &str, Effect, Effect)] = &[
    ("right", RIGHT, Answers, Answers),
    ("members the other way round", r#"{"result":$RESULT,"id":$ID,"jsonrpc":"2.0"}"#, Answers, Answers),
    ("further members", r#"{"x":[{}],"jsonrpc":"2.0","id":$ID,"result":$RESULT,"y":null}"#, Answers, Answers),
    ("no version", r#"{"id":$ID,"result":$RESULT}"#, Spoils, Spoils),
    ("version 1.0", r#"{"jsonrpc":"1.0","id":$ID,"result":$RESULT}"#, Spoils, Spoils),
    ("version as a number", r#"{"jsonrpc":2.0,"id":$ID,"result":$RESULT}"#, Spoils, Spoils),
    ("version null", r#"{"jsonrpc":null,"id":$ID,"result":$RESULT}"#, Spoils, Spoils),
    ("no id", r#"{"jsonrpc":"2.0","result":$RESULT}"#, Misses, Misses),
    ("id null", r#"{"jsonrpc":"2.0","id":null,"result":$RESULT}"#, Misses, Misses),
    ("id as text", r#"{"jsonrpc":"2.0","id":"$ID","result":$RESULT}"#, Misses, Answers),
    ("id with a fraction", r#"{"jsonrpc":"2.0","id":$ID.5,"result":$RESULT}"#, Misses, Misses),
    ("id with an exponent", r#"{"jsonrpc":"2.0","id":1e0,"result":$RESULT}"#, Misses, Misses),
    ("id true", r#"{"jsonrpc":"2.0","id":true,"result":$RESULT}"#, Misses, Misses),
    ("id in an array", r#"{"jsonrpc":"2.0","id":[$ID],"result":$RESULT}"#, Misses, Misses),
    ("id in an object", r#"{"jsonrpc":"2.0","id":{"id":$ID},"result":$RESULT}"#, Misses, Misses),
    ("id negative", r#"{"jsonrpc":"2.0","id":-1,"result":$RESULT}"#, Misses, Misses),
    ("id of nobody", r#"{"jsonrpc":"2.0","id":999999,"result":$RESULT}"#, Misses, Misses),
    (
        "id of 30 digits",
        r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":$RESULT}"#,
        Misses,
        Misses,
    ),
    ("id twice", r#"{"jsonrpc":"2.0","id":999999,"id":$ID,"result":$RESULT}"#, Misses, Misses),
    ("result twice", r#"{"jsonrpc":"2.0","id":$ID,"result":{},"result":$RESULT}"#, Spoils, Spoils),
    ("result in capitals", r#"{"jsonrpc":"2.0","id":$ID,"Result":$RESULT}"#, Spoils, Spoils),
    ("id in capitals", r#"{"jsonrpc":"2.0","ID":$ID,"result":$RESULT}"#, Misses, Misses),
    (
        "result and error",
        r#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT,"error":{"code":1,"message":"m"}}"#,
        Spoils,
        Spoils,
    ),
    ("neither result nor error", r#"{"jsonrpc":"2.0","id":$ID}"#, Spoils, Spoils),
    (
        "result and a null error",
        r#"{"jsonrpc":"2.0","id":$ID,"result":$RESULT,"error":null}"#,
        Answers,
        Answers,
    ),
    ("result null", r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#, Spoils, Spoils),
    ("result text", r#"{"jsonrpc":"2.0","id":$ID,"result":"ok"}"#, Spoils, Spoils),
    ("result array", r#"{"jsonrpc":"2.0","id":$ID,"result":[]}"#, Spoils, Spoils),
    ("result false", r#"{"jsonrpc":"2.0","id":$ID,"result":false}"#, Spoils, Spoils),
    ("error text", r#"{"jsonrpc":"2.0","id":$ID,"error":"bad"}"#, Spoils, Spoils),
    ("error array", r#"{"jsonrpc":"2.0","id":$ID,"error":[]}"#, Spoils, Spoils),
    ("error empty", r#"{"jsonrpc":"2.0","id":$ID,"error":{}}"#, Spoils, Spoils),
    ("error null alone", r#"{"jsonrpc":"2.0","id":$ID,"error":null}"#, Spoils, Spoils),
    ("error without code", r#"{"jsonrpc":"2.0","id":$ID,"error":{"message":"m"}}"#, Spoils, Spoils),
    ("error without message", r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000}}"#, Spoils, Spoils),
    ("error code text", r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"E1","message":"m"}}"#, Spoils, Spoils),
    (
        "error code fraction",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-1.5,"message":"m"}}"#,
        Spoils,
        Spoils,
    ),
    (
        "error code beyond 64 bits",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":99999999999999999999,"message":"m"}}"#,
        Spoils,
        Spoils,
    ),
    (
        "error message number",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":7}}"#,
        Spoils,
        Spoils,
    ),
    ("error", r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"m"}}"#, Refuses, Refuses),
    (
        "error with controls",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"\u001b[31m\u202e\n\u0000","data":{"x":[1]}}}"#,
        Refuses,
        Refuses,
    ),
    (
        "error with data null",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"m","data":null}}"#,
        Refuses,
        Refuses,
    ),
    (
        "error of url elicitation without data",
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"m"}}"#,
        Refuses,
        Refuses,
    ),
    (
        "error with id null",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        Misses,
        Refuses,
    ),
    ("error without id", r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#, Misses, Refuses),
    (
        "error with id as text",
        r#"{"jsonrpc":"2.0","id":"$ID","error":{"code":-32000,"message":"m"}}"#,
        Misses,
        Refuses,
    ),
    (
        "error of nobody",
        r#"{"jsonrpc":"2.0","id":999999,"error":{"code":-32000,"message":"m"}}"#,
        Misses,
        Misses,
    ),
    ("method and result", r#"{"jsonrpc":"2.0","id":$ID,"method":"ping","result":$RESULT}"#, Misses, Misses),
    ("method a number", r#"{"jsonrpc":"2.0","id":$ID,"method":7}"#, Misses, Misses),
    ("a request with its id", r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#, Misses, Misses),
    ("a request of an unknown method", r#"{"jsonrpc":"2.0","id":0,"method":"no/such"}"#, Misses, Misses),
    (
        "a request with params text",
        r#"{"jsonrpc":"2.0","id":"q","method":"ping","params":"x"}"#,
        Misses,
        Misses,
    ),
    ("a notification", LOG, Misses, Misses),
    ("a notification of an empty method", r#"{"jsonrpc":"2.0","method":""}"#, Misses, Misses),
    (
        "a broken progress",
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}"#,
        Misses,
        Misses,
    ),
    (
        "progress for nobody",
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}"#,
        Misses,
        Misses,
    ),
    (
        "a withdrawal of nothing",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#,
        Misses,
        Misses,
    ),
    (
        "a withdrawal without params",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        Misses,
        Misses,
    ),
    (
        "a log without level",
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#,
        Misses,
        Misses,
    ),
    ("itself in a batch", r#"[{"jsonrpc":"2.0","id":$ID,"result":$RESULT}]"#, Spoils, Spoils),
    (
        "itself in a batch with its id as text",
        r#"[{"jsonrpc":"2.0","id":"$ID","result":$RESULT}]"#,
        Misses,
        Spoils,
    ),
    (
        "an error in a batch",
        r#"[{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"m"}}]"#,
        Spoils,
        Spoils,
    ),
];

/// Several messages, among them the answer or not.
fn several() -> Vec<Letter> {
    let unknown = r#"{"jsonrpc":"2.0","id":77777,"result":{}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let refused = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"m"}}"#;
    let rows: [(&str, Vec<&str>, Effect); 14] = [
        ("the answer twice", vec![RIGHT, RIGHT], Answers),
        ("the answer, then an error", vec![RIGHT, refused], Answers),
        ("an error, then the answer", vec![refused, RIGHT], Refuses),
        ("the answer, then noise", vec![RIGHT, "noise", "{}"], Answers),
        ("noise, then the answer", vec!["noise", "[mcp] started", "{\"level\":30}", RIGHT], Answers),
        ("answers to nobody, then the answer", vec![unknown, unknown, RIGHT], Answers),
        ("a log, then the answer", vec![LOG, RIGHT], Answers),
        ("pings, then the answer", vec![ping, ping, RIGHT], Answers),
        (
            "a list change, then the answer",
            vec![r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, RIGHT],
            Answers,
        ),
        ("1000 logs, then the answer", [vec![LOG; 1000], vec![RIGHT]].concat(), Answers),
        ("1000 answers to nobody, then the answer", [vec![unknown; 1000], vec![RIGHT]].concat(), Answers),
        ("300 pings, then the answer", [vec![ping; 300], vec![RIGHT]].concat(), Answers),
        (
            "300 unserved requests, then the answer",
            [vec![r#"{"jsonrpc":"2.0","id":"u","method":"x"}"#; 300], vec![RIGHT]].concat(),
            Answers,
        ),
        ("a batch of 1000, then the answer", vec!["BATCH", RIGHT], Answers),
    ];
    let batch = format!("[{}]", [LOG; 1000].join(","));
    let letter = |(name, messages, effect): (&str, Vec<&str>, Effect)| {
        let message = |text: &&str| {
            if *text == "BATCH" { batch.clone().into_bytes() } else { text.as_bytes().to_vec() }
        };
        let messages = messages.iter().map(message).collect();
        Letter { name: name.to_owned(), messages, shared: effect, own: effect }
    };
    rows.into_iter().map(letter).collect()
}

const INITIALIZE_RESULTS: &[(&str, &str, Effect)] = &[
    ("empty", "{}", Spoils),
    ("without version", r#"{"capabilities":{},"serverInfo":{"name":"n","version":"1"}}"#, Spoils),
    ("version a number", r#"{"protocolVersion":20251125,"capabilities":{}}"#, Spoils),
    ("version null", r#"{"protocolVersion":null,"capabilities":{}}"#, Spoils),
    ("version empty", r#"{"protocolVersion":"","capabilities":{}}"#, Unsupported),
    ("version of tomorrow", r#"{"protocolVersion":"2099-01-01","capabilities":{}}"#, Unsupported),
    ("version modern", r#"{"protocolVersion":"2026-07-28","capabilities":{}}"#, Unsupported),
    (
        "version with a raw escape",
        concat!(r#"{"protocolVersion":""#, "\u{1b}[31m", r#"","capabilities":{}}"#),
        Spoils,
    ),
    ("version with controls", r#"{"protocolVersion":"\u001b[2J\u202e","capabilities":{}}"#, Unsupported),
    ("capabilities text", r#"{"protocolVersion":"2025-11-25","capabilities":"all"}"#, Spoils),
    ("capabilities array", r#"{"protocolVersion":"2025-11-25","capabilities":[]}"#, Spoils),
    (
        "version twice",
        r#"{"protocolVersion":"2025-11-25","protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#,
        Spoils,
    ),
    (
        "server info text",
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":"me"}"#,
        Answers,
    ),
    ("server info missing", r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#, Answers),
    (
        "instructions a number",
        r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"instructions":7}"#,
        Answers,
    ),
    (
        "unknown capabilities",
        r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{},"magic":[1]}}"#,
        Answers,
    ),
    ("meta text", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"_meta":"x"}"#, Answers),
];

const LIST_RESULTS: &[(&str, &str, Effect)] = &[
    ("empty", "{}", Spoils),
    ("tools null", r#"{"tools":null}"#, Answers),
    ("tools an object", r#"{"tools":{}}"#, Spoils),
    ("tools text", r#"{"tools":"all"}"#, Spoils),
    ("cursor a number", r#"{"tools":[],"nextCursor":7}"#, Spoils),
    ("cursor an object", r#"{"tools":[],"nextCursor":{}}"#, Spoils),
    ("cursor false", r#"{"tools":[],"nextCursor":false}"#, Spoils),
    ("cursor twice", r#"{"tools":[],"nextCursor":"a","nextCursor":"b"}"#, Spoils),
    ("cursor null", r#"{"tools":[],"nextCursor":null}"#, Answers),
    ("the same cursor for ever", r#"{"tools":[],"nextCursor":"again"}"#, Answers),
    ("an empty cursor for ever", r#"{"tools":[],"nextCursor":""}"#, Answers),
    ("a new cursor for ever", r#"{"tools":[],"nextCursor":"$ID"}"#, Answers),
    ("tools of text", r#"{"tools":["a",1,null,[],{}]}"#, Answers),
    ("a tool without name", r#"{"tools":[{"inputSchema":{"type":"object"}}]}"#, Answers),
    ("a tool with a schema of text", r#"{"tools":[{"name":"a","inputSchema":"s"}]}"#, Answers),
    (
        "one good tool among bad",
        r#"{"tools":[{"name":1},{"name":"a","inputSchema":{"type":"object"}}]}"#,
        Answers,
    ),
    ("meta text", r#"{"tools":[],"_meta":"x"}"#, Answers),
];

const CALL_RESULTS: &[(&str, &str, Effect)] = &[
    ("content null", r#"{"content":null}"#, Answers),
    ("content text", r#"{"content":"done"}"#, Spoils),
    ("content an object", r#"{"content":{"type":"text","text":"x"}}"#, Spoils),
    ("content of text", r#"{"content":["done"]}"#, Answers),
    ("content without type", r#"{"content":[{"text":"x"}]}"#, Answers),
    ("content text without text", r#"{"content":[{"type":"text"}]}"#, Answers),
    ("content text a number", r#"{"content":[{"type":"text","text":7}]}"#, Answers),
    ("content of an unknown type", r#"{"content":[{"type":"hologram","x":1}]}"#, Answers),
    ("content twice", r#"{"content":[],"content":[]}"#, Spoils),
    ("is error text", r#"{"content":[],"isError":"yes"}"#, Spoils),
    ("is error", r#"{"content":[],"isError":true}"#, Answers),
    ("structured content an array", r#"{"content":[],"structuredContent":[1]}"#, Answers),
    ("meta text", r#"{"content":[],"_meta":"x"}"#, Answers),
    ("further members", r#"{"content":[],"x":{"y":[1]}}"#, Answers),
];
