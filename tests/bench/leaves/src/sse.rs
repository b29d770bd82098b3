//! S1 to S10: the SSE parser.

use bytes::Bytes;

use crate::contest::{Contest, Times};
use crate::goals::{Bound, Goals, Unit};
use crate::{sse_parsers as parsers, streams};

/// What hyper usually reads at once.
const CHUNK: usize = 16 << 10;
/// What one Ethernet frame carries.
const FRAME: usize = 1400;

const OURS: &str = "ours";
const SSE_STREAM: &str = "sse-stream 0.3.0";
const SSE_CORE: &str = "sse-core";
const RMCP: &str = "rmcp's pipeline";
const EVENTSOURCE: &str = "eventsource-stream";
const W: &str = "W";
const CRLF: &str = "ours, CRLF";
/// What F consists of.
const F: [&str; 3] = ["line ends", "validation", "copy"];

pub(crate) fn measure(goals: &mut Goals) {
    small(goals);
    crlf(goals);
    ids(goals);
    large(
        goals,
        "S4",
        "10 KB events",
        &streams::texts(200, 10_000),
        &Large { sse_stream: 1.1, sse_core: 2.3, rmcp: 25.0, f: 0.9 },
    );
    frames_of_10_kb(goals);
    large(
        goals,
        "S5",
        "1 MB event",
        &streams::texts(4, 1_000_000),
        &Large { sse_stream: 0.9, sse_core: 2.0, rmcp: 18.0, f: 0.8 },
    );
    large(
        goals,
        "S6",
        "16 MB event",
        &streams::texts(1, 16_000_000),
        &Large { sse_stream: 0.85, sse_core: 1.8, rmcp: 8.0, f: 0.6 },
    );
    lines(goals);
    comments(goals);
    tiny_chunks(goals);
    linear(goals);
}

/// Ours and the peers over one stream; each is checked to find the same data.
fn peers(stream: &Bytes, chunk: usize, with: &[&'static str]) -> Contest<'static> {
    let expected = parsers::ours(stream, chunk);
    let all: [(&str, fn(&Bytes, usize) -> usize); 6] = [
        (OURS, parsers::ours),
        (SSE_STREAM, parsers::sse_stream_0_3),
        (SSE_CORE, parsers::sse_core),
        (RMCP, parsers::rmcp),
        (EVENTSOURCE, parsers::eventsource_stream),
        (W, parsers::line_walk),
    ];
    let mut contest = Contest::new();
    for (name, parser) in all.into_iter().filter(|(name, _)| *name == OURS || with.contains(name)) {
        let found = parser(stream, chunk);
        assert!(name == W || found == expected, "{name} found {found} bytes of data instead of {expected}");
        let stream = stream.clone();
        contest = contest.enter(name, move || parser(&stream, chunk));
    }
    contest
}

/// With the three parts of F.
fn with_f(contest: Contest<'static>, stream: &Bytes, chunk: usize) -> Contest<'static> {
    let (one, two, three) = (stream.clone(), stream.clone(), stream.clone());
    let mut buffer = Vec::new();
    contest
        .enter(F[0], move || parsers::line_end_walk(&one, chunk))
        .enter(F[1], move || parsers::validation(&two, chunk))
        .enter(F[2], move || parsers::copy(&three, chunk, &mut buffer))
}

fn faster(goals: &mut Goals, id: &str, what: &str, times: &Times, peer: &str, at_least: f64) {
    goals.faster(id, &format!("{what}, against {peer}"), times.ratio(peer, OURS), at_least);
}

fn share(goals: &mut Goals, id: &str, what: &str, yardstick: &str, measured: f64, at_least: f64) {
    let what = format!("{what}, share of {yardstick}");
    goals.check(id, &what, measured, Bound::AtLeast(at_least), Unit::Percent);
}

fn small(goals: &mut Goals) {
    let stream = streams::small(20_000);
    let times = peers(&stream, CHUNK, &[SSE_STREAM, SSE_CORE, RMCP, EVENTSOURCE, W]).run();
    for (peer, at_least) in [(SSE_STREAM, 2.0), (SSE_CORE, 2.6), (RMCP, 9.0), (EVENTSOURCE, 18.0)] {
        faster(goals, "S1", "small events", &times, peer, at_least);
    }
    share(goals, "S1", "small events", W, times.ratio(W, OURS), 0.5);
    let times = peers(&stream, FRAME, &[EVENTSOURCE, W]).run();
    faster(goals, "S1", "small events, 1,400 B chunks", &times, EVENTSOURCE, 9.0);
    share(goals, "S1", "small events, 1,400 B chunks", W, times.ratio(W, OURS), 0.45);
    let times = peers(&stream, 64 << 10, &[EVENTSOURCE]).run();
    faster(goals, "S1", "small events, 64 KiB chunks", &times, EVENTSOURCE, 60.0);
}

fn crlf(goals: &mut Goals) {
    let (lf, crlf) = (streams::small(20_000), streams::small_crlf(20_000));
    // By bytes: a CRLF stream has three more for each event.
    let longer = crlf.len() as f64 / lf.len() as f64;
    let copy = crlf.clone();
    let times = peers(&lf, CHUNK, &[]).enter(CRLF, move || parsers::ours(&copy, CHUNK)).run();
    goals.faster("S2", "small CRLF events, against own LF speed", times.ratio(OURS, CRLF) * longer, 0.9);
    let times = peers(&crlf, CHUNK, &[SSE_STREAM]).run();
    faster(goals, "S2", "small CRLF events", &times, SSE_STREAM, 2.2);
}

fn ids(goals: &mut Goals) {
    let times = peers(&streams::small_with_ids(20_000), CHUNK, &[SSE_STREAM, SSE_CORE, W]).run();
    faster(goals, "S3", "small events with ids", &times, SSE_STREAM, 1.5);
    faster(goals, "S3", "small events with ids", &times, SSE_CORE, 1.8);
    share(goals, "S3", "small events with ids", W, times.ratio(W, OURS), 0.32);
}

/// The thresholds of a large event.
struct Large {
    sse_stream: f64,
    sse_core: f64,
    rmcp: f64,
    f: f64,
}

fn large(goals: &mut Goals, id: &str, what: &str, stream: &Bytes, thresholds: &Large) {
    let times = with_f(peers(stream, CHUNK, &[SSE_STREAM, SSE_CORE, RMCP]), stream, CHUNK).run();
    faster(goals, id, what, &times, SSE_STREAM, thresholds.sse_stream);
    faster(goals, id, what, &times, SSE_CORE, thresholds.sse_core);
    faster(goals, id, what, &times, RMCP, thresholds.rmcp);
    share(goals, id, what, "F", times.ratio_of_sum(&F, OURS), thresholds.f);
}

fn frames_of_10_kb(goals: &mut Goals) {
    let stream = streams::texts(200, 10_000);
    let times = with_f(peers(&stream, FRAME, &[]), &stream, FRAME).run();
    share(goals, "S4", "10 KB events, 1,400 B chunks", "F", times.ratio_of_sum(&F, OURS), 0.8);
}

fn lines(goals: &mut Goals) {
    let times = peers(&streams::data_lines(200), CHUNK, &[SSE_STREAM, SSE_CORE, W]).run();
    faster(goals, "S7", "200 data lines an event", &times, SSE_STREAM, 1.2);
    faster(goals, "S7", "200 data lines an event", &times, SSE_CORE, 1.6);
    share(goals, "S7", "200 data lines an event", W, times.ratio(W, OURS), 0.4);
}

fn comments(goals: &mut Goals) {
    let times = peers(&streams::comments(1000), CHUNK, &[SSE_STREAM, SSE_CORE, W]).run();
    faster(goals, "S8", "100 comments an event", &times, SSE_STREAM, 1.2);
    faster(goals, "S8", "100 comments an event", &times, SSE_CORE, 0.9);
    share(goals, "S8", "100 comments an event", W, times.ratio(W, OURS), 0.8);
}

fn tiny_chunks(goals: &mut Goals) {
    let times = peers(&streams::small(20_000), 64, &[SSE_STREAM, SSE_CORE]).run();
    faster(goals, "S9", "small events, 64 B chunks", &times, SSE_STREAM, 1.3);
    faster(goals, "S9", "small events, 64 B chunks", &times, SSE_CORE, 1.3);
}

/// seed:S-95g: twice the bytes take twice the time, in whatever chunks.
fn linear(goals: &mut Goals) {
    const LONG: usize = 10 << 20;
    let (short, long) = (streams::endless_line(LONG / 10), streams::endless_line(LONG));
    for chunk in [1, 16, 64, 1 << 10] {
        let (short, long, peers) = (short.clone(), long.clone(), long.clone());
        let mut contest = Contest::new()
            .enter("1 MiB", move || parsers::ours(&short, chunk))
            .enter("10 MiB", move || parsers::ours(&long, chunk));
        if chunk == 1 {
            contest = contest.enter(SSE_STREAM, move || parsers::sse_stream_0_3(&peers, chunk));
        }
        let times = contest.once_a_round().run();
        let what = format!("a line of 10 MiB, against 1 MiB, {chunk} B chunks");
        goals.within("S10", &what, times.ratio("10 MiB", "1 MiB"), 12.0);
        if chunk == 1 {
            let ratio = times.ratio("10 MiB", SSE_STREAM);
            goals.within("S10", "a line of 10 MiB, against sse-stream 0.3.0, 1 B chunks", ratio, 1.6);
        }
        if chunk == 1 << 10 {
            let nanos = times.seconds("10 MiB") * 1e9 / LONG as f64;
            let what = "a line of 10 MiB, 1,024 B chunks";
            goals.check("S10", what, nanos, Bound::AtMost(0.3), Unit::NanosPerByte);
        }
    }
}
