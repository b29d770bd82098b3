//! One call, from its opening to its end, in the task of its caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_jsonrpc::RawJson;
use mcp_proto::{Answer, CallError, CallOptions, SuspendedCall, Transmit, TransmitKind};
use tracing::{Instrument as _, Span};

use super::open_call::OpenCall;
use super::slot::{CallResult, ReadResult, Slot, Step};
use super::{Driver, Link, ProgressFn, spans};
use crate::error::Error;

/// A call that is open. Over a line its request is on its way, over HTTP nothing is sent yet.
pub(crate) struct BegunCall {
    call: OpenCall,
    span: Span,
}

impl Driver {
    /// Opens a call, to be driven by [`finish`](Self::finish).
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

    /// Does what a call needs and waits for its outcome. Dropping the future cancels the call, on the wire too.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        begun: BegunCall,
        on_progress: Option<ProgressFn>,
    ) -> Result<CallResult, Error> {
        let BegunCall { span, call } = begun;
        // Not by way of `traced`, which would make the future twice as large.
        let ending = spans::Ending::of(&span);
        let driven = self.drive(&call, on_progress).instrument(span).await;
        spans::Ending::note(ending, &driven);
        driven.map(|(result, _)| result)
    }

    /// Does the steps of a call until it ends. Returns what is left to send for it beside the result.
    pub(super) async fn drive(
        self: &Arc<Self>,
        call: &OpenCall,
        mut on_progress: Option<ProgressFn>,
    ) -> Result<(CallResult, Vec<Transmit>), Error> {
        loop {
            match call.step().await {
                Step::Progress(progress) => {
                    if let Some(listener) = &mut on_progress {
                        listener(progress);
                    }
                }
                Step::Send(transmit) => match &self.link {
                    // What ends the handshake of a new session.
                    Link::Http(link) if transmit.kind == TransmitKind::Notification => {
                        Box::pin(link.confirm(call, transmit)).await?;
                    }
                    // On the heap: it is many times as large as all the rest, which a call over a channel would have to carry.
                    Link::Http(link) => Box::pin(link.exchange(call, transmit, &mut on_progress)).await?,
                    Link::Sse(link) => Box::pin(link.send(call, transmit)).await?,
                    // Put in when it was made.
                    Link::Line(_) => {}
                },
                Step::Ended(Ok(result), left) => return Ok((result, left)),
                Step::Ended(Err(CallError::Closed { dispatched }), _) => {
                    // What an earlier request has begun (a task, say) goes on whatever becomes of this one.
                    let (requests, place) = call.on_line();
                    let unknown = dispatched && (requests > 1 || self.link.may_leave(place));
                    return Err(self.closed_error(unknown));
                }
                Step::Ended(Err(error), _) => return Err(call.ended_by(error)),
                Step::Failed(error) => return Err(error),
            }
        }
    }
}
