//! What an observer knows of the calls and questions of a connection, and what always holds of them.
//!
//! The fuzz target `session_ops` includes this file as well, so that random histories and random bytes hold the core to the same
//! rules. Whoever includes it calls the crate under test `proto`.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::proto::{CallId, Connection, Event, ServerRequestId};

#[derive(Default)]
pub(super) struct Ledger {
    /// Calls that were made, oldest first.
    pub(super) calls: Vec<CallId>,
    ended: HashSet<CallId>,
    pub(super) forgotten: HashSet<CallId>,
    /// Calls that are tasks.
    pub(super) tasks: HashSet<CallId>,
    /// Calls that were refused for URLs, and whether they still wait for them.
    urls: HashMap<CallId, bool>,
    /// Questions that were asked, oldest first.
    pub(super) questions: Vec<ServerRequestId>,
    gone: HashSet<ServerRequestId>,
}

impl Ledger {
    /// The call that was made so many calls before the newest.
    pub(super) fn call(&self, back: usize) -> Option<CallId> {
        self.calls.iter().rev().nth(back).copied()
    }

    /// The question that was asked so many questions before the newest.
    pub(super) fn question(&self, back: usize) -> Option<ServerRequestId> {
        self.questions.iter().rev().nth(back).copied()
    }

    pub(super) fn made(&mut self, call: CallId) {
        assert!(!self.calls.contains(&call), "a call id came twice");
        self.calls.push(call);
    }

    /// The driver forgets a call, if it is open.
    pub(super) fn forget(&mut self, core: &mut Connection, call: CallId) {
        if core.is_open(call) {
            core.forget(call);
            self.forgotten.insert(call);
        }
    }

    /// A call has ended, by an event or because the driver took its result by itself.
    pub(super) fn ended(&mut self, call: CallId) {
        assert!(self.calls.contains(&call), "a call that nobody made");
        assert!(!self.forgotten.contains(&call), "a forgotten call has no end");
        assert!(self.ended.insert(call), "a call ended twice");
    }

    /// The core took an answer to a question.
    pub(super) fn answered(&mut self, question: ServerRequestId) {
        assert!(self.gone.insert(question), "a question was answered twice");
    }

    /// The driver says how the URLs of a call went.
    pub(super) fn urls_went(&mut self, core: &mut Connection, now: Instant, call: CallId, done: bool) {
        let told = if done { core.handle_urls_done(now, call) } else { core.handle_urls_refused(now, call) };
        let waited = self.urls.get_mut(&call).map(std::mem::take);
        assert_eq!(told.is_ok(), waited == Some(true), "only a call that waits for URLs goes on");
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::CallEnded { call, .. } => {
                assert_ne!(
                    self.urls.get(call),
                    Some(&true),
                    "the end of the wait comes before that of the call"
                );
                self.ended(*call);
            }
            Event::Progress { call, .. } => assert!(!self.ended.contains(call), "progress after the end"),
            Event::ServerRequest(question) => {
                assert!(!self.questions.contains(&question.id), "a question id came twice");
                self.questions.push(question.id);
            }
            Event::ServerRequestEnded { request, .. } => {
                assert!(self.questions.contains(request), "a question that was never asked");
                assert!(self.gone.insert(*request), "a question ended twice");
            }
            Event::Task { call, .. } => {
                assert!(!self.ended.contains(call), "news of a task after its end");
                self.tasks.insert(*call);
            }
            Event::UrlsRequired(required) => {
                assert!(self.urls.insert(required.call, true).is_none(), "a call is refused for URLs once");
            }
            Event::UrlsRequiredEnded { call } => {
                assert_eq!(self.urls.insert(*call, false), Some(true), "a wait that had ended");
            }
            _ => {}
        }
    }

    /// How many calls are open, which the core must see alike.
    pub(super) fn open_calls(&self, core: &Connection) -> usize {
        for call in &self.calls {
            let has_ended = self.ended.contains(call);
            assert!(!(has_ended && self.forgotten.contains(call)), "a call has one end");
            assert_eq!(core.is_open(*call), !has_ended && !self.forgotten.contains(call));
        }
        self.calls.len() - self.ended.len() - self.forgotten.len()
    }

    pub(super) fn open_questions(&self) -> usize {
        self.questions.len() - self.gone.len()
    }
}
