//! What a host tells of its servers.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::{Listener, Queued};

/// The number of an attempt to connect. No two attempts of a host have the same, and a later one has a greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub(super) u64);

impl Generation {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a server of a host is in its life; the picture is in the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The connection is being closed.
    Closing,
    /// Calls are possible, and what is desired of the server has been asked for.
    Connected,
    /// The server is being started or reached, or asked for what is desired of it: log level and subscription. An attempt
    /// lasts until that is done, so that it can be given up and shared until then, and so that nobody is given a
    /// connection that lacks what they rely on.
    Connecting,
    /// There is no connection, because nobody wanted one or nobody wants it any more.
    Disconnected,
    /// There is no connection: it could not be made, or the server ended it.
    Failed,
}

impl ServerState {
    /// The name in `snake_case`, for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closing => "closing",
            Self::Connected => "connected",
            Self::Connecting => "connecting",
            Self::Disconnected => "disconnected",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a host asks for again on each new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Desired {
    /// The level of the server's log messages.
    LoggingLevel,
    /// The roots.
    Roots,
    /// The subscription to changes.
    Subscription,
}

/// One thing that happened to a server of a host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostEvent {
    /// A connection told something. Nothing of an older generation follows something of a newer one.
    Client {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// What it told. The end of the connection is a [`State`](Self::State) instead.
        event: ClientEvent,
    },
    /// This listener was too slow and missed some events.
    Missed {
        /// How many.
        events: u64,
    },
    /// Something that is wanted of the server could not be asked for on a new connection, which stands without it.
    NotRestored {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// What it lacks.
        desired: Desired,
        /// Why.
        error: Error,
    },
    /// The state of a server changed.
    #[non_exhaustive]
    State {
        /// The name of the server.
        server: Arc<str>,
        /// The attempt to connect that this is about.
        generation: Generation,
        /// The new state.
        state: ServerState,
        /// Why there is no connection, or why closing it was not a clean affair:
        /// [`ServerStatus::last_error`](crate::host::ServerStatus::last_error) at that moment.
        error: Option<Error>,
        /// When the host connects again by itself, where it will
        /// ([`HostBuilder::reconnect`](crate::host::HostBuilder::reconnect)). `None` with [`Failed`](ServerState::Failed): it will not.
        next_attempt: Option<Instant>,
    },
    /// The subscription of a server is over although the connection stands. It is asked for again with the next connection.
    SubscriptionEnded {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// Why; `None` where the server ended it on purpose.
        error: Option<Error>,
    },
}

impl Queued for HostEvent {
    fn bytes(&self) -> usize {
        let text = match self {
            Self::Client { event, .. } => event.bytes(),
            Self::NotRestored { error, .. }
            | Self::State { error: Some(error), .. }
            | Self::SubscriptionEnded { error: Some(error), .. } => {
                let object = error.error_object().map_or(0, |object| {
                    object.message.len() + object.data.as_ref().map_or(0, |data| data.as_str().len())
                });
                object + error.stderr_tail().map_or(0, str::len)
            }
            Self::Missed { .. } | Self::State { .. } | Self::SubscriptionEnded { .. } => 0,
        };
        size_of::<Self>() + text
    }

    /// The host says when there will be no more.
    fn is_last(&self) -> bool {
        false
    }

    fn missed(events: u64) -> Self {
        Self::Missed { events }
    }
}

/// The events of all servers of a host, from the moment of [`Host::events`](crate::host::Host::events) on.
///
/// A listener that falls behind by more than [`HostLimits::event_capacity`](crate::host::HostLimits::event_capacity) or
/// [`event_capacity_bytes`](crate::host::HostLimits::event_capacity_bytes) loses the oldest events and is told how many; no
/// connection ever waits for it.
#[derive(Debug)]
pub struct HostEvents {
    pub(super) listener: Listener<HostEvent>,
}

impl HostEvents {
    /// The next event; `None` once the host is closed or gone. Cancel safe.
    pub async fn next(&mut self) -> Option<HostEvent> {
        self.listener.next().await
    }

    /// As [`next`](Self::next), for those who write a `Stream` around it.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<HostEvent>> {
        self.listener.poll_next(context)
    }
}
