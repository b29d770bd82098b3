//! The configuration of a host.

use std::time::Duration;

use super::handle::Host;
use super::reconnect::ReconnectPolicy;
use crate::builder::ClientBuilder;
use crate::desk::Desk;

/// Configures a [`Host`]. Created by [`Host::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct HostBuilder {
    pub(super) template: ClientBuilder,
    pub(super) limits: HostLimits,
    pub(super) desk: Desk,
    pub(super) reconnect: Option<ReconnectPolicy>,
}

/// Limits and timeouts of a host.
///
/// Limits of one connection are those of its [`ClientBuilder`] and its transport.
/// [`ServerPolicy`](super::ServerPolicy) replaces the limits of single servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// The number of servers, connected or not. Default 64, as each may be a process. A further one is refused with
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded).
    pub max_servers: usize,
    /// The time for closing one connection. Default 15 s, more than twice what the transports take at most by default (6.75
    /// s). Then the connection counts as closed, with [`Timeout`](crate::ErrorKind::Timeout) as the outcome, and the rest is
    /// done in the background.
    pub close_timeout: Duration,
    /// The time for restoring the desired log level and subscription on a new connection. Default 30 s, in addition to the
    /// handshake; whoever connects waits for it. Then the connection is used without them, which is reported as
    /// [`NotRestored`](super::HostEvent::NotRestored) with [`Timeout`](crate::ErrorKind::Timeout).
    pub restore_timeout: Duration,
    /// The time for one server's list with all its pages. Default 60 s. Then that list fails with
    /// [`Timeout`](crate::ErrorKind::Timeout); the lists of other servers do not wait longer for it.
    pub list_timeout: Duration,
    /// The size of one server's list, in bytes. Default 8 MiB, so that 64 servers stay below 512 MiB. The page that exceeds it
    /// is the last, with a diagnostic.
    pub max_list_bytes: usize,
    /// How many events are queued for a slow listener before it loses the oldest. Default 4,096.
    pub event_capacity: usize,
    /// How many bytes of events are queued for a slow listener before it loses the oldest. Default 16 MiB. The newest event is
    /// kept whatever its size.
    pub event_capacity_bytes: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            max_servers: 64,
            close_timeout: Duration::from_secs(15),
            restore_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(60),
            max_list_bytes: 8 << 20,
            event_capacity: 4096,
            event_capacity_bytes: 16 << 20,
        }
    }
}

impl HostBuilder {
    pub(super) fn new(template: ClientBuilder) -> Self {
        let desk = template.common_desk();
        Self { template, limits: HostLimits::default(), desk, reconnect: None }
    }

    /// Replaces the limits.
    pub fn limits(mut self, limits: HostLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Uses this desk for the elicitations of all servers; others may share it. Without it the host has a desk of its own,
    /// configured as the clients are ([`ClientBuilder::desk_config`]).
    pub fn desk(mut self, desk: Desk) -> Self {
        self.desk = desk;
        self
    }

    /// Reconnects by itself to servers whose connection ended or could not be made. Default: never, except to servers with a
    /// [policy](super::ServerPolicy::reconnect) that says so.
    ///
    /// It does so on the runtime on which the server was connected. If that runtime shuts down, the server stays
    /// [`Failed`](super::ServerState::Failed) without a next attempt; [`ServerStatus::given_up`](super::ServerStatus::given_up) has
    /// the reason. [`HostEvent::State`](super::HostEvent::State) reports each failure with the time of the next attempt, and each new
    /// connection; get its [`Client`](crate::Client) from [`Host::client`](super::Host::client). No call is carried over.
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.reconnect = Some(policy);
        self
    }

    /// Creates the host, without servers.
    pub fn build(self) -> Host {
        Host::build(self)
    }
}
