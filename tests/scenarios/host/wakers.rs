//! Whoever is woken, listens to the log, or is dropped with an error may look at the host: it holds no lock at that time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_client::HttpServer;
use mcp_client::host::{Connector, Host, HostEvent, HostLimits, ToolNames};

use super::support::*;
use crate::client::peer::builder;
use crate::wakers::{LogListener, in_time};

/// Looks at the host whenever something of the application's is called.
#[derive(Clone)]
struct Looks {
    host: Host,
    times: Arc<AtomicUsize>,
}

impl Looks {
    fn at(host: &Host) -> Self {
        Self { host: host.clone(), times: Arc::default() }
    }

    fn look(&self) {
        let _ = (self.host.servers(), format!("{:?}", self.host));
        drop(self.host.events());
        self.times.fetch_add(1, Ordering::Relaxed);
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    /// Polls with a waker that looks, until the future waits.
    fn wait<F: Future + ?Sized>(&self, mut future: Pin<&mut F>) {
        let waker = Waker::from(Arc::new(Wakes(self.clone())));
        assert!(matches!(future.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    }
}

struct Wakes(Looks);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.look();
    }
}

/// An error of the application that looks when it is dropped.
struct Dropped(Looks);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.look();
    }
}

impl fmt::Debug for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dropped")
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not there")
    }
}

impl std::error::Error for Dropped {}

fn refuses() -> Connector {
    Connector::new(|| std::future::ready(Err::<HttpServer, _>("not there".into())))
}

#[test]
fn who_waits_for_an_event_may_look_at_the_host_when_it_is_told() {
    in_time(async {
        let host = host();
        let looks = Looks::at(&host);
        let mut events = host.events();
        let mut next = Box::pin(events.next());
        looks.wait(next.as_mut());
        assert_eq!(failed(host.connect("srv", refuses()).await), "transport");
        assert_eq!(looks.times(), 1);
        drop(next);
        assert_eq!(happened(&mut events).await, ["srv 1 connecting", "srv 1 failed"], "in their order");
    });
}

#[test]
fn who_waits_for_news_of_a_connection_may_look_at_the_host_when_it_is_told() {
    in_time(async {
        let host = host();
        let (_client, _plug, mut peer) = connected(&host, "srv").await;
        let looks = Looks::at(&host);
        let mut events = host.events();
        let mut next = Box::pin(events.next());
        looks.wait(next.as_mut());
        peer.send(notice("notifications/tools/list_changed")).await;
        tokio::time::sleep(SECOND).await;
        assert_eq!(looks.times(), 1);
        assert!(matches!(next.await, Some(HostEvent::Client { .. })));
    });
}

#[test]
fn who_waits_for_the_end_of_a_connection_may_look_at_the_host_when_it_is_told() {
    in_time(async {
        let host = host();
        let (_client, _plug, _peer) = connected(&host, "srv").await;
        let looks = Looks::at(&host);
        let mut closing = Box::pin(host.disconnect("srv"));
        looks.wait(closing.as_mut());
        tokio::time::sleep(30 * SECOND).await;
        assert!(looks.times() > 0);
        assert_eq!(state(&host, "srv"), ("disconnected", None));
        closing.await.unwrap();
    });
}

/// The last of an error may be the one that a server failed with, or one in an event that gives way.
#[test]
fn an_error_of_the_application_may_look_at_the_host_when_it_is_dropped() {
    in_time(async {
        for capacity in [1, 4096] {
            let mut limits = HostLimits::default();
            limits.event_capacity = capacity;
            let host = Host::builder(builder()).limits(limits).build();
            let looks = Looks::at(&host);
            let connector = Connector::new({
                let looks = looks.clone();
                move || std::future::ready(Err::<HttpServer, _>(Dropped(looks.clone()).into()))
            });
            let events = (capacity == 1).then(|| host.events());
            assert_eq!(failed(host.connect("srv", connector).await), "transport");
            for _ in 0..3 {
                assert_eq!(failed(host.reconnect("srv").await), "transport");
            }
            host.disconnect("srv").await.unwrap();
            host.remove("srv").await.unwrap();
            drop(events);
            assert_eq!(looks.times(), 4, "{capacity}");
        }
    });
}

#[test]
fn who_listens_to_the_log_may_look_at_the_host() {
    in_time(async {
        let host = host();
        let looks = Looks::at(&host);
        let hear = {
            let looks = looks.clone();
            move || looks.look()
        };
        let _guard = tracing::subscriber::set_default(LogListener { target: "mcp_client::host", hear });
        assert_eq!(failed(host.connect("srv", refuses()).await), "transport");
        assert!(looks.times() >= 2);
    });
}

/// A log that panics costs nobody else anything.
#[test]
fn who_waits_for_an_event_is_told_whatever_the_log_does() {
    in_time(async {
        let host = host();
        let mut events = host.events();
        let told = tokio::spawn(async move {
            let first = events.next().await;
            (first, events)
        });
        tokio::task::yield_now().await;
        {
            let hear = || panic!("on purpose");
            let _guard = tracing::subscriber::set_default(LogListener { target: "mcp_client::host", hear });
            let connecting = tokio::spawn({
                let host = host.clone();
                async move { host.connect("srv", refuses()).await }
            });
            assert!(connecting.await.unwrap_err().is_panic());
        }
        let (first, _events) = tokio::time::timeout(SECOND, told).await.unwrap().unwrap();
        assert!(matches!(first, Some(HostEvent::State { .. })));
        assert_eq!(failed(host.connect("srv", refuses()).await), "transport", "the server is usable");
    });
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

/// Enough to be among all others wherever they wait.
const MANY: usize = 64;

/// Has many wait whose wakers panic.
fn wait_panicking<F: Future>(future: impl Fn() -> F) -> Vec<Pin<Box<F>>> {
    let waker = Waker::from(Arc::new(Panics));
    let wait = |mut future: Pin<Box<F>>| {
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        future
    };
    (0..MANY).map(|_| wait(Box::pin(future()))).collect()
}

#[test]
fn who_waits_for_a_connection_or_its_end_is_told_whoever_panics() {
    in_time(async {
        let host = host();
        let (connector, mut plug) = plug();
        let mut connecting = Box::pin(host.connect("srv", connector));
        assert!(tokio::time::timeout(SECOND, connecting.as_mut()).await.is_err());
        let mut peer = plug.peer().await;
        let others = wait_panicking(|| host.reconnect("srv"));
        let again = tokio::spawn({
            let host = host.clone();
            async move { host.reconnect("srv").await }
        });
        tokio::task::yield_now().await;
        peer.handshake(everything()).await;
        tokio::time::timeout(SECOND, connecting).await.unwrap().unwrap();
        tokio::time::timeout(SECOND, again).await.unwrap().unwrap().unwrap();
        drop(others);

        let others = wait_panicking(|| host.disconnect("srv"));
        let closing = tokio::spawn({
            let host = host.clone();
            async move { host.disconnect("srv").await }
        });
        tokio::task::yield_now().await;
        drop(peer);
        tokio::time::timeout(SECOND, closing).await.unwrap().unwrap().unwrap();
        drop(others);
        assert_eq!(state(&host, "srv"), ("disconnected", None));
    });
}

#[test]
fn who_watches_the_tools_sees_the_next_table_whoever_panics() {
    in_time(async {
        let host = host();
        let (connector, mut plug) = plug();
        let (client, mut peer) = tokio::join!(host.connect("srv", connector), async {
            let mut peer = plug.peer().await;
            peer.handshake(serde_json::json!({ "tools": { "listChanged": true } })).await;
            peer
        });
        client.unwrap();
        let list = serde_json::json!({ "tools": [] });
        let (mut tools, ()) = tokio::join!(host.watch_tools(ToolNames::default()), async {
            let request = peer.expect("tools/list").await;
            peer.answer(&request, list.clone()).await;
        });
        for _ in 0..3 {
            let others = wait_panicking(|| {
                let mut tools = tools.clone();
                async move { tools.changed().await.is_some() }
            });
            let mut mine = tools.clone();
            let mine = tokio::spawn(async move { mine.changed().await.map(|_| mine) });
            tokio::task::yield_now().await;
            peer.send(notice("notifications/tools/list_changed")).await;
            let request = peer.expect("tools/list").await;
            peer.answer(&request, list.clone()).await;
            tools = tokio::time::timeout(SECOND, mine).await.unwrap().unwrap().unwrap();
            drop(others);
        }
    });
}

/// Whoever is woken may be the one who lets go of the host.
#[test]
fn who_waits_for_an_event_may_drop_the_host_when_it_is_told() {
    struct Drops(std::sync::Mutex<Option<Host>>);
    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    in_time(async {
        for of_table in [false, true] {
            let host = host();
            let (client, _plug, mut peer) = connected(&host, "srv").await;
            let mut tools = tokio::join!(host.watch_tools(ToolNames::default()), async {
                let request = peer.expect("tools/list").await;
                peer.answer(&request, serde_json::json!({ "tools": [] })).await;
            })
            .0;
            let mut events = host.events();
            let waker = Waker::from(Arc::new(Drops(std::sync::Mutex::new(Some(host)))));
            {
                let mut event = Box::pin(events.next());
                let mut table = Box::pin(tools.changed());
                let is_waiting = match of_table {
                    true => table.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(),
                    false => event.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(),
                };
                assert!(is_waiting);
                drop(waker);
                drop(peer);
                let _ = tokio::time::timeout(SECOND, table).await;
            }
            let over = async { while events.next().await.is_some() {} };
            tokio::time::timeout(SECOND, over).await.expect("the host is gone");
            let over = async { while tools.changed().await.is_some() {} };
            tokio::time::timeout(SECOND, over).await.expect("the host is gone");
            assert!(client.is_closed() && tools.current().is_empty());
        }
    });
}
