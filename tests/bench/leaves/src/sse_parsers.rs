//! Our SSE parser, its peers and the yardsticks, each run over a whole stream that arrives in chunks of one size.
//!
//! Each parser returns the bytes of data that it found, so that all of them can be checked to have done the same.

use std::convert::Infallible;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use crate::rmcp_sse::Limited;

/// More than any event here has.
const ENOUGH_BYTES: usize = 64 << 20;

pub(crate) fn ours(stream: &Bytes, chunk: usize) -> usize {
    let mut parser = mcp_sse::Parser::new(mcp_sse::Limits::default().with_max_event_data_bytes(ENOUGH_BYTES));
    let mut found = 0;
    for mut piece in stream.chunks(chunk) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            black_box(event.last_event_id());
            found += black_box(event.data()).len();
        }
    }
    found
}

pub(crate) fn sse_stream_0_3(stream: &Bytes, chunk: usize) -> usize {
    let events = sse_stream_0_3::SseByteStream::new(chunks(stream, chunk));
    count(events, |event| event.ok().and_then(|event| black_box(event).data).map_or(0, |data| data.len()))
}

pub(crate) fn sse_core(stream: &Bytes, chunk: usize) -> usize {
    let mut decoder =
        sse_core::SseDecoder::with_limit(NonZeroUsize::new(ENOUGH_BYTES).unwrap_or(NonZeroUsize::MIN));
    let mut found = 0;
    for mut piece in stream.chunks(chunk) {
        while let Some(event) = decoder.next(&mut piece) {
            if let Ok(sse_core::SseEvent::Message(message)) = event {
                found += black_box(message).data.len();
            }
        }
    }
    found
}

pub(crate) fn rmcp(stream: &Bytes, chunk: usize) -> usize {
    let events = sse_stream_0_2::SseStream::from_bytes_stream(Limited::new(chunks(stream, chunk)));
    count(events, |event| event.ok().and_then(|event| black_box(event).data).map_or(0, |data| data.len()))
}

pub(crate) fn eventsource_stream(stream: &Bytes, chunk: usize) -> usize {
    let events = eventsource_stream::EventStream::new(chunks(stream, chunk));
    count(events, |event| event.map_or(0, |event| black_box(event).data.len()))
}

/// W: walks the stream from LF to LF and does nothing else.
pub(crate) fn line_walk(stream: &Bytes, chunk: usize) -> usize {
    walk(stream, chunk, |rest| memchr::memchr(b'\n', rest))
}

/// The first part of F: walks from line end to line end.
pub(crate) fn line_end_walk(stream: &Bytes, chunk: usize) -> usize {
    walk(stream, chunk, |rest| memchr::memchr2(b'\n', b'\r', rest))
}

fn walk(stream: &Bytes, chunk: usize, find: impl Fn(&[u8]) -> Option<usize>) -> usize {
    let mut lines = 0;
    for mut rest in stream.chunks(chunk) {
        while let Some(end) = find(rest) {
            lines += 1;
            rest = black_box(&rest[end + 1..]);
        }
    }
    lines
}

/// The second part of F: validates each chunk. One that cuts a character is invalid, but only at its very end.
pub(crate) fn validation(stream: &Bytes, chunk: usize) -> usize {
    stream.chunks(chunk).filter(|piece| black_box(simdutf8::basic::from_utf8(piece).is_ok())).count()
}

/// The third part of F: copies each chunk into a buffer that is large and warm.
pub(crate) fn copy(stream: &Bytes, chunk: usize, buffer: &mut Vec<u8>) -> usize {
    buffer.clear();
    buffer.reserve(stream.len());
    for piece in stream.chunks(chunk) {
        buffer.extend_from_slice(piece);
    }
    black_box(buffer).len()
}

/// The stream as a body hands it over.
pub(crate) fn chunks(
    body: &Bytes,
    chunk: usize,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin + use<'_> {
    let starts = (0..body.len()).step_by(chunk);
    stream::iter(starts.map(move |start| Ok(body.slice(start..body.len().min(start + chunk)))))
}

/// Sums over a stream that never has to wait.
pub(crate) fn count<S: Stream>(events: S, mut bytes: impl FnMut(S::Item) -> usize) -> usize {
    let mut events = pin!(events);
    let mut context = Context::from_waker(Waker::noop());
    let mut found = 0;
    while let Poll::Ready(Some(event)) = events.poll_next_unpin(&mut context) {
        found += bytes(event);
    }
    found
}
