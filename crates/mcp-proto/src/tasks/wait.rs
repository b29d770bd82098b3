//! From one request of a task to the next.

use std::time::Instant;

use mcp_jsonrpc::{ErrorCode, ErrorObject, RawJson, RawRef};
use mcp_model::{
    CancelTaskRequestParams, CreateTaskResult, FromJson, GetTaskPayloadRequestParams, GetTaskRequestParams,
    GetTaskResult, ResultType, TaskStatus, ToJson, inspect_result_type, meta, methods,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Known, Step, TaskCall, TaskConfig, TaskError, TaskUpdate};
use crate::call::{Asked, CallId, CallKind, CallOptions, CallState, Role, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::error::{CallError, Misuse};
use crate::event::{EndReason, Event};
use crate::exchange_failure::ExchangeFailure;
use crate::incoming::Origin;
use crate::sending::{Next, NextTime};
use crate::timers::Timer;

/// How the last word about a task came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// As the answer to a question where it stands.
    AsAsked,
    Otherwise,
}

impl Connection {
    /// Whether this connection takes tasks ([`Config::tasks`](crate::Config::tasks)).
    pub const fn takes_tasks(&self) -> bool {
        self.config.tasks.is_some()
    }

    /// Whether a result of the type `task` is an answer to this call, from a modern server.
    pub(crate) fn takes_task(&self, call: &Asked) -> bool {
        self.config.tasks.is_some() && call.method == methods::TOOLS_CALL && !call.options.task.declined
    }

    /// A modern server answered with a task. `state` is out of the tables.
    pub(crate) fn start_task(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        result: RawRef<'_>,
    ) {
        let Some(asked) = state.asked.as_ref() else { return };
        match result.parse_with(CreateTaskResult::from_json) {
            Ok(created) => {
                state.role = Role::Task(Box::new(TaskCall::new(Step::Creating, &asked.options)));
                self.created(now, call, state, created);
            }
            Err(_) => {
                self.end_call(now, call, &state, Err(invalid("the task in the result is not readable")))
            }
        }
    }

    /// The answer to a request of a call that is or may become a task. `state` is out of the tables.
    pub(crate) fn handle_task_result(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        result: RawRef<'_>,
    ) {
        let max_sendings = self.task_config().max_answer_sendings;
        let Some(task) = state.task_mut() else { return };
        match task.step {
            Step::Creating => match result.parse_with(CreateTaskResult::from_json) {
                Ok(created) => self.created(now, call, state, created),
                // A server that takes no tasks of this kind answers as ever (2025-11-25, "Task Support and Handling").
                Err(_) => self.end_without_task(now, call, state, result),
            },
            Step::Listing => {
                self.learn_task_tools(result);
                self.end_without_task(now, call, state, result);
            }
            Step::Getting => match self.read_state(result) {
                Ok(read) => self.observe(now, call, state, read, Heard::AsAsked),
                Err(error) => self.end_call(now, call, &state, Err(error)),
            },
            Step::Updating => {
                task.inputs.sent(true, max_sendings);
                task.failed_polls = 0;
                self.wait(now, call, state, Heard::Otherwise);
            }
            Step::Fetching => self.end_call(now, call, &state, Ok(result.to_owned())),
        }
    }

    fn end_without_task(&mut self, now: Instant, call: CallId, mut state: CallState, result: RawRef<'_>) {
        state.role = Role::Plain;
        self.end_call(now, call, &state, Ok(result.to_owned()));
    }

    fn read_state(&self, result: RawRef<'_>) -> Result<GetTaskResult, CallError> {
        if self.phase.modern().is_some() {
            match inspect_result_type(result.as_str()) {
                // The text of the extension wants `complete`; two of its own examples say `task`.
                Ok(ResultType::Complete | ResultType::Task) => {}
                _ => return Err(invalid("the resultType is not that of a task request")),
            }
        }
        result
            .parse_with(GetTaskResult::from_json)
            .map_err(|_| invalid("the state of the task is not readable"))
    }

    /// The refusal of a request of a call that is or may become a task. `state` is out of the tables.
    pub(crate) fn handle_task_error(
        &mut self,
        now: Instant,
        call: CallId,
        state: CallState,
        error: ErrorObject,
    ) {
        let Some(task) = state.task() else { return };
        let error = match task.step {
            Step::Getting if error.code == ErrorCode::INVALID_PARAMS => {
                CallError::Task(match task.expired(now) {
                    Some(ttl) => TaskError::Expired { ttl },
                    None => TaskError::Unknown(error),
                })
            }
            Step::Getting if error.code == ErrorCode::INTERNAL_ERROR => {
                // It says nothing about the task.
                if self.can_outlast(now, &state) {
                    return self.outlast(now, call, state);
                }
                CallError::Rpc(error)
            }
            _ => self.refused(error),
        };
        self.end_call(now, call, &state, Err(error));
    }

    /// There is a task.
    fn created(&mut self, now: Instant, call: CallId, mut state: CallState, created: CreateTaskResult) {
        let Some(task) = state.task_mut() else { return };
        let said =
            created.meta.as_deref().map(|meta| RawRef::from(meta).members([meta::MODEL_IMMEDIATE_RESPONSE]));
        let immediate_response = said.and_then(|said| said.ok()?.first().copied()??.string().ok());
        task.known = Some(Known { task: created.task.clone(), since: now, is_told: true });
        self.push_event(Event::Task {
            call,
            update: Box::new(TaskUpdate { task: created.task, immediate_response }),
        });
        self.wait(now, call, state, Heard::Otherwise);
    }

    /// The server said where the task stands. `state` is out of the tables.
    fn observe(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        read: GetTaskResult,
        heard: Heard,
    ) {
        let is_modern = self.phase.modern().is_some();
        let Some(task) = state.task_mut() else { return };
        let Some(known) = task.known.as_mut() else { return };
        if read.task.task_id != known.task.task_id {
            let error = invalid("the answer is about another task");
            return self.end_call(now, call, &state, Err(error));
        }
        task.failed_polls = 0;
        let is_new = !std::mem::replace(&mut known.is_told, true)
            || known.task.status != read.task.status
            || known.task.status_message != read.task.status_message
            || known.task.last_updated_at != read.task.last_updated_at;
        known.task = read.task;
        let status = known.task.status.clone();
        if is_new {
            let update = TaskUpdate { task: known.task.clone(), immediate_response: None };
            self.push_event(Event::Task { call, update: Box::new(update) });
        }
        let outcome = match status {
            TaskStatus::Cancelled => Err(CallError::Task(TaskError::Cancelled)),
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::InputRequired if !is_modern => {
                // Its answer is the result; until then the questions of the task can come on its stream.
                return self.ask_for_task(now, call, state, Step::Fetching);
            }
            TaskStatus::Completed => final_result(read.result.as_deref()),
            TaskStatus::Failed => Err(final_error(read.error.as_deref())),
            status => {
                let wanted = read.input_requests.as_ref().filter(|_| status == TaskStatus::InputRequired);
                let outcome;
                (state, outcome) = self.take_inputs(now, call, state, wanted);
                match outcome {
                    Ok(()) => return self.wait(now, call, state, heard),
                    Err(error) => Err(error),
                }
            }
        };
        self.end_call(now, call, &state, outcome);
    }

    /// Nothing is on the wire: waits for the time to ask again, or for answers. `state` is out of the tables.
    fn wait(&mut self, now: Instant, call: CallId, mut state: CallState, heard: Heard) {
        let config = self.task_config();
        let Some(task) = state.task_mut() else { return };
        if task.inputs.is_complete() {
            return self.ask_for_task(now, call, state, Step::Updating);
        }
        let limit = config.max_polls;
        let over = match task.expired(now) {
            // What the server last said counts, and it has to have been asked after that time.
            Some(ttl) if heard == Heard::AsAsked => Some(TaskError::Expired { ttl }),
            _ => (task.polls >= limit).then_some(TaskError::TooManyPolls { limit }),
        };
        if let Some(error) = over {
            return self.end_call(now, call, &state, Err(CallError::Task(error)));
        }
        // In 2025-11-25 such notices are not to be relied on.
        let is_modern = self.phase.modern().is_some();
        let is_told =
            is_modern && task.known.as_ref().is_some_and(|known| self.is_told_of(&known.task.task_id));
        let next_poll = now.checked_add(task.interval(&config, is_told));
        self.arm(next_poll, Timer::Poll(call));
        state.stage = Stage::Polling(next_poll);
        state.time.deadline = state.time.hard_deadline;
        self.arm(state.time.deadline, Timer::Call(call));
        self.calls.insert(call, state);
        self.push_event(Event::CallPaused { call });
        // A session that it was to be asked for in is of no use to it before that.
        self.leave_renewal(call);
    }

    /// The wait of this call is over: asks where its task stands, or sends what was answered.
    pub(crate) fn go_on(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.remove_call(call) else { return };
        let Some(task) = state.task() else { return };
        let step = if task.inputs.is_complete() { Step::Updating } else { Step::Getting };
        self.ask_for_task(now, call, state, step);
    }

    /// Sends the next request of a call that waits for a task. `state` is out of the tables.
    fn ask_for_task(&mut self, now: Instant, call: CallId, mut state: CallState, step: Step) {
        let Some(task) = state.task_mut() else { return };
        let Some(id) = task.known.as_ref().map(|known| known.task.task_id.clone()) else { return };
        task.step = step;
        let (method, params) = match step {
            Step::Updating => (
                methods::TASKS_UPDATE,
                RawJson::from_serialize(&Update { task_id: &id, answers: task.inputs.send() }).ok(),
            ),
            Step::Fetching => (methods::TASKS_RESULT, raw(GetTaskPayloadRequestParams::new(id).to_json())),
            _ => (methods::TASKS_GET, raw(GetTaskRequestParams::new(id).to_json())),
        };
        if step != Step::Updating {
            task.polls = task.polls.saturating_add(1);
        }
        let Some(params) = params else {
            let misuse = Misuse::Unserializable;
            let error = CallError::Unsendable { misuse, dispatched: true };
            return self.end_call(now, call, &state, Err(error));
        };
        // The result of a task comes when it comes.
        let time = if step == Step::Fetching { NextTime::Endless } else { NextTime::Anew };
        let next = Next { kind: CallKind::Ordinary, method: Some(method), params: Some(params), time };
        self.send_again(now, call, state, next);
    }

    /// Whether a request that got no answer was one about a task, which does not depend on it, and may be made again.
    pub(crate) fn can_outlast(&self, now: Instant, state: &CallState) -> bool {
        let repeatable = |task: &TaskCall| {
            matches!(task.step, Step::Fetching | Step::Getting | Step::Updating)
                && state.request().is_some()
                && task.failed_polls < self.task_config().max_failed_polls
        };
        let in_time = state.time.hard_deadline.is_none_or(|end| end > now);
        self.usable().is_ok() && in_time && state.task().is_some_and(repeatable)
    }

    /// A request of a task got no answer: it is asked for again, after a while. `state` is out of the tables.
    pub(crate) fn outlast(&mut self, now: Instant, call: CallId, mut state: CallState) {
        let max_sendings = self.task_config().max_answer_sendings;
        if let Some(task) = state.task_mut() {
            task.failed_polls += 1;
            task.inputs.sent(false, max_sendings);
        }
        self.wait(now, call, state, Heard::Otherwise);
    }

    /// The exchange of a request of a task failed, or that of the handshake that it waits for. Returns whether the call goes on.
    pub(crate) fn outlast_exchange(&mut self, now: Instant, call: CallId, failure: ExchangeFailure) -> bool {
        let Some(state) = self.calls.get(&call) else { return false };
        let passing = match failure {
            ExchangeFailure::Status { status, .. } => status == 429 || (500..600).contains(&status),
            ExchangeFailure::ConnectionLost | ExchangeFailure::NotSent | ExchangeFailure::Other => true,
            ExchangeFailure::Refused | ExchangeFailure::SessionLost => false,
        };
        if !passing || !self.can_outlast(now, state) {
            return false;
        }
        if let Some(state) = self.remove_call(call) {
            self.outlast(now, call, state);
        }
        true
    }

    /// Ends a wait from this side.
    pub(super) fn give_up(&mut self, now: Instant, call: CallId, error: CallError) {
        let Some(state) = self.remove_call(call) else { return };
        self.withdraw(&state, None);
        self.end_call(now, call, &state, Err(error));
    }

    /// A call that waits for a task is over, whatever ended it: nobody needs its questions answered any more.
    pub(crate) fn withdraw_task_questions(&mut self, state: &CallState) {
        for request in state.task().into_iter().flat_map(|task| task.inputs.open()) {
            self.end_round_question(request, EndReason::CallEnded);
        }
    }

    /// A call that waits for a task ended so: the server is told where that gives up the task as well.
    pub(crate) fn abandon_task(&mut self, now: Instant, state: &CallState, outcome: Option<&CallError>) {
        let Some(task) = state.task() else { return };
        let abandoned = matches!(
            outcome,
            Some(
                CallError::Cancelled { .. }
                    | CallError::InputRefused(_)
                    | CallError::LimitExceeded { .. }
                    | CallError::Timeout { .. }
                    | CallError::Task(TaskError::TooManyInputs { .. } | TaskError::TooManyPolls { .. })
            )
        );
        let (true, Some(known)) =
            (abandoned && task.options.task.cancel_abandoned && self.is_ready(), &task.known)
        else {
            return;
        };
        let cancel = CancelTaskRequestParams::new(known.task.task_id.as_str());
        let Some(params) = raw(cancel.to_json()) else { return };
        let request = self.next_call_id();
        let (kind, options) = (CallKind::Courtesy, CallOptions::default());
        // A courtesy: without room for it the task goes on.
        drop(self.send_request(now, request, methods::TASKS_CANCEL, Some(&params), kind, &options));
    }

    /// The server tells of a task by itself. Returns whether a call of ours waits for that one.
    pub(crate) fn handle_task_notice(
        &mut self,
        now: Instant,
        origin: Origin,
        method: &str,
        params: Option<RawRef<'_>>,
    ) -> bool {
        if self.phase.modern().is_some() && !self.is_wanted(origin, method, params) {
            return true;
        }
        let Some(read) = params.and_then(|params| params.parse_with(GetTaskResult::from_json).ok()) else {
            self.diagnose(DiagnosticKind::MalformedNotification, method.to_owned());
            return true;
        };
        let waits_for = |task: &TaskCall| {
            task.known.as_ref().is_some_and(|known| known.task.task_id == read.task.task_id)
        };
        let waiting = self.calls.iter().find_map(|(call, state)| {
            let is_polling = matches!(state.stage, Stage::Polling(_));
            state.task().filter(|task| waits_for(task)).map(|_| (*call, is_polling))
        });
        match waiting {
            None => false,
            // The answer under way says as much.
            Some((_, false)) => true,
            Some((call, true)) => {
                if let Some(state) = self.remove_call(call) {
                    self.observe(now, call, state, read, Heard::Otherwise);
                }
                true
            }
        }
    }

    /// Whether the server has agreed to tell of this task.
    fn is_told_of(&self, id: &str) -> bool {
        self.calls.values().filter_map(|state| state.listening()).any(|listening| {
            listening.granted().is_some_and(|granted| {
                granted.task_ids.as_ref().is_some_and(|ids| ids.iter().any(|told| told == id))
            })
        })
    }

    /// The call whose task tells its progress under this token.
    pub(crate) fn task_with_token(&self, token: &mcp_jsonrpc::RequestId) -> Option<CallId> {
        let has_token = |state: &CallState| state.task().is_some_and(|task| task.has_progress_token(token));
        self.config.tasks.as_ref()?;
        self.calls.iter().find_map(|(call, state)| has_token(state).then_some(*call))
    }

    fn task_config(&self) -> TaskConfig {
        self.config.tasks.clone().unwrap_or_default()
    }
}

/// Params of `tasks/update`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    task_id: &'a str,
    #[serde(rename = "inputResponses")]
    answers: std::collections::BTreeMap<String, RawJson>,
}

fn raw(params: serde_json::Result<Box<RawValue>>) -> Option<RawJson> {
    params.ok().map(RawJson::from)
}

fn invalid(reason: &str) -> CallError {
    CallError::InvalidResult { reason: reason.to_owned() }
}

fn final_result(result: Option<&RawValue>) -> Result<RawJson, CallError> {
    let result = result.filter(|result| result.get().starts_with('{'));
    let result = result.ok_or_else(|| invalid("the task is completed and has no result"))?;
    Ok(result.to_owned().into())
}

fn final_error(error: Option<&RawValue>) -> CallError {
    let read = error.and_then(|error| ErrorObject::from_json(error.get()).ok());
    read.map_or_else(|| invalid("the task failed and has no error object"), CallError::Rpc)
}
