//! Redirects: repeated whole within the origin, refused by name elsewhere.

use mcp_transport::ErrorKind;
use mcp_transport::http::HttpServer;

use super::script::Server;
use super::support::*;

/// field:FR-058, auth:SEC-03, auth:LIM-03
#[tokio::test]
async fn same_origin_redirects_repeat_method_headers_and_body() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        for absolute in [false, true] {
            let server = Server::start().await;
            let origin = if absolute { format!("http://{}", server.address()) } else { String::new() };
            let connection = connect(&server);
            let script = async {
                let (mut peer, first) = server.request().await;
                peer.respond(status, &format!("location: {origin}/mcp/\r\n"), "").await;
                let second = peer.request().await;
                assert_eq!((second.method.as_str(), second.path.as_str()), ("POST", "/mcp/"));
                assert_eq!(second.body, first.body);
                assert_eq!(second.headers, first.headers);
                peer.json(RESULT).await;
                let get = peer.request().await;
                peer.respond(status, &format!("location: {origin}/mcp/\r\n"), "").await;
                let again = peer.request().await;
                assert_eq!((again.method, again.path.as_str()), (get.method, "/mcp/"));
                peer.respond("405 No", "", "").await;
            };
            let client = async {
                exchange(&connection, call()).await.1.unwrap();
                assert!(connection.open_stream(head()).await.unwrap().is_none());
            };
            tokio::join!(script, client);
        }
    }
}

#[tokio::test]
async fn a_loop_of_redirects_ends() {
    let server = Server::start().await;
    let connection = connect(&server);
    let (outcome, ()) = tokio::join!(exchange(&connection, call()), async {
        let mut peer = server.accept().await;
        for _ in 0..4 {
            peer.request().await;
            peer.respond("307 Go", "location: /mcp\r\n", "").await;
        }
    });
    let error = outcome.1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
    assert!(error.to_string().contains("more than 3 times"), "{error}");
}

/// seed:E14, auth:SEC-03: nothing reaches another origin
/// seed:S-73, protocol:H-60
#[tokio::test]
async fn other_redirects_are_refused_and_leak_nothing() {
    let elsewhere = Server::start().await;
    let other_port = format!("http://{}/mcp", elsewhere.address());
    let other_host = format!("http://localhost:{}/mcp", elsewhere.address().port());
    let tls = format!("https://{}/mcp", elsewhere.address());
    for status in [301, 302, 303, 307, 308] {
        for location in [other_port.as_str(), &other_host, &tls, "/mcp/", "http://user:pw@x/"] {
            for method in ["POST", "GET", "DELETE"] {
                let keeps_method = match status {
                    301 | 302 => method != "POST",
                    303 => method == "GET",
                    _ => true,
                };
                if location == "/mcp/" && keeps_method {
                    continue;
                }
                let server = Server::start().await;
                let described =
                    HttpServer::new(&server.url()).unwrap().header("X-Api-Key", "canary").unwrap();
                let connection = described.connect();
                if method == "DELETE" {
                    tokio::join!(exchange(&connection, initialize()), async {
                        let (mut peer, _) = server.request().await;
                        let head =
                            "connection: close\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n";
                        peer.respond("200 OK", head, INITIALIZED).await;
                    })
                    .0
                    .1
                    .unwrap();
                }
                let client = async {
                    match method {
                        "POST" => exchange(&connection, call()).await.1.unwrap_err(),
                        "GET" => connection.open_stream(head()).await.unwrap_err(),
                        _ => connection.delete_session(head()).await.unwrap_err(),
                    }
                };
                let (error, ()) = tokio::join!(client, async {
                    let (mut peer, _) = server.request().await;
                    peer.respond(&format!("{status} Go"), &format!("location: {location}\r\n"), "").await;
                });
                assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{status} {location}");
                assert_eq!(error.status(), Some(status));
                let text = error.to_string();
                assert!(!text.contains("pw"), "{text}");
                if location == other_port {
                    assert!(text.contains(&format!("http://{}", elsewhere.address())), "{text}");
                }
            }
        }
    }
    assert_eq!(elsewhere.accepted(), 0, "nobody even connected");
}

/// RFC 9110 section 15.4: 301 and 302 change nothing but a POST, and 303 is a GET anyway.
#[tokio::test]
async fn a_redirect_that_keeps_the_method_is_followed_by_any_status() {
    for status in [301, 302, 303, 307, 308] {
        let server = Server::start().await;
        let connection = connect(&server);
        let script = async {
            let (mut peer, _) = server.request().await;
            let head = "content-type: application/json\r\nmcp-session-id: s\r\n";
            peer.respond("200 OK", head, INITIALIZED).await;
            for method in ["GET", "DELETE"] {
                if (method, status) == ("DELETE", 303) {
                    continue;
                }
                assert_eq!(peer.request().await.method, method);
                peer.respond(&format!("{status} Go"), "location: /mcp/\r\n", "").await;
                let again = peer.request().await;
                assert_eq!((again.method.as_str(), again.path.as_str()), (method, "/mcp/"));
                assert_eq!(again.header("mcp-session-id"), Some("s"));
                peer.respond("405 No", "", "").await;
            }
        };
        let client = async {
            exchange(&connection, initialize()).await.1.unwrap();
            assert!(connection.open_stream(head()).await.unwrap().is_none());
            if status != 303 {
                connection.delete_session(head()).await.unwrap();
            }
        };
        tokio::join!(script, client);
    }
}
