//! Over a line: in virtual time, so that what was answered before a future was dropped and what was not is known to the moment.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::time::Duration;

use mcp_client::model::{
    CompleteRequestParams, CompletionReference, LoggingLevel, ProtocolVersion, SubscriptionFilter,
};
use mcp_client::{
    Answer, Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, Era, ErrorCode,
    ErrorObject, Limits, Mode, Outcome, RawJson, SamplingContext, TaskConfig,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::server::{BEAT, Wire, serve};
use super::{At, MANY, PollLimit};
use crate::client::peer::{builder, pipe};

/// What is done with a client, to its end.
type Act = fn(Client) -> Pin<Box<dyn Future<Output = ()> + Send>>;

struct Flow {
    name: &'static str,
    era: Era,
    act: Act,
    /// What the client may ask of the server after the future is gone.
    afterwards: &'static [&'static str],
    /// The connection ends with it.
    closes: bool,
}

const fn flow(name: &'static str, era: Era, act: Act) -> Flow {
    Flow { name, era, act, afterwards: &[], closes: false }
}

/// What a boxed future of an act is.
macro_rules! act {
    (|$client:ident| $body:expr) => {
        |$client: Client| {
            Box::pin(async move {
                let _ = $body;
            })
        }
    };
}

fn everything() -> SubscriptionFilter {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    wanted.resource_subscriptions = Some(vec!["file:///a".to_owned(), "file:///b".to_owned()]);
    wanted
}

const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

fn flows() -> Vec<Flow> {
    let mut flows = Vec::new();
    for era in BOTH {
        flows.extend([
            flow("a call", era, act!(|client| client.call_tool("plain", json!({})).await.unwrap())),
            flow(
                "a call with progress",
                era,
                act!(|client| client.call_tool("plain", json!({})).on_progress(|_| ()).await.unwrap()),
            ),
            flow("a raw call", era, act!(|client| client.request_raw("vendor/thing", ()).await.unwrap())),
            flow("a page", era, act!(|client| client.list_tools().page().await.unwrap())),
            flow(
                "all pages",
                era,
                act!(|client| assert_eq!(client.list_tools().all().await.unwrap().len(), 3)),
            ),
            flow(
                "page by page",
                era,
                act!(|client| {
                    let mut pages = client.list_tools().pages();
                    while pages.next().await.unwrap().is_some() {}
                }),
            ),
            flow("skills", era, act!(|client| client.skills().unwrap().list().await.unwrap())),
            flow("a resource", era, act!(|client| client.read_resource("file:///a").await.unwrap())),
            flow("a prompt", era, act!(|client| client.get_prompt("p", [("a", "b")]).await.unwrap())),
            flow(
                "a completion",
                era,
                act!(|client| {
                    let about = CompletionReference::prompt("p");
                    client.complete(CompleteRequestParams::new(about, "a", "b")).await.unwrap()
                }),
            ),
            Flow {
                afterwards: &["resources/unsubscribe"],
                ..flow(
                    "a subscription",
                    era,
                    act!(|client| {
                        let mut subscription = client.subscription(everything()).await.unwrap();
                        if client.server().era() == Era::Modern {
                            subscription.next().await.unwrap().unwrap();
                        }
                    }),
                )
            },
            flow(
                "a list that is kept fresh",
                era,
                act!(|client| {
                    let mut fresh = client.list_tools().watch().await.unwrap();
                    if client.server().era() == Era::Modern {
                        fresh.changed().await.unwrap();
                    }
                }),
            ),
            flow(
                "a call that becomes a task",
                era,
                act!(|client| client.call_tool("task", json!({})).await.unwrap()),
            ),
            flow(
                "a task",
                era,
                act!(|client| {
                    let mut task = client.call_tool("task", json!({})).as_task().await.unwrap();
                    while task.next_status().await.is_some() {}
                    task.result().await.unwrap()
                }),
            ),
            Flow {
                afterwards: &["tasks/cancel"],
                ..flow(
                    "a task that ends with the wait for it",
                    era,
                    act!(|client| {
                        let call = client.call_tool("task", json!({})).as_task().cancel_on_drop(true);
                        call.await.unwrap().result().await.unwrap()
                    }),
                )
            },
            flow(
                "a task that is cancelled",
                era,
                act!(|client| {
                    let task = client.call_tool("task", json!({})).as_task().await.unwrap();
                    task.cancel().await.unwrap()
                }),
            ),
            Flow { closes: true, ..flow("a close", era, act!(|client| client.close().await)) },
            Flow {
                closes: true,
                ..flow(
                    "a close with a call",
                    era,
                    act!(|client| {
                        let call = client.call_tool("plain", json!({})).into_future();
                        let (outcome, _) = tokio::join!(call, client.close());
                        outcome.unwrap_err()
                    }),
                )
            },
        ]);
    }
    flows.extend([
        flow(
            "a call that asks for URLs first",
            Era::Legacy,
            act!(|client| client.call_tool("urls", json!({})).await.unwrap()),
        ),
        flow(
            "an URL that is waited for",
            Era::Legacy,
            act!(|client| {
                let call = client.call_tool("urls", json!({})).into_future();
                let completed = async {
                    tokio::time::sleep(3 * BEAT).await;
                    client.elicitation_completed("a", None).await
                };
                let (outcome, completed) = tokio::join!(call, completed);
                assert!(completed);
                outcome.unwrap()
            }),
        ),
        flow("a ping", Era::Legacy, act!(|client| client.ping().await.unwrap())),
        flow(
            "a level",
            Era::Legacy,
            act!(|client| client.set_logging_level(LoggingLevel::Info).await.unwrap()),
        ),
        flow(
            "a call that asks",
            Era::Legacy,
            act!(|client| client.call_tool("asks", json!({})).await.unwrap()),
        ),
        flow(
            "a call that samples",
            Era::Legacy,
            act!(|client| client.call_tool("samples", json!({})).await.unwrap()),
        ),
        flow(
            "a call that asks in rounds",
            Era::Modern,
            act!(|client| client.call_tool("inputs", json!({})).await.unwrap()),
        ),
        flow(
            "a call that is put away and taken up",
            Era::Modern,
            act!(|client| {
                let mut call = client.call_tool("inputs", json!({}));
                loop {
                    match call.or_suspend().await.unwrap() {
                        Outcome::Done(result) => break result,
                        Outcome::Suspended(suspended) => {
                            let answer = Answer::Elicit(ElicitResult::accept(Map::new()));
                            call = client.resume(suspended, [("q".to_owned(), answer)]);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }),
        ),
        flow(
            "a task that is listened to",
            Era::Modern,
            act!(|client| {
                let task = client.call_tool("task", json!({})).as_task().listen().await.unwrap();
                task.result().await.unwrap()
            }),
        ),
    ]);
    flows
}

/// A client that has handlers for everything and room for few calls.
fn client(era: Era) -> ClientBuilder {
    let answer = |request: ElicitRequest, _: ElicitationContext| async move {
        tokio::time::sleep(BEAT).await;
        match request {
            ElicitRequest::Url(_) => ElicitResult::accept_url(),
            _ => ElicitResult::accept(Map::new()),
        }
    };
    let sample = |_: RawJson, _: SamplingContext| async {
        tokio::time::sleep(BEAT).await;
        Err::<RawJson, _>(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no"))
    };
    let mut limits = Limits::default();
    limits.max_calls = ROOM;
    let mode = match era {
        Era::Modern => Mode::Pinned(ProtocolVersion::V2026_07_28),
        _ => Mode::Legacy,
    };
    let tasks = TaskConfig::default();
    builder().mode(mode).limits(limits).tasks(tasks).skills().on_elicitation(answer).on_sampling(sample)
}

/// So many calls the client has room for.
const ROOM: usize = 3;

fn tasks_alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Everybody says and hears what there is to say.
async fn settle() {
    tokio::time::sleep(100 * BEAT).await;
}

/// Gives the flow up at this point and looks at what is left. Whether it came to its end first.
async fn given_up(flow: &Flow, polls: usize, at: At) -> bool {
    let place = format!("{} ({:?}), {polls} polls, at {at:?}", flow.name, flow.era);
    let (connection, peer) = pipe(1 << 20);
    let wire = Wire::default();
    tokio::spawn(serve(peer, wire.clone()));
    let client = client(flow.era).connect(connection).await.unwrap();
    // Which tools may be tasks.
    client.list_tools().page().await.unwrap();
    settle().await;
    let before = tasks_alive();

    let began = wire.received().len();
    let done = tokio::spawn(PollLimit::new((flow.act)(client.clone()), polls, at)).await.unwrap().is_some();
    let dropped = tokio::time::Instant::now();
    settle().await;

    check_the_wire(flow, &wire, began, dropped, done, &place);
    assert!(client.desk().open_questions().is_empty(), "{place}: a question is open");
    assert!(client.desk().waiting_calls().is_empty(), "{place}: a call waits for URLs");
    if !client.is_closed() {
        assert!(!flow.closes || polls == 0, "{place}: the close has not begun");
        assert_eq!(tasks_alive(), before, "{place}: tasks are left");
        // Each entry that is left would take the room of one of these.
        let calls: Vec<_> = (0..ROOM)
            .map(|_| tokio::spawn(client.request_raw("vendor/room", json!({})).into_future()))
            .collect();
        for call in calls {
            call.await.unwrap().unwrap_or_else(|error| panic!("{place}: the next call: {error}"));
        }
        client.close().await;
    } else {
        assert!(flow.closes, "{place}: the connection has ended");
        client.close().await;
    }
    drop(client);
    settle().await;
    assert!(wire.has_ended(), "{place}: the line is open");
    assert_eq!(tasks_alive(), 0, "{place}: tasks outlive the connection");
    done
}

/// Who was waited for when the future was dropped is told, once; whoever was answered is not.
fn check_the_wire(
    flow: &Flow,
    wire: &Wire,
    began: usize,
    dropped: tokio::time::Instant,
    done: bool,
    place: &str,
) {
    let received = wire.received();
    let cancels = |id: &Value| {
        let is_it = |message: &&Value| {
            message["method"] == "notifications/cancelled" && &message["params"]["requestId"] == id
        };
        received.iter().map(|(_, message)| message).filter(is_it).count()
    };
    for (at, message) in received.iter().skip(began) {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        if method.is_empty() || id.is_null() {
            continue;
        }
        let place = format!("{place}: {message}");
        if *at > dropped {
            assert!(flow.afterwards.contains(&method), "{place}: asked for nobody");
            continue;
        }
        let told = cancels(id);
        match wire.answered(id) {
            Some(answered) if answered < dropped => assert_eq!(told, 0, "{place}: cancelled though answered"),
            // It crosses the notice.
            Some(answered) if answered == dropped => assert!(told <= 1, "{place}: cancelled twice"),
            // A call that is becoming a task is not cancelled so (2025-11-25, "Task Cancellation").
            _ if message["params"]["task"].is_object() => {
                assert_eq!(told, 0, "{place}: cancelled as no task")
            }
            _ if flow.closes => assert!(told <= 1, "{place}: cancelled twice"),
            _ if flow.afterwards.contains(&method) => assert!(told <= 1, "{place}: cancelled twice"),
            _ => assert_eq!(told, 1, "{place}: not cancelled{}", if done { " at its end" } else { "" }),
        }
    }
}

/// The points at which a flow was given up.
fn check(flow: &Flow) -> usize {
    let mut points = 0;
    for at in [At::Poll, At::Wake] {
        for polls in 0..=MANY {
            assert!(polls < MANY, "{}: it is polled again and again", flow.name);
            // At::Wake without a poll waits for nothing.
            if polls == 0 && at == At::Wake {
                continue;
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            let scenario = given_up(flow, polls, at);
            let done = runtime
                .block_on(async { tokio::time::timeout(Duration::from_secs(3600), scenario).await })
                .unwrap_or_else(|_| panic!("{}, {polls} polls, at {at:?}: it hangs", flow.name));
            points += 1;
            if done {
                break;
            }
        }
    }
    points
}

/// auth:G-13, seed:B24, protocol:C-01, protocol:C-03
#[test]
fn nothing_is_left_of_a_future_wherever_it_is_dropped() {
    let points: usize = flows().iter().map(check).sum();
    assert!(points >= 300, "only {points} points");
}
