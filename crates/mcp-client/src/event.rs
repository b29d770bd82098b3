//! What a connection tells whoever listens, beside the answers of calls.

use std::task::{Context, Poll};

use mcp_model::LoggingMessageNotificationParams;
use mcp_proto::{Diagnostic, ListKind};

use crate::close_reason::CloseReason;
use crate::desk::ElicitationEvent;
use crate::event_queue::{Listener, Queued};

/// One thing that happened on a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection ended. Nothing follows. A connect that fails is told by its error alone.
    #[non_exhaustive]
    Closed {
        /// Why.
        reason: CloseReason,
    },
    /// Something odd that ended nothing.
    Diagnostic(Diagnostic),
    /// Something about the questions of the server.
    Elicitation(ElicitationEvent),
    /// The server says that it finished a URL elicitation, known or not. One that a person consented to is told again, once,
    /// as [`ElicitationEvent::UrlCompleted`].
    ElicitationComplete {
        /// The opaque id the server gave it.
        elicitation_id: String,
    },
    /// A list of the server changed.
    ListChanged(ListKind),
    /// The server logged a message. Untrusted.
    Log(LoggingMessageNotificationParams),
    /// This listener was too slow and missed some events.
    Missed {
        /// How many.
        events: u64,
    },
    /// A notification that the protocol does not define.
    OtherNotification {
        /// Its method.
        method: String,
        /// Its params, raw.
        params: Option<mcp_jsonrpc::RawJson>,
    },
    /// The server had lost the session and a new one is open (Streamable HTTP). Cursors and whatever else the
    /// application got from the old one are void; log level and subscriptions were asked for again.
    SessionRenewed,
    /// A subscription was lost with its stream and stands again, or the stream of a legacy server over HTTP, on which it tells
    /// of changes, was lost and is there again. What changed in between was not told.
    SubscriptionRestored,
    /// A subscribed resource changed.
    ResourceUpdated {
        /// Its URI, as the server wrote it.
        uri: String,
    },
}

impl Queued for ClientEvent {
    fn bytes(&self) -> usize {
        let text = match self {
            Self::Diagnostic(diagnostic) => diagnostic.message.len(),
            Self::ElicitationComplete { elicitation_id } => elicitation_id.len(),
            Self::Elicitation(event) => event.text_bytes(),
            Self::Log(log) => {
                log.data.get().len()
                    + log.logger.as_ref().map_or(0, String::len)
                    + log.meta.as_ref().map_or(0, |meta| meta.get().len())
            }
            Self::OtherNotification { method, params } => {
                method.len() + params.as_ref().map_or(0, |params| params.as_str().len())
            }
            Self::ResourceUpdated { uri } => uri.len(),
            Self::Closed { .. }
            | Self::ListChanged(_)
            | Self::Missed { .. }
            | Self::SessionRenewed
            | Self::SubscriptionRestored => 0,
        };
        size_of::<Self>() + text
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    fn missed(events: u64) -> Self {
        Self::Missed { events }
    }
}

/// The events of one connection from the moment of [`Client::events`](crate::Client::events) on.
///
/// A listener that falls behind by more than the builder's `event_capacity` or `event_capacity_bytes` loses the oldest
/// events and is told how many; the connection never waits for it.
#[derive(Debug)]
pub struct Events {
    listener: Listener,
}

impl Events {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { listener }
    }

    /// The next event; `None` once the connection is gone, after [`ClientEvent::Closed`]. Cancel safe.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        self.listener.next().await
    }

    /// As [`next`](Self::next), for those who write a `Stream` around it.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        self.listener.poll_next(context)
    }
}
