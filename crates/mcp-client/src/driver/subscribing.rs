//! Keeping a subscription up.

use std::sync::Arc;
use std::time::Duration;

use mcp_model::SubscriptionFilter;
use mcp_proto::{CallError, CallOptions};
use mcp_transport::watched::Watched;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::slot::Slot;
use super::{Driver, Interruptions, OpenCall, now};
use crate::error::{Error, ErrorKind};
use crate::event::ClientEvent;
use crate::spawning::spawn;

/// The first wait before a lost subscription is asked for again; it doubles with each attempt in a row.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A subscription that stood this long is progress: proxies close long streams from time to time. One that is granted and
/// lost again at once is none, however often.
const STOOD: Duration = Duration::from_secs(10);

/// A subscription that stands, and the task that keeps it up.
pub(crate) struct Standing {
    pub(crate) granted: SubscriptionFilter,
    /// How it ended, once it did.
    pub(crate) ended: oneshot::Receiver<Result<(), Error>>,
    pub(crate) interruptions: Interruptions,
    pub(crate) task: AbortHandle,
}

impl Driver {
    /// Where background tasks of the connection run.
    pub(crate) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Subscribes and waits until the server grants something.
    pub(crate) async fn subscribe(
        self: Arc<Self>,
        wanted: SubscriptionFilter,
        options: CallOptions,
    ) -> Result<Standing, Error> {
        let (end, ended) = oneshot::channel();
        let (stand, stands) = oneshot::channel();
        let first = self.listen_for(&wanted, &options, false)?;
        let driver = Arc::clone(&self);
        let is_interrupted = Watched::new(false);
        let interruptions = Interruptions::new(is_interrupted.watcher(), &driver.hearing);
        let keeper = Keeper { driver: self, wanted, options, is_interrupted };
        // The task owns the call: aborting it ends the subscription.
        let task = spawn(&driver.runtime, async move { drop(end.send(keeper.keep(first, stand).await)) });
        let mut unless_granted = AbortOnDrop(Some(task.clone()));
        match stands.await {
            Ok(granted) => {
                unless_granted.0 = None;
                // A legacy server need not be asked, and grants what it cannot keep.
                let granted = if driver.is_deaf() { SubscriptionFilter::new() } else { granted };
                Ok(Standing { granted, ended, interruptions, task })
            }
            Err(_) => Err(driver.here(early(ended.await))),
        }
    }

    fn listen_for(
        self: &Arc<Self>,
        wanted: &SubscriptionFilter,
        options: &CallOptions,
        again: bool,
    ) -> Result<Asked, Error> {
        let (grant, granted) = oneshot::channel();
        let call =
            self.open_in(Slot::of_subscription(grant, again), |core, now| core.listen(now, wanted, options))?;
        Ok((call, granted))
    }
}

/// A subscription that was asked for, and what tells what is granted.
type Asked = (OpenCall, oneshot::Receiver<SubscriptionFilter>);

/// The error of a subscription that ended before it stood.
fn early(outcome: Result<Result<(), Error>, oneshot::error::RecvError>) -> Error {
    match outcome {
        Ok(Err(error)) => error,
        Ok(Ok(())) => Error::call(CallError::InvalidResult {
            reason: "the server ended the subscription before it granted anything".to_owned(),
        }),
        Err(_) => Error::call(CallError::Cancelled { dispatched: true }),
    }
}

/// Whether a call could not be opened as others have all the room.
pub(super) fn is_for_want_of_room(error: &Error) -> bool {
    error.kind() == ErrorKind::LimitExceeded
}

/// Ends the task of a subscription that nobody waits for.
pub(super) struct AbortOnDrop(pub(super) Option<AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

struct Keeper {
    driver: Arc<Driver>,
    wanted: SubscriptionFilter,
    options: CallOptions,
    /// It was lost, and is about to be asked for again.
    is_interrupted: Watched<bool>,
}

impl Keeper {
    /// Drives a subscription to its end, over lost streams. `Ok`: the server ended it on purpose. `stand` is told what was
    /// granted at first; one that never stood is not asked for again, because its caller waits.
    async fn keep(self, first: Asked, stand: oneshot::Sender<SubscriptionFilter>) -> Result<(), Error> {
        let driver = Arc::clone(&self.driver);
        self.keep_up(first, stand).await.map_err(|error| driver.here(error))
    }

    async fn keep_up(self, first: Asked, stand: oneshot::Sender<SubscriptionFilter>) -> Result<(), Error> {
        let mut stand = Some(stand);
        let mut schedule = Schedule::new(self.driver.limits().max_resubscriptions);
        let mut asked = first;
        loop {
            let Err(error) = self.drive(asked, &mut stand, &mut schedule).await else { return Ok(()) };
            if stand.is_some() || !self.may_come_back(&error) {
                return Err(error);
            }
            let Some(wait) = schedule.next_wait() else { return Err(error) };
            if !self.is_interrupted.current() {
                self.is_interrupted.set(true);
                self.driver.emit(ClientEvent::SubscriptionInterrupted);
            }
            tokio::time::sleep(wait).await;
            asked = self.ask_again(&mut schedule).await?;
        }
    }

    /// Asks once more, when there is room for one more call: many calls may be open at this moment.
    async fn ask_again(&self, schedule: &mut Schedule) -> Result<Asked, Error> {
        loop {
            match self.driver.listen_for(&self.wanted, &self.options, true) {
                Err(error) if is_for_want_of_room(&error) => {
                    let Some(wait) = schedule.next_wait() else { return Err(error) };
                    tokio::time::sleep(wait).await;
                }
                asked => return asked,
            }
        }
    }

    /// Drives a subscription until it ends or its stream is lost.
    async fn drive(
        &self,
        (call, mut granted): Asked,
        stand: &mut Option<oneshot::Sender<SubscriptionFilter>>,
        schedule: &mut Schedule,
    ) -> Result<(), Error> {
        let mut driving = std::pin::pin!(self.driver.drive(&call, None));
        let outcome = tokio::select! {
            biased;
            Ok(granted) = &mut granted => {
                self.stands(stand, granted);
                let granted_at = now();
                let outcome = driving.await;
                schedule.stood(now().saturating_duration_since(granted_at));
                outcome
            }
            outcome = &mut driving => {
                // Grant and end may come in one piece.
                if let Ok(granted) = granted.try_recv() {
                    self.stands(stand, granted);
                }
                outcome
            }
        };
        outcome.map(drop)
    }

    /// The server has granted it. The first grant is told to whom it waits for.
    fn stands(&self, stand: &mut Option<oneshot::Sender<SubscriptionFilter>>, granted: SubscriptionFilter) {
        if self.is_interrupted.current() {
            self.is_interrupted.set(false);
        }
        if let Some(stand) = stand.take() {
            // Nobody is there any more: then this task is about to be aborted.
            let _ = stand.send(granted);
        }
    }

    /// Whether the stream was lost and not the connection.
    fn may_come_back(&self, error: &Error) -> bool {
        !self.driver.is_closed()
            && !self.driver.is_deaf()
            && matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout)
    }
}

/// When to ask again, and when no more.
pub(super) struct Schedule {
    attempts: u32,
    /// Attempts in a row without progress before a subscription counts as over.
    max_attempts: u32,
    wait: Duration,
}

impl Schedule {
    pub(super) const fn new(max_attempts: u32) -> Self {
        Self { attempts: 0, max_attempts, wait: FIRST_WAIT }
    }

    /// Whether the next attempt is the first in a row.
    #[cfg(feature = "http")]
    pub(super) const fn is_fresh(&self) -> bool {
        self.attempts == 0
    }

    pub(super) fn next_wait(&mut self) -> Option<Duration> {
        if self.attempts >= self.max_attempts {
            return None;
        }
        self.attempts += 1;
        let next = self.wait.saturating_mul(2).min(LONGEST_WAIT);
        Some(std::mem::replace(&mut self.wait, next))
    }

    /// What was granted lasted so long.
    pub(super) fn stood(&mut self, time: Duration) {
        if time >= STOOD {
            *self = Self::new(self.max_attempts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // protocol:S-07, auth:SEC-09
    #[test]
    fn a_subscription_that_is_granted_and_dropped_is_not_asked_for_for_ever() {
        let run = |stood: u64| {
            let mut schedule = Schedule::new(12);
            let waits = std::iter::from_fn(|| {
                let wait = schedule.next_wait();
                schedule.stood(Duration::from_secs(stood));
                wait.map(|wait| wait.as_secs())
            });
            waits.take(100).collect::<Vec<_>>()
        };
        let growing = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30];
        assert_eq!(run(0), growing);
        assert_eq!(run(9), growing);
        assert_eq!(run(10), [1; 100]);
    }
}
