//! Draining a server's standard error from the moment it was started.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    Untrusted,
    stdio::{
        StderrLimits,
        io::BoxRead,
        server::StderrHook,
        stderr::{Lines, Tail},
    },
};

/// One read. The pipe holds 64 KiB; a flood is then drained with few system calls.
const READ_BYTES: usize = 32 * 1024;

pub(crate) struct StderrDrain {
    pipe: Option<BoxRead>,
    tail: Tail,
    lines: Lines,
    line_bytes: usize,
    hook: Option<StderrHook>,
    /// Made at the first byte: most servers are silent most of the time.
    buffer: Vec<u8>,
}

impl StderrDrain {
    pub(super) fn new(pipe: BoxRead, limits: StderrLimits, hook: Option<StderrHook>) -> Self {
        Self {
            pipe: Some(pipe),
            tail: Tail::new(limits.tail_bytes),
            lines: Lines::new(limits),
            line_bytes: limits.line_bytes,
            hook,
            buffer: Vec::new(),
        }
    }

    /// Reads all there is.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        self.buffer.resize(READ_BYTES, 0);
        loop {
            let mut buf = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut *pipe).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    let chunk = buf.filled();
                    self.tail.push(chunk);
                    if self.hook.is_some() || tracing::enabled!(tracing::Level::DEBUG) {
                        self.lines.push(chunk, |line| show(&mut self.hook, line, self.line_bytes));
                    }
                }
                Poll::Ready(_) => {
                    self.lines.finish(|line| show(&mut self.hook, line, self.line_bytes));
                    self.pipe = None;
                    self.buffer = Vec::new();
                    return;
                }
                Poll::Pending => {
                    self.buffer = Vec::new();
                    return;
                }
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    pub(crate) fn tail(&mut self) -> Arc<str> {
        self.tail.text().into()
    }
}

fn show(hook: &mut Option<StderrHook>, line: &str, max_bytes: usize) {
    match hook {
        Some(call) => {
            // A panic would end the task that sees to the process; it is the hook's loss only.
            if catch_unwind(AssertUnwindSafe(|| call(line))).is_err() {
                tracing::error!("the hook for standard error panicked and is not called again");
                *hook = None;
            }
        }
        None => tracing::debug!(line = %Untrusted::new(line, max_bytes), "server standard error"),
    }
}

impl fmt::Debug for StderrDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrDrain").field("over", &self.is_over()).finish_non_exhaustive()
    }
}
