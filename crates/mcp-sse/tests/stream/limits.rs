//! Every limit below, at and above it, and the streams that try to fill the memory.

use mcp_sse::{Limit, Limits, Parser};

use crate::reference::{self, Item};

const C: usize = 64;

fn small() -> Limits {
    Limits::new().with_max_event_data_bytes(C).with_max_event_id_bytes(C).with_max_event_type_bytes(C)
}

/// Checks what comes of a stream, followed by an event that must always arrive.
fn check(stream: &[u8], broken: Option<Limit>, what: &str) {
    let mut stream = stream.to_vec();
    stream.extend(b"\n\ndata: after\n\n");
    for size in [1, 2, 3, 5, 17, usize::MAX] {
        let outcome = reference::parse(stream.chunks(size), &small());
        let errors: Vec<_> = outcome
            .items
            .iter()
            .filter_map(|item| match item {
                Item::TooLong(limit) => Some(*limit),
                Item::Event { .. } => None,
            })
            .collect();
        assert_eq!(errors, Vec::from_iter(broken), "{what}, in pieces of {size}");
        let events = outcome.items.len() - errors.len();
        assert_eq!(events, if broken.is_some() { 1 } else { 2 }, "{what}, in pieces of {size}");
        assert!(
            matches!(outcome.items.last(), Some(Item::Event { data, .. }) if data == "after"),
            "{what}, in pieces of {size}"
        );
    }
}

/// A field line whose value has `length` bytes.
fn line(field: &str, length: usize) -> Vec<u8> {
    format!("{field}: {}\n", "x".repeat(length)).into_bytes()
}

#[test]
fn event_data_below_at_and_above_its_limit() {
    check(&line("data", C - 1), None, "below");
    check(&line("data", C), None, "at");
    check(&line("data", C + 1), Some(Limit::EventData), "above");
    check(&line("data", 10 * C), Some(Limit::EventData), "far above");
}

#[test]
fn the_line_feeds_between_data_lines_count() {
    let two = |length| [line("data", C / 2), line("data", length)].concat();
    check(&two(C / 2 - 2), None, "below");
    check(&two(C / 2 - 1), None, "at");
    check(&two(C / 2), Some(Limit::EventData), "above");
    check(&b"data\n".repeat(C), None, "empty lines below");
    check(&b"data\n".repeat(C + 1), None, "empty lines at");
    check(&b"data\n".repeat(C + 2), Some(Limit::EventData), "empty lines above");
}

#[test]
fn repaired_data_counts_as_what_it_becomes() {
    let invalid = |length: usize| [b"data: ", &b"\xFF".repeat(length)[..], b"\n"].concat();
    check(&invalid(C / 3), None, "below");
    check(&invalid(C / 3 + 1), Some(Limit::EventData), "above");
    // The last character is finished by the line end.
    let cut = |length: usize| [b"data: ", &b"x".repeat(length)[..], b"\xE2\x82\n"].concat();
    check(&cut(C - 4), None, "cut, below");
    check(&cut(C - 3), None, "cut, at");
    check(&cut(C - 2), Some(Limit::EventData), "cut, above");
}

#[test]
fn event_type_below_at_and_above_its_limit() {
    let event = |length| [line("event", length), b"data: x\n".to_vec()].concat();
    check(&event(C - 1), None, "below");
    check(&event(C), None, "at");
    check(&event(C + 1), Some(Limit::EventType), "above");
    let cut = |length: usize| [b"event: ", &b"x".repeat(length)[..], b"\xE2\x82\ndata: x\n"].concat();
    check(&cut(C - 3), None, "cut, at");
    check(&cut(C - 2), Some(Limit::EventType), "cut, above");
}

#[test]
fn event_id_below_at_and_above_its_limit() {
    let event = |length| [line("id", length), b"data: x\n".to_vec()].concat();
    check(&event(C - 1), None, "below");
    check(&event(C), None, "at");
    check(&event(C + 1), Some(Limit::EventId), "above");
    let cut = |length: usize| [b"id: ", &b"x".repeat(length)[..], b"\xE2\x82\ndata: x\n"].concat();
    check(&cut(C - 3), None, "cut, at");
    check(&cut(C - 2), Some(Limit::EventId), "cut, above");
}

#[test]
fn an_ignored_id_is_measured_up_to_its_nul() {
    let event = |length: usize| {
        [b"id: ", &b"x".repeat(length)[..], b"\0", &b"y".repeat(200)[..], b"\ndata: x\n"].concat()
    };
    check(&event(C), None, "at");
    check(&event(C + 1), Some(Limit::EventId), "above");
}

#[test]
fn so_is_a_character_that_the_nul_cuts() {
    let event = |length: usize| [b"id: ", &b"x".repeat(length)[..], b"\xEF\0\ndata: x\n"].concat();
    check(&event(C - 3), None, "at");
    check(&event(C - 2), Some(Limit::EventId), "above");
}

#[test]
fn the_error_names_limit_and_number() {
    let mut parser = Parser::new(small().with_max_event_data_bytes(3));
    let error = parser.next(&mut &b"data: long\n\n"[..]).expect_err("four bytes");
    assert_eq!((error.limit(), error.max_bytes()), (Limit::EventData, 3));
    assert_eq!(error.to_string(), "event data exceeds the limit of 3 bytes");

    let mut parser = Parser::new(small().with_max_event_id_bytes(3));
    let error = parser.next(&mut &b"id: long\n\n"[..]).expect_err("four bytes");
    assert_eq!(error.to_string(), "event id exceeds the limit of 3 bytes");

    let mut parser = Parser::new(small().with_max_event_type_bytes(3));
    let error = parser.next(&mut &b"event: long\n\n"[..]).expect_err("four bytes");
    assert_eq!(error.to_string(), "event type exceeds the limit of 3 bytes");
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let limits = Limits::default();
    assert_eq!(limits.max_event_data_bytes, 16 * 1024 * 1024);
    assert_eq!(limits.max_event_id_bytes, 64 * 1024);
    assert_eq!(limits.max_event_type_bytes, 64 * 1024);
}

#[test]
fn a_parser_tells_its_limits() {
    assert_eq!(*Parser::new(small()).limits(), small());
}

#[test]
fn a_limit_of_zero_leaves_events_without_data() {
    let limits = Limits::new().with_max_event_data_bytes(0);
    let outcome = reference::parse([&b"data:\n\ndata: x\n\ndata\n\n"[..]], &limits);
    assert_eq!(outcome, reference::decode(b"data:\n\ndata: x\n\ndata\n\n", &limits));
    assert_eq!(outcome.items.len(), 3);
}

/// A resumed stream must not begin with the event that was too long once more.
#[test]
fn the_id_and_retry_of_a_discarded_block_count() {
    let mut stream = line("data", C + 1);
    stream.extend(b"id: 7\nretry: 9\ndata: more\nevent: e\n\n");
    let outcome = reference::parse([&stream[..]], &small());
    assert_eq!(outcome.items, [Item::TooLong(Limit::EventData)]);
    assert_eq!((outcome.last_event_id.as_str(), outcome.retry_ms), ("7", Some(9)));

    let stream = [b"id: 7\n".to_vec(), line("data", C + 1), b"\n".to_vec()].concat();
    assert_eq!(reference::parse([&stream[..]], &small()).last_event_id, "7");
}

#[test]
fn an_id_that_is_too_long_leaves_the_last_event_id() {
    let mut stream = b"id: 1\ndata: a\n\nid: 2\n".to_vec();
    stream.extend(line("id", C + 1));
    stream.extend(b"data: b\n\ndata: c\n\n");
    let outcome = reference::parse([&stream[..]], &small());
    assert_eq!(outcome.items.len(), 3);
    assert_eq!(outcome.items.get(1), Some(&Item::TooLong(Limit::EventId)));
    assert_eq!(outcome.last_event_id, "1");

    let broken_twice = [line("data", C + 1), line("id", C + 1), b"\n".to_vec()].concat();
    let outcome = reference::parse([&broken_twice[..]], &small());
    assert_eq!(outcome.items, [Item::TooLong(Limit::EventData)], "one error for a block");
    assert_eq!(outcome.last_event_id, "");
}

#[test]
fn a_block_reports_its_first_error_only() {
    let stream = [line("event", C + 1), line("id", C + 1), line("data", C + 1), line("data", C + 1)].concat();
    check(&stream, Some(Limit::EventType), "all of them");
}

/// Ten ways to send without an end. Memory is measured elsewhere; here: the only error is a limit,
/// it comes once, and the parser takes everything that is sent.
#[test]
fn endless_lines_cause_one_limit_error_or_none() {
    let limits = Limits::new().with_max_event_data_bytes(1 << 19);
    type Attack = (&'static str, &'static [u8], &'static [u8], Option<Limit>);
    let attacks: [Attack; 10] = [
        ("data", b"data: ", b"x", Some(Limit::EventData)),
        ("event", b"event: ", b"x", Some(Limit::EventType)),
        ("id", b"id: ", b"x", Some(Limit::EventId)),
        ("empty data lines", b"", b"data:\n", Some(Limit::EventData)),
        ("comment", b":", b"x", None),
        ("unknown field", b"unknown: ", b"x", None),
        ("no colon", b"", b"x", None),
        ("retry", b"retry: ", b"9", None),
        ("id and event again and again", b"", b"id: 12345678\nevent: 12345678\n", None),
        ("cr", b"", b"\r", None),
    ];
    for (name, start, repeated, broken) in attacks {
        for size in [1000, 16_384] {
            let chunk = repeated.repeat(size / repeated.len());
            let mut parser = Parser::new(limits);
            let mut errors = Vec::new();
            for mut input in std::iter::once(start).chain(std::iter::repeat_n(&chunk[..], (4 << 20) / size)) {
                loop {
                    match parser.next(&mut input) {
                        Ok(None) => break,
                        Ok(Some(_)) => panic!("{name}: an event"),
                        Err(error) => errors.push(error.limit()),
                    }
                }
                assert!(input.is_empty(), "{name}");
            }
            assert_eq!(errors, Vec::from_iter(broken), "{name}");
        }
    }
}
