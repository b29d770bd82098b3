//! What a driver tells of an exchange that failed, and what comes of it.

use std::time::{Duration, Instant};

use mcp_jsonrpc::RequestId;

use crate::call::CallKind;
use crate::connection::Connection;

/// How an exchange failed that brought no answer to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeFailure {
    /// The connection broke when bytes of the request may have left.
    ConnectionLost,
    /// No byte of the request left this machine.
    NotSent,
    /// Anything else: no time, no MCP.
    Other,
    /// It would fail again: credentials are missing, TLS does not come about, or what came breaks a rule or a limit.
    Refused,
    /// The server no longer knows the session; the request was not processed.
    SessionLost,
    /// The server, or somebody before it, answered with an HTTP status that is no success.
    Status {
        /// The status.
        status: u16,
        /// How long it asks to wait (`Retry-After`).
        retry_after: Option<Duration>,
        /// Whether a JSON-RPC error came with it that names no request. That is an answer, and for the caller: the call is not tried
        /// again.
        explained: bool,
    },
}

impl Connection {
    /// The exchange of this request failed without an answer to it. Returns whether that is taken care of: its call goes on
    /// in another session, as a task, with another request of its handshake, or is [tried again](crate::RetryConfig) after a wait;
    /// or its end is an event; or nobody waits for that answer any more, and what failed is the rest of an exchange. Otherwise the
    /// driver knows best why, and is to [`forget`](Self::forget) the call, or [`forget_own`](Self::forget_own) one that the connection
    /// made by itself.
    pub fn handle_exchange_failed(
        &mut self,
        now: Instant,
        request: &RequestId,
        failure: ExchangeFailure,
    ) -> bool {
        let Some(call) = self.wire.get(request).copied() else { return true };
        if self.calls.get(&call).is_some_and(|state| state.kind == CallKind::Renew) {
            return self.outlast_handshake(now, call, failure);
        }
        if failure == ExchangeFailure::SessionLost {
            return self.handle_session_lost(now, call);
        }
        self.outlast_exchange(now, call, failure)
            || self.handle_probe_failed(now, call, failure)
            || self.retry(now, call, failure)
    }
}

#[cfg(test)]
impl ExchangeFailure {
    /// A status that comes with nothing else.
    pub(crate) const fn of_status(status: u16) -> Self {
        Self::Status { status, retry_after: None, explained: false }
    }
}
