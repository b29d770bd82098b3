//! Lines around the limit in every mixture and however they are cut, beside a reader that does the same the obvious way.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_jsonrpc::AnswerScan;
use mcp_transport::Received;
use mcp_transport::stdio::{LineConnection, LineLimits, LineReceiver};
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

use super::support::patient;

const LIMIT: usize = 64;

/// Hands over one piece a read.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            into.put_slice(&piece);
        }
        Poll::Ready(Ok(()))
    }
}

/// What a receiver tells.
#[derive(Debug, PartialEq)]
enum Told {
    Message,
    Invalid,
    Start(u64),
    Oversized { bytes: u64, answers: bool, announced: bool },
}

async fn told(receiver: &mut LineReceiver) -> Vec<Told> {
    let mut told = Vec::new();
    while let Ok(received) = receiver.recv().await {
        told.push(match received {
            Received::Message(_) => Told::Message,
            Received::Invalid { .. } => Told::Invalid,
            Received::OversizedStart { bytes, limit, .. } => {
                assert_eq!((limit.name, limit.value), ("max_line_bytes", LIMIT as u64));
                Told::Start(bytes)
            }
            Received::Oversized { bytes, answer_to, announced, .. } => {
                Told::Oversized { bytes, answers: answer_to.is_some(), announced }
            }
            other => panic!("{other:?}"),
        });
    }
    told
}

/// The same from the pieces, looked at as a whole after each.
fn twin(pieces: &[Vec<u8>]) -> Vec<Told> {
    let (mut told, mut unfinished, mut announced) = (Vec::new(), Vec::new(), false);
    let ended = [b"\n".to_vec()];
    for piece in pieces.iter().chain(&ended) {
        unfinished.extend_from_slice(piece);
        while let Some(lf) = unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unfinished.drain(..=lf).collect();
            let line = &line[..lf];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.len() > LIMIT {
                let answers = AnswerScan::of(line).answer_to().is_some();
                told.push(Told::Oversized { bytes: line.len() as u64, answers, announced });
                announced = false;
            } else if mcp_jsonrpc::decode_slice(line, &Default::default()).is_ok() {
                told.push(Told::Message);
            } else if !line.iter().all(u8::is_ascii_whitespace) {
                told.push(Told::Invalid);
            }
        }
        let certain = unfinished.strip_suffix(b"\r").unwrap_or(&unfinished);
        if certain.len() > LIMIT && !announced {
            announced = true;
            told.push(Told::Start(unfinished.len() as u64));
        }
    }
    told
}

/// A line of about the limit, or far above it: a notification, an answer, or noise.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![
        4 => LIMIT - 2..LIMIT + 4,
        1 => 0..20_usize,
        2 => 3 * LIMIT..5 * LIMIT,
        1 => Just(2_000_usize),
    ];
    let end = prop_oneof![3 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r\r\n")];
    (bytes, 0..3_usize, end).prop_map(|(bytes, kind, end)| {
        let (before, after) = [
            (r#"{"jsonrpc":"2.0","method":""#, r#""}"#),
            (r#"{"jsonrpc":"2.0","id":7,"result":""#, r#""}"#),
            ("", ""),
        ][kind];
        let filler = "x".repeat(bytes.saturating_sub(before.len() + after.len()));
        format!("{before}{filler}{after}{end}").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// auth:LIM-08, seed:B33: each line above the limit is told once, and where its end did not come with what made that certain, twice;
    /// no other line is touched; what is cut off at the end of the stream is a line.
    #[test]
    fn lines_around_the_limit_are_told_in_their_order(
        lines in prop::collection::vec(line(), 1..12),
        cut_off in 0..200_usize,
        cuts in prop::collection::vec(prop_oneof![1..4_usize, 1..LIMIT + 4, 1..8000_usize], 1..12),
    ) {
        let mut stream = lines.concat();
        stream.truncate(stream.len().saturating_sub(cut_off).max(1));
        let (mut pieces, mut rest) = (Vec::new(), stream.as_slice());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece.to_vec());
            rest = later;
        }
        let expected = twin(&pieces);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (seen, counts) = runtime.block_on(async {
            let mut limits = LineLimits::default();
            limits.max_line_bytes = LIMIT;
            let reader = Pieces(pieces.into());
            let connection = LineConnection::from_io_with(reader, tokio::io::sink(), limits, patient()).unwrap();
            let (_sender, mut receiver) = connection.split();
            (told(&mut receiver).await, receiver.counts())
        });
        prop_assert_eq!(&seen, &expected);
        let count = |kind: fn(&Told) -> bool| seen.iter().filter(|told| kind(told)).count() as u64;
        prop_assert_eq!(counts.messages, count(|told| matches!(told, Told::Message)));
        prop_assert_eq!(counts.invalid, count(|told| matches!(told, Told::Invalid)));
        prop_assert_eq!(counts.oversized, count(|told| matches!(told, Told::Oversized { .. })));
    }
}
