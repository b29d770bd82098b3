//! Real transports under a host: child processes and HTTP.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_client::host::{Host, HostLimits, ServersConfig};
use mcp_client::{ErrorReport, HttpServer, Mode};
use serde_json::json;
use tokio::net::TcpListener;

use super::support::{failed, state};
use crate::client::peer::builder;
use crate::http::script::{Server, at_the_deadline, within};

/// A server for the shell: plays the handshake, then does what the script says.
#[cfg(unix)]
fn sh(script: &str) -> String {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
    format!(r#"read l; echo '{{"jsonrpc":"2.0","id":1,"result":{result}}}'; read l; {script}"#)
}

/// seed:B31, auth:SEC-08: the configuration is data; what it names is started when it is connected to, with its own
/// environment and nothing of ours.
#[cfg(unix)]
#[tokio::test]
async fn servers_of_a_configuration_are_started_one_by_one() {
    let config = json!({ "mcpServers": {
        "ends": { "command": "sh", "args": ["-c", sh("exit 3")] },
        "stays": {
            "command": "sh",
            "args": ["-c", sh("test \"$GIVEN\" = 'a b' -a -z \"$CARGO_MANIFEST_DIR\" && exec cat")],
            "env": { "GIVEN": "${VALUE:-a b}" },
        },
        "absent": { "command": "no-such-program-anywhere" },
        "absent in one": { "command": "no-such-program-anywhere --token=secret" },
        "off": { "command": "sh", "disabled": true },
    } });
    let host = Host::new(builder());
    let config = ServersConfig::parse(&config.to_string()).unwrap();
    assert!(config.errors().is_empty());
    for entry in config.entries() {
        let Ok(connector) = entry.expand(|_| None).and_then(|entry| entry.connector()) else {
            assert_eq!(entry.name(), "off");
            continue;
        };
        let outcome = within(host.connect(entry.name(), connector)).await;
        assert_eq!(outcome.is_ok(), !entry.name().starts_with("absent"), "{outcome:?}");
        if entry.name() == "absent in one" {
            let shown = outcome.unwrap_err().to_string();
            assert!(
                shown.contains("they go into `args`, one by one") && !shown.contains("secret"),
                "{shown}"
            );
        }
    }
    assert_eq!(state(&host, "absent"), ("failed", Some("transport")));
    assert!(host.server("off").is_none());
    let begun = Instant::now();
    while state(&host, "ends") != ("failed", Some("closed")) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = host.server("ends").unwrap().last_error.unwrap();
    assert_eq!(error.exit().unwrap().to_string(), "exit code 3", "{error}");
    // What stays says everything back, the answer to its own ping too.
    within(host.client("stays").unwrap().ping().into_future()).await.unwrap();
    assert_eq!(state(&host, "stays").0, "connected");
    let closed = within(host.close()).await;
    assert_eq!(closed.len(), 1);
    assert!(closed[0].1.as_ref().unwrap().process.is_some());
}

/// What is wrong with a URL is said by the transport.
#[test]
fn the_report_of_an_entry_that_cannot_be_used_says_why() {
    let config = json!({ "mcpServers": { "odd": { "url": "https://example.com:port/?token=secret" } } });
    let config = ServersConfig::parse(&config.to_string()).unwrap();
    let error = config.entries()[0].connector().unwrap_err();
    let (shown, report) = (error.to_string(), ErrorReport::new(&error).to_string());
    assert_eq!(shown, "server \"odd\": /mcpServers/odd/url cannot be used");
    assert!(report.starts_with(&format!("{shown}; cause: ")) && !report.contains("secret"), "{report}");
}

/// seed:S-99a: what hangs while it is closed is not waited for longer than the limit.
#[tokio::test]
async fn a_disconnect_is_bounded() {
    let server = Server::start().await;
    let (url, deletes) = (server.url(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&deletes);
    tokio::spawn(async move {
        loop {
            let mut peer = server.accept().await;
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                while let Some(request) = peer.try_request().await {
                    match request.method.as_str() {
                        "DELETE" => {
                            counted.fetch_add(1, Ordering::SeqCst);
                            std::future::pending::<()>().await;
                        }
                        "GET" => peer.respond("405 Method Not Allowed", "", "").await,
                        _ if request.body.contains("\"initialize\"") => {
                            let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
                            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
                            let answer = json!({ "jsonrpc": "2.0", "id": body["id"], "result": result });
                            let head = "content-type: application/json\r\nmcp-session-id: s\r\n";
                            peer.respond("200 OK", head, &answer.to_string()).await;
                        }
                        _ => peer.accepted().await,
                    }
                }
            });
        }
    });
    let mut limits = HostLimits::default();
    limits.close_timeout = Duration::from_secs(4);
    let host = Host::builder(builder().mode(Mode::Legacy)).limits(limits).build();
    within(host.connect("web", HttpServer::new(&url).unwrap())).await.unwrap();
    // seed:B21: two who disconnect at the same time share one closing, and one DELETE.
    let mut both = Box::pin(async { tokio::join!(host.disconnect("web"), host.disconnect("web")) });
    let arrived = async {
        while deletes.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        outcome = &mut both => panic!("{outcome:?}"),
        () = within(arrived) => {}
    }
    let (a, b) = at_the_deadline(both).await;
    assert_eq!((failed(a), failed(b)), ("timeout", "timeout"));
    assert_eq!(state(&host, "web"), ("disconnected", Some("timeout")));
    assert_eq!(deletes.load(Ordering::SeqCst), 1);
}

/// One host, both transports, real servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_holds_servers_of_every_transport() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let served = tokio::spawn(mcp_demo_server::serve_http(listener));
    let host = Host::new(mcp_client::Client::builder("test", "1.0"));
    let config = json!({ "servers": { "web": { "type": "http", "url": url } } }).to_string();
    let config = ServersConfig::parse(&config).unwrap();
    within(host.connect("web", config.entry("web").unwrap().connector().unwrap())).await.unwrap();
    let piped = mcp_client::host::Connector::new(async || {
        let (connection, server) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(server);
        tokio::spawn(mcp_demo_server::serve_stdio(reader, writer));
        let (reader, writer) = tokio::io::split(connection);
        Ok(mcp_client::LineConnection::from_io(reader, writer, Default::default())?)
    });
    within(host.connect("pipe", piped)).await.unwrap();
    for round in 0..2 {
        let table = mcp_client::host::ToolNames::default().table(within(host.list_tools()).await);
        for name in ["web__echo", "pipe__echo"] {
            let tool = table.resolve(name).unwrap();
            let result =
                within(async { host.call_tool(tool, json!({ "message": name })).unwrap().await }).await;
            assert!(format!("{result:?}").contains(name), "{round} {result:?}");
        }
        for name in ["web", "pipe"] {
            within(host.reconnect(name)).await.unwrap();
        }
    }
    let closed = within(host.close()).await;
    assert!(closed.len() == 2 && closed.iter().all(|(_, closed)| closed.is_ok()));
    served.abort();
}
