//! What a gateway passes on of a message that it received.

#![cfg(test)]

use std::sync::Arc;

use mcp_jsonrpc::{
    DecodeLimits, Incoming, Line, LineDecoder, LineLimits, Message, RawRef, Response, decode, decode_slice,
    encode,
};

fn received(text: &str) -> Message<'_> {
    match decode(text, &DecodeLimits::default()) {
        Ok(Incoming::Single(message)) => message,
        other => panic!("{text} is {other:?}"),
    }
}

/// The lines that a peer behind a line transport reads.
fn lines(message: &[u8]) -> Vec<String> {
    let mut decoder = LineDecoder::new(LineLimits::default());
    decoder.push(message);
    decoder.push(b"\n");
    let mut lines = Vec::new();
    while let Some(Line::Text(line)) = decoder.next_line() {
        lines.push(String::from_utf8(line.to_vec()).unwrap());
    }
    lines
}

fn passed_on(text: &str) -> Result<String, encode::EncodeError> {
    let mut line = b"before|".to_vec();
    let written = encode::message(&mut line, &received(text));
    let line = String::from_utf8(line).unwrap();
    let line = line.strip_prefix("before|").expect("what was in the buffer stays").to_owned();
    assert_eq!(written.is_err(), line.is_empty(), "a message that is not written leaves nothing");
    written.map(|()| line)
}

/// Raw line feeds between tokens are valid JSON; on a line transport what stands between two of them is a message.
// auth:SEC-15
#[test]
fn a_message_that_hides_another_between_line_feeds_is_passed_on_as_one() {
    for break_ in ["\n", "\r\n", "\r", "\n\n"] {
        let forged = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{break_}{forged}{break_}]}}"#);
        let Message::Response(Response { result, .. }) = received(&text) else {
            panic!("an answer");
        };
        result.validate().expect("it is valid JSON, so that validating it finds nothing");
        if break_ != "\r" {
            assert_eq!(lines(text.as_bytes())[1], forged, "as it came, it is an answer to call 2 as well");
        }

        let line = passed_on(&text).unwrap();
        assert_eq!(lines(line.as_bytes()), [line.as_str()]);
        assert!(!line.contains(['\n', '\r']));
        assert_eq!(received(&line).id(), Some(&1.into()));
    }
}

#[test]
fn each_kind_of_message_is_passed_on_with_the_text_of_its_parts() {
    for (text, expected) in [
        (
            r#" { "id" : "\u0061" , "method" : "a\/b" , "jsonrpc" : "2.0" , "params" : { "n" : 1.50, "a":"\u0061" } } "#,
            r#"{"jsonrpc":"2.0","id":"a","method":"a/b","params":{ "n" : 1.50, "a":"\u0061" }}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        ),
        (
            r#"{"params":[1e400],"method":"m","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":[1e400]}"#,
        ),
        (r#"{"result":null,"id":-3,"jsonrpc":"2.0"}"#, r#"{"jsonrpc":"2.0","id":-3,"result":null}"#),
        (
            r#"{"error":{"data":[1.50],"message":"n\u006f","code":-5,"more":1},"id":8,"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":-5,"message":"no","data":[1.50]}}"#,
        ),
        (
            r#"{"error":{"data":null,"message":"","code":1},"id":null,"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#,
        ),
    ] {
        assert_eq!(passed_on(text).as_deref(), Ok(expected), "{text}");
        assert_eq!(passed_on(expected).as_deref(), Ok(expected), "{text}, once more");
    }
}

/// Only bracketed when they are received, so that nothing but writing them finds what is broken inside.
// field:FR-112
#[test]
fn broken_json_is_never_passed_on() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":[1,]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[01]}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":{"a"}}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\nb\"}",
    ] {
        assert!(passed_on(text).is_err(), "{text}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{},"more":[NaN]}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"more\":\"a\nb\"}",
        r#"{"jsonrpc":"2.0","id":1,"result":{},"more":{"a":tru}}"#,
    ] {
        assert_eq!(passed_on(text).as_deref(), Ok(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "{text}");
    }
}

#[test]
fn an_owned_message_is_the_same_message() {
    for text in [
        r#"{"jsonrpc":"2.0","id":"a","method":"a/b","params":{"n":1.50}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"n","data":[1.50]}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-5,"message":"n"}}"#,
    ] {
        let text = Arc::new(text.to_owned());
        let message = received(&text);
        let (copied, shared) = (message.to_owned(), message.to_shared(&text));
        assert_eq!(copied, shared, "{text}");
        assert_eq!(copied.as_message(), message, "{text}");
        assert_eq!(shared.as_message(), message, "{text}");
        let has_raw_part = text.contains("params") || text.contains("result") || text.contains("data");
        assert_eq!(Arc::strong_count(&text), 1 + usize::from(has_raw_part), "{text}");
        let mut line = Vec::new();
        encode::message(&mut line, &shared.as_message()).unwrap();
        assert_eq!(line, text.as_bytes());
        let shown = format!("{shared:?}");
        assert!(!shown.contains("1.50") && !shown.contains("[1]"), "{shown}");
    }
}

#[test]
fn a_message_with_another_id_is_passed_on_with_that_one() {
    let Message::Request(mut request) =
        received(r#"{"jsonrpc":"2.0","id":"theirs","method":"m","params":{}}"#)
    else {
        panic!("a request");
    };
    request.id = 7.into();
    let mut line = Vec::new();
    encode::message(&mut line, &Message::Request(request)).unwrap();
    let again = decode_slice(&line, &DecodeLimits::default()).unwrap();
    let Incoming::Single(Message::Request(request)) = again else { panic!("a request") };
    assert_eq!((request.id, request.params.map(RawRef::as_str)), (7.into(), Some("{}")));
}
