//! Where the client is used: futures dropped anywhere, other runtimes, the inside of a handler.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_client::{
    Client, ElicitRequest, ElicitResult, ElicitationContext, ErrorCode, ErrorKind, ErrorObject, RawJson,
    SamplingContext, StdioServer,
};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::peer::{Peer, SECOND, builder, connected, empty_form};
use crate::elicitation::support::ask;

/// A server for the shell: it answers `initialize`, then nothing.
fn silent() -> StdioServer {
    let result =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#;
    StdioServer::new("sh").args(["-c", &format!("read line; echo '{result}'; cat >&2")])
}

/// Polls a future so many times, a turn of the runtime after each, and drops it.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..times {
        let done = poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(output) = done.await {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Answers every request until the pipe ends.
async fn serve(mut peer: Peer) {
    while let Some(message) = peer.try_receive().await {
        if message["id"].is_null() || message["method"].is_null() {
            continue;
        }
        let token = &message["params"]["_meta"]["progressToken"];
        if !token.is_null() {
            peer.progress(&message, 1.0).await;
        }
        peer.answer(&message, json!({ "content": [], "tools": [] })).await;
    }
}

/// seed:B24: at whatever point a future is dropped, the connection serves the next.
#[tokio::test(start_paused = true)]
async fn futures_dropped_at_every_point_leave_the_connection_as_good_as_before() {
    let (client, peer) = connected(builder()).await;
    let serving = tokio::spawn(serve(peer));
    let mut ended = 0;
    for times in 0.. {
        let call = client.call_tool("t", json!({})).on_progress(|_| ()).into_future();
        let called = polled(call, times).await;
        let listed = polled(client.list_tools().all(), times).await;
        let both = called.is_some() && listed.is_some();
        called.transpose().unwrap();
        listed.transpose().unwrap();
        ended += usize::from(both);
        if ended == 10 {
            break;
        }
        assert!(times < 1000, "it is polled again and again");
    }
    client.call_tool("t", json!({})).await.unwrap();
    for times in 0..4 {
        polled(client.close(), times).await;
    }
    client.close().await;
    serving.await.unwrap();
}

/// A question, and a handler that does something with the client instead of answering.
///
/// The notice tells that the handler came to its end.
async fn from_inside_a_handler<F>(
    act: impl Fn(Client) -> F + Send + Sync + 'static,
) -> (Client, Peer, Arc<Notify>)
where
    F: Future<Output = ()> + Send,
{
    let place = Arc::new(Mutex::new(None::<Client>));
    let inside = Arc::clone(&place);
    let ended = Arc::new(Notify::new());
    let ending = Arc::clone(&ended);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        let client = inside.lock().unwrap().take().unwrap();
        let (acting, ending) = (act(client), Arc::clone(&ending));
        async move {
            acting.await;
            ending.notify_one();
            ElicitResult::accept(Map::new())
        }
    };
    let (client, mut peer) = connected(builder().on_elicitation(handler)).await;
    *place.lock().unwrap() = Some(client.clone());
    peer.send(ask(1, empty_form())).await;
    (client, peer, ended)
}

/// Fails the test instead of letting it hang.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(60 * SECOND, future).await.expect("no progress")
}

/// It ends its own question by that, and goes on all the same.
#[tokio::test(start_paused = true)]
async fn a_handler_may_close_the_connection() {
    let (client, mut peer, ended) = from_inside_a_handler(|client| async move {
        client.close().await;
        assert_eq!(client.desk().open_questions().len(), 0);
        tokio::time::sleep(SECOND).await;
    })
    .await;
    peer.expect_end().await;
    drop(peer);
    soon(client.close()).await;
    soon(ended.notified()).await;
}

/// The same for its question alone, and for the handler of a sample; another handler of the connection is dropped.
#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_its_own_question_goes_on() {
    let (client, mut peer, ended) = from_inside_a_handler(|client| async move {
        let question = client.desk().open_questions()[0].question;
        client.desk().respond(question, ElicitResult::decline()).unwrap();
        tokio::time::sleep(SECOND).await;
    })
    .await;
    assert_eq!(peer.receive().await["result"]["action"], "decline");
    soon(ended.notified()).await;
    peer.expect_silence(SECOND).await;
    drop(client);

    let place = Arc::new(Mutex::new(None::<Client>));
    let (inside, ended) = (Arc::clone(&place), Arc::new(Notify::new()));
    let dropped = Arc::new(Notify::new());
    let (ending, dropping) = (Arc::clone(&ended), Arc::clone(&dropped));
    let sampling = move |_: RawJson, _: SamplingContext| {
        let (client, ending) = (inside.lock().unwrap().take().unwrap(), Arc::clone(&ending));
        async move {
            client.close().await;
            tokio::time::sleep(SECOND).await;
            ending.notify_one();
            Err::<RawJson, _>(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "too late"))
        }
    };
    let hangs = move |_: ElicitRequest, _: ElicitationContext| {
        let dropping = Dropping(Arc::clone(&dropping));
        async move {
            std::future::pending::<()>().await;
            drop(dropping);
            ElicitResult::cancel()
        }
    };
    let (client, mut peer) = connected(builder().on_elicitation(hangs).on_sampling(sampling)).await;
    *place.lock().unwrap() = Some(client.clone());
    peer.send(ask(1, empty_form())).await;
    let message = json!({ "role": "user", "content": { "type": "text", "text": "t" } });
    let params = json!({ "messages": [message], "maxTokens": 1 });
    peer.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": params }))
        .await;
    peer.expect_end().await;
    drop(peer);
    soon(ended.notified()).await;
    soon(dropped.notified()).await;
}

/// Tells when it is dropped.
struct Dropping(Arc<Notify>);

impl Drop for Dropping {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_drop_the_last_handle() {
    let (client, mut peer, ended) = from_inside_a_handler(|client| async move {
        tokio::time::sleep(SECOND).await;
        drop(client);
        tokio::time::sleep(SECOND).await;
    })
    .await;
    drop(client);
    peer.expect_end().await;
    soon(ended.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_call_the_server() {
    let (client, mut peer, _) = from_inside_a_handler(|client| async move {
        client.ping().await.unwrap();
    })
    .await;
    let ping = peer.expect("ping").await;
    peer.answer(&ping, json!({})).await;
    assert_eq!(peer.receive().await["result"]["action"], Value::from("accept"));
    drop(client);
}

/// A call waits for its deadline by the timer of the connection, so it can be awaited where there is none.
#[test]
fn a_call_can_be_awaited_on_a_runtime_without_timers_and_on_none() {
    let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = home.block_on(builder().connect(silent())).unwrap();
    let wait = Duration::from_millis(50);
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let timed_out = bare.block_on(client.call_tool("t", json!({})).timeout(wait).into_future());
    assert_eq!(timed_out.unwrap_err().kind(), ErrorKind::Timeout);

    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut call = pin!(client.call_tool("t", json!({})).timeout(wait).into_future());
    let outcome = loop {
        match call.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => std::thread::park_timeout(10 * SECOND),
        }
    };
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
    home.block_on(client.close());
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// protocol:T-14: the runtime of the connection ends under calls that wait on another one.
#[test]
fn calls_end_with_the_runtime_of_their_connection() {
    for multi_thread in [false, true] {
        let mut home = if multi_thread {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        let home = home.enable_all().build().unwrap();
        let other =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = home.block_on(builder().connect(silent())).unwrap();
        let calls: Vec<_> =
            (0..20).map(|_| other.spawn(client.call_tool("t", json!({})).into_future())).collect();
        std::thread::sleep(Duration::from_millis(20));
        drop(home);
        for call in calls {
            let outcome = other.block_on(async { tokio::time::timeout(60 * SECOND, call).await });
            let error = outcome.expect("it ends at once").unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        assert!(client.is_closed());
        let late = other.block_on(client.ping().into_future()).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Closed);
        let closing = other.block_on(async { tokio::time::timeout(60 * SECOND, client.close()).await });
        assert!(closing.is_ok());
    }
}
