//! A task in the hands of the application.

use std::fmt;

use mcp_jsonrpc::RawJson;
use mcp_proto::{CallError, StoredTask, TaskUpdate};

use crate::client::Client;
use crate::driver::RunningTask;
use crate::error::{Called, Error};
use crate::requests::Decode;

/// A call that became a task, or returned its result at once.
///
/// The task is polled in the background, at the interval that the server asks for, whether or not this handle is used. Input
/// requests of the task go to the client's handlers like any other.
///
/// Dropping it stops waiting. The task continues at the server, unless
/// [`TaskCall::cancel_on_drop`](crate::TaskCall::cancel_on_drop) was set; to resume it later, keep what
/// [`stored`](Self::stored) returns. It keeps the connection open.
#[must_use = "dropping a task gives up the wait for it"]
pub struct Task<T> {
    client: Client,
    running: RunningTask,
    /// The result, where it was there at once.
    done: Option<RawJson>,
    called: Called,
    decode: Decode<T>,
}

impl<T> Task<T> {
    /// Waits until there is a task, or an end.
    pub(super) async fn begin(
        client: Client,
        mut running: RunningTask,
        called: Called,
        decode: Decode<T>,
    ) -> Result<Self, Error> {
        let done = tokio::select! {
            biased;
            Ok(()) = running.news.changed() => None,
            outcome = &mut running.ended => Some(outcome.unwrap_or_else(|_| Err(given_up()))),
        };
        let done = done.transpose().map_err(|error| client.driver().here(error).of(&called))?;
        running.news.borrow_and_update();
        Ok(Self { client, running, done, called, decode })
    }

    /// The latest status of the task; `None` for a call that returned its result at once.
    pub fn status(&self) -> Option<TaskUpdate> {
        self.running.news.borrow().as_ref().map(|news| news.update.clone())
    }

    /// The next status change; `None` when the task is over: see [`result`](Self::result). If the status changes faster than
    /// this is called, only the latest is seen. Cancel safe.
    pub async fn next_status(&mut self) -> Option<TaskUpdate> {
        self.running.news.changed().await.ok()?;
        self.running.news.borrow_and_update().as_ref().map(|news| news.update.clone())
    }

    /// The task as plain data, for [`Client::resume_task`]; `None` for a call that returned its result at once. It records
    /// which input requests have been answered, so that they are not asked again: store it again when that changed.
    pub fn stored(&self) -> Option<StoredTask> {
        let driver = self.client.driver();
        let kept = || self.running.news.borrow().as_ref().map(|news| news.stored.clone());
        let mut stored = driver.stored_task(&self.running).or_else(kept)?;
        stored.server = driver.identity().recorded();
        Some(stored)
    }

    /// Waits for the result: exactly what the call would have returned without a task. Dropping the future stops waiting, as
    /// dropping the task does.
    ///
    /// # Errors
    ///
    /// Those of the call; [`Error::task_error`] is present if the task itself had no result. A failed task gives the error
    /// object of the call. After [`Timeout`](crate::ErrorKind::Timeout), [`Closed`](crate::ErrorKind::Closed) and
    /// [`Transport`](crate::ErrorKind::Transport) the task may still be running.
    pub async fn result(mut self) -> Result<T, Error> {
        let raw = match self.done.take() {
            Some(raw) => Ok(raw),
            None => (&mut self.running.ended).await.unwrap_or_else(|_| Err(given_up())),
        };
        let result = raw.and_then(|raw| (self.decode)(&self.called.method, raw));
        result.map_err(|error| self.client.driver().here(error).of(&self.called))
    }

    /// Asks the server to cancel the task, and waits for its answer. How the task ends is what [`result`](Self::result)
    /// returns: it may complete first, and a server may decline. Nothing is sent for a call that returned its result at once.
    ///
    /// # Errors
    ///
    /// Those of `tasks/cancel`; a server of 2025-11-25 refuses it for a task that is over.
    pub async fn cancel(&self) -> Result<(), Error> {
        match self.stored() {
            Some(stored) => self.client.cancel_task(stored.task_id).await.map(drop),
            None => Ok(()),
        }
    }
}

/// The runtime ended under the task.
fn given_up() -> Error {
    Error::call(CallError::Cancelled { dispatched: true })
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("method", &self.called.method)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
