//! What a transport delivers for each message of the peer.

use std::borrow::Cow;

use mcp_jsonrpc::{DecodeError, DecodeLimits, Incoming, PlainAnswer, RequestId};

use crate::Limit;

/// One message of the peer, its envelope already decoded.
///
/// [`Invalid`](Self::Invalid), [`OversizedStart`](Self::OversizedStart) and [`Oversized`](Self::Oversized) do not end the
/// connection: they are reports. The owner counts them, fails the request that `DecodeError::id` or `answer_to` names, if any,
/// and goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received<'a> {
    /// The stream was cut and reopened, and the server gives its events no ids: messages in between may be lost. Only on a stream that
    /// belongs to no single request.
    Gap,
    /// A well-formed envelope, or a batch of them; whether the negotiated revision allows batches is the owner's business.
    Message(Incoming<'a>),
    /// Bytes that are not a JSON-RPC envelope: log output on standard output, broken JSON, invalid UTF-8.
    #[non_exhaustive]
    Invalid {
        /// What is wrong, with the request id where one could be recovered.
        error: DecodeError,
        /// The beginning of it, invalid UTF-8 replaced, cut to the configured number of bytes. Untrusted: show it through
        /// [`Untrusted`](crate::Untrusted).
        excerpt: Cow<'a, str>,
    },
    /// A message above the size limit. It was dropped whole while it was read.
    #[non_exhaustive]
    Oversized {
        /// How long it was, without its terminator.
        bytes: u64,
        /// The limit.
        limit: Limit,
        /// The request that it answers, if that is certain (`mcp_jsonrpc::AnswerScan`).
        answer_to: Option<RequestId>,
        /// Whether [`OversizedStart`](Self::OversizedStart) has reported it already.
        announced: bool,
    },
    /// The message that is being read exceeds the size limit, and its end, which may never come, has not been read yet.
    /// Reported once per message, as soon as it is known; [`Oversized`](Self::Oversized) follows at its end. A message that
    /// arrived together with its end is reported only there. For lines, and for events on a stream that belongs to no single
    /// request.
    #[non_exhaustive]
    OversizedStart {
        /// How much of it has come, above the limit.
        bytes: u64,
        /// The limit.
        limit: Limit,
    },
    /// An answer that the [`Taker`] took. Does not occur in methods without a `Taker`.
    Taken,
}

/// Is shown each plain answer before its result is read, and says whether it has taken it: then nothing else is done with
/// the message. Where it returns `false` it must have done nothing, and the message goes the usual way.
///
/// It must keep the promise of [`plain_answer`](mcp_jsonrpc::plain_answer): what is taken was parsed as one JSON value.
pub type Taker<'t> = &'t mut (dyn FnMut(&PlainAnswer<'_>) -> bool + Send);

/// Shows a message to the taker and decodes it if it was not taken; `None` if it was.
#[cfg_attr(
    not(any(feature = "stdio", feature = "http")),
    allow(dead_code, reason = "no transport, no message")
)]
pub(crate) fn take_or_decode<'a>(
    text: &'a str,
    limits: &DecodeLimits,
    take: Taker<'_>,
) -> Result<Option<Incoming<'a>>, DecodeError> {
    if mcp_jsonrpc::plain_answer(text, limits).is_some_and(|answer| take(&answer)) {
        return Ok(None);
    }
    mcp_jsonrpc::decode(text, limits).map(Some)
}

/// [`take_or_decode`] for bytes, which are checked to be UTF-8 first.
#[cfg_attr(
    not(any(feature = "stdio", feature = "http")),
    allow(dead_code, reason = "no transport, no message")
)]
pub(crate) fn take_or_decode_slice<'a>(
    bytes: &'a [u8],
    limits: &DecodeLimits,
    take: Taker<'_>,
) -> Result<Option<Incoming<'a>>, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => take_or_decode(text, limits, take),
        Err(_) => mcp_jsonrpc::decode_slice(bytes, limits).map(Some),
    }
}

/// The first `max_bytes` of `bytes` as text; borrows where they are valid UTF-8.
#[cfg_attr(
    not(any(feature = "stdio", feature = "http")),
    allow(dead_code, reason = "no transport, no excerpt")
)]
pub(crate) fn excerpt(bytes: &[u8], max_bytes: usize) -> Cow<'_, str> {
    let mut cut = max_bytes.min(bytes.len());
    // A character that the cut falls into would show as a replacement character the peer did not send.
    while cut < bytes.len() && cut > 0 && bytes.get(cut).is_some_and(|byte| byte & 0xC0 == 0x80) {
        cut -= 1;
    }
    String::from_utf8_lossy(bytes.get(..cut).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_cut_on_a_character_boundary() {
        let check = |bytes: &[u8], max, expected: &str| assert_eq!(excerpt(bytes, max), expected);
        check(b"abc", 10, "abc");
        check(b"abc", 2, "ab");
        check("aé".as_bytes(), 2, "a");
        check("aé".as_bytes(), 3, "aé");
        check(b"a\xffb", 10, "a\u{fffd}b");
        check(b"", 0, "");
        check(b"\x80\x80\x80", 1, "");
    }
}
