//! Calls that got error -32042 and wait for URL elicitations before their one retry.
//!
//! ```text
//!  start_flow ──> Consenting ── all consented ──> Waiting ── all complete, or continue_flow ──> Retry
//!   all ids are      │ one question after another    │
//!   remembered       │                               │
//!   before the       └───────────────┬───────────────┘
//!   first question                   └─> Declined, Cancelled, TimedOut, Deferred, ConnectionLost, Abandoned
//! ```

use std::{hash::Hash, sync::Arc, time::Instant};

use super::{
    ConnectionId, Elicitations, End, Event, FlowId, FlowOutcome, Misuse, Origin, QuestionId, Refusal,
    deadline, registry::UrlState,
};
use crate::{ElicitAction, ElicitRequest, RetryPermit, UrlBatch};

struct Item {
    elicitation_id: String,
    request: Arc<ElicitRequest>,
    /// A person consented for this call, or for another one that waits for the same elicitation.
    consented: bool,
}

pub(super) struct Flow<S> {
    server: S,
    pub(super) connection: ConnectionId,
    items: Vec<Item>,
    /// The first item without consent.
    next: usize,
    /// How the question of this flow ended, if not with consent.
    refused: Option<End>,
    /// The caller's own deadline.
    deadline: Option<Instant>,
    /// Set once everything is consented to: until when completions are waited for.
    waiting_until: Option<Option<Instant>>,
}

impl<S: Eq> Flow<S> {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.deadline, self.waiting_until.flatten()].into_iter().flatten().min()
    }

    /// The question that this call asked has ended.
    pub(super) fn question_ended(&mut self, end: End) {
        if end != End::Answered(ElicitAction::Accept) {
            self.refused = Some(end);
        }
    }

    /// A person consented to an elicitation, whoever asked: nobody is asked twice.
    pub(super) fn take_consent(&mut self, server: &S, elicitation_id: &str) {
        if self.server == *server {
            for item in self.items.iter_mut().filter(|item| item.elicitation_id == elicitation_id) {
                item.consented = true;
            }
        }
    }

    pub(super) fn needs(&self, server: &S, elicitation_id: &str) -> bool {
        self.server == *server && self.items.iter().any(|item| item.elicitation_id == elicitation_id)
    }

    fn has_consent(&self, server: &S, elicitation_id: &str) -> bool {
        self.server == *server
            && self.items.iter().any(|item| item.consented && item.elicitation_id == elicitation_id)
    }
}

/// What a waiting call does next.
enum Step {
    Ask(usize),
    End(FlowOutcome),
    Pass(usize),
    Stay,
    WaitForCompletions,
}

impl<S: Clone + Eq + Hash, K: Clone + Eq + Hash> Elicitations<S, K> {
    /// The `data` of a call's error -32042: reads it by the connection's rules, then goes on like
    /// [`start_flow`](Self::start_flow).
    ///
    /// # Errors
    /// Why nothing of it is shown: the original error surfaces at once.
    pub fn handle_url_required(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        permit: RetryPermit,
        data: &str,
        deadline: Option<Instant>,
    ) -> Result<FlowId, Refusal> {
        let open = self.connections.get(&connection).ok_or(Refusal::UnknownConnection)?;
        let batch = UrlBatch::parse(data, &open.rules).map_err(Refusal::Invalid)?;
        self.start_flow(now, connection, permit, &batch, deadline)
    }

    /// Starts the way back from error -32042: remembers every id, then asks for one consent after another, then
    /// waits for the completions. The outcome comes as [`Event::FlowEnded`]; [`FlowOutcome::Retry`] says to send
    /// the call once more under a new request id, anything else that the original error surfaces.
    ///
    /// `deadline` ends the whole, whatever it waits for. A call that needs an elicitation that another waiting
    /// call is asking for shares its consent.
    ///
    /// # Errors
    /// Why nothing of the batch is shown: the original error surfaces at once.
    pub fn start_flow(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        permit: RetryPermit,
        batch: &UrlBatch,
        deadline: Option<Instant>,
    ) -> Result<FlowId, Refusal> {
        // Taken, never given back: a second -32042 of the same call finds none.
        let RetryPermit { .. } = permit;
        let Some(open) = self.connections.get(&connection) else {
            return Err(Refusal::UnknownConnection);
        };
        let server = open.server.clone();
        let of_server = self.flows.values().filter(|flow| flow.server == server).count();
        if self.flows.len() >= self.limits.max_flows || of_server >= self.limits.max_flows_per_server {
            return Err(Refusal::TooManyFlows);
        }
        let limit = self.limits.max_remembered_urls;
        let known = self.servers.entry(server.clone()).or_default();
        let mut items = Vec::with_capacity(batch.requests().len());
        let mut new = 0;
        for request in batch.requests() {
            let id = request.elicitation_id().unwrap_or_default();
            if known.urls.admit(id, request.url().normalized(), limit, new)? {
                new += 1;
            }
            items.push(Item {
                elicitation_id: id.to_owned(),
                request: Arc::new(ElicitRequest::Url(request.clone())),
                consented: false,
            });
        }
        // Before the first question: a completion may come while a person still reads.
        for request in batch.requests() {
            let id = request.elicitation_id().unwrap_or_default();
            known.urls.remember(id, request.url().normalized(), connection);
        }
        let id = FlowId(self.next_id());
        let flow = Flow { server, connection, items, next: 0, refused: None, deadline, waiting_until: None };
        self.flows.insert(id, flow);
        self.stirred.push_back(id);
        self.run_flows(now);
        Ok(id)
    }

    /// The person says that everything is done: stops waiting for completion notices and lets the call be
    /// retried.
    ///
    /// # Errors
    /// [`Misuse::FlowNotWaiting`] while consent is missing, [`Misuse::UnknownFlow`] if it has ended.
    pub fn continue_flow(&mut self, now: Instant, flow: FlowId) -> Result<(), Misuse> {
        let waiting = self.flows.get(&flow).ok_or(Misuse::UnknownFlow)?;
        if waiting.waiting_until.is_none() {
            return Err(Misuse::FlowNotWaiting);
        }
        let server = waiting.server.clone();
        let ids: Vec<String> = waiting.items.iter().map(|item| item.elicitation_id.clone()).collect();
        for id in ids {
            let completion = self.servers.get_mut(&server).map(|known| known.urls.complete(&id));
            if completion == Some(super::registry::Completion::Completed) {
                self.completed(&server, &id);
            }
        }
        self.end_flow(flow, FlowOutcome::Retry);
        self.run_flows(now);
        Ok(())
    }

    /// The caller gave up: takes its question off the screen and forgets the wait.
    ///
    /// # Errors
    /// [`Misuse::UnknownFlow`] if it has ended.
    pub fn abandon_flow(&mut self, now: Instant, flow: FlowId) -> Result<(), Misuse> {
        if !self.flows.contains_key(&flow) {
            return Err(Misuse::UnknownFlow);
        }
        self.end_flow(flow, FlowOutcome::Abandoned);
        self.run_flows(now);
        Ok(())
    }

    /// Notes that something about an elicitation changed, for every call that waits for it.
    pub(super) fn stir(&mut self, server: &S, elicitation_id: &str) {
        let stirred = self.flows_where(|flow| flow.needs(server, elicitation_id));
        self.stirred.extend(stirred);
    }

    /// Lets every stirred call go on as far as it can. Each step asks, passes an item or ends a call, so this
    /// ends.
    pub(super) fn run_flows(&mut self, now: Instant) {
        while let Some(id) = self.stirred.pop_front() {
            loop {
                match self.step(id) {
                    None | Some(Step::Stay) => break,
                    Some(Step::Pass(index)) => {
                        if let Some(flow) = self.flows.get_mut(&id) {
                            flow.next = index + 1;
                            if let Some(item) = flow.items.get_mut(index) {
                                item.consented = true;
                            }
                        }
                    }
                    Some(Step::Ask(index)) => {
                        self.ask_for_flow(now, id, index);
                        break;
                    }
                    Some(Step::WaitForCompletions) => {
                        let until = deadline(now, self.limits.completion_timeout);
                        if let Some(flow) = self.flows.get_mut(&id) {
                            flow.waiting_until = Some(until);
                            let deadline = flow.next_deadline();
                            self.events.push_back(Event::FlowWaiting { flow: id, deadline });
                        }
                    }
                    Some(Step::End(outcome)) => {
                        self.end_flow(id, outcome);
                        break;
                    }
                }
            }
        }
    }

    fn step(&self, id: FlowId) -> Option<Step> {
        let flow = self.flows.get(&id)?;
        if let Some(end) = flow.refused {
            return Some(Step::End(outcome_of(end)));
        }
        let urls = &self.servers.get(&flow.server)?.urls;
        if let Some(item) = flow.items.get(flow.next) {
            let elicitation_id = item.elicitation_id.as_str();
            return Some(match urls.state(elicitation_id) {
                Some(UrlState::Finished(None)) => Step::Pass(flow.next),
                Some(UrlState::Finished(Some(end))) => Step::End(outcome_of(end)),
                Some(UrlState::Accepted)
                    if self.flows.values().any(|other| other.has_consent(&flow.server, elicitation_id)) =>
                {
                    Step::Pass(flow.next)
                }
                // Somebody is being asked already.
                Some(_) if urls.question(elicitation_id).is_some() => Step::Stay,
                Some(_) => Step::Ask(flow.next),
                // Forgotten with its server.
                None => Step::End(FlowOutcome::ConnectionLost),
            });
        }
        let mut is_complete = true;
        for item in &flow.items {
            match urls.state(&item.elicitation_id) {
                Some(UrlState::Finished(None)) => {}
                Some(UrlState::Finished(Some(end))) => return Some(Step::End(outcome_of(end))),
                Some(UrlState::Pending { .. } | UrlState::Accepted) => is_complete = false,
                None => return Some(Step::End(FlowOutcome::ConnectionLost)),
            }
        }
        Some(match (is_complete, flow.waiting_until) {
            (true, _) => Step::End(FlowOutcome::Retry),
            (false, None) => Step::WaitForCompletions,
            (false, Some(_)) => Step::Stay,
        })
    }

    fn ask_for_flow(&mut self, now: Instant, id: FlowId, index: usize) {
        let Some(flow) = self.flows.get(&id) else {
            return;
        };
        let (server, connection) = (flow.server.clone(), flow.connection);
        let Some(request) = flow.items.get(index).map(|item| Arc::clone(&item.request)) else {
            return;
        };
        match self.capacity(&server) {
            Some(reason) => {
                self.events.push_back(Event::Deferred { server, connection, reason });
                self.end_flow(id, FlowOutcome::Deferred(reason));
            }
            None => {
                self.ask(now, &server, connection, Origin::Flow { flow: id, index }, request);
            }
        }
    }

    /// Ends a waiting call, once: its question goes off the screen, ids nobody was asked about are forgotten.
    pub(super) fn end_flow(&mut self, id: FlowId, outcome: FlowOutcome) {
        let Some(flow) = self.flows.remove(&id) else {
            return;
        };
        let end = match outcome {
            FlowOutcome::ConnectionLost => End::ConnectionLost,
            _ => End::FlowEnded,
        };
        let is_own = |origin: &Origin<K>| matches!(origin, Origin::Flow { flow, .. } if *flow == id);
        let own: Vec<QuestionId> = self.questions_where(|question| is_own(&question.origin));
        for question in own {
            self.end(question, end, None);
        }
        for item in &flow.items {
            let is_shared = self.flows.values().any(|other| other.needs(&flow.server, &item.elicitation_id));
            if let Some(known) = self.servers.get_mut(&flow.server).filter(|_| !is_shared) {
                known.urls.forget_unasked(&item.elicitation_id);
            }
        }
        self.events.push_back(Event::FlowEnded { flow: id, outcome });
    }
}

fn outcome_of(end: End) -> FlowOutcome {
    match end {
        End::Answered(ElicitAction::Decline) | End::NoHost => FlowOutcome::Declined,
        End::ConnectionLost => FlowOutcome::ConnectionLost,
        End::TimedOut => FlowOutcome::TimedOut,
        End::Answered(_) | End::Failed | End::FlowEnded | End::Withdrawn => FlowOutcome::Cancelled,
    }
}
