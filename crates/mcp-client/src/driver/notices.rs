//! The notifications of the application over Streamable HTTP: posted one after another, so that they arrive in the order in which they
//! were said.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_proto::Transmit;
use mcp_transport::ErrorKind;
use mcp_transport::http::HttpConnection;

use super::Driver;
use super::http::deliver;
use crate::spawning::spawn;

/// Those that wait. What is put in is bounded by whoever asks [`waiting`](Self::waiting) before.
#[derive(Debug)]
pub(super) struct Notices {
    connection: HttpConnection,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Transmit>,
    /// A task is posting them.
    is_posting: bool,
}

impl Notices {
    pub(super) fn new(connection: HttpConnection) -> Self {
        Self { connection, waiting: Arc::default() }
    }

    /// How many wait, not counting the one that is being posted.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.waiting).queue.len()
    }

    pub(super) fn put(&self, driver: &Arc<Driver>, transmit: Transmit) {
        {
            let mut waiting = lock(&self.waiting);
            waiting.queue.push_back(transmit);
            if std::mem::replace(&mut waiting.is_posting, true) {
                return;
            }
        }
        let posting = Posting { waiting: Arc::clone(&self.waiting), is_over: false };
        spawn(&driver.runtime, posting.post(self.connection.clone(), Arc::downgrade(driver)));
    }

    /// Nothing more is posted.
    pub(super) fn clear(&self) {
        lock(&self.waiting).queue.clear();
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The task that posts, until something ends it: then the next notice starts another one.
struct Posting {
    waiting: Arc<Mutex<Waiting>>,
    is_over: bool,
}

impl Posting {
    async fn post(mut self, connection: HttpConnection, driver: Weak<Driver>) {
        loop {
            let next = {
                let mut waiting = lock(&self.waiting);
                let next = waiting.queue.pop_front();
                // Under the lock, so that whoever puts the next one in finds nobody at it.
                waiting.is_posting = next.is_some();
                next
            };
            let Some(transmit) = next else {
                self.is_over = true;
                return;
            };
            let Err(error) = deliver(&connection, transmit.clone()).await else { continue };
            tracing::debug!(%error, "a notification was not accepted by the server");
            if error.kind() == ErrorKind::SessionLost
                && let Some(driver) = driver.upgrade()
            {
                driver.say_again(&connection, transmit).await;
            }
        }
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.waiting).is_posting = false;
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
