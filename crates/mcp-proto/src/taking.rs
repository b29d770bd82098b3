//! Results that the driver reads by itself, right out of what was received, in place of getting them as events.
//!
//! An ordinary result means nothing to the connection: it is kept as it came until the caller reads it. A driver that
//! knows what type the caller wants can save the copy and the second reading. Which results are of that kind is decided
//! here and nowhere else: whatever the connection itself must look at (handshakes, lists of tools with headers, tasks, what
//! the cache may keep, requests for input, errors) goes the usual way through [`Connection::handle_incoming`].
//!
//! ```text
//!   answer with id ──taking()──> None: handle_incoming
//!                        │
//!                        └─────> Taking ──driver reads it──admits()──take_result()──> the call is over
//!                                                │             │           │
//!                                                └─────no──────┴────false──┴──> handle_incoming
//! ```

use mcp_jsonrpc::RequestId;
use mcp_model::{CallToolResult, ResultType, inspect_result_type, methods};
use std::any::Any;

use crate::call::{CallId, CallKind, CallState};
use crate::connection::Connection;
use crate::era::Wire;
use crate::phase::Phase;

/// A call whose result the driver may read; from [`Connection::taking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taking {
    call: CallId,
    /// The result says whether it is one (`resultType`).
    is_typed: bool,
}

impl Taking {
    /// The call.
    pub fn call(&self) -> CallId {
        self.call
    }

    /// Whether `result`, which was read as `value`, is the final result of the call. `value` only saves reading a tool
    /// result once more.
    pub fn admits(&self, result: &str, value: &(dyn Any + Send)) -> bool {
        if !self.is_typed {
            return true;
        }
        match value.downcast_ref::<CallToolResult>() {
            Some(value) => value.result_type.as_ref().is_none_or(|kind| *kind == ResultType::Complete),
            None => inspect_result_type(result).is_ok_and(|kind| kind == ResultType::Complete),
        }
    }
}

impl Connection {
    /// The call that an answer with this id ends, if its result is one that the driver may read. Changes nothing.
    pub fn taking(&self, id: &RequestId) -> Option<Taking> {
        let call = *self.wire.get(id)?;
        let state = self.calls.get(&call)?;
        self.leaves_result(state).then_some(Taking { call, is_typed: self.phase.modern().is_some() })
    }

    /// Ends the call with the result that the driver has read: no [`Event::CallEnded`](crate::Event::CallEnded) follows. The
    /// driver has drained the connection before, so that what the peer said of the call earlier comes earlier.
    ///
    /// `false`: the call has ended meanwhile. Nothing has changed, and the answer belongs to
    /// [`handle_incoming`](Self::handle_incoming) like any late one.
    pub fn take_result(&mut self, taking: Taking, id: &RequestId) -> bool {
        if self.taking(id) != Some(taking) {
            return false;
        }
        let Some(mut state) = self.remove_call(taking.call) else { return false };
        if let Some(setup) = state.setup.take() {
            self.desired.apply(setup);
        }
        self.leave_renewal(taking.call);
        true
    }

    /// Whether the connection has no interest of its own in the result of a call.
    fn leaves_result(&self, state: &CallState) -> bool {
        if state.kind != CallKind::Ordinary || matches!(self.phase, Phase::Closed | Phase::Idle) {
            return false;
        }
        if state.task().is_some() {
            return false;
        }
        state.asked.as_ref().is_none_or(|asked| {
            // The tools of a list are remembered for their headers, and the cache keeps what it gave a ticket for.
            let lists_tools = asked.method == methods::TOOLS_LIST && self.config.wire == Wire::Exchanges;
            !lists_tools && asked.ticket.is_none()
        })
    }
}
