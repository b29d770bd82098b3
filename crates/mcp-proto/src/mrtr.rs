//! Requests that need input in the middle (2026-07-28, "Multi Round-Trip Requests").
//!
//! ```text
//!              result: input_required            every question answered,
//!   InFlight ─────────────────────────> Paused ──or the pause is over─────> InFlight (new id, same call)
//!      ▲                                  │                                     │
//!      │                                  ├── handler failed, undeclared input ─┼──> ended, siblings withdrawn
//!      │                                  └── cancelled, overall end, closed ───┘
//!      └──────────────── at most `max_input_rounds` times ──────────────────────┘
//! ```
//!
//! The questions reach the application as any question of a server does. A paused call has no request on the wire, so
//! there is nothing to cancel there. Its own timeout does not run while people think; only `max_total` does, which spans
//! all rounds, and each request of it has the whole `timeout` again.
//!
//! Each retry is the original request with the answers of this round and the state of this round, byte for byte, and
//! nothing of earlier ones: what the server wants to remember is in its state.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mcp_elicitation::ElicitRequest;
use mcp_jsonrpc::{ErrorObject, ParseError, RawJson, RawRef, RequestId};
use mcp_model::{FromJson, InputRequest as Embedded, InputRequiredResult, ToJson, methods};

use crate::call::{CallId, CallKind, CallState, Stage};
use crate::connection::Connection;
use crate::deprecated::DeprecatedFeature;
use crate::error::{CallError, Misuse};
use crate::event::{EndReason, Event, InputRequest, ServerRequestId};
use crate::sending::{Next, NextTime};
use crate::server_requests::{Asker, Full};
use crate::suspended::SuspendedCall;
use crate::timers::Timer;

/// The first wait before a retry for which there is nothing to answer; it doubles with each in a row.
const FIRST_PACE: Duration = Duration::from_millis(50);
const LONGEST_PACE: Duration = Duration::from_millis(250);

/// A call between two of its requests.
#[derive(Debug)]
pub(crate) struct Pause {
    /// To be sent back as it came.
    state: Option<String>,
    /// Questions that are still open.
    open: Vec<ServerRequestId>,
    responses: BTreeMap<String, RawJson>,
    /// When it goes on by itself, where nothing was asked.
    pub(crate) resumes: Option<Instant>,
}

impl Pause {
    /// One that is over: everything was answered.
    pub(crate) const fn answered(state: Option<String>, responses: BTreeMap<String, RawJson>) -> Self {
        Self { state, open: Vec::new(), responses, resumes: None }
    }
}

/// The call as it is put away, where its maker wants that and somebody must be asked.
fn suspended(state: &CallState, request_state: &Option<String>, items: &[Item]) -> Option<SuspendedCall> {
    let asked = state.asked.as_ref().filter(|asked| asked.options.suspend)?;
    let mut suspended = SuspendedCall {
        server: String::new(),
        method: asked.method.clone(),
        params: asked.params.clone(),
        requests: BTreeMap::new(),
        responses: BTreeMap::new(),
        request_state: request_state.clone(),
        rounds: asked.rounds,
    };
    for Item { key, raw, entry } in items {
        match entry {
            Entry::Answer(answer) => drop(suspended.responses.insert(key.clone(), answer.clone())),
            Entry::Ask(_) => drop(suspended.requests.insert(key.clone(), raw.clone())),
        }
    }
    (!suspended.requests.is_empty()).then_some(suspended)
}

/// Whether a server may ask for input in the middle of this method.
pub(crate) fn takes_input(method: &str) -> bool {
    matches!(method, methods::TOOLS_CALL | methods::PROMPTS_GET | methods::RESOURCES_READ)
}

impl Connection {
    /// The server wants input before it goes on. `state` is out of the tables.
    pub(crate) fn pause(&mut self, now: Instant, call: CallId, mut state: CallState, result: RawRef<'_>) {
        match self.read_input_required(&mut state, result) {
            Ok((request_state, entries)) => match suspended(&state, &request_state, &entries) {
                Some(suspended) => {
                    self.end_call(now, call, &state, Err(CallError::Suspended(Box::new(suspended))));
                }
                None => self.ask_all(now, call, state, request_state, entries),
            },
            Err(error) => self.end_call(now, call, &state, Err(error)),
        }
    }

    fn read_input_required(
        &mut self,
        state: &mut CallState,
        result: RawRef<'_>,
    ) -> Result<Required, CallError> {
        let invalid = |reason: &str| CallError::InvalidResult { reason: reason.to_owned() };
        let limit = self.config.limits.max_input_rounds;
        let call =
            state.asked.as_mut().ok_or_else(|| invalid("input was required by an internal request"))?;
        call.rounds = call.rounds.saturating_add(1);
        if call.rounds > limit {
            return Err(CallError::TooManyRounds { limit });
        }
        let required = result
            .parse_with(InputRequiredResult::from_json)
            .map_err(|_| invalid("the input_required result is not readable"))?;
        if !required.is_valid() {
            return Err(invalid("the input_required result asks for nothing and has no state"));
        }
        // All are looked at before any is shown: a call that fails for one of them has asked nobody.
        let asked = required.input_requests.unwrap_or_default();
        // Those that need nobody cost memory too: the roots are written once for each.
        let most = self.config.limits.max_server_requests;
        if asked.len() > most {
            return Err(Full::Requests(most).ends_call());
        }
        let mut entries = Vec::new();
        for (key, raw) in asked {
            let embedded =
                Embedded::from_json(raw.get()).map_err(|_| invalid("an input request is not readable"))?;
            let raw = RawJson::from(raw);
            let entry = self.read_entry(embedded)?;
            entries.push(Item { key, raw, entry });
        }
        if entries.is_empty() {
            call.paces += 1
        } else {
            call.paces = 0
        }
        let questions = entries.iter().filter_map(|item| match &item.entry {
            Entry::Ask(input) => Some(input.bytes()),
            Entry::Answer(_) => None,
        });
        let (count, bytes) = questions
            .fold((0, 0), |(count, sum): (usize, usize), bytes| (count + 1, sum.saturating_add(bytes)));
        match self.server_requests.refusal(count, bytes) {
            Some(full) => Err(full.ends_call()),
            None => Ok((required.request_state, entries)),
        }
    }

    /// One question, checked as if it had come by itself.
    pub(crate) fn read_entry(&mut self, embedded: Embedded) -> Result<Entry, CallError> {
        let undeclared = || CallError::InvalidResult {
            reason: "the server asked for input that this client did not declare".to_owned(),
        };
        let params = embedded.params.map(RawJson::from);
        let params = params.as_ref().map(RawJson::as_raw_ref);
        let refused = |error: ErrorObject| CallError::InvalidResult { reason: error.message };
        match embedded.method.as_str() {
            methods::ROOTS_LIST if self.config.roots.is_some() => {
                self.note_deprecated(DeprecatedFeature::Roots);
                let roots = self.current_roots().to_json().map_err(|_| undeclared())?;
                Ok(Entry::Answer(roots.into()))
            }
            methods::ELICITATION_CREATE if self.serves_elicitation() => {
                Ok(Entry::Ask(InputRequest::Elicit(self.read_elicitation(params).map_err(refused)?)))
            }
            methods::SAMPLING_CREATE_MESSAGE if self.config.sampling => {
                self.note_deprecated(DeprecatedFeature::Sampling);
                Ok(Entry::Ask(InputRequest::CreateMessage(self.read_sampling(params).map_err(refused)?)))
            }
            _ => Err(undeclared()),
        }
    }

    fn ask_all(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        request_state: Option<String>,
        entries: Vec<Item>,
    ) {
        let paces = state.asked.as_ref().map_or(0, |asked| asked.paces);
        let mut pause =
            Pause { state: request_state, open: Vec::new(), responses: BTreeMap::new(), resumes: None };
        for Item { key, entry, .. } in entries {
            match entry {
                Entry::Answer(answer) => drop(pause.responses.insert(key, answer)),
                Entry::Ask(input) => {
                    let wire_id = RequestId::String(key.as_str().into());
                    let asker = Asker::Round { call, key };
                    // The call is out of the tables, so nobody else can say what its route is.
                    let asked_in = (Some(call), state.route.clone());
                    pause.open.push(self.open_request(now, asked_in, wire_id, asker, input));
                }
            }
        }
        if pause.open.is_empty() {
            let doubled = FIRST_PACE.saturating_mul(1 << paces.saturating_sub(1).min(8));
            let wait = if paces == 0 { Duration::ZERO } else { doubled.min(LONGEST_PACE) };
            pause.resumes = now.checked_add(wait);
            self.arm(pause.resumes, Timer::Pace(call));
        }
        let at_once = pause.resumes.is_some_and(|at| at <= now);
        if !pause.open.is_empty() {
            // The time that people take is not the server's.
            state.time.deadline = state.time.hard_deadline;
        }
        self.arm(state.time.deadline, Timer::Call(call));
        state.stage = Stage::NeedsInput(Box::new(pause));
        self.calls.insert(call, state);
        if at_once {
            self.resume(now, call);
        } else {
            self.push_event(Event::CallPaused { call });
        }
    }

    /// A question of a paused call was answered. `answer` as it goes on the wire, or why there is none.
    pub(crate) fn take_input(
        &mut self,
        now: Instant,
        request: ServerRequestId,
        call: CallId,
        key: String,
        answer: Result<RawJson, ErrorObject>,
    ) {
        if self.calls.get(&call).is_some_and(|state| state.task().is_some()) {
            return self.take_task_input(now, call, &key, answer);
        }
        let Some(Stage::NeedsInput(pause)) = self.calls.get_mut(&call).map(|state| &mut state.stage) else {
            return;
        };
        pause.open.retain(|open| *open != request);
        match answer {
            Ok(answer) => {
                pause.responses.insert(key, answer);
                if pause.open.is_empty() {
                    self.resume(now, call);
                }
            }
            // Nobody waits at the other end, so there is nobody to tell.
            Err(error) => {
                if let Some(state) = self.remove_call(call) {
                    self.end_call(now, call, &state, Err(CallError::InputRefused(error)));
                }
            }
        }
    }

    /// Sends the next request of a paused call.
    pub(crate) fn resume(&mut self, now: Instant, call: CallId) {
        let Some(mut state) = self.remove_call(call) else { return };
        let (Stage::NeedsInput(pause), Some(asked)) = (&state.stage, state.asked.as_mut()) else { return };
        // People were asked: the server has its time anew. What the client repeats by itself takes of the time of the call.
        let time = if pause.resumes.is_none() { NextTime::Anew } else { NextTime::Left };
        match with_input(asked.params.as_ref(), pause) {
            Ok(params) => asked.answered = Some(params),
            Err(error) => return self.end_call(now, call, &state, Err(error)),
        }
        self.send_asked(now, call, state, time);
    }

    /// Makes the request of a call once more, which failed on its way or was refused for its form. `state` is out of the tables.
    pub(crate) fn resend(&mut self, now: Instant, call: CallId, state: CallState) {
        self.send_asked(now, call, state, NextTime::Left);
    }

    /// Makes the request that was asked for once more. What people answered for it goes along again.
    pub(crate) fn send_asked(&mut self, now: Instant, call: CallId, state: CallState, time: NextTime) {
        let asked = state.asked.as_ref();
        let params = asked.and_then(|asked| asked.answered.clone().or_else(|| asked.params.clone()));
        let next = Next { kind: CallKind::Ordinary, method: None, params, time };
        self.send_again(now, call, state, next);
    }

    /// The call of these questions is over: nobody needs an answer any more.
    pub(crate) fn withdraw_round(&mut self, call: CallId, pause: &Pause) {
        self.disarm(pause.resumes, Timer::Pace(call));
        for request in &pause.open {
            self.end_round_question(*request, EndReason::CallEnded);
        }
    }
}

/// State and checked entries of a result that wants input.
type Required = (Option<String>, Vec<Item>);

/// One entry of `inputRequests`.
struct Item {
    key: String,
    raw: RawJson,
    entry: Entry,
}

/// What one entry of `inputRequests` comes to.
pub(crate) enum Entry {
    Answer(RawJson),
    Ask(InputRequest),
}

impl InputRequest {
    /// How much of the peer's text it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.params().as_str().len()
    }

    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => methods::ELICITATION_CREATE,
            Self::CreateMessage(_) => methods::SAMPLING_CREATE_MESSAGE,
        }
    }

    /// Its params, as they came.
    pub(crate) fn params(&self) -> RawRef<'_> {
        match self {
            Self::Elicit(request) => ElicitRequest::raw(request).into(),
            Self::CreateMessage(params) => params.as_raw_ref(),
        }
    }
}

/// The original params with the answers and the state of one round.
pub(crate) fn with_input(params: Option<&RawJson>, pause: &Pause) -> Result<RawJson, CallError> {
    let unwritable = |_| CallError::Unsendable { misuse: Misuse::Unserializable, dispatched: false };
    let nothing = RawJson::from_text("{}".to_owned()).map_err(unwritable)?;
    let some = |is_there: bool, value: Result<RawJson, ParseError>| is_there.then_some(value).transpose();
    let responses =
        some(!pause.responses.is_empty(), RawJson::from_serialize(&pause.responses)).map_err(unwritable)?;
    let state = some(pause.state.is_some(), RawJson::from_serialize(&pause.state)).map_err(unwritable)?;
    let changes = [("inputResponses", responses.as_ref()), ("requestState", state.as_ref())];
    params.unwrap_or(&nothing).as_raw_ref().with_members(&changes).map_err(unwritable)
}
