//! J1, J4 and J5: messages.

use mcp_jsonrpc::{Awaited, DecodeLimits, Incoming, Message, RequestId, decode, decode_awaited, encode};
use mcp_model::{CallToolRequestParams, CallToolResult, ProgressNotificationParams};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::counting::{Count, counted};

fn limits() -> DecodeLimits {
    DecodeLimits::default()
}

fn text_result(bytes: usize) -> String {
    let line = "The quick brown fox says \"hello\" to the lazy dog.\n";
    let text: String = line.chars().cycle().take(bytes).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":{}}}],"isError":false}}}}"#,
        json!(text)
    )
}

fn rows_result(rows: usize) -> String {
    let row =
        |row: usize| json!({ "id": row, "name": format!("row {row}"), "score": 0.5, "tags": ["a", "b"] });
    let rows: serde_json::Value = (0..rows).map(row).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":"see structuredContent"}}],"structuredContent":{{"rows":{rows}}}}}}}"#
    )
}

/// A tool result, from the text of its message to the model: by way of the raw result, and typed at once.
fn both_ways(text: &str) -> [(&'static str, Count); 2] {
    let (two_passes, by_two) = counted(|| match decode(text, &limits()) {
        Ok(Incoming::Single(Message::Response(response))) => response.result.parse::<CallToolResult>().ok(),
        _ => None,
    });
    let (awaited, by_one) = counted(|| match decode_awaited::<CallToolResult>(text, &limits()) {
        Ok(Awaited::Response { result, .. }) => Some(result),
        _ => None,
    });
    assert!(two_passes.is_some() && awaited.is_some());
    [("two passes", by_two), ("awaited", by_one)]
}

#[test]
fn an_envelope_with_an_integer_id_allocates_nothing() {
    for text in [
        text_result(100).as_str(),
        &text_result(100_000),
        &rows_result(1000),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such method"}}"#,
    ] {
        let (decoded, count) = counted(|| decode(text, &limits()).is_ok());
        assert!(decoded);
        assert_eq!(count.calls(), 0, "{count:?}");
    }
}

#[test]
fn a_notification_takes_at_most_two_allocations() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":17,"progress":42,"total":100,"message":"Indexing"}}"#;
    let (params, count) = counted(|| match decode(text, &limits()) {
        Ok(Incoming::Single(Message::Notification(notification))) => {
            notification.params.and_then(|params| params.parse::<ProgressNotificationParams>().ok())
        }
        _ => None,
    });
    assert!(params.is_some());
    assert!(count.calls() <= 2, "{count:?}");
}

#[test]
fn a_small_tool_result_takes_at_most_four_allocations() {
    let plain = format!(
        r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":"{}"}}],"isError":false}}}}"#,
        "Nothing in here needs an escape. ".repeat(2)
    );
    for (way, count) in both_ways(&plain) {
        assert!(count.calls() <= 4, "{way}: {count:?}");
    }
    for (way, count) in both_ways(&text_result(60)) {
        assert!(count.calls() <= 4, "{way}: {count:?}");
    }
}

#[test]
fn rows_kept_raw_take_at_most_four_allocations_and_a_tenth_more_than_their_text() {
    for rows in [150, 15_000, 60_000] {
        let text = rows_result(rows);
        for (way, count) in both_ways(&text) {
            assert!(count.calls() <= 4, "{way}, {rows} rows: {count:?}");
            let percent = count.peak * 100 / text.len() as isize;
            assert!(percent <= 110, "{way}, {rows} rows: {percent} %, {count:?}");
        }
    }
}

#[test]
fn a_text_is_held_once() {
    for bytes in [10_000, 1_000_000, 15_000_000] {
        let text = text_result(bytes);
        for (way, count) in both_ways(&text) {
            assert!(count.calls() <= 2, "{way}, {bytes} B: {count:?}");
            let percent = count.peak * 100 / text.len() as isize;
            assert!(percent <= 105, "{way}, {bytes} B: {percent} %, {count:?}");
        }
    }
}

#[test]
fn a_request_into_a_warm_buffer_allocates_nothing() {
    let mut params = CallToolRequestParams::new("get-weather");
    params.arguments = Some(to_raw_value(&json!({ "city": "Berlin", "note": "with \"quotes\"" })).unwrap());
    let id = RequestId::from(4242);
    let mut buffer = Vec::new();
    encode::request(&mut buffer, &id, "tools/call", Some(&params)).unwrap();
    let written = buffer.len();
    buffer.clear();
    let (outcome, count) = counted(|| encode::request(&mut buffer, &id, "tools/call", Some(&params)));
    assert!(outcome.is_ok());
    assert_eq!((buffer.len(), count.calls()), (written, 0), "{count:?}");
}
