//! The requests of the server that ended a moment ago, so that a late copy of one asks nobody again.
//!
//! A legacy server must not use the id of a request twice in a session (25, "Requests"), so two requests that are alike in
//! id, method and params are one request that took two ways: a stream and its replay, or two streams. While the first is
//! open its id alone tells. Afterwards a request is a copy if all of this holds:
//!
//! - id, method and params are those of a request that ended, and the params are written alike byte for byte;
//! - it ended no longer ago than [`Limits::ended_request_memory`], and no more than [`Limits::max_ended_requests`] ended
//!   since;
//! - it cannot belong to a call that was made after that end: servers that count their ids anew with each call do exist, and
//!   what they ask in the next call is a question of its own, however alike it looks.
//!
//! A copy is dropped: the one answer serves both. To give the old answer again would need it kept, and it may hold what a
//! person typed; and it could lend one consent to two actions. Kept is a keyed hash, never what was asked or answered.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use mcp_jsonrpc::RequestId;

use crate::call::CallId;
use crate::era::Wire;
use crate::limits::Limits;

/// What ended lately, oldest first, bounded.
#[derive(Debug)]
pub(crate) struct EndedRequests {
    ended: VecDeque<Ended>,
    hasher: RandomState,
    capacity: usize,
    memory: Duration,
}

#[derive(Debug)]
struct Ended {
    id: RequestId,
    /// Of its method and params.
    content: Content,
    at: Instant,
    /// The first call that was made after it ended.
    next_call: CallId,
}

/// A keyed hash of what a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content(u64);

impl EndedRequests {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            ended: VecDeque::new(),
            hasher: RandomState::new(),
            capacity: limits.max_ended_requests,
            memory: limits.ended_request_memory,
        }
    }

    pub(crate) fn content(&self, method: &str, params: &str) -> Content {
        Content(self.hasher.hash_one((method, params)))
    }

    /// A request ended, however it did. `next_call`: the call that will be made next.
    pub(crate) fn remember(&mut self, now: Instant, id: RequestId, content: Content, next_call: CallId) {
        self.ended.push_back(Ended { id, content, at: now, next_call });
        let surplus = self.ended.len().saturating_sub(self.capacity);
        self.ended.drain(..surplus);
    }

    /// Whether this is a copy of a request that ended. `next_call`: as above; `related_call`: on whose stream it came.
    pub(crate) fn is_copy(
        &mut self,
        now: Instant,
        (wire, related_call, next_call): (Wire, Option<CallId>, CallId),
        id: &RequestId,
        method: &str,
        params: &str,
    ) -> bool {
        let memory = self.memory;
        self.ended.retain(|ended| now.saturating_duration_since(ended.at) <= memory);
        let belongs_to_newer = |ended: &Ended| match (related_call, wire) {
            (Some(call), _) => call >= ended.next_call,
            // On a pipe nothing says to which call it belongs, so it may be any.
            (None, Wire::Channel) => next_call > ended.next_call,
            // The standing stream carries what belongs to no call, or what also came on the stream of one.
            (None, Wire::Exchanges) => false,
        };
        self.ended.iter().any(|ended| {
            ended.id == *id && !belongs_to_newer(ended) && ended.content == self.content(method, params)
        })
    }

    /// Another session has ids of its own.
    pub(crate) fn clear(&mut self) {
        self.ended.clear();
    }
}
