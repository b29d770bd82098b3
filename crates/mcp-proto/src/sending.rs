//! How the requests of a call get on their way: the first one, and each that follows it.
//!
//! One call can take several requests, one after the other:
//!
//! | what for | the next request | its time |
//! |---|---|---|
//! | it failed on its way, see `retry` | as asked for, with what was answered | what is left |
//! | its revision or its headers were refused, see `modern` | the same | what is left |
//! | the tools are listed for those headers, see `tools` | `tools/list` | what is left |
//! | it needed input, see `mrtr` | as asked for, with the answers | anew where people were asked |
//! | it needed URL elicitations, see `urls_required` | as asked for | anew |
//! | it became a task, see `tasks` | about the task | its own, the result's that of the call |
//!
//! [`Connection::send_again`] is the one place where that is done. What belongs to a request begins anew there; everything else
//! of the call stays with it.

use std::time::Instant;

use mcp_jsonrpc::RawJson;

use crate::call::{CallId, CallKind, CallOptions, CallState, CallTime, LastProgress, Request, Stage};
use crate::connection::Connection;
use crate::envelope::{self, Params};
use crate::error::{CallError, Misuse};
use crate::timers::Timer;
use crate::transmit::{Head, TransmitKind};

/// The next request of a call.
pub(crate) struct Next {
    pub(crate) kind: CallKind,
    /// `None`: the one that was asked for.
    pub(crate) method: Option<&'static str>,
    pub(crate) params: Option<RawJson>,
    pub(crate) time: NextTime,
}

/// How long the next request of a call is waited for; never past the hard end of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTime {
    /// Its whole time again.
    Anew,
    /// As long as the call may take.
    Endless,
    /// What is left of it: it is what was asked before, or part of that.
    Left,
}

impl NextTime {
    fn deadline(self, now: Instant, time: &CallTime) -> Option<Instant> {
        match self {
            Self::Anew => time.anew(now),
            Self::Endless => time.hard_deadline,
            Self::Left => time.deadline,
        }
    }
}

/// A request that has its id, and what goes with it to the transport.
struct Written {
    request: Request,
    head: Head,
    resumable: bool,
}

impl Connection {
    /// Puts the first request of `call` on the wire.
    pub(crate) fn send_request(
        &mut self,
        now: Instant,
        call: CallId,
        method: &str,
        params: Option<&RawJson>,
        kind: CallKind,
        options: &CallOptions,
    ) -> Result<(), Misuse> {
        // One place above the limit is for the handshake of a new session: the calls in flight wait for it, so it must
        // not wait for them.
        let limit = self.config.limits.max_calls;
        if kind != CallKind::Renew && self.calls.len() >= limit {
            return Err(Misuse::TooManyCalls { limit });
        }
        let Written { request, head, resumable } = self.write_request(call, method, params, kind, options)?;
        let mut state = CallState::new(kind, Stage::Asking(request), now, options);
        state.retries_left = self.config.retry.retries(options);
        self.queue_request(call, state, head, resumable);
        Ok(())
    }

    /// Makes the next request of a call, under a new id. `state` is out of the tables. The call has its place until it ends,
    /// and ends here where the request cannot be written.
    pub(crate) fn send_again(&mut self, now: Instant, call: CallId, mut state: CallState, next: Next) {
        let is_task = state.is_task();
        let about_task = state.task().filter(|_| is_task).map(|task| task.options());
        let asked = state.asked.as_ref();
        // Invariant: a call that goes on was kept as it was asked for, or is a task.
        let Some(options) = about_task.or_else(|| asked.map(|asked| &asked.options)) else { return };
        let method = next.method.or_else(|| asked.map(|asked| asked.method.as_str())).unwrap_or_default();
        let has_progress = options.progress;
        let written = self.write_request(call, method, next.params.as_ref(), next.kind, options);
        let Written { request, head, resumable } = match written {
            Ok(written) => written,
            Err(misuse) => {
                let error = CallError::Unsendable { misuse, dispatched: is_task };
                return self.end_call(now, call, &state, Err(error));
            }
        };
        if has_progress {
            state.progress = Some(LastProgress(None));
        }
        if let Some(task) = state.task_mut() {
            task.asked_for_by(&request.id);
        }
        state.kind = next.kind;
        state.stage = Stage::Asking(request);
        state.resent &= next.time == NextTime::Left;
        state.time.deadline = next.time.deadline(now, &state.time);
        self.queue_request(call, state, head, resumable);
        if !self.is_ready() {
            self.hold(now, call);
        }
    }

    fn write_request(
        &mut self,
        call: CallId,
        method: &str,
        params: Option<&RawJson>,
        kind: CallKind,
        options: &CallOptions,
    ) -> Result<Written, Misuse> {
        let limit = self.config.limits.max_calls;
        let Ok(id) = self.wire.insert(call) else { return Err(Misuse::TooManyCalls { limit }) };
        let protocol = if kind.establishes_session() { None } else { self.phase.modern() };
        let head = match protocol {
            Some(version) => self.prepare_meta(version).and_then(|()| {
                let meta = self.meta_without_tasks(version, options)?;
                Ok((meta, self.modern_head(version, method, params)?))
            }),
            None => Ok((None, self.plain_head())),
        };
        let encoded = head.and_then(|(own, head)| {
            let common = protocol.and(self.meta.as_ref()).map(|(_, meta)| meta);
            let meta = own.as_ref().or(common);
            let params = Params {
                rest: params,
                meta: options.meta.as_ref(),
                protocol: meta,
                progress_token: options.progress.then_some(&id),
            };
            envelope::request(&mut self.scratch, &id, method, &params).map(|()| head)
        });
        match encoded {
            Ok(head) => {
                let resumable = !kind.establishes_session() && protocol.is_none();
                let (message, session) = (self.take_message(), self.session);
                let reset_on_progress = options.reset_on_progress;
                let request = Request {
                    id,
                    message,
                    session,
                    dispatched: false,
                    leaves_at: None,
                    reset_on_progress,
                    standstill: None,
                };
                Ok(Written { request, head, resumable })
            }
            Err(refused) => {
                self.wire.remove(&id);
                Err(refused)
            }
        }
    }

    fn queue_request(&mut self, call: CallId, state: CallState, head: Head, resumable: bool) {
        let leaves = state.kind.is_handshake() || self.is_ready();
        // What is asked while the session is renewed goes out with what is held.
        if let Some(request) = state.request().filter(|_| leaves) {
            let establishes_session = state.kind.establishes_session();
            let kind = TransmitKind::Request { id: request.id.clone(), establishes_session, resumable };
            self.queue_message(request.message.clone(), kind, Some(call), head);
        }
        self.arm(state.time.deadline, Timer::Call(call));
        self.calls.insert(call, state);
    }
}
