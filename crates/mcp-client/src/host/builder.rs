//! How a host is set up.

use std::time::Duration;

use super::handle::Host;
use super::reconnect::Reconnect;
use crate::builder::ClientBuilder;
use crate::desk::Desk;

/// Sets up a [`Host`]. Made by [`Host::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct HostBuilder {
    pub(super) template: ClientBuilder,
    pub(super) limits: HostLimits,
    pub(super) desk: Desk,
    pub(super) reconnect: Option<Reconnect>,
}

/// What a host may hold at once, and how long it waits.
///
/// Limits on one connection are those of its [`ClientBuilder`] and its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// Servers, connected or not. Default 64: each one may be a process. A further one is refused with
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded).
    pub max_servers: usize,
    /// How long closing one connection may take. Default 15 s: more than twice what the transports take at most by default
    /// (6.75 s). After it the connection counts as closed, [`Timeout`](crate::ErrorKind::Timeout) is the outcome, and what is
    /// left of it is ended in the background.
    pub close_timeout: Duration,
    /// How long a new connection may take to agree to all that is desired of it: the log level and the subscription. Default
    /// 30 s: it comes on top of the time of the handshake, and whoever connects waits for it. After it the connection stands without
    /// what is missing, which is told as [`NotRestored`](super::HostEvent::NotRestored) with
    /// [`Timeout`](crate::ErrorKind::Timeout).
    pub restore_timeout: Duration,
    /// How long one server may take for a list with all its pages. Default 60 s. After it that server's list fails with
    /// [`Timeout`](crate::ErrorKind::Timeout); the lists of the others do not wait for it longer.
    pub list_timeout: Duration,
    /// The bytes of one server's list. Default 8 MiB, so that 64 servers stay below 512 MiB. The page that exceeds it is
    /// the last, and a diagnostic says so.
    pub max_list_bytes: usize,
    /// How many events wait for a slow listener before it loses the oldest. Default 4,096.
    pub event_capacity: usize,
    /// How many bytes of events wait for a slow listener before it loses the oldest. Default 16 MiB. The newest event is kept
    /// whatever its size.
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

    /// Brings the questions of all servers to this desk, which may be there for others too. Without it the host has one of its
    /// own, set up as the clients say ([`ClientBuilder::desk_config`]).
    pub fn desk(mut self, desk: Desk) -> Self {
        self.desk = desk;
        self
    }

    /// Connects again by itself to servers whose connection ended or could not be made. Without it the host never does.
    ///
    /// It is done on the runtime where the server was connected to. Where that one ends, in a wait or in an attempt, the server stays
    /// [`Failed`](super::ServerState::Failed) without a next attempt. [`HostEvent::State`](super::HostEvent::State) tells each failure
    /// with the time of the next attempt, and each new connection; take its [`Client`](crate::Client) from
    /// [`Host::client`](super::Host::client). No call is carried over.
    pub fn reconnect(mut self, policy: Reconnect) -> Self {
        self.reconnect = Some(policy);
        self
    }

    /// The host, without servers yet.
    pub fn build(self) -> Host {
        Host::build(self)
    }
}
