//! Over HTTP, each way of it: the server is on a thread of its own, so every task of this runtime is the client's.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, Era, Limits, Mode};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::over::Over;
use super::web::start;
use super::{At, MANY, PollLimit};
use crate::client::peer::builder;
use crate::http::script::within;

type Act = fn(Client) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! act {
    (|$client:ident| $body:expr) => {
        |$client: Client| {
            Box::pin(async move {
                let _ = $body;
            })
        }
    };
}

/// So many calls the client has room for.
const ROOM: usize = 3;

fn client(era: Era) -> ClientBuilder {
    let answer = |_: ElicitRequest, _: ElicitationContext| async { ElicitResult::accept(Map::new()) };
    let mut limits = Limits::default();
    limits.max_calls = ROOM;
    let mode = match era {
        Era::Modern => Mode::Pinned(ProtocolVersion::V2026_07_28),
        _ => Mode::Legacy,
    };
    builder().mode(mode).limits(limits).on_elicitation(answer)
}

fn tasks_alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits until it is so; fails the test where it never is.
async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), waiting).await.is_ok(), "{what}");
}

fn every_one_of(these: &[Value], those: &[Value]) -> bool {
    these.iter().all(|id| those.contains(id))
}

/// Gives what is done up at this point and looks at what is left. Whether it came to its end first.
async fn given_up(name: &str, over: Over, era: Era, act: Act, polls: usize, at: At) -> bool {
    let place = format!("{name} ({over:?}, {era:?}), {polls} polls, at {at:?}");
    let (server, seen, _running) = start(over);
    let client = within(client(era).connect(server)).await.unwrap();
    within(client.ping().into_future()).await.ok();
    // The reader of the standing stream, the deadlines, the pool.
    let before = tasks_alive();
    let acting = tokio::spawn(PollLimit::new(act(client.clone()), polls, at));
    // One that may wait for the same connection, and is not given up.
    let beside = tokio::spawn(client.call_tool("plain", json!({})).into_future());
    let done = within(acting).await.unwrap().is_some();
    let outcome = within(beside).await.unwrap();
    assert!(outcome.is_ok() || client.is_closed(), "{place}: a call beside it: {outcome:?}");

    eventually(&format!("{place}: {} tasks are left, {before} before", tasks_alive()), || {
        tasks_alive() <= before
    })
    .await;
    assert!(client.desk().open_questions().is_empty(), "{place}: a question is open");
    if !client.is_closed() {
        let calls: Vec<_> =
            (0..ROOM).map(|_| tokio::spawn(client.call_tool("plain", json!({})).into_future())).collect();
        for call in calls {
            let outcome = within(call).await.unwrap();
            outcome.unwrap_or_else(|error| panic!("{place}: the next call: {error}"));
        }
    }
    let told = || match era {
        // Ending the exchange says it.
        Era::Modern => every_one_of(&seen.unanswered(), &seen.left()),
        _ => every_one_of(&seen.unanswered(), &seen.cancelled()),
    };
    eventually(&format!("{place}: the server waits in vain: {:?}", seen.unanswered()), told).await;
    within(client.close()).await;
    drop(client);
    eventually(&format!("{place}: tasks outlive the connection"), || tasks_alive() == 0).await;
    eventually(&format!("{place}: told later"), told).await;
    let mut cancelled = seen.cancelled();
    for of in ["initialize", "server/discover"] {
        assert!(seen.of_method(of).iter().all(|id| !cancelled.contains(id)), "{place}: {of} is cancelled");
    }
    if era == Era::Modern {
        assert_eq!(cancelled, [] as [Value; 0], "{place}");
    }
    let all = cancelled.len();
    cancelled.sort_by_key(Value::to_string);
    cancelled.dedup();
    assert_eq!(cancelled.len(), all, "{place}: cancelled twice");
    done
}

fn in_a_runtime<T>(scenario: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(scenario)
}

/// auth:G-13, protocol:C-01, protocol:C-03, protocol:H-24
#[test]
fn nothing_is_left_of_a_future_over_http_wherever_it_is_dropped() {
    let acts: [(&str, Act); 8] = [
        ("a call", act!(|client| client.call_tool("plain", json!({})).await.unwrap())),
        (
            "a call with a stream",
            act!(|client| client.call_tool("stream", json!({})).on_progress(|_| ()).await.unwrap()),
        ),
        (
            "a call without an answer",
            act!(|client| {
                let heard = Arc::new(Notify::new());
                let hears = Arc::clone(&heard);
                let call = client.call_tool("silent", json!({})).on_progress(move |_| hears.notify_one());
                tokio::select! {
                    outcome = call.into_future() => panic!("{outcome:?}"),
                    () = heard.notified() => {}
                }
            }),
        ),
        ("all pages", act!(|client| assert_eq!(client.list_tools().all().await.unwrap().len(), 2))),
        ("a resource", act!(|client| client.read_resource("file:///a").await.unwrap())),
        (
            "a call that asks",
            act!(|client| if client.server().era() == Era::Legacy {
                client.call_tool("asks", json!({})).await.unwrap();
            }),
        ),
        (
            "a subscription",
            act!(|client| {
                let mut wanted = SubscriptionFilter::new();
                wanted.tools_list_changed = Some(true);
                client.subscription(wanted).await.unwrap()
            }),
        ),
        ("a close", act!(|client| client.close().await)),
    ];
    for over in Over::ALL {
        let mut points = 0;
        for &era in over.eras() {
            for (name, act) in acts {
                for at in [At::Poll, At::Wake] {
                    for polls in usize::from(at == At::Wake)..=MANY {
                        assert!(polls < MANY, "{name}: it is polled again and again");
                        points += 1;
                        if in_a_runtime(given_up(name, over, era, act, polls, at)) {
                            break;
                        }
                    }
                }
            }
        }
        assert!(points >= 40, "{over:?}: only {points} points");
    }
}

/// auth:G-13: the same for connecting itself, with the probe and without.
#[test]
fn nothing_is_left_of_a_connect_over_http_wherever_it_is_dropped() {
    for over in Over::ALL {
        let mut points = 0;
        let mut modes = vec![Mode::Legacy, Mode::Auto, Mode::Pinned(ProtocolVersion::V2026_07_28)];
        modes.truncate(1 + over.eras().len());
        for mode in modes {
            for at in [At::Poll, At::Wake] {
                for polls in usize::from(at == At::Wake)..=MANY {
                    assert!(polls < MANY, "it is polled again and again");
                    points += 1;
                    if in_a_runtime(connected(over, &mode, polls, at)) {
                        break;
                    }
                }
            }
        }
        assert!(points >= 10, "{over:?}: only {points} points");
    }
}

async fn connected(over: Over, mode: &Mode, polls: usize, at: At) -> bool {
    let place = format!("{over:?}, {mode:?}, {polls} polls, at {at:?}");
    let (server, seen, _running) = start(over);
    let limited = PollLimit::new(builder().mode(mode.clone()).connect(server), polls, at);
    let client = within(tokio::spawn(limited)).await.unwrap();
    let done = client.is_some();
    if let Some(client) = client {
        within(client.unwrap().close()).await;
    }
    eventually(&format!("{place}: tasks are left"), || tasks_alive() == 0).await;
    assert_eq!(seen.cancelled(), [] as [Value; 0], "{place}");
    done
}

/// auth:G-13: what the client asks by itself, and no call waits for, ends with its time and with the connection: a server that
/// never answers keeps no exchange of it.
#[test]
fn what_nobody_waits_for_ends_with_its_time_and_with_the_connection() {
    for (over, in_time) in Over::ALL.into_iter().flat_map(|over| [(over, true), (over, false)]) {
        in_a_runtime(async {
            let (server, seen, _running) = start(over);
            let client = within(client(Era::Legacy).connect(server)).await.unwrap();
            within(client.ping().into_future()).await.unwrap();
            let before = tasks_alive();
            let mut wanted = SubscriptionFilter::new();
            wanted.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
            drop(within(client.subscription(wanted)).await.unwrap());
            let asked = || seen.of_method("resources/unsubscribe");
            // An exchange of its own it has only where the answer comes in that.
            let is_left = || over == Over::Sse || every_one_of(&asked(), &seen.left());
            eventually("the server is not told", || !asked().is_empty()).await;
            if in_time {
                // Past the time of the request, and no further: what is posted then goes through real sockets, for which no time
                // passes while it stands still, and has a time of its own.
                tokio::time::pause();
                tokio::time::sleep(Duration::from_secs(61)).await;
                tokio::time::resume();
                eventually("its exchange goes on", is_left).await;
                eventually("its task goes on", || tasks_alive() <= before).await;
                assert!(!client.is_closed());
                eventually("the server is not told to stop", || !seen.cancelled().is_empty()).await;
                assert_eq!(seen.cancelled(), asked());
            } else {
                drop(client);
                eventually("its exchange goes on", is_left).await;
                eventually("its task goes on", || tasks_alive() == 0).await;
            }
        });
    }
}
