//! Servers of both eras behind the same calls.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_client::model::{CallToolResult, ProtocolVersion, SubscriptionFilter};
use mcp_client::{
    Answer, Change, Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, Era, ErrorKind,
    HttpServer, Limits, ListKind, Mode, Outcome, SuspendedCall, VerdictReason,
};
use serde_json::{Map, json};
use tokio::sync::Notify;

use super::own_requests::of_one_resource;
use super::peer::{Peer, builder, discovered, pipe, summary};
use super::web::{self, auto};
use crate::elicitation::support::unasked;
use crate::http::resume::request_on_any;
use crate::http::script::{PATIENCE, Server, at_the_deadline, within};
use crate::stdio::support::{patient, sh};

async fn modern(builder: ClientBuilder) -> (Client, Peer) {
    discovered(builder, json!({ "tools": {} })).await
}

/// protocol:S1
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_called_right_after_the_probe() {
    let (client, mut peer) = modern(auto()).await;
    assert_eq!(
        (client.server().era(), client.protocol_version()),
        (Era::Modern, ProtocolVersion::V2026_07_28)
    );
    let (tools, ()) = tokio::join!(client.list_tools().page(), async {
        let list = peer.expect("tools/list").await;
        assert_eq!(list["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        peer.answer(&list, json!({ "resultType": "complete", "tools": [] })).await;
    });
    tools.unwrap();
    // What was found out saves the next connection nothing but its doubts.
    let known = Mode::Known(client.server().verdict.clone());
    modern(builder().mode(known)).await;
}

/// protocol:S9, field: a server that ignores what it does not know.
/// field:FR-079
#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_on_the_probe_is_connected_after_three_seconds() {
    let (connection, mut peer) = pipe(1 << 20);
    let begun = tokio::time::Instant::now();
    let (client, _) = tokio::join!(auto().connect(connection), async {
        peer.expect("server/discover").await;
        peer.handshake(json!({})).await
    });
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    let client = client.unwrap();
    assert_eq!(client.server().verdict.reason, VerdictReason::SilentOnProbe);
}

/// protocol:S8
#[tokio::test(start_paused = true)]
async fn a_legacy_server_that_refuses_the_probe_is_initialized_at_once() {
    let (connection, mut peer) = pipe(1 << 20);
    let begun = tokio::time::Instant::now();
    let (client, _) = tokio::join!(auto().connect(connection), async {
        let probe = peer.expect("server/discover").await;
        peer.refuse(&probe, -32601, "Method not found").await;
        peer.handshake(json!({})).await
    });
    assert_eq!(client.unwrap().server().era(), Era::Legacy);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// protocol:S10: it ends on anything but `initialize`, and is started once more.
#[tokio::test]
async fn a_program_that_ends_on_the_probe_is_started_once_more() {
    let script = r#"
        read line
        case "$line" in *'"initialize"'*) ;; *) exit 1 ;; esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
        cat > /dev/null"#;
    // Nothing here waits until its time is over.
    let connected_to =
        async |script: &str| within(auto().probe_timeout(10 * PATIENCE).connect(sh(script))).await;
    let client = connected_to(script).await.unwrap();
    assert_eq!(client.server().verdict.reason, VerdictReason::ExitedOnProbe);
    client.close().await;
    // One that always ends is not started again and again, and both ends are told.
    let script = r#"
        read line
        case "$line" in *'"initialize"'*) echo second >&2; exit 4 ;; esac
        echo first >&2; exit 3"#;
    let error = connected_to(script).await.unwrap_err();
    assert_eq!((error.kind(), error.exit().unwrap().code()), (ErrorKind::Closed, Some(4)));
    assert_eq!(error.first_attempt().unwrap().exit().unwrap().code(), Some(3));
    let text = error.to_string();
    assert!(text.contains("exit code 4") && text.contains("exit code 3"), "{text}");
    assert!(text.contains("second") && text.contains("first"), "{text}");
    // The same again is not said again.
    let error = connected_to("read line; echo broken >&2; exit 3").await.unwrap_err();
    assert_eq!(error.first_attempt().unwrap().exit().unwrap().code(), Some(3));
    let text = error.to_string();
    assert!(
        text.contains(" (the program was started twice); ") && text.matches("broken").count() == 1,
        "{text}"
    );
}

/// protocol:S10, protocol:L-39: both attempts have the time of one.
#[tokio::test]
async fn a_program_that_is_started_once_more_gets_no_time_of_its_own() {
    let script = r#"
        read line
        case "$line" in *'"initialize"'*) echo second >&2; exec sleep 100000 ;; esac
        sleep 0.5; exit 3"#;
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    // Closing takes no time worth mentioning, and nobody waits for the program's end in virtual time.
    let mut waits = patient();
    (waits.exit, waits.terminate, waits.kill, waits.drain) = Default::default();
    let server = sh(script).close_waits(waits).on_stderr(move |_| starting.notify_one());
    let begun = tokio::time::Instant::now();
    let builder = auto().probe_timeout(10 * PATIENCE).initialize_timeout(PATIENCE);
    let mut connecting = Box::pin(builder.connect(server));
    tokio::select! {
        () = started.notified() => {}
        outcome = &mut connecting => panic!("{outcome:?}"),
    }
    let error = at_the_deadline(connecting).await.unwrap_err();
    assert_eq!((error.kind(), error.timed_out_after()), (ErrorKind::Timeout, Some(PATIENCE)));
    assert_eq!(error.first_attempt().unwrap().exit().unwrap().code(), Some(3));
    let took = begun.elapsed();
    assert!(took >= PATIENCE && took < PATIENCE + Duration::from_millis(400), "{took:?}");
}

/// protocol:H-61, protocol:L-39: so do the newer and the older transport.
#[tokio::test]
async fn the_older_http_transport_gets_no_time_of_its_own() {
    let server = Server::start().await;
    let url = server.url();
    let given = Duration::from_secs(30);
    let builder = builder().initialize_timeout(given);
    let begun = tokio::time::Instant::now();
    let connecting = tokio::spawn(async move { builder.connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, _) = server.request().await;
    at_the_deadline(tokio::time::sleep(given / 2)).await;
    peer.respond("405 Method Not Allowed", "", "").await;
    assert_eq!(request_on_any(&server, peer).await.0.method, "GET");
    let error = at_the_deadline(within(connecting)).await.unwrap().unwrap_err();
    assert_eq!(error.status(), Some(405));
    assert!(begun.elapsed() < given + given / 4, "{:?}", begun.elapsed());
}

/// protocol:2.9
#[tokio::test(start_paused = true)]
async fn a_pinned_modern_client_does_not_speak_to_a_legacy_server() {
    let (connection, mut peer) = pipe(1 << 20);
    let pinned = builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28));
    let (outcome, ()) = tokio::join!(pinned.connect(connection), async {
        let probe = peer.expect("server/discover").await;
        peer.refuse(&probe, -32601, "Method not found").await;
        peer.expect_end().await;
        drop(peer);
    });
    assert_eq!(summary(outcome), ("unsupported_version", false));
}

/// protocol:M-01, protocol:M-02: the handler that answers legacy questions answers these.
#[tokio::test(start_paused = true)]
async fn a_question_in_the_middle_of_a_call_reaches_the_handler() {
    let confirm = async |request: ElicitRequest, _: ElicitationContext| match request {
        ElicitRequest::Form(_) => ElicitResult::accept(Map::from_iter([("yes".to_owned(), json!(true))])),
        _ => ElicitResult::cancel(),
    };
    let (client, mut peer) = modern(auto().on_elicitation(confirm)).await;
    let (result, ()) = tokio::join!(client.call_tool("t", json!({ "x": 1 })).into_future(), async {
        let call = peer.expect("tools/call").await;
        let schema = json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
        let ask = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
        let wanted =
            json!({ "resultType": "input_required", "inputRequests": { "q": ask }, "requestState": "{1}" });
        peer.answer(&call, wanted).await;
        let retry = peer.expect("tools/call").await;
        let params = &retry["params"];
        assert_eq!(params["inputResponses"]["q"], json!({ "action": "accept", "content": { "yes": true } }));
        assert_eq!((&params["requestState"], &params["arguments"]), (&json!("{1}"), &json!({ "x": 1 })));
        // A state alone: the client waits a little and comes back.
        peer.answer(&retry, json!({ "resultType": "input_required", "requestState": "2" })).await;
        let paused = tokio::time::Instant::now();
        let retry = peer.expect("tools/call").await;
        assert!(paused.elapsed() < Duration::from_secs(1), "{:?}", paused.elapsed());
        assert_eq!(retry["params"]["requestState"], "2");
        peer.answer(&retry, json!({ "resultType": "complete", "content": [] })).await;
    });
    result.unwrap();
}

/// protocol:M-01: each round waits its moment, and not for the deadline that the call had before.
#[tokio::test(start_paused = true)]
async fn a_call_that_only_has_to_be_made_again_is_made_again_soon() {
    let (client, mut peer) = modern(auto()).await;
    let begun = tokio::time::Instant::now();
    let (result, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let mut call = peer.expect("tools/call").await;
        for round in 0..5 {
            let wanted = json!({ "resultType": "input_required", "requestState": round.to_string() });
            peer.answer(&call, wanted).await;
            call = peer.expect("tools/call").await;
        }
        peer.answer(&call, json!({ "resultType": "complete", "content": [] })).await;
    });
    result.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// protocol:S-07: whoever asks for a subscription hears at once that there is none.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_never_stood_is_not_asked_for_again() {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let (client, mut peer) = modern(auto()).await;
    let (outcome, ()) = tokio::join!(client.subscription(wanted.clone()), async {
        let listen = peer.expect("subscriptions/listen").await;
        peer.answer(&listen, json!({})).await;
    });
    assert_eq!(outcome.map(drop).unwrap_err().kind(), ErrorKind::PeerMisbehaved);
    let begun = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(client.subscription(wanted), async {
        peer.expect("subscriptions/listen").await;
        peer.expect("notifications/cancelled").await;
    });
    assert_eq!(outcome.map(drop).unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
    peer.expect_silence(Duration::from_secs(3600)).await;
}

/// protocol:S-01, protocol:S-06, protocol:S-07
#[tokio::test(start_paused = true)]
async fn a_subscription_brings_changes_of_either_era_and_ends_when_dropped() {
    let wanted = || {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = Some(true);
        filter
    };
    let (client, mut peer) = modern(auto()).await;
    let (subscription, id) = tokio::join!(client.subscription(wanted()), async {
        let listen = peer.expect("subscriptions/listen").await;
        peer.grant(&listen).await;
        let params = json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": listen["id"] } });
        let method = "notifications/tools/list_changed";
        peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        listen["id"].clone()
    });
    let mut subscription = subscription.unwrap();
    assert_eq!(*subscription.granted(), wanted());
    assert_eq!(subscription.next().await.unwrap(), Some(Change::List(ListKind::Tools)));
    drop(subscription);
    assert_eq!(peer.expect("notifications/cancelled").await["params"]["requestId"], id);

    let (client, mut peer) = super::peer::connected(builder().mode(Mode::Legacy)).await;
    let mut subscription = client.subscription(wanted()).await.unwrap();
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
    assert_eq!(subscription.next().await.unwrap(), Some(Change::List(ListKind::Tools)));
}

/// protocol:S-07: the server ends it on purpose, or the connection goes.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_subscription_is_told_once() {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let (client, mut peer) = modern(auto()).await;
    let (subscription, listen) = tokio::join!(client.subscription(wanted.clone()), async {
        let listen = peer.expect("subscriptions/listen").await;
        peer.grant(&listen).await;
        listen
    });
    peer.answer(&listen, json!({})).await;
    let mut subscription = subscription.unwrap();
    assert_eq!(subscription.next().await.unwrap(), None);
    let (subscription, ()) = tokio::join!(client.subscription(wanted), async {
        let listen = peer.expect("subscriptions/listen").await;
        peer.grant(&listen).await;
    });
    drop(peer);
    let mut subscription = subscription.unwrap();
    assert_eq!(subscription.next().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(subscription.next().await.unwrap(), None);
}

/// protocol:H1, protocol:H-34, protocol:H-35, protocol:H-37, protocol:H-40
#[tokio::test]
async fn over_http_a_modern_call_has_its_routing_headers_and_is_cancelled_by_closing() {
    let server = Server::start().await;
    let url = server.url();
    let connecting = tokio::spawn(async move { auto().connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, probe) = server.request().await;
    assert_eq!(probe.header("mcp-method"), Some("server/discover"));
    assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
    web::answer(&mut peer, &probe, web::discovered(json!({ "tools": {} }))).await;
    let client = connecting.await.unwrap().unwrap();
    let calling = tokio::spawn(client.call_tool("add", json!({})).into_future());
    let call = peer.request().await;
    assert_eq!((call.header("mcp-method"), call.header("mcp-name")), (Some("tools/call"), Some("add")));
    assert_eq!(call.header("mcp-session-id"), None);
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    peer.closed().await;
    assert_eq!(server.accepted(), 1, "nothing else was sent");
}

/// protocol:H10, protocol:H11
/// field:FR-090
#[tokio::test]
async fn over_http_a_bare_refusal_of_the_probe_leads_to_a_clean_initialize() {
    let server = Server::start().await;
    let url = server.url();
    let connecting = tokio::spawn(async move { auto().connect(HttpServer::new(&url).unwrap()).await });
    let (mut peer, _) = server.request().await;
    peer.respond("404 Not Found", "", "").await;
    let initialize = peer.request().await;
    assert!(initialize.body.contains(r#""method":"initialize""#));
    assert_eq!((initialize.header("mcp-method"), initialize.header("mcp-protocol-version")), (None, None));
    drop(connecting);
}

/// A call is put away by one client and taken up by another.
#[tokio::test(start_paused = true)]
async fn a_suspended_call_is_taken_up_by_another_client() {
    let schema = json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
    let ask =
        json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
    let (handler, asked) = unasked();
    let (client, mut peer) = modern(auto().on_elicitation(handler.clone())).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({ "x": 1 })).or_suspend(), async {
        let call = peer.expect("tools/call").await;
        let wanted =
            json!({ "resultType": "input_required", "inputRequests": { "q": ask }, "requestState": "s" });
        peer.answer(&call, wanted).await;
    });
    let Outcome::Suspended(suspended) = outcome.unwrap() else { panic!("not suspended") };
    let stored = serde_json::to_string(&suspended).unwrap();
    client.close().await;

    let (client, mut peer) = modern(auto().on_elicitation(handler)).await;
    let answer = || {
        (
            "q".to_owned(),
            Answer::Elicit(ElicitResult::accept(Map::from_iter([("yes".to_owned(), json!(true))]))),
        )
    };
    let taken: SuspendedCall = serde_json::from_str(&stored).unwrap();
    let resumed = client.resume::<CallToolResult>(taken.clone(), [answer()]);
    let (result, ()) = tokio::join!(resumed.into_future(), async {
        let retry = peer.expect("tools/call").await;
        assert_eq!(retry["params"]["requestState"], "s");
        assert_eq!(retry["params"]["inputResponses"]["q"]["content"], json!({ "yes": true }));
        peer.answer(&retry, json!({ "resultType": "complete", "content": [] })).await;
    });
    result.unwrap();
    let unanswered = client.resume::<CallToolResult>(taken.clone(), []).await;
    assert_eq!(summary(unanswered), ("misuse", false));
    let mut elsewhere = taken;
    elsewhere.server = "https://example.com/mcp".to_owned();
    let other = client.resume::<CallToolResult>(elsewhere, [answer()]).await;
    assert_eq!(summary(other), ("misuse", false));
    assert_eq!(asked.load(Ordering::SeqCst), 0, "the answers are those that were handed over");
}

/// A server that never answers `resources/unsubscribe` must not use up the places for calls.
#[tokio::test(start_paused = true)]
async fn overdue_requests_of_the_core_make_room_for_calls() {
    let mut limits = Limits::default();
    limits.max_calls = 2;
    let (connection, mut peer) = pipe(1 << 20);
    let (client, _) = tokio::join!(
        builder().mode(Mode::Legacy).limits(limits).connect(connection),
        peer.handshake(json!({ "resources": { "subscribe": true } }))
    );
    let client = client.unwrap();
    for _ in 0..3 {
        let (subscription, ()) = tokio::join!(client.subscription(of_one_resource()), async {
            let subscribe = peer.expect("resources/subscribe").await;
            peer.answer(&subscribe, json!({})).await;
        });
        drop(subscription.unwrap());
        let asked = peer.expect("resources/unsubscribe").await;
        tokio::time::sleep(Duration::from_secs(61)).await;
        let given_up = peer.expect("notifications/cancelled").await;
        assert_eq!(given_up["params"]["requestId"], asked["id"]);
    }
}
