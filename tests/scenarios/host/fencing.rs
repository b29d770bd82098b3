//! What is late belongs to the connection it came from.

use std::future::IntoFuture;
use std::sync::Arc;

use mcp_client::host::Host;
use mcp_client::{ElicitRequest, ElicitResult, ElicitationContext};
use serde_json::json;
use tokio::sync::Notify;

use super::support::*;
use crate::client::peer::builder;

/// seed:E31, seed:S-43: the same id means something else on the new connection.
#[tokio::test(start_paused = true)]
async fn a_late_answer_never_reaches_a_newer_connection() {
    let (gate, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (opened, told) = (Arc::clone(&gate), Arc::clone(&asked));
    let host = Host::new(builder().on_elicitation(move |_: ElicitRequest, _: ElicitationContext| {
        let (gate, asked) = (Arc::clone(&opened), Arc::clone(&told));
        async move {
            asked.notify_one();
            gate.notified().await;
            ElicitResult::decline()
        }
    }));
    let (_, mut plug, mut old) = connected(&host, "srv").await;
    old.send(question(7)).await;
    asked.notified().await;

    let (_client, mut new) = reconnected(&host, "srv", &mut plug).await;
    old.expect_end().await;
    new.send(question(7)).await;
    asked.notified().await;
    new.expect_silence(SECOND).await;
    // Only the handler of the new question is there to hear of it.
    gate.notify_waiters();
    let answer = new.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["action"]), (&json!(7), &json!("decline")));
    new.expect_silence(SECOND).await;
}

/// seed:E31: a call made before does not take the answer to a call made after.
#[tokio::test(start_paused = true)]
async fn calls_end_with_their_connection() {
    let host = host();
    let (old_client, mut plug, mut old) = connected(&host, "srv").await;
    let old_call = tokio::spawn(old_client.call_tool("old", json!({})).into_future());
    let old_request = old.expect("tools/call").await;
    let (client, mut new) = reconnected(&host, "srv", &mut plug).await;
    assert_eq!(failed(old_call.await.unwrap()), "closed");
    let call = tokio::spawn(client.call_tool("new", json!({})).into_future());
    let request = new.expect("tools/call").await;
    assert_eq!(request["id"], old_request["id"], "the ids alone do not tell them apart");
    new.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    assert_eq!(failed(old_client.call_tool("old", json!({})).await), "closed");
}

#[tokio::test(start_paused = true)]
async fn events_carry_their_connection_and_stop_with_it() {
    let host = host();
    let mut events = host.events();
    let (_, mut plug, mut old) = connected(&host, "srv").await;
    old.send(notice("notifications/tools/list_changed")).await;
    tokio::time::sleep(SECOND).await;
    let (_client, mut new) = reconnected(&host, "srv", &mut plug).await;
    new.send(notice("notifications/prompts/list_changed")).await;
    new.send(notice("notifications/something/else")).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(
        happened(&mut events).await,
        [
            "srv 1 connecting",
            "srv 1 connected",
            "srv 1 ListChanged",
            "srv 1 closing",
            "srv 1 disconnected",
            "srv 2 connecting",
            "srv 2 connected",
            "srv 2 ListChanged",
            "srv 2 OtherNotification",
        ]
    );
}

/// The listener of the template hears everything too, in the same order.
#[tokio::test(start_paused = true)]
async fn the_listener_of_the_application_is_kept() {
    let (builder, recorded) = crate::client::peer::recorded(builder());
    let host = Host::new(builder);
    let (_, _plug, mut peer) = connected(&host, "srv").await;
    peer.send(notice("notifications/tools/list_changed")).await;
    tokio::time::sleep(SECOND).await;
    host.disconnect("srv").await.unwrap();
    let kinds: Vec<String> = recorded.lock().unwrap().iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(kinds, ["ListChanged(Tools)", "Closed { reason: Application }"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_misses_events_and_no_connection_waits_for_it() {
    let mut limits = mcp_client::host::HostLimits::default();
    limits.event_capacity = 3;
    let host = Host::builder(builder()).limits(limits).build();
    let mut events = host.events();
    let (client, _plug, mut peer) = connected(&host, "srv").await;
    for _ in 0..10 {
        peer.send(notice("notifications/tools/list_changed")).await;
    }
    peer.answers_a_ping_of(&client).await;
    let changed = "srv 1 ListChanged";
    assert_eq!(happened(&mut events).await, ["missed 9", changed, changed, changed]);
}
