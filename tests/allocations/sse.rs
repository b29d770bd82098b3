//! S11 to S13: the SSE parser.

use mcp_sse::{Limits, Parser};

use crate::counting::counted;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

fn message(index: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{index:5},"progress":{index:5}}}}}"#
    )
}

/// Streams of each kind that the goal names, and how many events they have.
fn streams() -> Vec<(&'static str, usize, String)> {
    const EVENTS: usize = 500;
    let all = |event: &dyn Fn(usize) -> String| (0..EVENTS).map(event).collect::<String>();
    vec![
        ("LF", EVENTS, all(&|index| format!("event: message\ndata: {}\n\n", message(index)))),
        ("CRLF", EVENTS, all(&|index| format!("event: message\r\ndata: {}\r\n\r\n", message(index)))),
        ("id", EVENTS, all(&|index| format!("event: other\nid: {index:028}\ndata: {}\n\n", message(index)))),
        ("lines", EVENTS, all(&|index| format!("{}\n", "data: of a few words\n".repeat(index % 50 + 1)))),
        (
            "comments",
            EVENTS,
            all(&|index| format!("{}data: {}\n\n", ": ping\n\n".repeat(20), message(index))),
        ),
        ("10 KB", 50, format!("data: {}\n\n", "xé".repeat(3400)).repeat(50)),
    ]
}

/// Events taken out of a stream that comes in chunks.
fn lend(parser: &mut Parser, stream: &str, chunk: usize) -> usize {
    let mut events = 0;
    for mut piece in stream.as_bytes().chunks(chunk) {
        while parser.next(&mut piece).unwrap().is_some() {
            events += 1;
        }
    }
    events
}

fn own(parser: &mut Parser, stream: &str, chunk: usize) -> usize {
    let mut events = 0;
    for mut piece in stream.as_bytes().chunks(chunk) {
        while parser.next_owned(&mut piece).unwrap().is_some() {
            events += 1;
        }
    }
    events
}

#[test]
fn lending_an_event_allocates_nothing_in_steady_state() {
    for (kind, expected, stream) in streams() {
        for chunk in [1, 64, 1400, 16 * KIB, 64 * KIB] {
            let mut parser = Parser::new(Limits::default());
            lend(&mut parser, &stream, chunk);
            let (events, count) = counted(|| lend(&mut parser, &stream, chunk));
            assert_eq!(events, expected, "{kind}, {chunk} B chunks");
            assert_eq!(count.calls(), 0, "{kind}, {chunk} B chunks: {count:?}");
        }
    }
}

#[test]
fn owning_an_event_allocates_once() {
    for (kind, expected, stream) in streams() {
        for chunk in [1, 64, 1400, 16 * KIB, 64 * KIB] {
            let mut parser = Parser::new(Limits::default());
            own(&mut parser, &stream, chunk);
            let (events, count) = counted(|| own(&mut parser, &stream, chunk));
            assert_eq!(events, expected, "{kind}, {chunk} B chunks");
            assert!(count.calls() <= expected, "{kind}, {chunk} B chunks: {count:?}");
        }
    }
}

#[test]
fn a_large_event_peaks_at_a_third_more_than_its_size_and_leaves_nothing_large_behind() {
    for bytes in [MIB, 3 * MIB + 17, 15 * MIB] {
        for (kind, unit) in [("one line", "xé"), ("many lines", "a line of text that goes on\ndata: ")] {
            let data = unit.repeat(bytes / unit.len() + 1);
            let stream = format!("data: {data}\n\n");
            for chunk in [1400, 16 * KIB, 256 * KIB] {
                let mut parser = Parser::new(Limits::default());
                let (length, count) = counted(|| {
                    let mut length = 0;
                    for mut piece in stream.as_bytes().chunks(chunk) {
                        while let Some(event) = parser.next(&mut piece).unwrap() {
                            length = event.data().len();
                        }
                    }
                    // The buffer goes with the call after the event.
                    assert!(parser.next(&mut &b"data: next\n\n"[..]).unwrap().is_some());
                    length
                });
                let most = length * 135 / 100 + chunk;
                assert!(length >= bytes * 3 / 4, "{kind}: {length} of {bytes}");
                assert!(count.peak <= most as isize, "{kind} of {length} B, {chunk} B chunks: {count:?}");
                assert!(
                    count.kept <= (256 * KIB) as isize,
                    "{kind} of {length} B, {chunk} B chunks: {count:?}"
                );
            }
        }
    }
}

/// Sends `start` and then `unit` over and over, eight times the cap of 1 MiB, which is enough to see what grows with it.
fn peak_of_attack(start: &str, unit: &str, chunk: usize) -> usize {
    const CAP: usize = MIB;
    let chunk = unit.repeat((chunk / unit.len()).max(1));
    let ((), count) = counted(|| {
        let mut parser = Parser::new(Limits::default().with_max_event_data_bytes(CAP));
        let rest = std::iter::repeat_n(chunk.as_bytes(), 8 * CAP / chunk.len());
        for mut piece in std::iter::once(start.as_bytes()).chain(rest) {
            // A limit error costs its event; the attack goes on.
            while !matches!(parser.next(&mut piece), Ok(None)) {}
        }
    });
    usize::try_from(count.peak).unwrap()
}

#[test]
fn no_attack_takes_more_than_the_cap_and_a_half() {
    let attacks = [
        ("data", "data: ", "x"),
        ("event", "event: ", "x"),
        ("id", "id: ", "x"),
        ("empty data", "", "data:\n"),
        ("comment", ":", "x"),
        ("unknown field", "unknown: ", "x"),
        ("no colon", "", "x"),
        ("retry", "retry: ", "9"),
        ("id and event", "", "id: 12345678\nevent: abcdefghijk\n"),
        ("CR only", "", "\r"),
    ];
    for (attack, start, unit) in attacks {
        for chunk in [1400, 16 * KIB] {
            let peak = peak_of_attack(start, unit, chunk);
            assert!(peak <= MIB * 3 / 2, "{attack}, {chunk} B chunks: {peak} B");
            if ["comment", "unknown field", "no colon", "retry"].contains(&attack) {
                assert!(peak <= 4 * KIB, "{attack}, {chunk} B chunks: {peak} B");
            }
        }
    }
}
