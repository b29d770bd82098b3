//! What a desk is told before it opens.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicitation::{ElicitationLimits, Inbox};

/// How a [`Desk`](crate::Desk) treats questions.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeskConfig {
    /// How many questions may be open, over all servers and of one server, how long they wait, and how much is remembered.
    pub limits: ElicitationLimits,
    /// Where open questions are written down, for other processes to see and answer. Default: nowhere; open questions are
    /// in memory then. A question that cannot be written down ends as `cancel`, and nobody sees it.
    ///
    /// Where clients on several tokio runtimes share the desk, one of these runtimes does the work for the inbox, a
    /// multi-threaded one if there is any: a current-thread runtime stands still while nobody drives it.
    pub inbox: Option<Arc<dyn Inbox>>,
    /// How often the inbox is asked for answers while questions are open. Default 250 ms, which a person does not notice.
    pub inbox_poll_interval: Duration,
}

impl Default for DeskConfig {
    fn default() -> Self {
        Self {
            limits: ElicitationLimits::default(),
            inbox: None,
            inbox_poll_interval: Duration::from_millis(250),
        }
    }
}

impl DeskConfig {
    /// Replaces [`limits`](Self::limits).
    #[must_use]
    pub fn limits(mut self, limits: ElicitationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Writes open questions down in `inbox`.
    #[must_use]
    pub fn inbox(mut self, inbox: impl Inbox) -> Self {
        self.inbox = Some(Arc::new(inbox));
        self
    }

    /// Replaces [`inbox`](Self::inbox) by one that others hold too.
    #[must_use]
    pub fn shared_inbox(mut self, inbox: Arc<dyn Inbox>) -> Self {
        self.inbox = Some(inbox);
        self
    }

    /// Replaces [`inbox_poll_interval`](Self::inbox_poll_interval).
    #[must_use]
    pub fn inbox_poll_interval(mut self, interval: Duration) -> Self {
        self.inbox_poll_interval = interval;
        self
    }
}

impl fmt::Debug for DeskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeskConfig")
            .field("limits", &self.limits)
            .field("inbox", &self.inbox.is_some())
            .field("inbox_poll_interval", &self.inbox_poll_interval)
            .finish()
    }
}
