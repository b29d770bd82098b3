//! The tokio side of a line-framed connection: the only place, with `process`, that reads a clock, spawns and does I/O.

mod connection;
mod keeper;
mod receiver;
mod sender;
mod shared;
mod signal;

pub use connection::LineConnection;
pub use receiver::{LineReceiver, ReceiveCounts};
pub use sender::{HeldLine, LineSender, Place, Sending};

pub(crate) use connection::{Spawned, runtime};
pub(crate) use keeper::KeptProcess;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// Locks without giving up after a panic elsewhere: every critical section leaves its data whole between two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
