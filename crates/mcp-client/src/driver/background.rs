//! The queue of what nobody waits for: answers to the server, and notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use super::Sender;

/// Answers that wait to be written. When there are so many, the peer is read no further until it has read some of them. What
/// this side says by itself does not count: a peer that reads nothing until its own output is read would wait for ever.
const PAUSE_READING_AT: usize = 1024;

/// When so many messages wait, the application's notifications are refused. Only a peer that does not read gets here.
pub(crate) const MAX_BACKGROUND_NOTICES: usize = 8192;

/// When so many messages wait, the notices of calls that were given up are dropped: each is a courtesy, and a peer that
/// does not read gains nothing from it.
const MAX_BACKGROUND_COURTESIES: usize = 2 * MAX_BACKGROUND_NOTICES;

/// The sending end. Answers always fit in: what the server asks is bounded by itself, because reading pauses.
#[derive(Debug)]
pub(super) struct Background {
    queue: mpsc::UnboundedSender<Waits>,
    level: Arc<Level>,
}

#[derive(Debug, Default)]
struct Level {
    waiting: AtomicUsize,
    /// Those of them that answer the server.
    answers: AtomicUsize,
    fell: Notify,
}

/// A message in the queue.
#[derive(Debug)]
struct Waits {
    message: Bytes,
    is_answer: bool,
}

/// Gives its messages up when it is dropped, however its task ends.
struct Waiting {
    queue: mpsc::UnboundedReceiver<Waits>,
    level: Arc<Level>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.close();
        self.level.fell.notify_waiters();
    }
}

impl Background {
    /// The queue, and the future that writes what is put into it.
    pub(super) fn new(sender: Sender) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, receiver) = mpsc::unbounded_channel();
        let level = Arc::new(Level::default());
        let mut waiting = Waiting { queue: receiver, level: Arc::clone(&level) };
        let writing = async move {
            while let Some(Waits { message, is_answer }) = waiting.queue.recv().await {
                // The reading side learns why writing failed, and ends every call with the reason.
                if sender.send(message).await.is_err() {
                    return;
                }
                waiting.level.waiting.fetch_sub(1, Ordering::AcqRel);
                waiting.level.answers.fetch_sub(usize::from(is_answer), Ordering::AcqRel);
                waiting.level.fell.notify_waiters();
            }
        };
        (Self { queue, level }, writing)
    }

    pub(super) fn answer(&self, message: Bytes) {
        self.put(Waits { message, is_answer: true });
    }

    fn put(&self, message: Waits) {
        self.level.waiting.fetch_add(1, Ordering::AcqRel);
        self.level.answers.fetch_add(usize::from(message.is_answer), Ordering::AcqRel);
        // A queue without writer belongs to a connection that is over.
        let _ = self.queue.send(message);
    }

    pub(super) fn notice(&self, message: Bytes) {
        if self.level.waiting.load(Ordering::Acquire) < MAX_BACKGROUND_COURTESIES {
            self.put(Waits { message, is_answer: false });
        } else {
            tracing::debug!("a notice was not sent: the server does not read");
        }
    }

    /// Whether the application may put notices in.
    pub(super) fn takes_notices(&self) -> bool {
        self.level.waiting.load(Ordering::Acquire) < MAX_BACKGROUND_NOTICES
    }

    /// Waits until the peer may be read further.
    pub(super) async fn room(&self) {
        loop {
            // Made before looking: it is notified of every later change.
            let fell = self.level.fell.notified();
            if self.level.answers.load(Ordering::Acquire) < PAUSE_READING_AT || self.queue.is_closed() {
                return;
            }
            fell.await;
        }
    }
}
