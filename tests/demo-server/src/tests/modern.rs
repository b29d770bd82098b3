//! Clients of 2026-07-28.

use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{Era, Limits, http, stdio};

fn request(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Sends each message in turn over one pipe and gives what came back.
async fn exchange(messages: &[Value]) -> Vec<Value> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(server);
    let serving = tokio::spawn(stdio::serve(BufReader::new(reader), writer, Era::Modern, Limits::default()));
    let (reader, mut writer) = tokio::io::split(client);
    let mut lines = BufReader::new(reader).lines();
    let mut answers = Vec::new();
    for message in messages {
        writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        answers.push(serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap());
    }
    serving.abort();
    answers
}

#[tokio::test]
async fn a_question_is_a_result_and_its_answer_comes_with_the_next_request() {
    let first = request("tools/call", json!({"name": "book_table", "arguments": {}}));
    let asked = exchange(&[first]).await.remove(0);
    assert_eq!(asked["result"]["resultType"], "input_required");
    let (key, question) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");

    let content = json!({"name": "Ada", "seating": "garden"});
    let second = request(
        "tools/call",
        json!({
            "name": "book_table", "arguments": {}, "requestState": asked["result"]["requestState"],
            "inputResponses": { key: {"action": "accept", "content": content} },
        }),
    );
    // Over another pipe: nothing is remembered in between.
    let booked = exchange(&[second]).await.remove(0);
    assert_eq!(booked["result"]["resultType"], "complete");
    assert_eq!(booked["result"]["structuredContent"]["name"], "Ada");
}

#[tokio::test]
async fn what_each_request_must_say_is_checked() {
    let mut odd_version = request("tools/list", json!({}));
    odd_version["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let stale =
        request("tools/call", json!({"name": "book_table", "requestState": "mine", "inputResponses": {}}));
    let answers = exchange(&[
        request("server/discover", json!({})),
        odd_version,
        bare,
        stale,
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
    ])
    .await;
    assert_eq!(answers[0]["result"]["supportedVersions"], json!(["2026-07-28"]));
    let codes: Vec<&Value> = answers[1..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32022), &json!(-32602), &json!(-32602), &json!(-32601)]);
    assert_eq!(answers[1]["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn headers_repeat_the_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(http::serve(listener, Era::Modern, Limits::default()));
    let post = |name: &'static str| async move {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let body = request("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
        let request = Request::post("/mcp")
            .header("host", address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name)
            .body(Full::new(bytes::Bytes::from(body.to_string())))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        (
            status,
            String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap(),
        )
    };
    let (status, text) = post("echo").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("\"hi\""), "{text}");
    let (status, text) = post("count").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("-32020"), "{text}");
    server.abort();
}
