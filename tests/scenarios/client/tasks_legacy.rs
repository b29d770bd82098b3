//! Tasks of a 2025-11-25 server, in the application's hands: the same methods as for a modern one.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::model::TaskStatus;
use mcp_client::{Client, ElicitRequest, ElicitResult, ElicitationContext, TaskConfig};
use serde_json::{Map, Value, json};

use super::peer::{Peer, builder, pipe, summary};

fn state(status: &str) -> Value {
    json!({
        "taskId": "t-1", "status": status, "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": status,
        "ttl": 60_000, "pollInterval": 2000,
    })
}

/// A client that knows which tools are tasks.
async fn connected() -> (Client, Peer) {
    let confirm = async |_: ElicitRequest, _: ElicitationContext| {
        ElicitResult::accept(Map::from_iter([("yes".to_owned(), json!(true))]))
    };
    let (connection, mut peer) = pipe(1 << 20);
    let capabilities = json!({
        "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
    });
    let builder = builder().tasks(TaskConfig::default()).on_elicitation(confirm);
    let (client, _) = tokio::join!(builder.connect(connection), peer.handshake(capabilities));
    let client = client.unwrap();
    let (tools, ()) = tokio::join!(client.list_tools().page(), async {
        let list = peer.expect("tools/list").await;
        let tool = |name: &str, support: &str| json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": support } });
        peer.answer(&list, json!({ "tools": [tool("must", "required"), tool("may", "optional")] })).await;
    });
    tools.unwrap();
    (client, peer)
}

async fn poll(peer: &mut Peer, status: &str) {
    let poll = peer.expect("tasks/get").await;
    assert_eq!(poll["params"], json!({ "taskId": "t-1" }));
    peer.answer(&poll, state(status)).await;
}

/// protocol:TK-01, protocol:TK-02, protocol:TL-09, protocol:10.25, protocol:10.26
#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_a_task_is_called_like_any_other() {
    let (client, mut peer) = connected().await;
    let (result, ()) = tokio::join!(client.call_tool("must", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"]["task"], json!({}));
        peer.answer(&call, json!({ "task": state("working") })).await;
        poll(&mut peer, "working").await;
        poll(&mut peer, "completed").await;
        let fetch = peer.expect("tasks/result").await;
        peer.answer(&fetch, json!({ "content": [], "isError": true })).await;
    });
    assert!(result.unwrap().is_error());
}

/// protocol:TK-01
#[tokio::test(start_paused = true)]
async fn a_single_call_can_decline_tasks() {
    let (client, mut peer) = connected().await;
    let (result, ()) =
        tokio::join!(client.call_tool("must", json!({})).without_task().into_future(), async {
            let call = peer.expect("tools/call").await;
            assert_eq!(call["params"].get("task"), None);
            peer.answer(&call, json!({ "content": [] })).await;
        });
    result.unwrap();
}

/// protocol:TK-03
#[tokio::test(start_paused = true)]
async fn a_tool_that_may_be_one_is_made_one_on_demand_and_asks_as_ever() {
    let (client, mut peer) = connected().await;
    let starting = client.call_tool("may", json!({})).as_task().keep_for(Duration::from_secs(90));
    let (task, ()) = tokio::join!(starting.into_future(), async {
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"]["task"], json!({ "ttl": 90_000 }));
        peer.answer(&call, json!({ "task": state("working") })).await;
    });
    let mut task = task.unwrap();
    let (update, fetch) = tokio::join!(task.next_status(), async {
        poll(&mut peer, "input_required").await;
        peer.expect("tasks/result").await
    });
    assert_eq!(update.unwrap().task.status, TaskStatus::InputRequired);
    let (result, ()) = tokio::join!(task.result(), async {
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t-1" } });
        let schema = json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
        let params = json!({ "message": "m", "requestedSchema": schema, "_meta": related });
        peer.send(json!({ "jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": params }))
            .await;
        let answer = peer.receive().await;
        assert_eq!(
            answer["result"],
            json!({ "action": "accept", "content": { "yes": true }, "_meta": related })
        );
        peer.answer(&fetch, json!({ "content": [] })).await;
    });
    result.unwrap();
}

/// protocol:TK-02, protocol:7.8
#[tokio::test(start_paused = true)]
async fn tasks_are_listed_and_cancelled_where_the_server_does_that() {
    let (client, mut peer) = connected().await;
    let (page, ()) = tokio::join!(client.list_tasks(Some("c")).into_future(), async {
        let list = peer.expect("tasks/list").await;
        assert_eq!(list["params"], json!({ "cursor": "c" }));
        peer.answer(&list, json!({ "tasks": [state("working")], "nextCursor": "d" })).await;
    });
    let page = page.unwrap();
    assert_eq!((page.tasks.len(), page.next_cursor.as_deref()), (1, Some("d")));
    let (cancelled, ()) = tokio::join!(client.cancel_task("t-1").into_future(), async {
        let cancel = peer.expect("tasks/cancel").await;
        peer.answer(&cancel, state("cancelled")).await;
    });
    assert_eq!(cancelled.unwrap().task.unwrap().status, TaskStatus::Cancelled);

    let (connection, mut peer) = pipe(1 << 20);
    let builder = builder().tasks(TaskConfig::default());
    let (client, _) = tokio::join!(builder.connect(connection), peer.handshake(json!({ "tools": {} })));
    assert_eq!(summary(client.unwrap().list_tasks(None).await), ("misuse", false));
}
