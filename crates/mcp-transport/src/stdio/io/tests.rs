//! The handles and the keeper over a stream that takes as many bytes as a test lets it, polled by hand.

use std::{
    future::Future,
    io::{self, IoSlice},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{LineReceiver, LineSender, keeper::Keeper, lock, sender::Sending, shared::Shared};
use crate::{
    Error, ErrorKind,
    stdio::{CloseStage, CloseWaits, LineLimits},
};

/// What reached the peer, and how much more it takes.
#[derive(Debug, Default)]
struct Pipe {
    text: Vec<u8>,
    writes: usize,
    room: usize,
    failure: Option<io::ErrorKind>,
    panics: bool,
    waker: Option<Waker>,
}

#[derive(Clone, Default)]
struct Writer(Arc<Mutex<Pipe>>);

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.0);
        assert!(!pipe.panics, "a stream of the application that panics");
        if let Some(kind) = pipe.failure {
            return Poll::Ready(Err(kind.into()));
        }
        if pipe.room == 0 {
            pipe.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        pipe.writes += 1;
        let offered: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        let taken = offered.len().min(pipe.room);
        pipe.room -= taken;
        pipe.text.extend_from_slice(&offered[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Bench {
    writer: Writer,
    shared: Arc<Shared>,
    sender: LineSender,
    keeper: Keeper,
}

impl Bench {
    fn new(room: usize) -> Self {
        let writer = Writer::default();
        lock(&writer.0).room = room;
        let shared = Arc::new(Shared::new(Box::new(writer.clone()), false, 1000));
        let keeper = Keeper::new(Arc::clone(&shared), CloseWaits::default(), None);
        Self { writer, sender: LineSender::new(Arc::clone(&shared)), shared, keeper }
    }

    fn poll_keeper(&mut self) -> Poll<()> {
        self.keeper.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn text(&self) -> String {
        String::from_utf8(lock(&self.writer.0).text.clone()).unwrap()
    }

    fn writes(&self) -> usize {
        lock(&self.writer.0).writes
    }

    fn make_room(&self, bytes: usize) {
        let mut pipe = lock(&self.writer.0);
        pipe.room += bytes;
        pipe.waker.take().into_iter().for_each(Waker::wake);
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn is_done(sending: &mut Sending<'_>) -> bool {
    match poll(sending) {
        Poll::Ready(Ok(())) => true,
        Poll::Ready(Err(error)) => panic!("{error:?}"),
        Poll::Pending => false,
    }
}

#[test]
fn a_lone_message_is_written_by_its_sender_at_the_first_poll() {
    let bench = Bench::new(1000);
    assert!(is_done(&mut bench.sender.send(Bytes::from_static(b"one"))));
    assert_eq!((bench.text().as_str(), bench.writes()), ("one\n", 1));
}

#[test]
fn a_burst_is_one_write() {
    let mut bench = Bench::new(10_000);
    let sender = bench.sender.clone();
    bench.shared.set_burst(true);
    let mut sendings: Vec<_> =
        (0..64).map(|number| sender.send(Bytes::from(format!("message {number}")))).collect();
    assert!(sendings.iter_mut().all(|sending| !is_done(sending)), "the keeper leaves time for the others");
    assert!(bench.poll_keeper().is_pending());
    assert_eq!(bench.writes(), 0, "it lets the senders that are about to queue theirs go first");
    assert!(bench.poll_keeper().is_pending());
    assert!(sendings.iter_mut().all(is_done));
    assert_eq!(bench.writes(), 1);
    assert_eq!(bench.text().lines().count(), 64);
    assert!(bench.text().starts_with("message 0\nmessage 1\n"));
}

#[test]
fn a_burst_of_more_messages_than_one_write_takes_is_written_whole() {
    let mut bench = Bench::new(100_000);
    let sender = bench.sender.clone();
    bench.shared.set_burst(true);
    let mut sendings: Vec<_> = (0..150).map(|_| sender.send(Bytes::from_static(b"m"))).collect();
    sendings.iter_mut().for_each(|sending| assert!(!is_done(sending)));
    assert!(bench.poll_keeper().is_pending());
    assert!(bench.poll_keeper().is_pending());
    assert!(sendings.iter_mut().all(is_done));
    assert_eq!(bench.text(), "m\n".repeat(150));
    assert_eq!(bench.writes(), 3);
}

#[test]
fn what_a_dropped_sender_began_is_finished_by_the_keeper() {
    let mut bench = Bench::new(2);
    let sender = bench.sender.clone();
    let (mut first, mut second) =
        (sender.send(Bytes::from_static(b"first")), sender.send(Bytes::from_static(b"second")));
    assert!(!is_done(&mut first));
    assert!(!is_done(&mut second));
    assert!(first.has_left() && !second.has_left());
    drop(first);
    assert!(bench.poll_keeper().is_pending());
    assert_eq!(bench.text(), "fi");
    bench.make_room(100);
    assert!(bench.poll_keeper().is_pending());
    assert_eq!(bench.text(), "first\nsecond\n");
    assert!(is_done(&mut second));
    // The keeper gave the role back.
    assert!(is_done(&mut sender.send(Bytes::from_static(b"third"))));
    assert_eq!(bench.text(), "first\nsecond\nthird\n");
}

#[test]
fn who_only_puts_a_message_in_can_tell_later_whether_it_left() {
    let mut bench = Bench::new(2);
    let sender = bench.sender.clone();
    let put = |text: &'static str| sender.hold().put(Bytes::from_static(text.as_bytes()));
    let (first, second) = (put("first").unwrap(), put("second").unwrap());
    assert!(!sender.has_left(first), "nobody writes before somebody says so");
    sender.write();
    assert!(sender.has_left(first) && !sender.has_left(second));
    bench.make_room(100);
    assert!(bench.poll_keeper().is_pending());
    assert_eq!(bench.text(), "first\nsecond\n", "though nobody waits for it");
    assert!(sender.has_left(second) && sender.hold().is_settled(second));
    let third = put("third").unwrap();
    sender.write_later();
    assert!(!sender.has_left(third));
    assert!(bench.poll_keeper().is_pending());
    assert_eq!(bench.text(), "first\nsecond\nthird\n");
    let refused = put("two\nlines").map_err(|error| error.kind());
    assert_eq!((refused, put("").is_err()), (Err(ErrorKind::Misuse), true));
}

/// Whoever stands in line with a future that nobody polls: what comes after it is written all the same, and so is it.
#[test]
fn a_sender_in_line_that_is_not_polled_holds_up_nobody_and_keeps_its_place() {
    let mut bench = Bench::new(0);
    let sender = bench.sender.clone();
    let mut full = sender.send(Bytes::from(vec![b'f'; 999]));
    let mut kept = sender.send(Bytes::from_static(b"kept"));
    let mut other = sender.send(Bytes::from_static(b"other"));
    for sending in [&mut full, &mut kept, &mut other] {
        assert!(!is_done(sending));
    }
    bench.make_room(10_000);
    assert!(bench.poll_keeper().is_pending());
    assert!(is_done(&mut full) && is_done(&mut other));
    assert_eq!(bench.text(), format!("{}\nkept\nother\n", "f".repeat(999)));
    assert!(is_done(&mut kept));
}

#[test]
fn what_is_taken_back_from_the_line_never_leaves_and_what_got_room_does() {
    let mut bench = Bench::new(0);
    let sender = bench.sender.clone();
    let (full, gone, after) = {
        let mut line = sender.hold();
        let mut put = |text: Vec<u8>| line.put(Bytes::from(text)).unwrap();
        (put(vec![b'f'; 999]), put(b"gone".to_vec()), put(b"after".to_vec()))
    };
    sender.write();
    {
        let mut line = sender.hold();
        assert!(line.is_queued(full) && !line.is_queued(gone));
        assert!(!line.take_back(full), "it may leave at any time");
        assert!(line.take_back(gone));
    }
    bench.make_room(10_000);
    assert!(bench.poll_keeper().is_pending());
    assert!(!sender.hold().take_back(after), "it has left");
    assert_eq!(bench.text(), format!("{}\nafter\n", "f".repeat(999)));
}

/// Uses the connection when it is woken and when it is dropped, and panics then.
struct Meddles(LineSender);

impl Meddles {
    fn meddle(&self) {
        drop(self.0.hold());
        drop(self.0.send(Bytes::from_static(b"meddling")));
    }
}

impl Wake for Meddles {
    fn wake(self: Arc<Self>) {
        self.meddle();
        panic!("a waker of the application that panics");
    }
}

impl Drop for Meddles {
    fn drop(&mut self) {
        self.meddle();
    }
}

/// However a wait ends, whoever waits is woken and forgotten without a lock, and costs no other its wake-up.
#[test]
fn a_waker_that_uses_the_connection_blocks_nothing_and_one_that_panics_costs_nobody_else() {
    for end in ["written", "closing", "ended", "dropped", "polled anew"] {
        let mut bench = Bench::new(0);
        let sender = bench.sender.clone();
        let mut full = sender.send(Bytes::from(vec![b'f'; 999]));
        let mut meddled = sender.send(Bytes::from_static(b"meddled"));
        let mut other = sender.send(Bytes::from_static(b"other"));
        assert!(!is_done(&mut full));
        let waker = Waker::from(Arc::new(Meddles(sender.clone())));
        assert!(pin!(&mut meddled).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        let woken = Arc::new(AtomicBool::new(false));
        let waker = Waker::from(Arc::new(Notes(Arc::clone(&woken))));
        assert!(pin!(&mut other).poll(&mut Context::from_waker(&waker)).is_pending());
        match end {
            "written" => {
                bench.make_room(10_000);
                assert!(bench.poll_keeper().is_pending());
            }
            "closing" => bench.shared.begin_close(),
            "ended" => bench.shared.end(&Error::new(ErrorKind::Closed, "over")),
            "dropped" => drop(meddled),
            _ => assert!(poll(&mut meddled).is_pending()),
        }
        let is_woken = matches!(end, "written" | "closing" | "ended");
        assert_eq!(woken.load(Ordering::Relaxed), is_woken, "{end}");
    }
}

struct Notes(Arc<AtomicBool>);

impl Wake for Notes {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_sender_that_is_kept_and_not_polled_holds_up_nobody() {
    let mut bench = Bench::new(2);
    let sender = bench.sender.clone();
    let (mut kept, mut other) =
        (sender.send(Bytes::from_static(b"kept")), sender.send(Bytes::from_static(b"other")));
    assert!(!is_done(&mut kept));
    assert!(!is_done(&mut other));
    bench.make_room(100);
    assert!(bench.poll_keeper().is_pending());
    assert!(is_done(&mut other));
    assert!(is_done(&mut kept));
}

#[test]
fn a_message_dropped_while_it_waits_for_room_is_not_sent() {
    let mut bench = Bench::new(0);
    let sender = bench.sender.clone();
    let mut big = sender.send(Bytes::from(vec![b'b'; 999]));
    let mut waiting = sender.send(Bytes::from_static(b"waiting"));
    let mut after = sender.send(Bytes::from_static(b"after"));
    for sending in [&mut big, &mut waiting, &mut after] {
        assert!(!is_done(sending));
    }
    drop(waiting);
    bench.make_room(10_000);
    assert!(bench.poll_keeper().is_pending());
    assert!(is_done(&mut big));
    assert!(is_done(&mut after));
    assert_eq!(bench.text(), format!("{}\nafter\n", "b".repeat(999)));
}

#[test]
fn a_write_that_fails_fails_everybody_when_the_reason_is_known() {
    // seed:B30
    let mut bench = Bench::new(0);
    let sender = bench.sender.clone();
    let mut first = sender.send(Bytes::from_static(b"first"));
    let mut second = sender.send(Bytes::from_static(b"second"));
    assert!(!is_done(&mut first) && !is_done(&mut second));
    lock(&bench.writer.0).failure = Some(io::ErrorKind::BrokenPipe);
    // Over a stream there is no exit to wait for, but the peer may still say something: the keeper waits a little.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let shared = Arc::clone(&bench.shared);
        std::future::poll_fn(|cx| bench.keeper.poll(cx)).await;
        let error = first.await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Closed, "the server closed its input")
        );
        assert!(std::error::Error::source(&error).is_some());
        assert!(!error.outcome_unknown());
        assert!(!second.await.unwrap_err().outcome_unknown());
        assert_eq!(shared.report().await.stage(), CloseStage::Abandoned);
    });
}

/// The stream may be the application's own.
#[test]
fn a_stream_that_panics_ends_the_connection_and_leaves_nobody_waiting() {
    let bench = Bench::new(0);
    let Bench { writer, shared, sender, mut keeper } = bench;
    lock(&writer.0).panics = true;
    let mut first = sender.send(Bytes::from_static(b"first"));
    assert!(!is_done(&mut first), "it does not reach the sender");
    let polled = catch_unwind(AssertUnwindSafe(|| keeper.poll(&mut Context::from_waker(Waker::noop()))));
    assert!(polled.is_err());
    drop(keeper);
    assert!(matches!(poll(&mut first), Poll::Ready(Err(error)) if error.kind() == ErrorKind::Closed));
    assert!(shared.ended().is_some());
}

/// Output of a dead process that another one holds open: some lines, one a read, then nothing and no end.
struct HeldOpen {
    lines: usize,
}

impl AsyncRead for HeldOpen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A pipe of tokio answers "pending" as well when the task has used up its share.
        let share = std::task::ready!(tokio::task::coop::poll_proceed(cx));
        if self.lines == 0 {
            return Poll::Pending;
        }
        share.made_progress();
        self.lines -= 1;
        buf.put_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n");
        Poll::Ready(Ok(()))
    }
}

#[test]
fn what_a_dead_process_wrote_is_received_to_its_last_line() {
    // protocol:T-14
    let bench = Bench::new(0);
    let mut receiver = LineReceiver::new(
        Arc::clone(&bench.shared),
        Box::new(HeldOpen { lines: 1000 }),
        &LineLimits::default(),
    );
    bench.shared.end(&Error::new(ErrorKind::Closed, "the server process ended"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let received = runtime.block_on(runtime.spawn(async move {
        while receiver.recv().await.is_ok() {}
        receiver.counts().messages
    }));
    assert_eq!(received.unwrap(), 1000);
}

#[derive(Clone, Debug)]
enum Act {
    Start(usize),
    Poll(usize),
    Drop(usize),
    Room(usize),
    Keeper,
    Burst(bool),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1usize..300).prop_map(Act::Start),
        6 => (0usize..8).prop_map(Act::Poll),
        2 => (0usize..8).prop_map(Act::Drop),
        4 => (1usize..200).prop_map(Act::Room),
        3 => Just(Act::Keeper),
        1 => any::<bool>().prop_map(Act::Burst),
    ];
    prop::collection::vec(act, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_torn_or_repeated_whoever_is_dropped(acts in acts()) {
        let mut bench = Bench::new(0);
        let sender = bench.sender.clone();
        let mut open: Vec<(usize, Sending<'_>)> = Vec::new();
        let mut started = 0;
        // Those that were polled, in the order in which they were polled first.
        let mut in_order = Vec::new();
        let mut done = Vec::new();
        let mut maybe = Vec::new();
        for act in acts {
            match act {
                Act::Start(bytes) => {
                    let text = format!("{started}:{}", "x".repeat(bytes));
                    open.push((started, sender.send(Bytes::from(text))));
                    started += 1;
                }
                Act::Poll(at) if at < open.len() => {
                    let left_before = open[at].1.has_left();
                    if !in_order.contains(&open[at].0) {
                        in_order.push(open[at].0);
                    }
                    if is_done(&mut open[at].1) {
                        done.push(open.remove(at).0);
                    } else {
                        prop_assert!(open[at].1.has_left() || !left_before);
                    }
                }
                Act::Drop(at) if at < open.len() => {
                    let (number, sending) = open.remove(at);
                    if sending.has_left() {
                        done.push(number);
                    } else {
                        maybe.push(number);
                    }
                }
                Act::Room(bytes) => bench.make_room(bytes),
                Act::Keeper => prop_assert!(bench.poll_keeper().is_pending()),
                Act::Burst(burst) => bench.shared.set_burst(burst),
                Act::Poll(_) | Act::Drop(_) => {}
            }
        }
        bench.make_room(1_000_000);
        // Some have not been polled yet. Nobody needs a further look for what others put in.
        for (number, _) in &open {
            if !in_order.contains(number) {
                in_order.push(*number);
            }
        }
        for _ in 0..2 {
            open.retain_mut(|(number, sending)| {
                let over = is_done(sending);
                if over {
                    done.push(*number);
                }
                !over
            });
            prop_assert!(bench.poll_keeper().is_pending());
            prop_assert!(bench.poll_keeper().is_pending());
        }
        prop_assert!(open.is_empty(), "{} senders hang", open.len());
        let text = bench.text();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        let mut seen = Vec::new();
        for line in text.lines() {
            let (number, body) = line.split_once(':').unwrap();
            prop_assert!(body.bytes().all(|byte| byte == b'x') && !body.is_empty());
            seen.push(number.parse::<usize>().unwrap());
        }
        let mut sorted = seen.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), seen.len(), "written twice");
        prop_assert!(done.iter().all(|number| seen.contains(number)), "written and not there");
        prop_assert!(seen.iter().all(|number| done.contains(number) || maybe.contains(number)));
        in_order.retain(|number| seen.contains(number));
        prop_assert_eq!(seen, in_order, "overtaken");
    }
}
