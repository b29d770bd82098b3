//! One client: what it may send in which phase, its running calls, and the questions put to it.
//!
//! ```text
//! Fresh ──initialize──> Greeted ──notifications/initialized──> Ready
//!   any of them ──close──> Closed
//! ```
//!
//! `ping` is served in every phase but Closed; every other request only in Ready. A modern client has no phases but the last: see
//! `modern`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::message::{
    self, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Refusal, UNAVAILABLE,
};
use crate::modern::{self, Rounds};
use crate::notebook::{self, Notebook, Served};
use crate::tasks::{self, Design};
use crate::{Era, Limits, PROTOCOL_VERSION, tools};

/// Where messages to the client go: the stdio writer, or the response stream of one POST.
pub(crate) type Outlet = mpsc::Sender<Value>;

/// What [`Session::handle`] leaves to its caller.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The message asks for no answer.
    Nothing,
    Now(Value),
    /// The outlet carries the answer later, perhaps after other messages.
    Streaming,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Closed,
    Fresh,
    Greeted,
    Ready,
}

#[derive(Debug)]
pub(crate) struct Session {
    era: Era,
    limits: Limits,
    /// What is served in place of the four tools.
    notebook: Option<Notebook>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    takes_forms: bool,
    takes_urls: bool,
    /// Counted from 0, as many servers do: a client must not confuse it with an id of its own.
    next_question: u64,
    questions: HashMap<u64, oneshot::Sender<Result<Value, Value>>>,
    /// By the JSON text of the request id. Dropping the sender cancels the call.
    calls: HashMap<String, oneshot::Sender<()>>,
}

impl Session {
    pub(crate) fn new(era: Era, limits: Limits) -> Arc<Self> {
        Self::of(era, limits, None)
    }

    /// A session with notes, which change.
    pub(crate) fn with_notebook(era: Era, limits: Limits) -> Arc<Self> {
        Self::of(era, limits, Some(Notebook::new(era)))
    }

    fn of(era: Era, limits: Limits, notebook: Option<Notebook>) -> Arc<Self> {
        let state = State {
            phase: Phase::Fresh,
            takes_forms: false,
            takes_urls: false,
            next_question: 0,
            questions: HashMap::new(),
            calls: HashMap::new(),
        };
        Arc::new(Self { era, limits, notebook, state: Mutex::new(state) })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes one message in. Must run inside a tokio runtime, because a call becomes a task.
    pub(crate) fn handle(self: &Arc<Self>, incoming: Incoming, outlet: &Outlet) -> Reply {
        match incoming {
            Incoming::Notification { method, params } => {
                self.notified(&method, &params);
                Reply::Nothing
            }
            Incoming::Response { id, outcome } => {
                let waiting = id.as_u64().and_then(|id| self.lock().questions.remove(&id));
                if let Some(waiting) = waiting {
                    // The call that asked may have ended; its answer is then nobody's.
                    let _ = waiting.send(outcome);
                }
                Reply::Nothing
            }
            Incoming::Request { id, method, params } => match self.request(&id, &method, params, outlet) {
                Ok(Some(result)) => Reply::Now(message::response(&id, result)),
                Ok(None) => Reply::Streaming,
                Err(refusal) => Reply::Now(refusal.response(&id)),
            },
        }
    }

    /// Ends every call. Nothing is served after it.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.phase = Phase::Closed;
        state.calls.clear();
        state.questions.clear();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().calls.is_empty()
    }

    /// `Ok(None)`: a call was started and answers through the outlet.
    fn request(
        self: &Arc<Self>,
        id: &Value,
        method: &str,
        params: Value,
        outlet: &Outlet,
    ) -> Result<Option<Value>, Refusal> {
        let phase = self.lock().phase;
        if let Some(notebook) = &self.notebook
            && (phase == Phase::Ready || self.era == Era::Modern && phase != Phase::Closed)
        {
            if self.era == Era::Modern {
                modern::check_meta(&params)?;
            }
            match notebook.request(id, method, &params, outlet)? {
                Some(Served::Result(result)) => return Ok(Some(result)),
                Some(Served::Listening) => return Ok(None),
                None => {}
            }
        }
        if self.era == Era::Modern && phase != Phase::Closed {
            return match modern::request(method, &params)? {
                modern::Reply::Result(result) => Ok(Some(result)),
                modern::Reply::Call(rounds) => self.start(id, params, outlet, Some(rounds)).map(|()| None),
            };
        }
        match (phase, method) {
            (Phase::Closed, _) => Err(Refusal::new(UNAVAILABLE, "the session is closed")),
            (_, "ping") => Ok(Some(json!({}))),
            (Phase::Fresh, "initialize") => self.initialize(&params).map(Some),
            (_, "initialize") => Err(Refusal::new(INVALID_REQUEST, "the session is already initialized")),
            (Phase::Fresh, _) => Err(Refusal::new(INVALID_REQUEST, "send initialize first")),
            (Phase::Greeted, _) => Err(Refusal::new(INVALID_REQUEST, "send notifications/initialized first")),
            (Phase::Ready, "tools/list") => tools::list(&params).map(Some),
            (Phase::Ready, "tasks/get") => tasks::state(&params, Design::Core).map(Some),
            (Phase::Ready, "tasks/cancel") => tasks::cancel(&params, Design::Core).map(Some),
            (Phase::Ready, "tasks/result") => tell_result(id, &params, outlet).map(|()| None),
            (Phase::Ready, "tools/call") if params.get("task").is_some_and(Value::is_object) => {
                match tasks::begin(&params, Design::Core) {
                    Some(task) => task.map(|task| Some(json!({"task": task}))),
                    None => self.start(id, params, outlet, None).map(|()| None),
                }
            }
            (Phase::Ready, "tools/call") => self.start(id, params, outlet, None).map(|()| None),
            (Phase::Ready, _) => Err(Refusal::new(METHOD_NOT_FOUND, format!("no method {method:?} here"))),
        }
    }

    fn initialize(&self, params: &Value) -> Result<Value, Refusal> {
        let missing = |what: &str| Refusal::new(INVALID_PARAMS, format!("initialize needs {what}"));
        if !params.get("protocolVersion").is_some_and(Value::is_string) {
            return Err(missing("protocolVersion"));
        }
        for member in ["name", "version"] {
            if !params.pointer(&format!("/clientInfo/{member}")).is_some_and(Value::is_string) {
                return Err(missing(&format!("clientInfo.{member}")));
            }
        }
        let Some(capabilities) = params.get("capabilities").and_then(Value::as_object) else {
            return Err(missing("capabilities"));
        };
        let mut state = self.lock();
        if let Some(elicitation) = capabilities.get("elicitation").and_then(Value::as_object) {
            // An empty object is how 2025-06-18 declared forms, and still means them.
            state.takes_forms = elicitation.is_empty() || elicitation.contains_key("form");
            state.takes_urls = elicitation.contains_key("url");
        }
        state.phase = Phase::Greeted;
        let declared = match &self.notebook {
            Some(_) => notebook::capabilities(),
            None => json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}),
        };
        Ok(json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": declared,
            "serverInfo": {
                "name": "mcp-demo-server",
                "title": "Demo server",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": match &self.notebook {
                Some(_) => "Write notes with write_note; each is a resource.",
                None => "Four tools to try a client with: count, book_table, connect_account, echo.",
            },
        }))
    }

    fn notified(&self, method: &str, params: &Value) {
        let mut state = self.lock();
        match method {
            "notifications/initialized" if state.phase == Phase::Greeted => state.phase = Phase::Ready,
            "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    state.calls.remove(&id.to_string());
                    if let Some(notebook) = &self.notebook {
                        notebook.cancelled(id);
                    }
                }
            }
            _ => {}
        }
    }

    /// `rounds`: what a modern client has answered so far.
    fn start(
        self: &Arc<Self>,
        id: &Value,
        params: Value,
        outlet: &Outlet,
        rounds: Option<Rounds>,
    ) -> Result<(), Refusal> {
        let Some(name) = params.get("name").and_then(Value::as_str).map(str::to_owned) else {
            return Err(Refusal::new(INVALID_PARAMS, "tools/call needs the tool's name"));
        };
        if !tools::exists(&name) {
            return Err(Refusal::new(INVALID_PARAMS, format!("unknown tool {name:?}")));
        }
        let arguments = match params.get("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return Err(Refusal::new(INVALID_PARAMS, "arguments must be an object")),
        };
        let progress_token = params.pointer("/_meta/progressToken").cloned();

        let key = id.to_string();
        let (keep, cancelled) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.calls.contains_key(&key) {
                return Err(Refusal::new(INVALID_REQUEST, "a call with this id is still running"));
            }
            if state.calls.len() >= self.limits.calls {
                let message = format!("{} calls are running, which is the limit", self.limits.calls);
                return Err(Refusal::new(UNAVAILABLE, message));
            }
            state.calls.insert(key.clone(), keep);
        }
        let running = Running { session: Arc::clone(self), key };
        let call = Call { session: Arc::clone(self), outlet: outlet.clone(), progress_token, rounds };
        let id = id.clone();
        tokio::spawn(async move {
            let _running = running;
            tokio::select! {
                // A cancelled call gets no answer.
                _ = cancelled => {}
                // Without event ids a lost stream cannot be resumed, so nobody could hear the answer.
                () = call.outlet.closed() => {}
                result = tools::run(&name, &arguments, &call) => {
                    let result = match &call.rounds {
                        Some(rounds) => rounds.result(result),
                        None => result,
                    };
                    let _ = call.outlet.send(message::response(&id, result)).await;
                }
            }
        });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers with the result of a task once it is there.
fn tell_result(id: &Value, params: &Value, outlet: &Outlet) -> Result<(), Refusal> {
    let (mut result, wait) = tasks::result(params)?;
    if let Some(task) = params.get("taskId") {
        let related = json!({"io.modelcontextprotocol/related-task": {"taskId": task}});
        result = message::with(result, "_meta", related);
    }
    let (id, outlet) = (id.clone(), outlet.clone());
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        let _ = outlet.send(message::response(&id, result)).await;
    });
    Ok(())
}

/// Takes a call off the table however it ends.
struct Running {
    session: Arc<Session>,
    key: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session.lock().calls.remove(&self.key);
    }
}

/// A running call's way to its client.
#[derive(Debug)]
pub(crate) struct Call {
    session: Arc<Session>,
    outlet: Outlet,
    progress_token: Option<Value>,
    /// Where the client is modern: it is asked by the result, and answers with another request.
    rounds: Option<Rounds>,
}

/// The two kinds of question of `elicitation/create`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Form,
    Url,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// With the content that was sent, empty for a URL.
    Accept(Map<String, Value>),
    Cancel,
    Decline,
}

/// Why a question got no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The client sent an error object instead; here is its message.
    Error(String),
    /// It is asked with the result of this request.
    Later,
    /// What came is no `ElicitResult`.
    Malformed,
    TimedOut,
    /// The client did not declare this mode, so asking is forbidden.
    Undeclared,
}

impl Call {
    /// Reports progress, if the client asked for it.
    pub(crate) async fn progress(&self, progress: u64, total: u64, text: &str) {
        if let Some(token) = &self.progress_token {
            let params =
                json!({"progressToken": token, "progress": progress, "total": total, "message": text});
            self.notify("notifications/progress", params).await;
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        // A closed outlet ends the whole call elsewhere.
        let _ = self.outlet.send(message::notification(method, params)).await;
    }

    /// Puts an `elicitation/create` to the client and waits. Dropping the future withdraws the question.
    pub(crate) async fn ask(&self, mode: Mode, params: Value) -> Result<Answer, NoAnswer> {
        if let Some(rounds) = &self.rounds {
            return rounds.ask(mode, params).and_then(|result| answer(&result));
        }
        let (sender, answered) = oneshot::channel();
        let id = {
            let mut state = self.session.lock();
            let declared = match mode {
                Mode::Form => state.takes_forms,
                Mode::Url => state.takes_urls,
            };
            if !declared {
                return Err(NoAnswer::Undeclared);
            }
            let id = state.next_question;
            state.next_question += 1;
            state.questions.insert(id, sender);
            id
        };
        let _asked = Asked { call: self, id };
        let _ = self.outlet.send(message::request(id, "elicitation/create", params)).await;
        // The sender inside goes away only with the session, which ends the call anyway.
        let Ok(Ok(outcome)) = tokio::time::timeout(self.session.limits.answer_wait, answered).await else {
            return Err(NoAnswer::TimedOut);
        };
        let result = outcome.map_err(|error| {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("no message");
            NoAnswer::Error(text.chars().take(200).collect())
        })?;
        answer(&result)
    }

    /// Says that what happens outside of the client is done. A modern client asks by itself, with the next request.
    pub(crate) async fn completed(&self, elicitation: &str) {
        if self.rounds.is_none() {
            self.notify("notifications/elicitation/complete", json!({"elicitationId": elicitation})).await;
        }
    }
}

/// Reads an `ElicitResult`.
fn answer(result: &Value) -> Result<Answer, NoAnswer> {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => match result.get("content") {
            None => Ok(Answer::Accept(Map::new())),
            Some(Value::Object(content)) => Ok(Answer::Accept(content.clone())),
            Some(_) => Err(NoAnswer::Malformed),
        },
        Some("cancel") => Ok(Answer::Cancel),
        Some("decline") => Ok(Answer::Decline),
        _ => Err(NoAnswer::Malformed),
    }
}

/// A question on the table. When it is dropped unanswered, the client is told.
struct Asked<'a> {
    call: &'a Call,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.call.session.lock().questions.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the call that asked has ended"});
            // Best effort: a full outlet means a client that does not read, which cannot be told anything.
            let _ = self.call.outlet.try_send(message::notification("notifications/cancelled", params));
        }
    }
}
