//! The one background task of a connection: it sees the connection to its end.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite as _, ReadBuf},
    time::Sleep,
};

use super::{BoxRead, BoxWrite, lock, shared::Shared, signal::Flags};
use crate::{
    Error, ErrorKind, ProcessExit,
    stdio::{
        CloseReport, CloseStage, CloseWaits,
        ladder::{Ladder, Step},
        outbox::Writer,
        process::{Process, StderrDrain},
    },
};

/// How much output of a connection without receiver is read at a time, to be thrown away.
const DRAIN_BYTES: usize = 16 * 1024;

/// A process and its standard error, as the keeper takes them.
pub(crate) struct KeptProcess {
    pub(crate) process: Process,
    pub(crate) stderr: StderrDrain,
}

pub(super) struct Keeper {
    shared: Arc<Shared>,
    ladder: Ladder,
    waits: CloseWaits,
    process: Option<KeptProcess>,
    exit: Option<ProcessExit>,
    cause: Option<Cause>,
    /// When everybody who waits is told that the connection is over, whether the exit status is known or not.
    tell_at: Option<Instant>,
    closing_input: Option<BoxWrite>,
    left_output: Option<BoxRead>,
    timer: Option<Pin<Box<Sleep>>>,
    unwritten_bytes: u64,
    finished: bool,
    /// It has let the senders of a burst go first and writes now.
    stood_back: bool,
}

/// Why the connection ended; the first reason is kept.
enum Cause {
    ClosedHere,
    Exited,
    OutputEnded,
    WriteFailed(Option<Arc<io::Error>>),
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>, waits: CloseWaits, process: Option<KeptProcess>) -> Self {
        Self {
            shared,
            ladder: Ladder::new(waits, process.is_some()),
            waits,
            process,
            exit: None,
            cause: None,
            tell_at: None,
            closing_input: None,
            left_output: None,
            timer: None,
            unwritten_bytes: 0,
            finished: false,
            stood_back: false,
        }
    }

    /// Does everything that can be done now; ready when the connection is over and reported.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.shared.is_burst() && !std::mem::replace(&mut self.stood_back, true) {
            // To the end of the runtime's queue, once: the other senders of the burst queue theirs first, and one
            // write takes them all.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.stood_back = false;
        loop {
            let now = tokio::time::Instant::now().into_std();
            let raised = self.shared.signal.take(cx);
            self.take_signals(raised, now);
            self.poll_write(cx, now);
            self.poll_streams(cx);
            self.poll_exit(cx, now);
            if self.ladder.is_draining() && self.is_drained() {
                self.ladder.handle_drained();
            }
            while let Some(step) = self.ladder.poll_step() {
                self.take_step(step);
            }
            self.poll_closing_input(cx);
            if self.tell_at.is_some_and(|at| now >= at) {
                self.tell();
            }
            if self.ladder.is_over() {
                self.finish(now);
                return Poll::Ready(());
            }
            if self.poll_timer(cx).is_pending() {
                return Poll::Pending;
            }
            self.ladder.handle_timeout(tokio::time::Instant::now().into_std());
        }
    }

    fn take_signals(&mut self, raised: Flags, now: Instant) {
        if raised.has(Flags::OUTPUT_LEFT) {
            self.left_output = self.shared.take_left_output();
        }
        if raised.has(Flags::BROKEN) {
            let failure = self.shared.take_write_failure().map(Arc::new);
            self.lose(Cause::WriteFailed(failure), now);
        }
        if raised.has(Flags::OUTPUT_ENDED) {
            self.handle_output_end(now);
        }
        if raised.has(Flags::CLOSE) && self.ladder.is_open() {
            self.cause.get_or_insert(Cause::ClosedHere);
            let dead = lock(&self.shared.outbox).is_dead();
            self.ladder.begin(now, !dead);
        }
    }

    fn handle_output_end(&mut self, now: Instant) {
        if self.process.is_none() {
            self.cause.get_or_insert(Cause::OutputEnded);
            self.ladder.handle_ended(now);
        } else {
            self.lose(Cause::OutputEnded, now);
        }
    }

    /// The connection is of no use any more: ends the process, if there is one, and tells the cause soon.
    fn lose(&mut self, cause: Cause, now: Instant) {
        self.cause.get_or_insert(cause);
        self.tell_at.get_or_insert(now + self.waits.status.min(Duration::from_secs(86_400)));
        self.ladder.begin(now, false);
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, now: Instant) {
        if lock(&self.shared.outbox).writer() == Writer::Keeper {
            let _ = self.shared.poll_write(cx);
        }
        if self.ladder.is_flushing() {
            let outbox = lock(&self.shared.outbox);
            if outbox.is_dead() || (outbox.unwritten_bytes() == 0 && outbox.writer() == Writer::Nobody) {
                self.ladder.handle_flushed(now);
            }
        }
    }

    fn poll_streams(&mut self, cx: &mut Context<'_>) {
        if let Some(kept) = &mut self.process {
            kept.stderr.poll_drain(cx);
        }
        if let Some(output) = &mut self.left_output
            && poll_discard(output, cx).is_ready()
        {
            self.left_output = None;
            self.shared.signal.raise(Flags::OUTPUT_ENDED);
        }
    }

    fn poll_exit(&mut self, cx: &mut Context<'_>, now: Instant) {
        if self.exit.is_some() {
            return;
        }
        if let Some(kept) = &mut self.process
            && kept.process.poll_exit(cx).is_ready()
        {
            let exit = kept.process.end();
            tracing::debug!(%exit, "server process ended");
            self.exit = Some(exit);
            self.cause.get_or_insert(Cause::Exited);
            self.ladder.handle_ended(now);
        }
    }

    /// Whether the pipes are at their end. Standard output is the receiver's, which goes on reading by itself.
    fn is_drained(&self) -> bool {
        self.process.as_ref().is_none_or(|kept| kept.stderr.is_over()) && self.left_output.is_none()
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::CloseInput => {
                self.unwritten_bytes = lock(&self.shared.outbox).unwritten_bytes();
                self.closing_input = self.shared.take_writer();
                if matches!(self.cause, Some(Cause::ClosedHere)) {
                    // Nobody will write what is still queued. The receiver goes on to the peer's end.
                    let error = Error::new(ErrorKind::Closed, "the connection was closed by this client");
                    self.shared.end_sending(&error);
                }
            }
            Step::Terminate => {
                if let Some(kept) = &mut self.process {
                    kept.process.terminate();
                }
            }
            Step::Kill => {
                if let Some(kept) = &mut self.process {
                    kept.process.kill();
                }
            }
        }
    }

    fn poll_closing_input(&mut self, cx: &mut Context<'_>) {
        if let Some(input) = &mut self.closing_input
            && Pin::new(input).poll_shutdown(cx).is_ready()
        {
            self.closing_input = None;
        }
    }

    /// Ready when the earliest deadline has come. No timer exists while there is none.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadlines = [self.ladder.poll_timeout(), self.tell_at];
        let Some(next) = deadlines.into_iter().flatten().min().map(tokio::time::Instant::from_std) else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next)));
        if timer.deadline() != next {
            timer.as_mut().reset(next);
        }
        timer.as_mut().poll(cx)
    }

    /// Tells everybody who waits that the connection is over, and all that is known about why.
    fn tell(&mut self) {
        self.tell_at = None;
        let cause = match &self.cause {
            Some(Cause::ClosedHere) => "the connection was closed by this client",
            Some(Cause::WriteFailed(_)) => "the server closed its input",
            Some(Cause::OutputEnded) => "the server closed its output",
            Some(Cause::Exited) => "the server's process ended",
            None => "the runtime of the connection was shut down",
        };
        let is_theirs = self.cause.is_some() && !matches!(self.cause, Some(Cause::ClosedHere));
        // What ended by a signal of ours did go on without that pipe.
        let is_unforced = matches!(self.ladder.stage(), CloseStage::Ended | CloseStage::EndedOnInputEnd);
        let mut error = match self.exit {
            // Which of its ends was noticed first, a pipe or the process itself, is a matter of luck and says nothing.
            Some(exit) if is_theirs && is_unforced => {
                Error::new(ErrorKind::Closed, format!("the server's process {}", exit.told()))
            }
            exit => {
                let text = match exit {
                    Some(exit) => format!("{cause}; the server's process {}", exit.told()).into(),
                    None => Cow::Borrowed(cause),
                };
                let error = Error::new(ErrorKind::Closed, text);
                match &self.cause {
                    Some(Cause::WriteFailed(Some(failure))) => {
                        error.with_source(SharedIoError(Arc::clone(failure)))
                    }
                    _ => error,
                }
            }
        };
        if let Some(exit) = self.exit {
            error = error.with_exit(exit);
        }
        // Last words explain an end that nobody asked for; after a close of our own they would only repeat the log.
        if let Some(kept) = &mut self.process
            && !matches!(self.cause, Some(Cause::ClosedHere))
        {
            error = error.with_stderr_tail(kept.stderr.tail());
        }
        self.shared.end(&error);
    }

    /// Also after a close of our own, whose error leaves them out: whoever closed because nothing came of the connection asks.
    fn keep_last_words(&mut self) {
        if let Some(kept) = &mut self.process {
            self.shared.set_last_words(kept.stderr.tail());
        }
    }

    fn finish(&mut self, now: Instant) {
        self.finished = true;
        self.unwritten_bytes = self.unwritten_bytes.max(lock(&self.shared.outbox).unwritten_bytes());
        drop(self.shared.take_writer());
        self.closing_input = None;
        self.left_output = None;
        self.tell();
        self.keep_last_words();
        self.process = None;
        self.shared.set_report(CloseReport {
            stage: self.ladder.stage(),
            exit: self.exit,
            elapsed: self.ladder.elapsed(now),
            unwritten_bytes: self.unwritten_bytes,
        });
    }
}

impl Drop for Keeper {
    /// The runtime went away before the connection did. The process's own guard ends its group.
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let unwritten_bytes = lock(&self.shared.outbox).unwritten_bytes();
        drop(self.shared.take_writer());
        self.tell();
        self.keep_last_words();
        let stage = if self.exit.is_some() { CloseStage::Ended } else { CloseStage::Abandoned };
        self.shared.set_report(CloseReport {
            stage,
            exit: self.exit,
            elapsed: Duration::ZERO,
            unwritten_bytes,
        });
    }
}

/// Reads and throws away; ready at the end.
fn poll_discard(reader: &mut BoxRead, cx: &mut Context<'_>) -> Poll<()> {
    let mut bytes = [0; DRAIN_BYTES];
    loop {
        let mut buf = ReadBuf::new(&mut bytes);
        match std::task::ready!(Pin::new(&mut *reader).poll_read(cx, &mut buf)) {
            Ok(()) if !buf.filled().is_empty() => {}
            Ok(()) | Err(_) => return Poll::Ready(()),
        }
    }
}

/// One I/O error as the source of many.
#[derive(Clone, Debug)]
struct SharedIoError(Arc<io::Error>);

impl fmt::Display for SharedIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for SharedIoError {}
