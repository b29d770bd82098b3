//! Closing, dropping, and servers that do not want to end.

use std::time::Duration;

use mcp_transport::stdio::{CloseStage, CloseWaits};

use super::support::{
    SOON, Session, deaf, gone, is_own_process, open_files, peer, sh, state_of, stubborn, within,
};

/// A server that survives the end of its input and SIGTERM, and whose child does too.
const STUBBORN: &str = "trap '' TERM; \"$PEER\" --deaf";

fn deaf_to_everything() -> mcp_transport::stdio::StdioServer {
    sh(STUBBORN).env("PEER", peer().program()).close_waits(stubborn())
}

/// seed:S-99c
#[tokio::test]
async fn e30_a_server_that_exits_at_the_end_of_its_input_sees_no_signal() {
    // seed:E30, protocol:T-13
    let script = "trap 'echo signalled >&2; exit 1' TERM; cat >/dev/null; echo finished >&2";
    let mut session = Session::start(&sh(script));
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::EndedOnInputEnd);
    assert_eq!(report.exit().and_then(|exit| exit.code()), Some(0));
    assert_eq!(report.unwritten_bytes(), 0);
    let error = session.end().await;
    // An end that was asked for needs no last words to explain it.
    assert_eq!(error.stderr_tail(), None);
    assert!(error.to_string().contains("closed by this client"), "{error}");
}

/// seed:S-99
#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_terminated() {
    // protocol:T-13
    let mut session = Session::start(&peer().arg("--deaf").close_waits(deaf()));
    let pid = session.pid("pid").await;
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::Terminated);
    assert_eq!(report.exit().and_then(|exit| exit.signal()), Some(15));
    assert_eq!(state_of(pid), None, "it is collected when the report is there");
}

#[tokio::test]
async fn fr_013_a_server_deaf_to_everything_is_killed_in_bounded_time() {
    // field:FR-013, protocol:T-13, seed:E29
    let mut session = Session::start(&deaf_to_everything());
    let inner = session.pid("pid").await;
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::Killed);
    assert_eq!(report.exit().and_then(|exit| exit.signal()), Some(9));
    assert!(report.elapsed() >= 2 * SOON, "both waits were given");
    gone(inner).await;
}

#[tokio::test]
async fn fr_013_dropping_both_halves_ends_the_server_too() {
    // field:FR-013
    let mut session = Session::start(&deaf_to_everything());
    let inner = session.pid("pid").await;
    drop(session);
    gone(inner).await;
}

#[tokio::test]
async fn dropping_either_half_closes() {
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    drop(session.sender.clone());
    assert_eq!(session.ask("ping").await, "ping", "one of two senders");
    let (sender, receiver) = (session.sender, session.receiver);
    drop(sender);
    gone(pid).await;
    drop(receiver);

    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    drop(session.receiver);
    gone(pid).await;
    assert_eq!(within(session.sender.close()).await.stage(), CloseStage::EndedOnInputEnd);
}

#[tokio::test]
async fn concurrent_and_later_closes_share_one_result() {
    let mut session = Session::start(&peer());
    session.ask("ping").await;
    let (a, b, c) = (session.sender.clone(), session.sender.clone(), session.sender.clone());
    let (first, second) = within(async { tokio::join!(a.close(), b.close()) }).await;
    assert_eq!(first, second);
    assert_eq!(within(c.close()).await, first);
    assert_eq!(session.end().await.exit(), first.exit());
}

#[tokio::test]
async fn a_close_that_is_dropped_goes_on() {
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    let closing = tokio::time::timeout(Duration::ZERO, session.sender.close()).await;
    assert!(closing.is_err() || state_of(pid).is_none());
    gone(pid).await;
}

#[tokio::test]
async fn calls_after_close_fail_at_once_and_were_not_sent() {
    let mut session = Session::start(&peer().arg("--deaf").close_waits(deaf()));
    session.ask("ping").await;
    let sender = session.sender.clone();
    let closing = tokio::spawn(async move { sender.close().await });
    let error = loop {
        match session.send("ping").await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(!error.outcome_unknown());
    assert_eq!(error.exit(), None, "the server still lives");
    within(closing).await.unwrap();
}

#[tokio::test]
async fn grandchildren_that_hold_the_pipes_do_not_hold_up_close() {
    // seed:E29; seed section 3.28
    let mut session = Session::start(&peer());
    let child = session.pid("child").await;
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::EndedOnInputEnd);
    gone(child).await;
}

#[tokio::test]
async fn output_is_drained_while_closing_without_receiver() {
    // protocol:T-13: a server stuck in a write must be able to come to the end of its input.
    let mut session = Session::start(&peer());
    session.send("noise/20000000").await.unwrap();
    drop(session.receiver);
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::EndedOnInputEnd);
}

#[tokio::test]
async fn output_that_nobody_reads_does_not_hold_up_close() {
    let mut session = Session::start(&peer().close_waits(deaf()));
    session.send("noise/20000000").await.unwrap();
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::Terminated);
}

#[test]
fn the_end_of_the_runtime_ends_the_whole_tree() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (session, pids) = runtime.block_on(async {
        let mut session = Session::start(&sh(STUBBORN).env("PEER", peer().program()));
        let pids = [session.pid("pid").await, session.pid("child").await];
        (session, pids)
    });
    runtime.shutdown_background();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        for pid in pids {
            gone(pid).await;
        }
        // Whoever still waits is told, from whichever runtime.
        assert_eq!(within(session.sender.close()).await.stage(), CloseStage::Abandoned);
        assert!(within(session.sender.send("{}".into())).await.is_err());
    });
}

#[test]
fn fr_020_twenty_failed_handshakes_leave_nothing_behind() {
    // field:FR-020, seed:B31
    const NAME: &str = "stdio::shutdown::fr_020_twenty_failed_handshakes_leave_nothing_behind";
    if !is_own_process(NAME) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        async fn handshake(round: usize) -> u32 {
            let mut session = Session::start(&peer().arg("--deaf").close_waits(deaf()));
            let pid = session.pid("pid").await;
            let id = session.send("mute").await.unwrap();
            let waited = tokio::time::timeout(Duration::from_millis(10), session.answer(&id)).await;
            assert!(waited.is_err());
            // Every other one is only dropped.
            if round & 1 == 0 {
                within(session.sender.close()).await;
            }
            pid
        }
        gone(handshake(0).await).await;
        let before = open_files();
        for round in 0..20 {
            let pid = handshake(round).await;
            gone(pid).await;
        }
        within(async {
            while open_files() > before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    });
}

#[test]
fn the_bound_on_closing_is_the_documented_one() {
    // contracts: close has a bound of its own of 10 s
    assert_eq!(CloseWaits::default().total(), Duration::from_millis(6750));
}
