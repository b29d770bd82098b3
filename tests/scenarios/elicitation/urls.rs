//! URL elicitations: consent, completion, and the order in which they come.

use mcp_client::{Desk, ElicitResult, Refusal};
use serde_json::json;

use super::support::*;

/// seed:B8, seed:S-29, seed:S-47, seed:S-50, seed:S-51: a completion that comes before the consent counts once, after it.
#[tokio::test(start_paused = true)]
async fn a_completion_before_the_consent_counts_once_after_it() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(url(1, "e1")).await;
    let question = questions.next().await.unwrap();
    peer.send(complete("e1")).await;
    settle().await;
    assert!(!client.elicitation_completed("e1", None).await, "nobody has consented");
    question.respond(ElicitResult::accept_url()).unwrap();
    assert_eq!(peer.receive().await["result"], json!({ "action": "accept" }));
    assert!(client.elicitation_completed("e1", None).await);
    peer.send(complete("e1")).await;
    settle().await;
    assert_eq!(told(&events), ["asked", "ended Answered(Accept)", "completed e1"]);
    assert_idle(&client);
}

/// seed:B8: one that comes before a decline is dropped with it, and the id is used up.
#[tokio::test(start_paused = true)]
async fn a_completion_before_a_decline_is_dropped() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(url(1, "e1")).await;
    let question = questions.next().await.unwrap();
    peer.send(complete("e1")).await;
    settle().await;
    question.respond(ElicitResult::decline()).unwrap();
    assert_eq!(peer.receive().await["result"], json!({ "action": "decline" }));
    peer.send(complete("e1")).await;
    settle().await;
    assert!(!client.elicitation_completed("e1", None).await);
    assert_eq!(told(&events), ["asked", "ended Answered(Decline)"]);
}

/// seed:S-48, seed:S-51: an accepted one waits, and its end wakes whoever waits for it; a wait that timed out ends no
/// elicitation.
#[tokio::test(start_paused = true)]
async fn an_accepted_elicitation_is_waited_for() {
    let (client, mut peer) = connected(builder().on_elicitation(accept)).await;
    peer.send(url(1, "e1")).await;
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    let begun = tokio::time::Instant::now();
    assert!(!client.elicitation_completed("e1", Some(5 * SECOND)).await);
    assert_eq!(begun.elapsed(), 5 * SECOND);
    let (completed, ()) = tokio::join!(client.elicitation_completed("e1", None), async {
        settle().await;
        peer.send(complete("e1")).await;
    });
    assert!(completed);
    // seed:S-51: the desk's own time is 180 s.
    peer.send(url(2, "e2")).await;
    peer.receive().await;
    let begun = tokio::time::Instant::now();
    assert!(!client.elicitation_completed("e2", None).await);
    assert_eq!(begun.elapsed(), 180 * SECOND);
}

/// seed:B9, seed:S-49, protocol:E-19: unknown, of another server, repeated, malformed.
#[tokio::test(start_paused = true)]
async fn a_completion_that_is_none_is_ignored() {
    let desk = Desk::default();
    desk.set_handler(accept);
    let (events_builder, events) = recorded(builder());
    let (_a, mut a) = connected(events_builder.desk(&desk, "a")).await;
    let (_b, mut b) = connected(builder().desk(&desk, "b")).await;
    a.send(url(1, "e1")).await;
    assert_eq!(a.receive().await["result"]["action"], "accept");
    b.send(complete("e1")).await;
    a.send(complete("unknown")).await;
    a.send(json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": 1 } })).await;
    settle().await;
    assert_eq!(told(&events), ["asked", "ended Answered(Accept)"]);
    a.send(complete("e1")).await;
    a.send(complete("e1")).await;
    settle().await;
    assert_eq!(told(&events)[2..], ["completed e1"]);
}

/// seed:E23, seed:S-44: the ids of two servers are two namespaces.
#[tokio::test(start_paused = true)]
async fn two_servers_may_use_the_same_elicitation_id() {
    let desk = Desk::default();
    desk.set_handler(accept);
    let (_a, mut a) = connected(builder().desk(&desk, "a")).await;
    let (_b, mut b) = connected(builder().desk(&desk, "b")).await;
    for peer in [&mut a, &mut b] {
        peer.send(url(1, "same")).await;
        assert_eq!(peer.receive().await["result"]["action"], "accept");
    }
    b.send(complete("same")).await;
    assert!(desk.completed("b", "same", None).await);
    assert!(!desk.completed("a", "same", Some(SECOND)).await);
}

/// seed:S-45, seed:S-46, seed:B13: another URL under a known id is refused, and an id that is done is never asked again.
#[tokio::test(start_paused = true)]
async fn an_id_stands_for_one_url_and_one_life() {
    let (client, mut peer) = connected(builder().on_elicitation(accept)).await;
    peer.send(url(1, "e1")).await;
    peer.receive().await;
    let mut other = url_params("e1");
    other["url"] = json!("https://example.com/other");
    peer.send(ask(2, other)).await;
    assert_eq!(peer.receive().await["error"]["code"], -32602);
    peer.send(complete("e1")).await;
    assert!(client.elicitation_completed("e1", Some(SECOND)).await);
    peer.send(url(3, "e1")).await;
    let refused = peer.receive().await;
    assert_eq!(refused["error"]["message"], Refusal::IdFinished.to_string());
}

/// seed:S-06: what is remembered of a server is bounded; beyond it new ids are declined, because a forgotten one could be
/// used again.
#[tokio::test(start_paused = true)]
async fn remembered_ids_are_bounded_and_beyond_them_a_url_is_declined() {
    let mut limits = mcp_client::ElicitationLimits::default();
    assert_eq!(limits.max_remembered_urls, 1_000);
    limits.max_remembered_urls = 2;
    let config = mcp_client::DeskConfig::default().limits(limits);
    let (builder, events) = recorded(builder());
    let (_client, mut peer) = connected(builder.on_elicitation(accept).desk_config(config)).await;
    for (id, expected) in [("a", "accept"), ("b", "accept"), ("c", "decline")] {
        peer.send(url(id, id)).await;
        assert_eq!(peer.receive().await["result"]["action"], expected, "{id}");
    }
    assert_eq!(told(&events).last().unwrap(), "not shown: history_full");
}
