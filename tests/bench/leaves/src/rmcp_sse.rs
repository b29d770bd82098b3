//! The SSE stage of rmcp 3.11: each byte goes through a counter that caps the size of an event, then through sse-stream
//! 0.2.6. The counter is private there; this one does the same work per byte.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;

/// rmcp's default.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Counts the bytes of the event under way.
#[derive(Debug, Default)]
struct Counter {
    /// Lines of the event that ended.
    kept: usize,
    /// The line that has not ended.
    line: usize,
    is_comment: bool,
    after_cr: bool,
}

impl Counter {
    fn take(&mut self, chunk: &[u8]) -> bool {
        chunk.iter().all(|byte| self.take_byte(*byte))
    }

    fn take_byte(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.after_cr) && byte == b'\n' {
            return true;
        }
        if byte == b'\r' || byte == b'\n' {
            self.after_cr = byte == b'\r';
            self.end_line();
        } else {
            if self.line == 0 {
                self.is_comment = byte == b':';
            }
            self.line = self.line.saturating_add(1);
        }
        self.kept.saturating_add(self.line) <= MAX_EVENT_BYTES
    }

    fn end_line(&mut self) {
        if self.line == 0 {
            self.kept = 0;
        } else if !self.is_comment {
            self.kept = self.kept.saturating_add(self.line).saturating_add(1);
        }
        self.line = 0;
        self.is_comment = false;
    }
}

/// A stream of chunks with the counter in it.
pub(crate) struct Limited<S> {
    inner: S,
    counter: Counter,
}

impl<S> Limited<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, counter: Counter::default() }
    }
}

impl<S: Stream<Item = Result<Bytes, Infallible>> + Unpin> Stream for Limited<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(Ok(chunk)) = ready!(Pin::new(&mut self.inner).poll_next(context)) else {
            return Poll::Ready(None);
        };
        if self.counter.take(&chunk) {
            Poll::Ready(Some(Ok(chunk)))
        } else {
            Poll::Ready(Some(Err(io::Error::other("the event is too large"))))
        }
    }
}
