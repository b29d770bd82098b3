//! Questions as the peer writes them, and handlers that a test plays by hand.

use std::future::{IntoFuture, Ready, pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::{
    Client, ClientBuilder, ClientEvent, ElicitRequest, ElicitResult, ElicitationContext, ElicitationEvent,
    Error, RequestId,
};
use serde_json::{Map, Value, json};

pub(crate) use crate::client::peer::{
    Peer, SECOND, builder, connected, diagnostics, empty_form, pipe, recorded,
};

pub(crate) fn form(id: impl Into<Value>) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 30 } },
        "required": ["name"],
    });
    ask(id, json!({ "message": "Who?", "requestedSchema": schema }))
}

pub(crate) fn ask(id: impl Into<Value>, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "elicitation/create", "params": params })
}

pub(crate) fn url_params(elicitation_id: &str) -> Value {
    let url = format!("https://example.com/{elicitation_id}");
    json!({ "mode": "url", "message": "Open?", "url": url, "elicitationId": elicitation_id })
}

pub(crate) fn url(id: impl Into<Value>, elicitation_id: &str) -> Value {
    ask(id, url_params(elicitation_id))
}

pub(crate) fn complete(elicitation_id: &str) -> Value {
    let params = json!({ "elicitationId": elicitation_id });
    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params })
}

pub(crate) fn withdraw(id: impl Into<Value>) -> Value {
    let params = json!({ "requestId": id.into() });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

pub(crate) fn named(name: &str) -> ElicitResult {
    ElicitResult::accept(Map::from_iter([("name".to_owned(), json!(name))]))
}

pub(crate) async fn never(_: ElicitRequest, _: ElicitationContext) -> ElicitResult {
    pending().await
}

pub(crate) async fn accept(request: ElicitRequest, _: ElicitationContext) -> ElicitResult {
    match request {
        ElicitRequest::Url(_) => ElicitResult::accept_url(),
        _ => named("Ada"),
    }
}

/// A handler that nobody may ask, and how often it was: one that panics would only look like a `cancel`.
pub(crate) fn unasked()
-> (impl Fn(ElicitRequest, ElicitationContext) -> Ready<ElicitResult> + Clone + Send + Sync, Arc<AtomicUsize>)
{
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        count.fetch_add(1, Ordering::SeqCst);
        ready(ElicitResult::cancel())
    };
    (handler, asked)
}

/// A handler that counts what it is asked and answers with consent.
pub(crate) fn consenting() -> (ClientBuilder, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    let handler = move |request: ElicitRequest, context: ElicitationContext| {
        if let ElicitRequest::Url(url) = &request {
            let id = url.elicitation_id().unwrap();
            assert_eq!(context.request_id, RequestId::from(format!("url-required:{id}")), "seed:S-55");
            record.lock().unwrap().push(url.elicitation_id().unwrap().to_owned());
        }
        async { ElicitResult::accept_url() }
    };
    (builder().on_elicitation(handler), asked)
}

/// Error -32042, which asks for these first.
pub(crate) fn required(call: &Value, entries: &[Value]) -> Value {
    let error = json!({ "code": -32042, "message": "first this", "data": { "elicitations": entries } });
    json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })
}

/// What the desk told, in a few words each.
pub(crate) fn told(events: &Mutex<Vec<ClientEvent>>) -> Vec<String> {
    let events = events.lock().unwrap();
    let words = events.iter().filter_map(|event| match event {
        ClientEvent::Elicitation(event) => Some(match event {
            ElicitationEvent::Asked { .. } => "asked".to_owned(),
            ElicitationEvent::CallContinues { outcome, .. } => format!("call {outcome:?}"),
            ElicitationEvent::CallWaits { .. } => "call waits".to_owned(),
            ElicitationEvent::NotShown { reason } => format!("not shown: {}", reason.as_str()),
            ElicitationEvent::Ended { end, .. } => format!("ended {end:?}"),
            ElicitationEvent::NotPublished { .. } => "not published".to_owned(),
            ElicitationEvent::Deferred { .. } => "put off".to_owned(),
            ElicitationEvent::Refused { refusal } => format!("refused {refusal}"),
            ElicitationEvent::UrlCompleted { elicitation_id } => format!("completed {elicitation_id}"),
            other => panic!("{other:?}"),
        }),
        _ => None,
    });
    words.collect()
}

/// Lets everything that is ready run.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A tool call on a task of its own.
pub(crate) fn call_tool(client: &Client, name: &str) -> tokio::task::JoinHandle<Result<Value, Error>> {
    let call = client.call_tool(name, json!({})).raw().into_future();
    tokio::spawn(async move { call.await.map(|raw| serde_json::from_str(raw.as_str()).unwrap()) })
}

/// Nothing is open at the client's desk, and nobody waits.
pub(crate) fn assert_idle(client: &Client) {
    assert_eq!(client.desk().open_questions().len(), 0);
    assert_eq!(client.desk().waiting_calls().len(), 0);
}
