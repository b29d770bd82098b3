//! What a task asks, and what it was answered (modern era).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Instant;

use mcp_jsonrpc::{ErrorObject, RawJson, RequestId};
use mcp_model::{FromJson, InputRequest as Embedded, InputRequests};

use super::TaskCall;
use crate::call::{CallId, CallState, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::error::CallError;
use crate::event::{EndReason, ServerRequestId};
use crate::mrtr::Entry;
use crate::server_requests::Asker;
use crate::tasks::TaskError;

/// Every question of one task, by its key, which is never used for another one.
#[derive(Default)]
pub(super) struct Inputs {
    /// At most [`TaskConfig::max_inputs`](crate::TaskConfig::max_inputs), so that looking through them is no matter.
    by_key: Vec<(String, Input)>,
}

enum Input {
    /// Somebody is being asked.
    Open(ServerRequestId),
    /// Answered, and not yet sent, or sent so many times without a confirmation.
    Given(RawJson, u8),
    /// Under way.
    Sent(RawJson, u8),
    /// Sent, and nobody knows whether it arrived.
    Unconfirmed(RawJson, u8),
    /// Nothing is to be done about it any more.
    Settled,
}

impl fmt::Debug for Inputs {
    /// Without keys and answers, which may be a person's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").field("keys", &self.by_key.len()).finish_non_exhaustive()
    }
}

impl Inputs {
    /// These were answered before.
    pub(super) fn know(&mut self, keys: impl Iterator<Item = String>) {
        self.by_key.extend(keys.map(|key| (key, Input::Settled)));
    }

    /// Keys that need no answer any more.
    pub(super) fn answered(&self) -> BTreeSet<String> {
        let settled = |(key, input): &(String, Input)| {
            matches!(input, Input::Settled | Input::Sent(..) | Input::Unconfirmed(..)).then(|| key.clone())
        };
        let mut answered = BTreeSet::new();
        answered.extend(self.by_key.iter().filter_map(settled));
        answered
    }

    /// Whether there are answers to send, and nobody is being asked for more. A server need not take them piece by piece.
    pub(super) fn is_complete(&self) -> bool {
        let given = |input: &Input| matches!(input, Input::Given(..));
        let open = |input: &Input| matches!(input, Input::Open(_));
        self.inputs().any(given) && !self.inputs().any(open)
    }

    /// The answers to send now.
    pub(super) fn send(&mut self) -> BTreeMap<String, RawJson> {
        let mut answers = BTreeMap::new();
        for (key, input) in &mut self.by_key {
            if let Input::Given(answer, sendings) = input {
                answers.insert(key.clone(), answer.clone());
                *input = Input::Sent(answer.clone(), sendings.saturating_add(1));
            }
        }
        answers
    }

    /// The server has, or has not, confirmed what was sent.
    /// `max_sendings`: how often an answer is sent whose arrival nobody confirmed.
    pub(super) fn sent(&mut self, confirmed: bool, max_sendings: u8) {
        for (_, input) in &mut self.by_key {
            if let Input::Sent(answer, sendings) = input {
                *input = match (confirmed, sendings) {
                    (false, sendings) if *sendings < max_sendings => {
                        Input::Unconfirmed(answer.clone(), *sendings)
                    }
                    _ => Input::Settled,
                };
            }
        }
    }

    /// What becomes of the questions that were asked before, now that the server wants these. Returns the open ones that
    /// it no longer wants.
    fn reconsider(&mut self, wanted: Option<&InputRequests>) -> Vec<ServerRequestId> {
        let mut withdrawn = Vec::new();
        for (key, input) in &mut self.by_key {
            let is_wanted = wanted.is_some_and(|wanted| wanted.contains_key(key));
            match input {
                Input::Open(request) if !is_wanted => {
                    withdrawn.push(*request);
                    *input = Input::Settled;
                }
                Input::Given(..) if !is_wanted => *input = Input::Settled,
                Input::Unconfirmed(answer, sendings) => {
                    *input = if is_wanted { Input::Given(answer.clone(), *sendings) } else { Input::Settled };
                }
                _ => {}
            }
        }
        withdrawn
    }

    pub(super) fn open(&self) -> Vec<ServerRequestId> {
        let open = |input: &Input| if let Input::Open(request) = input { Some(*request) } else { None };
        self.inputs().filter_map(open).collect()
    }

    fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.by_key.iter().map(|(_, input)| input)
    }

    fn of_key(&mut self, key: &str) -> Option<&mut Input> {
        self.by_key.iter_mut().find_map(|(known, input)| (known == key).then_some(input))
    }
}

impl Connection {
    /// Asks what the task asks and nobody was asked for yet.
    pub(super) fn take_inputs(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        wanted: Option<&InputRequests>,
    ) -> (CallState, Result<(), CallError>) {
        let entries = match state.task_mut().map(|task| self.read_inputs(task, wanted)) {
            Some(Ok(entries)) => entries,
            Some(Err(error)) => return (state, Err(error)),
            None => return (state, Ok(())),
        };
        let (mut inputs, mut asked) = (Vec::new(), Vec::new());
        for (key, entry) in entries {
            match entry {
                Entry::Answer(answer) => inputs.push((key, Input::Given(answer, 0))),
                Entry::Ask(input) => asked.push((key, input)),
            }
        }
        if !asked.is_empty() {
            // Whom a question is for is looked up at its call.
            self.calls.insert(call, state);
            for (key, input) in asked {
                if let Some(refusal) = self.server_requests.refusal(1, input.bytes()) {
                    // The server shows it again with each answer, and there may be room then.
                    self.diagnose(DiagnosticKind::ServerRequestLimit, refusal.to_string());
                    continue;
                }
                let wire_id = RequestId::String(key.as_str().into());
                let asker = Asker::Round { call, key: key.clone() };
                let asked_in = (Some(call), self.route_of(Some(call)));
                inputs.push((key, Input::Open(self.open_request(now, asked_in, wire_id, asker, input))));
            }
            // Invariant: it was put there a moment ago.
            #[expect(clippy::expect_used, reason = "see the invariant above")]
            let back = self.calls.remove(&call).expect("the call is in the table");
            state = back;
        }
        if let Some(task) = state.task_mut() {
            task.inputs.by_key.extend(inputs);
        }
        (state, Ok(()))
    }

    /// The questions that nobody was asked for yet; the ones that the server no longer asks are withdrawn.
    fn read_inputs(
        &mut self,
        task: &mut TaskCall,
        wanted: Option<&InputRequests>,
    ) -> Result<Vec<(String, Entry)>, CallError> {
        let invalid = |reason: &str| CallError::InvalidResult { reason: reason.to_owned() };
        let limit = self.config.tasks.as_ref().map_or(0, |config| config.max_inputs);
        for request in task.inputs.reconsider(wanted) {
            self.end_round_question(request, EndReason::Withdrawn);
        }
        // All are looked at before any is shown: a call that fails for one of them has asked nobody.
        let mut entries = Vec::new();
        for (key, raw) in wanted.into_iter().flatten() {
            if task.inputs.of_key(key).is_some() {
                continue;
            }
            let max_bytes = self.config.limits.max_name_bytes;
            if key.len() > max_bytes {
                return Err(CallError::over_limit("max_name_bytes", max_bytes, true));
            }
            if task.inputs.by_key.len().saturating_add(entries.len()) >= limit {
                return Err(CallError::Task(TaskError::TooManyInputs { limit }));
            }
            let embedded =
                Embedded::from_json(raw.get()).map_err(|_| invalid("an input request is not readable"))?;
            entries.push((key.clone(), self.read_entry(embedded)?));
        }
        Ok(entries)
    }

    /// A question of a task was answered. `answer` as it goes on the wire, or why there is none.
    pub(crate) fn take_task_input(
        &mut self,
        now: Instant,
        call: CallId,
        key: &str,
        answer: Result<RawJson, ErrorObject>,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.give_up(now, call, CallError::InputRefused(error)),
        };
        let Some(state) = self.calls.get_mut(&call) else { return };
        let is_polling = matches!(state.stage, Stage::Polling(_));
        let Some(task) = state.task_mut() else { return };
        match task.inputs.of_key(key) {
            Some(input @ Input::Open(_)) => *input = Input::Given(answer, 0),
            _ => return,
        }
        if is_polling && task.inputs.is_complete() {
            self.go_on(now, call);
        }
    }
}
