//! The bodies for `mcp-sse`: its parser against a slow decoder, and its encoder against its parser.

use std::time::Duration;

use mcp_sse::Limits;
use mcp_sse::encode::{self, Block};

#[path = "../../crates/mcp-sse/tests/stream/reference.rs"]
mod reference;

use reference::{Item, Outcome};

/// Reads a stream whole and in pieces, lent and owned, under loose and tight limits, and compares
/// each with the slow decoder.
///
/// The first byte chooses how the rest is cut and how tight the limits are.
pub fn sse_bytes(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let loose = Limits::new();
    let expected = reference::decode(stream, &loose);
    assert_eq!(reference::parse([stream], &loose), expected, "whole");
    assert_eq!(reference::parse(pieces(stream, choice), &loose), expected, "in pieces");
    assert_eq!(reference::parse_owned(pieces(stream, choice), &loose), expected, "owned");
    assert_eq!(
        reference::owned_events([stream]),
        reference::owned_events(pieces(stream, choice)),
        "owned, compared"
    );
    assert!(!expected.last_event_id.contains(['\0', '\r', '\n']), "an id that cannot be sent back");

    // Only a line that has ended breaks its limit in the slow decoder.
    let mut finished = stream.to_vec();
    finished.push(b'\n');
    let scale = usize::from(choice >> 4);
    let tight = Limits::new()
        .with_max_event_data_bytes(scale * 7)
        .with_max_event_id_bytes(scale * 2)
        .with_max_event_type_bytes(scale);
    let expected = reference::decode(&finished, &tight);
    assert_eq!(reference::parse([&finished[..]], &tight), expected, "whole, tight");
    assert_eq!(reference::parse(pieces(&finished, choice), &tight), expected, "in pieces, tight");
    assert_eq!(reference::parse_owned(pieces(&finished, choice), &tight), expected, "owned, tight");
}

/// Cuts a stream into pieces of changing sizes; empty ones are among them.
fn pieces(stream: &[u8], choice: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = stream;
    let mut state = u32::from(choice);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let largest = 1 << (choice & 7);
        let size = (state >> 16) as usize % (largest + 1);
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        Some(piece)
    })
}

/// Writes blocks and reads them back.
///
/// A block ends with U+001E, its parts with U+001F: comment, type, id, retry, data. Parts that are
/// missing are not set.
pub fn sse_encode_roundtrip(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut stream = Vec::new();
    let mut expected = Outcome::default();
    for record in text.split('\u{1E}') {
        let mut parts = record.split('\u{1F}');
        let comment = parts.next().unwrap_or_default();
        if !comment.is_empty() {
            encode::comment(&mut stream, comment);
        }
        let mut block = Block::new();
        let event_type = parts.next();
        if let Some(event_type) = event_type {
            block = block.event_type(event_type);
        }
        let id = parts.next();
        if let Some(id) = id {
            block = block.id(id);
        }
        let retry_ms = parts.next().and_then(|text| text.parse::<u64>().ok());
        if let Some(millis) = retry_ms {
            block = block.retry(Duration::from_millis(millis));
        }
        let data = parts.next();
        if let Some(data) = data {
            block = block.data(data);
        }

        let writable = !event_type.unwrap_or_default().contains(['\r', '\n'])
            && !id.unwrap_or_default().contains(['\r', '\n', '\0']);
        let before = stream.len();
        let written = block.write(&mut stream);
        assert_eq!(written.is_ok(), writable, "{written:?}");
        if written.is_err() {
            assert_eq!(stream.len(), before, "a refused block leaves nothing behind");
            continue;
        }
        expected.retry_ms = retry_ms.or(expected.retry_ms);
        if let Some(id) = id {
            id.clone_into(&mut expected.last_event_id);
        }
        if let Some(data) = data {
            expected.items.push(Item::Event {
                event_type: event_type.filter(|name| !name.is_empty()).unwrap_or("message").to_owned(),
                data: data.replace("\r\n", "\n").replace('\r', "\n"),
                last_event_id: expected.last_event_id.clone(),
            });
        }
    }
    let limits = Limits::new();
    assert_eq!(reference::parse([&stream[..]], &limits), expected, "whole");
    assert_eq!(reference::parse(stream.chunks(7), &limits), expected, "in pieces");
}
