//! Runtimes that end, or that nobody drives, while a connection of theirs is closed by somebody else.

use std::time::Duration;

use mcp_client::host::{Connector, Host, HostLimits};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::support::*;
use crate::client::peer::{Peer, builder};

/// Far from any limit of the host, near enough to see that something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn soon<T>(outcome: impl Future<Output = T>) -> T {
    timeout(PATIENCE, outcome).await.expect("it hangs")
}

fn host_closing_within(close_timeout: Duration) -> Host {
    let mut limits = HostLimits::default();
    limits.close_timeout = close_timeout;
    Host::builder(builder()).limits(limits).build()
}

fn connect_on(runtime: &Runtime, host: &Host) -> (Connector, Plug, Peer) {
    let (connector, mut plug) = plug();
    let (client, peer) =
        runtime.block_on(async { tokio::join!(host.connect("srv", connector.clone()), plug.ready()) });
    client.unwrap();
    (connector, plug, peer)
}

/// What hangs without giving its thread back hangs where it spoils nothing.
fn on_a_thread_of_its_own(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    assert!(is_done.recv_timeout(PATIENCE * 3).is_ok(), "it never ended, or panicked");
}

/// The server's name is usable: each of the ways on works, with the client of the old connection still there.
fn is_usable(host: &Host, connector: Connector, mut plug: Plug) {
    runtime().block_on(async {
        soon(host.disconnect("srv")).await.unwrap();
        let connecting = async { tokio::join!(host.connect("srv", connector), plug.ready()) };
        let (client, peer) = soon(connecting).await;
        assert!(!client.unwrap().is_closed());
        drop(peer);
        let (client, peer) = soon(reconnected(host, "srv", &mut plug)).await;
        assert!(!client.is_closed());
        drop(peer);
        soon(host.remove("srv")).await.unwrap();
        assert!(host.server("srv").is_none());
    });
}

#[test]
fn a_runtime_that_ends_in_the_middle_of_closing_leaves_the_server_disconnected() {
    for begun_on_it in [true, false] {
        on_a_thread_of_its_own(move || {
            let host = host();
            let a = runtime();
            let (connector, plug, _peer) = connect_on(&a, &host);
            let client = host.client("srv").unwrap();
            let begin = async { timeout(Duration::from_millis(20), host.disconnect("srv")).await };
            let begun = if begun_on_it { a.block_on(begin) } else { runtime().block_on(begin) };
            assert!(begun.is_err());
            assert_eq!(state(&host, "srv").0, "closing");
            drop(a);
            assert_eq!(state(&host, "srv").0, "disconnected");
            assert!(client.is_closed());
            is_usable(&host, connector, plug);
        });
    }
}

#[test]
fn a_connection_whose_runtime_has_ended_is_closed_at_once() {
    on_a_thread_of_its_own(|| {
        for remove in [true, false] {
            let host = host();
            let a = runtime();
            let (connector, plug, _peer) = connect_on(&a, &host);
            drop(a);
            if remove {
                runtime().block_on(soon(host.remove("srv"))).unwrap();
                assert!(host.server("srv").is_none());
            } else {
                is_usable(&host, connector, plug);
            }
        }
    });
}

/// The time to close runs for whoever waits, on a runtime of their own.
#[test]
fn closing_takes_no_longer_where_nobody_drives_the_runtime_of_the_connection() {
    on_a_thread_of_its_own(|| {
        let host = host_closing_within(Duration::from_secs(1));
        let a = runtime();
        let (connector, plug, _peer) = connect_on(&a, &host);
        let client = host.client("srv").unwrap();
        let b = runtime();
        let closed = b.block_on(soon(host.disconnect("srv")));
        assert_eq!(failed(closed), "timeout");
        assert_eq!(state(&host, "srv"), ("disconnected", Some("timeout")));
        assert!(client.is_closed());
        is_usable(&host, connector, plug);
        drop(a);

        let a = runtime();
        let (_connector, mut plug, _peer) = connect_on(&a, &host);
        let (again, _peer) = b.block_on(soon(reconnected(&host, "srv", &mut plug)));
        assert!(!again.is_closed());
        drop(a);

        let a = runtime();
        let host = host_closing_within(Duration::from_secs(1));
        let (_connector, _plug, _peer) = connect_on(&a, &host);
        assert_eq!(failed(b.block_on(soon(host.remove("srv")))), "timeout");
        assert!(host.server("srv").is_none(), "forgotten all the same");

        let (_connector, _plug, _peer) = connect_on(&a, &host);
        let closed = b.block_on(soon(host.close()));
        assert_eq!(closed.len(), 1);
        assert!(closed.into_iter().all(|(_, closed)| failed(closed) == "timeout"));
    });
}
