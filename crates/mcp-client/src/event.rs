//! What a connection reports beside the results of calls.

use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_model::LoggingMessageNotificationParams;
use mcp_proto::{Diagnostic, ListKind};

use crate::close_reason::CloseReason;
use crate::desk::ElicitationEvent;
use crate::driver::OwnStream;
use crate::event_queue::{Listener, Queued};

/// One thing that happened on a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection ended. No event follows. A failed connect is reported by its error alone.
    #[non_exhaustive]
    Closed {
        /// Why.
        reason: CloseReason,
    },
    /// An irregularity that ended nothing, such as a violation of the protocol by the server.
    Diagnostic(Diagnostic),
    /// Progress of an elicitation.
    Elicitation(ElicitationEvent),
    /// The server reports that a URL elicitation is complete, known or not. If the user had consented to it,
    /// [`ElicitationEvent::UrlCompleted`] follows, once.
    ElicitationComplete {
        /// The opaque id the server gave it.
        elicitation_id: String,
    },
    /// The server reports that one of its lists changed.
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
    /// The server had lost the session, and a new one was opened (Streamable HTTP). Cursors and anything else from the old
    /// session are void; log level and subscriptions have been restored.
    SessionRenewed,
    /// A subscription was lost and will be requested again, or the GET stream on which a legacy server over HTTP reports changes was
    /// lost and will be opened again. Until [`SubscriptionRestored`](Self::SubscriptionRestored) or
    /// [`SessionRenewed`](Self::SessionRenewed) no changes are reported; if the stream does not come back, a diagnostic `stream_lost`
    /// follows. Servers may close such streams at any time ("Listening for
    /// Messages from the Server" in the transports of 2025-03-26 to 2025-11-25, "Subscriptions" in 2026-07-28), so this is not a
    /// [`Diagnostic`](Self::Diagnostic).
    SubscriptionInterrupted,
    /// A subscription, or the GET stream on which a legacy server over HTTP reports changes, was lost and is open again.
    /// Changes in between were not reported. It follows each [`SubscriptionInterrupted`](Self::SubscriptionInterrupted) that a new
    /// session or the end of the subscription did not end before. It also comes alone where the transport repaired the stream by itself
    /// and the server cannot say what was missed.
    SubscriptionRestored,
    /// A subscribed resource changed.
    ResourceUpdated {
        /// Its URI, as the server wrote it.
        uri: String,
    },
}

/// An event, and the one subscription that it is about, where it is not about the connection.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) event: ClientEvent,
    pub(crate) stream: Option<Arc<OwnStream>>,
}

impl From<ClientEvent> for Happened {
    fn from(event: ClientEvent) -> Self {
        Self { event, stream: None }
    }
}

impl Queued for Happened {
    fn bytes(&self) -> usize {
        self.event.bytes()
    }

    fn is_last(&self) -> bool {
        self.event.is_last()
    }

    fn missed(events: u64) -> Self {
        ClientEvent::missed(events).into()
    }
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
            | Self::SubscriptionInterrupted
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

/// The events of one connection since [`Client::events`](crate::Client::events).
///
/// A listener that falls behind by more than the builder's `event_capacity` or `event_capacity_bytes` loses the oldest events
/// and gets [`ClientEvent::Missed`] with their number; the connection never waits for it.
///
/// # As a `Stream`
///
/// This crate does not depend on `futures_core`, whose `Stream` takes a few lines. ([`Elicitations`](crate::Elicitations),
/// [`Subscription`](crate::Subscription) and the events of a host have the same method.) With `futures_util` it is
/// `stream::poll_fn(move |context| events.poll_next(context))`.
///
/// ```
/// use std::pin::Pin;
/// use std::task::{Context, Poll};
///
/// use futures_core::Stream;
/// use mcp_client::{Change, ClientEvent, Error, Events, Subscription};
///
/// struct EventStream(Events);
///
/// impl Stream for EventStream {
///     type Item = ClientEvent;
///
///     fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
///         self.0.poll_next(context)
///     }
/// }
///
/// struct ChangeStream(Subscription);
///
/// impl Stream for ChangeStream {
///     type Item = Result<Change, Error>;
///
///     fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
///         self.0.poll_next(context).map(Result::transpose)
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Events {
    listener: Listener<Happened>,
}

impl Events {
    pub(crate) const fn new(listener: Listener<Happened>) -> Self {
        Self { listener }
    }

    /// The next event; `None` after [`ClientEvent::Closed`]. Cancel safe.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        self.listener.next().await.map(|happened| happened.event)
    }

    /// As [`next`](Self::next), to implement a [`Stream`](Events#as-a-stream).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<ClientEvent>> {
        self.listener.poll_next(context).map(|happened| happened.map(|happened| happened.event))
    }
}
