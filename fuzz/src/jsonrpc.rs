//! The bodies for `mcp-jsonrpc`: its decoder against a slow one, its encoder against its decoder, its line framing against a
//! whole split.

use mcp_jsonrpc::{
    DecodeLimits, Incoming, Line, LineDecoder, LineLimits, Message, RawRef, RequestId, decode_slice, encode,
};

#[path = "../../crates/mcp-jsonrpc/tests/differential/check.rs"]
mod check;
#[path = "../../crates/mcp-jsonrpc/tests/differential/reference.rs"]
mod reference;

/// Decodes a text and compares with the reference decoder; then decodes it once more under limits that nearly everything
/// breaks, which must not panic.
pub fn jsonrpc_decode(data: &[u8]) {
    check::check(data);
    let tight = DecodeLimits::default().with_max_depth(2).with_max_batch_items(2).with_max_id_bytes(2);
    if let Err(error) = decode_slice(data, &tight) {
        assert!(error.offset() <= data.len());
        assert!(!error.to_string().chars().any(char::is_control));
    }
}

/// Writes what was read, and reads it back: the same message, in one line. Then writes one made of the bytes themselves.
pub fn jsonrpc_roundtrip(data: &[u8]) {
    let limits = DecodeLimits::default();
    match decode_slice(data, &limits) {
        Ok(Incoming::Single(message)) => rewrite(&message),
        Ok(Incoming::Batch(items)) => items.iter().flatten().for_each(rewrite),
        Err(_) => {}
    }

    let (head, tail) = data.split_at(data.len() / 2);
    let (method, text) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    let id = match tail.first_chunk() {
        Some(bytes) if head.len() % 2 == 0 => RequestId::from(i64::from_le_bytes(*bytes)),
        _ => RequestId::from(text.chars().take(200).collect::<String>()),
    };
    let params = serde_json::json!({ "text": text, method.as_ref(): [text, null] });
    let mut line = Vec::new();
    encode::request(&mut line, &id, &method, Some(&params)).expect("a JSON object");
    one_line(&line);
    let Ok(Incoming::Single(Message::Request(request))) = decode_slice(&line, &limits) else {
        panic!("not the request that was written");
    };
    assert_eq!((&request.id, request.method.as_ref()), (&id, method.as_ref()));
    assert_eq!(request.params.expect("params were written").parse::<serde_json::Value>(), Ok(params));
}

fn rewrite(message: &Message<'_>) {
    let mut line = Vec::new();
    let written = encode::message(&mut line, message);
    if written.is_err() {
        assert!(
            raw_part(message).is_some_and(|raw| raw.validate().is_err()),
            "only invalid JSON cannot be written"
        );
        assert!(line.is_empty());
        return;
    }
    one_line(&line);
    let Ok(Incoming::Single(again)) = decode_slice(&line, &DecodeLimits::default()) else {
        panic!("not the message that was written");
    };
    assert_eq!((again.id(), again.method()), (message.id(), message.method()));
    assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(message));
    if let (Message::Error(again), Message::Error(first)) = (&again, message) {
        assert_eq!((again.error.code, &again.error.message), (first.error.code, &first.error.message));
    }
    // White space between tokens is all that may differ.
    let tokens = |raw: Option<RawRef<'_>>| raw.map(|raw| raw.as_str().replace(['\n', '\r'], " "));
    assert_eq!(tokens(raw_part(&again)), tokens(raw_part(message)));
}

fn raw_part<'a>(message: &Message<'a>) -> Option<RawRef<'a>> {
    match message {
        Message::Request(request) => request.params,
        Message::Notification(note) => note.params,
        Message::Response(response) => Some(response.result),
        Message::Error(response) => response.error.data,
    }
}

fn one_line(line: &[u8]) {
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'), "a raw line break");
}

/// Splits a stream into lines in pieces, and compares with the split of the whole.
///
/// The first byte chooses how the stream is cut, the second one the limit.
pub fn line_framing(data: &[u8]) {
    let [cut, limit, stream @ ..] = data else { return };
    let limit = usize::from(*limit);
    let expected = whole_lines(stream, limit);
    let size = 1 << (cut & 15);
    assert_eq!(read_lines(stream.chunks(size), limit, false), expected, "read in");
    assert_eq!(read_lines(stream.chunks(size), limit, true), expected, "pushed");
    let (head, tail) = stream.split_at(usize::from(*cut).min(stream.len()));
    assert_eq!(read_lines([head, tail], limit, false), expected, "cut once");
}

/// A line, or the length of one that is too long.
type Seen = Result<Vec<u8>, u64>;

fn whole_lines(stream: &[u8], limit: usize) -> Vec<Seen> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let lines = stream.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .filter(|line| line.len() > limit || !line.trim_ascii().is_empty())
        .map(|line| if line.len() > limit { Err(line.len() as u64) } else { Ok(line.to_vec()) })
        .collect()
}

fn read_lines<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize, push: bool) -> Vec<Seen> {
    let mut decoder = LineDecoder::new(LineLimits::default().with_max_line_bytes(limit));
    let mut lines = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let now = if push { piece.len() } else { decoder.spare().len().min(piece.len()) };
            let (bytes, later) = piece.split_at(now);
            if push {
                decoder.push(bytes);
            } else {
                decoder.spare()[..now].copy_from_slice(bytes);
                decoder.commit(now);
            }
            piece = later;
            while let Some(line) = decoder.next_line() {
                lines.push(seen(line));
            }
        }
        assert!(decoder.heap_bytes() <= 256 * 1024, "a small limit needs a small buffer");
    }
    lines.extend(decoder.finish().map(seen));
    lines
}

fn seen(line: Line<'_>) -> Seen {
    match line {
        Line::Text(text) => Ok(text.to_vec()),
        Line::Oversized { bytes, .. } => Err(bytes),
        _ => panic!("a kind of line that this body does not know"),
    }
}
