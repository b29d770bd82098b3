//! Lines from and to real processes.

use mcp_jsonrpc::{Incoming, Message, RequestId};
use mcp_transport::{ErrorKind, Received};
use serde_json::json;

use super::support::{Session, peer, sh, within};

#[tokio::test]
async fn fr_001_noise_on_stdout_is_counted_and_ends_nothing() {
    // field:FR-001, protocol:T-05, seed:E28
    let mut session = Session::start(&peer());
    assert_eq!(session.ask("banner").await, "after noise");
    assert_eq!(
        session.noise,
        ["Widget server v1.0 started OK", "{\"level\":\"info\"}", "[mcp] tools requested"]
    );
    assert_eq!(session.ask("ping").await, "ping");
    let counts = session.receiver.counts();
    assert_eq!((counts.messages, counts.invalid, counts.oversized), (2, 3, 0));
}

/// protocol:T-02, seed:S-98
#[tokio::test]
async fn fr_003_crlf_and_blank_lines_are_taken_and_a_bare_lf_is_written() {
    // field:FR-003, protocol:T-03
    let mut session = Session::start(&peer().arg("--crlf"));
    assert_eq!(session.ask("blank").await, "after blank lines");
    // The peer splits at LF only: a CR before it would come back.
    assert_eq!(session.ask("echo").await, r#"{"jsonrpc":"2.0","id":2,"method":"echo"}"#);
    assert_eq!(session.noise, [""; 0]);
}

#[tokio::test]
async fn fr_005_bytes_that_are_no_utf8_are_replaced_and_hang_nothing() {
    // field:FR-005
    let mut session = Session::start(&peer());
    assert_eq!(session.ask("codepage").await, json!({ "text": "\u{fffd}\u{fffd}\u{fffd}\u{fffd}" }));
    assert_eq!(session.receiver.counts().replaced, 1);
    assert_eq!(session.ask("ping").await, "ping");
}

#[tokio::test]
async fn fr_008_long_lines_need_no_configuration() {
    // field:FR-008
    let mut session = Session::start(&peer());
    for bytes in [129 * 1024, 5 * 1024 * 1024] {
        let value = session.ask(&format!("size/{bytes}")).await;
        assert_eq!(value.as_str().unwrap().len(), bytes);
    }
}

#[tokio::test]
async fn fr_017_header_framing_is_noise_and_the_unended_last_line_is_not_lost() {
    // field:FR-017
    let mut session = Session::start(&peer());
    let id = session.send("headers").await.unwrap();
    match within(session.receiver.recv()).await.unwrap() {
        Received::Invalid { excerpt, .. } => assert!(excerpt.starts_with("Content-Length: "), "{excerpt}"),
        other => panic!("{other:?}"),
    }
    // The body has no line end: it waits for one, and at the end of the stream it is a line.
    let closing = session.sender.clone();
    let report = tokio::spawn(async move { closing.close().await });
    match within(session.receiver.recv()).await.unwrap() {
        Received::Message(Incoming::Single(Message::Response(response))) => assert_eq!(response.id, id),
        other => panic!("{other:?}"),
    }
    assert_eq!(session.end().await.kind(), ErrorKind::Closed);
    within(report).await.unwrap();
}

#[tokio::test]
async fn a_last_line_without_lf_is_answered_before_the_end() {
    // field:FR-017, protocol:T-14
    let mut session = Session::start(&peer());
    assert_eq!(session.ask("last").await, "last");
    assert_eq!(session.end().await.exit().and_then(|exit| exit.code()), Some(0));
}

#[tokio::test]
async fn a_batch_is_handed_over_whole() {
    // Whether the negotiated revision allows it is decided above the transport.
    let mut session = Session::start(&peer());
    assert_eq!(session.ask("batch").await, "after a batch");
    assert_eq!(session.strays, ["9001", "9002"]);
}

#[tokio::test]
async fn a_message_with_a_raw_line_break_is_refused_before_it_is_written() {
    // protocol:T-03, protocol:T-04
    let mut session = Session::start(&peer());
    for text in ["", "{}\n", "{\"a\":\r1}", "\n"] {
        let error = within(session.sender.send(text.into())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{text:?}");
        assert!(!error.outcome_unknown());
    }
    assert_eq!(session.ask("echo").await, r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#);
}

#[tokio::test]
async fn one_bad_message_then_a_good_one() {
    // auth:SEC-11
    let script = r#"
        printf '%0100000d\n' 0 | tr 0 '['
        printf '{"jsonrpc":"2.0","id":1,"result":"good"}\n'
        cat >/dev/null"#;
    let mut session = Session::start(&sh(script));
    assert_eq!(within(session.answer(&RequestId::Integer(1))).await.unwrap(), "good");
    assert_eq!(session.noise, ["[".repeat(256)]);
}
