//! Over HTTP: the server is on a thread of its own, so every task of this runtime is the client's.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::transport::http::HttpTimeouts;
use mcp_client::{
    Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, Era, HttpServer, Limits, Mode,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::{At, MANY, PollLimit};
use crate::client::peer::builder;
use crate::http::script::{Peer, Server, within};

/// What the server saw.
#[derive(Default)]
struct Seen {
    log: Mutex<Log>,
    /// An answer to a question came.
    answered: Notify,
}

#[derive(Default)]
struct Log {
    messages: Vec<Value>,
    /// The ids of requests whose exchange the client ended while they were not answered.
    left: Vec<Value>,
    /// HTTP methods beside POST.
    others: Vec<String>,
}

impl Seen {
    /// The ids of the calls of the tool that is never answered.
    fn unanswered(&self) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let silent = log.messages.iter().filter(|message| message["params"]["name"] == "silent");
        silent.map(|message| message["id"].clone()).collect()
    }

    fn cancelled(&self) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let notices = log.messages.iter().filter(|message| message["method"] == "notifications/cancelled");
        notices.map(|message| message["params"]["requestId"].clone()).collect()
    }

    fn left(&self) -> Vec<Value> {
        self.log.lock().unwrap().left.clone()
    }

    fn of_method(&self, method: &str) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        let said = log.messages.iter().filter(|message| message["method"] == method);
        said.map(|message| message["id"].clone()).collect()
    }
}

/// Starts the server on a thread with a runtime of its own. It ends with the last value.
fn start() -> (String, Arc<Seen>, oneshot::Sender<()>) {
    let (running, mut stop) = oneshot::channel();
    let seen = Arc::new(Seen::default());
    let (told, url) = std::sync::mpsc::channel();
    let watched = Arc::clone(&seen);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start().await;
            told.send(server.url()).unwrap();
            loop {
                tokio::select! {
                    peer = server.accept() => drop(tokio::spawn(talk(peer, Arc::clone(&watched)))),
                    _ = &mut stop => return,
                }
            }
        });
    });
    (url.recv().unwrap(), seen, running)
}

async fn talk(mut peer: Peer, seen: Arc<Seen>) {
    while let Some(request) = peer.try_request().await {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        match request.method.as_str() {
            "POST" => seen.log.lock().unwrap().messages.push(message.clone()),
            other => seen.log.lock().unwrap().others.push(other.to_owned()),
        }
        match (request.method.as_str(), message["method"].as_str()) {
            ("GET", _) => {
                peer.stream("").await;
                return peer.closed().await;
            }
            ("POST", None) => {
                seen.answered.notify_one();
                peer.accepted().await;
            }
            ("POST", Some(_)) if message["id"].is_null() => peer.accepted().await,
            ("POST", Some(method)) => match answer(method, &message["params"]) {
                Reply::Json(result) => peer.json(&answer_to(&message, result)).await,
                Reply::Stream { first, wait } => {
                    peer.stream("").await;
                    peer.chunk(&format!("data: {}\n\n", first(&message))).await;
                    match wait {
                        Wait::No => {}
                        Wait::ForAnAnswer => tokio::select! {
                            () = seen.answered.notified() => {}
                            () = peer.closed() => {
                                return seen.log.lock().unwrap().left.push(message["id"].clone());
                            }
                        },
                        Wait::ForTheEnd => {
                            peer.closed().await;
                            return seen.log.lock().unwrap().left.push(message["id"].clone());
                        }
                    }
                    let done = answer_to(&message, json!({ "content": [] }));
                    peer.chunk(&format!("data: {done}\n\n")).await;
                    peer.end().await;
                }
            },
            _ => peer.respond("200 OK", "", "").await,
        }
    }
}

enum Wait {
    No,
    ForAnAnswer,
    ForTheEnd,
}

enum Reply {
    Json(Value),
    Stream { first: fn(&Value) -> Value, wait: Wait },
}

fn answer_to(request: &Value, mut result: Value) -> String {
    result["resultType"] = json!("complete");
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

fn progress(request: &Value) -> Value {
    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({ "progressToken": token, "progress": 1 });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

fn question(_: &Value) -> Value {
    let params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params })
}

fn granted(request: &Value) -> Value {
    let params = json!({
        "notifications": request["params"]["notifications"],
        "_meta": { "io.modelcontextprotocol/subscriptionId": request["id"] },
    });
    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params })
}

fn answer(method: &str, params: &Value) -> Reply {
    let capabilities = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } });
    Reply::Json(match (method, params["name"].as_str()) {
        ("initialize", _) => {
            json!({ "protocolVersion": params["protocolVersion"], "capabilities": capabilities })
        }
        ("server/discover", _) => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities })
        }
        ("tools/list", _) => {
            let tools = json!([{ "name": "plain", "inputSchema": { "type": "object" } }]);
            match params["cursor"].as_str() {
                None => json!({ "tools": tools, "nextCursor": "2" }),
                Some(_) => json!({ "tools": tools }),
            }
        }
        ("tools/call", Some("stream")) => return Reply::Stream { first: progress, wait: Wait::No },
        ("tools/call", Some("asks")) => return Reply::Stream { first: question, wait: Wait::ForAnAnswer },
        ("tools/call", Some("silent")) => return Reply::Stream { first: progress, wait: Wait::ForTheEnd },
        ("tools/call", _) => json!({ "content": [] }),
        ("resources/read", _) => json!({ "contents": [{ "uri": params["uri"], "text": "t" }] }),
        ("resources/unsubscribe", _) => return Reply::Stream { first: progress, wait: Wait::ForTheEnd },
        ("subscriptions/listen", _) => return Reply::Stream { first: granted, wait: Wait::ForTheEnd },
        _ => json!({}),
    })
}

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

/// Idle connections are not kept: their keeper would be a task for so long.
fn endpoint(url: &str) -> HttpServer {
    let mut timeouts = HttpTimeouts::default();
    timeouts.pool_idle = Duration::from_millis(5);
    HttpServer::new(url).unwrap().timeouts(timeouts)
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
async fn given_up(name: &str, era: Era, act: Act, polls: usize, at: At) -> bool {
    let place = format!("{name} ({era:?}), {polls} polls, at {at:?}");
    let (url, seen, _running) = start();
    let client = within(client(era).connect(endpoint(&url))).await.unwrap();
    within(client.ping().into_future()).await.ok();
    // The reader of the standing stream, the deadlines, the pool.
    let before = tasks_alive();
    let done = within(tokio::spawn(PollLimit::new(act(client.clone()), polls, at))).await.unwrap().is_some();

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
    let mut points = 0;
    for era in [Era::Legacy, Era::Modern] {
        for (name, act) in acts {
            for at in [At::Poll, At::Wake] {
                for polls in usize::from(at == At::Wake)..=MANY {
                    assert!(polls < MANY, "{name}: it is polled again and again");
                    points += 1;
                    if in_a_runtime(given_up(name, era, act, polls, at)) {
                        break;
                    }
                }
            }
        }
    }
    assert!(points >= 50, "only {points} points");
}

/// auth:G-13: the same for connecting itself, with the probe and without.
#[test]
fn nothing_is_left_of_a_connect_over_http_wherever_it_is_dropped() {
    let mut points = 0;
    for mode in [Mode::Legacy, Mode::Auto, Mode::Pinned(ProtocolVersion::V2026_07_28)] {
        for at in [At::Poll, At::Wake] {
            for polls in usize::from(at == At::Wake)..=MANY {
                assert!(polls < MANY, "it is polled again and again");
                points += 1;
                let mode = mode.clone();
                let done = in_a_runtime(async {
                    let place = format!("{mode:?}, {polls} polls, at {at:?}");
                    let (url, seen, _running) = start();
                    let connecting = builder().mode(mode.clone()).connect(endpoint(&url));
                    let limited = PollLimit::new(connecting, polls, at);
                    let client = within(tokio::spawn(limited)).await.unwrap();
                    let done = client.is_some();
                    if let Some(client) = client {
                        within(client.unwrap().close()).await;
                    }
                    eventually(&format!("{place}: tasks are left"), || tasks_alive() == 0).await;
                    assert_eq!(seen.cancelled(), [] as [Value; 0], "{place}");
                    done
                });
                if done {
                    break;
                }
            }
        }
    }
    assert!(points >= 15, "only {points} points");
}

/// auth:G-13: what the client asks by itself, and no call waits for, ends with its time and with the connection: a server that
/// never answers keeps no exchange of it.
#[test]
fn what_nobody_waits_for_ends_with_its_time_and_with_the_connection() {
    for in_time in [true, false] {
        in_a_runtime(async {
            let (url, seen, _running) = start();
            let client = within(client(Era::Legacy).connect(endpoint(&url))).await.unwrap();
            within(client.ping().into_future()).await.unwrap();
            let before = tasks_alive();
            let mut wanted = SubscriptionFilter::new();
            wanted.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
            drop(within(client.subscription(wanted)).await.unwrap());
            let asked = || seen.of_method("resources/unsubscribe");
            eventually("the server is not told", || !asked().is_empty()).await;
            if in_time {
                // Past the time of the request, and no further: what is posted then goes through real sockets, for which no time
                // passes while it stands still, and has a time of its own.
                tokio::time::pause();
                tokio::time::sleep(Duration::from_secs(61)).await;
                tokio::time::resume();
                eventually("its exchange goes on", || every_one_of(&asked(), &seen.left())).await;
                eventually("its task goes on", || tasks_alive() <= before).await;
                assert!(!client.is_closed());
                eventually("the server is not told to stop", || !seen.cancelled().is_empty()).await;
                assert_eq!(seen.cancelled(), asked());
            } else {
                drop(client);
                eventually("its exchange goes on", || every_one_of(&asked(), &seen.left())).await;
                eventually("its task goes on", || tasks_alive() == 0).await;
            }
        });
    }
}
