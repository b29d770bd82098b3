//! Nothing secret is ever shown: not in logs at any level, not by `Debug`, not by `Display`.
//!
//! Everything that this client is given to keep to itself is marked. The marks are looked for in everything it logs at
//! TRACE and in everything it shows, over flows that succeed and that fail.

use std::error::Error as _;
use std::fmt::{Debug, Write};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mcp_client::model::Root;
use mcp_client::{
    Client, ClientBuilder, ClientEvent, Desk, DeskConfig, ElicitReply, ElicitRequest, ElicitResult,
    ElicitationContext, Era, Error, ErrorCode, ErrorObject, HttpServer, Inbox, MemoryInbox, Mode, Outcome,
    RawJson, SamplingContext, StdioServer, StoredTask,
};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::peer::builder;
use crate::http::script::{Address, Peer, Request, Server, within};
use crate::stdio::support::sh;

/// Begins every secret.
const MARK: &str = "CANARY";

/// Everything that was logged, a line each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Recorder(Log);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Recorder {
    fn write(&self, what: &str, record: impl FnOnce(&mut Line<'_>)) {
        let mut text = what.to_owned();
        record(&mut Line(&mut text));
        self.0.0.lock().unwrap().push(text);
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata().name(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.write("record", |line| values.record(line));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata().target(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Log {
    /// Records what this thread logs from now on.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        // While there is one subscriber only, `tracing` asks that of whichever thread comes to a place first whether anybody
        // wants to know of it; a test beside this one, which has none, would answer no for all threads.
        static ANOTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| tracing::Dispatch::new(Recorder(Self::default())));
        let log = Self::default();
        (log.clone(), tracing::subscriber::set_default(Recorder(log)))
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// How often a line begins like this and has all of these pieces.
    fn count(&self, begins: &str, pieces: &[&str]) -> usize {
        let fits =
            |line: &&String| line.starts_with(begins) && pieces.iter().all(|piece| line.contains(piece));
        self.lines().iter().filter(fits).count()
    }
}

/// Everything that was shown.
#[derive(Default)]
struct Shown(String);

impl Shown {
    fn debug(&mut self, value: &impl Debug) {
        let _ = writeln!(self.0, "{value:?} {value:#?}");
    }

    fn error(&mut self, error: &Error) {
        self.debug(error);
        let _ = writeln!(self.0, "{error} {}", error.report());
        let mut cause = error.source();
        while let Some(error) = cause {
            let _ = writeln!(self.0, "{error} {error:?}");
            cause = error.source();
        }
    }

    fn failure<T: Debug>(&mut self, outcome: Result<T, Error>, kind: &str) {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind().as_str(), kind, "{error}");
        self.error(&error);
    }

    fn event(&mut self, event: &ClientEvent) {
        if let ClientEvent::Diagnostic(diagnostic) = event {
            let _ = writeln!(self.0, "{diagnostic} {diagnostic:?}");
        }
    }

    #[track_caller]
    fn holds_no_secret(&self, log: &Log) {
        for line in self.0.lines().chain(log.lines().iter().map(String::as_str)) {
            assert!(!line.contains(MARK), "{line}");
        }
    }
}

async fn answer(peer: &mut Peer, request: &Value, head: &str, result: Value) {
    let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string();
    peer.respond("200 OK", &format!("content-type: application/json\r\n{head}"), &body).await;
}

/// Answers what the client asks, as the name of the tool says.
async fn serve(mut peer: Peer, modern: bool) {
    while let Some(Request { method, body, .. }) = peer.try_request().await {
        let Ok(request) = serde_json::from_str::<Value>(&body) else {
            match method.as_str() {
                "GET" => peer.respond("405 Method Not Allowed", "", "").await,
                _ => peer.accepted().await,
            }
            continue;
        };
        let params = &request["params"];
        let wants = |answered: bool| modern && answered == params["inputResponses"].is_object();
        match (request["method"].as_str().unwrap_or_default(), params["name"].as_str().unwrap_or_default()) {
            ("server/discover", _) if modern => {
                let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {}, "resources": {} },
                    "resultType": "complete" });
                answer(&mut peer, &request, "", result).await;
            }
            ("server/discover", _) => {
                let error = json!({ "code": -32601, "message": "no" });
                peer.json(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string())
                    .await;
            }
            ("initialize", _) => {
                let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "resources": {} },
                    "serverInfo": { "name": "s", "version": "1" } });
                answer(&mut peer, &request, "mcp-session-id: CANARY-session\r\n", result).await;
            }
            (_, "ask") if wants(false) => {
                let question = json!({ "mode": "form", "message": "Key?", "requestedSchema": { "type": "object",
                    "properties": { "key": { "type": "string" } }, "required": ["key"] } });
                let sampling = json!({ "messages": [], "maxTokens": 9 });
                let result = json!({ "resultType": "input_required", "requestState": "CANARY-state", "inputRequests": {
                    "k": { "method": "elicitation/create", "params": question },
                    "r": { "method": "roots/list" },
                    "s": { "method": "sampling/createMessage", "params": sampling } } });
                answer(&mut peer, &request, "", result).await;
            }
            (_, "rpc") => {
                let error = json!({ "code": -32000, "message": "no", "data": { "x": "CANARY-data" } });
                peer.json(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string())
                    .await;
            }
            (_, "unauthorized") => peer.respond("401 Unauthorized", "www-authenticate: Bearer\r\n", "").await,
            (_, "moved") => {
                peer.respond("301 Moved Permanently", "location: /CANARY-path/elsewhere\r\n", "").await;
            }
            (_, "fault") => peer.respond("500 Internal Server Error", "", "no").await,
            (_, "unread") => answer(&mut peer, &request, "", json!([])).await,
            (_, "reset") => return peer.reset(),
            (_, "silent") => return tokio::time::sleep(Duration::from_secs(60)).await,
            ("notifications/initialized", _) => peer.accepted().await,
            (_, _) if request.get("id").is_none() => peer.accepted().await,
            _ => {
                let result = json!({ "resultType": "complete", "ttlMs": 60_000, "tools": [], "contents": [],
                    "content": [{ "type": "text", "text": "CANARY-result" }] });
                answer(&mut peer, &request, "", result).await;
            }
        }
    }
}

async fn start(modern: bool) -> HttpServer {
    let server = Server::start().await;
    let url = format!("{}/CANARY-path?token=CANARY-query", server.url());
    tokio::spawn(async move {
        loop {
            let peer = server.accept().await;
            tokio::spawn(serve(peer, modern));
        }
    });
    HttpServer::new(&url).unwrap().header("x-api-key", "CANARY-header").unwrap()
}

/// A client that is asked for things and gives them; `asked` has what its handler could show.
fn giving(events: &Arc<Mutex<Vec<ClientEvent>>>, asked: &Arc<Mutex<Shown>>) -> ClientBuilder {
    let (record, asked) = (Arc::clone(events), Arc::clone(asked));
    builder()
        .mode(Mode::Auto)
        .on_elicitation(move |_: ElicitRequest, context: ElicitationContext| {
            // To be looked at later: a handler that panics has only dismissed the question.
            asked.lock().unwrap().debug(&context);
            let mut content = Map::new();
            content.insert("key".to_owned(), json!("CANARY-answer"));
            std::future::ready(ElicitResult::accept(content))
        })
        .on_sampling(|_: RawJson, _: SamplingContext| async {
            let content = json!({ "type": "text", "text": "CANARY-sampled" });
            let result = json!({ "role": "assistant", "model": "m", "content": content });
            Ok(RawJson::from_serialize(&result).unwrap())
        })
        .roots([Root::new("file:///project")])
        .on_event(move |event| record.lock().unwrap().push(event))
}

fn arguments() -> Value {
    json!({ "password": "CANARY-argument" })
}

async fn use_it(client: &Client, shown: &mut Shown) {
    let meta = || json!({ "com.example/secret": "CANARY-meta" }).as_object().unwrap().clone();
    for name in ["ok", "ask"] {
        let call = client.call_tool(name, arguments()).meta(meta());
        shown.debug(&call);
        call.raw().await.unwrap();
    }
    shown.debug(&client.list_tools());
    client.list_tools().all().await.unwrap();
    client.list_tools().all().await.unwrap();
    client.read_resource("file:///CANARY-uri").raw().await.unwrap();
    client.request_raw("CANARY".to_lowercase(), json!({ "x": "CANARY-raw" })).await.unwrap();
    match (client.server().era(), client.call_tool("ask", arguments()).or_suspend().await.unwrap()) {
        (Era::Modern, Outcome::Suspended(suspended)) => shown.debug(&suspended),
        (Era::Legacy, Outcome::Done(_)) => {}
        (era, _) => panic!("not as it is in the {era:?} era"),
    }
    for (name, kind) in [
        ("rpc", "rpc"),
        ("unauthorized", "unauthorized"),
        ("fault", "transport"),
        ("moved", "peer_misbehaved"),
        ("unread", "peer_misbehaved"),
        ("reset", "transport"),
    ] {
        shown.failure(client.call_tool(name, arguments()).meta(meta()).await, kind);
    }
    let silent = client.call_tool("silent", arguments()).timeout(Duration::from_millis(50));
    shown.failure(silent.await, "timeout");
    let dropped = client.call_tool("silent", arguments()).into_future();
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    shown.failure(client.call_tool("x", "CANARY-no-object").await, "misuse");
}

/// auth:LIM-14, auth:SEC-14: headers, path and query of the URL, the session, arguments, results, `_meta`, answers and state.
#[tokio::test]
async fn nothing_secret_is_shown_over_http() {
    let (log, _guard) = Log::begin();
    for modern in [true, false] {
        let mut shown = Shown::default();
        let (events, asked) = (Arc::default(), Arc::<Mutex<Shown>>::default());
        let server = start(modern).await;
        shown.debug(&server);
        let builder = giving(&events, &asked);
        shown.debug(&builder);
        let client = builder.connect(server).await.unwrap();
        use_it(&client, &mut shown).await;
        shown.debug(&client);
        client.close().await;
        shown.failure(client.call_tool("late", arguments()).await, "closed");
        let events = std::mem::take(&mut *events.lock().unwrap());
        events.iter().for_each(|event| shown.event(event));
        shown.holds_no_secret(&log);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.0.is_empty(), !modern, "the handler was asked");
        asked.holds_no_secret(&log);
        let era = if modern { "era=\"modern\"" } else { "era=\"legacy\"" };
        let server = "server=\"http://127.0.0.1:";
        assert!(log.count("mcp.call", &["method=tools/call", "call=", server, era]) >= 9);
        assert_eq!(log.count("mcp_client", &["connected", era, server]), 1);
        assert!(log.count("mcp_client", &["ended", "outcome=\"ok\"", "elapsed_ms="]) > 3);
        for outcome in ["rpc", "unauthorized", "transport", "peer_misbehaved", "timeout", "dropped"] {
            let outcome = format!("outcome=\"{outcome}\"");
            assert!(log.count("mcp_client", &["ended", &outcome]) > 0, "{outcome}");
            assert!(log.count("record", &[&outcome]) > 0, "{outcome}");
        }
    }
    assert!(log.count("mcp.connect", &["server=\"http://127.0.0.1:"]) == 2);
    assert!(log.count("mcp_client", &["closed"]) == 2);
}

/// A token that a callback gives, and a server that is not there.
#[tokio::test]
async fn nothing_secret_is_shown_of_a_connect_that_fails() {
    let (log, _guard) = Log::begin();
    let mut shown = Shown::default();
    let nobody = Address::keep();
    let url = format!("{}/CANARY-path?key=CANARY-query", nobody.url());
    let server = HttpServer::new(&url).unwrap().token(|| async { Ok("CANARY-token".to_owned()) });
    shown.debug(&server);
    shown.failure(builder().mode(Mode::Auto).connect(server).await, "transport");
    let failing = HttpServer::new(&url).unwrap().header("x\n", "CANARY-value").unwrap_err();
    shown.0.push_str(&format!("{failing} {failing:?}"));
    let failing = HttpServer::new("http://user:CANARY-password@127.0.0.1/").unwrap_err();
    shown.0.push_str(&format!("{failing} {failing:?}"));
    shown.holds_no_secret(&log);
    assert_eq!(log.count("record", &["outcome=\"transport\""]), 1);
}

/// The command line of a program, in everything that says which server it is about (auth:LIM-14).
#[cfg(unix)]
#[tokio::test]
async fn the_arguments_of_a_program_are_not_shown_with_what_it_asks() {
    const SERVER: &str = r#"read a
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
read b
echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Key?","requestedSchema":{"type":"object","properties":{}}}}'
echo '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}'
read c; read d; read e
echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"go","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://example.com/1","message":"Go?"}]}}}'
read f"#;
    let (log, _guard) = Log::begin();
    let shown = Arc::new(Mutex::new(Shown::default()));
    let (asked, sampled) = (Arc::clone(&shown), Arc::clone(&shown));
    let (told_of, mut asked_for) = tokio::sync::mpsc::unbounded_channel();
    let told_of_sampling = told_of.clone();
    let inbox = Arc::new(MemoryInbox::new());
    let desk = Desk::new(DeskConfig::default().shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>));
    let program = sh(SERVER).arg("--token=CANARY-argument");
    let told = program.describe();
    let (of_desk, of_inbox) = (desk.clone(), Arc::clone(&inbox));
    let client = builder()
        .desk(&desk, told.clone())
        .on_elicitation(move |question: ElicitRequest, context: ElicitationContext| {
            assert!(context.server.contains("CANARY-argument"), "{}", context.server);
            let mut shown = asked.lock().unwrap();
            shown.debug(&context);
            let reply = if let ElicitRequest::Url(_) = question {
                told_of.send("url").unwrap();
                ElicitReply::Answer(ElicitResult::accept_url())
            } else {
                let (open, entries) = (of_desk.open_questions(), of_inbox.open());
                assert!(!open.is_empty() && !entries.is_empty());
                shown.debug(&(open, entries));
                // Dropped, which answers it with `cancel`.
                shown.debug(&context.take().unwrap());
                told_of.send("form").unwrap();
                ElicitReply::Defer
            };
            std::future::ready(reply)
        })
        .on_sampling(move |_: RawJson, context: SamplingContext| {
            sampled.lock().unwrap().debug(&context);
            told_of_sampling.send("sampling").unwrap();
            async { Err(ErrorObject::new(ErrorCode::new(-1), "no")) }
        })
        .connect(program)
        .await
        .unwrap();
    let call = client.call_tool("ok", arguments()).into_future();
    let call = tokio::spawn(call);
    let waiting = async {
        loop {
            match desk.waiting_calls() {
                waiting if waiting.is_empty() => tokio::task::yield_now().await,
                waiting => return waiting,
            }
        }
    };
    let waiting = tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
    shown.lock().unwrap().debug(&waiting);
    // A call waits from when its URL is about to be shown.
    let three = async { [asked_for.recv().await, asked_for.recv().await, asked_for.recv().await] };
    let mut three = within(three).await;
    three.sort();
    assert_eq!(three, [Some("form"), Some("sampling"), Some("url")], "each of them was shown");
    call.abort();
    client.close().await;
    let mut stored = StoredTask::new("task");
    stored.server = told;
    shown.lock().unwrap().debug(&stored);
    let shown = shown.lock().unwrap();
    shown.holds_no_secret(&log);
}

/// What is stored lives longer than a token in a command line (auth:LIM-14).
#[cfg(unix)]
#[tokio::test]
async fn a_call_that_is_put_away_has_no_argument_of_its_program() {
    const SERVER: &str = r#"read a
echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}}'
read b
echo '{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}}}'
read c"#;
    for name in [None, Some("files")] {
        let mut builder = builder().mode(Mode::Auto).elicitation_stream();
        if let Some(name) = name {
            builder = builder.server_name(name);
        }
        let client = builder.connect(sh(SERVER).arg("--token=CANARY-argument")).await.unwrap();
        let outcome = client.call_tool("ok", json!({})).or_suspend().await.unwrap();
        let Outcome::Suspended(call) = outcome else { panic!("not suspended") };
        let stored = serde_json::to_string(&call).unwrap();
        assert!(!stored.contains(MARK), "{stored}");
        assert!(call.server.starts_with(name.unwrap_or("sh sha256:")), "{}", call.server);
        client.close().await;
    }
}

/// What a program is given in its environment, and what is said to it.
#[cfg(unix)]
#[tokio::test]
async fn nothing_secret_is_shown_of_a_program() {
    const SERVER: &str = r#"read a
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
read b; read c
echo '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
read d; echo broken; exit 3"#;
    let (log, _guard) = Log::begin();
    let mut shown = Shown::default();
    let program = |script: &str| sh(script).env("API_KEY", "CANARY-env");
    shown.debug(&program(SERVER));
    let events = Arc::default();
    let client = giving(&events, &Arc::default()).mode(Mode::Legacy).connect(program(SERVER)).await.unwrap();
    client.call_tool("ok", arguments()).await.unwrap();
    shown.failure(client.call_tool("gone", arguments()).await, "closed");
    client.close().await;
    for event in &*events.lock().unwrap() {
        shown.event(event);
    }
    shown.failure(builder().connect(program("exit 4")).await, "closed");
    let missing = StdioServer::new("/no/such/program").env("API_KEY", "CANARY-env");
    shown.failure(builder().connect(missing).await, "transport");
    shown.holds_no_secret(&log);
    assert_eq!(log.count("mcp.call", &["server=\"sh\""]), 2);
    assert_eq!(log.count("record", &["outcome=\"closed\""]), 2);
}
