//! Counts the bytes that are searched, validated and moved, so that a test can hold the work against the input without a
//! clock.

use std::cell::Cell;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// So many bytes were looked at or moved.
pub(crate) fn add(bytes: usize) {
    BYTES.set(BYTES.get() + bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Parser};

    /// How many bytes of work a stream causes that comes in pieces of this size, and how many events.
    fn work(stream: &[u8], piece: usize) -> (usize, usize) {
        BYTES.set(0);
        let mut parser = Parser::new(Limits::default());
        let mut events = 0;
        for mut input in stream.chunks(piece) {
            while parser.next(&mut input).unwrap().is_some() {
                events += 1;
            }
        }
        (BYTES.get(), events)
    }

    /// seed:S-95g, seed:E32: however a stream is cut and whatever it is made of, each byte is dealt with a few times. Searching a
    /// buffer from its start with each piece would look at each byte of the finest cut here a hundred thousand times.
    #[test]
    fn parsing_is_linear_in_the_length_of_the_stream() {
        const BYTES: usize = 1 << 18;
        let whole = format!("data: {}\n\n", "x".repeat(BYTES));
        let lines = format!("{}\n", "data: 0123456789\r\n".repeat(BYTES / 18));
        let comments = format!(":{}\ndata: x\n\n", "c".repeat(BYTES));
        let unknown = format!("{}\ndata: x\n\n", "n".repeat(BYTES));
        let wide = format!("data: {}\n\n", "€".repeat(BYTES / 3));
        let broken = [b"data: ".as_slice(), &vec![0xFF; BYTES], b"\n\n"].concat();
        let mut streams: Vec<&[u8]> =
            [&whole, &lines, &comments, &unknown, &wide].map(String::as_bytes).into();
        streams.push(&broken);
        for (nth, stream) in streams.into_iter().enumerate() {
            for piece in [1, 7, 64, 1400, 16 * 1024, stream.len()] {
                let (work, events) = work(stream, piece);
                assert_eq!(events, 1, "stream {nth} in pieces of {piece}");
                assert!(work <= 24 * BYTES, "stream {nth} in pieces of {piece}: {work}");
                assert!(nth == 2 || nth == 3 || work >= BYTES, "the work is counted: {work}");
            }
        }
    }
}
