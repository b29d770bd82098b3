//! What the host does.

use std::{
    hash::Hash,
    time::{Duration, Instant},
};

use super::{
    Elicitations, End, Misuse, QuestionId, QuestionState, Wait, Waiter, WaiterId, deadline,
    registry::UrlState,
};
use crate::ElicitResult;

impl<S: Clone + Eq + Hash, K: Clone + Eq + Hash> Elicitations<S, K> {
    /// Answers a question. The answer is checked, filled with defaults and stripped of content as
    /// [`ElicitRequest::check`](crate::ElicitRequest::check) says; the reply is then ready to be sent.
    ///
    /// # Errors
    /// [`Misuse::InvalidAnswer`] with all violations, and the question stays open;
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn answer(&mut self, now: Instant, question: QuestionId, answer: ElicitResult) -> Result<(), Misuse> {
        let open = self.questions.get(&question).ok_or(Misuse::UnknownQuestion)?;
        let answer = open.request.check(answer).map_err(Misuse::InvalidAnswer)?;
        self.end(question, End::Answered(answer.action), Some(answer));
        self.run_flows(now);
        Ok(())
    }

    /// Says that the question is on a screen.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn shown(&mut self, question: QuestionId) -> Result<(), Misuse> {
        self.set_state(question, QuestionState::Shown)
    }

    /// Says that a handler has put the question off: it stays open, and its time runs on, for an answer from
    /// elsewhere.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn defer(&mut self, question: QuestionId) -> Result<(), Misuse> {
        self.set_state(question, QuestionState::Deferred)
    }

    fn set_state(&mut self, question: QuestionId, state: QuestionState) -> Result<(), Misuse> {
        self.questions.get_mut(&question).ok_or(Misuse::UnknownQuestion)?.state = state;
        Ok(())
    }

    /// Says that nobody is there to see the question: the server gets `decline`.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn no_host(&mut self, now: Instant, question: QuestionId) -> Result<(), Misuse> {
        let open = self.questions.get(&question).ok_or(Misuse::UnknownQuestion)?;
        let (server, connection) = (open.server.clone(), open.connection);
        self.end_without_host(question, server, connection);
        self.run_flows(now);
        Ok(())
    }

    /// Says that the question could not be shown or its handler failed: the server gets `cancel`.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn fail(&mut self, now: Instant, question: QuestionId) -> Result<(), Misuse> {
        if !self.questions.contains_key(&question) {
            return Err(Misuse::UnknownQuestion);
        }
        self.end(question, End::Failed, Some(ElicitResult::cancel()));
        self.run_flows(now);
        Ok(())
    }

    /// Gives a question another time to wait, counted from `now`. Any duration works.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`] if it has ended.
    pub fn set_timeout(
        &mut self,
        now: Instant,
        question: QuestionId,
        timeout: Duration,
    ) -> Result<(), Misuse> {
        self.questions.get_mut(&question).ok_or(Misuse::UnknownQuestion)?.deadline = deadline(now, timeout);
        Ok(())
    }

    /// Waits for the completion of a URL elicitation that a person consented to, for `timeout` or else the
    /// configured time. When the wait times out, the elicitation is still accepted, and a later notice still
    /// counts.
    ///
    /// # Errors
    /// [`Misuse::TooManyWaiters`] at the limit.
    pub fn wait(
        &mut self,
        now: Instant,
        server: &S,
        elicitation_id: &str,
        timeout: Option<Duration>,
    ) -> Result<Wait, Misuse> {
        let state = self.servers.get(server).and_then(|known| known.urls.state(elicitation_id));
        match state {
            Some(UrlState::Finished(None)) => return Ok(Wait::Done(true)),
            Some(UrlState::Accepted) => {}
            Some(UrlState::Pending { .. } | UrlState::Finished(Some(_))) | None => {
                return Ok(Wait::Done(false));
            }
        }
        let limit = self.limits.max_waiters;
        if self.waiters.len() >= limit {
            return Err(Misuse::TooManyWaiters { limit });
        }
        let id = WaiterId(self.next_id());
        let waiter = Waiter {
            server: server.clone(),
            elicitation_id: elicitation_id.to_owned(),
            deadline: deadline(now, timeout.unwrap_or(self.limits.completion_timeout)),
        };
        self.waiters.insert(id, waiter);
        Ok(Wait::Waiting(id))
    }

    /// Nobody waits any more: the waiter's place is free. Nothing is told of it. One that has ended is ignored.
    pub fn stop_waiting(&mut self, waiter: WaiterId) {
        self.waiters.remove(&waiter);
    }

    /// Forgets everything about a server, finished elicitation ids included. Do this when the server will not be
    /// connected again, or when it is known to have started afresh: its old ids become new.
    ///
    /// # Errors
    /// [`Misuse::ConnectionsOpen`] while it has connections.
    pub fn forget_server(&mut self, server: &S) -> Result<(), Misuse> {
        if self.servers.get(server).is_some_and(|known| known.connections > 0) {
            return Err(Misuse::ConnectionsOpen);
        }
        // Nobody waits for it: what was accepted ended with its connection, and the waits with it.
        self.servers.remove(server);
        Ok(())
    }
}
