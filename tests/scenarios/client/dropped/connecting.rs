//! What connects and what is connected by name: a handshake that is given up ends all that was begun.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::host::{Connector, Host};
use mcp_client::model::{LoggingLevel, ProtocolVersion, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, Mode};
use tokio::runtime::Handle;

use super::server::{BEAT, Wire, serve};
use super::{At, MANY, PollLimit};
use crate::client::peer::{builder, pipe};
use crate::http::script::within;
use crate::stdio::support::{children, is_own_process, sh};

async fn settle() {
    tokio::time::sleep(100 * BEAT).await;
}

fn tasks_alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Runs a scenario at every point in virtual time, until it says that its future came to its end. How many points those were.
fn at_every_point<F: Future<Output = bool>>(name: &str, scenario: impl Fn(usize, At) -> F) -> usize {
    let mut points = 0;
    for at in [At::Poll, At::Wake] {
        for polls in usize::from(at == At::Wake)..=MANY {
            assert!(polls < MANY, "{name}: it is polled again and again");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            let running = scenario(polls, at);
            let done = runtime
                .block_on(async { tokio::time::timeout(Duration::from_secs(3600), running).await })
                .unwrap_or_else(|_| panic!("{name}, {polls} polls, at {at:?}: it hangs"));
            points += 1;
            if done {
                break;
            }
        }
    }
    points
}

fn modes() -> [(&'static str, Mode); 3] {
    [("legacy", Mode::Legacy), ("modern", Mode::Pinned(ProtocolVersion::V2026_07_28)), ("auto", Mode::Auto)]
}

/// auth:G-13, protocol:C-01: `initialize` is never cancelled; what is given up with it is the connection.
#[test]
fn nothing_is_left_of_a_connect_wherever_it_is_dropped() {
    let mut points = 0;
    for (name, mode) in modes() {
        points += at_every_point(name, |polls, at| {
            let mode = mode.clone();
            async move {
                let place = format!("{name}, {polls} polls, at {at:?}");
                let (connection, peer) = pipe(1 << 20);
                let wire = Wire::default();
                tokio::spawn(serve(peer, wire.clone()));
                let connecting = builder().mode(mode).connect(connection);
                let client = tokio::spawn(PollLimit::new(connecting, polls, at)).await.unwrap();
                settle().await;
                let done = match client {
                    Some(client) => {
                        client.unwrap().close().await;
                        true
                    }
                    None => false,
                };
                settle().await;
                assert!(wire.has_ended(), "{place}: the line is open");
                assert_eq!(tasks_alive(), 0, "{place}: tasks are left");
                for (_, message) in wire.received() {
                    assert_ne!(message["method"], "notifications/cancelled", "{place}");
                }
                done
            }
        });
    }
    assert!(points >= 12, "only {points} points");
}

/// What is done with a host, to its end.
type Act = fn(Host) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Servers that the host connects to, as often as it likes.
fn connector(wires: &Arc<Mutex<Vec<Wire>>>) -> Connector {
    let wires = Arc::clone(wires);
    Connector::new(move || {
        let (connection, peer) = pipe(1 << 20);
        let wire = Wire::default();
        wires.lock().unwrap().push(wire.clone());
        tokio::spawn(serve(peer, wire));
        async {
            tokio::time::sleep(BEAT).await;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(connection)
        }
    })
}

/// auth:G-13: a host goes on with what it was asked to do, whoever waits for that; and then nothing of it is left.
#[test]
fn a_host_is_as_good_as_before_wherever_what_it_does_is_dropped() {
    let acts: [(&str, Act); 8] = [
        ("reconnect", |host| Box::pin(async move { drop(host.reconnect("a").await.unwrap()) })),
        ("disconnect", |host| {
            Box::pin(async move { assert!(host.disconnect("a").await.unwrap().process.is_some()) })
        }),
        ("remove", |host| {
            Box::pin(async move { assert!(host.remove("a").await.unwrap().process.is_some()) })
        }),
        ("close", |host| Box::pin(async move { drop(host.close().await) })),
        ("lists", |host| Box::pin(async move { assert_eq!(host.list_tools().await.len(), 2) })),
        ("prompts", |host| Box::pin(async move { assert_eq!(host.list_prompts().await.len(), 2) })),
        ("a level", |host| {
            Box::pin(async move { host.set_logging_level("a", LoggingLevel::Info).await.unwrap() })
        }),
        ("a subscription", |host| {
            Box::pin(async move {
                let mut wanted = SubscriptionFilter::new();
                wanted.resource_subscriptions = Some(vec!["file:///a".to_owned()]);
                drop(host.set_subscription("a", wanted).await.unwrap());
            })
        }),
    ];
    let mut points = at_every_point("connect", |polls, at| async move {
        let wires = Arc::default();
        let host = Host::new(builder());
        let connecting = {
            let (host, connector) = (host.clone(), connector(&wires));
            async move { host.connect("a", connector).await }
        };
        let done = tokio::spawn(PollLimit::new(connecting, polls, at)).await.unwrap().is_some();
        settle().await;
        end(host, &wires, &format!("connect, {polls} polls, at {at:?}")).await;
        done
    });
    for (name, act) in acts {
        points += at_every_point(name, |polls, at| async move {
            let place = format!("{name}, {polls} polls, at {at:?}");
            let wires = Arc::default();
            let host = Host::new(builder());
            for server in ["a", "b"] {
                host.connect(server, connector(&wires)).await.unwrap();
            }
            settle().await;
            let done = tokio::spawn(PollLimit::new(act(host.clone()), polls, at)).await.unwrap().is_some();
            settle().await;
            if name != "close" {
                let other = host.client("b").unwrap();
                other.ping().await.unwrap_or_else(|error| panic!("{place}: {error}"));
            }
            end(host, &wires, &place).await;
            done
        });
    }
    assert!(points >= 40, "only {points} points");
}

/// Closes the host and looks at what is left.
async fn end(host: Host, wires: &Mutex<Vec<Wire>>, place: &str) {
    host.close().await;
    drop(host);
    settle().await;
    assert_eq!(tasks_alive(), 0, "{place}: tasks are left");
    assert!(wires.lock().unwrap().iter().all(Wire::has_ended), "{place}: a line is open");
}

/// A server for the shell.
const SCRIPT: &str = r#"
    while read line; do
        id=${line##*\"id\":}; id=${id%%[,\}]*}
        case "$line" in
            *'"server/discover"'*)
                echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
            *'"initialize"'*)
                echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}' ;;
            *'"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
        esac
    done"#;

/// The same, until it is asked what it does not know: then it ends, and is started once more.
const ENDS_ON_THE_PROBE: &str = r#"
    while read line; do
        id=${line##*\"id\":}; id=${id%%[,\}]*}
        case "$line" in
            *'"server/discover"'*) exit 1 ;;
            *'"initialize"'*)
                echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}' ;;
            *'"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
        esac
    done"#;

/// One that says nothing and does not heed the end of its input.
const DEAF: &str = "trap '' TERM; exec sleep 100000";

/// auth:G-13: wherever connecting to a program, calling it or closing it is given up, no process is left.
#[test]
fn no_process_is_left_wherever_a_future_is_dropped() {
    if !is_own_process("client::dropped::connecting::no_process_is_left_wherever_a_future_is_dropped") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut points = 0;
        for (mode, script) in [
            (Mode::Legacy, SCRIPT),
            (Mode::Auto, SCRIPT),
            (Mode::Auto, ENDS_ON_THE_PROBE),
            (Mode::Legacy, DEAF),
        ] {
            for at in [At::Poll, At::Wake] {
                for polls in usize::from(at == At::Wake)..=MANY {
                    let builder = builder().mode(mode.clone());
                    let using = use_program(builder, script);
                    // A program that says nothing wakes nobody.
                    let limited = PollLimit::new(using, polls, if script == DEAF { At::Poll } else { at });
                    let done = within(tokio::spawn(limited)).await.unwrap().is_some();
                    all_gone().await;
                    points += 1;
                    if done || (script == DEAF && polls == 1) {
                        break;
                    }
                    assert!(polls < MANY, "it is polled again and again");
                }
            }
        }
        assert!(points >= 20, "only {points} points");
    });
}

async fn use_program(builder: ClientBuilder, script: &str) {
    let mut waits = mcp_client::transport::stdio::CloseWaits::default();
    (waits.exit, waits.terminate) = (Duration::from_millis(50), Duration::from_millis(50));
    let client: Client = builder.connect(sh(script).close_waits(waits)).await.unwrap();
    client.ping().await.unwrap();
    client.close().await;
}

/// Waits until there is no child of this process and no zombie, and no task either.
async fn all_gone() {
    within(async {
        while !children().is_empty() || tasks_alive() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
