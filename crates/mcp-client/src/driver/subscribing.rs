//! Keeping a subscription up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_model::SubscriptionFilter;
use mcp_proto::{CallError, CallId, CallOptions};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::schedule::Schedule;
use super::slot::Slot;
use super::{Driver, OpenCall, Writes, now};
use crate::error::{Error, ErrorKind};
use crate::event::{ClientEvent, Happened};
use crate::event_queue::Listener;
use crate::spawning::spawn;

/// A subscription that stands, and the task that keeps it up.
pub(crate) struct Standing {
    pub(crate) granted: SubscriptionFilter,
    /// How it ended, once it did.
    pub(crate) ended: oneshot::Receiver<Result<(), Error>>,
    pub(crate) stream: Arc<OwnStream>,
    pub(crate) task: AbortHandle,
}

/// The stream of one subscription, where it has one of its own. Changed and looked at under the lock of the driver, together with the
/// events that tell of it.
#[derive(Debug, Default)]
pub(crate) struct OwnStream {
    /// It was lost, and is about to be asked for again.
    is_interrupted: AtomicBool,
}

impl OwnStream {
    /// It is lost, be it once more: what is to be told of that.
    fn interrupt(this: &Arc<Self>) -> Option<Happened> {
        let was_interrupted = this.is_interrupted.swap(true, Ordering::Relaxed);
        (!was_interrupted).then(|| this.tells(ClientEvent::SubscriptionInterrupted))
    }

    /// It stands: what is to be told of that.
    pub(super) fn restore(this: &Arc<Self>) -> Option<Happened> {
        let was_interrupted = this.is_interrupted.swap(false, Ordering::Relaxed);
        was_interrupted.then(|| this.tells(ClientEvent::SubscriptionRestored))
    }

    fn tells(self: &Arc<Self>, event: ClientEvent) -> Happened {
        Happened { event, stream: Some(Arc::clone(self)) }
    }
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
        let first = self.listen_for(&wanted, &options, None)?;
        let driver = Arc::clone(&self);
        let stream = Arc::<OwnStream>::default();
        let keeper = Keeper { driver: self, wanted, options, stream: Arc::clone(&stream) };
        // The task owns the call: aborting it ends the subscription.
        let task = spawn(&driver.runtime, async move { drop(end.send(keeper.keep(first, stand).await)) });
        let mut unless_granted = AbortOnDrop(Some(task.clone()));
        match stands.await {
            Ok(granted) => {
                unless_granted.0 = None;
                Ok(Standing { granted, ended, stream, task })
            }
            Err(_) => Err(driver.here(early(ended.await))),
        }
    }

    /// Waits until it is known whether the session has a stream for what belongs to no call; no longer than
    /// [`STREAM_WAIT`](super::hearing::STREAM_WAIT). For tasks of our own: the application may have no timers.
    pub(crate) async fn stream_known(&self) {
        // Made before looking: it is told of every later change.
        let mut heard = self.heard.watcher();
        let mut waits_until = None;
        loop {
            let Some(until) = self.lock().hearing.unknown_until(now()) else { return };
            // However many sessions come and go meanwhile.
            let until = *waits_until.get_or_insert(until);
            if tokio::time::timeout_at(until.into(), heard.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Whether a subscription that the server has granted hears of changes, which it counts on from now on.
    fn is_heard_by(&self, subscription: CallId) -> bool {
        let mut state = self.lock();
        let is_heard = !state.hearing.is_deaf();
        if let Some(slot) = state.slots.get_mut(&subscription) {
            slot.stands(is_heard);
        }
        is_heard
    }

    /// Whether a subscription hears nothing at the moment, to whoever has read all these events; `None` to whoever has not.
    pub(crate) fn is_interrupted(&self, stream: &OwnStream, events: &Listener<Happened>) -> Option<bool> {
        let state = self.lock();
        let is_interrupted = state.hearing.is_interrupted() || stream.is_interrupted.load(Ordering::Relaxed);
        // Under the lock, where what changes that puts in its event as well.
        (!events.has_next()).then_some(is_interrupted)
    }

    fn listen_for(
        self: &Arc<Self>,
        wanted: &SubscriptionFilter,
        options: &CallOptions,
        again: Option<Arc<OwnStream>>,
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
    stream: Arc<OwnStream>,
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
            self.driver.change(Writes::Later, |_, outbox, _| {
                outbox.events.extend(OwnStream::interrupt(&self.stream));
            });
            tokio::time::sleep(wait).await;
            asked = self.ask_again(&mut schedule).await?;
        }
    }

    /// Asks once more, when there is room for one more call: many calls may be open at this moment.
    async fn ask_again(&self, schedule: &mut Schedule) -> Result<Asked, Error> {
        loop {
            let again = Some(Arc::clone(&self.stream));
            match self.driver.listen_for(&self.wanted, &self.options, again) {
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
                let granted_at = now();
                let ended = if stand.is_some() {
                    tokio::select! {
                        biased;
                        outcome = &mut driving => Some(outcome),
                        () = self.driver.stream_known() => None,
                    }
                } else {
                    None
                };
                self.stands(call.id, stand, granted);
                let outcome = match ended {
                    Some(outcome) => outcome,
                    None => driving.await,
                };
                schedule.stood(now().saturating_duration_since(granted_at));
                outcome
            }
            outcome = &mut driving => {
                // Grant and end may come in one piece.
                if let Ok(granted) = granted.try_recv() {
                    self.stands(call.id, stand, granted);
                }
                outcome
            }
        };
        outcome.map(drop)
    }

    /// The server has granted it. The first grant is told to whom it waits for.
    fn stands(
        &self,
        call: CallId,
        stand: &mut Option<oneshot::Sender<SubscriptionFilter>>,
        granted: SubscriptionFilter,
    ) {
        let Some(stand) = stand.take() else { return };
        // A legacy server need not be asked, and grants what it cannot keep.
        let granted = if self.driver.is_heard_by(call) { granted } else { SubscriptionFilter::new() };
        // Nobody is there any more: then this task is about to be aborted.
        let _ = stand.send(granted);
    }

    /// Whether a stream of its own was lost, and not the connection, nor the standing stream, which is kept up elsewhere.
    fn may_come_back(&self, error: &Error) -> bool {
        !self.driver.is_closed()
            && !self.driver.has_standing_stream()
            && matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout)
    }
}
