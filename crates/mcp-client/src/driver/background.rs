//! The queue of what nobody waits for: answers to the server, and notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_proto::Limits;
use tokio::sync::{Notify, mpsc};

use super::http::SseSender;

/// The sending end. Answers always fit in: what the server asks is bounded by itself, because reading pauses.
#[derive(Debug)]
pub(super) struct Background {
    queue: mpsc::UnboundedSender<Waits>,
    level: Arc<Level>,
    limits: Limits,
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
    pub(super) fn new(sender: SseSender, limits: &Limits) -> (Self, impl Future<Output = ()> + Send + use<>) {
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
        (Self { queue, level, limits: *limits }, writing)
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
        if self.level.waiting.load(Ordering::Acquire) < self.limits.max_waiting_notices.saturating_mul(2) {
            self.put(Waits { message, is_answer: false });
        } else {
            tracing::debug!("a notification was not sent because the server does not read");
        }
    }

    /// Whether the application may put notices in.
    pub(super) fn takes_notices(&self) -> bool {
        self.level.waiting.load(Ordering::Acquire) < self.limits.max_waiting_notices
    }

    /// Waits until the peer may be read further.
    pub(super) async fn room(&self) {
        loop {
            // Made before looking: it is notified of every later change.
            let fell = self.level.fell.notified();
            let answers = self.level.answers.load(Ordering::Acquire);
            if answers < self.limits.max_waiting_answers || self.queue.is_closed() {
                return;
            }
            fell.await;
        }
    }
}
