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
    /// How many events of questions wait for the listeners of one connection while one of them holds up a thread, or does something
    /// at the desk itself. Default 1,024. The rest is counted, and told as [`ClientEvent::Missed`](crate::ClientEvent::Missed). At
    /// least 1.
    pub max_waiting_events: usize,
    /// How many ends of questions wait to be told to an inbox that did not take them. Default 1,024. At the limit the oldest is given
    /// up: its entry looks open until its time is up.
    pub max_untold_ends: usize,
    /// How often an end is told to an inbox that does not take it. Default 10: the pauses double from two seconds on, so that the
    /// last is after a bit more than ten minutes. At least 1.
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
