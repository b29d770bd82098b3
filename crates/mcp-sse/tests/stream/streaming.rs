//! When events come, what survives between them, and what a connection leaves behind.

use std::time::Duration;

use mcp_sse::encode::Block;
use mcp_sse::{Limits, Parser, Reconnect, ReconnectConfig};

use crate::reference::owned_events;

fn parser() -> Parser {
    Parser::new(Limits::new())
}

/// The data of the events that come of one piece.
fn feed(parser: &mut Parser, mut piece: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    loop {
        match parser.next(&mut piece) {
            Ok(Some(event)) => events.push(event.data().to_owned()),
            Ok(None) => return events,
            Err(error) => panic!("no limit is in reach: {error}"),
        }
    }
}

// field:FR-029, seed:E7
#[test]
fn an_event_that_ends_with_cr_is_not_held_back() {
    for stream in [
        &b"data: a\r\r"[..],
        b"data: a\r\n\r",
        b"data: a\n\r",
        b"data: a\n\n",
        b"data: a\r\n\r\n",
        b"data: a\r\n\n",
    ] {
        assert_eq!(feed(&mut parser(), stream), ["a"], "{stream:?}");
        let mut parser = parser();
        let (last, before) = stream.split_last().expect("not empty");
        let early = feed(&mut parser, before);
        if stream.ends_with(b"\r\n") {
            assert_eq!(early, ["a"], "{stream:?} is complete before its last byte");
            assert!(feed(&mut parser, &[*last]).is_empty());
        } else {
            assert!(early.is_empty(), "{stream:?}");
            assert_eq!(feed(&mut parser, &[*last]), ["a"], "{stream:?}");
        }
    }
}

/// How a stream is cut is the network's affair: it is no part of what an event is.
#[test]
fn owned_events_are_equal_however_the_stream_was_cut() {
    for stream in [
        &b"event: message\ndata: a\n\n"[..],
        b"event:message\ndata: a\n\n",
        b"data: a\nevent: message\n\n",
        b"event: other\nevent: message\ndata: a\n\n",
        b"event\ndata: a\n\n",
        b"data: a\n\n",
    ] {
        let whole = owned_events([stream]);
        assert_eq!(whole.len(), 1, "{}", stream.escape_ascii());
        assert_eq!(whole, owned_events([&b"data: a\n\n"[..]]), "{}", stream.escape_ascii());
        for size in 1..stream.len() {
            assert_eq!(whole, owned_events(stream.chunks(size)), "{}, cut by {size}", stream.escape_ascii());
        }
    }
}

#[test]
fn an_lf_after_the_cr_that_ended_an_event_belongs_to_it() {
    let mut parser = parser();
    assert_eq!(feed(&mut parser, b"data: a\r\n\r"), ["a"]);
    assert_eq!(feed(&mut parser, b"\ndata: b\r\n\r"), ["b"]);
    assert_eq!(feed(&mut parser, b"data: c\r\r"), ["c"], "and one that does not come is not missed");
}

// protocol:H-26, seed:S-95b: nothing of a block counts before its blank line.
#[test]
fn the_last_event_id_moves_at_the_blank_line() {
    let mut parser = parser();
    feed(&mut parser, b"id: 1\ndata: a\n");
    assert_eq!((parser.last_event_id(), parser.id_seen()), ("", false));
    feed(&mut parser, b"\n");
    assert_eq!((parser.last_event_id(), parser.id_seen()), ("1", true));
    feed(&mut parser, b"id: 2\n");
    assert_eq!(parser.last_event_id(), "1");
    feed(&mut parser, b"\n");
    assert_eq!(parser.last_event_id(), "2", "a block without data moves it too");
}

#[test]
fn an_event_tells_its_own_id_from_the_one_that_an_earlier_one_set() {
    let stream: &[u8] =
        b"data: a\n\nid: 1\ndata: b\n\ndata: c\n\n\nid: 2\n\ndata: d\n\ndata: e\nid\n\nid: 3\nid: \0\ndata: f\n\ndata: g\n\n";
    let expected = [
        ("a", None, ""),
        ("b", Some("1"), "1"),
        ("c", None, "1"),
        ("d", None, "2"),
        ("e", Some(""), ""),
        ("f", Some("3"), "3"),
        ("g", None, "3"),
    ];
    for size in 1..=stream.len() {
        let (mut lending, mut owning) = (parser(), parser());
        let (mut lent, mut owned) = (Vec::new(), Vec::new());
        for mut chunk in stream.chunks(size) {
            let mut same = chunk;
            while let Some(event) = lending.next(&mut chunk).expect("no limit") {
                lent.push(event.into_owned());
            }
            while let Some(event) = owning.next_owned(&mut same).expect("no limit") {
                owned.push(event);
            }
        }
        assert_eq!(lent, owned, "in pieces of {size}");
        let told: Vec<_> =
            owned.iter().map(|event| (event.data(), event.id(), event.last_event_id())).collect();
        assert_eq!(told, expected, "in pieces of {size}");
    }
}

// protocol:H-29: the wait that was asked for does not depend on the block being finished.
#[test]
fn retry_counts_at_the_end_of_its_line() {
    let mut parser = parser();
    feed(&mut parser, b"retry: 70");
    assert_eq!(parser.retry(), None);
    feed(&mut parser, b"0\r");
    assert_eq!(parser.retry(), Some(Duration::from_millis(700)));
    feed(&mut parser, b"\nretry: 18446744073709551616\n");
    assert_eq!(parser.retry(), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn comments_and_blank_lines_begin_no_block() {
    for (stream, inside) in [
        (&b""[..], false),
        (b"\xEF\xBB\xBF", false),
        (b": x", false),
        (b": x\n", false),
        (b"\n\r\n\r", false),
        (b"d", true),
        (b"data", true),
        (b"data:", true),
        (b"data: x", true),
        (b"data: x\n", true),
        (b"data: x\n: y\n", true),
        (b"data: x\ndata: y\r", true),
        (b"data: x\n\n", false),
        (b"data: x\r\r", false),
        (b"data: x\n\n: y", false),
        (b"event: message\n", true),
        (b"event: message\ndata: x\n\n", false),
        (b"event: e\n\n", false),
        (b"id: 1\n", true),
        (b"id: a\0b\n", true),
        (b"id: 1\n\n", false),
        (b"retry: 1\n", true),
        (b"retry: x\n\n", false),
        (b"unknown", true),
        (b"unknown: x\n", true),
        (b"xy\n", true),
        (b"unknown: x\n\n", false),
    ] {
        for size in [1, 2, usize::MAX] {
            let mut parser = parser();
            for piece in stream.chunks(size) {
                feed(&mut parser, piece);
            }
            assert_eq!(parser.inside_block(), inside, "{} in {size}", stream.escape_ascii());
        }
        let mut parser = parser();
        feed(&mut parser, stream);
        parser.reset();
        assert!(!parser.inside_block());
    }
}

#[test]
fn a_discarded_block_is_inside_until_its_end() {
    let mut parser = Parser::new(Limits::new().with_max_event_data_bytes(3));
    let mut input: &[u8] = b"data: long\ndata: er\n";
    assert!(parser.next(&mut input).is_err());
    assert!(matches!(parser.next(&mut input), Ok(None)));
    assert!(parser.inside_block());
    assert!(feed(&mut parser, b"\n").is_empty());
    assert!(!parser.inside_block());
}

#[test]
fn an_ignored_id_is_not_seen() {
    let mut parser = parser();
    feed(&mut parser, b"id: a\0\ndata: x\n\n");
    assert!(!parser.id_seen());
    feed(&mut parser, b"id\n\n");
    assert!(parser.id_seen(), "an empty one is");
    assert_eq!(parser.last_event_id(), "");
}

// protocol:H-27: a resumed stream goes on from the id that the last connection left.
#[test]
fn a_reset_keeps_the_id_and_retry_and_forgets_the_unfinished_block() {
    let mut parser = parser();
    feed(&mut parser, b"retry: 5\nid: 1\ndata: a\n\nevent: e\nid: 2\ndata: lost\ndata: \xE2\x82");
    parser.reset();
    assert_eq!(parser.last_event_id(), "1");
    assert_eq!(parser.retry(), Some(Duration::from_millis(5)));
    assert!(!parser.id_seen());

    let mut input: &[u8] = b"\xEF\xBB\xBFdata: b\n\n";
    let event = parser.next(&mut input).expect("no limit").expect("an event");
    assert_eq!((event.event_type(), event.data(), event.last_event_id()), ("message", "b", "1"));
}

#[test]
fn a_reset_forgets_half_a_line_end_and_a_discarded_block() {
    let mut parser = Parser::new(Limits::new().with_max_event_data_bytes(3));
    let mut input: &[u8] = b"data: long\r";
    assert!(parser.next(&mut input).is_err());
    assert!(matches!(parser.next(&mut input), Ok(None)));
    parser.reset();
    assert_eq!(feed(&mut parser, b"\ndata: b\n\n"), ["b"]);
}

// seed:S-95d: one bad byte costs one character, not the stream.
#[test]
fn all_events_after_an_invalid_byte_arrive() {
    let mut stream = b"data: \xFF\n\n".to_vec();
    for number in 0..1000 {
        stream.extend(format!("data: {number}\n\n").as_bytes());
    }
    for size in [1, 7, 64, 16_384] {
        let mut parser = parser();
        let events: Vec<_> = stream.chunks(size).flat_map(|piece| feed(&mut parser, piece)).collect();
        assert_eq!(events.len(), 1001, "in pieces of {size}");
        assert_eq!(events.first().map(String::as_str), Some("\u{FFFD}"));
        assert_eq!(events.last().map(String::as_str), Some("999"));
    }
}

// seed:E32: a large event in pieces of any size.
#[test]
fn a_large_event_in_small_pieces() {
    let data = "0123456789abcdé\u{20AC}".repeat(40_000);
    let stream = format!("data: {data}\n\nid: 1\ndata: after\n\n");
    for size in [13, 1400, 16_384, usize::MAX] {
        let mut parser = parser();
        let events: Vec<_> =
            stream.as_bytes().chunks(size).flat_map(|piece| feed(&mut parser, piece)).collect();
        assert!(events == [data.as_str(), "after"], "in pieces of {size}");

        let mut parser = Parser::new(Limits::new());
        let mut owned = Vec::new();
        for mut piece in stream.as_bytes().chunks(size) {
            while let Some(event) = parser.next_owned(&mut piece).expect("no limit is in reach") {
                owned.push(event);
            }
        }
        assert_eq!(owned.len(), 2);
        assert!(owned[0].data() == data && owned[0].event_type() == "message", "in pieces of {size}");
        assert_eq!((owned[1].data(), owned[1].last_event_id()), ("after", "1"));
    }
}

#[test]
fn owned_events_equal_the_lent_ones() {
    let stream: &[u8] = b"event: e\nid: 1\ndata: a\ndata: b\n\n";
    let (mut lending, mut owning) = (parser(), parser());
    let lent = lending.next(&mut { stream }).expect("no limit").expect("an event").into_owned();
    let owned = owning.next_owned(&mut { stream }).expect("no limit").expect("an event");
    assert_eq!(lent, owned);
    assert_eq!((owned.event_type(), owned.data(), owned.last_event_id()), ("e", "a\nb", "1"));
    assert_eq!(owned.into_data(), "a\nb");
}

// Nothing that a peer sent shows in a log by accident.
#[test]
fn debug_shows_sizes_and_no_content() {
    let mut parser = parser();
    let mut input: &[u8] = b"event: kind\nid: secret-1\ndata: secret-2\n\nid: secret-3\ndata: secret-4\n";
    let event = parser.next(&mut input).expect("no limit").expect("an event");
    let shown = format!("{event:?} {:?}", event.into_owned());
    assert!(shown.contains("data_bytes: 8"), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("kind"), "{shown}");
    assert!(matches!(parser.next(&mut input), Ok(None)));
    let shown = format!("{parser:?}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn the_data_of_an_event_in_one_piece_is_lent_from_it() {
    let mut parser = parser();
    let mut input: &[u8] = b"event: e\nid: 1\ndata: lent\n\ndata: two\ndata: lines\n\n";
    let piece = input.as_ptr_range();
    let mut lent = Vec::new();
    while let Some(event) = parser.next(&mut input).expect("no limit") {
        lent.push((event.data().to_owned(), piece.contains(&event.data().as_ptr())));
    }
    assert_eq!(lent, [("lent".to_owned(), true), ("two\nlines".to_owned(), false)]);
}

/// Data is the application's, and an id may carry a session: logs get sizes.
#[test]
fn debug_shows_how_much_there_is_and_not_what() {
    let mut parser = parser();
    let mut input: &[u8] = b"event: secret-type\nid: secret-id\ndata: secret\ndata: data\n\ndata: secret";
    let event = parser.next(&mut input).expect("no limit").expect("an event");
    let mut shown = vec![
        (format!("{event:?}"), "Event { event_type_bytes: 11, data_bytes: 11, last_event_id_bytes: 9 }"),
        (
            format!("{:?}", event.into_owned()),
            "OwnedEvent { event_type_bytes: 11, data_bytes: 11, last_event_id_bytes: 9 }",
        ),
    ];
    assert!(parser.next(&mut input).expect("no limit").is_none());
    shown.push((
        format!("{parser:?}"),
        "buffered_data_bytes: 6, last_event_id_bytes: 9, id_seen: true, retry: None, .. }",
    ));
    let mut schedule = Reconnect::new(ReconnectConfig::default());
    schedule.observe("secret", None);
    shown.push((format!("{schedule:?}"), "retry: None, last_event_id_bytes: 6, attempts: 0, .. }"));
    let block = Block::new().event_type("secret").id("secret-id").data("secret data");
    shown.push((
        format!("{block:?}"),
        "Block { event_type_bytes: Some(6), id_bytes: Some(9), retry: None, data_bytes: Some(11) }",
    ));
    for (debug, end) in shown {
        assert!(debug.ends_with(end), "{debug}");
        assert!(!debug.contains("secret"), "{debug}");
    }
}
