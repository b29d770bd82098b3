//! Whether a connection hears of changes, as far as that is known here: on the standing stream of a legacy session, and for each
//! subscription that is lost by itself.

use std::future::pending;
#[cfg(feature = "http")]
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_transport::watched::{Watched, Watcher};
#[cfg(feature = "http")]
use tokio::sync::Notify;

/// How it is with what belongs to no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is heard, or there is nothing known against that.
    Yes,
    /// The stream that it comes on was lost, and is about to be opened again.
    Interrupted,
    /// The server has no such stream, or none any more.
    No,
}

pub(super) struct Hearing {
    now: Watched<Heard>,
    /// The reader of the stream waits for the server to answer anything.
    #[cfg(feature = "http")]
    is_sign_awaited: AtomicBool,
    #[cfg(feature = "http")]
    sign: Notify,
}

impl Hearing {
    pub(super) fn new() -> Self {
        Self {
            now: Watched::new(Heard::Yes),
            #[cfg(feature = "http")]
            is_sign_awaited: AtomicBool::new(false),
            #[cfg(feature = "http")]
            sign: Notify::new(),
        }
    }

    pub(super) fn current(&self) -> Heard {
        self.now.current()
    }
}

#[cfg(feature = "http")]
impl Hearing {
    /// Notes how it is; gives how it was.
    pub(super) fn set(&self, heard: Heard) -> Heard {
        let before = self.now.current();
        if before != heard {
            self.now.set(heard);
        }
        before
    }

    /// The server has answered a request.
    pub(super) fn note_sign(&self) {
        if self.is_sign_awaited.load(Ordering::Relaxed) && self.is_sign_awaited.swap(false, Ordering::Relaxed)
        {
            self.sign.notify_one();
        }
    }

    /// Waits for the next answer of the server. For one task.
    pub(super) async fn sign(&self) {
        self.is_sign_awaited.store(true, Ordering::Relaxed);
        self.sign.notified().await;
    }
}

/// What a subscription is to be told of: that nothing is heard for a while.
pub(crate) struct Interruptions {
    /// Of this subscription alone.
    own: Watcher<bool>,
    /// Of all of a legacy session.
    stream: Watcher<Heard>,
    /// There was one already when it began.
    begins_with_one: bool,
}

impl Interruptions {
    pub(super) fn new(own: Watcher<bool>, hearing: &Hearing) -> Self {
        let stream = hearing.now.watcher();
        Self { own, begins_with_one: stream.current() == Heard::Interrupted, stream }
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&mut self) {
        // Not where it is over by now: who is told of that first hears nothing of its end.
        let mut is_one =
            std::mem::take(&mut self.begins_with_one) && self.stream.current() == Heard::Interrupted;
        while !is_one {
            let changed = tokio::select! {
                biased;
                own = self.own.changed() => own,
                stream = self.stream.changed() => stream.map(|heard| heard == Heard::Interrupted),
            };
            // The subscription, or the connection, is over, which is told by itself.
            let Some(change) = changed else { return pending().await };
            is_one = change;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_subscription_is_told_of_each_interruption_of_its_own_or_of_the_stream_once() {
        let (own, hearing) = (Watched::new(false), Hearing::new());
        let is_told = |interruptions: &mut Interruptions| {
            pin!(interruptions.next()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        let mut told = Interruptions::new(own.watcher(), &hearing);
        assert!(!is_told(&mut told));
        own.set(true);
        assert!(is_told(&mut told) && !is_told(&mut told));
        own.set(false);
        assert!(!is_told(&mut told));
        hearing.now.set(Heard::Interrupted);
        assert!(is_told(&mut told) && !is_told(&mut told));
        // One that begins meanwhile hears nothing either.
        let mut late = Interruptions::new(own.watcher(), &hearing);
        assert!(is_told(&mut late) && !is_told(&mut late));
        hearing.now.set(Heard::Yes);
        assert!(!is_told(&mut told) && !is_told(&mut late));
        // It was over before anybody asked.
        hearing.now.set(Heard::Interrupted);
        let mut unasked = Interruptions::new(own.watcher(), &hearing);
        hearing.now.set(Heard::Yes);
        assert!(!is_told(&mut unasked), "it is heard again, and that was told");
        drop(own);
        hearing.now.set(Heard::Interrupted);
        assert!(!is_told(&mut Interruptions { begins_with_one: false, ..told }), "it is over");
    }
}
