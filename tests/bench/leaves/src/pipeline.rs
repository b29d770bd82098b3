//! The figure that a user feels: from the bytes of an event stream to typed messages, in chunks of 16 KiB.

use std::hint::black_box;

use bytes::Bytes;
use mcp_jsonrpc::{Awaited, DecodeLimits, Incoming, Message, decode, decode_awaited};
use mcp_model::{CallToolResult, ProgressNotificationParams};
use mcp_sse::{Limits, Parser};
use rmcp::model::ServerJsonRpcMessage;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contest::Contest;
use crate::goals::Goals;
use crate::rmcp_sse::Limited;
use crate::{messages, sse_parsers, streams};

const CHUNK: usize = 16 << 10;
const ID: &str = "SSE";

/// What becomes of a message.
#[derive(Clone, Copy)]
enum Wanted {
    Progress,
    Result,
    /// With its structured content read into a value.
    Eager,
}

pub(crate) fn measure(goals: &mut Goals) {
    let one = |message: String, events: usize| streams::events_of(std::iter::repeat_n(message, events), "\n");
    let cases = [
        ("progress", streams::small(5000), Wanted::Progress, 6.0),
        ("150 B results", one(messages::short_text(), 5000), Wanted::Result, 8.0),
        ("10 KB text", one(messages::escaped_text(10_000), 100), Wanted::Result, 3.3),
        ("1 MB text", one(messages::escaped_text(1_000_000), 2), Wanted::Result, 5.5),
        ("1 MB image", one(messages::image(1_000_000), 2), Wanted::Result, 7.0),
        ("10 KB rows, eager", one(messages::rows(10_000), 50), Wanted::Eager, 2.3),
        ("1 MB rows, eager", one(messages::rows(1_000_000), 1), Wanted::Eager, 2.3),
    ];
    for (name, stream, wanted, against_rmcp) in &cases {
        let expected = floor(stream, *wanted);
        assert_eq!(ours(stream, *wanted), expected, "{name}");
        assert_eq!(rmcp(stream), expected, "{name}");
        let times = Contest::new()
            .enter("ours", || ours(black_box(stream), *wanted))
            .enter("rmcp", || rmcp(black_box(stream)))
            .enter("floor", || floor(black_box(stream), *wanted))
            .run();
        let what = format!("SSE bytes to typed messages, {name}");
        goals.faster(
            ID,
            &format!("{what}, against rmcp's pipeline"),
            times.ratio("rmcp", "ours"),
            *against_rmcp,
        );
        goals.within(
            ID,
            &format!("{what}, against typed lines without SSE"),
            times.ratio("ours", "floor"),
            1.25,
        );
    }
}

fn ours(stream: &Bytes, wanted: Wanted) -> usize {
    let limits = DecodeLimits::default();
    let mut parser = Parser::new(Limits::default());
    let mut messages = 0;
    for mut piece in stream.chunks(CHUNK) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            match wanted {
                Wanted::Progress => match decode(event.data(), &limits) {
                    Ok(Incoming::Single(Message::Notification(notification))) => {
                        let params =
                            notification.params.map(|params| params.parse::<ProgressNotificationParams>());
                        messages += usize::from(black_box(params).is_some_and(|params| params.is_ok()));
                    }
                    _ => panic!("it was a notification"),
                },
                Wanted::Result | Wanted::Eager => {
                    match decode_awaited::<CallToolResult>(event.data(), &limits) {
                        Ok(Awaited::Response { result, .. }) => messages += finish(result, wanted),
                        _ => panic!("it was a response"),
                    }
                }
            }
        }
    }
    messages
}

fn finish(result: CallToolResult, wanted: Wanted) -> usize {
    if matches!(wanted, Wanted::Eager) {
        let structured = result.structured_content.as_deref();
        black_box(structured.map(|raw| serde_json::from_str::<Value>(raw.get()).expect("valid JSON")));
    }
    black_box(result);
    1
}

fn rmcp(stream: &Bytes) -> usize {
    let limited = Limited::new(sse_parsers::chunks(stream, CHUNK));
    let events = sse_stream_0_2::SseStream::from_bytes_stream(limited);
    sse_parsers::count(events, |event| {
        let data = event.ok().and_then(|event| event.data).expect("an event with data");
        black_box(serde_json::from_str::<ServerJsonRpcMessage>(&data).expect("a valid message"));
        1
    })
}

#[derive(Deserialize)]
struct Notification<P> {
    params: P,
}

#[derive(Deserialize)]
struct Response<R> {
    result: R,
}

/// What is left when nothing of SSE has to be done: from LF to LF, the prefix cut off, the rest typed in one pass.
fn floor(stream: &Bytes, wanted: Wanted) -> usize {
    let mut rest = stream.as_ref();
    let mut messages = 0;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let Some(data) = line.strip_prefix(b"data: ") else { continue };
        messages += match wanted {
            Wanted::Progress => {
                let notification: Notification<ProgressNotificationParams> = typed(data);
                black_box(notification.params);
                1
            }
            Wanted::Result | Wanted::Eager => finish(typed::<Response<CallToolResult>>(data).result, wanted),
        };
    }
    messages
}

fn typed<T: DeserializeOwned>(data: &[u8]) -> T {
    serde_json::from_slice(data).expect("a valid message")
}
