//! The desk's way to its inbox: one task, which makes one call after another on a thread that may block, so that a slow
//! store holds up neither connections nor other questions' ends.
//!
//! What waits for the store is bounded by the questions: of each open one at most its publishing or a change of its time
//! waits, of each published one at most its end. An end that the store did not take is told again, a few times, and no more
//! than [`DeskConfig::max_untold_ends`](super::DeskConfig::max_untold_ends) of them wait for that.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicitation::{End, Inbox, InboxAnswer, InboxEntry, InboxError, Misuse, QuestionId};
use tokio::runtime::Id;
use tokio::task::{JoinError, spawn_blocking};

use super::state::State;
use super::{Desk, ElicitationEvent, Inner, action};
use crate::driver::now;
use crate::event::ClientEvent;
use crate::spawning::spawn;

/// What is to be done for the inbox, in order.
pub(super) struct InboxQueue {
    /// Tells the entries of this desk from those of all others, in this process and elsewhere: each desk counts its questions
    /// from the start.
    desk_id: String,
    todo: VecDeque<Todo>,
    /// Open questions that are in the inbox.
    published: HashMap<Arc<str>, QuestionId>,
    /// Ends that the store did not take.
    untold: VecDeque<(Instant, Ended)>,
    runs: bool,
    max_untold: usize,
    max_tellings: u32,
}

enum Todo {
    Publish(QuestionId, InboxEntry),
    /// Until when an answer is of use; `None` is for ever.
    Prolong(Arc<str>, Option<Instant>),
    End(Ended),
}

/// An end that the store is to hear of.
#[derive(Clone)]
struct Ended {
    entry: Arc<str>,
    end: End,
    /// How often the store did not take it.
    refusals: u32,
}

/// What the store is at, for whoever must go on when the task ends in the middle.
enum Doing {
    Publish(QuestionId, Arc<str>),
    End(Ended),
}

/// The longest pause before an end is told again, in powers of two of a second: some 17 minutes.
const LONGEST_PAUSE_POWER: u32 = 10;

impl InboxQueue {
    pub(super) fn new(max_untold: usize, max_tellings: u32) -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self {
            desk_id: format!("{:016x}{:016x}", random(), random()),
            todo: VecDeque::new(),
            published: HashMap::new(),
            untold: VecDeque::new(),
            runs: false,
            max_untold,
            max_tellings,
        }
    }

    /// A question ended that is in the inbox, or on its way there.
    pub(super) fn ended(&mut self, question: QuestionId, entry: Arc<str>, end: End) {
        self.published.remove(&entry);
        self.todo.retain(|todo| !matches!(todo, Todo::Prolong(waiting, _) if *waiting == entry));
        let before = self.todo.len();
        self.todo.retain(|todo| !matches!(todo, Todo::Publish(waiting, _) if *waiting == question));
        // What never got there needs no end there.
        if self.todo.len() == before {
            self.todo.push_back(Todo::End(Ended { entry, end, refusals: 0 }));
        }
    }

    /// A published question has another time from now on.
    pub(super) fn prolonged(&mut self, entry: Arc<str>, until: Option<Instant>) {
        self.todo.retain(|todo| !matches!(todo, Todo::Prolong(waiting, _) if *waiting == entry));
        self.todo.push_back(Todo::Prolong(entry, until));
    }

    fn forget_end(&mut self, entry: &str) {
        self.todo.retain(|todo| !matches!(todo, Todo::End(ended) if *ended.entry == *entry));
    }

    /// The store did not take an end.
    fn not_told(&mut self, now: Instant, mut ended: Ended) {
        ended.refusals += 1;
        if ended.refusals >= self.max_tellings || self.max_untold == 0 {
            return;
        }
        let pause = Duration::from_secs(1 << ended.refusals.min(LONGEST_PAUSE_POWER));
        if self.untold.len() >= self.max_untold {
            self.untold.pop_front();
        }
        self.untold.extend(now.checked_add(pause).map(|due| (due, ended)));
    }

    /// Ends that the store did not take, and is to be told of again now.
    fn tell_again(&mut self, now: Instant) {
        let due = |(due, _): &(Instant, Ended)| *due <= now;
        self.todo.extend(
            self.untold.iter().filter(|untold| due(untold)).map(|(_, ended)| Todo::End(ended.clone())),
        );
        self.untold.retain(|untold| !due(untold));
    }

    fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.published.is_empty() && self.untold.is_empty()
    }
}

impl State {
    /// Puts a question on its way into the inbox.
    pub(super) fn publish(&mut self, now: Instant, question: QuestionId) {
        let Some(open) = self.open.get_mut(&question) else { return };
        let id: Arc<str> = format!("{}-{question}", self.inbox.desk_id).into();
        let mut entry = InboxEntry::new(&*id, &*open.server, open.arriving.revision, &open.request);
        entry.expires_after =
            self.machine.question_deadline(question).map(|at| at.saturating_duration_since(now));
        open.entry = Some(id);
        self.inbox.todo.push_back(Todo::Publish(question, entry));
    }

    /// The store did not take a question, or it is not known whether it did: then it is to hear of its end.
    fn not_published(&mut self, now: Instant, question: QuestionId, id: &Arc<str>, is_unknown: bool) {
        self.inbox.forget_end(id);
        if let Some(open) = self.open.get_mut(&question) {
            open.entry = None;
            let event = ElicitationEvent::NotPublished { question };
            self.remark(question, ClientEvent::Elicitation(event));
            // In the table, so it is open.
            let _ = self.machine.fail(now, question);
        }
        if is_unknown {
            let ended = Ended { entry: Arc::clone(id), end: End::Failed, refusals: 0 };
            self.inbox.todo.push_back(Todo::End(ended));
        }
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
        let (inner, runtime_id) = (Arc::clone(&self.inner), runtime.id());
        let clerk = Clerk { inner, inbox, runtime: runtime_id, doing: None, stopped: false };
        spawn(&runtime, clerk.run());
    }
}

/// The task. Whatever ends it, the next thing to do starts another one.
struct Clerk {
    inner: Arc<Inner>,
    inbox: Arc<dyn Inbox>,
    runtime: Id,
    doing: Option<Doing>,
    stopped: bool,
}

/// Why the store did not do something.
enum Failure {
    Refused(InboxError),
    /// It panicked, or the runtime ended: what it did is not known.
    Unknown(JoinError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Unknown(error) if error.is_panic() => f.write_str("the inbox panicked"),
            Self::Unknown(_) => f.write_str("the inbox operation was aborted"),
        }
    }
}

/// One call of the store, of one type whatever it is for. The answers that others gave are its result, where it fetches them.
type Act = Box<dyn FnOnce(&dyn Inbox) -> Result<Vec<InboxAnswer>, InboxError> + Send>;

/// The result of a call that fetches none.
const fn done((): ()) -> Vec<InboxAnswer> {
    Vec::new()
}

/// What the task does next.
enum Next {
    Collect,
    Do(Todo),
    Wait,
}

impl Clerk {
    async fn run(mut self) {
        let desk = Desk { inner: Arc::clone(&self.inner) };
        let interval = desk.inner.config.inbox_poll_interval;
        let mut next_look = tokio::time::Instant::now().checked_add(interval);
        // Looks and what else is to be done take turns: no server is so busy that answers to another one's are not fetched.
        let mut looked = false;
        loop {
            let next = {
                let mut state = desk.lock();
                if state.inbox.is_idle() {
                    state.inbox.runs = false;
                    self.stopped = true;
                    return;
                }
                let now = now();
                state.inbox.tell_again(now);
                if !looked && next_look.is_some_and(|at| at.into_std() <= now) {
                    Next::Collect
                } else {
                    state.inbox.todo.pop_front().map_or(Next::Wait, Next::Do)
                }
            };
            looked = matches!(next, Next::Collect);
            match next {
                Next::Collect => {
                    self.collect(&desk).await;
                    next_look = tokio::time::Instant::now().checked_add(interval);
                }
                Next::Do(Todo::Publish(question, entry)) => self.publish(&desk, question, entry).await,
                Next::Do(Todo::Prolong(entry, until)) => {
                    let after = until.map(|until| until.saturating_duration_since(now()));
                    if let Err(error) =
                        self.call(Box::new(move |inbox| inbox.set_expiry(&entry, after).map(done))).await
                    {
                        tracing::debug!(%error, "the inbox failed to record the deadline of a question");
                    }
                }
                Next::Do(Todo::End(ended)) => self.end(&desk, ended).await,
                Next::Wait => {
                    let look = async {
                        match next_look {
                            Some(at) => tokio::time::sleep_until(at).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        () = desk.inner.inbox.notified() => {}
                        () = look => {}
                    }
                }
            }
        }
    }

    async fn end(&mut self, desk: &Desk, ended: Ended) {
        self.doing = Some(Doing::End(ended.clone()));
        let Ended { entry, end, .. } = ended.clone();
        let tell = move |inbox: &dyn Inbox| match action(end) {
            Some(action) => inbox.acknowledge(&entry, action),
            None => inbox.fail(&entry, end),
        };
        let told = self.call(Box::new(move |inbox| tell(inbox).map(done))).await;
        self.doing = None;
        if let Err(error) = told {
            tracing::debug!(%error, "the inbox failed to record the end of a question");
            desk.lock().inbox.not_told(now(), ended);
        }
    }

    async fn publish(&mut self, desk: &Desk, question: QuestionId, entry: InboxEntry) {
        let id: Arc<str> = entry.id.as_str().into();
        self.doing = Some(Doing::Publish(question, Arc::clone(&id)));
        let published = self.call(Box::new(move |inbox| inbox.publish(&entry).map(done))).await;
        self.doing = None;
        match published {
            Ok(_) => {
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
                tracing::debug!(%error, "the inbox failed to store a question");
                desk.with(|state, now| {
                    let is_unknown = matches!(error, Failure::Unknown(_));
                    state.not_published(now, question, &id, is_unknown);
                });
            }
        }
    }

    /// Takes the answers that others gave to what is open here. Those to entries of others are left to them.
    async fn collect(&self, desk: &Desk) {
        let open: Vec<Arc<str>> = desk.lock().inbox.published.keys().cloned().collect();
        if open.is_empty() {
            return;
        }
        let fetch = move |inbox: &dyn Inbox| {
            let ids: Vec<&str> = open.iter().map(|id| &**id).collect();
            inbox.answers(&ids)
        };
        let answers = match self.call(Box::new(fetch)).await {
            Ok(answers) => answers,
            Err(error) => return tracing::debug!(%error, "the inbox could not be read"),
        };
        for given in answers {
            let question = desk.lock().inbox.published.get(given.id.as_str()).copied();
            // Answers to what is not open any more come too late.
            let Some(question) = question else { continue };
            if let Err(Misuse::InvalidAnswer(error)) = desk.respond(question, given.answer) {
                let reason = error.to_string();
                let refuse = move |inbox: &dyn Inbox| inbox.refuse(&given.id, &reason).map(done);
                let refused = self.call(Box::new(refuse)).await;
                if let Err(error) = refused {
                    tracing::debug!(%error, "the inbox failed to reopen a question");
                }
            }
        }
    }

    /// Calls the store on a thread that may block.
    async fn call(&self, act: Act) -> Result<Vec<InboxAnswer>, Failure> {
        let inbox = Arc::clone(&self.inbox);
        let outcome = spawn_blocking(move || act(&*inbox)).await;
        outcome.map_err(Failure::Unknown)?.map_err(Failure::Refused)
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        let desk = Desk { inner: Arc::clone(&self.inner) };
        let doing = self.doing.take();
        desk.with(|state, now| {
            match doing {
                Some(Doing::Publish(question, id)) => state.not_published(now, question, &id, true),
                Some(Doing::End(ended)) => state.inbox.todo.push_front(Todo::End(ended)),
                None => {}
            }
            state.inbox.runs = false;
            // Where it panicked its runtime goes on.
            if !std::thread::panicking() {
                state.strand(self.runtime);
            }
        });
    }
}
