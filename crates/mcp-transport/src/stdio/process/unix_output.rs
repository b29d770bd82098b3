//! The standard output of a server process on Unix, read to its last byte once the process has ended.
//!
//! The runtime tells by an event that there is something to read, and that the process has ended by another one. Where the second
//! comes first, on another thread say, a full pipe looks like an empty one. So from then on the pipe itself is asked.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, ReadBuf},
    process::ChildStdout,
};

/// Whether the process has ended, shared by whoever sees that and its output.
#[derive(Clone, Debug, Default)]
pub(super) struct HasEnded(Arc<AtomicBool>);

impl HasEnded {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }
}

pub(super) struct Output {
    pipe: ChildStdout,
    process: HasEnded,
}

impl Output {
    pub(super) const fn new(pipe: ChildStdout, process: HasEnded) -> Self {
        Self { pipe, process }
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.pipe).poll_read(cx, buf);
        if polled.is_ready() || !self.process.0.load(Ordering::Acquire) {
            return polled;
        }
        // The pipe does not block, as the runtime has it.
        let read = loop {
            match rustix::io::read(&self.pipe, buf.initialize_unfilled()) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        match read {
            Ok(bytes) => {
                buf.advance(bytes);
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        task::Waker,
    };

    use super::*;

    /// protocol:T-14
    #[tokio::test]
    async fn what_is_in_the_pipe_is_read_before_the_runtime_tells_of_it() {
        let mut child = Command::new("echo").arg("last words").stdout(Stdio::piped()).spawn().unwrap();
        let pipe = ChildStdout::from_std(child.stdout.take().unwrap()).unwrap();
        child.wait().unwrap();
        let process = HasEnded::default();
        let mut output = Output::new(pipe, process.clone());
        let mut bytes = [0; 64];
        let mut buf = ReadBuf::new(&mut bytes);
        let mut poll = |buf: &mut ReadBuf<'_>| {
            let polled = Pin::new(&mut output).poll_read(&mut Context::from_waker(Waker::noop()), buf);
            polled.map(Result::unwrap)
        };
        // Nothing here lets the runtime look at its events.
        assert_eq!(poll(&mut buf), Poll::Pending);
        process.note();
        assert_eq!(poll(&mut buf), Poll::Ready(()));
        assert_eq!(buf.filled(), b"last words\n");
        // And then its end.
        assert_eq!(poll(&mut buf), Poll::Ready(()));
        assert_eq!(buf.filled().len(), 11);
    }
}
