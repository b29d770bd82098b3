//! Flags that the handles raise and the keeper takes.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Waker},
};

use super::lock;

/// What the handles tell the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// There is something for the keeper to write, or a writer that closing waited for is done.
    pub(crate) const WRITE: Self = Self(1);
    /// Close the connection.
    pub(crate) const CLOSE: Self = Self(2);
    /// A write did not succeed.
    pub(crate) const BROKEN: Self = Self(4);
    /// The peer's output is at its end.
    pub(crate) const OUTPUT_ENDED: Self = Self(8);
    /// The receiver is gone and gave its reader back.
    pub(crate) const OUTPUT_LEFT: Self = Self(16);

    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Signal {
    flags: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    pub(crate) fn raise(&self, flag: Flags) {
        let before = Flags(self.flags.fetch_or(flag.0, Ordering::AcqRel));
        // A flag that was up already has woken the keeper, which has not come to take it.
        if !before.has(flag) {
            // Woken when the lock is free. It is put back when the keeper comes, which it does before it takes the flags.
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Takes what was raised since the last call, and has the caller woken by the next.
    pub(crate) fn take(&self, cx: &Context<'_>) -> Flags {
        // Registering comes first: a flag raised in between is then seen here or wakes.
        let waker = cx.waker().clone();
        let replaced = lock(&self.waker).replace(waker);
        drop(replaced);
        Flags(self.flags.swap(0, Ordering::AcqRel))
    }
}
