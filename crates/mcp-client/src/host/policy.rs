//! What holds for one server of a host in another way than for the others.

use std::time::Duration;

use super::builder::HostLimits;
use super::reconnect::ReconnectPolicy;

/// What holds for one server of a host in place of what holds for all of them; `None`, the default of each: as for all. Given with
/// [`Connector::policy`](super::Connector::policy).
///
/// The times and limits of its calls and of its one connection are those of its [`ClientBuilder`](crate::ClientBuilder):
/// [`Connector::configure`](super::Connector::configure).
///
/// ```
/// use std::time::Duration;
///
/// use mcp_client::StdioServer;
/// use mcp_client::host::{Connector, ReconnectPolicy, ServerPolicy};
///
/// // One that takes long to stop and has many tools, and is not started again when it dies.
/// let mut policy = ServerPolicy::default();
/// policy.reconnect = Some(ReconnectPolicy::off());
/// policy.close_timeout = Some(Duration::from_secs(60));
/// policy.max_list_bytes = Some(64 << 20);
/// let slow = Connector::from(StdioServer::new("slow-server"))
///     .policy(policy)
///     .configure(|client| client.request_timeout(Duration::from_secs(300)));
/// # drop(slow);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerPolicy {
    /// How the host connects to it again by itself, in place of [`HostBuilder::reconnect`](super::HostBuilder::reconnect), also where that
    /// is not set. [`ReconnectPolicy::off`]: never.
    pub reconnect: Option<ReconnectPolicy>,
    /// In place of [`HostLimits::close_timeout`].
    pub close_timeout: Option<Duration>,
    /// In place of [`HostLimits::restore_timeout`].
    pub restore_timeout: Option<Duration>,
    /// In place of [`HostLimits::list_timeout`].
    pub list_timeout: Option<Duration>,
    /// In place of [`HostLimits::max_list_bytes`].
    pub max_list_bytes: Option<usize>,
}

impl ServerPolicy {
    pub(super) fn close_within(&self, all: &HostLimits) -> Duration {
        self.close_timeout.unwrap_or(all.close_timeout)
    }

    pub(super) fn restore_within(&self, all: &HostLimits) -> Duration {
        self.restore_timeout.unwrap_or(all.restore_timeout)
    }

    pub(super) fn list_within(&self, all: &HostLimits) -> Duration {
        self.list_timeout.unwrap_or(all.list_timeout)
    }

    pub(super) fn list_up_to(&self, all: &HostLimits) -> usize {
        self.max_list_bytes.unwrap_or(all.max_list_bytes)
    }
}
