//! From a call to a task.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::CallToolResult;
use mcp_proto::StoredTask;

use super::Task;
use crate::client::Client;
use crate::driver::TaskOrigin;
use crate::error::Error;
use crate::requests::{Call, Parts};

/// A call that becomes a task if the server makes it one. Await it to send it: it returns a [`Task`] as soon as the task or
/// the result exists.
///
/// Dropping the future cancels the call. A task that already exists continues at the server, unless
/// [`cancel_on_drop`](Self::cancel_on_drop) is set.
///
/// # Errors
///
/// When awaited: those of the call, up to the moment it became a task.
#[must_use = "a call is sent when it is awaited"]
pub struct TaskCall<T> {
    parts: Parts<T>,
    origin: Result<TaskOrigin, Error>,
    listen: bool,
}

impl<T: 'static> Call<T> {
    /// Requests a task where the server supports it: under 2026-07-28 the server decides, under 2025-11-25 the tool must allow
    /// it. A call that returns its result at once gives a task that is done.
    ///
    /// Needs [`ClientBuilder::tasks`](crate::ClientBuilder::tasks). Without this method a call waits for its task by itself,
    /// and awaiting it gives the result.
    pub fn as_task(self) -> TaskCall<T> {
        let (mut parts, origin) = self.into_parts();
        parts.options.task.wanted = true;
        parts.options.task.declined = false;
        let origin = origin.and_then(|origin| {
            if parts.client.takes_tasks() {
                Ok(origin)
            } else {
                Err(Error::misuse(mcp_proto::Misuse::NotDeclaredByClient { capability: "tasks" }))
            }
        });
        TaskCall { parts, origin, listen: false }
    }
}

impl Client {
    /// Resumes waiting for a task, on another connection or in another process. The tool is not called again.
    ///
    /// # Errors
    ///
    /// When awaited: [`Misuse`](crate::ErrorKind::Misuse) if the task belongs to another server, or without
    /// [`ClientBuilder::tasks`](crate::ClientBuilder::tasks); and those of a task that the server does not know (any more),
    /// see [`Error::task_error`](crate::Error::task_error).
    pub fn resume_task(&self, stored: StoredTask) -> TaskCall<CallToolResult> {
        let parts = self.parts_of_task(stored.method.clone());
        let ours = self.driver().identity().is_of(&stored.server);
        let origin = if ours {
            Ok(TaskOrigin::Stored(stored))
        } else {
            Err(self.driver().identity().is_not_of("the task belongs to", &stored.server))
        };
        TaskCall { parts, origin, listen: false }
    }
}

impl<T> TaskCall<T> {
    /// The time limit for waiting, counted from the call. Default: that of the client
    /// ([`ClientBuilder::max_total`](crate::ClientBuilder::max_total)), or else 30 minutes. The task continues after it. Each
    /// request about the task has the call's timeout, within this limit. If set several times, here or with
    /// [`Call::max_total`](crate::Call::max_total), the shortest counts.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        let options = &mut self.parts.options;
        options.max_total = Some(options.max_total.map_or(max_total, |said| said.min(max_total)));
        self
    }

    /// How long the server is asked to keep the task (2025-11-25; in later revisions the server decides). Default: the
    /// server's choice.
    pub fn keep_for(mut self, ttl: Duration) -> Self {
        self.parts.options.task.keep_for = Some(ttl);
        self
    }

    /// Whether to cancel the task at the server when waiting is given up: when the [`Task`] is dropped, after `max_total`, or
    /// without the input that it needs. Default: no, and the task continues.
    pub fn cancel_on_drop(mut self, cancel: bool) -> Self {
        self.parts.options.task.cancel_abandoned = cancel;
        self
    }

    /// Asks the server to report status changes itself, where it can (2026-07-28, `subscriptions/listen`): they are seen at
    /// once, and the server is polled less often. Takes a stream of its own over HTTP. Default: no.
    pub fn listen(mut self) -> Self {
        self.listen = true;
        self
    }
}

impl<T: 'static> IntoFuture for TaskCall<T> {
    type Output = Result<Task<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { parts, origin, listen } = self;
        Box::pin(async move {
            let Parts { client, called, mut options, on_progress, decode } = parts;
            client.end_by_default(&mut options);
            let driver = Arc::clone(client.driver());
            let about = |error: Error| driver.here(error).of(&called);
            let origin = origin.map_err(about)?;
            let running = driver.run_task(origin, options, on_progress, listen).map_err(about)?;
            Task::begin(client, running, called, decode).await
        })
    }
}

impl<T> fmt::Debug for TaskCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskCall").field("method", &self.parts.called.method).finish_non_exhaustive()
    }
}
