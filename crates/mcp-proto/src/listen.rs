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
    FromJson, ServerFeature, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams, ToJson, methods,
    subscription_id,
};

use crate::call::{CallId, CallKind, CallOptions, CallState, Role, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::error::{CallError, Misuse};
use crate::event::Event;
use crate::gate;
use crate::incoming::Origin;
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
    /// Whether it is about this resource.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        self.wanted.resource_subscriptions.iter().flatten().any(|wanted| wanted == uri)
    }

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
        let server = self.usable()?;
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
                state.role = Role::Subscription(Box::new(listening));
            }
        } else {
            // There are fewer than calls may be open.
            for uri in uris {
                if !listening.pending.contains(&uri) {
                    listening.pending.push(uri);
                }
            }
            self.listen_to_legacy(now, call, listening, options);
            if self.is_ready() {
                self.ask_for_resources(now, call);
            } else {
                self.hold(now, call);
            }
        }
        Ok(call)
    }

    fn listen_to_legacy(&mut self, now: Instant, call: CallId, listening: Listening, options: &CallOptions) {
        let mut state = CallState::new(CallKind::Listen, Stage::Apart, now, options);
        state.role = Role::Subscription(Box::new(listening));
        self.arm(state.time.deadline, Timer::Call(call));
        self.calls.insert(call, state);
    }

    /// Asks a legacy server, which has a session, for each resource that it has not agreed to yet.
    pub(crate) fn ask_for_resources(&mut self, now: Instant, listen: CallId) {
        // What was asked for in an earlier session is not answered any more.
        for request in self.requests_for(listen) {
            drop(self.remove_call(request));
        }
        let Some(state) = self.calls.get(&listen) else { return };
        let pending = state.listening().map(|listening| listening.pending.clone());
        let options = CallOptions::with_timeout(state.time.timeout);
        for uri in pending.unwrap_or_default() {
            let Some(params) = uri_params(&uri) else { continue };
            let request = self.next_call_id();
            let kind = CallKind::Subscribe(listen);
            let method = methods::RESOURCES_SUBSCRIBE;
            // There was room when it was made; where it had to wait for a session, others may have taken that.
            if let Err(misuse) = self.send_request(now, request, method, Some(&params), kind, &options) {
                if let Some(state) = self.remove_call(listen) {
                    let error = CallError::Unsendable { misuse, dispatched: false };
                    self.end_call(now, listen, &state, Err(error));
                }
                return;
            }
            if let Some(state) = self.calls.get_mut(&request) {
                state.setup = Some(Setup::Subscribe(uri, params));
            }
        }
        self.grant_if_complete(listen);
    }

    /// The requests of a subscription that are not answered.
    pub(crate) fn requests_for(&self, listen: CallId) -> Vec<CallId> {
        let is_asked = |(call, state): (&CallId, &CallState)| {
            (state.kind == CallKind::Subscribe(listen)).then_some(*call)
        };
        self.calls.iter().filter_map(is_asked).collect()
    }

    /// The server no longer knows the session of a request of this subscription. Returns whether that is taken care of: the
    /// subscription asks again in the next session, once.
    pub(crate) fn resubscribe(&mut self, now: Instant, request: CallId, listen: CallId) -> bool {
        if self.is_of_older_session(request)
            && let Some(asked) = self.calls.get_mut(&request)
        {
            let goes_on = !std::mem::replace(&mut asked.resent, true);
            if goes_on {
                self.send_held(request);
            }
            return goes_on;
        }
        let Some(state) = self.calls.get_mut(&listen) else { return false };
        if !self.phase.holds(listen) {
            if std::mem::replace(&mut state.resent, true) {
                return false;
            }
            self.renew_for(now, listen);
        }
        drop(self.remove_call(request));
        true
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
                        self.calls.get_mut(&listen).and_then(|state| state.listening_mut())
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
        let listening = self.calls.get(&call).and_then(|state| state.listening());
        if let Some(listening) = listening.filter(|listening| listening.pending.is_empty()) {
            let granted = self.granted_by_legacy(&listening.wanted);
            self.grant(call, granted);
        }
    }

    /// What a legacy server grants that has agreed to every resource: of the lists those whose changes it declares to tell.
    fn granted_by_legacy(&self, wanted: &SubscriptionFilter) -> SubscriptionFilter {
        let declares = |feature| self.server().is_some_and(|server| server.capabilities.declares(feature));
        let list = |wanted: Option<bool>, feature| wanted.filter(|_| declares(feature));
        let mut granted = SubscriptionFilter::new();
        granted.prompts_list_changed = list(wanted.prompts_list_changed, ServerFeature::PromptsListChanged);
        granted.resources_list_changed =
            list(wanted.resources_list_changed, ServerFeature::ResourcesListChanged);
        granted.tools_list_changed = list(wanted.tools_list_changed, ServerFeature::ToolsListChanged);
        granted.resource_subscriptions.clone_from(&wanted.resource_subscriptions);
        granted
    }

    fn grant(&mut self, call: CallId, granted: SubscriptionFilter) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        let Some(listening) = state.listening_mut().filter(|listening| listening.granted.is_none()) else {
            return;
        };
        listening.granted = Some(granted.clone());
        // What changed before nobody told: what is fetched from now on must be as new as the subscription.
        self.cache.clear();
        self.set_deadline(call, None);
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
            _ => {
                self.diagnose(DiagnosticKind::ChangeIgnored, "an acknowledgement of an unknown subscription")
            }
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
            .and_then(|state| state.listening());
        let wanted = listening
            .is_some_and(|listening| listening.granted.as_ref().unwrap_or(&listening.wanted).selects(method));
        if !wanted {
            self.diagnose(DiagnosticKind::ChangeIgnored, format!("{method} without a subscription for it"));
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
        self.calls.get(&call)?.listening().map(|_| call)
    }

    /// `notifications/cancelled` of a modern server: it ends one of its subscriptions. Anything else it may not cancel.
    pub(crate) fn end_subscription(&mut self, now: Instant, id: &RequestId) {
        let Some(call) = self.wire.get(id).copied() else { return };
        // Nor what it has not seen yet.
        if self.calls.get(&call).is_none_or(|state| state.kind != CallKind::Listen || !state.is_dispatched())
        {
            return;
        }
        if let (Some(state), Ok(nothing)) = (self.remove_call(call), RawJson::from_text("{}".to_owned())) {
            self.end_call(now, call, &state, Ok(nothing));
        }
    }

    /// A subscription is over: a legacy server is told for each resource that no other one wants. What it was asked for and has
    /// not answered is given up with it: nobody waits for that.
    pub(crate) fn give_up_resources(&mut self, now: Instant, listen: CallId, state: &CallState) {
        for request in self.requests_for(listen) {
            if let Some(state) = self.remove_call(request) {
                self.withdraw(&state, None);
            }
        }
        for params in self.undesire(state) {
            if !self.is_ready() {
                // There is no session that the server could know it from.
                continue;
            }
            let request = self.next_call_id();
            let (method, options) = (methods::RESOURCES_UNSUBSCRIBE, CallOptions::default());
            // A courtesy: without room for it the server goes on telling, and is not listened to.
            drop(self.send_request(now, request, method, Some(&params), CallKind::Courtesy, &options));
        }
    }

    /// The resources that nobody wants any more now that this subscription is over (legacy era): they are not subscribed to in a
    /// new session.
    pub(crate) fn undesire(&mut self, state: &CallState) -> Vec<RawJson> {
        let is_legacy = self.server().is_some_and(|server| server.protocol_version.is_legacy());
        let Some(listening) = state.listening().filter(|_| is_legacy) else { return Vec::new() };
        let is_wanted = |uri: &String| {
            self.calls.values().filter_map(|other| other.listening()).any(|other| other.wants(uri))
        };
        let uris = listening.wanted.resource_subscriptions.iter().flatten();
        let gone: Vec<_> = uris
            .filter(|uri| !is_wanted(uri))
            .filter_map(|uri| Some((uri.clone(), uri_params(uri)?)))
            .collect();
        let undesired = |(uri, params): (String, RawJson)| {
            let was_asked = !self.take_back_restoring(&uri);
            self.desired.apply(Setup::Unsubscribe(uri));
            was_asked.then_some(params)
        };
        gone.into_iter().filter_map(undesired).collect()
    }

    /// Takes back what was to subscribe to this resource in a new session and has not left. Whether there was such a request.
    fn take_back_restoring(&mut self, uri: &str) -> bool {
        let is_for = |setup: &Setup| matches!(setup, Setup::Subscribe(restored, _) if restored == uri);
        let waiting = self.calls.iter().find(|(_, state)| {
            state.kind == CallKind::Restore
                && !state.is_dispatched()
                && state.setup.as_ref().is_some_and(is_for)
        });
        let waiting = waiting.map(|(call, _)| *call);
        waiting.and_then(|call| self.remove_call(call)).is_some()
    }
}

impl Connection {
    /// The subscriptions that are open.
    pub fn subscriptions(&self) -> impl Iterator<Item = CallId> {
        self.calls.iter().filter(|(_, state)| state.kind == CallKind::Listen).map(|(call, _)| *call)
    }

    /// The call that ends with this request of the connection's own, where that fails for good: a subscription with the request for
    /// one of its resources, the call that has waited longest with the handshake for a new session.
    pub fn waits_for(&self, request: CallId) -> Option<CallId> {
        match self.calls.get(&request)?.kind {
            CallKind::Subscribe(listen) => Some(listen).filter(|listen| self.is_open(*listen)),
            CallKind::Renew => self.first_held(request),
            _ => None,
        }
    }

    /// The exchange of a request that this connection made by itself failed for good, and the driver knows how: it is forgotten.
    /// Returns the call that [waited for it](Self::waits_for), which is over as well, without an event: its driver tells what happened.
    /// What was to restore a session, and what was a courtesy, has nobody who waits; there `why` becomes a diagnostic.
    pub fn forget_own(&mut self, now: Instant, request: CallId, why: &str) -> Option<CallId> {
        if self.calls.get(&request)?.kind == CallKind::Renew {
            let waiting = self.first_held(request);
            if let Some(waiting) = waiting {
                self.forget(waiting);
            }
            self.renew_again(request);
            return waiting;
        }
        let state = self.remove_call(request)?;
        let CallKind::Subscribe(listen) = state.kind else {
            if state.kind == CallKind::Restore {
                self.diagnose(DiagnosticKind::SetupNotRestored, why);
            }
            return None;
        };
        let waiting = self.remove_call(listen)?;
        self.give_up_resources(now, listen, &waiting);
        self.leave_renewal(listen);
        Some(listen)
    }
}

fn uri_params(uri: &str) -> Option<RawJson> {
    SubscribeRequestParams::new(uri).to_json().ok().map(RawJson::from)
}
