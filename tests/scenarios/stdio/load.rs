//! Many calls, many starts, full pipes.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use mcp_jsonrpc::{Incoming, Message, RequestId};
use mcp_transport::{
    Error, Received,
    stdio::{CloseStage, LineReceiver},
};
use tokio::sync::oneshot;

use super::support::{
    SOON, Session, children, deaf, figure, gone, is_own_process, open_files, peer, request, sh, signal,
    state_becomes, within,
};

type Pending = Arc<Mutex<HashMap<RequestId, oneshot::Sender<String>>>>;

/// Hands each answer to the call that waits for it.
async fn distribute(mut receiver: LineReceiver, pending: Pending) -> Error {
    loop {
        match receiver.recv().await {
            Ok(Received::Message(Incoming::Single(Message::Response(response)))) => {
                let waiting =
                    pending.lock().unwrap().remove(&response.id).expect("each call is answered once");
                let _ = waiting.send(response.result.as_str().to_owned());
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error,
        }
    }
}

async fn thousand_calls() {
    let (sender, receiver) = peer().spawn().unwrap().split();
    let pending = Pending::default();
    let reader = tokio::spawn(distribute(receiver, Arc::clone(&pending)));
    let calls = (0..1000).map(|number| {
        let (sender, pending) = (sender.clone(), Arc::clone(&pending));
        tokio::spawn(async move {
            let id = RequestId::Integer(number);
            let (answer, answered) = oneshot::channel();
            pending.lock().unwrap().insert(id.clone(), answer);
            let message = request(&id, &format!("size/{}", number * 7));
            sender.send(message).await.unwrap();
            let text = answered.await.unwrap();
            assert_eq!(text.len(), usize::try_from(number).unwrap() * 7 + 2);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        within(call).await.unwrap();
    }
    assert_eq!(within(sender.close()).await.stage(), CloseStage::EndedOnInputEnd);
    within(reader).await.unwrap();
}

/// protocol:T-01, protocol:L-23
#[tokio::test]
async fn a_thousand_concurrent_calls_over_one_child() {
    thousand_calls().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_calls_from_several_threads() {
    thousand_calls().await;
}

#[test]
fn a_hundred_starts_and_ends_leave_no_process_and_no_file() {
    const NAME: &str = "stdio::load::a_hundred_starts_and_ends_leave_no_process_and_no_file";
    if !is_own_process(NAME) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        async fn cycle(round: usize) -> [u32; 2] {
            let mut session = Session::start(&peer());
            let pids = [session.pid("pid").await, session.pid("child").await];
            match round % 4 {
                0 => drop(within(session.sender.close()).await),
                1 => {
                    signal("-KILL", pids[0]);
                    session.end().await;
                }
                2 => {
                    session.send("exit/1").await.unwrap();
                }
                _ => {}
            }
            pids
        }
        for pid in cycle(0).await {
            gone(pid).await;
        }
        let before = (open_files(), children().len());
        let mut pids = HashSet::new();
        for round in 0..100 {
            pids.extend(cycle(round).await);
        }
        for pid in &pids {
            gone(*pid).await;
        }
        within(async {
            while (open_files(), children().len()) != before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        figure(&format!(
            "100 cycles, {} processes, files and children {before:?} before and after",
            pids.len()
        ));
    });
}

#[tokio::test]
async fn a_full_pipe_holds_up_its_senders_only_until_their_deadlines() {
    let mut session = Session::start(&peer());
    let pid = session.pid("pid").await;
    signal("-STOP", pid);
    state_becomes(pid, 'T').await;

    // 200 calls of 60 KB: far more than the pipe and the queue hold.
    let body = "z".repeat(60_000);
    let calls = (0..200).map(|number| {
        let sender = session.sender.clone();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping","params":"{body}"}}"#, 1000 + number);
        tokio::spawn(async move {
            let mut sending = Box::pin(sender.send(Bytes::from(text)));
            let waited = tokio::time::timeout(Duration::from_millis(100), &mut sending).await;
            (waited.is_ok(), sending.has_left())
        })
    });
    let mut written = 0;
    let mut begun = 0;
    for call in calls.collect::<Vec<_>>() {
        let (done, left) = within(call).await.unwrap();
        written += usize::from(done);
        begun += usize::from(left && !done);
    }
    assert!(written <= 2, "{written}");
    assert!(begun <= 1, "{begun}");

    // It goes on: whatever was queued arrives whole and in order, then what comes after.
    signal("-CONT", pid);
    let last = session.ask("last-of-all").await;
    assert_eq!(last, "last-of-all");
    let ids: Vec<u32> = session.strays.iter().map(|id| id.parse().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    let queued = 4 * 1024 * 1024 / 60_064;
    assert!((queued - 1..=queued + 2).contains(&ids.len()), "{} of about {queued}", ids.len());
    assert_eq!(session.noise, [""; 0]);
}

#[tokio::test]
async fn a_server_that_never_reads_does_not_block_the_rest_of_the_program() {
    let mut waits = deaf();
    waits.flush = SOON;
    let session = Session::start(&sh("exec sleep 100000").close_waits(waits));
    let big = Bytes::from(vec![b'x'; 3_000_000]);
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let (sender, big) = (session.sender.clone(), big.clone());
            tokio::spawn(async move { sender.send(big).await })
        })
        .collect();
    // One thread: it could not come here if a sender blocked it.
    let mut other = Session::start(&peer());
    assert_eq!(other.ask("ping").await, "ping");
    let report = within(session.sender.close()).await;
    assert_eq!(report.stage(), CloseStage::Terminated);
    assert!(report.unwritten_bytes() > 2_900_000, "{report:?}");
    for sender in senders {
        within(sender).await.unwrap().unwrap_err();
    }
}
