//! What a host says of a server: how often it was connected to, and why it is given up.

use std::error::Error as _;

use mcp_client::host::{Connector, GiveUpReason, Host, HostEvent, ReconnectPolicy, ServerState};
use mcp_client::{HttpServer, StdioServer};
use tokio::time::Instant;

use super::support::*;

fn policy(max_attempts: u32) -> ReconnectPolicy {
    let mut policy = ReconnectPolicy::default();
    policy.max_attempts = max_attempts;
    policy.first_wait = 8 * SECOND;
    policy.stable_after = 60 * SECOND;
    policy
}

/// State, attempts, connections, attempts in a row.
fn numbers(host: &Host) -> (&'static str, u64, u64, u32) {
    let status = host.server("srv").unwrap();
    (status.state.as_str(), status.attempts, status.connections, status.consecutive_attempts)
}

fn given_up(host: &Host) -> Option<GiveUpReason> {
    let status = host.server("srv").unwrap();
    let given_up = status.given_up?;
    assert_eq!(status.state, ServerState::Failed);
    assert!(status.next_attempt.is_none());
    // The whole story, for whoever goes through the sources.
    let source = given_up.source().unwrap().to_string();
    assert_eq!(source, status.last_error.unwrap().to_string());
    assert_eq!(given_up.to_string(), format!("the server is given up: {}", given_up.reason));
    Some(given_up.reason)
}

#[tokio::test(start_paused = true)]
async fn attempts_and_connections_of_a_server_are_counted() {
    let host = host_with(policy(2));
    let (_client, mut plug, peer) = connected(&host, "srv").await;
    assert_eq!(numbers(&host), ("connected", 1, 1, 0));

    // It goes, and comes back at once: the row goes on until a connection lasted.
    drop(peer);
    tokio::time::sleep(SECOND).await;
    assert_eq!((numbers(&host), given_up(&host)), (("failed", 1, 1, 1), None));
    let mut peer = plug.peer().await;
    assert_eq!(numbers(&host), ("connecting", 2, 1, 1));
    peer.handshake(everything()).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(numbers(&host), ("connected", 2, 2, 1));
    tokio::time::sleep(60 * SECOND).await;
    drop(peer);
    tokio::time::sleep(SECOND).await;
    assert_eq!(numbers(&host), ("failed", 2, 2, 1), "a new row");

    // Nobody is there any more.
    for attempts in [3, 4] {
        drop(plug.peer().await);
        assert_eq!(numbers(&host), ("connecting", attempts, 2, u32::try_from(attempts).unwrap() - 2));
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(numbers(&host), ("failed", 4, 2, 2));
    assert_eq!(given_up(&host).unwrap().to_string(), "the limit of 2 consecutive attempts was reached");

    // The application's own attempt begins anew, and counts with the others.
    let (_client, peer) = reconnected(&host, "srv", &mut plug).await;
    assert_eq!((numbers(&host), given_up(&host)), (("connected", 5, 3, 0), None));
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn each_reason_to_give_a_server_up_is_told_with_its_state() {
    let refuse = || Connector::new(|| std::future::ready(Err::<HttpServer, _>("not there".into())));
    for case in ["no policy", "too many", "none allowed", "lasts", "closed here", "beyond the clock"] {
        let host = match case {
            "no policy" => host(),
            "too many" => host_with(policy(1)),
            "none allowed" => host_with(ReconnectPolicy::off()),
            "beyond the clock" => {
                let mut policy = policy(1);
                (policy.first_wait, policy.longest_wait) =
                    (std::time::Duration::MAX, std::time::Duration::MAX);
                host_with(policy)
            }
            _ => host_with(policy(9)),
        };
        let mut events = host.events();
        match case {
            "lasts" => drop(host.connect("srv", StdioServer::new("/no/such/program")).await.unwrap_err()),
            "closed here" => {
                let (client, _plug, _peer) = connected(&host, "srv").await;
                client.close().await;
            }
            _ => drop(host.connect("srv", refuse()).await.unwrap_err()),
        }
        let begun = Instant::now();
        let told = loop {
            match events.next().await.unwrap() {
                HostEvent::State { state: ServerState::Failed, next_attempt: None, given_up, .. } => {
                    break given_up;
                }
                HostEvent::State { given_up, .. } => assert_eq!(given_up, None, "{case}"),
                _ => {}
            }
        };
        assert_eq!((told, told.is_some()), (given_up(&host), true), "{case}");
        let shown = told.unwrap().to_string();
        let expected = match case {
            "no policy" | "none allowed" | "beyond the clock" => {
                "the host is not configured to reconnect to it"
            }
            "too many" => "the limit of 1 consecutive attempts was reached",
            "lasts" => "another attempt would fail with the same error",
            _ => "the application ended the connection",
        };
        assert_eq!(shown, expected, "{case}");
        assert!(case == "too many" || begun.elapsed() < SECOND, "{case}: at once");
        // Whoever disconnects it wants no more than that.
        host.disconnect("srv").await.unwrap();
        assert_eq!(given_up(&host), None, "{case}");
    }
}

/// Whoever needs it is told why there is no connection, how often it was tried, and what comes next.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_server_that_is_not_connected_tells_all_that_the_host_knows() {
    let host = host_with(policy(1));
    let refuse = Connector::new(|| async {
        tokio::time::sleep(SECOND).await;
        Err::<HttpServer, _>("not there".into())
    });
    let cause = "the connector of the application failed; cause: not there";
    let first = host.connect("srv", refuse).await.unwrap_err();
    assert_eq!(first.report().to_string(), format!("server \"srv\": {cause}"));

    let waits = host.client("srv").unwrap_err();
    let wait = host.server("srv").unwrap().next_attempt.unwrap() - Instant::now().into_std();
    let shown = format!(
        "server \"srv\": not connected (attempts so far: 1; the next in {:.1} s)",
        wait.as_secs_f64()
    );
    assert_eq!(waits.to_string(), shown);
    assert_eq!(waits.report().to_string(), format!("{shown}; cause: {cause}"));
    let status = waits.server_status().unwrap();
    assert_eq!(
        (status.attempts, status.state, status.next_attempt.is_some()),
        (1, ServerState::Failed, true)
    );

    // In the middle of the attempt it is still known why it is made.
    while host.server("srv").unwrap().state != ServerState::Connecting {
        tokio::time::sleep(SECOND / 4).await;
    }
    assert_eq!(
        host.server("srv").unwrap().last_error.unwrap().report().to_string(),
        first.report().to_string()
    );
    let under_way = host.client("srv").unwrap_err();
    let shown = "server \"srv\": not connected: attempt 2 is under way";
    assert_eq!(under_way.report().to_string(), format!("{shown}; cause: {cause}"));

    tokio::time::sleep(2 * SECOND).await;
    let given_up = host.client("srv").unwrap_err();
    let shown = "server \"srv\": not connected (attempts so far: 2; no further one: the limit of 1 consecutive attempts was reached)";
    assert_eq!(given_up.report().to_string(), format!("{shown}; cause: {cause}"));
    assert_eq!(given_up.kind().as_str(), "closed");
    assert!(given_up.server_status().unwrap().given_up.is_some());
}

#[test]
fn a_server_whose_runtime_ended_in_a_wait_is_given_up_for_that() {
    let host = host_with(policy(9));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refuse = Connector::new(|| std::future::ready(Err::<HttpServer, _>("not there".into())));
    let _error = runtime.block_on(host.connect("srv", refuse)).unwrap_err();
    assert_eq!(given_up(&host), None);
    drop(runtime);
    assert_eq!(given_up(&host), Some(GiveUpReason::RuntimeEnded));
    assert_eq!(numbers(&host), ("failed", 1, 0, 1));
}

/// Whoever would rather wait than fail starts nothing and closes nothing by that.
#[tokio::test(start_paused = true)]
async fn a_caller_waits_for_the_connection_that_the_host_makes_again() {
    let host = host_with(policy(2));
    let (client, mut plug, peer) = connected(&host, "srv").await;
    assert!(!host.connected("srv", SECOND).await.unwrap().is_closed());
    drop(peer);
    while !client.is_closed() {
        tokio::task::yield_now().await;
    }

    let early = host.connected("srv", SECOND).await.unwrap_err();
    assert!(early.server_status().unwrap().next_attempt.is_some(), "{early}");
    let (one, other, _peer) =
        tokio::join!(host.connected("srv", 60 * SECOND), host.connected("srv", 60 * SECOND), plug.ready(),);
    assert!(!one.unwrap().is_closed() && !other.unwrap().is_closed());
    assert_eq!(numbers(&host), ("connected", 2, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_connection_that_is_not_going_to_be() {
    let host = host_with(policy(1));
    let check = async |name: &str, expected: (&str, Option<ServerState>)| {
        let begun = Instant::now();
        let error = host.connected(name, 60 * SECOND).await.unwrap_err();
        assert_eq!((error.kind().as_str(), error.server_status().map(|status| status.state)), expected);
        assert!(begun.elapsed() < SECOND, "{error}");
    };
    check("srv", ("misuse", None)).await;
    let (_client, _plug, peer) = connected(&host, "srv").await;
    drop(peer);
    host.disconnect("srv").await.unwrap();
    check("srv", ("closed", Some(ServerState::Disconnected))).await;
    let missing = Connector::new(|| async { Ok(StdioServer::new("/no/such/program")) });
    host.connect("missing", missing).await.unwrap_err();
    check("missing", ("closed", Some(ServerState::Failed))).await;

    // One that waits already is told too.
    let (connector, _plug) = plug();
    let (attempt, (), ()) = tokio::join!(
        host.connect("slow", connector),
        check("slow", ("closed", Some(ServerState::Disconnected))),
        async {
            tokio::time::sleep(SECOND / 2).await;
            host.disconnect("slow").await.ok();
        }
    );
    attempt.unwrap_err();
}
