//! Whoever is woken, listens to the log, or is dropped with an error may look at the host: it holds no lock at that time.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_client::HttpServer;
use mcp_client::host::{Connector, Host, HostEvent, HostLimits};

use super::support::*;
use crate::client::peer::builder;

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

/// On a thread of its own: what waits for a lock for ever fails the test in place of stopping it.
fn in_time(scenario: impl Future<Output = ()> + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("it waits for ever, or has failed");
}

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
        let _guard = tracing::subscriber::set_default(Listens(looks.clone()));
        assert_eq!(failed(host.connect("srv", refuses()).await), "transport");
        assert!(looks.times() >= 2);
    });
}

struct Listens(Looks);

impl tracing::Subscriber for Listens {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if event.metadata().target().starts_with("mcp_client::host") {
            self.0.look();
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
