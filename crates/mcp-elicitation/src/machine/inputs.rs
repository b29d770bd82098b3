//! What servers, connections and the clock do.

use std::{hash::Hash, sync::Arc, time::Instant};

use serde::Deserialize;

use super::{
    ConnectionId, DeferReason, Elicitations, End, Event, FlowId, FlowOutcome, Origin, QuestionId, Refusal,
    Reply, ReplyBody, in_order, registry::Completion,
};
use crate::{ElicitRequest, ElicitResult};

#[derive(Deserialize)]
struct CompleteParams {
    #[serde(rename = "elicitationId")]
    elicitation_id: String,
}

impl<S: Clone + Eq + Hash, K: Clone + Eq + Hash> Elicitations<S, K> {
    /// A server's `elicitation/create` request: reads its `params` by the connection's rules, then goes on like
    /// [`handle_parsed`](Self::handle_parsed). One that is not right is answered with an error.
    pub fn handle_request(&mut self, now: Instant, connection: ConnectionId, key: K, params: &str) {
        let Some(open) = self.connections.get(&connection) else {
            return;
        };
        match ElicitRequest::parse_with(params, &open.rules) {
            Ok(request) => self.handle_parsed(now, connection, key, request),
            Err(error) => self.refuse(connection, key, Refusal::Invalid(error)),
        }
    }

    /// A server's request that was read before.
    ///
    /// Asks it, or declines it at a limit, or refuses it: the key of a question that is open on the connection,
    /// an elicitation id that ended, is open, or belongs to another URL. Requests on a connection that is not
    /// open are ignored.
    pub fn handle_parsed(&mut self, now: Instant, connection: ConnectionId, key: K, request: ElicitRequest) {
        let Some(server) = self.connections.get(&connection).map(|open| open.server.clone()) else {
            return;
        };
        if self.in_flight.contains_key(&(connection, key.clone())) {
            return self.refuse(connection, key, Refusal::DuplicateRequest);
        }
        if let Some(reason) = self.capacity(&server) {
            return self.refuse(connection, key, Refusal::Deferred(reason));
        }
        if let ElicitRequest::Url(url) = &request
            && let Some(id) = url.elicitation_id()
        {
            let limit = self.limits.max_remembered_urls;
            let known = self.servers.entry(server.clone()).or_default();
            let admitted = match known.urls.admit(id, url.url().normalized(), limit, 0) {
                Ok(_) if known.urls.question(id).is_some() => Err(Refusal::IdInUse),
                other => other,
            };
            if let Err(refusal) = admitted {
                return self.refuse(connection, key, refusal);
            }
            known.urls.remember(id, url.url().normalized(), connection);
        }
        self.ask(now, &server, connection, Origin::Request(key), Arc::new(request));
    }

    fn refuse(&mut self, connection: ConnectionId, key: K, refusal: Refusal) {
        let Some(server) = self.connections.get(&connection).map(|open| open.server.clone()) else {
            return;
        };
        let body = match &refusal {
            Refusal::DuplicateRequest => None,
            Refusal::Deferred(_) => Some(ReplyBody::Result(ElicitResult::decline())),
            Refusal::Invalid(error) => {
                Some(ReplyBody::Error { code: error.wire_code(), message: error.wire_message() })
            }
            // These texts are fixed: they say nothing of other servers.
            other => Some(ReplyBody::Error { code: -32602, message: other.to_string() }),
        };
        if let Some(body) = body {
            self.replies.push_back(Reply { connection, key, body });
        }
        self.events.push_back(match refusal {
            Refusal::Deferred(reason) => Event::Deferred { server, connection, reason },
            refusal => Event::Refused { server, connection, refusal },
        });
    }

    /// A server's `notifications/cancelled` for its own request: the question is withdrawn and gets no reply.
    /// Unknown keys are ignored.
    pub fn handle_cancelled(&mut self, now: Instant, connection: ConnectionId, key: &K) {
        self.end_request(now, connection, key, End::Withdrawn);
    }

    /// The call in the middle of which a server's request was made has ended: nobody needs an answer any more, and
    /// there is no reply. Unknown keys are ignored.
    pub fn handle_call_ended(&mut self, now: Instant, connection: ConnectionId, key: &K) {
        self.end_request(now, connection, key, End::FlowEnded);
    }

    /// The session in which a server's request was made is gone while the connection goes on: there is nobody to
    /// reply to. Unknown keys are ignored.
    pub fn handle_request_lost(&mut self, now: Instant, connection: ConnectionId, key: &K) {
        self.end_request(now, connection, key, End::ConnectionLost);
    }

    fn end_request(&mut self, now: Instant, connection: ConnectionId, key: &K, end: End) {
        if let Some(question) = self.in_flight.get(&(connection, key.clone())).copied() {
            self.end(question, end, None);
            self.run_flows(now);
        }
    }

    /// A server's `notifications/elicitation/complete`, as the `params` text. Malformed ones, unknown ids, ids of
    /// other servers and ids that ended are ignored.
    ///
    /// A notice for a question that is still open counts once the person accepts, and is dropped otherwise.
    pub fn handle_complete(&mut self, now: Instant, connection: ConnectionId, params: &str) {
        let Some(open) = self.connections.get(&connection) else {
            return;
        };
        if params.len() > open.rules.limits.max_params_bytes {
            return;
        }
        if let Ok(CompleteParams { elicitation_id }) = serde_json::from_str(params) {
            self.handle_completed_id(now, connection, &elicitation_id);
        }
    }

    /// A completion notice whose `elicitationId` was read before.
    pub fn handle_completed_id(&mut self, now: Instant, connection: ConnectionId, elicitation_id: &str) {
        let Some(server) = self.connections.get(&connection).map(|open| open.server.clone()) else {
            return;
        };
        let completion = self.servers.get_mut(&server).map(|known| known.urls.complete(elicitation_id));
        if completion == Some(Completion::Completed) {
            self.completed(&server, elicitation_id);
            self.run_flows(now);
        }
    }

    /// A connection went away, in whatever way. Its questions end without reply, its URL elicitations are over,
    /// its waiters and waiting calls are released. Other connections are not touched, but for this: a call that waits on
    /// another connection of the same server for a URL elicitation that was asked for here, under the same id, ends too.
    pub fn handle_connection_lost(&mut self, now: Instant, connection: ConnectionId) {
        let Some(open) = self.connections.remove(&connection) else {
            return;
        };
        let server = open.server;
        for flow in self.flows_where(|flow| flow.connection == connection) {
            self.end_flow(flow, FlowOutcome::ConnectionLost);
        }
        for question in self.questions_where(|question| question.connection == connection) {
            self.end(question, End::ConnectionLost, None);
        }
        let lost = self.servers.get_mut(&server).map(|known| {
            known.connections = known.connections.saturating_sub(1);
            known.urls.lose(connection)
        });
        for id in lost.unwrap_or_default() {
            self.release_waiters(&server, &id);
            self.stir(&server, &id);
        }
        self.run_flows(now);
        // A host may connect to ever new servers; only what a server could ask again has to be remembered.
        if self.servers.get(&server).is_some_and(|known| known.connections == 0 && known.urls.len() == 0) {
            self.servers.remove(&server);
        }
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come. Early calls change nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        for question in self.questions_where(|question| is_due(question.deadline)) {
            self.end(question, End::TimedOut, Some(ElicitResult::cancel()));
        }
        self.end_waiters(false, |waiter| is_due(waiter.deadline));
        self.run_flows(now);
        for flow in self.flows_where(|flow| is_due(flow.next_deadline())) {
            self.end_flow(flow, FlowOutcome::TimedOut);
        }
        self.run_flows(now);
    }

    /// Questions in the order in which they were asked.
    pub(super) fn questions_where(
        &self,
        is_meant: impl Fn(&super::Question<S, K>) -> bool,
    ) -> Vec<QuestionId> {
        let meant = self.questions.iter().filter(|(_, question)| is_meant(question));
        in_order(meant.map(|(id, _)| id.0).collect()).into_iter().map(QuestionId).collect()
    }

    /// Waiting calls in the order in which they were started.
    pub(super) fn flows_where(&self, is_meant: impl Fn(&super::Flow<S>) -> bool) -> Vec<FlowId> {
        let meant = self.flows.iter().filter(|(_, flow)| is_meant(flow));
        in_order(meant.map(|(id, _)| id.0).collect()).into_iter().map(FlowId).collect()
    }

    /// Declines a question that nobody is there to see, and says so.
    pub(super) fn end_without_host(&mut self, question: QuestionId, server: S, connection: ConnectionId) {
        let reason = DeferReason::NoInteractiveHost;
        self.events.push_back(Event::Deferred { server, connection, reason });
        self.end(question, End::NoHost, Some(ElicitResult::decline()));
    }
}
