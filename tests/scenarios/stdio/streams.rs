//! The same connection over byte streams that are no process.

use std::time::Duration;

use mcp_jsonrpc::{Incoming, Message};
use mcp_transport::{
    ErrorKind, Received,
    stdio::{CloseStage, CloseWaits, LineConnection, LineLimits, LineReceiver},
};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter, DuplexStream,
};

use super::support::{Session, patient, within};

fn pair(limits: LineLimits) -> (Session, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let (sender, receiver) = LineConnection::from_io_with(reader, writer, limits, patient()).unwrap().split();
    (Session::over(sender, receiver), theirs)
}

fn limits(change: impl FnOnce(&mut LineLimits)) -> LineLimits {
    let mut limits = LineLimits::default();
    change(&mut limits);
    limits
}

async fn methods(receiver: &mut LineReceiver, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.push(match within(receiver.recv()).await.unwrap() {
            Received::Message(Incoming::Single(Message::Notification(message))) => {
                message.method.into_owned()
            }
            // Whether there is one depends on how the bytes came in.
            Received::OversizedStart { .. } => continue,
            Received::Oversized { bytes, .. } => format!("oversized {bytes}"),
            other => panic!("{other:?}"),
        });
    }
    seen
}

#[tokio::test]
async fn characters_split_over_reads_stay_whole() {
    // seed:B32; seed section 3.26
    let (mut session, mut theirs) = pair(LineLimits::default());
    let text =
        "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"漢é🎉\"}\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n";
    let writing = tokio::spawn(async move {
        for byte in text.as_bytes() {
            theirs.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        theirs
    });
    assert_eq!(methods(&mut session.receiver, 2).await, ["漢é🎉", "b"]);
    within(writing).await.unwrap();
}

#[tokio::test]
async fn receiving_can_be_dropped_at_any_point() {
    let (mut session, mut theirs) = pair(LineLimits::default());
    for byte in b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}" {
        theirs.write_all(&[*byte]).await.unwrap();
        let waited = tokio::time::timeout(Duration::ZERO, session.receiver.recv()).await;
        assert!(waited.is_err(), "the line is not over");
    }
    theirs.write_all(b"\n").await.unwrap();
    assert_eq!(methods(&mut session.receiver, 1).await, ["a"]);
}

/// seed:S-09
#[tokio::test]
async fn the_line_limit_holds_below_at_and_above() {
    // auth:LIM-08, seed:B33
    let (mut session, mut theirs) = pair(limits(|limits| limits.max_line_bytes = 64));
    let line = |bytes: usize| {
        let method = "m".repeat(bytes - 29);
        let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        assert_eq!(line.len(), bytes);
        line
    };
    for bytes in [63, 64, 65, 10_000] {
        theirs.write_all(format!("{}\n", line(bytes)).as_bytes()).await.unwrap();
    }
    theirs.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"after\"}\n").await.unwrap();
    let seen = methods(&mut session.receiver, 5).await;
    assert_eq!(seen[0].len(), 34);
    assert_eq!(seen[1].len(), 35);
    assert_eq!(seen[2..], ["oversized 65", "oversized 10000", "after"]);
    assert_eq!(session.receiver.counts().oversized, 2);
}

/// auth:LIM-08: it is announced once, when it is above the limit whatever comes next (a CR may be the one of its end).
#[tokio::test]
async fn a_line_that_grows_above_the_limit_is_announced_before_its_end() {
    let (mut session, mut theirs) = pair(limits(|limits| limits.max_line_bytes = 64));
    for round in 1..=2 {
        theirs.write_all(&[b'x'; 64]).await.unwrap();
        theirs.write_all(b"\r").await.unwrap();
        assert!(tokio::time::timeout(Duration::ZERO, session.receiver.recv()).await.is_err());
        theirs.write_all(b"x").await.unwrap();
        match within(session.receiver.recv()).await.unwrap() {
            Received::OversizedStart { bytes, limit, .. } => {
                assert_eq!((bytes, limit.name, limit.value), (66, "max_line_bytes", 64));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(session.receiver.counts().oversized, round);
        theirs.write_all(&[b'x'; 1000]).await.unwrap();
        assert!(tokio::time::timeout(Duration::ZERO, session.receiver.recv()).await.is_err());
        theirs.write_all(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"after\"}\n").await.unwrap();
        match within(session.receiver.recv()).await.unwrap() {
            Received::Oversized { bytes, announced, .. } => assert_eq!((bytes, announced), (1066, true)),
            other => panic!("{other:?}"),
        }
        assert_eq!(methods(&mut session.receiver, 1).await, ["after"]);
        assert_eq!(session.receiver.counts().oversized, round);
    }
    theirs.write_all(&[[b'x'; 70].as_slice(), b"\n"].concat()).await.unwrap();
    match within(session.receiver.recv()).await.unwrap() {
        Received::Oversized { bytes, announced, .. } => assert_eq!((bytes, announced), (70, false)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_line_limit_above_the_default_is_honoured() {
    let (mut session, mut theirs) = pair(limits(|limits| limits.max_line_bytes = 20 * 1024 * 1024));
    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "m".repeat(17 * 1024 * 1024));
    let writing = tokio::spawn(async move {
        theirs.write_all(line.as_bytes()).await.unwrap();
        theirs
    });
    assert_eq!(methods(&mut session.receiver, 1).await[0].len(), 17 * 1024 * 1024);
    within(writing).await.unwrap();
}

#[tokio::test]
async fn excerpts_are_cut() {
    let (mut session, mut theirs) = pair(limits(|limits| limits.excerpt_bytes = 5));
    theirs.write_all("not é json\n".as_bytes()).await.unwrap();
    match within(session.receiver.recv()).await.unwrap() {
        Received::Invalid { excerpt, .. } => assert_eq!(excerpt, "not "),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn buffered_writers_are_flushed_before_a_send_resolves() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let writer = BufWriter::with_capacity(8192, writer);
    let (sender, _receiver) = LineConnection::from_io(reader, writer, LineLimits::default()).unwrap().split();
    let mut theirs = BufReader::new(theirs);
    for number in 0..3 {
        within(sender.send(format!("{number}").into())).await.unwrap();
        let mut line = String::new();
        within(theirs.read_line(&mut line)).await.unwrap();
        assert_eq!(line, format!("{number}\n"));
    }
}

#[tokio::test]
async fn the_end_of_the_peer_ends_everything() {
    // protocol:T-14
    let (mut session, mut theirs) = pair(LineLimits::default());
    theirs.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"last\"}\n").await.unwrap();
    drop(theirs);
    assert_eq!(methods(&mut session.receiver, 1).await, ["last"]);
    let error = session.end().await;
    assert_eq!((error.kind(), error.exit()), (ErrorKind::Closed, None));
    assert_eq!(error.to_string(), "the server closed its output");
    let later = session.send("late").await.unwrap_err();
    assert_eq!((later.kind(), later.outcome_unknown()), (ErrorKind::Closed, false));
    assert_eq!(within(session.sender.close()).await.stage(), CloseStage::Ended);
}

#[tokio::test]
async fn closing_writes_what_is_queued_then_ends_the_stream() {
    let (ours, theirs) = tokio::io::duplex(16);
    let (reader, writer) = tokio::io::split(ours);
    let (sender, mut receiver) =
        LineConnection::from_io_with(reader, writer, LineLimits::default(), patient()).unwrap().split();
    // Queued, then dropped half way: it must arrive whole all the same.
    let message = "a message longer than the pipe";
    let dropped = tokio::time::timeout(Duration::from_millis(5), sender.send(message.into())).await;
    assert!(dropped.is_err());
    let closing = tokio::spawn(async move { sender.close().await });
    let peer = tokio::spawn(async move {
        let mut theirs = theirs;
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        text
    });
    assert_eq!(within(peer).await.unwrap(), format!("{message}\n"));
    assert_eq!(within(receiver.recv()).await.unwrap_err().kind(), ErrorKind::Closed);
    let report = within(closing).await.unwrap();
    assert_eq!((report.stage(), report.unwritten_bytes()), (CloseStage::EndedOnInputEnd, 0));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_end_is_left_after_the_wait() {
    let mut other = CloseWaits::default();
    other.exit = Duration::from_secs(7);
    for waits in [CloseWaits::default(), other] {
        let (ours, theirs) = tokio::io::duplex(64);
        let (reader, writer) = tokio::io::split(ours);
        let connection = LineConnection::from_io_with(reader, writer, LineLimits::default(), waits).unwrap();
        let (sender, _receiver) = connection.split();
        let begin = tokio::time::Instant::now();
        assert_eq!(sender.close().await.stage(), CloseStage::Abandoned);
        assert_eq!(begin.elapsed(), waits.exit);
        drop(theirs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_costs_the_flush_wait_and_its_messages() {
    let (ours, theirs) = tokio::io::duplex(16);
    let (reader, writer) = tokio::io::split(ours);
    let (sender, _receiver) = LineConnection::from_io(reader, writer, LineLimits::default()).unwrap().split();
    let clone = sender.clone();
    let stuck = tokio::spawn(async move { clone.send("x".repeat(100).into()).await });
    tokio::task::yield_now().await;
    let begin = tokio::time::Instant::now();
    let report = sender.close().await;
    assert_eq!((report.stage(), report.unwritten_bytes()), (CloseStage::Abandoned, 101 - 16));
    assert!(begin.elapsed() <= Duration::from_millis(2500), "{:?}", begin.elapsed());
    let error = stuck.await.unwrap().unwrap_err();
    assert!(error.outcome_unknown());
    drop(theirs);
}

/// protocol:T-16
#[tokio::test]
async fn a_unix_socket_and_tcp_carry_it_too() {
    async fn check(
        reader: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        writer: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    ) {
        let (sender, receiver) =
            LineConnection::from_io_with(reader, writer, LineLimits::default(), patient()).unwrap().split();
        let mut session = Session::over(sender, receiver);
        assert_eq!(session.ask("ping").await, 1);
        let sender = session.sender.clone();
        let (report, error) = within(async { tokio::join!(sender.close(), session.end()) }).await;
        assert_eq!(report.stage(), CloseStage::EndedOnInputEnd);
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    async fn answer(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).await.unwrap() > 0 {
            stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n").await.unwrap();
            line.clear();
        }
    }
    let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let peer = tokio::spawn(answer(theirs));
    let (reader, writer) = ours.into_split();
    check(reader, writer).await;
    within(peer).await.unwrap();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (theirs, _) = listener.accept().await.unwrap();
    let peer = tokio::spawn(answer(theirs));
    let (reader, writer) = ours.into_split();
    check(reader, writer).await;
    within(peer).await.unwrap();
}
