use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Text(Vec<u8>),
    Oversized(u64, Option<RequestId>),
}

fn seen(line: Line<'_>) -> Seen {
    match line {
        Line::Text(text) => Seen::Text(text.to_vec()),
        Line::Oversized { bytes, answer_to } => Seen::Oversized(bytes, answer_to.cloned()),
    }
}

fn oversized(bytes: u64) -> Seen {
    Seen::Oversized(bytes, None)
}

/// What the decoder says, the obvious way: the whole stream cut at every LF.
fn twin(stream: &[u8], max_line_bytes: usize) -> Vec<Seen> {
    let stream = stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream);
    let mut lines = stream.split(|byte| *byte == b'\n');
    lines
        .by_ref()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter_map(|line| {
            if line.len() > max_line_bytes {
                Some(Seen::Oversized(line.len() as u64, AnswerScan::of(line).answer_to().cloned()))
            } else if line.iter().all(u8::is_ascii_whitespace) {
                None
            } else {
                Some(Seen::Text(line.to_vec()))
            }
        })
        .collect()
}

/// Takes all lines, asking beforehand whether there is one or not: a plain line that nobody asked for goes a shorter way.
fn drain(decoder: &mut LineDecoder, asking: bool, into: &mut Vec<Seen>) {
    while !asking || decoder.has_line() {
        let Some(line) = decoder.next_line() else { break };
        into.push(seen(line));
    }
    assert_eq!(decoder.next_line(), None);
}

/// Reads the stream in chunks, in both ways of taking lines.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]> + Clone, max_line_bytes: usize) -> Vec<Seen> {
    let asked = read_in(chunks.clone(), true, max_line_bytes);
    assert_eq!(read_in(chunks, false, max_line_bytes), asked);
    asked
}

/// Reads the stream in chunks, through `spare` and `commit`.
fn read_in<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, asking: bool, max_line_bytes: usize) -> Vec<Seen> {
    let mut decoder = LineDecoder::new(LineLimits::new().with_max_line_bytes(max_line_bytes));
    let mut lines = Vec::new();
    let (mut unfinished, mut at_start) = (Vec::new(), true);
    for mut chunk in chunks {
        while !chunk.is_empty() {
            let spare = decoder.spare();
            let now = spare.len().min(chunk.len());
            spare[..now].copy_from_slice(&chunk[..now]);
            decoder.commit(now);
            unfinished.extend_from_slice(&chunk[..now]);
            chunk = &chunk[now..];
            drain(&mut decoder, asking, &mut lines);
            if let Some(lf) = unfinished.iter().rposition(|byte| *byte == b'\n') {
                unfinished.drain(..=lf);
                at_start = false;
            }
            assert_eq!(decoder.oversized_bytes(), over(&unfinished, at_start, max_line_bytes));
        }
    }
    lines.extend(decoder.finish().map(seen));
    assert_eq!(decoder.finish(), None);
    lines
}

/// How much has come of a line that cannot end within the limit any more.
fn over(unfinished: &[u8], at_start: bool, max_line_bytes: usize) -> Option<u64> {
    let mark = if at_start { BYTE_ORDER_MARK } else { b"" };
    if at_start && mark.starts_with(unfinished) {
        return None;
    }
    let line = unfinished.strip_prefix(mark).unwrap_or(unfinished);
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    (text.len() > max_line_bytes).then_some(line.len() as u64)
}

fn text(line: &str) -> Seen {
    Seen::Text(line.as_bytes().to_vec())
}

fn check_every_cut(stream: &[u8], max_line_bytes: usize, expected: &[Seen]) {
    assert_eq!(twin(stream, max_line_bytes), expected);
    assert_eq!(read([stream], max_line_bytes), expected, "whole");
    assert_eq!(read(stream.chunks(1), max_line_bytes), expected, "byte by byte");
    for cut in 0..stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(read([head, tail], max_line_bytes), expected, "cut at {cut}");
    }
}

// field:FR-003
#[test]
fn lf_and_crlf_end_lines_and_blank_lines_are_skipped() {
    let stream = b"{\"a\":1}\n\r\n{\"b\":2}\r\n\n  \t\n\r\r\n{\"c\"\r:3}\n";
    check_every_cut(stream, 100, &[text("{\"a\":1}"), text("{\"b\":2}"), text("{\"c\"\r:3}")]);
}

// seed:B32
#[test]
fn characters_split_over_reads_are_whole_in_their_line() {
    let stream = "{\"text\":\"é😀語\"}\n{\"x\":\"ß\"}\n".as_bytes();
    check_every_cut(stream, 100, &[text("{\"text\":\"é😀語\"}"), text("{\"x\":\"ß\"}")]);
}

#[test]
fn one_byte_order_mark_is_dropped_at_the_start_only() {
    check_every_cut("\u{feff}a\n\u{feff}b\n".as_bytes(), 100, &[text("a"), text("\u{feff}b")]);
    check_every_cut("\u{feff}\u{feff}a\n".as_bytes(), 100, &[text("\u{feff}a")]);
    check_every_cut("\n\u{feff}a\n".as_bytes(), 100, &[text("\u{feff}a")]);
    check_every_cut("\u{feff}\nb\n".as_bytes(), 100, &[text("b")]);
    check_every_cut("\u{feff}\u{feff}a\n".as_bytes(), 0, &[oversized(4)]);
    check_every_cut(b"\xef\xbb\nb\n", 100, &[Seen::Text(b"\xef\xbb".to_vec()), text("b")]);
}

// seed:B33
#[test]
fn the_limit_holds_below_at_and_above() {
    check_every_cut(
        b"123\n1234\n12345\n123456\nab\n",
        4,
        &[text("123"), text("1234"), oversized(5), oversized(6), text("ab")],
    );
    check_every_cut(
        b"1234\r\n12345\r\n1234\r\r\nab\r\n",
        4,
        &[text("1234"), oversized(5), oversized(5), text("ab")],
    );
    check_every_cut("\u{feff}1234\r\nab\n".as_bytes(), 4, &[text("1234"), text("ab")]);
    check_every_cut("\u{feff}12345\nab\n".as_bytes(), 4, &[oversized(5), text("ab")]);
    check_every_cut(b"       \n    \nab\n", 4, &[oversized(7), text("ab")]);
    check_every_cut(b"a\n\n", 0, &[oversized(1)]);
}

#[test]
fn what_is_left_at_the_end_is_given_by_finish() {
    check_every_cut(b"a\nbc", 4, &[text("a"), text("bc")]);
    check_every_cut(b"a\nbc\r", 4, &[text("a"), text("bc")]);
    check_every_cut(b"a\nbcdef", 4, &[text("a"), oversized(5)]);
    check_every_cut(b"a\nbcdefghijkl\r", 4, &[text("a"), oversized(11)]);
    check_every_cut(b"a\n  ", 4, &[text("a")]);
    check_every_cut("\u{feff}".as_bytes(), 4, &[]);
}

// seed:B33
#[test]
fn an_endless_line_costs_no_memory_and_can_be_seen_coming() {
    let mut decoder = LineDecoder::new(LineLimits::new().with_max_line_bytes(100_000));
    let mut most = 0;
    for _ in 0..10_000 {
        decoder.push(&[b'x'; 1000]);
        assert!(!decoder.has_line());
        most = most.max(decoder.heap_bytes());
    }
    assert_eq!(decoder.oversized_bytes(), Some(10_000_000));
    assert!(most <= 100_000 + 16 * 1024, "{most}");
    decoder.push(b"y\nnext\n");
    assert_eq!(decoder.next_line(), Some(Line::Oversized { bytes: 10_000_001, answer_to: None }));
    assert_eq!(decoder.oversized_bytes(), None);
    assert_eq!(decoder.next_line(), Some(Line::Text(b"next")));
    decoder.spare();
    assert!(decoder.heap_bytes() <= SMALL, "{}", decoder.heap_bytes());
}

#[test]
fn the_buffer_follows_the_length_of_the_line_and_shrinks_after_it() {
    for len in [1_000_000, 3_000_000, 16 * 1024 * 1024] {
        let mut decoder = LineDecoder::new(LineLimits::default());
        let mut sizes = vec![0];
        for piece in vec![b'x'; len].chunks(1000) {
            decoder.push(piece);
            assert_eq!(decoder.next_line(), None);
            // What was written to stays near to what came, however much is reserved.
            let (written, came) = (decoder.buffer.len(), decoder.end);
            assert!(written <= SMALL.max(came + AHEAD), "{written} for {came}");
            if sizes.last() != Some(&decoder.heap_bytes()) {
                sizes.push(decoder.heap_bytes());
            }
        }
        // Each of the few times that it grows it may be copied.
        assert_eq!(sizes[1], FIRST);
        let (last, before) = sizes[2..].split_last().unwrap();
        assert!(before.iter().zip(0..).all(|(size, nth)| *size == SMALL << nth), "{sizes:?}");
        assert!(
            *last <= 2 * (len + MIN_SPARE) && *last <= LineLimits::default().max_line_bytes + 2 * MIN_SPARE
        );
        decoder.push(b"\n");
        assert!(matches!(decoder.next_line(), Some(Line::Text(line)) if line.len() == len));
        decoder.push(b"{}\n");
        assert_eq!(decoder.next_line(), Some(Line::Text(b"{}")));
        decoder.spare();
        assert_eq!(decoder.heap_bytes(), SMALL, "after {len}");
    }
}

#[test]
fn a_very_large_buffer_goes_at_once_and_a_large_one_with_the_next_small_line() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    decoder.push(&vec![b'x'; 3_000_000]);
    decoder.push(b"\n");
    assert!(decoder.next_line().is_some());
    decoder.spare();
    assert_eq!(decoder.heap_bytes(), SMALL);
    decoder.push(&vec![b'x'; 1_000_000]);
    decoder.push(b"\n");
    assert!(decoder.next_line().is_some());
    decoder.spare();
    let kept = decoder.heap_bytes();
    assert!(kept >= 1_000_000, "{kept}");
    decoder.push(&vec![b'x'; 1_000_000]);
    decoder.push(b"\n");
    assert!(decoder.next_line().is_some());
    assert_eq!(decoder.heap_bytes(), kept);
}

/// Otherwise up to a quarter of it would move when the end of the buffer is reached.
#[test]
fn a_long_line_starts_at_the_front_of_a_large_buffer() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    let line = vec![b'x'; 1_000_000];
    for _ in 0..3 {
        decoder.push(&line);
        decoder.push(b"\nstart");
        assert_eq!(decoder.next_line(), Some(Line::Text(&line)));
        assert_eq!(decoder.next_line(), None);
        decoder.spare();
        assert_eq!((decoder.start, decoder.scanned, decoder.end), (0, 5, 5));
        decoder.push(b"\n");
        assert_eq!(decoder.next_line(), Some(Line::Text(b"start")));
    }
}

#[test]
fn the_buffer_stays_at_its_first_size_until_a_read_leaves_an_incomplete_line() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    for _ in 0..1000 {
        // One message, and as many as a read can bring.
        for lines in [&b"{}\n"[..], &[b"{}\n".repeat(MIN_SPARE / 3 - 1), b"{ }\n".to_vec()].concat()] {
            decoder.push(lines);
            while decoder.next_line().is_some() {}
        }
        assert_eq!(decoder.spare().len(), MIN_SPARE);
    }
    assert_eq!(decoder.heap_bytes(), MIN_SPARE);
    decoder.push(b"{");
    decoder.spare();
    assert_eq!(decoder.heap_bytes(), SMALL);
    decoder.push(b"}\n");
    assert_eq!(decoder.next_line(), Some(Line::Text(b"{}")));
    decoder.spare();
    assert_eq!(decoder.heap_bytes(), SMALL, "such reads are likely to come again");
}

#[test]
fn lines_that_are_not_taken_are_kept() {
    let mut decoder = LineDecoder::new(LineLimits::new().with_max_line_bytes(1000));
    let mut stream = Vec::new();
    for i in 0..20_000 {
        let line = format!("line {i}\n");
        decoder.push(line.as_bytes());
        assert!(!decoder.spare().is_empty());
        stream.extend_from_slice(line.as_bytes());
    }
    let mut lines = Vec::new();
    drain(&mut decoder, true, &mut lines);
    assert_eq!(lines, twin(&stream, 1000));
}

#[test]
fn commit_takes_no_more_than_there_is() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    let room = decoder.spare().len();
    decoder.spare().fill(b'\n');
    decoder.commit(usize::MAX);
    assert_eq!(decoder.next_line(), None);
    assert!(decoder.spare().len() >= room.min(MIN_SPARE));
}

#[test]
fn bytes_are_searched_once_however_they_are_cut() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    for _ in 0..300_000 {
        decoder.push(b"x");
        assert!(!decoder.has_line());
        assert_eq!(decoder.scanned, decoder.end);
        assert_eq!(decoder.start, 0);
    }
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(BYTE_ORDER_MARK.to_vec()),
        Just(b"{\"jsonrpc\":\"2.0\"}\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
        (0..50_usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        (8000..9000_usize).prop_map(|len| vec![b'z'; len]),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_chunking_gives_the_lines_of_the_whole(
        stream in pieces(),
        cuts in proptest::collection::vec(1..9000_usize, 1..20),
        limit in prop_oneof![0..40_usize, 7990..9010_usize, Just(1 << 20)],
    ) {
        let expected = twin(&stream, limit);
        prop_assert_eq!(&read([stream.as_slice()], limit), &expected);
        let mut rest = stream.as_slice();
        let mut chunks = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, later) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = later;
        }
        prop_assert_eq!(&read(chunks.iter().copied(), limit), &expected);

        // Pushed and drained only now and then, so that lines wait while the buffer moves.
        let mut decoder = LineDecoder::new(LineLimits::new().with_max_line_bytes(limit));
        let mut lines = Vec::new();
        for (chunk, i) in chunks.iter().zip(0..) {
            decoder.push(chunk);
            if i % 3 == 0 {
                lines.extend(decoder.next_line().map(seen));
            }
        }
        drain(&mut decoder, true, &mut lines);
        lines.extend(decoder.finish().map(seen));
        prop_assert_eq!(&lines, &expected);
    }
}

#[test]
fn debug_shows_sizes_only() {
    let mut decoder = LineDecoder::new(LineLimits::default());
    decoder.push(b"{\"token\":\"s3cret\"}");
    let shown = format!("{decoder:?}");
    assert!(shown.contains("received_bytes: 18,"), "{shown}");
    assert!(!shown.contains("115, 51, 99"), "{shown}");
    decoder.push(b"\n");
    assert_eq!(format!("{:?}", decoder.next_line()), "Some(Text(18 bytes))");
    assert_eq!(format!("{:?}", Line::Oversized { bytes: 9, answer_to: None }), "Oversized(9 bytes)");
}

// seed:B33, protocol:T-05
#[test]
fn a_dropped_line_tells_which_call_it_answers() {
    let line = br#"{"result":{"text":"\"id\":1"},"jsonrpc":"2.0","id":7}"#;
    let answer = Seen::Oversized(line.len() as u64, Some(7.into()));
    let stream = [&line[..], b"\r\nab\n", line, b" x\n"].concat();
    let noise = oversized(line.len() as u64 + 2);
    check_every_cut(&stream, 20, &[answer.clone(), text("ab"), noise]);
    check_every_cut(&[BYTE_ORDER_MARK, line, b"\n"].concat(), 4, std::slice::from_ref(&answer));
    check_every_cut(line, 4, &[answer]);
}
