//! Driving a call that may become a task, apart from whoever waits for it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use mcp_jsonrpc::RawJson;
use mcp_model::SubscriptionFilter;
use mcp_proto::{Answer, CallId, CallOptions, Connection, Misuse, StoredTask, SuspendedCall, TaskUpdate};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::slot::{CallResult, Slot};
use super::subscribing::AbortOnDrop;
use super::{Driver, OpenCall, ProgressFn};
use crate::error::Error;
use crate::spawning::spawn;

/// What is known of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskNews {
    pub(crate) update: TaskUpdate,
    pub(crate) stored: StoredTask,
    /// The news of a connection count up.
    number: u64,
}

/// News of a task, on their way to who waits for them.
pub(crate) struct Told {
    pub(crate) number: u64,
    pub(crate) update: TaskUpdate,
    /// `None` for a task that is over: what was told before still holds.
    pub(crate) stored: Option<StoredTask>,
}

impl Told {
    /// Tells it, unless newer news were told meanwhile by another thread.
    pub(super) fn tell(self, news: &watch::Sender<Option<TaskNews>>) {
        let Self { number, update, stored } = self;
        news.send_if_modified(|news| {
            if news.as_ref().is_some_and(|news| news.number > number) {
                return false;
            }
            let kept = news.take().map(|news| news.stored);
            let stored = stored.or(kept).unwrap_or_else(|| StoredTask::new(update.task.task_id.clone()));
            *news = Some(TaskNews { update, stored, number });
            true
        });
    }
}

/// The newest news of a task; what came before is only told to who looks in time.
pub(crate) type TaskFeed = watch::Receiver<Option<TaskNews>>;

/// What a task begins with.
pub(crate) enum TaskOrigin {
    /// A call.
    Call { method: String, params: Option<RawJson> },
    /// A call that was put away before it was a task.
    Suspended { call: SuspendedCall, answers: BTreeMap<String, Answer> },
    /// A task that is at the server already.
    Stored(StoredTask),
}

impl TaskOrigin {
    fn begin(
        self,
        core: &mut Connection,
        now: std::time::Instant,
        options: &CallOptions,
    ) -> Result<CallId, Misuse> {
        match self {
            Self::Call { method, params } => core.call(now, &method, params.as_ref(), options),
            Self::Suspended { call, answers } => core.resume_suspended(now, &call, answers, options),
            Self::Stored(stored) => core.resume_task(now, &stored, options),
        }
    }
}

/// A call under way on a task of its own. Dropping it gives the call up.
pub(crate) struct RunningTask {
    pub(crate) news: TaskFeed,
    /// How it ended, once it did.
    pub(crate) ended: oneshot::Receiver<Result<RawJson, Error>>,
    call: CallId,
    driving: AbortHandle,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Driver {
    /// Begins a call that may become a task. With `listen` the server is asked to tell of the task by itself.
    pub(crate) fn run_task(
        self: &Arc<Self>,
        origin: TaskOrigin,
        options: CallOptions,
        on_progress: Option<ProgressFn>,
        listen: bool,
    ) -> Result<RunningTask, Error> {
        let (tell, news) = watch::channel(None);
        let call = self.open_in(Slot::of_task(tell), |core, now| origin.begin(core, now, &options))?;
        let (end, ended) = oneshot::channel();
        let (id, driver, ending, told) = (call.id, Arc::clone(self), Arc::clone(self), news.clone());
        let driving = spawn(&self.runtime, async move {
            let outcome = tokio::select! {
                biased;
                outcome = driver.drive_task(call, on_progress) => outcome,
                // Never the first: it only stands by.
                outcome = driver.stand_by(told, options), if listen => outcome,
            };
            drop(end.send(outcome.map_err(|error| ending.here(error))));
        });
        Ok(RunningTask { news, ended, call: id, driving })
    }

    async fn drive_task(
        self: &Arc<Self>,
        call: OpenCall,
        on_progress: Option<ProgressFn>,
    ) -> Result<RawJson, Error> {
        match self.drive(&call, on_progress).await?.0 {
            CallResult::Raw(raw) => Ok(raw),
            CallResult::Read(_) => unreachable!("the slot of a task knows no type"),
        }
    }

    /// Has the server tell of the task while this is polled.
    async fn stand_by(self: &Arc<Self>, mut news: TaskFeed, options: CallOptions) -> Result<RawJson, Error> {
        let id = match news.wait_for(Option::is_some).await {
            Ok(news) => news.as_ref().map(|news| news.stored.task_id.clone()),
            Err(_) => None,
        };
        let mut wanted = SubscriptionFilter::new();
        wanted.task_ids = Some(id.into_iter().collect());
        let subscribed = match Arc::clone(self).subscribe(wanted, options).await {
            Ok(standing) => Some(AbortOnDrop(Some(standing.task))),
            // The task is asked for all the same.
            Err(error) => {
                tracing::debug!(%error, "the server does not report task changes");
                None
            }
        };
        let never = pending().await;
        drop(subscribed);
        never
    }

    /// The task of a call under way, as it is to be put away now.
    pub(crate) fn stored_task(&self, task: &RunningTask) -> Option<StoredTask> {
        self.lock().core.stored_task(task.call)
    }
}
