//! Draining a server's standard error from the moment it was started.

use std::{
    fmt,
    mem::MaybeUninit,
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

/// The first read, onto the stack: most of the time there is nothing, or a line or two.
const FEW_BYTES: usize = 1024;

/// A read once there was more. The pipe holds 64 KiB; a flood is then drained with few system calls.
const MANY_BYTES: usize = 32 * 1024;

pub(crate) struct StderrDrain {
    pipe: Option<BoxRead>,
    tail: Tail,
    lines: Lines,
    line_bytes: usize,
    hook: Option<StderrHook>,
}

impl StderrDrain {
    pub(super) fn new(pipe: BoxRead, limits: StderrLimits, hook: Option<StderrHook>) -> Self {
        Self {
            pipe: Some(pipe),
            tail: Tail::new(limits.tail_bytes),
            lines: Lines::new(limits),
            line_bytes: limits.line_bytes,
            hook,
        }
    }

    /// Reads all there is.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut few = [MaybeUninit::uninit(); FEW_BYTES];
        let mut many: Vec<u8> = Vec::new();
        loop {
            let mut buf = match many.capacity() {
                0 => ReadBuf::uninit(&mut few),
                _ => ReadBuf::uninit(many.spare_capacity_mut()),
            };
            match Pin::new(&mut *pipe).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    let chunk = buf.filled();
                    self.tail.push(chunk);
                    if self.hook.is_some() || tracing::enabled!(tracing::Level::DEBUG) {
                        self.lines.push(chunk, |line| show(&mut self.hook, line, self.line_bytes));
                    }
                    if buf.remaining() == 0 {
                        many.reserve(MANY_BYTES);
                    }
                }
                Poll::Ready(_) => {
                    self.lines.finish(|line| show(&mut self.hook, line, self.line_bytes));
                    self.pipe = None;
                    return;
                }
                Poll::Pending => return,
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

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io, sync::Mutex, task::Waker};

    use super::*;

    /// Gives these many bytes at each read, as far as there is room; 0 is nothing yet.
    struct Pipe {
        reads: VecDeque<usize>,
        /// How much room each read was given.
        rooms: Arc<Mutex<Vec<usize>>>,
    }

    impl AsyncRead for Pipe {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.rooms.lock().unwrap().push(buf.remaining());
            match self.reads.pop_front() {
                Some(0) => Poll::Pending,
                bytes => {
                    let bytes = bytes.unwrap_or_default().min(buf.remaining());
                    buf.put_slice(&vec![b'x'; bytes]);
                    Poll::Ready(Ok(()))
                }
            }
        }
    }

    /// It is looked at whenever anything happens on the connection, and mostly nothing is there.
    #[test]
    fn only_a_flood_gets_a_large_buffer() {
        let rooms = Arc::new(Mutex::new(Vec::new()));
        let reads = VecDeque::from([0, 9, 0, usize::MAX, usize::MAX, 9, 0, 0, 9]);
        let pipe = Box::new(Pipe { reads, rooms: Arc::clone(&rooms) });
        let mut drain = StderrDrain::new(pipe, StderrLimits::default(), None);
        let mut drained = || {
            drain.poll_drain(&mut Context::from_waker(Waker::noop()));
            (std::mem::take(&mut *rooms.lock().unwrap()), drain.is_over())
        };
        let (few, many) = (FEW_BYTES, MANY_BYTES);
        assert_eq!(drained(), (vec![few], false));
        assert_eq!(drained(), (vec![few, few], false));
        assert_eq!(drained(), (vec![few, many, many, many], false));
        assert_eq!(drained(), (vec![few], false));
        assert_eq!(drained(), (vec![few, few], true));
        assert_eq!(drain.tail().len(), 9 + few + many + 9 + 9);
    }
}
