//! What is heard on standing streams while they and their sessions come and go: who subscribes at which moment is granted what, and
//! in which order it is told. For what becomes of the streams themselves see `standing_streams` and `lost_sessions`.

use std::future::IntoFuture as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::{Change, Client, ClientBuilder, ClientEvent, Error, HttpServer, Mode, Subscription};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::peer::{builder, diagnostics, recorded};
use super::sessions::{BY_THE_BOOK, Sessions, connect, session};
use crate::http::script::{Peer, Server, at_the_deadline, rounds, within};

type Recorded = Arc<Mutex<Vec<ClientEvent>>>;

fn of_tools() -> SubscriptionFilter {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    wanted
}

fn of_prompts() -> SubscriptionFilter {
    let mut wanted = SubscriptionFilter::new();
    wanted.prompts_list_changed = Some(true);
    wanted
}

/// Everything that is there for a subscription, and how it ended if it has.
fn read(subscription: &mut Subscription) -> (Vec<Change>, Option<Result<(), Error>>) {
    let context = &mut Context::from_waker(Waker::noop());
    let mut changes = Vec::new();
    loop {
        match subscription.poll_next(context) {
            Poll::Ready(Ok(Some(change))) => changes.push(change),
            Poll::Ready(Ok(None)) => return (changes, Some(Ok(()))),
            Poll::Ready(Err(error)) => return (changes, Some(Err(error))),
            Poll::Pending => return (changes, None),
        }
    }
}

/// What was told of streams and sessions.
fn told(events: &Mutex<Vec<ClientEvent>>) -> Vec<&'static str> {
    let word = |event: &ClientEvent| match event {
        ClientEvent::SessionRenewed => Some("renewed"),
        ClientEvent::SubscriptionInterrupted => Some("interrupted"),
        ClientEvent::SubscriptionRestored => Some("restored"),
        _ => None,
    };
    events.lock().unwrap().iter().filter_map(word).collect()
}

/// Awaits what takes no time, however long it takes on this machine. For a runtime of one thread.
async fn in_no_time<F: Future>(future: F) -> F::Output {
    tokio::time::pause();
    let output = at_once(future).await;
    tokio::time::resume();
    output
}

/// As [`in_no_time`], where the clock is paused already.
async fn at_once<F: Future>(future: F) -> F::Output {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    // The clock does not move on by itself while somebody is at work elsewhere.
    let elsewhere = tokio::task::spawn_blocking(move || is_done.recv());
    let output = future.await;
    drop(done);
    let _ = elsewhere.await;
    output
}

/// Lets others run until this is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

async fn call(client: &Client) {
    client.call_tool("t", json!({})).into_future().await.unwrap();
}

/// A client without a stream, whose session is lost: the next one is asked for its stream, and the answer is held back.
async fn without_a_stream() -> (Arc<Sessions>, Client, Recorded) {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    sessions.state.lock().unwrap().has_streams = false;
    let (client, events) = connect(&url).await;
    let subscription = within(client.subscription(of_tools())).await.unwrap();
    assert_eq!(subscription.granted(), &SubscriptionFilter::new());
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.has_streams, state.holds_streams) = (false, true, true);
    }
    (sessions, client, events)
}

/// What the old session had says nothing of the new one.
#[tokio::test]
async fn who_subscribes_while_a_new_session_opens_its_stream_is_granted_what_it_brings() {
    for has_streams in [true, false] {
        let (sessions, client, events) = without_a_stream().await;
        sessions.state.lock().unwrap().has_streams = has_streams;
        in_no_time(async {
            call(&client).await;
            let mut subscribing = pin!(client.subscription(of_tools()));
            let mut poll = || subscribing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(poll().is_pending());
            until(|| sessions.count("GET").contains_key(&session(2))).await;
            assert!(poll().is_pending(), "it is not known yet");
            sessions.lets_in.notify_waiters();
            let mut subscription = subscribing.await.unwrap();
            let expected = if has_streams { of_tools() } else { SubscriptionFilter::new() };
            assert_eq!(subscription.granted(), &expected);
            assert!(read(&mut subscription).1.is_none(), "it goes on");
            if has_streams {
                sessions.word.notify_waiters();
                let change = subscription.next().await.unwrap();
                assert_eq!(change, Some(Change::List(mcp_client::ListKind::Tools)));
            }
        })
        .await;
        assert_eq!(told(&events), ["renewed"]);
        assert!(diagnostics(&events).is_empty(), "nobody has missed anything");
    }
}

/// A server may answer the GET only with its first message.
#[tokio::test]
async fn who_subscribes_while_a_stream_does_not_open_waits_a_quarter_of_a_second_at_most() {
    let (sessions, client, _) = without_a_stream().await;
    at_the_deadline(async {
        at_once(call(&client)).await;
        let begun = Instant::now();
        let subscription = client.subscription(of_tools()).await.unwrap();
        // The timers are of one millisecond.
        assert!((250..=251).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
        assert_eq!(subscription.granted(), &of_tools());
        // The wait is the session's, and not that of each who subscribes.
        let begun = Instant::now();
        client.subscription(of_tools()).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
    })
    .await;
    assert_eq!(sessions.count("GET").get(&session(2)), Some(&1));
}

/// What waits is no future of the application's, which may have no timers.
#[tokio::test]
async fn who_subscribes_while_a_stream_does_not_open_needs_no_runtime() {
    let (_sessions, client, _) = without_a_stream().await;
    within(call(&client)).await;
    let elsewhere = std::thread::spawn(move || {
        let mut subscribing = pin!(client.subscription(of_tools()));
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        loop {
            match subscribing.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(subscription) => return subscription.unwrap().granted().clone(),
                Poll::Pending => std::thread::park(),
            }
        }
    });
    let granted = within(tokio::task::spawn_blocking(move || elsewhere.join())).await.unwrap();
    assert_eq!(granted.unwrap(), of_tools());
}

/// The smallest executor there is.
struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What was granted because nothing was known against it ends when something is.
#[tokio::test]
async fn a_stream_that_turns_out_late_to_be_none_ends_what_counts_on_it() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    {
        let mut state = sessions.state.lock().unwrap();
        (state.has_streams, state.holds_streams) = (false, true);
    }
    let (builder, events) = recorded(builder());
    let connecting = builder.connect(HttpServer::new(&url).unwrap());
    let client = at_the_deadline(connecting).await.unwrap();
    let mut subscription = at_the_deadline(client.subscription(of_tools())).await.unwrap();
    assert_eq!(subscription.granted(), &of_tools());
    within(sessions.stream_of(1)).await;
    sessions.lets_in.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), None);
    assert_eq!(diagnostics(&events), ["stream_lost"]);
    assert_eq!(within(client.subscription(of_tools())).await.unwrap().granted(), &SubscriptionFilter::new());
}

/// What changes before the new session has its stream is told to nobody: it is read after that.
#[tokio::test]
async fn a_list_is_read_again_when_the_new_session_has_its_stream() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, _) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    let list = within(client.list_tools().watch()).await.unwrap();
    // It is not read again at once in any case.
    at_the_deadline(tokio::time::sleep(Duration::from_secs(1))).await;
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.holds_streams) = (false, true);
    }
    let reads = || sessions.count("tools/list").get(&session(2)).copied().unwrap_or_default();
    in_no_time(async {
        call(&client).await;
        until(|| sessions.count("GET").contains_key(&session(2))).await;
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert_eq!(reads(), 0);
        sessions.lets_in.notify_waiters();
        until(|| reads() == 1).await;
    })
    .await;
    assert!(list.current().followed);
}

/// After its end a subscription tells of nothing, whatever the connection hears.
#[tokio::test]
async fn a_subscription_that_has_ended_stays_so() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, _) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.has_streams) = (false, false);
    }
    within(call(&client)).await;
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
    assert_eq!(within(subscription.next()).await.unwrap(), None);
    sessions.state.lock().unwrap().has_streams = true;
    sessions.lose();
    within(call(&client)).await;
    within(sessions.stream_of(3)).await;
    let mut events = client.events();
    sessions.word.notify_waiters();
    within(async { while !matches!(events.next().await, Some(ClientEvent::ListChanged(_))) {} }).await;
    assert!(matches!(read(&mut subscription), (changes, Some(Ok(()))) if changes.is_empty()));
}

/// What a subscription reads at the moment when something is told.
#[derive(Default)]
struct Moment {
    subscription: Mutex<Option<Subscription>>,
    events: Mutex<Vec<ClientEvent>>,
    changes: Mutex<Vec<Change>>,
}

impl Moment {
    /// A client that has it read when something like this is told.
    fn when(is_such: impl Fn(&ClientEvent) -> bool + Send + Sync + 'static) -> (ClientBuilder, Arc<Self>) {
        let moment = Arc::new(Self::default());
        let this = Arc::clone(&moment);
        let builder = builder().on_event(move |event| {
            let is_such = is_such(&event);
            this.events.lock().unwrap().push(event);
            if let (true, Some(subscription)) = (is_such, &mut *this.subscription.lock().unwrap()) {
                this.changes.lock().unwrap().extend(read(subscription).0);
            }
        });
        (builder, moment)
    }

    async fn subscribe(&self, client: &Client) {
        let subscription = within(client.subscription(of_tools())).await.unwrap();
        *self.subscription.lock().unwrap() = Some(subscription);
    }
}

/// One who is told of the new session is not told after that of the loss of the old one.
#[tokio::test]
async fn a_new_session_is_read_after_the_loss_that_it_ends() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (builder, moment) = Moment::when(|event| matches!(event, ClientEvent::SessionRenewed));
    let client = within(builder.connect(HttpServer::new(&url).unwrap())).await.unwrap();
    within(sessions.stream_of(1)).await;
    moment.subscribe(&client).await;
    sessions.lose();
    sessions.cut.notify_waiters();
    within(sessions.stream_of(2)).await;
    within(async {
        while told(&moment.events).len() < 2 {
            rounds().await;
        }
    })
    .await;
    assert_eq!(told(&moment.events), ["interrupted", "renewed"]);
    assert_eq!(*moment.changes.lock().unwrap(), [Change::Interrupted, Change::Restored]);
    let mut subscription = moment.subscription.lock().unwrap();
    assert!(matches!(read(subscription.as_mut().unwrap()), (more, None) if more.is_empty()), "one loss");
}

/// A server of the modern era that grants every subscription, each with a stream of its own, which it cuts when it is told to.
struct Modern {
    cut_tools: Notify,
    cut_prompts: Notify,
}

impl Modern {
    async fn start() -> (String, Arc<Self>) {
        let this = Arc::new(Self { cut_tools: Notify::new(), cut_prompts: Notify::new() });
        let server = Server::start().await;
        let (url, modern) = (server.url(), Arc::clone(&this));
        tokio::spawn(async move {
            loop {
                let peer = server.next_peer().await;
                tokio::spawn(Arc::clone(&modern).talk(peer));
            }
        });
        (url, this)
    }

    async fn talk(self: Arc<Self>, mut peer: Peer) {
        while let Some(request) = peer.try_request().await {
            let message: Value = serde_json::from_str(&request.body).unwrap();
            if message["method"] == "subscriptions/listen" {
                let wanted = &message["params"]["notifications"];
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                let params = json!({ "notifications": wanted, "_meta": meta });
                let method = "notifications/subscriptions/acknowledged";
                let granted = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                peer.stream("").await;
                peer.chunk(&format!("data: {granted}\n\n")).await;
                let cut =
                    if wanted["toolsListChanged"] == true { &self.cut_tools } else { &self.cut_prompts };
                return tokio::select! {
                    () = cut.notified() => {}
                    () = peer.closed() => {}
                };
            }
            let result = json!({
                "supportedVersions": ["2026-07-28"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": { "listChanged": true }, "prompts": { "listChanged": true } },
            });
            peer.json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()).await;
        }
    }
}

/// protocol:S-08: and so with a subscription that has a stream of its own. What becomes of one is no matter of another.
#[tokio::test]
async fn a_subscription_that_stands_again_is_read_after_its_own_loss_and_by_no_other() {
    let (url, modern) = Modern::start().await;
    let (builder, moment) = Moment::when(|event| matches!(event, ClientEvent::SubscriptionRestored));
    let connecting =
        builder.mode(Mode::Pinned(ProtocolVersion::V2026_07_28)).connect(HttpServer::new(&url).unwrap());
    let client = within(connecting).await.unwrap();
    moment.subscribe(&client).await;
    let mut other = within(client.subscription(of_prompts())).await.unwrap();
    for (cut, of_this, of_other) in [
        (&modern.cut_tools, &[Change::Interrupted, Change::Restored][..], &[][..]),
        (&modern.cut_prompts, &[], &[Change::Interrupted, Change::Restored]),
    ] {
        moment.events.lock().unwrap().clear();
        moment.changes.lock().unwrap().clear();
        cut.notify_waiters();
        at_the_deadline(async {
            while told(&moment.events).len() < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
        assert_eq!(told(&moment.events), ["interrupted", "restored"]);
        assert_eq!(*moment.changes.lock().unwrap(), of_this);
        let (changes, end) = read(&mut other);
        assert!(changes == of_other && end.is_none(), "{changes:?}");
    }
}

/// However often a session is lost, the streams of the next ones are asked for at a pace; the newest has its own in the end.
#[tokio::test]
async fn streams_that_come_and_go_with_their_sessions_are_asked_for_at_a_pace() {
    const SESSIONS: usize = 12;
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, events) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    in_no_time(async {
        for number in 2..=SESSIONS {
            sessions.lose();
            call(&client).await;
            // At once for the first of them; whatever is asked for in others has the time for that.
            if number == 2 {
                until(|| sessions.count("GET").contains_key(&session(2))).await;
            }
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            assert_eq!(sessions.total("initialize"), number);
        }
    })
    .await;
    assert_eq!(sessions.total("GET"), 2, "{:?}", sessions.count("GET"));
    // One who subscribes meanwhile is told that nothing is heard.
    let mut late = in_no_time(client.subscription(of_tools())).await.unwrap();
    assert_eq!(late.granted(), &of_tools());
    assert_eq!(read(&mut late).0, [Change::Interrupted]);
    let minute = Duration::from_secs(60);
    at_the_deadline(tokio::time::timeout(minute, sessions.stream_of(SESSIONS))).await.unwrap();
    assert_eq!(within(late.next()).await.unwrap(), Some(Change::Restored));
    assert_eq!(sessions.total("GET"), 3);
    let told = told(&events);
    assert_eq!(told[..2], ["renewed"; 2]);
    assert_eq!(told[2..].chunks(2).filter(|pair| *pair == ["interrupted", "renewed"]).count(), SESSIONS - 3);
    assert_eq!(told[told.len() - 2..], ["interrupted", "restored"]);
    let (changes, end) = read(&mut subscription);
    assert!(changes.ends_with(&[Change::Interrupted, Change::Restored]) && end.is_none(), "{changes:?}");
    sessions.word.notify_waiters();
    within(subscription.next()).await.unwrap();
}

/// A stream that is to be opened again waits for the handshake of a session that somebody else makes meanwhile.
#[tokio::test]
async fn no_stream_is_asked_for_in_a_session_whose_handshake_is_not_over() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, _) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    // Lost, and a session is found: the stream is to be opened again in a moment.
    sessions.state.lock().unwrap().has_streams = false;
    sessions.cut.notify_waiters();
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Interrupted));
    {
        let mut state = sessions.state.lock().unwrap();
        (state.known, state.has_streams, state.holds_sessions) = (false, true, true);
    }
    let calling = tokio::spawn({
        let client = client.clone();
        async move { call(&client).await }
    });
    within(async {
        while sessions.count("notifications/initialized").get(&session(2)) != Some(&1) {
            rounds().await;
        }
    })
    .await;
    at_the_deadline(tokio::time::sleep(Duration::from_secs(9))).await;
    assert_eq!(sessions.count("GET").get(&session(2)), None);
    sessions.lets_in.notify_waiters();
    within(calling).await.unwrap();
    within(sessions.stream_of(2)).await;
    assert_eq!(within(subscription.next()).await.unwrap(), Some(Change::Restored));
}

/// A server that is gone before the stream of its newest session is due is given up as one whose stream was lost.
#[tokio::test]
async fn who_waits_for_a_stream_that_is_not_due_hears_of_a_server_that_is_gone() {
    let (url, sessions) = Sessions::start(BY_THE_BOOK, 1).await;
    let (client, events) = connect(&url).await;
    within(sessions.stream_of(1)).await;
    let mut subscription = within(client.subscription(of_tools())).await.unwrap();
    in_no_time(async {
        for number in 2..=3 {
            sessions.lose();
            call(&client).await;
            if number == 2 {
                until(|| sessions.count("GET").contains_key(&session(2))).await;
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert_eq!(told(&events), ["renewed", "renewed", "interrupted"]);
        {
            let mut state = sessions.state.lock().unwrap();
            (state.known, state.breaks_handshakes) = (false, true);
        }
        client.call_tool("t", json!({})).into_future().await.unwrap_err();
    })
    .await;
    let ended = async {
        loop {
            match subscription.next().await {
                Ok(Some(Change::Interrupted | Change::Restored)) => {}
                end => return end,
            }
        }
    };
    let end = at_the_deadline(tokio::time::timeout(Duration::from_secs(300), ended)).await;
    let error = end.expect("it takes up to about four minutes").unwrap_err();
    assert_eq!(error.kind(), mcp_client::ErrorKind::Transport, "{error:?}");
    assert!(client.close_reason().is_none(), "the next call makes a session");
}
