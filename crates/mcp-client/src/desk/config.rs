//! The configuration of a desk.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicitation::{ElicitationLimits, Inbox};

/// Configures a [`Desk`](crate::Desk).
#[derive(Clone)]
#[non_exhaustive]
pub struct DeskConfig {
    /// How many questions may be open, in all and per server, how long they stay open, and how much is remembered.
    pub limits: ElicitationLimits,
    /// Where open questions are stored, so that other processes can see and answer them. Default: `None`; open questions are
    /// only in memory then. A question that cannot be stored ends as `cancel`, and nobody sees it.
    ///
    /// If clients on several tokio runtimes share the desk, one of these runtimes does the work for the inbox, preferably a
    /// multi-threaded one: a current-thread runtime makes no progress while nothing drives it.
    pub inbox: Option<Arc<dyn Inbox>>,
    /// How often the inbox is polled for answers while questions are open. Default 250 ms.
    pub inbox_poll_interval: Duration,
    /// How many elicitation events are queued for the listeners of one connection while a listener blocks or uses the desk
    /// itself. Default 1,024. The oldest give way, counted and reported as [`ClientEvent::Missed`](crate::ClientEvent::Missed). At
    /// least 1.
    pub max_waiting_events: usize,
    /// How many ended questions are kept to be reported to an inbox that failed to record them. Default 1,024. At the limit
    /// the oldest is dropped: its entry looks open until its time has passed.
    pub max_untold_ends: usize,
    /// How often the end of a question is reported to an inbox that fails to record it. Default 10: the pauses double from 2 s
    /// to 512 s, so that the last attempt is made about 17 minutes after the first. At least 1.
    pub max_tellings: u32,
}

impl Default for DeskConfig {
    fn default() -> Self {
        Self {
            limits: ElicitationLimits::default(),
            inbox: None,
            inbox_poll_interval: Duration::from_millis(250),
            max_waiting_events: 1024,
            max_untold_ends: 1024,
            max_tellings: 10,
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

    /// Stores open questions in `inbox`.
    #[must_use]
    pub fn inbox(mut self, inbox: impl Inbox) -> Self {
        self.inbox = Some(Arc::new(inbox));
        self
    }

    /// Stores open questions in an inbox that is shared with other owners.
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

    /// Replaces [`max_waiting_events`](Self::max_waiting_events).
    #[must_use]
    pub fn max_waiting_events(mut self, events: usize) -> Self {
        self.max_waiting_events = events;
        self
    }

    /// Replaces [`max_untold_ends`](Self::max_untold_ends).
    #[must_use]
    pub fn max_untold_ends(mut self, ends: usize) -> Self {
        self.max_untold_ends = ends;
        self
    }

    /// Replaces [`max_tellings`](Self::max_tellings).
    #[must_use]
    pub fn max_tellings(mut self, times: u32) -> Self {
        self.max_tellings = times;
        self
    }
}

impl fmt::Debug for DeskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeskConfig")
            .field("limits", &self.limits)
            .field("inbox", &self.inbox.is_some())
            .field("inbox_poll_interval", &self.inbox_poll_interval)
            .field("max_waiting_events", &self.max_waiting_events)
            .field("max_untold_ends", &self.max_untold_ends)
            .field("max_tellings", &self.max_tellings)
            .finish()
    }
}
