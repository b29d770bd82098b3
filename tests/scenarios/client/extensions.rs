//! Extensions, `_meta` and trace context, as a scripted server sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_client::model::TraceContext;
use mcp_client::model::meta::KeyFault;
use mcp_client::{Client, ClientBuilder, ErrorKind, Mode};
use serde_json::{Map, Value, json};

use super::peer::{Peer, builder, connected, discovered, pipe};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A client connected to a modern server with tools and an extension.
async fn modern(builder: ClientBuilder) -> (Client, Peer) {
    let extensions = json!({ "com.example/charts": { "max": 3 }, "com.example/plain": {} });
    discovered(builder.mode(Mode::Auto), json!({ "tools": {}, "extensions": extensions })).await
}

fn meta(members: Value) -> Map<String, Value> {
    members.as_object().unwrap().clone()
}

/// `_meta` of the next request.
async fn sent(peer: &mut Peer) -> Value {
    let request = peer.receive().await;
    peer.answer(&request, json!({ "resultType": "complete", "tools": [], "content": [] })).await;
    request["params"]["_meta"].clone()
}

fn declared() -> ClientBuilder {
    let builder = builder().extension("com.example/charts", json!({ "colours": ["red"] })).unwrap();
    builder.extension("io.modelcontextprotocol/tasks", json!({})).unwrap()
}

/// protocol:L-25, protocol:TX-09: the tasks extension is none of the legacy era.
#[tokio::test(start_paused = true)]
async fn extensions_are_declared_in_either_era() {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, hello) =
        tokio::join!(declared().connect(connection), peer.handshake(json!({ "tools": {} })));
    client.unwrap();
    let extensions = &hello["params"]["capabilities"]["extensions"];
    assert_eq!(extensions, &json!({ "com.example/charts": { "colours": ["red"] } }));

    let (client, mut peer) = modern(declared()).await;
    let (listed, meta) = tokio::join!(client.list_tools().all(), sent(&mut peer));
    listed.unwrap();
    let expected =
        json!({ "com.example/charts": { "colours": ["red"] }, "io.modelcontextprotocol/tasks": {} });
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"]["extensions"], expected);
    // The server's own are there to read.
    let theirs = &client.server().capabilities;
    assert!(
        theirs.declares_extension("com.example/plain") && !theirs.declares_extension("com.example/other")
    );
    let settings: Value = theirs.extensions["com.example/charts"].parse().unwrap();
    assert_eq!(settings, json!({ "max": 3 }));
}

/// protocol:J-23, protocol:L-22, protocol:L-25
#[test]
fn an_extension_needs_a_prefix_and_an_object() {
    for (id, fault) in [
        ("charts", KeyFault::NoPrefix),
        ("com..example/charts", KeyFault::Label),
        ("com.example/charts!", KeyFault::Name),
    ] {
        let error = builder().extension(id, json!({})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(error.invalid_key().map(|key| (key.key.as_str(), key.fault)), Some((id, fault)));
    }
    for settings in [json!(true), json!([]), json!(null)] {
        assert_eq!(builder().extension("com.example/x", settings).unwrap_err().kind(), ErrorKind::Misuse);
    }
}

/// protocol:J-23, protocol:J-27
#[tokio::test(start_paused = true)]
async fn meta_of_one_call_is_checked_and_does_not_overwrite_what_the_protocol_owns() {
    let (client, mut peer) = modern(builder()).await;
    let own = meta(json!({
        "com.example/a": 1, "traceparent": "x", "io.modelcontextprotocol/protocolVersion": "1999-01-01",
    }));
    let (called, sent_meta) =
        tokio::join!(async { client.call_tool("t", json!({})).meta(own.clone()).await }, sent(&mut peer));
    called.unwrap();
    assert_eq!((&sent_meta["com.example/a"], &sent_meta["traceparent"]), (&json!(1), &json!("x")));
    assert_eq!(sent_meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    // Lists have it too, for each page.
    let (listed, sent_meta) =
        tokio::join!(client.list_tools().meta(meta(json!({ "com.example/b": 2 }))).all(), sent(&mut peer));
    listed.unwrap();
    assert_eq!(sent_meta["com.example/b"], 2);

    for key in ["com.example/", "a b", "1x/y", "-x"] {
        let call = client.call_tool("t", json!({})).meta(meta(json!({ key: 1 })));
        let outcome = if key == "com.example/" {
            let (called, sent_meta) = tokio::join!(async { call.await }, sent(&mut peer));
            assert_eq!(sent_meta[key], 1);
            called
        } else {
            call.await
        };
        match outcome {
            Ok(_) => assert_eq!(key, "com.example/"),
            Err(error) => {
                assert_eq!(error.invalid_key().map(|fault| fault.key.as_str()), Some(key), "{error}")
            }
        }
    }
    peer.expect_silence(Duration::from_secs(1)).await;
}

/// protocol:J-26
#[tokio::test(start_paused = true)]
async fn the_trace_of_each_request_is_asked_for_when_it_is_made() {
    let spans = Arc::new(AtomicU32::new(0));
    let current = Arc::clone(&spans);
    let tracing = builder().trace(move || {
        let span = current.fetch_add(1, Ordering::Relaxed);
        (span < 2).then(|| TraceContext::new(PARENT.replace("902b7", &format!("9020{span}"))).unwrap())
    });
    let (client, mut peer) = connected(tracing).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (listed, meta) = tokio::join!(client.list_tools().all(), sent(&mut peer));
        listed.unwrap();
        seen.push(meta["traceparent"].as_str().map(|parent| parent[50..52].to_owned()));
    }
    assert_eq!(seen, [Some("00".to_owned()), Some("01".to_owned()), None]);
}

/// protocol:J-26
#[tokio::test(start_paused = true)]
async fn the_trace_of_one_call_goes_before_that_of_the_client() {
    let everywhere = TraceContext::new(PARENT).unwrap().with_baggage("a=b").unwrap();
    let (client, mut peer) = connected(builder().trace(move || Some(everywhere.clone()))).await;
    let here = TraceContext::new(PARENT.replace("00f067", "11f067")).unwrap().with_tracestate("v=1").unwrap();
    let (called, meta) =
        tokio::join!(async { client.call_tool("t", json!({})).trace(&here).await }, sent(&mut peer));
    called.unwrap();
    assert_eq!(meta, json!({ "traceparent": PARENT.replace("00f067", "11f067"), "tracestate": "v=1" }));
    let (called, meta) = tokio::join!(client.call_tool("t", json!({})), sent(&mut peer));
    called.unwrap();
    assert_eq!(meta, json!({ "traceparent": PARENT, "baggage": "a=b" }));
}
