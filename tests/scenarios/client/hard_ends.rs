//! `Call::max_total` from end to end: whatever else moves or stops the time of a call, it ends there, and says so.

use std::future::{Future, IntoFuture as _, pending};
use std::time::Duration;

use mcp_client::model::CallToolResult;
use mcp_client::{
    Call, Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, Error, ErrorKind,
    TaskConfig,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::peer::{Peer, SECOND, builder, empty_form, modern_tasks, pipe};
use super::web::{self, message};
use crate::elicitation::support::{complete, required, url_params};
use crate::http::script::{Server, at_the_deadline, within};

/// What the text says of a call that ended there, and of no other.
const SAYS_SO: &str = "the most that the call may take";

/// It ended at its hard end.
fn is_hard_end(error: &Error, max_total: Duration) {
    assert_eq!((error.kind(), error.timed_out_after()), (ErrorKind::Timeout, Some(max_total)), "{error}");
    assert!(error.to_string().contains(SAYS_SO), "{error}");
    assert!(error.to_string().contains(&format!("within {max_total:?},")), "{error}");
}

/// It ended for want of an answer.
fn is_timeout(error: &Error, after: Duration) {
    assert_eq!((error.kind(), error.timed_out_after()), (ErrorKind::Timeout, Some(after)), "{error}");
    assert!(!error.to_string().contains(SAYS_SO), "{error}");
}

/// Connects to a server of either era that declares everything.
async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, ()) = tokio::join!(builder.connect(connection), async {
        let hello = peer.receive().await;
        let capabilities = json!({
            "tools": {}, "tasks": { "requests": { "tools": { "call": {} } } },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        });
        let version = &hello["params"]["protocolVersion"];
        let info = json!({ "name": "scripted", "version": "1" });
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "protocolVersion": version,
            "capabilities": capabilities, "serverInfo": info,
        });
        peer.answer(&hello, result).await;
        if hello["method"] == "initialize" {
            peer.expect("notifications/initialized").await;
        }
    });
    (client.unwrap(), peer)
}

/// How the call ends against this server, and after how long.
async fn ends(
    client: &Client,
    call: Call<CallToolResult>,
    server: impl Future<Output = ()>,
) -> (Error, Duration) {
    let begun = Instant::now();
    let error = tokio::select! {
        biased;
        outcome = call.into_future() => outcome.unwrap_err(),
        () = async { server.await; pending().await } => unreachable!(),
    };
    let took = begun.elapsed();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(client.desk().open_questions().is_empty(), "a question outlives its call");
    assert!(client.desk().waiting_calls().is_empty(), "a call outlives itself");
    assert!(!client.is_closed());
    (error, took)
}

/// protocol:L-41: each progress starts the time anew, and none moves the hard end.
#[tokio::test(start_paused = true)]
async fn progress_extends_the_time_of_a_call_up_to_its_hard_end() {
    for (goes_on_for, expected) in [(100, Ok(7)), (3, Err(3 + 2))] {
        let (client, mut peer) = connected(builder()).await;
        let call = client.call_tool("t", json!({})).timeout(2 * SECOND).reset_on_progress(7 * SECOND);
        let (error, took) = ends(&client, call, async {
            let request = peer.expect("tools/call").await;
            for at in 1..=goes_on_for {
                tokio::time::sleep(SECOND).await;
                peer.progress(&request, f64::from(at)).await;
            }
        })
        .await;
        match expected {
            Ok(hard) => {
                is_hard_end(&error, hard * SECOND);
                assert_eq!(took, hard * SECOND);
            }
            Err(soft) => {
                is_timeout(&error, soft * SECOND);
                assert_eq!(took, soft * SECOND);
            }
        }
        assert!(error.outcome_unknown());
    }
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t", "status": status, "createdAt": "2026-08-01T00:00:00Z", "lastUpdatedAt": "x",
        "ttlMs": 3_600_000, "ttl": 3_600_000, "pollIntervalMs": 2000, "pollInterval": 2000,
    })
}

/// A call that became a task is waited for up to its hard end, however often the server is asked meanwhile; the
/// timeout is for one request.
#[tokio::test(start_paused = true)]
async fn a_task_is_awaited_up_to_the_hard_end_of_its_call() {
    for is_modern in [true, false] {
        // The server goes on with "working", or says nothing any more at the last question.
        for silent in [false, true] {
            let builder = if is_modern { modern_tasks() } else { builder().tasks(TaskConfig::default()) };
            let (client, mut peer) = connected(builder).await;
            if !is_modern {
                let (tools, ()) = tokio::join!(client.list_tools().page(), async {
                    let list = peer.expect("tools/list").await;
                    let schema = json!({ "type": "object" });
                    let support = json!({ "taskSupport": "required" });
                    let tool = json!({ "name": "t", "inputSchema": schema, "execution": support });
                    peer.answer(&list, json!({ "tools": [tool] })).await;
                });
                tools.unwrap();
            }
            let call = client.call_tool("t", json!({})).timeout(30 * SECOND).max_total(11 * SECOND);
            let (error, took) = ends(&client, call, async {
                let request = peer.expect("tools/call").await;
                let mut created = task("working");
                if is_modern {
                    created["resultType"] = json!("task");
                } else {
                    created = json!({ "task": created });
                }
                peer.answer(&request, created).await;
                for asked in 1.. {
                    let get = peer.expect("tasks/get").await;
                    if !(silent && asked == 5) {
                        peer.answer(&get, task("working")).await;
                    }
                }
            })
            .await;
            is_hard_end(&error, 11 * SECOND);
            assert_eq!(took, 11 * SECOND, "{is_modern} {silent}");
            assert!(error.outcome_unknown(), "the task is at work");
        }
    }
}

/// field:FR-149: while somebody is asked for consent only the hard end counts. The call did get an answer, the server's refusal,
/// and that is what is told.
#[tokio::test(start_paused = true)]
async fn a_pause_for_urls_ends_with_the_hard_end_of_its_call() {
    let refused = |call: &Value| required(call, &[url_params("a")]);
    // Nobody consents.
    let never = |_: ElicitRequest, _: ElicitationContext| pending::<ElicitResult>();
    let (client, mut peer) = connected(builder().on_elicitation(never)).await;
    let call = client.call_tool("t", json!({})).timeout(2 * SECOND).max_total(5 * SECOND);
    let (error, took) = ends(&client, call, async {
        let request = peer.expect("tools/call").await;
        peer.send(refused(&request)).await;
    })
    .await;
    assert_eq!((error.kind(), error.error_object().unwrap().code.get()), (ErrorKind::Rpc, -32042));
    assert_eq!(took, 5 * SECOND);
    peer.expect_silence(60 * SECOND).await;

    // The second request has what is left of both.
    for (max_total, is_hard) in [(5, true), (60, false)] {
        let consent = |_: ElicitRequest, _: ElicitationContext| async {
            tokio::time::sleep(3 * SECOND).await;
            ElicitResult::accept_url()
        };
        let (client, mut peer) = connected(builder().on_elicitation(consent)).await;
        let call = client.call_tool("t", json!({})).timeout(2 * SECOND).max_total(max_total * SECOND);
        let (error, took) = ends(&client, call, async {
            let request = peer.expect("tools/call").await;
            peer.send(refused(&request)).await;
            tokio::time::sleep(4 * SECOND).await;
            peer.send(complete("a")).await;
            peer.expect("tools/call").await;
        })
        .await;
        if is_hard {
            is_hard_end(&error, max_total * SECOND);
            assert_eq!(took, max_total * SECOND);
        } else {
            is_timeout(&error, 6 * SECOND);
            assert_eq!(took, 6 * SECOND);
        }
        assert!(error.outcome_unknown());
        let cancelled = peer.expect("notifications/cancelled").await;
        assert!(cancelled["params"]["requestId"].is_i64());
    }
}

/// protocol:M-14: rounds of input have the time of people, and all together end with the call.
#[tokio::test(start_paused = true)]
async fn rounds_of_input_end_with_the_hard_end_of_their_call() {
    // The hard end comes while somebody thinks, or while the server does.
    for (server_takes, thinking_takes) in [(0, 2), (2, 0), (1, 3)] {
        let think = move |_: ElicitRequest, _: ElicitationContext| async move {
            tokio::time::sleep(thinking_takes * SECOND).await;
            ElicitResult::accept(Map::new())
        };
        let (client, mut peer) = connected(modern_tasks().on_elicitation(think)).await;
        let call = client.call_tool("t", json!({})).timeout(3 * SECOND).max_total(7 * SECOND);
        let (error, took) = ends(&client, call, async {
            for round in 0.. {
                let request = peer.expect("tools/call").await;
                tokio::time::sleep(server_takes * SECOND).await;
                let form = empty_form();
                let asked = json!({ "q": { "method": "elicitation/create", "params": form } });
                let required = json!({
                    "resultType": "input_required", "inputRequests": asked, "requestState": round.to_string(),
                });
                peer.answer(&request, required).await;
            }
        })
        .await;
        is_hard_end(&error, 7 * SECOND);
        assert_eq!(took, 7 * SECOND, "{server_takes} {thinking_takes}");
        // Nothing of it goes on.
        while let Ok(Some(message)) = tokio::time::timeout(60 * SECOND, peer.try_receive()).await {
            assert_eq!(message["method"], "notifications/cancelled");
        }
    }
}

/// The same over an exchange of HTTP, which ends with the call.
#[tokio::test]
async fn over_http_the_exchange_ends_at_the_hard_end() {
    let server = Server::start().await;
    let (client, mut peer) = web::connected(modern_tasks(), &server).await;
    let serving = tokio::spawn(async move {
        let call = message(&peer.request().await);
        peer.stream("").await;
        let params = json!({ "progressToken": call["params"]["_meta"]["progressToken"], "progress": 1 });
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        peer.chunk(&format!("data: {notice}\n\n")).await;
        peer.closed().await;
    });
    let (progressed, is_there) = tokio::sync::oneshot::channel();
    let mut progressed = Some(progressed);
    let call =
        client.call_tool("t", json!({})).timeout(60 * SECOND).reset_on_progress(3 * SECOND).on_progress(
            move |_| {
                if let Some(progressed) = progressed.take() {
                    progressed.send(()).unwrap();
                }
            },
        );
    let call = tokio::spawn(call.into_future());
    within(is_there).await.unwrap();
    let error = at_the_deadline(call).await.unwrap().unwrap_err();
    is_hard_end(&error, 3 * SECOND);
    within(serving).await.unwrap();
}

/// Of several hard ends the shortest counts, in whatever order they are said: nobody undoes the end that another one relies on.
#[tokio::test(start_paused = true)]
async fn the_shortest_hard_end_counts() {
    let (client, mut peer) = connected(builder()).await;
    for turn in 0..3 {
        let call = client.call_tool("t", json!({})).timeout(SECOND);
        let call = match turn {
            0 => call.max_total(2 * SECOND).reset_on_progress(9 * SECOND),
            1 => call.reset_on_progress(2 * SECOND).max_total(9 * SECOND),
            _ => call.reset_on_progress(9 * SECOND).max_total(2 * SECOND).max_total(8 * SECOND),
        };
        let (error, took) = ends(&client, call, async {
            let call = peer.expect("tools/call").await;
            let token = &call["params"]["_meta"]["progressToken"];
            for progress in 0.. {
                tokio::time::sleep(SECOND / 2).await;
                let params = json!({ "progressToken": token, "progress": progress });
                peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
                    .await;
            }
        })
        .await;
        is_hard_end(&error, 2 * SECOND);
        assert_eq!(took, 2 * SECOND);
        peer.expect("notifications/cancelled").await;
    }
}

/// The client's own hard end is for calls that say none, longer or shorter.
#[tokio::test(start_paused = true)]
async fn a_call_without_a_hard_end_has_that_of_the_client() {
    for (said, expected) in [(None, 7), (Some(3), 3), (Some(40), 40)] {
        let (client, mut peer) = connected(modern_tasks().max_total(7 * SECOND)).await;
        let mut call = client.call_tool("t", json!({})).timeout(60 * SECOND);
        if let Some(said) = said {
            call = call.max_total(said * SECOND);
        }
        let (error, took) = ends(&client, call, async {
            peer.expect("tools/call").await;
        })
        .await;
        is_hard_end(&error, expected * SECOND);
        assert_eq!(took, expected * SECOND);
    }
}

/// Nobody undoes the end that another one relies on, wherever it was said.
#[tokio::test(start_paused = true)]
async fn of_several_hard_ends_of_a_task_the_shortest_counts() {
    for (call, task, expected) in
        [(Some(3), Some(9), 3), (Some(9), Some(3), 3), (None, None, 7), (None, Some(9), 9)]
    {
        let (client, mut peer) = connected(modern_tasks().max_total(7 * SECOND)).await;
        let mut asked = client.call_tool("t", json!({})).timeout(60 * SECOND);
        if let Some(call) = call {
            asked = asked.max_total(call * SECOND);
        }
        let mut asked = asked.as_task();
        if let Some(task) = task {
            asked = asked.max_total(task * SECOND);
        }
        let begun = Instant::now();
        let (outcome, _) = tokio::join!(
            async {
                // It ends before there is a task, or with the task.
                match asked.into_future().await {
                    Ok(task) => task.result().await,
                    Err(error) => Err(error),
                }
            },
            peer.expect("tools/call")
        );
        is_hard_end(&outcome.unwrap_err(), expected * SECOND);
        assert_eq!(begun.elapsed(), expected * SECOND, "{call:?} {task:?}");
    }
}
