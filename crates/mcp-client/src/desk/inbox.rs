//! The desk's way to its inbox: one task, which makes one call after another on a thread that may block, so that a slow
//! store holds up neither connections nor other questions' ends.
//!
//! What waits for the store is bounded by the questions: of each open one at most its publishing waits, of each published
//! one at most its end.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use mcp_elicitation::{End, Inbox, InboxEntry, InboxError, InboxParams, Misuse, QuestionId};
use tokio::task::spawn_blocking;

use super::state::State;
use super::{Desk, ElicitationEvent, Inner, action};
use crate::event::ClientEvent;

/// What is to be done for the inbox, in order.
#[derive(Default)]
pub(super) struct InboxQueue {
    todo: VecDeque<Todo>,
    /// Open questions that are in the inbox.
    published: HashMap<Arc<str>, QuestionId>,
    runs: bool,
}

enum Todo {
    Publish(QuestionId, InboxEntry),
    End(Arc<str>, End),
}

impl InboxQueue {
    /// A question ended that is in the inbox, or on its way there.
    pub(super) fn ended(&mut self, question: QuestionId, entry: Arc<str>, end: End) {
        self.published.remove(&entry);
        let before = self.todo.len();
        self.todo.retain(|todo| !matches!(todo, Todo::Publish(waiting, _) if *waiting == question));
        // What never got there needs no end there.
        if self.todo.len() == before {
            self.todo.push_back(Todo::End(entry, end));
        }
    }

    fn forget_end(&mut self, entry: &str) {
        self.todo.retain(|todo| !matches!(todo, Todo::End(ended, _) if **ended == *entry));
    }

    fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.published.is_empty()
    }
}

impl State {
    /// Puts a question on its way into the inbox.
    pub(super) fn publish(&mut self, now: Instant, question: QuestionId) {
        let Some(open) = self.open.get_mut(&question) else { return };
        let id: Arc<str> = format!("{}-{question}", process_id()).into();
        let mut entry = InboxEntry::from_parts(
            &*id,
            &*open.server,
            open.arriving.revision,
            InboxParams::from(&*open.request),
        );
        entry.expires_after =
            self.machine.question_deadline(question).map(|at| at.saturating_duration_since(now));
        open.entry = Some(id);
        self.inbox.todo.push_back(Todo::Publish(question, entry));
    }
}

impl Desk {
    /// Sees to it that somebody does what is to be done for the inbox.
    pub(super) fn wake_inbox(&self) {
        let Some(inbox) = self.inner.config.inbox.clone() else { return };
        let runtime = {
            let mut state = self.lock();
            if state.inbox.runs {
                self.inner.inbox.notify_one();
                return;
            }
            if state.inbox.is_idle() {
                return;
            }
            let Some(runtime) = state.runtime() else { return };
            state.inbox.runs = true;
            runtime
        };
        let clerk = Clerk { inner: Arc::clone(&self.inner), inbox, stopped: false };
        runtime.spawn(clerk.run());
    }
}

/// The task. Whatever ends it, the next thing to do starts another one.
struct Clerk {
    inner: Arc<Inner>,
    inbox: Arc<dyn Inbox>,
    stopped: bool,
}

impl Clerk {
    async fn run(mut self) {
        let desk = Desk { inner: Arc::clone(&self.inner) };
        loop {
            let todo = {
                let mut state = desk.lock();
                if state.inbox.is_idle() {
                    state.inbox.runs = false;
                    self.stopped = true;
                    return;
                }
                state.inbox.todo.pop_front()
            };
            match todo {
                Some(Todo::Publish(question, entry)) => self.publish(&desk, question, entry).await,
                Some(Todo::End(entry, end)) => {
                    let ended = self.call(move |inbox| match action(end) {
                        Some(action) => inbox.acknowledge(&entry, action),
                        None => inbox.fail(&entry, end),
                    });
                    if let Err(error) = ended.await {
                        tracing::debug!(%error, "the inbox did not take the end of a question");
                    }
                }
                None => {
                    tokio::select! {
                        () = desk.inner.inbox.notified() => {}
                        () = tokio::time::sleep(desk.inner.config.inbox_poll_interval) => {
                            self.collect(&desk).await;
                        }
                    }
                }
            }
        }
    }

    async fn publish(&self, desk: &Desk, question: QuestionId, entry: InboxEntry) {
        let id: Arc<str> = entry.id.as_str().into();
        match self.call(move |inbox| inbox.publish(&entry)).await {
            Ok(()) => {
                let is_open = {
                    let mut state = desk.lock();
                    let is_open = state.open.contains_key(&question);
                    if is_open {
                        state.inbox.published.insert(id, question);
                    }
                    is_open
                };
                if is_open {
                    desk.offer(question);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the inbox did not take a question");
                desk.with(|state, now| {
                    state.inbox.forget_end(&id);
                    if let Some(open) = state.open.get_mut(&question) {
                        open.entry = None;
                        let event = ElicitationEvent::NotPublished { question };
                        state.remark(question, ClientEvent::Elicitation(event));
                        // In the table, so it is open.
                        let _ = state.machine.fail(now, question);
                    }
                });
            }
        }
    }

    /// Takes the answers that others gave.
    async fn collect(&self, desk: &Desk) {
        let answers = match self.call(|inbox| inbox.answers()).await {
            Ok(answers) => answers,
            Err(error) => return tracing::debug!(%error, "the inbox could not be read"),
        };
        for given in answers {
            let question = desk.lock().inbox.published.get(given.id.as_str()).copied();
            // Answers to what is not open any more come too late.
            let Some(question) = question else { continue };
            if let Err(Misuse::InvalidAnswer(error)) = desk.respond(question, given.answer) {
                let reason = error.to_string();
                let refused = self.call(move |inbox| inbox.refuse(&given.id, &reason)).await;
                if let Err(error) = refused {
                    tracing::debug!(%error, "the inbox did not take an answer back");
                }
            }
        }
    }

    /// Calls the store on a thread that may block.
    async fn call<R: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn Inbox) -> Result<R, InboxError> + Send + 'static,
    ) -> Result<R, InboxError> {
        let inbox = Arc::clone(&self.inbox);
        let outcome = spawn_blocking(move || act(&*inbox)).await;
        outcome.unwrap_or_else(|error| Err(InboxError::new("the inbox panicked").caused_by(error)))
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        if !self.stopped {
            let desk = Desk { inner: Arc::clone(&self.inner) };
            desk.lock().inbox.runs = false;
        }
    }
}

/// Tells this process from all others, restarts of the same program included.
fn process_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}", random(), random())
    })
}
