//! Where a call stands between its beginning and its end.

use std::time::Instant;

use bytes::Bytes;
use mcp_jsonrpc::{ErrorObject, RequestId};

use crate::mrtr::Pause;
use crate::standstill::Standstill;

/// What a call waits for. Only one that is [`Asking`](Self::Asking) has an id on the wire.
#[derive(Debug)]
pub(crate) enum Stage {
    /// For the answer to its request.
    Asking(Request),
    /// For its own requests, which are calls of their own: a subscription at a legacy server.
    Apart,
    /// For `notifications/initialized` to be delivered, which ends the handshake of a new session; see `renewal`.
    Confirming,
    /// For input; see `mrtr`.
    NeedsInput(Box<Pause>),
    /// For URL elicitations, until which the server refused it so; see `urls_required`.
    NeedsUrls(Box<ErrorObject>),
    /// For the moment to ask where its task stands, or to send what was answered; see `tasks`. `None` = the clock cannot
    /// express it.
    Polling(Option<Instant>),
    /// For the moment to make its request anew, which failed on its way; see `retry`.
    Retrying(Instant),
}

/// The request of a call, from the moment it is written.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    /// As it goes on the wire, to send it again when the server refused it unprocessed.
    pub(crate) message: Bytes,
    /// Which session of the connection it was sent in.
    pub(crate) session: u64,
    /// It was handed to the transport, so that it may have left.
    pub(crate) dispatched: bool,
    /// When it goes to the driver again, the same message, where nobody has seen it; see `retry`.
    pub(crate) leaves_at: Option<Instant>,
    /// Whether progress starts its time anew.
    pub(crate) reset_on_progress: bool,
    /// Its time stands still.
    pub(crate) standstill: Option<Box<Standstill>>,
}

impl Stage {
    /// When the call goes on by itself, where it does.
    pub(crate) fn goes_on(&self) -> Option<Instant> {
        match self {
            Self::Asking(request) => request.leaves_at,
            Self::NeedsInput(pause) => pause.resumes,
            Self::Polling(at) => *at,
            Self::Retrying(at) => Some(*at),
            Self::Apart | Self::Confirming | Self::NeedsUrls(_) => None,
        }
    }
}
