//! J1 to J6: messages and the table of calls.

use std::collections::HashMap;
use std::hint::black_box;

use mcp_jsonrpc::{
    Awaited, DecodeLimits, InFlight, Incoming, Message, Removed, RequestId, decode, decode_awaited, encode,
};
use mcp_model::CallToolResult;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::contest::Contest;
use crate::goals::Goals;
use crate::messages;

pub(crate) fn measure(goals: &mut Goals) {
    envelopes(goals);
    typed_results(goals);
    against_rmcp(goals);
    requests(goals);
    routing(goals);
}

fn limits() -> DecodeLimits {
    DecodeLimits::default()
}

/// An envelope for serde_json, with what our decoder finds.
#[derive(Deserialize)]
struct RawEnvelope<'a> {
    jsonrpc: &'a str,
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn envelopes(goals: &mut Goals) {
    let cases = [
        ("150 B", messages::short_text(), 0.65),
        ("10 KB text", messages::escaped_text(10_000), 0.85),
        ("10 KB rows", messages::rows(10_000), 0.6),
        ("1 MB rows", messages::rows(1_000_000), 0.6),
        ("1 MB image", messages::image(1_000_000), 0.25),
    ];
    for (name, text, at_most) in &cases {
        assert!(decode(text, &limits()).is_ok(), "what is refused at once takes no time: {name}");
        let times = Contest::new()
            .enter("ours", || decode(black_box(text), &limits()).is_ok())
            .enter("serde_json", || {
                let envelope: RawEnvelope<'_> =
                    serde_json::from_str(black_box(text)).expect("a valid message");
                let RawEnvelope { jsonrpc, id, method, params, result, error } = envelope;
                black_box((jsonrpc, id, method, params, error));
                result.is_some()
            })
            .run();
        let what = format!("envelope, {name}, against serde_json with &RawValue");
        goals.within("J1", &what, times.ratio("ours", "serde_json"), *at_most);
    }
}

/// A whole answer for serde_json, typed at once.
#[derive(Deserialize)]
struct TypedEnvelope<T> {
    jsonrpc: String,
    id: u64,
    result: T,
}

/// A tool result as one would write it by hand. Both sides read this one, so that only the way to it differs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainResult {
    content: Vec<PlainContent>,
    structured_content: Option<Value>,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum PlainContent {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
}

impl PlainResult {
    /// Looks at everything, so that nothing of it can be left out.
    fn bytes(&self) -> usize {
        let content = self.content.iter().map(|content| match content {
            PlainContent::Text { text } => text.len(),
            PlainContent::Image { data, mime_type } => data.len() + mime_type.len(),
        });
        content.sum::<usize>()
            + usize::from(self.structured_content.is_some())
            + usize::from(self.is_error.is_some())
    }
}

fn typed_results(goals: &mut Goals) {
    let cases = [
        ("150 B", messages::short_text(), 1.15),
        ("10 KB text", messages::escaped_text(10_000), 1.45),
        ("10 KB rows", messages::rows(10_000), 1.15),
    ];
    for (name, text, two_passes_at_most) in &cases {
        let times = Contest::new()
            .enter("direct", || {
                let envelope: TypedEnvelope<PlainResult> =
                    serde_json::from_slice(black_box(text.as_bytes())).expect("a valid message");
                black_box((envelope.jsonrpc, envelope.id));
                envelope.result.bytes()
            })
            .enter("awaited", || match decode_awaited::<PlainResult>(black_box(text), &limits()) {
                Ok(Awaited::Response { result, .. }) => result.bytes(),
                _ => panic!("it was a response"),
            })
            .enter("two passes", || match decode(black_box(text), &limits()) {
                Ok(Incoming::Single(Message::Response(response))) => {
                    response.result.parse::<PlainResult>().expect("it has this type").bytes()
                }
                _ => panic!("it was a response"),
            })
            .run();
        let what = format!("typed result, {name}, awaited, against serde_json");
        goals.within("J2", &what, times.ratio("awaited", "direct"), 1.15);
        let what = format!("typed result, {name}, two passes, against serde_json");
        goals.within("J2", &what, times.ratio("two passes", "direct"), *two_passes_at_most);
    }
}

/// From bytes to the model, where a tool result is awaited.
fn received(bytes: &[u8]) -> CallToolResult {
    let text = std::str::from_utf8(bytes).expect("valid UTF-8");
    match decode_awaited(text, &limits()) {
        Ok(Awaited::Response { result, .. }) => result,
        _ => panic!("it was a response"),
    }
}

fn against_rmcp(goals: &mut Goals) {
    let cases = [
        ("150 B", messages::short_text(), false, 7.0),
        ("10 KB text", messages::escaped_text(10_000), false, 1.4),
        ("10 KB rows, eager", messages::rows(10_000), true, 2.0),
        ("1 MB rows, eager", messages::rows(1_000_000), true, 2.0),
        ("1 MB rows, kept raw", messages::rows(1_000_000), false, 12.0),
    ];
    for (name, text, eager, at_least) in &cases {
        let times = Contest::new()
            .enter("ours", || {
                let result = received(black_box(text.as_bytes()));
                let structured = result.structured_content.as_deref().filter(|_| *eager);
                let value: Option<Value> =
                    structured.map(|raw| serde_json::from_str(raw.get()).expect("valid JSON"));
                black_box(value);
                result
            })
            .enter("rmcp", || {
                serde_json::from_slice::<ServerJsonRpcMessage>(black_box(text.as_bytes()))
                    .expect("a valid message")
            })
            .run();
        let what = format!("bytes to a typed message, {name}, against rmcp");
        goals.faster("J3", &what, times.ratio("rmcp", "ours"), *at_least);
    }
}

fn requests(goals: &mut Goals) {
    #[derive(Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a Value,
    }
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: Params<'a>,
    }
    let arguments =
        serde_json::json!({ "city": "Berlin", "days": 3, "note": "say \"hi\"", "units": "metric" });
    let id = RequestId::from(4242);
    let mut buffer = Vec::with_capacity(1024);
    let text = serde_json::to_string(&Request {
        jsonrpc: "2.0",
        id: 4242,
        method: "tools/call",
        params: Params { name: "get-weather", arguments: &arguments },
    });
    let text = text.expect("it can be written");
    let rmcps: ClientJsonRpcMessage = serde_json::from_str(&text).expect("a valid request");
    let times = Contest::new()
        .enter("ours", || {
            buffer.clear();
            let params = Params { name: "get-weather", arguments: black_box(&arguments) };
            encode::request(&mut buffer, black_box(&id), "tools/call", Some(&params))
                .expect("it can be written");
            black_box(&buffer).len()
        })
        .enter("to_vec", || {
            let params = Params { name: "get-weather", arguments: black_box(&arguments) };
            let request = Request { jsonrpc: "2.0", id: black_box(4242), method: "tools/call", params };
            serde_json::to_vec(&request).expect("it can be written")
        })
        .enter("rmcp", || serde_json::to_vec(black_box(&rmcps)).expect("it can be written"))
        .run();
    let what = format!("request of {} B into a reused buffer", text.len());
    goals.within("J5", &format!("{what}, against serde_json::to_vec"), times.ratio("ours", "to_vec"), 0.8);
    goals.faster("J5", &format!("{what}, against rmcp"), times.ratio("rmcp", "ours"), 2.5);
}

fn routing(goals: &mut Goals) {
    const IN_FLIGHT: [(&str, &str, usize); 3] =
        [("ours, 1", "map, 1", 1), ("ours, 64", "map, 64", 64), ("ours, 10,000", "map, 10,000", 10_000)];
    /// Calls routed in one go, so that what surrounds them does not count.
    const CALLS: u64 = 256;
    let mut contest = Contest::new();
    for (ours, map, in_flight) in IN_FLIGHT {
        // The others stay in flight while one comes and goes.
        let mut calls: InFlight<oneshot::Sender<u64>> = InFlight::with_capacity(in_flight);
        let mut senders: HashMap<u64, oneshot::Sender<u64>> = HashMap::new();
        let mut waiting = Vec::new();
        for other in 1..in_flight as u64 {
            let (sender, receiver) = oneshot::channel();
            assert!(calls.insert(sender).is_ok(), "there is room for all");
            waiting.push(receiver);
            let (sender, receiver) = oneshot::channel();
            senders.insert(other, sender);
            waiting.push(receiver);
        }
        contest = contest.enter(ours, move || {
            for call in 0..CALLS {
                let (sender, mut receiver) = oneshot::channel();
                let Ok(id) = calls.insert(sender) else { panic!("there is room for one more") };
                let Removed::Found(sender) = calls.remove(black_box(&id)) else { panic!("it waits") };
                let _ = sender.send(call);
                black_box(receiver.try_recv().ok());
            }
        });
        let mut next = in_flight as u64;
        contest = contest.enter(map, move || {
            for call in 0..CALLS {
                let (sender, mut receiver) = oneshot::channel();
                next += 1;
                senders.insert(next, sender);
                let Some(sender) = senders.remove(&black_box(next)) else { panic!("it waits") };
                let _ = sender.send(call);
                black_box(receiver.try_recv().ok());
            }
            waiting.len()
        });
    }
    // What both sides spend on the channel, for whoever looks at the times.
    contest = contest.enter("the channel alone", || {
        for call in 0..CALLS {
            let (sender, mut receiver) = oneshot::channel();
            let _ = black_box(sender).send(call);
            black_box(receiver.try_recv().ok());
        }
    });
    let times = contest.run();
    for (ours, map, in_flight) in IN_FLIGHT {
        let what = format!("route a response, {in_flight} in flight, against HashMap and oneshot");
        goals.within("J6", &what, times.ratio(ours, map), 0.5);
    }
    for (ours, _, in_flight) in IN_FLIGHT.into_iter().skip(1) {
        let what = format!("route a response, {in_flight} in flight, against 1");
        goals.within("J6", &what, times.ratio(ours, IN_FLIGHT[0].0), 1.2);
    }
}
