//! Giving calls up from this side, and what the server is told of it.

use std::time::Instant;

use crate::call::{CallId, CallKind, CallState};
use crate::connection::Connection;
use crate::envelope;
use crate::era::Wire;
use crate::error::CallError;
use crate::transmit::TransmitKind;

impl Connection {
    /// The deadline of a call passed.
    pub(crate) fn time_out_call(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.remove_call(call) else { return };
        if let Some(refusal) = state.refusal() {
            return self.end_call(now, call, &state, Err(refusal));
        }
        let error = CallError::Timeout {
            after: state.time.given(),
            limit: state.time.limit(),
            dispatched: state.may_be_carried_out(),
        };
        if state.kind == CallKind::Probe {
            return self.time_out_probe(now, call, &state, error);
        }
        self.withdraw(&state, Some("the client's timeout passed"));
        if self.can_outlast(now, &state) {
            return self.outlast(now, call, state);
        }
        self.end_call(now, call, &state, Err(error));
    }

    /// Tells the server that a call of ours is given up, where the protocol allows and the request may have left.
    pub(crate) fn withdraw(&mut self, state: &CallState, reason: Option<&str>) {
        // A request that never left must not be mentioned, and `initialize` must never be cancelled.
        let Some(request) = state.request().filter(|request| request.dispatched) else { return };
        if state.kind.is_handshake() || !self.is_ready() {
            return;
        }
        if state.task().is_some_and(|task| task.is_being_created()) {
            return;
        }
        // Over modern exchanges it is the driver that tells: by closing the response.
        if self.phase.modern().is_some() && self.config.wire == Wire::Exchanges {
            return;
        }
        if envelope::cancelled(self.scratch(), &request.id, reason).is_ok() {
            self.queue(TransmitKind::Notification, None);
        }
    }
}
