//! What the handles and the keeper of one connection share.

use std::{
    fmt,
    io::{self, IoSlice},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::io::AsyncWrite as _;

use super::{
    BoxRead, BoxWrite, lock,
    signal::{Flags, Signal},
};
use crate::{
    Error, ErrorKind,
    stdio::{
        CloseReport,
        outbox::{BATCH_SLICES, Batch, Outbox, Released, Writer},
    },
    watched::{Watched, wake_each},
};

pub(crate) struct Shared {
    /// Never held across a system call.
    pub(super) outbox: Mutex<Outbox>,
    /// Taken by whoever is the writer, before `outbox` where both are needed.
    write_side: Mutex<WriteSide>,
    pub(super) signal: Signal,
    /// Whether the last read brought several lines, so that several senders are about to write. See [`super::Sending`].
    burst: AtomicBool,
    /// Why nothing more will be received; set once.
    ended: OnceLock<Error>,
    reader_waker: Mutex<Option<Waker>>,
    /// The output of a connection whose receiver was dropped: still drained, so that the peer can end.
    left_output: Mutex<Option<BoxRead>>,
    /// What a process wrote last to its standard error, from before the report is there.
    last_words: OnceLock<Arc<str>>,
    /// How the connection was closed, once it is.
    report: Watched<Option<CloseReport>>,
}

struct WriteSide {
    io: Option<BoxWrite>,
    batch: Batch,
    /// Whether the stream buffers, so that it must be flushed; a pipe does not.
    flushes: bool,
    unflushed: bool,
    failure: Option<io::Error>,
    /// Kept to be filled again: no allocation for each write.
    released: Released,
}

impl Shared {
    pub(super) fn new(writer: BoxWrite, flushes: bool, max_queued_bytes: usize) -> Self {
        Self {
            outbox: Mutex::new(Outbox::new(max_queued_bytes)),
            write_side: Mutex::new(WriteSide {
                io: Some(writer),
                batch: Batch::default(),
                flushes,
                unflushed: false,
                failure: None,
                released: Released::default(),
            }),
            signal: Signal::default(),
            burst: AtomicBool::new(false),
            ended: OnceLock::new(),
            reader_waker: Mutex::new(None),
            left_output: Mutex::new(None),
            last_words: OnceLock::new(),
            report: Watched::new(None),
        }
    }

    /// Writes what is queued, as the outbox's writer; ready when nothing is left and the role was given up. A sender that
    /// finds it pending passes the role on by `hand_to_keeper`.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut side = lock(&self.write_side);
        let (poll, broken) = match self.poll_write_side(cx, &mut side) {
            Poll::Ready(Ok(())) => (Poll::Ready(()), None),
            Poll::Ready(Err(error)) => {
                side.failure = Some(error);
                side.io = None;
                side.batch.clear();
                (Poll::Ready(()), Some(lock(&self.outbox).break_off()))
            }
            Poll::Pending => (Poll::Pending, None),
        };
        if side.released.wakes_nobody() {
            drop(side);
        } else {
            let mut released = std::mem::take(&mut side.released);
            drop(side);
            released.wake();
            lock(&self.write_side).released = released;
        }
        if let Some(released) = broken {
            released.let_go();
            self.signal.raise(Flags::BROKEN);
        }
        poll
    }

    /// Writes what is queued, as the outbox's writer, as far as the stream takes it now; the keeper does the rest.
    ///
    /// In a burst other senders are about to queue theirs: the keeper, which runs after them, writes all of it at once.
    pub(super) fn write_now(&self) {
        // Nobody is to be woken when the stream goes on: then it is the keeper's. So it is where the stream panics, which may be the
        // application's own: it must not leave the role with somebody who does not write any more, and takes the keeper along
        // with its next write, which ends the connection.
        let write = || self.poll_write(&mut Context::from_waker(Waker::noop())).is_pending();
        if self.is_burst() || catch_unwind(AssertUnwindSafe(write)).unwrap_or(true) {
            self.hand_to_keeper();
        }
    }

    fn poll_write_side(&self, cx: &mut Context<'_>, side: &mut WriteSide) -> Poll<io::Result<()>> {
        loop {
            let Some(io) = &mut side.io else {
                // The keeper closed the input meanwhile, and broke the outbox off.
                return Poll::Ready(Ok(()));
            };
            if side.batch.is_empty() {
                let mut outbox = lock(&self.outbox);
                if !outbox.take_batch(&mut side.batch) {
                    if !side.unflushed {
                        outbox.set_writer(Writer::Nobody);
                        if outbox.is_closing() {
                            self.signal.raise(Flags::WRITE);
                        }
                        return Poll::Ready(Ok(()));
                    }
                    drop(outbox);
                    std::task::ready!(Pin::new(&mut *io).poll_flush(cx))?;
                    side.unflushed = false;
                    continue;
                }
            }
            let mut slices = [IoSlice::new(&[]); BATCH_SLICES];
            let filled = side.batch.fill(&mut slices);
            let slices = slices.get(..filled).unwrap_or_default();
            let written = std::task::ready!(Pin::new(&mut *io).poll_write_vectored(cx, slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let handed = side.batch.advance(written);
            side.unflushed = side.flushes;
            lock(&self.outbox).advance(written, handed, &mut side.released);
        }
    }

    /// Makes the keeper the writer, in place of the caller.
    fn hand_to_keeper(&self) {
        let mut outbox = lock(&self.outbox);
        if !outbox.is_dead() {
            outbox.set_writer(Writer::Keeper);
        }
        drop(outbox);
        self.signal.raise(Flags::WRITE);
    }

    /// Takes the write half away; what is queued is dropped.
    pub(super) fn take_writer(&self) -> Option<BoxWrite> {
        let mut side = lock(&self.write_side);
        side.batch.clear();
        let io = side.io.take();
        let released = lock(&self.outbox).break_off();
        drop(side);
        released.let_go();
        io
    }

    pub(super) fn take_write_failure(&self) -> Option<io::Error> {
        lock(&self.write_side).failure.take()
    }

    pub(super) fn begin_close(&self) {
        let error = Error::new(ErrorKind::Closed, "the connection is being closed by this client");
        let released = lock(&self.outbox).begin_close(error);
        released.let_go();
        self.signal.raise(Flags::CLOSE);
    }

    pub(super) fn is_burst(&self) -> bool {
        self.burst.load(Ordering::Relaxed)
    }

    pub(super) fn set_burst(&self, burst: bool) {
        if self.is_burst() != burst {
            self.burst.store(burst, Ordering::Relaxed);
        }
    }

    /// Lets every sender and the receiver know why the connection is over. The first call decides for the receiver.
    pub(super) fn end(&self, error: &Error) {
        self.end_sending(error);
        if self.ended.set(error.clone()).is_ok() {
            let waker = lock(&self.reader_waker).take();
            // One that panics must not take the keeper along.
            wake_each(waker);
        }
    }

    /// Lets every sender know why nothing is written any more.
    pub(super) fn end_sending(&self, error: &Error) {
        let released = lock(&self.outbox).end(error.clone());
        released.let_go();
    }

    pub(super) fn ended(&self) -> Option<&Error> {
        self.ended.get()
    }

    /// Like [`ended`](Self::ended), and has the caller woken when it is set. For the one receiver.
    pub(super) fn poll_ended(&self, cx: &Context<'_>) -> Poll<&Error> {
        // Made before, and what it replaces dropped after the lock: both are the caller's own.
        let waker = cx.waker().clone();
        let replaced = lock(&self.reader_waker).replace(waker);
        drop(replaced);
        // Looked at after registering: an end in between is seen here or wakes.
        self.ended.get().map_or(Poll::Pending, Poll::Ready)
    }

    pub(super) fn leave_output(&self, output: BoxRead) {
        *lock(&self.left_output) = Some(output);
        self.signal.raise(Flags::OUTPUT_LEFT);
    }

    pub(super) fn take_left_output(&self) -> Option<BoxRead> {
        lock(&self.left_output).take()
    }

    /// Comes before [`set_report`](Self::set_report). Keeps nothing where nothing was said.
    pub(super) fn set_last_words(&self, words: Arc<str>) {
        if !words.is_empty() {
            let _ = self.last_words.set(words);
        }
    }

    pub(super) fn last_words(&self) -> Option<&str> {
        self.last_words.get().map(|words| &**words)
    }

    pub(super) fn set_report(&self, report: CloseReport) {
        if self.report.current().is_none() {
            self.report.set(Some(report));
        }
    }

    pub(super) async fn report(self: &Arc<Self>) -> CloseReport {
        self.report.until(|report| *report).await
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("ended", &self.ended)
            .field("report", &self.report.current())
            .finish_non_exhaustive()
    }
}
