//! Servers that die, close a pipe or leave others behind.

use std::time::Duration;

use mcp_transport::{ErrorKind, stdio::CloseStage};

use super::support::{
    SOON, Session, deaf, gone, patient, peer, sh, signal, state_becomes, state_of, stubborn, within,
};

#[tokio::test]
async fn an_exit_with_calls_pending_fails_them_with_code_and_tail() {
    // seed:B29, protocol:T-14; seed section 3.16, 1
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    let pending = session.send("mute").await.unwrap();
    session.send("stderr/100").await.unwrap();
    session.send("exit/9").await.unwrap();
    let error = within(session.answer(&pending)).await.unwrap_err();
    assert_eq!(error.exit().and_then(|exit| exit.code()), Some(9));
    assert!(error.stderr_tail().unwrap().contains("a line of log output"));
    assert!(session.send("late").await.unwrap_err().exit().is_some());
    gone(pid).await;
}

#[tokio::test]
async fn a_death_by_signal_names_the_signal() {
    let mut session = Session::start(&peer());
    session.send("abort").await.unwrap();
    let error = session.end().await;
    assert_eq!(error.exit().and_then(|exit| exit.signal()), Some(6));
    assert_eq!(
        error.to_string().split(';').next(),
        Some("the server's process was ended by signal 6 (SIGABRT)")
    );
}

#[tokio::test]
async fn fr_024_the_death_of_an_idle_server_is_told_without_a_call() {
    // field:FR-024
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    signal("-KILL", pid);
    let error = session.end().await;
    assert_eq!(error.exit().and_then(|exit| exit.signal()), Some(9));
    assert!(!error.outcome_unknown());
}

#[tokio::test]
async fn fr_024_a_stopped_server_is_silent_and_can_be_closed() {
    // field:FR-024
    let mut session = Session::start(&peer().close_waits(stubborn()));
    let pid = session.pid("pid").await;
    signal("-STOP", pid);
    state_becomes(pid, 'T').await;
    let id = session.send("ping").await.unwrap();
    let answer = tokio::time::timeout(Duration::from_millis(100), session.answer(&id)).await;
    assert!(answer.is_err(), "a stopped process answers nothing");
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::Killed);
    gone(pid).await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_over_and_harms_nobody() {
    // seed:B30; seed section 3.21, 1 to 3
    let mut session =
        Session::start(&sh("exec 0<&-; echo closed >&2; exec sleep 100000").close_waits(deaf()));
    let error = loop {
        // The pipe breaks when the shell comes to it.
        if let Err(error) = session.send("ping").await {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(session.end().await.kind(), ErrorKind::Closed);
    assert_eq!(within(session.sender.close()).await.stage(), CloseStage::Terminated);
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_over_though_it_lives_on() {
    // protocol:T-14
    let mut session = Session::start(&sh("echo $$ >&2; exec 1>&-; exec sleep 100000").close_waits(deaf()));
    let error = session.end().await;
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().starts_with("the server closed its output"), "{error}");
    let pid = error.stderr_tail().unwrap().trim().parse().unwrap();
    within(session.sender.close()).await;
    gone(pid).await;
}

#[tokio::test]
async fn e29_what_a_dead_server_left_in_its_group_is_killed() {
    // seed:E29, auth:SEC-08
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    let child = session.pid("child").await;
    session.send("exit/1").await.unwrap();
    let error = session.end().await;
    assert_eq!(error.exit().and_then(|exit| exit.code()), Some(1));
    gone(pid).await;
    gone(child).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_up_the_end() {
    let mut waits = patient();
    waits.drain = SOON;
    let mut session = Session::start(&peer().close_waits(waits));
    let runaway = session.pid("runaway").await;
    session.send("exit/1").await.unwrap();
    // It holds all three pipes, and is beyond reach.
    let error = session.end().await;
    assert_eq!(error.exit().and_then(|exit| exit.code()), Some(1));
    assert!(state_of(runaway).is_some());
    signal("-KILL", runaway);
}

#[tokio::test]
async fn whether_a_message_arrived_is_told_truly() {
    let mut session = Session::start(&peer());
    let message = || bytes::Bytes::from(vec![b'x'; 1024 * 1024]);
    // A stopped process reads nothing: the pipe takes a part of the first message and nothing of the second.
    let pid = session.pid("pid").await;
    signal("-STOP", pid);
    state_becomes(pid, 'T').await;
    let mut first = Box::pin(session.sender.send(message()));
    let mut second = Box::pin(session.sender.send(message()));
    assert!(!first.has_left(), "it is not even queued");
    within(async {
        while !first.has_left() {
            let both = async { tokio::join!(&mut first, &mut second) };
            assert!(tokio::time::timeout(Duration::from_millis(5), both).await.is_err());
        }
    })
    .await;
    assert!(!second.has_left());
    signal("-KILL", pid);
    let (first, second) = within(async { tokio::join!(first, second) }).await;
    let (first, second) = (first.unwrap_err(), second.unwrap_err());
    assert!(first.outcome_unknown());
    assert!(!second.outcome_unknown());
    assert_eq!(first.exit().and_then(|exit| exit.signal()), Some(9), "{first:?}");
}

#[tokio::test]
async fn fr_006_standard_error_is_always_drained() {
    // field:FR-006, seed:E34, auth:LIM-16
    let mut session = Session::start(&peer());
    for _ in 0..3 {
        assert_eq!(session.ask("stderr/262144").await, "after the log");
    }
    assert_eq!(session.ask("stderr/2097152").await, "after the log");
    session.send("exit/0").await.unwrap();
    let error = session.end().await;
    assert_eq!(error.stderr_tail().unwrap().len(), 64 * 1024);
    assert!(error.to_string().len() < 4096);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_written_before_the_exit_is_received() {
    // protocol:T-14: answers that were on their way are not lost with the process.
    for _ in 0..20 {
        let mut session =
            Session::start(&sh("seq -f '{\"jsonrpc\":\"2.0\",\"method\":\"m%g\"}' 3000; exit 4"));
        let error = session.end().await;
        assert_eq!(error.exit().and_then(|exit| exit.code()), Some(4));
        assert_eq!(session.receiver.counts().messages, 3000);
    }
}
