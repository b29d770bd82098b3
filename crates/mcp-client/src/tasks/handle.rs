//! A task in the hands of the application.

use std::borrow::Cow;
use std::fmt;

use mcp_jsonrpc::RawJson;
use mcp_proto::{CallError, StoredTask, TaskUpdate};

use crate::client::Client;
use crate::driver::RunningTask;
use crate::error::Error;
use crate::requests::Decode;

/// A call that became a task, or had its result at once.
///
/// It is waited for in the background, at the pace that the server wants: the server is asked whether or not anybody looks.
/// What the task asks reaches the client's handlers like any other question.
///
/// Dropping it gives up the wait. The task goes on at the server, unless
/// [`TaskCall::cancel_on_drop`](crate::TaskCall::cancel_on_drop) was set; to come back to it, keep what
/// [`stored`](Self::stored) gives. It keeps the connection alive.
#[must_use = "dropping a task gives up the wait for it"]
pub struct Task<T> {
    client: Client,
    running: RunningTask,
    /// The result, where it was there at once.
    done: Option<RawJson>,
    method: Cow<'static, str>,
    decode: Decode<T>,
}

impl<T> Task<T> {
    /// Waits until there is a task, or an end.
    pub(super) async fn begin(
        client: Client,
        mut running: RunningTask,
        method: Cow<'static, str>,
        decode: Decode<T>,
    ) -> Result<Self, Error> {
        let done = tokio::select! {
            biased;
            Ok(()) = running.news.changed() => None,
            outcome = &mut running.ended => Some(outcome.unwrap_or_else(|_| Err(given_up()))?),
        };
        running.news.borrow_and_update();
        Ok(Self { client, running, done, method, decode })
    }

    /// Where the task stands, by the newest word of the server; `None` for a call that had its result at once.
    pub fn status(&self) -> Option<TaskUpdate> {
        self.running.news.borrow().as_ref().map(|news| news.update.clone())
    }

    /// The next news of the task; `None` when there are no more, because it is over: see [`result`](Self::result). News that
    /// come faster than they are looked at are skipped, and the newest is told. Cancel safe.
    pub async fn next_status(&mut self) -> Option<TaskUpdate> {
        self.running.news.changed().await.ok()?;
        self.running.news.borrow_and_update().as_ref().map(|news| news.update.clone())
    }

    /// The task as plain data, for [`Client::resume_task`]; `None` for a call that had its result at once. It notes which
    /// questions were answered by now, so that nobody is asked again: store it anew when that changed.
    pub fn stored(&self) -> Option<StoredTask> {
        let driver = self.client.driver();
        let kept = || self.running.news.borrow().as_ref().map(|news| news.stored.clone());
        let mut stored = driver.stored_task(&self.running).or_else(kept)?;
        driver.server_name().clone_into(&mut stored.server);
        Some(stored)
    }

    /// Waits for the result: exactly what the call would have given without a task. Dropping the future gives up the wait,
    /// as dropping the task does.
    ///
    /// # Errors
    ///
    /// Those of the call; [`Error::task_error`] says where it was the task that had no result. A failed task gives the error
    /// object of the call. After [`Timeout`](crate::ErrorKind::Timeout), [`Closed`](crate::ErrorKind::Closed) and
    /// [`Transport`](crate::ErrorKind::Transport) the task may still be at work.
    pub async fn result(mut self) -> Result<T, Error> {
        let raw = match self.done.take() {
            Some(raw) => Ok(raw),
            None => (&mut self.running.ended).await.unwrap_or_else(|_| Err(given_up())),
        };
        let result = raw.and_then(|raw| (self.decode)(&self.method, raw));
        result.map_err(|error| self.client.driver().here(error))
    }

    /// Asks the server to stop working on it, and waits until it has taken note. How the task ends is for
    /// [`result`](Self::result) to say: it may be done before, and a server may decline. Nothing is sent for a call that had
    /// its result at once.
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
            .field("method", &self.method)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
