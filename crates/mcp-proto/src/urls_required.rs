//! Calls that a server refuses until URL elicitations have happened (2025-11-25, "URL Elicitation Required Error").
//!
//! ```text
//!              error -32042, its whole list right                `handle_urls_done`
//!   InFlight ────────────────────────────────────────> Paused ──────────────────────> InFlight (new id, same call)
//!      │                                                  │
//!      │ a list that is not right, a second -32042        ├── `handle_urls_refused` ──> ended with that very error
//!      └──────> ended with that very error                ├── overall end ────────────> ended with that very error
//!                                                         └── cancelled, closed ──────> ended so
//! ```
//!
//! The core decides which calls may pause, reads the list and makes the second request. Who asks a person for consent and
//! waits for the completions is the driver, with [`Elicitations::start_flow`](mcp_elicitation::Elicitations::start_flow):
//! what is remembered of URL elicitations outlives a connection. The era that has no such error asks for URLs as input in
//! the middle (see `mrtr`), and never gets here.
//!
//! As in a pause for input, the call's own timeout does not run while people think; only `max_total` does.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use mcp_elicitation::{RetryPermit, URL_ELICITATION_REQUIRED, UrlBatch};
use mcp_jsonrpc::{ErrorObject, RawJson};
use mcp_model::ProtocolVersion;

use crate::call::{CallId, CallState, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::error::{CallError, Misuse};
use crate::event::Event;
use crate::mrtr::takes_input;
use crate::sending::NextTime;
use crate::timers::Timer;

/// A call that the server refused until these URL elicitations have happened. The driver ends the pause with
/// [`Connection::handle_urls_done`] or [`Connection::handle_urls_refused`].
#[non_exhaustive]
pub struct UrlsRequired {
    /// The paused call.
    pub call: CallId,
    /// Its [`CallOptions::route`](crate::CallOptions::route).
    pub route: Option<Arc<str>>,
    /// What has to happen, every entry of it right.
    pub batch: UrlBatch,
    /// The right to make the call's request once more.
    pub permit: RetryPermit,
    /// When the call ends by itself; `None` is never.
    pub deadline: Option<Instant>,
}

impl fmt::Debug for UrlsRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlsRequired")
            .field("call", &self.call)
            .field("urls", &self.batch.requests().len())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// What a call of this method needs to go on after error -32042, where it may.
    pub(crate) fn url_permit(&self, method: &str) -> Option<RetryPermit> {
        let version = self.server()?.protocol_version;
        let may =
            version == ProtocolVersion::V2025_11_25 && self.config.elicitation.url && takes_input(method);
        may.then(RetryPermit::new)
    }

    /// The server refused a legacy call. `state` is out of the tables.
    pub(crate) fn handle_legacy_error(
        &mut self,
        now: Instant,
        call: CallId,
        mut state: CallState,
        error: ErrorObject,
    ) {
        let is_for_urls = error.code.get() == URL_ELICITATION_REQUIRED;
        // Never given back: a second refusal is the end of the call.
        let Some(permit) = state.url_permit.take_if(|_| is_for_urls) else {
            let refused = self.refused(error);
            return self.end_call(now, call, &state, Err(refused));
        };
        let rules = self.elicitation_rules(ProtocolVersion::V2025_11_25);
        let batch = match UrlBatch::parse(error.data.as_ref().map_or("null", RawJson::as_str), &rules) {
            Ok(batch) => batch,
            Err(refused) => {
                self.diagnose(DiagnosticKind::ElicitationRequestInvalid, refused.wire_message());
                return self.end_call(now, call, &state, Err(CallError::Rpc(error)));
            }
        };
        state.stage = Stage::NeedsUrls(Box::new(error));
        state.time.deadline = state.time.hard_deadline;
        self.arm(state.time.deadline, Timer::Call(call));
        let (route, deadline) = (state.route.clone(), state.time.deadline);
        self.calls.insert(call, state);
        self.push_event(Event::UrlsRequired(UrlsRequired { call, route, batch, permit, deadline }));
        // A server may answer in the old session what it refused there.
        self.leave_renewal(call);
    }

    /// Everything that [`Event::UrlsRequired`] named has happened: the request of the call is made once more, under a new
    /// id, and has the whole timeout of the call again.
    ///
    /// # Errors
    /// [`Misuse::StaleRequest`] for a call that waits for no URLs (any more).
    pub fn handle_urls_done(&mut self, now: Instant, call: CallId) -> Result<(), Misuse> {
        let state = self.take_refused(call)?;
        self.send_asked(now, call, state, NextTime::Anew);
        Ok(())
    }

    /// What [`Event::UrlsRequired`] named will not happen: the call ends with the error that the server refused it with.
    ///
    /// # Errors
    /// [`Misuse::StaleRequest`] for a call that waits for no URLs (any more).
    pub fn handle_urls_refused(&mut self, now: Instant, call: CallId) -> Result<(), Misuse> {
        let state = self.take_refused(call)?;
        let refusal = state.refusal().ok_or(Misuse::StaleRequest)?;
        self.end_call(now, call, &state, Err(refusal));
        Ok(())
    }

    /// Takes a call that waits for URLs out of every table, without a word to the driver, which knows.
    fn take_refused(&mut self, call: CallId) -> Result<CallState, Misuse> {
        let is_refused = |state: &CallState| matches!(state.stage, Stage::NeedsUrls(_));
        if !self.calls.get(&call).is_some_and(is_refused) {
            return Err(Misuse::StaleRequest);
        }
        self.take_call(call).ok_or(Misuse::StaleRequest)
    }
}

impl CallState {
    /// What the server refused it with, where it waits for URLs. That it did get an answer says more than that its time is up.
    pub(crate) fn refusal(&self) -> Option<CallError> {
        match &self.stage {
            Stage::NeedsUrls(refusal) => Some(CallError::Rpc(ErrorObject::clone(refusal))),
            _ => None,
        }
    }
}
