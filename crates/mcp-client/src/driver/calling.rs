//! One call, from its opening to its end, in the task of its caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_jsonrpc::RawJson;
use mcp_proto::{Answer, CallError, CallOptions, SuspendedCall, Transmit, TransmitKind};
use mcp_transport::stdio::Place;
use tracing::{Instrument as _, Span};

use super::open_call::OpenCall;
use super::slot::{CallResult, ReadResult, Slot, Step};
use super::{Driver, Link, ProgressFn, spans};
use crate::error::Error;

/// A call that is open and has sent nothing.
pub(crate) struct BegunCall {
    call: OpenCall,
    span: Span,
}

impl Driver {
    /// Opens a call. It begins when [`finish`](Self::finish) is polled.
    pub(crate) fn begin(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        read: Option<ReadResult>,
    ) -> Result<BegunCall, Error> {
        let slot = Slot::read_by(read);
        let call = self.open_in(slot, |core, now| core.call(now, method, params, options))?;
        Ok(BegunCall { span: spans::call(self, method, call.id), call })
    }

    /// Takes up a call that was put away.
    pub(crate) fn begin_again(
        self: &Arc<Self>,
        suspended: &SuspendedCall,
        answers: BTreeMap<String, Answer>,
        options: &CallOptions,
        read: Option<ReadResult>,
    ) -> Result<BegunCall, Error> {
        let slot = Slot::read_by(read);
        let call = self.open_in(slot, |core, now| core.resume_suspended(now, suspended, answers, options))?;
        Ok(BegunCall { span: spans::call(self, &suspended.method, call.id), call })
    }

    /// Makes the request of a call and waits for its outcome. Dropping the future cancels the call, on the wire too.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        begun: BegunCall,
        on_progress: Option<ProgressFn>,
    ) -> Result<CallResult, Error> {
        let BegunCall { span, call } = begun;
        // Not by way of `traced`, which would make the future twice as large.
        let ending = spans::Ending::of(&span);
        let driven = self.drive(call, on_progress).instrument(span).await;
        spans::Ending::note(ending, &driven);
        driven.map(|(result, _)| result)
    }

    /// Does the steps of a call until it ends. Returns what is left to send for it beside the result.
    pub(super) async fn drive(
        self: &Arc<Self>,
        call: OpenCall,
        mut on_progress: Option<ProgressFn>,
    ) -> Result<(CallResult, Vec<Transmit>), Error> {
        let mut sent = None;
        let mut requests = 0_u32;
        loop {
            match call.step().await {
                Step::Progress(progress) => {
                    if let Some(listener) = &mut on_progress {
                        listener(progress);
                    }
                }
                Step::Send(transmit) if transmit.kind == TransmitKind::Notification => {
                    self.deliver(transmit).await?;
                }
                Step::Send(transmit) => {
                    requests = requests.saturating_add(1);
                    match &self.link {
                        // On the heap: it is many times as large as all the rest, which a call over a channel would have to carry.
                        Link::Http(link) => {
                            Box::pin(link.exchange(&call, transmit, &mut on_progress)).await?
                        }
                        Link::Channel(link) => sent = link.send(&call, transmit).await?,
                    }
                }
                Step::Ended(Ok(result), left) => return Ok((result, left)),
                Step::Ended(Err(CallError::Closed { dispatched }), _) => {
                    // What an earlier request has begun (a task, say) goes on whatever becomes of this one.
                    let unknown = dispatched && (requests > 1 || self.link.may_leave(sent));
                    return Err(self.closed_error(unknown));
                }
                Step::Ended(Err(error), _) => return Err(call.ended_by(error)),
            }
        }
    }
}

impl Link {
    /// Whether the peer may have seen a request that was put into a queue, or may see it yet; or the request has none.
    fn may_leave(&self, place: Option<Place>) -> bool {
        match (self, place) {
            (Self::Channel(link), Some(place)) => link.may_leave(place),
            _ => true,
        }
    }
}
