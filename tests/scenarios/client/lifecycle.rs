//! The handshake, and what is left when it fails.

use std::time::Duration;

use mcp_client::model::{ProtocolVersion, Root};
use mcp_client::{ErrorKind, Mode, StdioServer};
use serde_json::json;

use super::peer::{builder, connected, diagnostics, pipe, recorded, summary};
use crate::http::script::within;
use crate::stdio::support::sh;

/// protocol:L-02, protocol:L-03
#[tokio::test(start_paused = true)]
async fn every_legacy_revision_is_accepted_when_the_server_answers_it() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let (connection, mut peer) = pipe(1 << 16);
        let (client, ()) = tokio::join!(builder().connect(connection), async {
            let initialize = peer.expect("initialize").await;
            assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
            assert_eq!(initialize["params"]["clientInfo"], json!({ "name": "test", "version": "1.0" }));
            peer.answer(&initialize, json!({ "protocolVersion": version, "capabilities": {} })).await;
            peer.expect("notifications/initialized").await;
        });
        assert_eq!(client.unwrap().protocol_version().as_str(), version);
    }
}

/// seed:B40, protocol:L-03, protocol:10.12
#[tokio::test(start_paused = true)]
async fn a_foreign_revision_closes_the_connection_with_a_typed_error() {
    for version in ["2026-07-28", "banana", "", "2099-01-01"] {
        let (connection, mut peer) = pipe(1 << 16);
        let (outcome, ()) = tokio::join!(builder().connect(connection), async {
            let initialize = peer.expect("initialize").await;
            peer.answer(&initialize, json!({ "protocolVersion": version, "capabilities": {} })).await;
            peer.expect_end().await;
            drop(peer);
        });
        assert_eq!(summary(outcome), ("unsupported_version", false), "{version}");
    }
}

/// protocol:L-08: `initialize` is never cancelled; the connection is closed instead.
#[tokio::test(start_paused = true)]
async fn a_silent_server_fails_the_handshake_in_time_and_is_closed() {
    let (connection, mut peer) = pipe(1 << 16);
    let begun = tokio::time::Instant::now();
    let connecting = builder().initialize_timeout(Duration::from_secs(3)).connect(connection);
    let (outcome, ()) = tokio::join!(connecting, async {
        peer.expect("initialize").await;
        peer.expect_end().await;
        drop(peer);
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_connect_leaves_nothing_behind() {
    let (connection, mut peer) = pipe(1 << 16);
    let connecting = tokio::spawn(builder().connect(connection));
    peer.expect("initialize").await;
    connecting.abort();
    peer.expect_end().await;
}

/// protocol:L-07, field: servers talk before they answer `initialize`.
#[tokio::test(start_paused = true)]
async fn notices_and_pings_before_the_answer_to_initialize_are_served() {
    let (builder, events) = recorded(builder());
    let (connection, mut peer) = pipe(1 << 16);
    let (client, ()) = tokio::join!(builder.connect(connection), async {
        let initialize = peer.expect("initialize").await;
        peer.send_text("Server ready on stdout").await;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" })).await;
        assert_eq!(peer.receive().await["result"], json!({}));
        peer.answer(&initialize, json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).await;
        peer.expect("notifications/initialized").await;
    });
    client.unwrap();
    assert_eq!(diagnostics(&events), ["invalid_message"]);
    assert!(
        events.lock().unwrap().iter().any(|event| matches!(event, mcp_client::ClientEvent::ListChanged(_)))
    );
}

/// protocol:RT-01, protocol:RT-03, protocol:L-17
#[tokio::test(start_paused = true)]
async fn roots_are_offered_answered_and_a_change_is_announced_once() {
    let (client, mut peer) = connected(builder().roots([Root::new("file:///a")])).await;
    peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
    assert_eq!(peer.receive().await["result"], json!({ "roots": [{ "uri": "file:///a" }] }));
    client.set_roots([Root::new("file:///b")]).unwrap();
    client.set_roots([Root::new("file:///b")]).unwrap();
    peer.expect("notifications/roots/list_changed").await;
    peer.expect_silence(Duration::from_secs(1)).await;
}

/// protocol:G-01
#[tokio::test(start_paused = true)]
async fn ping_reaches_the_server_and_comes_back() {
    let (client, mut peer) = connected(builder()).await;
    peer.answers_a_ping_of(&client).await;
    assert_eq!(client.server().protocol_version, ProtocolVersion::V2025_11_25);
}

/// protocol:T-14, field: the program ends at once; the error has its exit status and last words.
#[tokio::test]
async fn a_program_that_ends_at_once_fails_the_connect_with_its_last_words() {
    let error = within(builder().connect(sh("echo no such database >&2; exit 3"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(error.exit().and_then(mcp_client::ProcessExit::code), Some(3));
    let message = error.to_string();
    assert!(message.contains("exit code 3") && message.contains("no such database"), "{message}");
}

/// field: the program waits for a login, an answer of a prompt, another protocol: what it said about that is in the error, however
/// connecting failed. It is patient, so that the words are there before it is ended, however slowly the machine runs.
#[tokio::test]
async fn whatever_a_connect_fails_of_it_tells_the_last_words_of_the_program() {
    let answer = |member: &str| {
        let id = r#"$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;
        format!(r#"read -r line; printf '{{"jsonrpc":"2.0","id":%s,{member}}}\n' "{id}""#)
    };
    let dialect = r#""result":{"protocolVersion":"banana","capabilities":{}}"#;
    for (talk, kind) in [
        (String::new(), ErrorKind::Timeout),
        ("echo 'usage: server [--stdio]'".to_owned(), ErrorKind::Timeout),
        (answer(dialect), ErrorKind::UnsupportedVersion),
        (answer(r#""result":7"#), ErrorKind::PeerMisbehaved),
        (answer(r#""error":{"code":-32000,"message":"no"}"#), ErrorKind::Rpc),
        ("exec >&-".to_owned(), ErrorKind::Closed),
    ] {
        let silent = kind == ErrorKind::Timeout;
        let script = format!("{talk}\nprintf 'log in at \\033[1mhttp://x\\n' >&2; cat >/dev/null");
        let time = if silent { Duration::from_millis(1) } else { Duration::from_secs(600) };
        let connecting = builder().initialize_timeout(time).connect(sh(&script));
        let error = within(connecting).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{talk}: {error}");
        assert_eq!(error.stderr_tail(), Some("log in at \u{1b}[1mhttp://x\n"), "{talk}");
        let shown = error.to_string();
        assert!(shown.ends_with(r#"standard error ends with: "log in at \u{1b}[1mhttp://x""#), "{shown}");
        assert_eq!(shown.matches("standard error").count(), 1, "{shown}");
    }
}

/// protocol:T-06: it is cut as that of a dead process is.
#[tokio::test]
async fn the_message_of_a_connect_that_fails_shows_the_end_of_long_last_words() {
    let script =
        "i=0; while [ $i -lt 1000 ]; do echo \"line $i of many\" >&2; i=$((i+1)); done; cat >/dev/null";
    let connecting = builder().initialize_timeout(Duration::from_millis(1)).connect(sh(script));
    let error = within(connecting).await.unwrap_err();
    assert!(error.stderr_tail().unwrap().starts_with("line 0 of many\n"));
    let shown = error.to_string();
    assert!(shown.ends_with("line 999 of many\"") && shown.len() < 2320, "{shown}");
}

/// field:FR-001: a program that speaks something else where messages belong, and then ends.
#[tokio::test]
async fn a_program_that_prints_its_usage_and_ends_has_it_in_the_error() {
    let script =
        "printf 'Usage: server \\033[1m--stdio\\r\\n\\n  --port\\n  a last line'; echo no >&2; exit 2";
    let error = within(builder().connect(sh(script))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert_eq!(error.stdout_noise(), Some("Usage: server \u{1b}[1m--stdio\n  --port\n  a last line\n"));
    assert_eq!(error.stderr_tail(), Some("no\n"));
    let shown = error.to_string();
    let noise = r#"; the server printed to standard output, where only messages belong: "Usage: server \u{1b}[1m--stdio\n  --port\n  a last line""#;
    assert!(shown.contains(noise), "{shown}");
    // Once, though it was started twice.
    let error = within(builder().mode(Mode::Auto).connect(sh(script))).await.unwrap_err();
    let shown = error.to_string();
    assert_eq!(shown.matches("Usage").count(), 1, "{shown}");
    let ours = "server \"sh\": the server's process ended with exit code 2 (the program was started twice); the server printed to ";
    assert!(shown.starts_with(ours), "{shown}");
}

/// Beside other reasons too; what it wrote is bounded, however much it was.
#[tokio::test(start_paused = true)]
async fn a_server_that_writes_text_and_never_answers_has_the_last_of_it_in_the_error() {
    let (connection, mut peer) = pipe(1 << 20);
    let talk = async {
        for line in 0..1000 {
            peer.send_text(&format!("  at line {line} {}", "y".repeat(1000))).await;
        }
        peer.send_text(r#"{"level":"info"}"#).await;
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        connected = builder().connect(connection) => connected.unwrap_err(),
        () = talk => unreachable!(),
    };
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let noise = error.stdout_noise().unwrap();
    assert!(noise.ends_with("yyy\n{\"level\":\"info\"}\n") && noise.len() <= 2048, "{noise}");
    assert!(noise.starts_with("  at line 99") && noise.lines().count() > 5, "{noise}");
    assert!(error.to_string().len() < 2300, "{error}");
}

/// Nothing is made up where nothing was said.
#[tokio::test]
async fn a_silent_program_has_no_last_words() {
    for script in ["cat >/dev/null", "echo >&2; cat >/dev/null"] {
        let connecting = builder().initialize_timeout(Duration::from_millis(1)).connect(sh(script));
        let shown = within(connecting).await.unwrap_err().to_string();
        assert_eq!(
            shown,
            "server \"sh\": no answer to the handshake (server/discover, initialize) within 1ms"
        );
    }
}

/// auth:SEC-15: what the server writes reads as ours nowhere, and where it wrote nothing there is nothing.
#[tokio::test]
async fn the_last_words_of_a_program_cannot_pose_as_words_of_this_library() {
    let script = r#"printf '%s\n' 'ValueError: x"; cause: all is \ well' >&2; exit 1"#;
    let error = within(builder().connect(sh(script))).await.unwrap_err();
    let expected = r#"server "sh": the server's process ended with exit code 1; the server's standard error ends with: "ValueError: x\"; cause: all is \\ well""#;
    assert_eq!((&*error.to_string(), &*error.report().to_string()), (expected, expected));

    let ends = [("exit 1", "ended with exit code 1"), ("kill -9 $$", "was ended by signal 9 (SIGKILL)")];
    for (script, end) in ends {
        let error = within(builder().mode(Mode::Auto).connect(sh(script))).await.unwrap_err();
        let shown = format!("server \"sh\": the server's process {end} (the program was started twice)");
        assert_eq!((error.report().to_string(), error.stderr_tail()), (shown, None));
    }
}

/// What `main` prints of an error that it returns is what the report says.
#[tokio::test]
async fn the_report_of_an_error_and_its_debug_output_have_the_causes_that_display_leaves_out() {
    let connecting = builder().server_name("files").connect(StdioServer::new("/no/such/program"));
    let error = connecting.await.unwrap_err();
    assert_eq!(error.to_string(), "server \"files\": program \"/no/such/program\" does not exist");
    let report = error.report().to_string();
    assert_eq!(report, format!("{error}; cause: {}", std::io::Error::from_raw_os_error(2)));
    assert_eq!(format!("{error:?}"), format!("{report} [transport]"));
    assert_eq!(format!("{error:#?}"), format!("{report} [transport]"));
}

#[tokio::test]
async fn two_attempts_are_reported_with_what_stands_behind_them() {
    let folder = std::env::temp_dir().join(format!("mcp-once-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let once = sh("rmdir \"$PWD\"; exit 3").current_dir(&folder);
    let error = within(builder().mode(Mode::Auto).connect(once)).await.unwrap_err();
    let (report, gone) = (error.report().to_string(), std::io::Error::from_raw_os_error(2));
    assert!(report.ends_with(&format!("process ended with exit code 3); cause: {gone}")), "{report}");
    assert!(report.contains("cannot be entered (the first attempt: "), "{report}");
}

#[tokio::test]
async fn a_missing_program_is_a_transport_error_that_names_it() {
    let error = builder().connect(StdioServer::new("no-such-program-here")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains("no-such-program-here"), "{error}");
}
