//! J7: lines out of a byte stream.

use mcp_jsonrpc::{Line, LineDecoder, LineLimits};

use crate::counting::counted;

const MIB: usize = 1024 * 1024;

/// Reads a stream in pieces of at most so many bytes; lines within the limit, and lines over it.
fn read(decoder: &mut LineDecoder, mut stream: &[u8], read_bytes: usize) -> (usize, usize) {
    let (mut texts, mut oversized) = (0, 0);
    while !stream.is_empty() {
        let spare = decoder.spare();
        let now = stream.len().min(spare.len()).min(read_bytes);
        spare[..now].copy_from_slice(&stream[..now]);
        decoder.commit(now);
        stream = &stream[now..];
        while let Some(line) = decoder.next_line() {
            match line {
                Line::Text(_) => texts += 1,
                _ => oversized += 1,
            }
        }
    }
    (texts, oversized)
}

#[test]
fn a_line_allocates_nothing_in_steady_state() {
    for (line_bytes, lines) in [(150, 1000), (10_000, 100), (MIB, 4)] {
        let stream = ("x".repeat(line_bytes - 1) + "\n").repeat(lines);
        for read_bytes in [777, 8 * 1024, 64 * 1024] {
            let mut decoder = LineDecoder::new(LineLimits::default());
            read(&mut decoder, stream.as_bytes(), read_bytes);
            let (found, count) = counted(|| read(&mut decoder, stream.as_bytes(), read_bytes));
            assert_eq!(found, (lines, 0));
            assert_eq!(count.calls(), 0, "lines of {line_bytes} B, reads of {read_bytes} B: {count:?}");
        }
    }
}

#[test]
fn the_cap_holds_before_anything_is_buffered() {
    let endless = [vec![b'x'; 32 * MIB], b"\nnext\n".to_vec()].concat();
    for read_bytes in [777, 8 * 1024, 64 * 1024] {
        let (found, count) = counted(|| {
            let mut decoder = LineDecoder::new(LineLimits::default().with_max_line_bytes(MIB));
            read(&mut decoder, &endless, read_bytes)
        });
        assert_eq!(found, (1, 1));
        assert!(count.peak <= (MIB * 3 / 2) as isize, "reads of {read_bytes} B: {count:?}");
    }
}
