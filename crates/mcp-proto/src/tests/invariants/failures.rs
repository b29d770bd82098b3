//! Exchanges that fail: on their way, in the middle, and after the answer that they brought.

use std::time::Duration;

use mcp_jsonrpc::RequestId;
use serde_json::json;

use super::Model;
use crate::call::{CallKind, CallState, Stage};
use crate::phase::Phase;
use crate::{CallId, ExchangeFailure};

/// How many ways there are.
pub(super) const WAYS: u8 = 11;

/// The way of an exchange that ends in good order, and without an answer.
const UNANSWERED: u8 = 10;

fn failure(way: u8) -> ExchangeFailure {
    let status = |status, retry_after, explained| ExchangeFailure::Status { status, retry_after, explained };
    match way {
        0 => ExchangeFailure::NotSent,
        1 => ExchangeFailure::ConnectionLost,
        2 => ExchangeFailure::Other,
        3 => ExchangeFailure::Refused,
        4 => ExchangeFailure::SessionLost,
        5 => status(503, None, false),
        6 => status(429, Some(Duration::from_secs(2)), false),
        7 => status(500, None, true),
        8 => status(404, None, false),
        _ => status(401, None, false),
    }
}

impl Model {
    /// The exchange of the request that was taken so many requests before the newest fails. It may be answered by then.
    pub(super) fn fail(&mut self, at: usize, way: u8) {
        // Whoever drives an exchange takes what comes of it.
        if self.paused {
            return;
        }
        if let Some(id) = self.flying.iter().rev().nth(at).cloned() {
            self.fail_exchange(&id, way);
        }
    }

    /// A request that the transport took is refused because the server does not know its session.
    pub(super) fn lose(&mut self, at: usize) {
        let is_asked = |id: &&RequestId| self.dispatched.contains(*id) && self.core.is_awaited(id);
        let lost = self.flying.iter().rev().filter(is_asked).nth(at).cloned();
        if let Some(id) = lost.filter(|_| !self.paused) {
            self.fail_exchange(&id, 4);
        }
    }

    fn fail_exchange(&mut self, id: &RequestId, way: u8) {
        self.flying.retain(|flying| flying != id);
        let was_held = self.held.len();
        self.held.retain(|transmit| request_of(transmit) != Some(id));
        let has_left = self.held.len() == was_held;
        // A server that did not see it answers nothing.
        let way = if has_left || way < 4 { way } else { 3 };
        let failure = failure(way);
        if has_left && failure == ExchangeFailure::NotSent {
            self.core.handle_held_back(id);
        }
        let is_unprocessed = matches!(failure, ExchangeFailure::NotSent | ExchangeFailure::SessionLost);
        let name = json!(id).to_string();
        if is_unprocessed {
            self.dispatched.remove(id);
            self.refused.insert(name.clone());
        }
        let call = self.core.wire.get(id).copied();
        let made = call.filter(|_| has_left && !is_unprocessed && self.made.contains(id));
        self.doubtful.extend(made);
        if way == UNANSWERED {
            if let Some(call) = call.filter(|call| self.core.awaits_answer(*call)) {
                self.give_up(call);
            }
            return;
        }
        let goes_on = self.core.handle_exchange_failed(self.now, id, failure);
        if failure == ExchangeFailure::SessionLost {
            self.has_lost = true;
            let again = call.is_some() && goes_on && !self.lost.insert(name.clone());
            assert!(!again, "a request that each session loses goes on for ever");
        }
        match call {
            Some(call) if !goes_on => self.give_up(call),
            Some(_) if is_unprocessed && self.core.is_awaited(id) => drop(self.unseen.insert(name)),
            None => assert!(goes_on, "nobody waits for it"),
            _ => {}
        }
    }

    /// The driver knows how a call failed, or the one that waits for it.
    fn give_up(&mut self, call: CallId) {
        if self.ledger.calls.contains(&call) {
            return self.ledger.forget(&mut self.core, call);
        }
        let waits = self.core.waits_for(call);
        let over = self.core.forget_own(self.now, call, "it failed");
        assert_eq!(waits, over);
        assert!(!self.core.is_open(call));
        if let Some(over) = over {
            assert!(!self.core.is_open(over));
            self.ledger.forgotten.insert(over);
        }
    }

    /// `initialized` that the driver took is not accepted.
    pub(super) fn undeliver(&mut self, way: u8) {
        let Some(owner) = self.confirms.take().filter(|_| !self.paused) else { return };
        if Some(owner) == self.initialize {
            // There is no connection without it, whoever waits for one.
            return self.core.handle_closed();
        }
        // Be it one that was given up meanwhile.
        if !self.core.handle_initialized_failed(self.now, owner, failure(way)) {
            self.give_up(owner);
        }
        assert!(!self.core.is_open(owner));
    }

    /// Whatever is waited for is on its way, or comes by itself.
    pub(super) fn check_nothing_is_orphaned(&self) {
        let core = &self.core;
        for (call, state) in &core.calls {
            let waits = match &state.stage {
                Stage::Asking(request) => {
                    self.flying.contains(&request.id)
                        || request.leaves_at.is_some()
                        || core.phase.holds(*call)
                }
                Stage::Apart => {
                    is_granted(state) || core.phase.holds(*call) || !core.requests_for(*call).is_empty()
                }
                _ => true,
            };
            assert!(waits, "{call:?} waits for nothing: {state:?}");
        }
        let waits: Vec<_> = core.calls.iter().filter(|(call, _)| core.phase.holds(**call)).collect();
        for (_, state) in &waits {
            let is_ready = state.request().is_some_and(|request| !request.dispatched);
            assert!(is_ready || matches!(state.stage, Stage::Apart), "it needs no session: {state:?}");
        }
        let is_renewed = matches!(core.phase, Phase::Renewing(_));
        assert!(!is_renewed || !waits.is_empty() || !core.notices.is_empty(), "nobody waits for a session");
        let renews = core.calls.values().filter(|state| state.kind == CallKind::Renew).count();
        assert_eq!(renews, usize::from(is_renewed), "one handshake and no other");
    }

    /// What is left when everything that has a deadline has met it: subscriptions that stand.
    pub(super) fn check_quiet(&self) {
        for (call, state) in &self.core.calls {
            assert!(is_granted(state), "{call:?} never ends: {state:?}");
        }
        assert!(self.core.notices.is_empty() || self.core.lacks_session());
        assert!(self.core.server_requests.is_clear());
    }
}

pub(super) fn request_of(transmit: &crate::Transmit) -> Option<&RequestId> {
    match &transmit.kind {
        crate::TransmitKind::Request { id, .. } => Some(id),
        _ => None,
    }
}

fn is_granted(state: &CallState) -> bool {
    state.listening().is_some_and(|listening| listening.granted().is_some())
}
