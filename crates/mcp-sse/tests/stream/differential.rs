//! The parser against the slow decoder, on random streams in random pieces.

use mcp_sse::{Limits, Parser};
use proptest::prelude::*;

use crate::reference::{self, Item};

/// What streams are made of; the rest is random bytes.
const FRAGMENTS: &[&[u8]] = &[
    b"data",
    b"event",
    b"id",
    b"retry",
    b"data:",
    b"data: ",
    b"event: ",
    b"id: ",
    b"retry: ",
    b"event: message",
    b"data: x\n\n",
    b"data: x\r\n\r\n",
    b":",
    b": ",
    b" ",
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\r",
    b"\0",
    b"\xEF\xBB\xBF",
    b"\xEF",
    b"\xBB",
    b"\xE2\x82\xAC",
    b"\xE2",
    b"\x82",
    b"\xF0\x9F\x98\x80",
    b"\xF0\x9F",
    b"\xFF",
    b"a",
    b"12",
    b"18446744073709551615",
    b"{\"jsonrpc\":\"2.0\"}",
];

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        12 => proptest::sample::select(FRAGMENTS).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
        1 => (0..40_usize).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec(fragment, 0..60).prop_map(|fragments| fragments.concat())
}

/// Cuts a stream into pieces of these sizes, in a cycle; a size of 0 is an empty piece.
fn pieces<'s>(mut stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at((*size).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let some = prop_oneof![4 => 0..4_usize, 2 => 4..40_usize, 1 => Just(10_000)];
    // The last size keeps a cycle of nothing but empty pieces from running for ever.
    (proptest::collection::vec(some, 0..8), 1..8_usize).prop_map(|(mut sizes, last)| {
        sizes.push(last);
        sizes
    })
}

/// Texts that outgrow every internal step: 16 KiB, and pieces of 512 bytes behind that.
#[test]
fn long_texts_agree_at_their_limit_and_below() {
    let fragments: [&[u8]; 7] =
        [b"abc", "é€".as_bytes(), "\u{1F600}".as_bytes(), b"\xE2\x82", b"\xFF", b"\ndata: ", b"\r\ndata:"];
    let mut stream = b"data: ".to_vec();
    for number in 0..15_000_usize {
        // No pattern that a power of two divides.
        stream.extend(fragments[number * number % 89 % fragments.len()]);
    }
    stream.extend(b"\n\ndata: after\n\n");
    let decoded = reference::decode(&stream, &Limits::new());
    let Some(Item::Event { data, .. }) = decoded.items.first() else {
        panic!("an event: {decoded:?}");
    };
    assert!(data.len() > 40_000, "{}", data.len());
    for max in [data.len(), data.len() - 1, data.len() / 2] {
        let limits = Limits::new().with_max_event_data_bytes(max);
        let expected = reference::decode(&stream, &limits);
        assert_eq!(expected.items.len(), 2);
        for size in [1, 2, 7, 511, 512, 513, 4095, 16_383, 16_384, 16_385, usize::MAX] {
            assert!(reference::parse(stream.chunks(size), &limits) == expected, "{max}, in pieces of {size}");
            assert!(reference::parse_owned(stream.chunks(size), &limits) == expected, "{max}, owned, {size}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parser_agrees_with_the_reference(stream in stream(), sizes in sizes()) {
        let expected = reference::decode(&stream, &Limits::new());
        prop_assert_eq!(reference::parse([&stream[..]], &Limits::new()), expected.clone(), "whole");
        prop_assert_eq!(reference::parse(pieces(&stream, &sizes), &Limits::new()), expected.clone(), "in pieces");
        prop_assert_eq!(reference::parse_owned(pieces(&stream, &sizes), &Limits::new()), expected, "owned");
        let whole = reference::owned_events([&stream[..]]);
        prop_assert_eq!(&whole, &reference::owned_events(pieces(&stream, &sizes)), "owned, compared as such");
        prop_assert_eq!(&whole, &reference::owned_events(stream.chunks(1)), "and byte by byte");
    }

    #[test]
    fn and_reports_the_same_limits(
        mut stream in stream(),
        sizes in sizes(),
        data in prop_oneof![0..30_usize, 30..400_usize],
        id in 0..8_usize,
        event_type in 0..8_usize,
    ) {
        let limits = Limits::new()
            .with_max_event_data_bytes(data)
            .with_max_event_id_bytes(id)
            .with_max_event_type_bytes(event_type);
        stream.push(b'\n');
        let expected = reference::decode(&stream, &limits);
        prop_assert_eq!(reference::parse([&stream[..]], &limits), expected.clone(), "whole");
        prop_assert_eq!(reference::parse(pieces(&stream, &sizes), &limits), expected, "in pieces");
    }

    /// A second connection on the same parser is a new stream, but for the id and `retry`.
    #[test]
    fn a_reset_parser_starts_anew(first in stream(), second in stream()) {
        let mut parser = Parser::new(Limits::new());
        let mut input = &first[..];
        while let Ok(Some(_)) = parser.next(&mut input) {}
        parser.reset();
        let kept = parser.last_event_id().to_owned();
        let mut events = Vec::new();
        let mut input = &second[..];
        while let Ok(Some(event)) = parser.next(&mut input) {
            events.push((event.event_type().to_owned(), event.data().to_owned(), event.last_event_id().to_owned()));
        }

        // The same as a fresh parser on a stream that begins with that id.
        let mut fresh = format!("id: {kept}\n\n").into_bytes();
        fresh.extend(second.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&second));
        // A mark that a fresh parser would not strip there is an unknown field either way.
        let expected: Vec<_> = reference::decode(&fresh, &Limits::new())
            .items
            .into_iter()
            .filter_map(|item| match item {
                Item::Event { event_type, data, last_event_id } => Some((event_type, data, last_event_id)),
                Item::TooLong(_) => None,
            })
            .collect();
        prop_assert_eq!(events, expected);
    }
}
