//! Tasks of a modern server, in the application's hands.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::model::{CallToolResult, ProtocolVersion, TaskStatus};
use mcp_client::{
    Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, ErrorKind, Mode, StoredTask,
    Task, TaskError,
};
use serde_json::{Map, Value, json};

use super::peer::{Peer, builder, discovered, makes_tasks, modern_tasks, summary};

const INTERVAL: Duration = Duration::from_secs(2);

async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    discovered(builder, makes_tasks()).await
}

fn state(status: &str, more: Value) -> Value {
    let mut state = json!({
        "resultType": "complete", "taskId": "t-1", "status": status, "createdAt": "2026-08-01T00:00:00Z",
        "lastUpdatedAt": status, "ttlMs": 3_600_000, "pollIntervalMs": 2000,
    });
    state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    state
}

fn created() -> Value {
    state("working", json!({ "resultType": "task" }))
}

fn done() -> Value {
    state("completed", json!({ "result": { "content": [{ "type": "text", "text": "done" }] } }))
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Starts a task.
async fn started(client: &Client, peer: &mut Peer) -> Task<CallToolResult> {
    let (task, ()) = tokio::join!(client.call_tool("slow", json!({})).as_task().into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
    });
    task.unwrap()
}

async fn poll(peer: &mut Peer, answer: Value) {
    let poll = peer.expect("tasks/get").await;
    assert_eq!(poll["params"]["taskId"], "t-1");
    peer.answer(&poll, answer).await;
}

/// protocol:10.26, protocol:TX-02: who only wants the result need not know that it was a task.
#[tokio::test(start_paused = true)]
async fn awaiting_a_call_waits_for_its_task() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let begun = tokio::time::Instant::now();
    let (result, ()) = tokio::join!(client.call_tool("slow", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
        poll(&mut peer, state("working", json!({}))).await;
        poll(&mut peer, done()).await;
    });
    assert_eq!(text(&result.unwrap()), "done");
    assert_eq!(begun.elapsed(), 2 * INTERVAL);
}

/// protocol:TX-03
#[tokio::test(start_paused = true)]
async fn a_task_tells_where_it_stands_and_gives_its_result() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let mut task = started(&client, &mut peer).await;
    assert_eq!(task.status().unwrap().task.status, TaskStatus::Working);
    let watching = async {
        let mut seen = Vec::new();
        while let Some(update) = task.next_status().await {
            seen.push((update.task.status, update.task.status_message));
        }
        (task, seen)
    };
    let ((task, seen), ()) = tokio::join!(watching, async {
        poll(&mut peer, state("working", json!({ "statusMessage": "half way" }))).await;
        poll(&mut peer, done()).await;
    });
    assert_eq!(seen, [(TaskStatus::Working, Some("half way".to_owned())), (TaskStatus::Completed, None)]);
    assert!(task.stored().is_some(), "it can be fetched again as long as the server keeps it");
    assert_eq!(text(&task.result().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_at_once_is_a_task_that_is_done() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let (task, ()) = tokio::join!(client.call_tool("quick", json!({})).as_task().into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, json!({ "content": [{ "type": "text", "text": "here" }] })).await;
    });
    let mut task = task.unwrap();
    assert!(task.status().is_none() && task.stored().is_none() && task.next_status().await.is_none());
    task.cancel().await.unwrap();
    assert_eq!(text(&task.result().await.unwrap()), "here");
    peer.expect_silence(Duration::from_secs(100)).await;
}

/// protocol:TX-04, protocol:M-16: the handler that answers every other question answers these, once each.
#[tokio::test(start_paused = true)]
async fn what_a_task_asks_reaches_the_handler_once() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    let confirm = move |_: ElicitRequest, _: ElicitationContext| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async { ElicitResult::accept(Map::from_iter([("yes".to_owned(), json!(true))])) }
    };
    let (client, mut peer) = connected(modern_tasks().on_elicitation(confirm)).await;
    let schema = json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
    let ask =
        json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
    let wants = state("input_required", json!({ "inputRequests": { "q": ask } }));
    let task = started(&client, &mut peer).await;
    let (result, ()) = tokio::join!(task.result(), async {
        poll(&mut peer, wants.clone()).await;
        let update = peer.expect("tasks/update").await;
        let answer = json!({ "q": { "action": "accept", "content": { "yes": true } } });
        assert_eq!(update["params"]["inputResponses"], answer);
        peer.answer(&update, json!({})).await;
        poll(&mut peer, wants).await;
        poll(&mut peer, done()).await;
    });
    result.unwrap();
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// protocol:TX-05
#[tokio::test(start_paused = true)]
async fn cancelling_is_a_request_and_the_server_says_how_it_ended() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let task = started(&client, &mut peer).await;
    let (cancelled, ()) = tokio::join!(task.cancel(), async {
        let cancel = peer.expect("tasks/cancel").await;
        assert_eq!(cancel["params"]["taskId"], "t-1");
        peer.answer(&cancel, json!({ "resultType": "complete" })).await;
    });
    cancelled.unwrap();
    let (result, ()) = tokio::join!(task.result(), poll(&mut peer, state("cancelled", json!({}))));
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(matches!(error.task_error(), Some(TaskError::Cancelled)));
}

/// protocol:TX-05: dropping a task gives up the wait; the task is only cancelled where that is wanted.
#[tokio::test(start_paused = true)]
async fn dropping_a_task_stops_asking() {
    for cancel in [false, true] {
        let (client, mut peer) = connected(modern_tasks()).await;
        let starting = client.call_tool("slow", json!({})).as_task().cancel_on_drop(cancel);
        let (task, ()) = tokio::join!(starting.into_future(), async {
            let call = peer.expect("tools/call").await;
            peer.answer(&call, created()).await;
        });
        drop(task.unwrap());
        if cancel {
            let request = peer.expect("tasks/cancel").await;
            peer.answer(&request, json!({})).await;
        }
        peer.expect_silence(10 * INTERVAL).await;
    }
}

/// Dropping the future while the server still thinks about it is dropping any call.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_dropped_before_there_is_one_is_a_cancelled_call() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let mut starting = client.call_tool("slow", json!({})).as_task().into_future();
    let call = tokio::select! {
        _ = &mut starting => panic!("nobody answered"),
        call = peer.expect("tools/call") => call,
    };
    drop(starting);
    let notice = peer.expect("notifications/cancelled").await;
    assert_eq!(notice["params"]["requestId"], call["id"]);
}

/// protocol:TX-03: the connection is lost in the middle, and another process goes on where this one stopped.
#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_connection_it_was_made_on() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let task = started(&client, &mut peer).await;
    let stored = serde_json::to_string(&task.stored().unwrap()).unwrap();
    drop(peer);
    let error = task.result().await.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::Closed, true));
    drop(client);

    let stored: StoredTask = serde_json::from_str(&stored).unwrap();
    let (client, mut peer) = connected(modern_tasks()).await;
    let (task, ()) = tokio::join!(
        client.resume_task(stored.clone()).into_future(),
        poll(&mut peer, state("working", json!({})))
    );
    let task = task.unwrap();
    assert_eq!(task.status().unwrap().task.status, TaskStatus::Working);
    assert_eq!(task.stored().unwrap(), stored);
    let (result, ()) = tokio::join!(task.result(), poll(&mut peer, done()));
    assert_eq!(text(&result.unwrap()), "done");

    let mut elsewhere = stored.clone();
    elsewhere.server = "https://example.com/mcp".to_owned();
    assert_eq!(summary(client.resume_task(elsewhere).await), ("misuse", false));
    // protocol:TX-08
    let (resumed, ()) = tokio::join!(client.resume_task(stored).into_future(), async {
        let poll = peer.expect("tasks/get").await;
        peer.refuse(&poll, -32602, "Task not found").await;
    });
    let error = resumed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rpc);
    assert!(matches!(error.task_error(), Some(TaskError::Unknown(_))));
    assert_eq!(error.error_object().unwrap().code.get(), -32602);
}

/// protocol:TX-06: told of the end, nobody waits for the next time to ask.
#[tokio::test(start_paused = true)]
async fn a_server_that_tells_of_a_task_is_not_asked() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let starting = client.call_tool("slow", json!({})).as_task().listen();
    let (task, listen) = tokio::join!(starting.into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
        peer.expect("subscriptions/listen").await
    });
    assert_eq!(listen["params"]["notifications"], json!({ "taskIds": ["t-1"] }));
    let marked = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    let begun = tokio::time::Instant::now();
    let (result, ()) = tokio::join!(task.unwrap().result(), async {
        peer.grant(&listen).await;
        poll(&mut peer, state("working", json!({}))).await;
        // From here on it is asked once in a minute.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let mut params = done();
        params["_meta"] = marked;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": params })).await;
    });
    result.unwrap();
    assert_eq!(begun.elapsed(), INTERVAL + Duration::from_secs(30));
    // The subscription ends with the task.
    let notice = peer.expect("notifications/cancelled").await;
    assert_eq!(notice["params"]["requestId"], listen["id"]);
}

/// protocol:TX-06: a server without notifications is asked as ever.
#[tokio::test(start_paused = true)]
async fn a_server_that_tells_nothing_is_asked() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let starting = client.call_tool("slow", json!({})).as_task().listen();
    let (task, ()) = tokio::join!(starting.into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
        let listen = peer.expect("subscriptions/listen").await;
        peer.refuse(&listen, -32601, "Method not found").await;
    });
    let (result, ()) = tokio::join!(task.unwrap().result(), poll(&mut peer, done()));
    result.unwrap();
}

/// A server that never gets done is waited for as long as the caller says, and then the task can be resumed.
#[tokio::test(start_paused = true)]
async fn the_wait_has_an_end_of_its_own() {
    let (client, mut peer) = connected(modern_tasks()).await;
    let starting = client.call_tool("slow", json!({})).as_task().max_total(Duration::from_secs(5));
    let (task, ()) = tokio::join!(starting.into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
    });
    let (result, ()) = tokio::join!(task.unwrap().result(), async {
        for _ in 0..2 {
            poll(&mut peer, state("working", json!({}))).await;
        }
    });
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.timed_out_after(), Some(Duration::from_secs(5)));
    peer.expect_silence(10 * INTERVAL).await;
}

/// protocol:TX-01: what was not declared is not used.
#[tokio::test(start_paused = true)]
async fn without_tasks_there_are_none() {
    let builder = builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28));
    let (client, mut peer) = connected(builder).await;
    assert_eq!(summary(client.call_tool("slow", json!({})).as_task().await), ("misuse", false));
    let (result, call) = tokio::join!(client.call_tool("slow", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, created()).await;
        call
    });
    let capabilities = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(capabilities.get("extensions").is_none());
    assert_eq!(summary(result), ("peer_misbehaved", true));
}
