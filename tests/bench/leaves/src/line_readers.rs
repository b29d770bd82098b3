//! J7: lines out of a byte stream, read 8 KiB at a time.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mcp_jsonrpc::{LineDecoder, LineLimits};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::contest::Contest;
use crate::goals::Goals;

const READ_BYTES: usize = 8 << 10;

pub(crate) fn measure(goals: &mut Goals) {
    for (name, line_bytes, lines, against_rmcp) in
        [("150 B", 150, 2000, 3.0), ("10 KB", 10_000, 100, 6.0), ("1 MB", 1_000_000, 4, 4.5)]
    {
        let line = "x".repeat(line_bytes - 1) + "\n";
        let stream = line.repeat(lines).into_bytes();
        let stream = stream.as_slice();
        let (mut decoder, mut line, mut rmcps_line) =
            (LineDecoder::new(LineLimits::default()), Vec::new(), Vec::new());
        assert_eq!(ready(ours(stream, &mut decoder)), lines);
        assert_eq!(ready(rmcp(stream, &mut rmcps_line)), lines);
        let times = Contest::new()
            .enter("ours", || ready(ours(black_box(stream), &mut decoder)))
            .enter("rmcp", || ready(rmcp(black_box(stream), &mut rmcps_line)))
            .enter("read_until", || ready(read_until(black_box(stream), &mut line)))
            .run();
        let what = format!("lines of {name}");
        goals.faster("J7", &format!("{what}, against rmcp"), times.ratio("rmcp", "ours"), against_rmcp);
        goals.faster(
            "J7",
            &format!("{what}, against tokio's read_until"),
            times.ratio("read_until", "ours"),
            0.85,
        );
    }
}

/// Runs what never has to wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory is always ready"),
    }
}

async fn ours(mut stream: &[u8], decoder: &mut LineDecoder) -> usize {
    let mut lines = 0;
    loop {
        while let Some(line) = decoder.next_line() {
            black_box(line);
            lines += 1;
        }
        let spare = decoder.spare();
        let room = spare.len().min(READ_BYTES);
        let Ok(read @ 1..) = stream.read(&mut spare[..room]).await else { return lines };
        decoder.commit(read);
    }
}

async fn read_until(stream: &[u8], line: &mut Vec<u8>) -> usize {
    let mut reader = BufReader::with_capacity(READ_BYTES, stream);
    let mut lines = 0;
    loop {
        line.clear();
        let Ok(1..) = reader.read_until(b'\n', line).await else { return lines };
        black_box(&line);
        lines += 1;
    }
}

/// rmcp's own reader: looks at one byte after the other for the LF, and copies what lies before it into the line.
async fn rmcp(stream: &[u8], line: &mut Vec<u8>) -> usize {
    const MAX_LINE_BYTES: usize = 16 << 20;
    let mut reader = BufReader::with_capacity(READ_BYTES, stream);
    let mut lines = 0;
    loop {
        let Ok(available @ [_, ..]) = reader.fill_buf().await else { return lines };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        if line.len().saturating_add(taken) > MAX_LINE_BYTES {
            panic!("no line is so long");
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if end.is_some() {
            black_box(&line);
            line.clear();
            lines += 1;
        }
    }
}
