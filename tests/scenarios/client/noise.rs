//! What a server prints to standard output in the middle of a session, in the errors of those who wait for it.

use std::future::IntoFuture;
use std::time::Duration;

use mcp_client::{Client, DiagnosticKind, Error, ErrorKind};
use serde_json::json;

use super::peer::{Peer, builder, connected, pipe};

const SECOND: Duration = Duration::from_secs(1);

/// A call that the server answers; what it has written before is read by then.
async fn answered(client: &Client, peer: &mut Peer) {
    let (called, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, json!({ "content": [] })).await;
    });
    called.unwrap();
}

/// A call in the middle of which the server prints these lines, and does not answer.
async fn unanswered(client: &Client, peer: &mut Peer, lines: &[&str]) -> Error {
    let calling = client.call_tool("t", json!({})).timeout(SECOND).into_future();
    let (called, ()) = tokio::join!(calling, async {
        peer.expect("tools/call").await;
        for line in lines {
            peer.send_text(line).await;
        }
        peer.expect("notifications/cancelled").await;
    });
    called.unwrap_err()
}

/// field:FR-001: a trace in place of the answer. What was printed before has nothing to do with it.
#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_has_what_the_server_printed_since_it_began() {
    let (client, mut peer) = connected(builder()).await;
    peer.send_text("listening").await;
    answered(&client, &mut peer).await;
    let error = unanswered(&client, &mut peer, &["Traceback:\u{1b}[31m", "  KeyError: 'x'"]).await;
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.stdout_noise(), Some("Traceback:\u{1b}[31m\n  KeyError: 'x'\n"));
    let shown = r#"; the server printed to standard output, where only messages belong: "Traceback:\u{1b}[31m\n  KeyError: 'x'""#;
    assert_eq!(error.to_string(), format!("tool \"t\": no answer within 1s{shown}"));
    assert_eq!(error.diagnostics(), [], "the connection has them");

    let error = unanswered(&client, &mut peer, &[]).await;
    assert_eq!((error.stdout_noise(), &*error.to_string()), (None, "tool \"t\": no answer within 1s"));
}

/// field:FR-001: for each who asks. What was printed before the server was connected was no obstacle.
#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_ended_says_what_it_printed() {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, ()) = tokio::join!(builder().connect(connection), async {
        peer.send_text("a banner").await;
        peer.handshake(json!({ "tools": {} })).await;
    });
    let client = client.unwrap();
    peer.send_text("first").await;
    answered(&client, &mut peer).await;
    let (called, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        peer.expect("tools/call").await;
        peer.send_text("panicked at main.rs").await;
        drop(peer);
    });
    let later = client.call_tool("t", json!({})).await.unwrap_err();
    let notified = client.notify("notifications/x", None).unwrap_err();
    for (error, about) in [(called.unwrap_err(), "tool \"t\": "), (later, "tool \"t\": "), (notified, "")] {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(error.stdout_noise(), Some("first\npanicked at main.rs\n"));
        let shown = r#"; the server printed to standard output, where only messages belong: "first\npanicked at main.rs""#;
        assert_eq!(error.to_string(), format!("{about}the server closed its output{shown}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_this_side_closed_has_no_reason_to_say_it() {
    let (client, mut peer) = connected(builder()).await;
    peer.send_text("chatter").await;
    answered(&client, &mut peer).await;
    client.close().await;
    let error = client.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.stdout_noise()), (ErrorKind::Closed, None), "{error}");
}

/// auth:SEC-15: however much it is; and it may be left out where it must not get into a log.
#[tokio::test(start_paused = true)]
async fn how_much_is_kept_is_the_applications_to_choose() {
    let line = "y".repeat(99);
    for (limit, kept) in [(None, 20), (Some(99), 1), (Some(199), 1), (Some(200), 2), (Some(0), 0)] {
        let builder = limit.into_iter().fold(builder(), |builder, bytes| builder.stdout_noise_bytes(bytes));
        let (client, mut peer) = connected(builder).await;
        let error = unanswered(&client, &mut peer, &[&*line; 1000]).await;
        let noise = error.stdout_noise().unwrap_or_default();
        assert_eq!(noise.lines().count(), kept, "{limit:?}");
        assert_eq!(error.to_string().contains("printed"), kept > 0, "{error}");
    }
}

/// Those of the attempt that failed; a server that was never there had none.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_connect_has_the_totals_of_its_diagnostics() {
    let (connection, mut peer) = pipe(1 << 20);
    let talk = async {
        for _ in 0..100 {
            peer.send_text("noise").await;
        }
        peer.send(json!({ "jsonrpc": "2.0", "id": 999, "result": {} })).await;
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        connected = builder().connect(connection) => connected.unwrap_err(),
        () = talk => unreachable!(),
    };
    let both = [(DiagnosticKind::InvalidMessage, 100), (DiagnosticKind::UnknownResponse, 1)];
    assert_eq!(error.diagnostics(), both);
    let missing = builder().connect(mcp_client::StdioServer::new("/no/such/program")).await.unwrap_err();
    assert_eq!(missing.diagnostics(), []);
}
