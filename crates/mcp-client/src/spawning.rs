//! The one door by which tasks are started.
//!
//! Each type of future that a runtime is given is another copy of the runtime's own machinery in this crate, which is many times
//! as much code as most of what our tasks do. So all of them are given as one type; what that costs is a small box a task.

use std::future::Future;
use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
#[cfg(feature = "host")]
use tokio::task::JoinSet;

/// What a task does, of whatever type.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts a task.
pub(crate) fn spawn(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    spawn_boxed(runtime, Box::pin(work))
}

/// Starts a task that ends with `tasks`.
#[cfg(feature = "host")]
pub(crate) fn spawn_in(tasks: &mut JoinSet<()>, work: impl Future<Output = ()> + Send + 'static) {
    let work: Work = Box::pin(work);
    tasks.spawn(work);
}

fn spawn_boxed(runtime: &Handle, work: Work) -> AbortHandle {
    runtime.spawn(work).abort_handle()
}
