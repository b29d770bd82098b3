//! Clients of 2026-07-28: no handshake and no session. Each request says which revision it is of and what its client can do, and a
//! question is the result of a call, answered by calling again with the answer and the state that came with the question.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::message::{
    HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal, UNSUPPORTED_PROTOCOL_VERSION, with,
};
use crate::session::{Mode, NoAnswer};
use crate::tasks::{self, Design};
use crate::{MODERN_PROTOCOL_VERSION, tools};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// How long lists and the discovery may be kept.
const TTL_MS: u64 = 60_000;
/// The one question that a tool asks here has this key.
const QUESTION: &str = "question";

/// What a request comes to.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Value),
    /// A tool is to be run.
    Call(Rounds),
}

pub(crate) fn request(method: &str, params: &Value) -> Result<Reply, Refusal> {
    if method == "initialize" {
        let why =
            format!("initialize belongs to older revisions; this server speaks {MODERN_PROTOCOL_VERSION}");
        return Err(Refusal::new(METHOD_NOT_FOUND, why));
    }
    let capabilities = check_meta(params)?;
    match method {
        "server/discover" => Ok(Reply::Result(cacheable(json!({
            "supportedVersions": [MODERN_PROTOCOL_VERSION],
            "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
            "instructions": "Four tools to try a client with: count, book_table, connect_account, echo.",
        })))),
        "tools/list" => tools::list(params).map(cacheable).map(Reply::Result),
        "tasks/get" if takes_tasks(capabilities) => {
            tasks::state(params, Design::Extension).map(complete).map(Reply::Result)
        }
        "tasks/cancel" if takes_tasks(capabilities) => {
            tasks::cancel(params, Design::Extension).map(|_| Reply::Result(complete(json!({}))))
        }
        "tools/call" if takes_tasks(capabilities) => match tasks::begin(params, Design::Extension) {
            Some(task) => task.map(|task| Reply::Result(with(complete(task), "resultType", "task"))),
            None => Rounds::read(params, capabilities).map(Reply::Call),
        },
        "tools/call" => Rounds::read(params, capabilities).map(Reply::Call),
        _ => Err(Refusal::new(METHOD_NOT_FOUND, format!("no method {method:?} here"))),
    }
}

fn takes_tasks(capabilities: &Map<String, Value>) -> bool {
    capabilities.get("extensions").and_then(|extensions| extensions.get(TASKS)).is_some_and(Value::is_object)
}

/// The client's capabilities, after checking what each request must say.
pub(crate) fn check_meta(params: &Value) -> Result<&Map<String, Value>, Refusal> {
    let missing = |key: &str| Refusal::new(INVALID_PARAMS, format!("_meta needs {key}"));
    let meta = params.get("_meta").ok_or_else(|| missing(VERSION_KEY))?;
    let version = meta.get(VERSION_KEY).and_then(Value::as_str).ok_or_else(|| missing(VERSION_KEY))?;
    if version != MODERN_PROTOCOL_VERSION {
        let data = json!({"supported": [MODERN_PROTOCOL_VERSION], "requested": version});
        let why = format!("this server speaks {MODERN_PROTOCOL_VERSION}");
        return Err(Refusal::new(UNSUPPORTED_PROTOCOL_VERSION, why).with_data(data));
    }
    meta.get(CAPABILITIES_KEY).and_then(Value::as_object).ok_or_else(|| missing(CAPABILITIES_KEY))
}

/// Whether the headers say the same as the body.
pub(crate) fn check_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    method: &str,
    params: &Value,
) -> Result<(), Refusal> {
    let version = params.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
    let named = match method {
        "tools/call" => params.get("name"),
        "tasks/get" | "tasks/cancel" => params.get("taskId"),
        _ => None,
    };
    let name = named.and_then(Value::as_str);
    for (of, said, expected) in [
        ("MCP-Protocol-Version", header("mcp-protocol-version"), version),
        ("Mcp-Method", header("mcp-method"), Some(method)),
        ("Mcp-Name", header("mcp-name"), name),
    ] {
        if said != expected {
            return Err(Refusal::new(HEADER_MISMATCH, format!("{of} does not repeat what the body says")));
        }
    }
    Ok(())
}

/// The HTTP status of an error.
pub(crate) fn status(code: i64) -> hyper::StatusCode {
    match code {
        METHOD_NOT_FOUND => hyper::StatusCode::NOT_FOUND,
        _ => hyper::StatusCode::BAD_REQUEST,
    }
}

pub(crate) fn complete(mut result: Value) -> Value {
    if let Some(members) = result.as_object_mut() {
        members.insert("resultType".into(), "complete".into());
        let server = json!({"name": "mcp-demo-server", "version": env!("CARGO_PKG_VERSION")});
        members.insert("_meta".into(), json!({ SERVER_KEY: server }));
    }
    result
}

pub(crate) fn cacheable(result: Value) -> Value {
    let mut result = complete(result);
    if let Some(members) = result.as_object_mut() {
        members.insert("ttlMs".into(), TTL_MS.into());
        members.insert("cacheScope".into(), "public".into());
    }
    result
}

/// A call with the answers that it brought along, and the question that it leaves.
#[derive(Debug)]
pub(crate) struct Rounds {
    tool: String,
    takes_forms: bool,
    takes_urls: bool,
    /// The answer to the question of an earlier round.
    answer: Option<Value>,
    question: Mutex<Option<Value>>,
}

impl Rounds {
    fn read(params: &Value, capabilities: &Map<String, Value>) -> Result<Self, Refusal> {
        let tool = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
        let takes_urls = elicitation.is_some_and(|modes| modes.contains_key("url"));
        let takes_forms = elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
        let responses = params.get("inputResponses").and_then(Value::as_object);
        let answer = responses.and_then(|responses| responses.get(QUESTION)).cloned();
        let state = params.get("requestState").and_then(Value::as_str);
        // Nothing is kept between two requests, so all that is known of the first is what comes back. There is nothing in
        // it worth forging here; a server that puts more into it has to seal it.
        if (answer.is_some() || state.is_some()) && state != Some(self::state(&tool).as_str()) {
            return Err(Refusal::new(INVALID_PARAMS, "this requestState was not given to this call"));
        }
        Ok(Self { tool, takes_forms, takes_urls, answer, question: Mutex::new(None) })
    }

    /// The answer, if it is there; else the question becomes the result.
    pub(crate) fn ask(&self, mode: Mode, mut params: Value) -> Result<Value, NoAnswer> {
        let declared = match mode {
            Mode::Form => self.takes_forms,
            Mode::Url => self.takes_urls,
        };
        if !declared {
            return Err(NoAnswer::Undeclared);
        }
        if let Some(answer) = &self.answer {
            return Ok(answer.clone());
        }
        if let Some(members) = params.as_object_mut() {
            // Nothing but the key names a question in this era.
            members.remove("elicitationId");
        }
        let question = json!({"method": "elicitation/create", "params": params});
        *self.question.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
        Err(NoAnswer::Later)
    }

    /// What is sent for what the tool gave.
    pub(crate) fn result(&self, result: Value) -> Value {
        match self.question.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(question) => json!({
                "resultType": "input_required",
                "inputRequests": { QUESTION: question },
                "requestState": state(&self.tool),
            }),
            None => complete(result),
        }
    }
}

fn state(tool: &str) -> String {
    format!("asked by {tool}")
}
