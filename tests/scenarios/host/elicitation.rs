//! One desk for the questions of all servers.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use mcp_client::host::Host;
use mcp_client::{
    Client, DeskConfig, ElicitAction, ElicitRequest, ElicitResult, ElicitationContext, ElicitationLimits,
};
use serde_json::json;

use super::support::*;
use crate::client::peer::{Peer, builder};
use crate::elicitation::support::{complete, url};

fn listening(limits: ElicitationLimits) -> Host {
    Host::new(builder().elicitation_stream().desk_config(DeskConfig::default().limits(limits)))
}

async fn action(peer: &mut Peer) -> (u64, String) {
    let answer = peer.receive().await;
    let action = answer["result"]["action"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (answer["id"].as_u64().unwrap(), action.to_owned())
}

/// seed:E22, seed:B7: capacity is shared, and no server takes all of it.
#[tokio::test(start_paused = true)]
async fn servers_share_capacity_and_each_has_a_quota() {
    let limits = ElicitationLimits::default().max_concurrent(3).max_concurrent_per_server(2);
    let host = listening(limits);
    let mut questions = host.desk().elicitations();
    let (_, _pa, mut greedy) = connected(&host, "greedy").await;
    let (_, _pb, mut modest) = connected(&host, "modest").await;
    for id in 1..=3 {
        greedy.send(question(id)).await;
    }
    // Beyond its quota: declined, and nobody saw it.
    assert_eq!(action(&mut greedy).await, (3, "decline".to_owned()));
    modest.send(question(1)).await;
    modest.send(question(2)).await;
    // Beyond what all may have.
    assert_eq!(action(&mut modest).await, (2, "decline".to_owned()));

    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(questions.next().await.unwrap());
    }
    let servers: Vec<&str> = open.iter().map(|question| question.server()).collect();
    assert_eq!(servers, ["greedy", "greedy", "modest"]);
    for question in &open {
        question.respond(ElicitResult::decline()).unwrap();
    }
    assert_eq!(action(&mut greedy).await.0 + action(&mut greedy).await.0, 3);
    assert_eq!(action(&mut modest).await.0, 1);
    assert!(host.desk().open_questions().is_empty());
}

/// seed:B17, seed:S-42, seed:3.1: questions end with the connection that asked them, and only those.
#[tokio::test(start_paused = true)]
async fn disconnecting_a_server_withdraws_its_questions_and_no_others() {
    let host = listening(ElicitationLimits::default());
    let mut questions = host.desk().elicitations();
    let (_, _plug, mut srv) = connected(&host, "srv").await;
    let (_, _child_plug, mut child) = connected(&host, "srv:child").await;
    srv.send(question(1)).await;
    let of_srv = questions.next().await.unwrap();
    child.send(question(1)).await;
    let of_child = questions.next().await.unwrap();
    host.disconnect("srv").await.unwrap();
    srv.expect_end().await;
    assert_eq!(format!("{:?}", of_srv.ended().await), "ConnectionLost");
    assert!(of_srv.respond(ElicitResult::decline()).is_err());

    let open = host.desk().open_questions();
    assert_eq!(open.iter().map(|question| &*question.server).collect::<Vec<_>>(), ["srv:child"]);
    of_child.respond(ElicitResult::decline()).unwrap();
    assert_eq!(action(&mut child).await, (1, "decline".to_owned()));
    assert!(host.desk().open_questions().is_empty());

    // The same where the server dies.
    child.send(question(2)).await;
    let lost = questions.next().await.unwrap();
    drop(child);
    assert_eq!(format!("{:?}", lost.ended().await), "ConnectionLost");
    assert!(host.desk().open_questions().is_empty());
}

/// seed:E31, seed:S-43: the same id on the new connection is another question.
#[tokio::test(start_paused = true)]
async fn an_answer_of_an_old_connection_is_refused() {
    let host = listening(ElicitationLimits::default());
    let mut questions = host.desk().elicitations();
    let (_, mut plug, mut old) = connected(&host, "srv").await;
    old.send(question(7)).await;
    let late = questions.next().await.unwrap();
    let (_client, mut new) = reconnected(&host, "srv", &mut plug).await;
    new.send(question(7)).await;
    let current = questions.next().await.unwrap();
    assert_ne!(late.question(), current.question());
    let mut accept = ElicitResult::accept(serde_json::Map::new());
    accept.action = ElicitAction::Accept;
    assert!(late.respond(accept.clone()).is_err());
    assert!(host.desk().respond(late.question(), accept).is_err());
    drop(late);
    new.expect_silence(SECOND).await;
    current.respond(ElicitResult::decline()).unwrap();
    assert_eq!(action(&mut new).await, (7, "decline".to_owned()));
    new.expect_silence(SECOND).await;
}

/// seed:E23, seed:S-44: two servers may use the same elicitation id; each completion is its own server's.
#[tokio::test(start_paused = true)]
async fn elicitation_ids_belong_to_their_server() {
    let host = listening(ElicitationLimits::default());
    let mut questions = host.desk().elicitations();
    let (a_client, _pa, mut a) = connected(&host, "a").await;
    let (b_client, _pb, mut b) = connected(&host, "b").await;
    for peer in [&mut a, &mut b] {
        peer.send(url(1, "same")).await;
        questions.next().await.unwrap().respond(ElicitResult::accept_url()).unwrap();
        assert_eq!(action(peer).await, (1, "accept".to_owned()));
    }
    b.send(complete("same")).await;
    let brief = Some(SECOND);
    assert!(b_client.elicitation_completed("same", brief).await);
    assert!(!a_client.elicitation_completed("same", brief).await);
    // Whoever is removed is forgotten; the other is not.
    host.remove("b").await.unwrap();
    assert!(!host.desk().completed("b", "same", brief).await);
}

/// seed:E33, seed:S-31, protocol:E-08: turns of an agent that share a server, each with its own handler, and a default for the rest.
#[tokio::test(start_paused = true)]
async fn questions_go_to_the_handler_of_the_call_they_belong_to() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noting = |who: &'static str| {
        let asked = Arc::clone(&asked);
        move |_: ElicitRequest, from: ElicitationContext| {
            asked.lock().unwrap().push(format!("{who} {}", from.server));
            async { ElicitResult::decline() }
        }
    };
    let host = Host::new(builder());
    host.desk().set_handler(noting("default"));
    let _one = host.desk().route("one", noting("one"));
    let two = host.desk().route("two", noting("two"));
    let (client, _plug, mut peer) = connected(&host, "srv").await;

    let call = |client: &Client, key: &'static str| {
        tokio::spawn(client.call_tool(key, json!({})).elicitation_key(key).into_future())
    };
    let mut turn = async |keys: &[&'static str]| {
        let calls: Vec<_> = keys.iter().map(|key| call(&client, key)).collect();
        let mut requests = Vec::new();
        for _ in keys {
            requests.push(peer.expect("tools/call").await);
        }
        peer.send(question(1)).await;
        assert_eq!(action(&mut peer).await.0, 1);
        for request in &requests {
            peer.answer(request, json!({ "content": [] })).await;
        }
        for call in calls {
            call.await.unwrap().unwrap();
        }
    };
    turn(&["one"]).await;
    turn(&["two", "two"]).await;
    // It cannot be told which of both asks.
    turn(&["one", "two"]).await;
    drop(two);
    turn(&["two"]).await;
    assert_eq!(*asked.lock().unwrap(), ["one srv", "two srv", "default srv", "default srv"]);
}

/// auth:SEC-06: where nobody could answer, nobody is asked.
#[tokio::test(start_paused = true)]
async fn without_handlers_and_listeners_elicitation_is_not_declared() {
    let host = host();
    let (connector, mut plug) = plug();
    let (client, (initialize, mut peer)) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        (peer.handshake(everything()).await, peer)
    });
    client.unwrap();
    assert_eq!(initialize["params"]["capabilities"], json!({}));
    peer.send(question(1)).await;
    assert_eq!(peer.receive().await["error"]["code"], -32601);

    // Somebody came: from the next connection on it is.
    host.desk().set_handler(|_: ElicitRequest, _: ElicitationContext| async { ElicitResult::decline() });
    let (client, initialize) = tokio::join!(host.reconnect("srv"), async {
        let mut peer = plug.peer().await;
        peer.handshake(everything()).await
    });
    client.unwrap();
    assert!(initialize["params"]["capabilities"]["elicitation"].is_object());
}

/// Whoever follows the events learns the end of each question, also of those that end with their connection.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_question_is_among_the_events() {
    for by_server in [true, false] {
        let host = listening(ElicitationLimits::default());
        let mut questions = host.desk().elicitations();
        let (_, _plug, mut peer) = connected(&host, "srv").await;
        let mut events = host.events();
        peer.send(question(1)).await;
        let _open = questions.next().await.unwrap();
        if by_server {
            drop(peer);
            tokio::time::sleep(SECOND).await;
        } else {
            host.disconnect("srv").await.unwrap();
        }
        let told = happened(&mut events).await;
        let elicitation = "srv 1 Elicitation";
        if by_server {
            assert_eq!(told, [elicitation, elicitation, "srv 1 failed"]);
        } else {
            assert_eq!(told, [elicitation, "srv 1 closing", elicitation, "srv 1 disconnected"]);
        }
    }
}

/// A desk may outlive its host and serve another one.
#[tokio::test(start_paused = true)]
async fn hosts_can_share_a_desk() {
    let desk = mcp_client::Desk::default();
    let build = || Host::builder(builder().elicitation_stream()).desk(desk.clone()).build();
    let (first, second) = (build(), build());
    let mut questions = desk.elicitations();
    let (_, _pa, mut a) = connected(&first, "srv").await;
    let (_, _pb, mut b) = connected(&second, "other").await;
    a.send(question(1)).await;
    b.send(question(1)).await;
    let held = [questions.next().await.unwrap(), questions.next().await.unwrap()];
    assert_eq!(desk.open_questions().len(), 2);
    drop(first);
    a.expect_end().await;
    assert_eq!(desk.open_questions().len(), 1);
    for question in held {
        question.cancel();
    }
    assert_eq!(action(&mut b).await, (1, "cancel".to_owned()));
}

/// auth:SEC-09: a handler that answers by itself lets a peer bring about as many as it can write.
#[tokio::test(start_paused = true)]
async fn invalid_answers_are_counted_and_are_no_flood() {
    use mcp_client::{ClientEvent, ElicitRequest, ElicitResult, ElicitationContext};
    let nothing =
        |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::accept(serde_json::Map::new()) };
    let (builder, events) = crate::client::peer::recorded(builder().on_elicitation(nothing));
    let (client, mut peer) = crate::client::peer::connected(builder).await;
    for id in 0..2000 {
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        let params = json!({ "message": "Go on?", "requestedSchema": schema });
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }))
            .await;
        assert_eq!(peer.receive().await["result"]["action"], "cancel");
    }
    client.close().await;
    let told: Vec<_> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Diagnostic(told) => Some((told.count, told.total)),
            _ => None,
        })
        .collect();
    assert_eq!(told.last().unwrap().1, 2000, "{} events", told.len());
    assert!(told.len() < 100, "{}", told.len());
}
