//! Which era is spoken in the end, or why there is no connection: every way to choose, against every kind of server.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::model::ProtocolVersion;
use mcp_client::{Client, Endpoint, Era, Error, HttpServer, Mode, Verdict, VerdictReason};
use serde_json::{Value, json};

use super::peer::{builder, pipe};
use crate::http::script::{PATIENCE, Peer, Server, at_the_deadline, within};

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Both eras.
    Dual,
    /// Refuses what it does not know.
    Legacy,
    /// Refuses `initialize` and names what it speaks.
    Modern,
    /// Legacy, and ignores what it does not know.
    Silent,
}

use Kind::{Dual, Legacy, Modern, Silent};

impl Kind {
    /// The answer to a request, if there is one: the HTTP status, and the message.
    fn answer(self, request: &Value) -> Option<(&'static str, Value)> {
        let error = |code: i64, data: Value| json!({ "code": code, "message": "no", "data": data });
        let (status, name, value) = match (request["method"].as_str()?, self) {
            ("server/discover", Dual | Modern) => {
                let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
                ("200 OK", "result", result)
            }
            ("server/discover", Legacy) => ("400 Bad Request", "error", error(-32000, Value::Null)),
            ("server/discover", Silent) => return None,
            ("initialize", Modern) => {
                let supported = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
                ("400 Bad Request", "error", error(-32022, supported))
            }
            ("initialize", _) => {
                let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
                ("200 OK", "result", result)
            }
            _ => ("200 OK", "result", json!({ "resultType": "complete", "tools": [] })),
        };
        Some((status, json!({ "jsonrpc": "2.0", "id": request["id"], name: value })))
    }
}

/// Which handshakes a server heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, message: &Value) {
        if let Some(method @ ("server/discover" | "initialize")) = message["method"].as_str() {
            self.0.lock().unwrap().push(method.trim_start_matches("server/").to_owned());
        }
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }
}

/// A server behind a pipe.
fn over_pipe(kind: Kind, heard: Heard) -> mcp_client::LineConnection {
    let (connection, mut peer) = pipe(1 << 20);
    tokio::spawn(async move {
        while let Some(message) = peer.try_receive().await {
            heard.note(&message);
            if let Some((_, answer)) = kind.answer(&message).filter(|_| message.get("id").is_some()) {
                peer.send(answer).await;
            }
        }
    });
    connection
}

/// How a call is refused: the HTTP status, and the error object if there is one.
type Refusal = (&'static str, Value);

/// A server behind a URL, which can become another one; or refuse every call in some way.
struct Web {
    url: String,
    heard: Heard,
    now: Arc<Mutex<(Kind, Option<Refusal>)>>,
}

impl Web {
    async fn start(kind: Kind) -> Self {
        let server = Server::start().await;
        let web =
            Self { url: server.url(), heard: Heard::default(), now: Arc::new(Mutex::new((kind, None))) };
        let (heard, now) = (web.heard.clone(), Arc::clone(&web.now));
        tokio::spawn(async move {
            loop {
                let peer = server.accept().await;
                tokio::spawn(Self::serve(peer, heard.clone(), Arc::clone(&now)));
            }
        });
        web
    }

    async fn serve(mut peer: Peer, heard: Heard, now: Arc<Mutex<(Kind, Option<Refusal>)>>) {
        while let Some(request) = peer.try_request().await {
            let message = serde_json::from_str::<Value>(&request.body).unwrap_or_default();
            heard.note(&message);
            let (kind, refusal) = now.lock().unwrap().clone();
            let is_call = message["method"] == "tools/call";
            match (kind.answer(&message), refusal) {
                _ if request.method != "POST" => peer.respond("405 Method Not Allowed", "", "").await,
                _ if message.get("id").is_none() => peer.accepted().await,
                (_, Some((status, Value::Null))) if is_call => peer.respond(status, "", "").await,
                (_, Some((status, error))) if is_call => {
                    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                    peer.respond(status, "content-type: application/json\r\n", &body.to_string()).await;
                }
                (Some((status, answer)), _) => {
                    peer.respond(status, "content-type: application/json\r\n", &answer.to_string()).await;
                }
                (None, _) => {}
            }
        }
    }

    fn endpoint(&self) -> HttpServer {
        HttpServer::new(&self.url).unwrap()
    }

    fn become_another(&self, kind: Kind, refusal: Option<Refusal>) {
        *self.now.lock().unwrap() = (kind, refusal);
    }
}

fn known(version: ProtocolVersion, reason: VerdictReason) -> Mode {
    Mode::Known(Verdict::new(version, reason))
}

fn known_legacy() -> Mode {
    known(ProtocolVersion::V2025_11_25, VerdictReason::RefusedProbe(-32601))
}

fn known_modern() -> Mode {
    known(ProtocolVersion::V2026_07_28, VerdictReason::Discovered)
}

fn pinned() -> Mode {
    Mode::Pinned(ProtocolVersion::V2026_07_28)
}

/// Connects and lists the tools; gives the era, or the kind of the error.
async fn outcome(mode: Mode, time: Duration, endpoint: impl Into<Endpoint>) -> String {
    let connected: Result<Client, Error> =
        builder().mode(mode).initialize_timeout(time).connect(endpoint).await;
    match connected {
        Ok(client) => {
            client.list_tools().page().await.unwrap();
            match client.server().era() {
                Era::Legacy => "legacy".to_owned(),
                Era::Modern => "modern".to_owned(),
                other => panic!("{other:?}"),
            }
        }
        Err(error) => error.kind().as_str().to_owned(),
    }
}

type Row = (fn() -> Mode, Kind, &'static str);

/// What the server hears of the handshake, what it leads to, and after how long where that is not at once.
const OVER_A_PIPE: [Row; 20] = [
    (|| Mode::Auto, Dual, "discover: modern"),
    (|| Mode::Auto, Legacy, "discover, initialize: legacy"),
    (|| Mode::Auto, Modern, "discover: modern"),
    (|| Mode::Auto, Silent, "discover, initialize: legacy after 3 s"),
    (|| Mode::Legacy, Dual, "initialize: legacy"),
    (|| Mode::Legacy, Legacy, "initialize: legacy"),
    (|| Mode::Legacy, Modern, "initialize: rpc"),
    (|| Mode::Legacy, Silent, "initialize: legacy"),
    (pinned, Dual, "discover: modern"),
    (pinned, Legacy, "discover: unsupported_version"),
    (pinned, Modern, "discover: modern"),
    (pinned, Silent, "discover: timeout after 60 s"),
    (known_legacy, Dual, "initialize: legacy"),
    (known_legacy, Legacy, "initialize: legacy"),
    (known_legacy, Modern, "initialize, discover: modern"),
    (known_legacy, Silent, "initialize: legacy"),
    (known_modern, Dual, "discover: modern"),
    (known_modern, Legacy, "discover, initialize: legacy"),
    (known_modern, Modern, "discover: modern"),
    (known_modern, Silent, "discover, initialize: legacy after 9 s"),
];

/// The rows that differ over HTTP, where a server that is silent may be anything.
const OVER_HTTP: [Row; 3] = [
    (|| Mode::Auto, Silent, "discover: timeout"),
    (pinned, Silent, "discover: timeout"),
    (known_modern, Silent, "discover: timeout"),
];

/// protocol:2.9, protocol:L-34, protocol:L-37
#[tokio::test(start_paused = true)]
async fn each_way_to_choose_meets_each_kind_of_server_over_a_pipe() {
    for (mode, kind, expected) in OVER_A_PIPE {
        let heard = Heard::default();
        let begun = tokio::time::Instant::now();
        let connection = over_pipe(kind, heard.clone());
        let outcome = outcome(mode(), Duration::from_secs(60), connection).await;
        let after = match begun.elapsed().as_secs() {
            0 => String::new(),
            seconds => format!(" after {seconds} s"),
        };
        assert_eq!(format!("{}: {outcome}{after}", heard.take()), expected, "{:?}, {kind:?}", mode());
    }
}

/// protocol:2.9, protocol:L-34, protocol:L-37, protocol:H15, protocol:H18
#[tokio::test]
async fn each_way_to_choose_meets_each_kind_of_server_over_http() {
    for (mode, kind, over_a_pipe) in OVER_A_PIPE {
        let differs = OVER_HTTP.iter().find(|(other, silent, _)| (other(), *silent) == (mode(), kind));
        let expected = differs.map_or(over_a_pipe, |(_, _, expected)| expected);
        let web = Web::start(kind).await;
        let mut connecting = Box::pin(outcome(mode(), PATIENCE / 2, web.endpoint()));
        if differs.is_some() {
            // Once the server has heard it, only the deadline can end it.
            let heard = async {
                while web.heard.0.lock().unwrap().is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                outcome = &mut connecting => panic!("{outcome}, {:?}, {kind:?}", mode()),
                () = within(heard) => {}
            }
        }
        let outcome =
            if differs.is_some() { at_the_deadline(connecting).await } else { within(connecting).await };
        assert_eq!(format!("{}: {outcome}", web.heard.take()), expected, "{:?}, {kind:?}", mode());
    }
}

/// protocol:L-37, protocol:2.8: a modern server that another one takes the place of. The calls of the old connection fail and
/// say why; nothing is initialized behind the application's back. The next connection finds out.
#[tokio::test]
async fn a_modern_server_that_becomes_a_legacy_one_is_met_anew_and_not_on_the_same_connection() {
    let error = |code: i64, data: Value| json!({ "code": code, "message": "no", "data": data });
    let legacy_only = json!({ "supported": ["2025-11-25"], "requested": "2026-07-28" });
    let refusals = [
        (("400 Bad Request", error(-32000, Value::Null)), "rpc"),
        (("400 Bad Request", error(-32022, legacy_only)), "unsupported_version"),
        (("400 Bad Request", Value::Null), "transport"),
        (("404 Not Found", Value::Null), "transport"),
        (("200 OK", error(-32601, Value::Null)), "rpc"),
    ];
    for (refusal, expected) in refusals {
        let web = Web::start(Modern).await;
        let client = builder().mode(Mode::Auto).connect(web.endpoint()).await.unwrap();
        assert_eq!(web.heard.take(), "discover");
        web.become_another(Legacy, Some(refusal.clone()));
        for _ in 0..2 {
            let error = client.call_tool("t", json!({})).into_future().await.unwrap_err();
            assert_eq!(error.kind().as_str(), expected, "{refusal:?}");
        }
        assert_eq!(web.heard.take(), "", "{refusal:?}");
        assert_eq!(client.server().era(), Era::Modern);
        web.become_another(Legacy, None);
        let verdict = Mode::Known(client.server().verdict.clone());
        let outcome = outcome(verdict, Duration::from_secs(20), web.endpoint()).await;
        assert_eq!(format!("{}: {outcome}", web.heard.take()), "discover, initialize: legacy");
    }
}
