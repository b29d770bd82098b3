//! The events of a host.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::reconnect::GiveUpReason;
use crate::error::Error;
use crate::event::ClientEvent;
use crate::event_queue::{Listener, Queued};

/// The number of an attempt to connect. It is unique within a host, and increases.
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

/// The state of a server; the state diagram is in [the documentation of the module](crate::host).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The connection is being closed.
    Closing,
    /// Calls are possible, and the desired settings have been requested.
    Connected,
    /// The server is being started or reached, or its log level and subscription are being restored. An attempt lasts until
    /// that is done, so that it can be given up and shared until then, and nobody gets a connection without the settings that
    /// they rely on.
    Connecting,
    /// There is no connection, because the application did not ask for one or closed it.
    Disconnected,
    /// There is no connection: connecting failed, or the server ended it.
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

/// A setting that a host restores on each new connection.
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

/// Something that happened to a server of a host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostEvent {
    /// An event of a connection. No event of an older generation follows one of a newer generation.
    Client {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// The event. The end of the connection is reported as [`State`](Self::State) instead.
        event: ClientEvent,
    },
    /// This listener was too slow and missed some events.
    Missed {
        /// How many.
        events: u64,
    },
    /// A desired setting could not be restored on a new connection, which is used without it.
    NotRestored {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// The setting.
        desired: Desired,
        /// Why.
        error: Error,
    },
    /// The state of a server changed.
    #[non_exhaustive]
    State {
        /// The name of the server.
        server: Arc<str>,
        /// The attempt to connect.
        generation: Generation,
        /// The new state.
        state: ServerState,
        /// Why there is no connection, or why closing it did not succeed cleanly. `None` with
        /// [`Connecting`](ServerState::Connecting): what was the matter before was told then.
        error: Option<Error>,
        /// The time of the next reconnect attempt ([`HostBuilder::reconnect`](crate::host::HostBuilder::reconnect)). `None`
        /// with [`Failed`](ServerState::Failed): there will be none.
        next_attempt: Option<Instant>,
        /// Why the host does not connect again by itself, with [`Failed`](ServerState::Failed) and no next attempt.
        given_up: Option<GiveUpReason>,
    },
    /// The subscription of a server ended although the connection is open. It is requested again on the next connection.
    SubscriptionEnded {
        /// The name of the server.
        server: Arc<str>,
        /// Its connection.
        generation: Generation,
        /// Why; `None` if the server ended it regularly.
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
                let said = [error.stderr_tail(), error.stdout_noise()];
                object + said.into_iter().flatten().map(str::len).sum::<usize>()
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

/// The events of all servers of a host since [`Host::events`](crate::host::Host::events).
///
/// A listener that falls behind by more than [`HostLimits::event_capacity`](crate::host::HostLimits::event_capacity) or
/// [`event_capacity_bytes`](crate::host::HostLimits::event_capacity_bytes) loses the oldest events and gets
/// [`HostEvent::Missed`] with their number; no connection waits for it.
#[derive(Debug)]
pub struct HostEvents {
    pub(super) listener: Listener<HostEvent>,
}

impl HostEvents {
    /// The next event; `None` once the host is closed or dropped. Cancel safe.
    pub async fn next(&mut self) -> Option<HostEvent> {
        self.listener.next().await
    }

    /// As [`next`](Self::next), to implement a [`Stream`](crate::Events#as-a-stream).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<HostEvent>> {
        self.listener.poll_next(context)
    }
}
