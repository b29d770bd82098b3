//! The scripted peer.

use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::model::ProtocolVersion;
use mcp_client::transport::stdio::LineLimits;
use mcp_client::{
    Client, ClientBuilder, ClientEvent, Error, LineConnection, Mode, Outcome, SuspendedCall, TaskConfig,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The server's end of the pipe.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

/// A pipe: the client's end as a connection, and the peer's. `capacity` is what the pipe takes before writes wait.
pub(crate) fn pipe(capacity: usize) -> (LineConnection, Peer) {
    pipe_with(capacity, LineLimits::default())
}

/// As [`pipe`], with limits of our own.
pub(crate) fn pipe_with(capacity: usize, limits: LineLimits) -> (LineConnection, Peer) {
    let (ours, theirs) = tokio::io::duplex(capacity);
    let (reader, writer) = tokio::io::split(ours);
    let connection = LineConnection::from_io(reader, writer, limits).unwrap();
    let (reader, writer) = tokio::io::split(theirs);
    (connection, Peer { lines: BufReader::new(reader).lines(), writer })
}

impl Peer {
    /// The next message of the client.
    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client closed the pipe");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message; `None` behind the end.
    pub(crate) async fn try_receive(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok().flatten()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The next message, which must be a request or notification of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.receive().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Nothing comes for so long.
    pub(crate) async fn expect_silence(&mut self, time: Duration) {
        if let Ok(line) = tokio::time::timeout(time, self.lines.next_line()).await {
            panic!("unexpected: {line:?}");
        }
    }

    /// The client ended its side.
    pub(crate) async fn expect_end(&mut self) {
        assert_eq!(self.lines.next_line().await.unwrap(), None);
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send_bytes(format!("{text}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Answers with an error object.
    pub(crate) async fn refuse(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    /// Grants a subscription what it asks for.
    pub(crate) async fn grant(&mut self, listen: &Value) {
        self.send(granted(listen)).await;
    }

    /// Answers a ping of this client: the connection is as good as before.
    pub(crate) async fn answers_a_ping_of(&mut self, client: &Client) {
        let (pong, ()) = tokio::join!(client.ping().into_future(), async {
            let ping = self.expect("ping").await;
            self.answer(&ping, json!({})).await;
        });
        pong.unwrap();
    }

    pub(crate) async fn progress(&mut self, request: &Value, progress: f64) {
        let token = &request["params"]["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": progress });
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })).await;
    }

    /// Plays the handshake as a server with these capabilities. Returns what `initialize` carried.
    pub(crate) async fn handshake(&mut self, capabilities: Value) -> Value {
        let initialize = self.expect("initialize").await;
        let result = json!({
            "protocolVersion": initialize["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        self.answer(&initialize, result).await;
        self.expect("notifications/initialized").await;
        initialize
    }

    /// Says what it is as a server of the modern era with these capabilities.
    pub(crate) async fn discovered(&mut self, capabilities: Value) {
        let discover = self.expect("server/discover").await;
        let result = json!({
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        });
        self.answer(&discover, result).await;
    }
}

/// A client connected to a peer with tools.
pub(crate) async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, _) = tokio::join!(builder.connect(connection), peer.handshake(json!({ "tools": {} })));
    (client.unwrap(), peer)
}

/// A client connected to a peer of the modern era with these capabilities.
pub(crate) async fn discovered(builder: ClientBuilder, capabilities: Value) -> (Client, Peer) {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, ()) = tokio::join!(builder.connect(connection), peer.discovered(capabilities));
    (client.unwrap(), peer)
}

/// A question without anything to fill in.
pub(crate) fn empty_form() -> Value {
    json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } })
}

/// What a server says to `subscriptions/listen` that grants all of it.
pub(crate) fn granted(listen: &Value) -> Value {
    let params = json!({
        "notifications": listen["params"]["notifications"],
        "_meta": { "io.modelcontextprotocol/subscriptionId": listen["id"] },
    });
    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params })
}

/// A call that its server asks something for, put away.
pub(crate) async fn suspended(client: &Client, peer: &mut Peer) -> SuspendedCall {
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).or_suspend(), async {
        let call = peer.expect("tools/call").await;
        let asked = json!({ "q": { "method": "elicitation/create", "params": empty_form() } });
        peer.answer(&call, json!({ "resultType": "input_required", "inputRequests": asked })).await;
    });
    let Outcome::Suspended(call) = outcome.unwrap() else { panic!("not suspended") };
    call
}

/// For servers of the modern era that make tasks of calls.
pub(crate) fn modern_tasks() -> ClientBuilder {
    builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28)).tasks(TaskConfig::default())
}

/// What such a server declares.
pub(crate) fn makes_tasks() -> Value {
    json!({ "tools": { "listChanged": true }, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").mode(Mode::Legacy)
}

/// Collects the events of a connection.
pub(crate) fn recorded(builder: ClientBuilder) -> (ClientBuilder, Arc<Mutex<Vec<ClientEvent>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&events);
    (builder.on_event(move |event| record.lock().unwrap().push(event)), events)
}

/// The kinds of the diagnostics among these events.
pub(crate) fn diagnostics(events: &Mutex<Vec<ClientEvent>>) -> Vec<&'static str> {
    let events = events.lock().unwrap();
    let kinds = events.iter().filter_map(|event| match event {
        ClientEvent::Diagnostic(diagnostic) => Some(diagnostic.kind.as_str()),
        _ => None,
    });
    kinds.collect()
}

/// Kind and whether the outcome is unknown.
pub(crate) fn summary<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (&'static str, bool) {
    let error = outcome.unwrap_err();
    (error.kind().as_str(), error.outcome_unknown())
}
