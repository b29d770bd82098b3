//! Where a call's own task finds what the connection has for it.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use mcp_jsonrpc::RawJson;
use mcp_model::{ProgressNotificationParams, SubscriptionFilter};
use mcp_proto::{CallError, Limits, Transmit};
use mcp_transport::stdio::Place;
use tokio::sync::{oneshot, watch};

use super::few::Few;
use super::subscribing::OwnStream;
use super::tasking::TaskNews;
use crate::error::Error;

/// The result of a call.
pub(crate) enum CallResult {
    /// As it came.
    Raw(RawJson),
    /// As the [`ReadResult`] of the call read it.
    Read(Box<dyn Any + Send>),
}

/// Reads the text of a result as the type that the caller wants. `None` where that does not succeed: then the text is
/// handed over raw, so that whoever wants the type learns why.
pub(crate) type ReadResult = fn(&str) -> Option<Box<dyn Any + Send>>;

/// Shows nothing of what it holds.
impl fmt::Debug for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(raw) => raw.fmt(f),
            Self::Read(_) => f.write_str("Read"),
        }
    }
}

/// What waits for the task of one call.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// How whoever receives the result can read it at once.
    pub(super) read: Option<ReadResult>,
    pub(crate) transmits: Few<Transmit>,
    progress: VecDeque<ProgressNotificationParams>,
    progress_bytes: usize,
    /// Told what the server grants to a subscription.
    granted: Option<oneshot::Sender<SubscriptionFilter>>,
    /// It is a subscription that stood before, on this stream.
    again: Option<Arc<OwnStream>>,
    hears: Hears,
    /// Told of the task that the call became.
    task: Option<watch::Sender<Option<TaskNews>>>,
    outcome: Option<Result<CallResult, CallError>>,
    /// A request that was made for it failed on its way.
    failed: Option<Error>,
    waker: Option<Waker>,
    /// Requests that were put on a line for it.
    pub(super) requests: u32,
    /// Where the newest of them lies.
    pub(super) place: Option<Place>,
}

/// What a subscription counts on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hears {
    /// It was not told yet; or it is none.
    #[default]
    Undecided,
    /// It was granted nothing, as there was no stream.
    Nothing,
    /// What comes on the stream.
    Stream,
}

/// The next thing for the task of a call to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send this.
    Send(Transmit),
    /// Tell the application.
    Progress(ProgressNotificationParams),
    /// The call is over: a request that was made for it failed on its way.
    Failed(Error),
    /// The call is over. What was to be sent for it besides is left (`notifications/initialized`).
    Ended(Result<CallResult, CallError>, Vec<Transmit>),
}

impl Slot {
    /// The slot of a subscription.
    pub(crate) fn of_subscription(
        granted: oneshot::Sender<SubscriptionFilter>,
        again: Option<Arc<OwnStream>>,
    ) -> Self {
        Self { granted: Some(granted), again, ..Self::default() }
    }

    /// The slot of a call whose result is read when it arrives.
    pub(crate) fn read_by(read: Option<ReadResult>) -> Self {
        Self { read, ..Self::default() }
    }

    /// Whom to tell what is granted, and the stream of a subscription that stood before; once, and while somebody waits.
    pub(crate) fn grant(&mut self) -> Option<(oneshot::Sender<SubscriptionFilter>, Option<Arc<OwnStream>>)> {
        let waits = self.granted.take()?;
        (!waits.is_closed()).then(|| (waits, self.again.take()))
    }

    /// The subscription is in the hands of the application, which was told whether anything is heard.
    pub(super) const fn stands(&mut self, is_heard: bool) {
        self.hears = if is_heard { Hears::Stream } else { Hears::Nothing };
    }

    /// There is a stream by now for one that was granted nothing.
    pub(super) fn hears_after_all(&mut self) {
        if self.hears == Hears::Nothing {
            self.hears = Hears::Stream;
        }
    }

    /// Whether it is a subscription that counts on what is heard.
    pub(super) fn hears(&self) -> bool {
        self.hears == Hears::Stream
    }

    /// The slot of a call that may become a task.
    pub(crate) fn of_task(news: watch::Sender<Option<TaskNews>>) -> Self {
        Self { task: Some(news), ..Self::default() }
    }

    /// Who is told of the task that the call became.
    pub(crate) fn task(&self) -> Option<watch::Sender<Option<TaskNews>>> {
        self.task.clone()
    }

    /// Its deadline is another one now.
    pub(crate) fn stir(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    pub(crate) fn push_transmit(&mut self, transmit: Transmit) -> Option<Waker> {
        self.transmits.push_back(transmit);
        self.waker.take()
    }

    /// A task that is not polled loses the oldest: progress is a statement about now, and the newest says most.
    pub(crate) fn push_progress(
        &mut self,
        progress: ProgressNotificationParams,
        limits: &Limits,
    ) -> Option<Waker> {
        self.progress_bytes += text_bytes(&progress);
        self.progress.push_back(progress);
        while self.progress.len() > limits.max_waiting_progress.max(1)
            || (self.progress.len() > 1 && self.progress_bytes > limits.max_waiting_progress_bytes)
        {
            self.pop_progress();
        }
        self.waker.take()
    }

    /// The first end that is known stands.
    pub(crate) fn end(&mut self, outcome: Result<CallResult, CallError>) -> Option<Waker> {
        self.outcome.get_or_insert(outcome);
        self.waker.take()
    }

    /// The call is over without an outcome that anybody waits for.
    pub(crate) fn finish(&mut self) -> Option<Waker> {
        self.outcome.get_or_insert_with(|| Ok(CallResult::Read(Box::new(()))));
        self.waker.take()
    }

    /// The call is over: a request that was made for it failed on its way.
    pub(crate) fn fail(&mut self, error: Error) -> Option<Waker> {
        self.failed = Some(error);
        self.waker.take()
    }

    /// The next step: what came before the end is seen before the end, and a call that is over sends nothing more.
    pub(crate) fn next(&mut self) -> Option<Step> {
        if let Some(progress) = self.pop_progress() {
            return Some(Step::Progress(progress));
        }
        if let Some(error) = self.failed.take() {
            return Some(Step::Failed(error));
        }
        if let Some(outcome) = self.outcome.take() {
            let left = std::mem::take(&mut self.transmits).into_iter().collect();
            return Some(Step::Ended(outcome, left));
        }
        self.transmits.pop_front().map(Step::Send)
    }

    /// Whether there is a next step.
    pub(crate) fn is_stirred(&self) -> bool {
        self.outcome.is_some()
            || self.failed.is_some()
            || !self.progress.is_empty()
            || !self.transmits.is_empty()
    }

    pub(crate) fn pop_progress(&mut self) -> Option<ProgressNotificationParams> {
        let progress = self.progress.pop_front()?;
        self.progress_bytes = self.progress_bytes.saturating_sub(text_bytes(&progress));
        Some(progress)
    }

    /// Whether this waker is woken when there is a next step.
    pub(crate) fn is_waited_for_by(&self, waker: &Waker) -> bool {
        self.waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    /// Asks to be woken when there is a next step. Gives back the waker that it had before, to be dropped outside of the
    /// lock: it is the application's.
    #[must_use]
    pub(crate) const fn wait(&mut self, waker: Waker) -> Option<Waker> {
        self.waker.replace(waker)
    }
}

fn text_bytes(progress: &ProgressNotificationParams) -> usize {
    progress.message.as_ref().map_or(0, String::len)
        + progress.meta.as_ref().map_or(0, |meta| meta.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(message_bytes: usize) -> Vec<f64> {
        let mut slot = Slot::default();
        for at in 0..1000 {
            let mut progress = ProgressNotificationParams::new(1, f64::from(at));
            progress.message = Some("m".repeat(message_bytes));
            slot.push_progress(progress, &Limits::default());
        }
        let kept = std::iter::from_fn(|| slot.pop_progress()).map(|progress| progress.progress).collect();
        assert_eq!(slot.progress_bytes, 0);
        kept
    }

    #[test]
    fn a_call_that_is_not_polled_keeps_the_newest_progress_within_count_and_bytes() {
        assert_eq!(kept(0), (936..1000).map(f64::from).collect::<Vec<_>>());
        assert_eq!(kept(16 * 1024), [996.0, 997.0, 998.0, 999.0]);
        assert_eq!(kept(1024 * 1024), [999.0]);
    }
}
