//! A host that connects again by itself, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_client::host::{Connector, Host, HostEvent, HostEvents, ReconnectPolicy, ServerState};
use mcp_client::{Error, HttpServer, RetryConfig, StdioServer};
use serde_json::json;
use tokio::time::Instant;

use super::support::*;
use crate::client::peer::builder;
use crate::http::script::{Server, within};

/// Longer than all waits together.
const AGES: Duration = Duration::from_secs(3600);

fn policy(max_attempts: u32) -> ReconnectPolicy {
    let mut policy = ReconnectPolicy::default();
    policy.max_attempts = max_attempts;
    policy.first_wait = 8 * SECOND;
    policy.longest_wait = 20 * SECOND;
    policy
}

/// The next event about a state: the state, the kind of its error, and how long until the next attempt.
async fn next_state(events: &mut HostEvents) -> (ServerState, Option<Error>, Option<Duration>) {
    loop {
        match events.next().await.unwrap() {
            HostEvent::State { state, error, next_attempt, .. } => {
                let now = Instant::now().into_std();
                return (state, error, next_attempt.map(|at| at.saturating_duration_since(now)));
            }
            _ => continue,
        }
    }
}

fn is_within(wait: Option<Duration>, most: Duration) -> bool {
    // Instants are exact, the timers of the runtime go by milliseconds.
    wait.is_some_and(|wait| wait >= most / 2 - SECOND / 100 && wait <= most)
}

/// seed:3.3: what was wanted of the server is asked for again, and the reason is told with the state
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_is_connected_to_again() {
    let host = host_with(policy(3));
    let (client, mut plug, mut peer) = connected(&host, "srv").await;
    let (set, ()) =
        tokio::join!(host.set_logging_level("srv", mcp_client::model::LoggingLevel::Error), async {
            let request = peer.expect("logging/setLevel").await;
            peer.answer(&request, json!({})).await;
        });
    set.unwrap();
    let mut events = host.events();
    let begun = Instant::now();
    drop(peer);
    let (state, error, wait) = next_state(&mut events).await;
    assert_eq!(state, ServerState::Failed);
    let error = error.unwrap();
    assert_eq!((kind(&error), error.server_name()), ("closed", Some("srv")));
    assert!(is_within(wait, 8 * SECOND), "{wait:?}");
    assert!(host.server("srv").unwrap().next_attempt.is_some());
    assert_eq!(failed(host.client("srv")), "closed");

    let mut peer = plug.ready().await;
    assert!(begun.elapsed() >= 4 * SECOND && begun.elapsed() <= 9 * SECOND, "{:?}", begun.elapsed());
    let request = peer.expect("logging/setLevel").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
    let (state, error, wait) = next_state(&mut events).await;
    assert_eq!((state, error.is_none(), wait), (ServerState::Connected, true, None));
    assert!(client.is_closed());
    let again = host.client("srv").unwrap();
    let (pong, ()) = tokio::join!(again.ping().timeout(SECOND), async {
        let ping = peer.expect("ping").await;
        peer.answer(&ping, json!({})).await;
    });
    pong.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waits_grow_until_it_is_given_up() {
    let host = host_with(policy(4));
    let mut events = host.events();
    let refuse = || std::future::ready(Err::<HttpServer, _>("not there".into()));
    assert_eq!(failed(host.connect("srv", Connector::new(refuse)).await), "transport");
    for most in [8, 16, 20, 20] {
        assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
        let (state, error, wait) = next_state(&mut events).await;
        assert_eq!((state, error.as_ref().map(kind)), (ServerState::Failed, Some("transport")));
        assert!(is_within(wait, most * SECOND), "{wait:?} of {most} s");
    }
    assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
    let (state, error, wait) = next_state(&mut events).await;
    assert_eq!((state, error.is_some(), wait), (ServerState::Failed, true, None));
    tokio::time::sleep(AGES).await;
    assert!(happened(&mut events).await.is_empty());
    assert_eq!(state_of(&host), ("failed", None));

    // The application's own attempt begins a new row.
    assert_eq!(failed(host.reconnect("srv").await), "transport");
    assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
    let (_, _, wait) = next_state(&mut events).await;
    assert!(is_within(wait, 8 * SECOND), "{wait:?}");
}

fn state_of(host: &Host) -> (&'static str, Option<std::time::Instant>) {
    let status = host.server("srv").unwrap();
    (status.state.as_str(), status.next_attempt)
}

/// A server that connects well and dies at once, each time, is given up as well; one that lasted begins anew.
#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_last_does_not_end_the_row() {
    let host = host_with(policy(2));
    let (_client, mut plug, peer) = connected(&host, "srv").await;
    let mut events = host.events();
    drop(peer);
    for most in [8, 16] {
        let (_, _, wait) = next_state(&mut events).await;
        assert!(is_within(wait, most * SECOND), "{wait:?} of {most} s");
        let peer = plug.ready().await;
        assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
        assert_eq!(next_state(&mut events).await.0, ServerState::Connected);
        if most == 8 {
            drop(peer);
        } else {
            tokio::time::sleep(61 * SECOND).await;
            drop(peer);
            let (_, _, wait) = next_state(&mut events).await;
            assert!(is_within(wait, 8 * SECOND), "it lasted: {wait:?}");
        }
    }
    for most in [16, 0] {
        drop(plug.ready().await);
        assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
        // It may end while it is asked for what is desired, or a moment later.
        let mut told = next_state(&mut events).await;
        if told.0 == ServerState::Connected {
            told = next_state(&mut events).await;
        }
        assert_eq!(told.0, ServerState::Failed);
        assert_eq!(told.2.is_some(), most > 0, "{:?}", told.2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_application_ended_is_left_alone() {
    for case in ["disconnected", "removed", "in the middle", "closed client", "closed host", "dropped host"] {
        let host = host_with(policy(9));
        let (client, mut plug, peer) = connected(&host, "srv").await;
        let mut events = host.events();
        if case == "closed client" {
            client.close().await;
        } else {
            drop(peer);
        }
        let (state, error, wait) = next_state(&mut events).await;
        assert_eq!((state, error.is_some()), (ServerState::Failed, true), "{case}");
        assert_eq!(wait.is_some(), case != "closed client", "{case}");
        match case {
            "disconnected" => {
                host.disconnect("srv").await.unwrap();
                assert_eq!(state_of(&host), ("disconnected", None));
            }
            "removed" => {
                host.remove("srv").await.unwrap();
            }
            "in the middle" => {
                let _peer = plug.peer().await;
                host.disconnect("srv").await.unwrap();
                assert_eq!(state_of(&host), ("disconnected", None));
            }
            "closed host" => {
                host.close().await;
            }
            "dropped host" => drop(host),
            _ => {}
        }
        tokio::time::sleep(AGES).await;
        assert!(plug.is_idle(), "{case}");
    }
}

/// An attempt of the application takes the place of the one to come, and is no second one.
#[tokio::test(start_paused = true)]
async fn whoever_is_faster_than_the_wait_makes_the_only_attempt() {
    let host = host_with(policy(9));
    let (_client, mut plug, peer) = connected(&host, "srv").await;
    let mut events = host.events();
    drop(peer);
    assert!(next_state(&mut events).await.2.is_some());
    let (_again, _peer) = reconnected(&host, "srv", &mut plug).await;
    tokio::time::sleep(AGES).await;
    assert!(plug.is_idle());
    assert_eq!(state_of(&host), ("connected", None));
}

/// Who joins an attempt of the host and then does not wait any more does not take it from the host.
#[tokio::test(start_paused = true)]
async fn an_attempt_of_the_host_is_not_given_up_by_who_joined_it() {
    let host = host_with(policy(9));
    let (_client, mut plug, peer) = connected(&host, "srv").await;
    drop(peer);
    let mut peer = plug.peer().await;
    assert!(tokio::time::timeout(SECOND, host.reconnect("srv")).await.is_err());
    assert_eq!(state_of(&host), ("connecting", None));
    assert_eq!(state(&host, "srv"), ("connecting", Some("closed")), "why it is made, until it stands");
    peer.handshake(everything()).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(state_of(&host), ("connected", None));
    assert_eq!(state(&host, "srv"), ("connected", None));
    assert!(!host.client("srv").unwrap().is_closed() && plug.is_idle());
}

/// No revision in common is an error that another attempt would meet again.
#[tokio::test(start_paused = true)]
async fn errors_that_will_not_go_away_are_not_tried_again() {
    let host = host_with(policy(9));
    let (connector, mut plug) = plug();
    let (outcome, ()) = tokio::join!(host.connect("srv", connector), async {
        let mut peer = plug.peer().await;
        let initialize = peer.expect("initialize").await;
        let facts = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        peer.answer(&initialize, facts).await;
        peer.expect_end().await;
    });
    assert_eq!(failed(outcome), "unsupported_version");
    tokio::time::sleep(AGES).await;
    assert!(plug.is_idle());
    assert_eq!(state_of(&host), ("failed", None));
}

/// RFC 9110 section 10.2.3: the error of a real exchange, met again by a host in virtual time
#[tokio::test]
async fn a_server_that_names_a_time_is_left_alone_for_it() {
    let server = Server::start().await;
    let url = server.url();
    let connecting = tokio::spawn(async move {
        let builder = builder().retry(RetryConfig::off());
        builder.connect(HttpServer::new(&url).unwrap()).await
    });
    let (mut peer, _) = server.request().await;
    peer.respond("503 Service Unavailable", "retry-after: 300\r\nconnection: close\r\n", "").await;
    let busy = within(connecting).await.unwrap().unwrap_err();
    assert_eq!(busy.retry_after(), Some(300 * SECOND));

    tokio::time::pause();
    let host = host_with(policy(9));
    let mut events = host.events();
    let dial = move || std::future::ready(Err::<HttpServer, _>(busy.clone().into()));
    assert_eq!(failed(host.connect("srv", Connector::new(dial)).await), "transport");
    assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
    let (_, _, wait) = next_state(&mut events).await;
    assert!(wait.unwrap() > 299 * SECOND && wait.unwrap() <= 300 * SECOND, "{wait:?}");
    assert_eq!(next_state(&mut events).await.0, ServerState::Connecting);
}

/// Each server has a row and a wait of its own.
#[tokio::test(start_paused = true)]
async fn many_servers_come_back_without_waiting_for_each_other() {
    let host = host_with(policy(9));
    let mut servers = Vec::new();
    for name in ["a", "b", "c"] {
        servers.push((name, connected(&host, name).await));
    }
    for (_, (_, plug, peer)) in &mut servers {
        let (_, gone) = crate::client::peer::pipe(1);
        drop(std::mem::replace(peer, gone));
        assert!(plug.is_idle());
    }
    // All of them are asked before any of them answers, and none later than its own wait.
    let begun = Instant::now();
    let mut peers = Vec::new();
    for (_, (_, plug, _)) in &mut servers {
        peers.push(plug.peer().await);
    }
    assert!(begun.elapsed() <= 9 * SECOND, "{:?}", begun.elapsed());
    // The last one of them answers first.
    for ((name, _), peer) in servers.iter().zip(&mut peers).rev() {
        peer.handshake(everything()).await;
        tokio::time::sleep(SECOND).await;
        assert!(!host.client(name).unwrap().is_closed(), "{name}");
    }
}

/// The wait before the next attempt ends with the runtime that it runs on: nothing promises the attempt any more.
#[test]
fn a_runtime_that_ends_takes_the_promised_attempt_along() {
    for in_the_wait in [true, false] {
        let host = host_with(policy(9));
        let mut events = host.events();
        let a = runtime();
        let (_plug, peer) = a.block_on(async {
            let (_client, plug, peer) = connected(&host, "srv").await;
            if !in_the_wait {
                return (plug, Some(peer));
            }
            drop(peer);
            while host.server("srv").unwrap().next_attempt.is_none() {
                tokio::task::yield_now().await;
            }
            (plug, None)
        });
        drop(a);
        drop(peer);
        let status = host.server("srv").unwrap();
        assert_eq!(status.next_attempt, None, "{in_the_wait}");
        if status.state == ServerState::Failed {
            assert!(status.last_error.is_some());
            let told = runtime().block_on(happened(&mut events));
            assert_eq!(told.last().map(String::as_str), Some("srv 1 failed"), "{told:?}");
        }
    }
}

/// Whoever drops the future of `connect` leaves the name behind, and no attempt to come, nor one that came meanwhile.
#[tokio::test(start_paused = true)]
async fn who_drops_the_future_of_connect_leaves_no_attempts_behind() {
    // Each attempt takes a second; the waits between them are at least four.
    for (after, dials, state_before) in
        [(SECOND, 1, "failed"), (40 * SECOND, 3, "connected"), (AGES, 3, "connected")]
    {
        let host = host_with(policy(9));
        let dialled = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dialled);
        let (connections, mut open) = tokio::sync::mpsc::unbounded_channel();
        let connector = Connector::new(move || {
            let dial = count.fetch_add(1, Ordering::Relaxed);
            let connections = connections.clone();
            async move {
                tokio::time::sleep(SECOND).await;
                if dial < 2 {
                    return Err("not there".into());
                }
                let (connection, peer) = crate::client::peer::pipe(1 << 16);
                connections.send(peer)?;
                Ok::<mcp_client::LineConnection, _>(connection)
            }
        });
        let server = tokio::spawn(async move {
            let mut peer = open.recv().await?;
            peer.handshake(everything()).await;
            while peer.try_receive().await.is_some() {}
            Some(())
        });
        let mut connecting = Box::pin(host.connect("srv", connector));
        assert!(tokio::time::timeout(SECOND / 2, &mut connecting).await.is_err());
        tokio::time::sleep(after).await;
        assert_eq!(state(&host, "srv").0, state_before, "nobody was told: {after:?}");
        drop(connecting);
        assert_eq!(state(&host, "srv"), ("disconnected", None), "{after:?}");
        tokio::time::sleep(AGES).await;
        assert_eq!(dialled.load(Ordering::Relaxed), dials, "{after:?}");
        if state_before == "connected" {
            server.await.unwrap().unwrap();
        }
    }
}

/// Who was told of the failure, or was given the connection since, wants what the host does by itself.
#[tokio::test(start_paused = true)]
async fn what_somebody_was_told_of_goes_on_when_the_others_do_not_wait() {
    for case in ["told", "given", "joined"] {
        let host = host_with(policy(9));
        let (connector, mut plug) = plug();
        let mut connecting = Box::pin(host.connect("srv", connector));
        assert!(tokio::time::timeout(SECOND / 2, &mut connecting).await.is_err());
        let again = tokio::spawn({
            let host = host.clone();
            async move { host.reconnect("srv").await }
        });
        tokio::time::sleep(SECOND / 2).await;
        if case != "told" {
            again.abort();
        }
        drop(plug.peer().await);
        tokio::time::sleep(SECOND).await;
        assert_eq!(state(&host, "srv").0, "failed", "{case}");
        let mut peer = plug.peer().await;
        let joined = (case == "joined").then(|| {
            let host = host.clone();
            tokio::spawn(async move { host.reconnect("srv").await })
        });
        tokio::time::sleep(SECOND).await;
        if case == "joined" {
            drop(connecting);
            assert_eq!(state(&host, "srv").0, "connecting", "{case}");
            peer.handshake(everything()).await;
            joined.unwrap().await.unwrap().unwrap();
        } else {
            peer.handshake(everything()).await;
            tokio::time::sleep(SECOND).await;
            if case == "given" {
                host.client("srv").unwrap();
            }
            drop(connecting);
        }
        tokio::time::sleep(SECOND).await;
        assert_eq!(state(&host, "srv").0, "connected", "{case}");
        assert!(!host.client("srv").unwrap().is_closed(), "{case}");
    }
}

/// An attempt that the host began, and that its runtime never came to, is none.
#[test]
fn a_runtime_that_ends_before_an_attempt_of_the_host_has_run_takes_it_along() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // One task at a time, so that who looks sees the attempt before it runs.
    let a = builder.enable_all().event_interval(1).build().unwrap();
    let mut policy = policy(9);
    policy.first_wait = Duration::ZERO;
    let host = host_with(policy);
    let mut events = host.events();
    let mut plug = a.block_on(async {
        let (_client, mut plug, peer) = connected(&host, "srv").await;
        drop(peer);
        while state(&host, "srv").0 != "connecting" {
            tokio::task::yield_now().await;
        }
        assert!(plug.is_idle(), "the attempt has run");
        plug
    });
    drop(a);
    assert!(plug.is_idle(), "the attempt has run");
    let status = host.server("srv").unwrap();
    assert_eq!((status.state, status.next_attempt), (ServerState::Failed, None));
    assert!(status.last_error.is_some());
    let told = runtime().block_on(happened(&mut events));
    assert_eq!(told.last().map(String::as_str), Some("srv 2 failed"), "{told:?}");
    // And whoever wants the server can have it.
    let (client, _peer) = runtime().block_on(reconnected(&host, "srv", &mut plug));
    drop(client);
}

/// The same for one that was under way.
#[test]
fn a_runtime_that_ends_in_an_attempt_of_the_host_has_it_failed() {
    let host = host_with(policy(9));
    let a = runtime();
    let (mut plug, peer) = a.block_on(async {
        tokio::time::pause();
        let (_client, mut plug, peer) = connected(&host, "srv").await;
        drop(peer);
        let peer = plug.peer().await;
        assert_eq!(state(&host, "srv").0, "connecting");
        (plug, peer)
    });
    drop((a, peer));
    let status = host.server("srv").unwrap();
    assert_eq!((status.state, status.next_attempt), (ServerState::Failed, None));
    assert!(status.last_error.is_some());
    runtime().block_on(async {
        let (client, _peer) = reconnected(&host, "srv", &mut plug).await;
        assert!(!client.is_closed());
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// In an attempt that the host makes by itself, and in the application's own; in the function that dials, and in the one that sets up.
#[tokio::test(start_paused = true)]
async fn an_attempt_in_which_the_application_panics_has_failed() {
    for in_configure in [true, false] {
        let host = host_with(policy(2));
        let mut events = host.events();
        let (connector, _plug) = plug();
        let connector = if in_configure {
            connector.configure(|_| panic!("on purpose"))
        } else {
            Connector::new(|| -> std::future::Ready<Result<HttpServer, _>> { panic!("on purpose") })
        };
        let error = host.connect("srv", connector).await.unwrap_err();
        assert_eq!((kind(&error), error.server_name()), ("transport", Some("srv")));
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{error} {source}").contains("panicked"), "{error}: {source}");
        tokio::time::sleep(AGES).await;
        let row = ["srv 1 connecting", "srv 1 failed, to be tried again", "srv 2 connecting"];
        let rest = ["srv 2 failed, to be tried again", "srv 3 connecting", "srv 3 failed"];
        assert_eq!(happened(&mut events).await, [row, rest].concat());
        assert_eq!(state(&host, "srv"), ("failed", Some("transport")));
    }
}

/// A server that was disconnected on purpose has no error, whatever it failed with before.
#[tokio::test(start_paused = true)]
async fn disconnecting_a_failed_server_clears_its_error() {
    let host = host_with(policy(9));
    let (_client, _plug, peer) = connected(&host, "srv").await;
    let mut events = host.events();
    drop(peer);
    assert_eq!(next_state(&mut events).await.0, ServerState::Failed);
    assert_eq!(state(&host, "srv"), ("failed", Some("closed")));
    host.disconnect("srv").await.unwrap();
    assert_eq!(state(&host, "srv"), ("disconnected", None));
    let (state, error, _) = next_state(&mut events).await;
    assert!(state == ServerState::Disconnected && error.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_not_there_is_not_tried_again() {
    let host = host_with(policy(9));
    for program in ["no-such-program-anywhere", "/no/such/program", "/"] {
        let server = StdioServer::new(program);
        let _error = host.connect("srv", server).await.unwrap_err();
        assert_eq!(state_of(&host), ("failed", None), "{program}");
    }
}
