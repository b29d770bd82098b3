//! Subscriptions to changes, one face for both eras.
//!
//! ```text
//!   listen() ──> Waiting ──granted──> Standing ──the server ends it, cancel()──> ended
//!                   └──refused, no word within the timeout────────────────────> ended
//! ```
//!
//! A modern server is asked with one `subscriptions/listen`, whose answer is its end; what it grants comes as a
//! notification. Its wire id is a number like that of every request: no other request ever has the same one, so it
//! names the subscription as well as a text would. A legacy server tells of changed lists unasked, and is asked for each
//! resource with `resources/subscribe`; the call that stands for the subscription is then not on the wire itself.
//!
//! A subscription has no time limit of its own, only the wait for the grant has. Nothing is replayed to one that was
//! opened again.

use std::time::Instant;

use mcp_jsonrpc::{RawJson, RawRef, RequestId};
use mcp_model::{
    FromJson, ProtocolVersion, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams, ToJson, methods,
    subscription_id,
};

use crate::call::{CallId, CallKind, CallOptions, CallState};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::error::{CallError, Misuse};
use crate::event::Event;
use crate::gate;
use crate::incoming::Origin;
use crate::phase::Phase;
use crate::renewal::Setup;
use crate::timers::Timer;

/// What a call that is a subscription knows about itself.
#[derive(Debug)]
pub(crate) struct Listening {
    wanted: SubscriptionFilter,
    granted: Option<SubscriptionFilter>,
    /// Resources that a legacy server has not agreed to yet.
    pending: Vec<String>,
}

impl Listening {
    /// What the server granted, once it did.
    pub(crate) const fn granted(&self) -> Option<&SubscriptionFilter> {
        self.granted.as_ref()
    }
}

impl Connection {
    /// Subscribes to changes. [`Event::Subscribed`] says what the server grants, from then on the events of the wanted
    /// kinds come; [`Event::CallEnded`] is the end of the subscription, with `Ok` where the server ended it on purpose.
    /// [`cancel`](Self::cancel) ends it from this side. Of `options` only the timeout counts, for the wait until the
    /// server grants anything.
    ///
    /// # Errors
    ///
    /// [`Misuse::Closed`], [`Misuse::NotReady`] before the handshake is over, [`Misuse::TooManyCalls`] (a legacy server is asked
    /// for each resource by a request of its own), [`Misuse::NotDeclaredByServer`] where a legacy server has no subscriptions to
    /// resources.
    pub fn listen(
        &mut self,
        now: Instant,
        wanted: &SubscriptionFilter,
        options: &CallOptions,
    ) -> Result<CallId, Misuse> {
        let Phase::Ready { server } = &self.phase else {
            return Err(if self.is_closed() { Misuse::Closed } else { Misuse::NotReady });
        };
        let version = server.protocol_version;
        let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
        if version.is_legacy() && !uris.is_empty() {
            gate::check(methods::RESOURCES_SUBSCRIBE, version, &server.capabilities)?;
        }
        let limit = self.config.limits.max_calls;
        // A place for the subscription and one for each request of it.
        if version.is_legacy() && self.calls.len().saturating_add(uris.len()) >= limit {
            return Err(Misuse::TooManyCalls { limit });
        }
        let call = self.next_call_id();
        let mut listening = Listening { wanted: wanted.clone(), granted: None, pending: Vec::new() };
        if version.is_modern() {
            let params = SubscriptionsListenRequestParams::new(wanted.clone()).to_json();
            let params = params.map(RawJson::from).map_err(|_| Misuse::Unserializable)?;
            let kind = CallKind::Listen;
            self.send_request(now, call, methods::SUBSCRIPTIONS_LISTEN, Some(&params), kind, options)?;
            if let Some(state) = self.calls.get_mut(&call) {
                state.listening = Some(Box::new(listening));
            }
        } else {
            // There are fewer than calls may be open.
            for uri in uris {
                if !listening.pending.contains(&uri) {
                    listening.pending.push(uri);
                }
            }
            self.listen_to_legacy(now, call, listening, options);
        }
        Ok(call)
    }

    fn listen_to_legacy(&mut self, now: Instant, call: CallId, listening: Listening, options: &CallOptions) {
        let uris = listening.pending.clone();
        // It has no id: the requests of it have.
        let mut state = CallState::new(CallKind::Listen, RequestId::Integer(0), now, options);
        state.on_wire = false;
        state.listening = Some(Box::new(listening));
        self.arm(state.deadline, Timer::Call(call));
        self.calls.insert(call, state);
        for uri in uris {
            let Some(params) = uri_params(&uri) else { continue };
            let request = self.next_call_id();
            let kind = CallKind::Subscribe(call);
            let method = methods::RESOURCES_SUBSCRIBE;
            // Invariant: there is room, and the params are an object.
            if self.send_request(now, request, method, Some(&params), kind, options).is_ok()
                && let Some(state) = self.calls.get_mut(&request)
            {
                state.setup = Some(Setup::Subscribe(uri, params));
            }
        }
        self.grant_if_complete(call);
    }

    /// A legacy server agreed to one resource, or did not.
    pub(crate) fn handle_subscribed(
        &mut self,
        now: Instant,
        listen: CallId,
        setup: Option<Setup>,
        outcome: Result<(), CallError>,
    ) {
        match (outcome, setup) {
            // Given up meanwhile, and the server was told so.
            (Ok(()), _) if !self.calls.contains_key(&listen) => {}
            (Ok(()), Some(setup)) => {
                if let Setup::Subscribe(uri, _) = &setup
                    && let Some(listening) =
                        self.calls.get_mut(&listen).and_then(|state| state.listening.as_mut())
                {
                    listening.pending.retain(|pending| pending != uri);
                }
                self.desired.apply(setup);
                self.grant_if_complete(listen);
            }
            (Ok(()), None) => {}
            (Err(error), _) => {
                if let Some(state) = self.remove_call(listen) {
                    self.end_call(now, listen, &state, Err(error));
                }
            }
        }
    }

    fn grant_if_complete(&mut self, call: CallId) {
        let listening = self.calls.get(&call).and_then(|state| state.listening.as_ref());
        if let Some(listening) = listening.filter(|listening| listening.pending.is_empty()) {
            let granted = listening.wanted.clone();
            self.grant(call, granted);
        }
    }

    fn grant(&mut self, call: CallId, granted: SubscriptionFilter) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        let Some(listening) = state.listening.as_mut().filter(|listening| listening.granted.is_none()) else {
            return;
        };
        listening.granted = Some(granted.clone());
        // What changed before nobody told: what is fetched from now on must be as new as the subscription.
        self.cache.clear();
        let started = state.started;
        self.set_deadline(call, started, None);
        self.push_event(Event::Subscribed { call, granted });
    }

    /// `notifications/subscriptions/acknowledged`
    pub(crate) fn handle_acknowledged(&mut self, origin: Origin, params: Option<RawRef<'_>>) {
        let call = self.subscription_of(origin, params);
        let read = params.and_then(|params| {
            params.parse_with(SubscriptionsAcknowledgedNotificationParams::from_json).ok()
        });
        match (call, read) {
            (Some(call), Some(read)) => self.grant(call, read.notifications),
            _ => self.diagnose(DiagnosticKind::ChangeIgnored, "a grant for no subscription"),
        }
    }

    /// Whether this notice of a change is wanted. A modern server only sends what was asked for, under the id of the
    /// request that asked.
    pub(crate) fn is_wanted(&mut self, origin: Origin, method: &str, params: Option<RawRef<'_>>) -> bool {
        if self.server().is_none_or(|server| server.protocol_version.is_legacy()) {
            return true;
        }
        let listening = self
            .subscription_of(origin, params)
            .and_then(|call| self.calls.get(&call))
            .and_then(|state| state.listening.as_ref());
        let wanted = listening
            .is_some_and(|listening| listening.granted.as_ref().unwrap_or(&listening.wanted).selects(method));
        if !wanted {
            self.diagnose(DiagnosticKind::ChangeIgnored, format!("{method} that was not asked for"));
        }
        wanted
    }

    fn subscription_of(&self, origin: Origin, params: Option<RawRef<'_>>) -> Option<CallId> {
        let marked = params.and_then(|params| params.members(["_meta"]).ok());
        let id = marked.and_then(|[meta]| meta?.to_raw_value().ok());
        let id = subscription_id(id);
        let call = match (id, origin) {
            (Some(id), _) => *self.wire.get(&crate::incoming::wire_id(id))?,
            (None, Origin::Exchange(call)) => call,
            (None, Origin::Channel) => return None,
        };
        self.calls.get(&call)?.listening.as_ref().map(|_| call)
    }

    /// `notifications/cancelled` of a modern server: it ends one of its subscriptions. Anything else it may not cancel.
    pub(crate) fn end_subscription(&mut self, now: Instant, id: &RequestId) {
        let Some(call) = self.wire.get(id).copied() else { return };
        if self.calls.get(&call).is_none_or(|state| state.kind != CallKind::Listen) {
            return;
        }
        if let (Some(state), Ok(nothing)) = (self.remove_call(call), RawJson::from_text("{}".to_owned())) {
            self.end_call(now, call, &state, Ok(nothing));
        }
    }

    /// A subscription is over: a legacy server is told for each resource that no other one wants. What it was asked for and has
    /// not answered is given up with it: nobody waits for that.
    pub(crate) fn give_up_resources(&mut self, now: Instant, listen: CallId, state: &CallState) {
        let is_asked = |(call, state): (&CallId, &CallState)| {
            (state.kind == CallKind::Subscribe(listen)).then_some(*call)
        };
        let asked: Vec<CallId> = self.calls.iter().filter_map(is_asked).collect();
        for request in asked {
            if let Some(state) = self.remove_call(request) {
                self.withdraw(&state, None);
            }
        }
        let legacy = |version: ProtocolVersion| version.is_legacy();
        let Phase::Ready { server } = &self.phase else { return };
        let Some(listening) = state.listening.as_ref().filter(|_| legacy(server.protocol_version)) else {
            return;
        };
        let is_wanted = |uri: &String| {
            let others = self.calls.values().filter_map(|other| other.listening.as_ref());
            others.flat_map(|other| &other.wanted.resource_subscriptions).any(|others| others.contains(uri))
        };
        let gone: Vec<String> = listening
            .wanted
            .resource_subscriptions
            .iter()
            .flatten()
            .filter(|uri| !is_wanted(uri))
            .cloned()
            .collect();
        for uri in gone {
            let Some(params) = uri_params(&uri) else { continue };
            self.desired.apply(Setup::Unsubscribe(uri));
            let request = self.next_call_id();
            let (method, options) = (methods::RESOURCES_UNSUBSCRIBE, CallOptions::default());
            // A courtesy: without room for it the server goes on telling, and is not listened to.
            drop(self.send_request(now, request, method, Some(&params), CallKind::Restore, &options));
        }
    }
}

fn uri_params(uri: &str) -> Option<RawJson> {
    SubscribeRequestParams::new(uri).to_json().ok().map(RawJson::from)
}
