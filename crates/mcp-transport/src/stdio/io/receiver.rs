//! The receiving handle.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use mcp_jsonrpc::{DecodeErrorKind, DecodeLimits, Line, LineDecoder};
use tokio::io::{AsyncRead as _, ReadBuf};

use super::{BoxRead, shared::Shared, signal::Flags};
use crate::{
    Error, ErrorKind, Limit, Received, Taker,
    received::{excerpt, take_or_decode_slice},
    stdio::LineLimits,
};

/// How much is still read after the process ended without its output ending, which takes a process that left the group and
/// goes on writing. Above what a pipe can hold.
const AFTER_END_BYTES: usize = 1024 * 1024;

/// The receiving half of a line-framed connection: one at a time, in order, decoded.
///
/// Blank lines are skipped; a CR before the LF and one byte order mark at the start are dropped. A line that is not a JSON-RPC
/// envelope, or is too long, is reported and affects nothing else (one that is too long as soon as that is known, and again at
/// its end); nothing is written back. A last line without LF at the end of the stream counts as a line.
///
/// Dropping it closes the connection in the background; further output of the peer is read and discarded meanwhile.
pub struct LineReceiver {
    shared: Arc<Shared>,
    /// None after the end.
    output: Option<BoxRead>,
    decoder: LineDecoder,
    decode: DecodeLimits,
    excerpt_bytes: usize,
    counts: ReceiveCounts,
    /// The line that is being dropped was told of.
    announced: bool,
    /// A message in which bytes were replaced, while it is lent.
    replaced: String,
    /// Lines handed over since the last read.
    lines_of_read: usize,
    /// It is known that the process has ended, so that what is read from here on is all there is.
    knows_end: bool,
    left_after_end: usize,
}

/// What there is to hand over.
enum Ready {
    Line,
    /// The beginning of a line that is dropped, with how much of it has come.
    OversizedStart(u64),
}

/// How many lines a [`LineReceiver`] has handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveCounts {
    /// Lines with a well-formed envelope, or a batch of them.
    pub messages: u64,
    /// Lines that are not JSON-RPC: log output, broken JSON, invalid UTF-8.
    pub invalid: u64,
    /// Lines above the limit, the one that is being dropped included.
    pub oversized: u64,
    /// Messages, counted above, in which invalid UTF-8 was replaced by U+FFFD, so that servers with a legacy code page still
    /// get their calls answered.
    pub replaced: u64,
}

impl LineReceiver {
    pub(super) fn new(shared: Arc<Shared>, output: BoxRead, limits: &LineLimits) -> Self {
        Self {
            shared,
            output: Some(output),
            decoder: LineDecoder::new(
                mcp_jsonrpc::LineLimits::new().with_max_line_bytes(limits.max_line_bytes),
            ),
            decode: limits.decode.clone().with_max_bytes(limits.max_line_bytes),
            excerpt_bytes: limits.excerpt_bytes,
            counts: ReceiveCounts::default(),
            announced: false,
            replaced: String::new(),
            lines_of_read: 0,
            knows_end: false,
            left_after_end: AFTER_END_BYTES,
        }
    }

    /// The next message or report of the peer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what was read so far is kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the connection has ended and everything before that was returned, with exit status and
    /// standard error if a process exited. Every later call returns the same error.
    pub async fn recv(&mut self) -> Result<Received<'_>, Error> {
        self.recv_or_take(&mut |_| false).await
    }

    /// As [`recv`](Self::recv), with somebody who may take a plain answer before it is decoded: that is then
    /// [`Received::Taken`].
    ///
    /// # Cancel safety
    ///
    /// As for [`recv`](Self::recv); nothing is taken before the future is ready.
    ///
    /// # Errors
    ///
    /// Those of [`recv`](Self::recv).
    pub async fn recv_or_take(&mut self, take: Taker<'_>) -> Result<Received<'_>, Error> {
        match std::future::poll_fn(|cx| self.poll_line(cx)).await? {
            Ready::Line => self.take_line(take),
            Ready::OversizedStart(bytes) => {
                self.announced = true;
                self.counts.oversized += 1;
                Ok(Received::OversizedStart { bytes, limit: limit_of_lines(&self.decode) })
            }
        }
    }

    /// How many lines were handed over so far.
    pub fn counts(&self) -> ReceiveCounts {
        self.counts
    }

    /// Reads until the decoder has a line, or begins to drop one.
    fn poll_line(&mut self, cx: &mut Context<'_>) -> Poll<Result<Ready, Error>> {
        loop {
            if self.decoder.has_line() {
                return Poll::Ready(Ok(Ready::Line));
            }
            if let Some(bytes) = self.decoder.oversized_bytes().filter(|_| !self.announced) {
                return Poll::Ready(Ok(Ready::OversizedStart(bytes)));
            }
            let Some(output) = &mut self.output else {
                return Poll::Ready(Err(ready!(self.shared.poll_ended(cx)).clone()));
            };
            self.shared.set_burst(self.lines_of_read > 1);
            self.lines_of_read = 0;
            let mut buf = ReadBuf::new(self.decoder.spare());
            let read = match Pin::new(output).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) => buf.filled().len(),
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "reading the peer's output ended");
                    0
                }
                Poll::Pending => {
                    ready!(self.shared.poll_ended(cx));
                    // What a dead process left in the pipe is read before its end is the end. A task that used up its share of
                    // the runtime sees "pending" on a full pipe too, and is polled again soon.
                    if !tokio::task::coop::has_budget_remaining() {
                        return Poll::Pending;
                    }
                    if !std::mem::replace(&mut self.knows_end, true) {
                        continue;
                    }
                    0
                }
            };
            self.decoder.commit(read);
            if read == 0 || !self.may_go_on(read) {
                self.output = None;
                // What came without a LF at the end is a line too.
                self.decoder.push(b"\n");
                self.shared.signal.raise(Flags::OUTPUT_ENDED);
            }
        }
    }

    /// Whether to read on: a stream that goes on after its process ended is followed a little way only.
    fn may_go_on(&mut self, read: usize) -> bool {
        if self.shared.ended().is_some() {
            self.left_after_end = self.left_after_end.saturating_sub(read);
        }
        self.left_after_end > 0
    }

    fn take_line(&mut self, take: Taker<'_>) -> Result<Received<'_>, Error> {
        self.lines_of_read += 1;
        if !self.replaced.is_empty() {
            self.replaced = String::new();
        }
        let line = match self.decoder.next_line() {
            Some(Line::Text(line)) => line,
            Some(Line::Oversized { bytes, answer_to, .. }) => {
                let (limit, answer_to) = (limit_of_lines(&self.decode), answer_to.cloned());
                let announced = std::mem::take(&mut self.announced);
                self.counts.oversized += u64::from(!announced);
                return Ok(Received::Oversized { bytes, limit, answer_to, announced });
            }
            // Invariant: called when the decoder has a line.
            _ => return Err(Error::new(ErrorKind::Closed, "the connection is over")),
        };
        match take_or_decode_slice(line, &self.decode, take) {
            Ok(incoming) => {
                self.counts.messages += 1;
                Ok(incoming.map_or(Received::Taken, Received::Message))
            }
            Err(mut error) => {
                if error.kind() == DecodeErrorKind::InvalidUtf8 {
                    self.replaced = replace_invalid(line, self.decode.max_bytes);
                    match mcp_jsonrpc::decode(&self.replaced, &self.decode) {
                        Ok(incoming) => {
                            self.counts.messages += 1;
                            self.counts.replaced += 1;
                            return Ok(Received::Message(incoming));
                        }
                        // Whichever knows the call that it concerns says more.
                        Err(other) if error.id().is_none() && other.id().is_some() => error = other,
                        Err(_) => {}
                    }
                }
                self.counts.invalid += 1;
                Ok(Received::Invalid { error, excerpt: excerpt(line, self.excerpt_bytes) })
            }
        }
    }
}

fn limit_of_lines(decode: &DecodeLimits) -> Limit {
    Limit::new("max_line_bytes", u64::try_from(decode.max_bytes).unwrap_or(u64::MAX))
}

/// The line with U+FFFD in place of what is no UTF-8; empty if that makes it longer than `max_bytes`.
fn replace_invalid(line: &[u8], max_bytes: usize) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if text.len() > max_bytes {
            return String::new();
        }
    }
    text
}

impl Drop for LineReceiver {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            self.shared.leave_output(output);
        }
        self.shared.begin_close();
    }
}

impl fmt::Debug for LineReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReceiver").field("counts", &self.counts).finish_non_exhaustive()
    }
}
