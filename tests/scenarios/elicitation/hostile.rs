//! What hosts, stores and servers should not do, and what must hold all the same.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use mcp_client::{
    Desk, DeskConfig, ElicitAction, ElicitReply, ElicitRequest, ElicitationContext, ElicitationHandler,
    ElicitationLimits, Elicitations, End, Inbox, InboxAnswer, InboxEntry, InboxError, MemoryInbox,
};

use super::support::*;

/// Runs something that must not wait for itself.
fn in_time(what: &str, act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        act();
        let _ = done.send(());
    });
    assert!(is_done.recv_timeout(Duration::from_secs(120)).is_ok(), "{what} never ended, or panicked");
}

/// A handler that owns something of the desk, which ends with it.
struct Owning(Mutex<Elicitations>);

impl Owning {
    fn new(desk: &Desk) -> Self {
        Self(Mutex::new(desk.elicitations()))
    }
}

impl ElicitationHandler for Owning {
    async fn elicit(&self, _: ElicitRequest, _: ElicitationContext) -> ElicitReply {
        drop(self.0.lock());
        ElicitReply::Pass
    }
}

#[test]
fn a_handler_may_own_something_of_its_desk() {
    in_time("replacing the desk's handler", || {
        let desk = Desk::default();
        desk.set_handler(Owning::new(&desk));
        desk.set_handler(accept);
    });
    in_time("clearing the desk's handler", || {
        let desk = Desk::default();
        desk.set_handler(Owning::new(&desk));
        desk.clear_handler();
    });
    in_time("replacing a route", || {
        let desk = Desk::default();
        let _first = desk.route("key", Owning::new(&desk));
        let _second = desk.route("key", accept);
    });
    in_time("dropping a route", || {
        let desk = Desk::default();
        drop(desk.route("key", Owning::new(&desk)));
    });
    in_time("closing a connection with a handler", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let desk = Desk::default();
            let builder = builder().desk(&desk, "srv").on_elicitation(Owning::new(&desk));
            let (client, _peer) = connected(builder).await;
            client.close().await;
        });
    });
}

/// A handler that looks at its desk when it is asked for its time, and tells that it was.
struct Looking(Desk, Arc<AtomicBool>);

impl ElicitationHandler for Looking {
    async fn elicit(&self, _: ElicitRequest, _: ElicitationContext) -> ElicitReply {
        ElicitReply::Pass
    }

    fn timeout(&self) -> Option<Duration> {
        assert!(self.0.open_questions().is_empty() && self.0.waiting_calls().is_empty());
        self.1.store(true, Ordering::SeqCst);
        None
    }
}

/// What is written to it goes nowhere before the desk was looked at.
struct LookingWriter(Desk);

impl fmt::Write for LookingWriter {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        assert!(self.0.open_questions().is_empty());
        Ok(())
    }
}

#[test]
fn code_of_the_application_that_the_desk_calls_may_look_at_the_desk() {
    in_time("setting the desk's handler", || {
        let (desk, looked) = (Desk::default(), Arc::<AtomicBool>::default());
        desk.set_handler(Looking(desk.clone(), Arc::clone(&looked)));
        assert!(looked.load(Ordering::SeqCst));
    });
    in_time("a route", || {
        let (desk, looked) = (Desk::default(), Arc::<AtomicBool>::default());
        drop(desk.route("key", Looking(desk.clone(), Arc::clone(&looked))));
        assert!(looked.load(Ordering::SeqCst));
    });
    in_time("writing a desk and its listener", || {
        let desk = Desk::default();
        let questions = desk.elicitations();
        write!(LookingWriter(desk.clone()), "{desk:?} {questions:?}").unwrap();
    });
}

/// One server's noise does not keep the answers to another's questions from being fetched.
#[tokio::test(start_paused = true)]
async fn a_noisy_server_does_not_starve_the_inbox() {
    let inbox = Arc::new(MemoryInbox::new());
    let desk = Desk::new(DeskConfig::default().shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>));
    let (_quiet, mut quiet) = connected(builder().desk(&desk, "quiet")).await;
    let (_noisy, mut noisy) = connected(builder().desk(&desk, "noisy")).await;
    quiet.send(form(1)).await;
    settle().await;
    assert!(inbox.answer(&inbox.open()[0].id, named("Ada")));
    let noise = async {
        for at in 0..u64::MAX {
            noisy.send(complete("unknown")).await;
            noisy.send(form(at)).await;
            noisy.send(withdraw(at)).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        answer = quiet.receive() => assert_eq!(answer["result"]["action"], "accept"),
        () = noise => {}
        () = tokio::time::sleep(60 * SECOND) => panic!("never fetched"),
    }
}

/// What a listener has not fetched is bounded by what is open, however many questions come and go.
#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_listen_holds_nothing_that_has_ended() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    for at in 0..500 {
        peer.send(form(at)).await;
        settle().await;
        peer.send(withdraw(at)).await;
        settle().await;
    }
    assert!(format!("{questions:?}").contains("waiting: 0"), "{questions:?}");
    peer.send(form(1000)).await;
    settle().await;
    assert!(format!("{questions:?}").contains("waiting: 1"), "{questions:?}");
    questions.next().await.unwrap().respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["id"], 1000);
}

/// A wait that was dropped takes no place among the waiters.
#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_a_completion_is_no_waiter() {
    let mut limits = ElicitationLimits::default();
    limits.max_waiters = 2;
    let (client, mut peer) =
        connected(builder().on_elicitation(accept).desk_config(DeskConfig::default().limits(limits))).await;
    peer.send(url(1, "e")).await;
    peer.receive().await;
    for _ in 0..8 {
        let waiting = client.elicitation_completed("e", Some(Duration::MAX));
        assert!(tokio::time::timeout(SECOND, waiting).await.is_err(), "it waits");
    }
    let waiting = client.elicitation_completed("e", None);
    let (completed, ()) = tokio::join!(waiting, peer.send(complete("e")));
    assert!(completed);
}

/// A store that writes down what it is asked, and does what a test wants of it.
#[derive(Default)]
struct Odd {
    memory: MemoryInbox,
    desk: OnceLock<Desk>,
    panics_after_publishing: AtomicBool,
    expiries: Mutex<BTreeMap<String, Option<Duration>>>,
    failing_ends: Mutex<u32>,
}

impl Odd {
    fn end(&self) -> Result<(), InboxError> {
        let mut failing = self.failing_ends.lock().unwrap();
        if *failing > 0 {
            *failing -= 1;
            return Err(InboxError::new("another process has locked the inbox"));
        }
        Ok(())
    }
}

impl Inbox for Odd {
    fn publish(&self, entry: &InboxEntry) -> Result<(), InboxError> {
        self.memory.publish(entry)?;
        self.expiries.lock().unwrap().insert(entry.id.clone(), entry.expires_after);
        assert!(!self.panics_after_publishing.load(Ordering::SeqCst), "as the test wants it");
        Ok(())
    }

    fn acknowledge(&self, id: &str, action: ElicitAction) -> Result<(), InboxError> {
        self.end()?;
        self.memory.acknowledge(id, action)
    }

    fn fail(&self, id: &str, end: End) -> Result<(), InboxError> {
        self.end()?;
        self.memory.fail(id, end)
    }

    fn answers(&self, ids: &[&str]) -> Result<Vec<InboxAnswer>, InboxError> {
        self.memory.answers(ids)
    }

    fn set_expiry(&self, id: &str, expires_after: Option<Duration>) -> Result<(), InboxError> {
        self.expiries.lock().unwrap().insert(id.to_owned(), expires_after);
        Ok(())
    }

    fn is_answered_from_elsewhere(&self) -> bool {
        if let Some(desk) = self.desk.get() {
            desk.open_questions();
        }
        true
    }
}

fn odd() -> (Arc<Odd>, Desk) {
    let inbox = Arc::new(Odd::default());
    let desk = Desk::new(DeskConfig::default().shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>));
    (inbox, desk)
}

#[test]
fn a_store_may_ask_the_desk() {
    in_time("a store that asks the desk", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (inbox, desk) = odd();
            inbox.desk.set(desk.clone()).unwrap();
            let (_client, mut peer) = connected(builder().desk(&desk, "srv")).await;
            peer.send(form(1)).await;
            while inbox.memory.open().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            inbox.memory.answer(&inbox.memory.open()[0].id, named("Ada"));
            assert_eq!(peer.receive().await["result"]["action"], "accept");
        });
    });
}

/// Whether a question is in the store is not known after a panic of the store: it is ended there.
#[tokio::test(start_paused = true)]
async fn a_question_that_a_store_took_in_panic_is_ended_there() {
    let (inbox, desk) = odd();
    inbox.panics_after_publishing.store(true, Ordering::SeqCst);
    let (_client, mut peer) = connected(builder().desk(&desk, "srv")).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["action"], "cancel");
    peer.expect_silence(SECOND).await;
    assert!(inbox.memory.open().is_empty(), "nobody would take an answer to it");
}

/// A store that is busy for a while hears of the end all the same.
#[tokio::test(start_paused = true)]
async fn an_end_that_a_busy_store_did_not_take_is_told_again() {
    let (inbox, desk) = odd();
    *inbox.failing_ends.lock().unwrap() = 3;
    desk.set_handler(accept);
    let (_client, mut peer) = connected(builder().desk(&desk, "srv")).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    peer.expect_silence(60 * SECOND).await;
    assert!(inbox.memory.open().is_empty(), "it looks open for ever");
    // One that takes nothing ever again is not asked for ever.
    *inbox.failing_ends.lock().unwrap() = u32::MAX;
    peer.send(form(2)).await;
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    peer.expect_silence(3600 * SECOND).await;
    assert!(u32::MAX - *inbox.failing_ends.lock().unwrap() < 100);
}

/// An answer of another process is of use as long as the question is open, also where a handler gave it more time.
#[tokio::test(start_paused = true)]
async fn the_inbox_hears_of_the_time_that_a_handler_gives() {
    let (inbox, desk) = odd();
    let handler = mcp_client::AnyElicitationHandler::new(never).with_timeout(3600 * SECOND);
    let (_client, mut peer) = connected(builder().desk(&desk, "srv").on_elicitation(handler)).await;
    peer.send(form(1)).await;
    peer.expect_silence(SECOND).await;
    let expiries = inbox.expiries.lock().unwrap().clone();
    let known = expiries.values().next().unwrap().unwrap();
    assert!(known > 3500 * SECOND && known <= 3600 * SECOND, "{known:?}");
}

/// Two runtimes at one desk: when one ends, the questions of the other still end in time, and go to the inbox.
#[test]
fn a_runtime_that_ends_takes_no_other_connections_questions_with_it() {
    in_time("a question whose clock was on another runtime", || {
        let runtime =
            || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (first, second) = (runtime(), runtime());
        let inbox = Arc::new(MemoryInbox::new());
        let mut limits = ElicitationLimits::default();
        limits.question_timeout = Duration::from_secs(2);
        let config = DeskConfig::default().limits(limits).shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>);
        let desk = Desk::new(config);
        let (client, _peer) = first.block_on(async {
            let (client, mut peer) = connected(builder().desk(&desk, "first")).await;
            peer.send(form(1)).await;
            while inbox.open().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (client, peer)
        });
        let (other, mut peer) = second.block_on(connected(builder().desk(&desk, "second")));
        second.block_on(async {
            peer.send(form(2)).await;
            while !inbox.open().iter().any(|entry| entry.server == "second") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        first.shutdown_timeout(Duration::from_secs(5));
        let answer =
            second.block_on(async { tokio::time::timeout(Duration::from_secs(60), peer.receive()).await });
        assert_eq!(answer.expect("the question never ended")["result"]["action"], "cancel");
        second.block_on(async {
            // One whose time was over before this thread came to answer it is asked once more.
            for id in 3.. {
                peer.send(form(id)).await;
                let entry = loop {
                    let open = inbox.open();
                    if let Some(entry) = open.iter().find(|entry| entry.server == "second") {
                        break entry.id.clone();
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                };
                let answered = inbox.answer(&entry, named("Ada"));
                if peer.receive().await["result"]["action"] == "accept" {
                    break;
                }
                assert!(!answered || id < 10, "answers are not fetched");
            }
        });
        drop((client, other));
    });
}
