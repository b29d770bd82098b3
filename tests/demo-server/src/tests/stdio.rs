use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use super::{answer, call, initialize, initialized, request, text_of};
use crate::{Era, Limits, stdio};

struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
    server: JoinHandle<io::Result<()>>,
}

impl Peer {
    fn start(limits: Limits) -> Self {
        let (near, far) = tokio::io::duplex(4096);
        let (far_read, far_write) = tokio::io::split(far);
        let server = tokio::spawn(stdio::serve(far_read, far_write, Era::Legacy, limits));
        let (read, input) = tokio::io::split(near);
        Self { lines: BufReader::new(read).lines(), input, server }
    }

    async fn ready(limits: Limits, capabilities: Value) -> Self {
        let mut peer = Self::start(limits);
        peer.send(&initialize(0, &capabilities)).await;
        assert_eq!(peer.next().await["result"]["protocolVersion"], "2025-11-25");
        peer.send(&initialized()).await;
        peer
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(600), self.lines.next_line()).await;
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_before_their_phase_are_refused_and_ping_never_is() {
    let mut peer = Peer::start(Limits::default());
    peer.send(&request(1, "ping")).await;
    assert_eq!(peer.next().await["result"], json!({}));
    peer.send(&request(2, "tools/list")).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
    peer.send(&initialize(3, &json!({}))).await;
    assert_eq!(peer.next().await["id"], 3);
    peer.send(&request(4, "tools/list")).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
    peer.send(&initialized()).await;
    peer.send(&request(5, "tools/list")).await;
    assert_eq!(peer.next().await["result"]["tools"].as_array().unwrap().len(), 3);
    peer.send(&initialize(6, &json!({}))).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
    peer.send(&request(7, "resources/list")).await;
    assert_eq!(peer.next().await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_initialize_is_refused_and_may_be_repeated() {
    let mut peer = Peer::start(Limits::default());
    for member in ["protocolVersion", "capabilities", "clientInfo"] {
        let mut message = initialize(1, &json!({}));
        message["params"].as_object_mut().unwrap().remove(member);
        peer.send(&message).await;
        assert_eq!(peer.next().await["error"]["code"], -32602, "without {member}");
    }
    peer.send(&initialize(2, &json!({}))).await;
    assert_eq!(peer.next().await["result"]["serverInfo"]["name"], "mcp-demo-server");
}

#[tokio::test(start_paused = true)]
async fn the_list_has_two_pages() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    peer.send(&request(1, "tools/list")).await;
    let first = peer.next().await;
    let mut second = request(2, "tools/list");
    second["params"] = json!({"cursor": first["result"]["nextCursor"]});
    peer.send(&second).await;
    let second = peer.next().await;
    assert_eq!(second["result"]["tools"][0]["name"], "echo");
    assert_eq!(second["result"].get("nextCursor"), None);
    let mut foreign = request(3, "tools/list");
    foreign["params"] = json!({"cursor": "elsewhere"});
    peer.send(&foreign).await;
    assert_eq!(peer.next().await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn count_reports_each_step_and_then_the_total() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    peer.send(&call(1, "count", json!({"to": 3}))).await;
    for step in 1..=3 {
        let progress = peer.next().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "token-1");
        assert_eq!(
            (&progress["params"]["progress"], &progress["params"]["total"]),
            (&json!(step), &json!(3))
        );
    }
    assert_eq!(peer.next().await["result"]["structuredContent"]["total"], 3);
}

#[tokio::test(start_paused = true)]
async fn count_is_silent_without_a_progress_token() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    let mut message = call(1, "count", json!({"to": 2}));
    message["params"].as_object_mut().unwrap().remove("_meta");
    peer.send(&message).await;
    assert_eq!(peer.next().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_a_tool_error_and_a_wrong_tool_a_protocol_error() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    for arguments in
        [json!({}), json!({"to": 0}), json!({"to": 1.5}), json!({"to": 1001}), json!({"to": "3"})]
    {
        peer.send(&call(1, "count", arguments.clone())).await;
        assert_eq!(peer.next().await["result"]["isError"], true, "{arguments}");
    }
    peer.send(&call(2, "no_such_tool", json!({}))).await;
    assert_eq!(peer.next().await["error"]["code"], -32602);
    peer.send(&call(3, "echo", json!([]))).await;
    assert_eq!(peer.next().await["error"]["code"], -32602);
    peer.send(&call(4, "echo", json!({"message": "still here"}))).await;
    assert_eq!(text_of(&peer.next().await), "still here");
}

#[tokio::test(start_paused = true)]
async fn a_table_is_booked_from_the_answer() {
    let mut peer = Peer::ready(Limits::default(), json!({"elicitation": {}})).await;
    for (result, expected) in [
        (
            json!({"action": "accept", "content": {"name": "Ada", "guests": 4.0, "seating": "garden", "reminder": false}}),
            "booked for Ada: 4 guests, garden, without a reminder",
        ),
        (
            json!({"action": "accept", "content": {"name": "Ada", "seating": "inside"}}),
            "booked for Ada: 2 guests, inside, with a reminder",
        ),
        (json!({"action": "decline"}), "nothing booked: the question was declined"),
        (json!({"action": "cancel"}), "nothing booked: the question was cancelled"),
        (json!({"action": "accept"}), "name must be a string of 1 to 60 characters"),
        (
            json!({"action": "accept", "content": {"name": "Ada", "seating": "roof"}}),
            "seating must be one of the offered values",
        ),
        (json!({"action": "maybe"}), "the client's answer is not an elicitation result"),
    ] {
        peer.send(&call(1, "book_table", json!({}))).await;
        let question = peer.next().await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["mode"], "form");
        peer.send(&answer(&question["id"], result.clone())).await;
        assert_eq!(text_of(&peer.next().await), expected, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_is_connected_after_consent_and_completion_comes_before_the_result() {
    let mut peer = Peer::ready(Limits::default(), json!({"elicitation": {"url": {}}})).await;
    peer.send(&call(1, "connect_account", json!({}))).await;
    let question = peer.next().await;
    assert_eq!(question["params"]["mode"], "url");
    let id = question["params"]["elicitationId"].clone();
    assert!(
        question["params"]["url"]
            .as_str()
            .unwrap()
            .starts_with("https://accounts.example.com/connect?request=")
    );
    peer.send(&answer(&question["id"], json!({"action": "accept"}))).await;
    let complete = peer.next().await;
    assert_eq!(complete["method"], "notifications/elicitation/complete");
    assert_eq!(complete["params"]["elicitationId"], id);
    assert_eq!(text_of(&peer.next().await), "account connected");

    peer.send(&call(2, "connect_account", json!({}))).await;
    let question = peer.next().await;
    peer.send(&answer(&question["id"], json!({"action": "decline"}))).await;
    assert_eq!(text_of(&peer.next().await), "not connected: the question was declined");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_not_asked() {
    for (capabilities, tool) in [
        (json!({}), "book_table"),
        (json!({"elicitation": {"url": {}}}), "book_table"),
        (json!({"elicitation": {}}), "connect_account"),
        (json!({"elicitation": {"form": {}}}), "connect_account"),
    ] {
        let mut peer = Peer::ready(Limits::default(), capabilities.clone()).await;
        peer.send(&call(1, tool, json!({}))).await;
        assert_eq!(peer.next().await["result"]["isError"], true, "{tool} with {capabilities}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_instead_of_an_answer_ends_the_call() {
    let mut peer = Peer::ready(Limits::default(), json!({"elicitation": {}})).await;
    peer.send(&call(1, "book_table", json!({}))).await;
    let id = peer.next().await["id"].clone();
    peer.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no forms"}})).await;
    assert_eq!(text_of(&peer.next().await), "the client could not ask: no forms");
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_only_so_long() {
    let mut peer = Peer::ready(Limits::default(), json!({"elicitation": {}})).await;
    peer.send(&call(1, "book_table", json!({}))).await;
    let question = peer.next().await;
    let withdrawn = peer.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(text_of(&peer.next().await), "nobody answered in time");
    // An answer that is late changes nothing.
    peer.send(&answer(&question["id"], json!({"action": "accept"}))).await;
    peer.send(&request(2, "ping")).await;
    assert_eq!(peer.next().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_its_question_and_gets_no_answer() {
    let mut peer = Peer::ready(Limits::default(), json!({"elicitation": {}})).await;
    peer.send(&call(1, "book_table", json!({}))).await;
    let question = peer.next().await;
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let withdrawn = peer.next().await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    peer.send(&call(1, "echo", json!({"message": "the id is free again"}))).await;
    assert_eq!(text_of(&peer.next().await), "the id is free again");
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_up_to_the_limit() {
    let limits = Limits { calls: 2, ..Limits::default() };
    let mut peer = Peer::ready(limits, json!({})).await;
    peer.send(&call(1, "count", json!({"to": 1, "delay_ms": 1000}))).await;
    peer.send(&call(1, "echo", json!({"message": "same id"}))).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
    peer.send(&call(2, "count", json!({"to": 1, "delay_ms": 10}))).await;
    peer.send(&call(3, "echo", json!({"message": "too many"}))).await;
    assert_eq!(peer.next().await["error"]["code"], -32000);
    assert_eq!(peer.next().await["params"]["progressToken"], "token-2");
    assert_eq!(peer.next().await["id"], 2);
    assert_eq!(peer.next().await["params"]["progressToken"], "token-1");
    assert_eq!(peer.next().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_limit_is_skipped_and_the_next_is_read() {
    let limits = Limits { message_bytes: 300, ..Limits::default() };
    let mut peer = Peer::ready(limits, json!({})).await;
    let fitting = |length: usize| {
        let empty = call(1, "echo", json!({"message": ""})).to_string().len();
        call(1, "echo", json!({"message": "x".repeat(length - empty)}))
    };
    for (length, fits) in [(299, true), (300, true), (301, false), (100_000, false)] {
        peer.send(&fitting(length)).await;
        assert_eq!(peer.next().await.get("result").is_some(), fits, "{length} bytes");
    }
    peer.send(&request(2, "ping")).await;
    assert_eq!(peer.next().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn noise_gets_a_parse_error_and_blank_lines_nothing() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    peer.input.write_all(b"\n  \r\nhello\n").await.unwrap();
    let refused = peer.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32700)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_ends_the_server_after_what_was_ready_is_written() {
    let mut peer = Peer::ready(Limits::default(), json!({})).await;
    peer.send(&call(1, "count", json!({"to": 1000, "delay_ms": 1000}))).await;
    peer.send(&request(2, "ping")).await;
    peer.input.shutdown().await.unwrap();
    assert_eq!(peer.next().await["id"], 2);
    assert!(peer.server.await.unwrap().is_ok());
    assert_eq!(peer.lines.next_line().await.unwrap(), None);
}
