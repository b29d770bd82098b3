//! Questions over Streamable HTTP: what the handler learns of the server, and error -32042 from the first request to the
//! second one.

use std::sync::{Arc, Mutex};

use mcp_client::transport::http::Proxy;
use mcp_client::{
    Client, ClientBuilder, ElicitRequest, ElicitResult, ElicitationContext, ErrorKind, HttpServer, UrlWarning,
};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::support::*;
use crate::http::script::{Peer as HttpPeer, Server, within};

/// How the server answers a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    Json,
    Sse,
}

/// A call as the server has it, and what is to be sent on its stream.
struct Call {
    request: Value,
    answer: oneshot::Sender<Vec<Value>>,
}

/// A server with tools, a session and a standing stream.
struct Scripted {
    calls: mpsc::UnboundedReceiver<Call>,
    answers: mpsc::UnboundedReceiver<Value>,
    standing: broadcast::Sender<Value>,
}

#[derive(Clone)]
struct Served {
    body: Body,
    calls: mpsc::UnboundedSender<Call>,
    answers: mpsc::UnboundedSender<Value>,
    standing: broadcast::Sender<Value>,
}

impl Scripted {
    fn start(server: Server, body: Body) -> Self {
        let (calls, called) = mpsc::unbounded_channel();
        let (answers, answered) = mpsc::unbounded_channel();
        let (standing, _) = broadcast::channel(64);
        let served = Served { body, calls, answers, standing: standing.clone() };
        tokio::spawn(async move {
            loop {
                let peer = server.accept().await;
                tokio::spawn(served.clone().serve(peer));
            }
        });
        Self { calls: called, answers: answered, standing }
    }

    async fn call(&mut self) -> Call {
        let call = within(self.calls.recv()).await.expect("a call");
        assert_eq!(call.request["method"], "tools/call", "{}", call.request);
        call
    }

    /// The next answer of the client to a request of the server.
    async fn answer(&mut self) -> Value {
        within(self.answers.recv()).await.expect("an answer")
    }
}

impl Served {
    async fn serve(self, mut peer: HttpPeer) {
        while let Some(request) = peer.try_request().await {
            if request.method == "GET" {
                return self.stand(peer).await;
            }
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            if message["method"] == "initialize" {
                let result = json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "scripted", "version": "1" },
                });
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
                let head = "content-type: application/json\r\nmcp-session-id: s\r\n";
                peer.respond("200 OK", head, &body).await;
            } else if message["method"].is_null() || message["id"].is_null() {
                if !message["id"].is_null() {
                    let _ = self.answers.send(message);
                }
                peer.accepted().await;
            } else {
                self.answer(&mut peer, message).await;
            }
        }
    }

    async fn answer(&self, peer: &mut HttpPeer, request: Value) {
        let (answer, answers) = oneshot::channel();
        if self.calls.send(Call { request, answer }).is_err() {
            return;
        }
        let messages = answers.await.unwrap_or_default();
        match self.body {
            Body::Json => {
                assert_eq!(messages.len(), 1);
                peer.json(&messages[0].to_string()).await;
            }
            Body::Sse => {
                peer.stream("").await;
                for message in messages {
                    peer.chunk(&format!("data: {message}\n\n")).await;
                }
                peer.end().await;
            }
        }
    }

    async fn stand(&self, mut peer: HttpPeer) {
        let mut messages = self.standing.subscribe();
        peer.stream("").await;
        while let Ok(message) = messages.recv().await {
            peer.chunk(&format!("data: {message}\n\n")).await;
        }
    }
}

/// A client of a server that answers so.
async fn connect(builder: ClientBuilder, body: Body) -> (Client, Scripted) {
    let server = Server::start().await;
    let endpoint = HttpServer::new(&server.url()).unwrap();
    let scripted = Scripted::start(server, body);
    let client = within(builder.connect(endpoint)).await.unwrap();
    (client, scripted)
}

fn done(call: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "content": [], "done": true } })
}

/// Waits until a call waits for the server's notices.
async fn waits(events: &Mutex<Vec<mcp_client::ClientEvent>>) {
    let waiting = async {
        while !told(events).contains(&"call waits".to_owned()) {
            settle().await;
        }
    };
    within(waiting).await;
}

/// seed:S-55, seed:B10: the handler learns which server asks, as the application named it, and that the host of the URL poses
/// as that server's host.
#[tokio::test]
async fn a_url_that_poses_as_the_server_is_told_to_the_handler() {
    let server = Server::start().await;
    let proxy = Proxy::http(&format!("http://{}", server.address())).unwrap();
    // Reached by name, which takes a proxy here.
    let endpoint = HttpServer::new("http://mcp.example.com:8080/mcp").unwrap().proxy(proxy);
    let mut scripted = Scripted::start(server, Body::Json);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&shown);
    let handler = move |request: ElicitRequest, context: ElicitationContext| {
        let ElicitRequest::Url(url) = request else { panic!("no url") };
        let url = url.url();
        let warnings: Vec<UrlWarning> = url.warnings().to_vec();
        record.lock().unwrap().push((context.server, url.host().to_owned(), warnings));
        async { ElicitResult::decline() }
    };
    let client = within(builder().on_elicitation(handler).connect(endpoint)).await.unwrap();
    let hosts = [
        ("examp1e.com", vec![UrlWarning::Lookalike]),
        ("mcp.example.com.login.net", vec![UrlWarning::Lookalike]),
        ("login.example.com", vec![]),
        ("elsewhere.net", vec![]),
    ];
    for (at, (host, _)) in hosts.iter().enumerate() {
        let mut question = url(at, &format!("e{at}"));
        question["params"]["url"] = json!(format!("https://{host}/consent"));
        // The standing stream may not be open yet, which loses what is sent before.
        while scripted.standing.send(question.clone()).is_err() {
            settle().await;
        }
        assert_eq!(scripted.answer().await["result"], json!({ "action": "decline" }));
    }
    let expected: Vec<_> = hosts
        .iter()
        .map(|(host, warnings)| {
            ("http://mcp.example.com:8080/mcp".to_owned(), (*host).to_owned(), warnings.clone())
        })
        .collect();
    assert_eq!(*shown.lock().unwrap(), expected);
    assert_idle(&client);
}

/// seed:B10, seed:E25, seed:S-58, protocol:E-20: consent, the notice on the standing stream, one more request under a new id;
/// whether the server answers with JSON or with a stream.
#[tokio::test]
async fn a_call_over_http_is_made_once_more_when_its_urls_are_done() {
    for body in [Body::Json, Body::Sse] {
        let (builder, asked) = consenting();
        let (builder, events) = recorded(builder);
        let (client, mut scripted) = connect(builder, body).await;
        let outcome = call_tool(&client, "t");
        let first = scripted.call().await;
        first.answer.send(vec![required(&first.request, &[url_params("a"), url_params("b")])]).unwrap();
        waits(&events).await;
        assert_eq!(*asked.lock().unwrap(), ["a", "b"]);
        assert_eq!(client.desk().waiting_calls().len(), 1);
        for id in ["b", "a"] {
            while scripted.standing.send(complete(id)).is_err() {
                settle().await;
            }
        }
        let second = scripted.call().await;
        assert_ne!(second.request["id"], first.request["id"]);
        assert_eq!(second.request["params"], first.request["params"]);
        second.answer.send(vec![done(&second.request)]).unwrap();
        assert_eq!(within(outcome).await.unwrap().unwrap()["done"], true);
        assert_idle(&client);
        assert!(told(&events).contains(&"call Retry".to_owned()), "{body:?}");
        client.close().await;
        assert!(scripted.calls.try_recv().is_err(), "once");
    }
}

/// seed:S-50: a notice that comes on the stream of the refused request itself, before the refusal, is of an id that nobody knows
/// yet, and counts for nothing; the person says that they are done.
#[tokio::test]
async fn a_notice_before_the_refusal_counts_for_nothing() {
    let (builder, _) = consenting();
    let (builder, events) = recorded(builder);
    let (client, mut scripted) = connect(builder, Body::Sse).await;
    let outcome = call_tool(&client, "t");
    let first = scripted.call().await;
    first.answer.send(vec![complete("a"), required(&first.request, &[url_params("a")])]).unwrap();
    waits(&events).await;
    client.desk().continue_call(client.desk().waiting_calls()[0].wait).unwrap();
    let second = scripted.call().await;
    second.answer.send(vec![done(&second.request)]).unwrap();
    assert_eq!(within(outcome).await.unwrap().unwrap()["done"], true);
    assert_idle(&client);
}

/// seed:B12: a second -32042 surfaces, with its list, and nothing of it is asked.
#[tokio::test]
async fn a_second_refusal_over_http_surfaces() {
    for body in [Body::Json, Body::Sse] {
        let (builder, asked) = consenting();
        let (builder, events) = recorded(builder);
        let (client, mut scripted) = connect(builder, body).await;
        let outcome = call_tool(&client, "t");
        let first = scripted.call().await;
        first.answer.send(vec![required(&first.request, &[url_params("a")])]).unwrap();
        waits(&events).await;
        while scripted.standing.send(complete("a")).is_err() {
            settle().await;
        }
        let second = scripted.call().await;
        second.answer.send(vec![required(&second.request, &[url_params("b")])]).unwrap();
        let error = within(outcome).await.unwrap().unwrap_err();
        let object = error.error_object().unwrap();
        assert_eq!((error.kind(), object.code.get()), (ErrorKind::Rpc, -32042));
        assert!(object.data.as_ref().unwrap().as_str().contains("/b"), "{body:?}");
        assert_eq!(*asked.lock().unwrap(), ["a"]);
        client.close().await;
        assert!(scripted.calls.try_recv().is_err(), "no third request");
    }
}

/// seed:B11, seed:S-54, seed:S-60: a list with a fault is shown to nobody, and the server's own error surfaces.
#[tokio::test]
async fn a_list_with_a_fault_over_http_surfaces_as_the_original_error() {
    let mut plain = url_params("b");
    plain["url"] = json!("http://example.com/b");
    let lists = [vec![], vec![url_params("a"), url_params("a")], vec![url_params("a"), plain]];
    for body in [Body::Json, Body::Sse] {
        let (builder, asked) = consenting();
        let (client, mut scripted) = connect(builder, body).await;
        for entries in &lists {
            let outcome = call_tool(&client, "t");
            let call = scripted.call().await;
            call.answer.send(vec![required(&call.request, entries)]).unwrap();
            let error = within(outcome).await.unwrap().unwrap_err();
            let object = error.error_object().unwrap();
            assert_eq!((object.code.get(), object.message.as_str()), (-32042, "first this"), "{body:?}");
        }
        assert!(asked.lock().unwrap().is_empty());
        assert_idle(&client);
        client.close().await;
        assert!(scripted.calls.try_recv().is_err());
    }
}
