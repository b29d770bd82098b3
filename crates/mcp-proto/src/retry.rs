//! Trying a call again that failed on its way.
//!
//! | what happened to the request | idempotent method | any other method |
//! |---|---|---|
//! | no byte of it left this machine | again | again |
//! | the connection broke under it | again | never: nobody knows whether it was carried out |
//! | status 429, 500, 502, 503, 504 | again | never |
//! | anything else: an answer of any kind, a timeout, a limit, another status | never | never |
//!
//! Idempotent by the protocol are the lists, `resources/read`, `completion/complete`, `server/discover`, `ping` and
//! `tasks/get`; never `tools/call`, whatever its annotations say, for they are the server's word. So is the handshake, which
//! does nothing at the server but open a session that nobody uses. It is the same call: it
//! keeps its deadline, what people answered on the way, and its one end. Each attempt that may have been seen has a new id.
//!
//! Nothing that the server writes makes a call be tried again or oftener. Its `Retry-After` only lengthens a wait, within
//! [`RetryConfig::longest_wait`].

use std::time::{Duration, Instant};

use mcp_model::methods;

use crate::call::{CallId, CallKind, CallOptions, Stage};
use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;
use crate::era::Wire;
use crate::error::CallError;
use crate::exchange_failure::ExchangeFailure;
use crate::phase::Phase;
use crate::shown_time::shown_time;
use crate::timers::Timer;

/// How often and how soon a call is retried where that is safe (HTTP only: a broken channel ends the connection).
///
/// | what happened to the request | idempotent method | any other method |
/// |---|---|---|
/// | no byte of it was sent | retried | retried |
/// | the connection broke | retried | never |
/// | status 429, 500, 502, 503, 504 | retried | never |
/// | anything else: an answer, a timeout, a limit, another status | never | never |
///
/// Idempotent are the lists, `resources/read`, `completion/complete`, `server/discover`, `ping`, `tasks/get` and the
/// handshake; never `tools/call`, whatever the annotations of the tool say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryConfig {
    /// Attempts of one call in all. Default 3: for a connection that was closed at the wrong moment and a proxy that restarts.
    /// 0 and 1: no retries.
    pub max_attempts: u32,
    /// The wait before the second attempt; it doubles with each further one, and is then reduced by jitter of up to a half.
    /// Default 250 ms.
    pub first_wait: Duration,
    /// The longest wait. Default 5 s. There is no retry if the server asks for more time, or if the wait would exceed the
    /// deadline of the call.
    pub longest_wait: Duration,
    /// Where the random part of each wait begins: it is between half of it and all of it, so that the calls of many
    /// clients do not come back together. Default 0; give each connection a number of its own (the facade puts a random one in place of 0).
    pub jitter_seed: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(5),
            jitter_seed: 0,
        }
    }
}

impl RetryConfig {
    /// No call is tried again.
    pub fn off() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    /// How often a call with these options may be tried again.
    pub(crate) const fn retries(&self, options: &CallOptions) -> u32 {
        if options.retry { self.max_attempts.saturating_sub(1) } else { 0 }
    }

    /// How long to wait before this retry, counted from 0. `random` decides where in its range.
    fn wait(&self, retry: u32, random: u64, asked: Option<Duration>) -> Option<Duration> {
        let doubled = self.first_wait.saturating_mul(1_u32.checked_shl(retry).unwrap_or(u32::MAX));
        let half = doubled.min(self.longest_wait) / 2;
        let part = u32::try_from(random >> 32).unwrap_or_default();
        let wait = half + half.mul_f64(f64::from(part) / f64::from(u32::MAX));
        let wait = asked.map_or(wait, |asked| wait.max(asked));
        (wait <= self.longest_wait).then_some(wait)
    }
}

impl ExchangeFailure {
    /// Whether a call may be made again after it.
    const fn allows(self, idempotent: bool) -> bool {
        match self {
            Self::NotSent => true,
            Self::ConnectionLost => idempotent,
            Self::Status { status, explained: false, .. } => {
                idempotent && matches!(status, 429 | 500 | 502 | 503 | 504)
            }
            Self::Other | Self::Refused | Self::SessionLost | Self::Status { .. } => false,
        }
    }

    const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => retry_after,
            _ => None,
        }
    }

    /// Why a call is tried again.
    fn describe(self) -> String {
        match self {
            Self::NotSent => "the server could not be reached".to_owned(),
            Self::Status { status, .. } => format!("the answer was status {status}"),
            _ => "the connection broke".to_owned(),
        }
    }
}

fn is_idempotent(method: &str) -> bool {
    matches!(
        method,
        methods::COMPLETION_COMPLETE
            | methods::PING
            | methods::PROMPTS_LIST
            | methods::RESOURCES_LIST
            | methods::RESOURCES_READ
            | methods::RESOURCES_TEMPLATES_LIST
            | methods::SERVER_DISCOVER
            | methods::TASKS_GET
            | methods::TOOLS_LIST
    )
}

impl Connection {
    /// The exchange of this call failed, and nothing else comes of that. Returns whether the call goes on: it waits, and its request
    /// is sent again. `false`: it must not be repeated, or not any more.
    pub(crate) fn retry(&mut self, now: Instant, call: CallId, failure: ExchangeFailure) -> bool {
        let Some(state) = self.calls.get(&call) else { return false };
        let shakes_hands = match self.phase {
            Phase::Probing(_) => state.kind == CallKind::Probe,
            Phase::Initializing(_) => state.kind == CallKind::Initialize,
            _ => false,
        };
        // What failed in the name of a call that waits for a session is the handshake of that: nothing of its own is on its way.
        if !shakes_hands && (self.usable().is_err() || self.phase.holds(call)) {
            return false;
        }
        let method = state.asked.as_ref().map(|asked| asked.method.as_str());
        let idempotent = shakes_hands || method.is_some_and(is_idempotent);
        let left_or_may = state.is_dispatched() || failure == ExchangeFailure::NotSent;
        let is_own = matches!(state.kind, CallKind::Restore | CallKind::Subscribe(_));
        let is_made_anew = match state.kind {
            CallKind::Ordinary => true,
            // As it was made, which is all that a legacy server needs.
            _ => shakes_hands || is_own && self.phase.modern().is_none(),
        };
        let under_way = is_made_anew && state.request().is_some() && left_or_may;
        // Once there is a task, the request under way is about it; that waits and asks again by itself.
        let allowed = under_way && !state.is_task() && failure.allows(idempotent);
        if !allowed || state.retries_left == 0 {
            return false;
        }
        let (deadline, left) = (state.deadline_without_questions(now), state.retries_left);
        let retry = self.config.retry.max_attempts.saturating_sub(1).saturating_sub(left);
        let random = self.random();
        let Some(wait) = self.config.retry.wait(retry, random, failure.retry_after()) else { return false };
        let Some(at) = now.checked_add(wait) else { return false };
        if deadline.is_some_and(|deadline| deadline <= at) {
            return false;
        }
        self.resume_deadline(now, call);
        let Some(state) = self.calls.get_mut(&call) else { return false };
        state.retries_left = left - 1;
        let is_made_anew = state.asked.is_some() || shakes_hands;
        let Some(request) = state.request_mut() else { return false };
        if is_made_anew {
            // What was sent may still be answered, and that answer is for nobody.
            self.wire.remove(&request.id);
            state.stage = Stage::Retrying(at);
        } else {
            // Nobody has seen it, so it will be the same message.
            (request.dispatched, request.leaves_at) = (false, Some(at));
        }
        self.arm(Some(at), Timer::Retry(call));
        let (why, wait) = (failure.describe(), shown_time(wait));
        self.diagnose(DiagnosticKind::CallRetried, format!("{why}; tried again in {wait:?}"));
        true
    }

    /// Whether what is needed to make the request anew is kept for a legacy call.
    pub(crate) fn may_be_made_anew(&self, method: &str, options: &CallOptions) -> bool {
        self.config.wire == Wire::Exchanges && self.config.retry.retries(options) > 0 && is_idempotent(method)
    }

    /// The wait is over.
    pub(crate) fn repeat(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        if state.kind.is_handshake() {
            return self.shake_hands_again(now, call);
        }
        let kind = state.kind;
        let is_as_it_was = state.request_mut().map(|request| request.leaves_at = None).is_some();
        match kind {
            // It is asked for anew when there is a session.
            CallKind::Subscribe(listen) if !self.is_ready() => {
                drop(self.remove_call(call));
                self.renew_for(now, listen);
                return;
            }
            // Each session has its own.
            CallKind::Restore if !self.is_ready() || self.is_of_older_session(call) => {
                return drop(self.remove_call(call));
            }
            _ => {}
        }
        if is_as_it_was {
            return if self.is_ready() { self.send_held(call) } else { self.hold(now, call) };
        }
        let Some(state) = self.remove_call(call) else { return };
        self.resend(now, call, state);
    }

    /// Sends the request of the handshake that failed on its way once more, under a new id.
    fn shake_hands_again(&mut self, now: Instant, call: CallId) {
        let Some(state) = self.remove_call(call) else { return };
        let sent = match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Probing(handshake) => {
                let version = handshake.version;
                self.probe(now, call, handshake, version).is_ok()
            }
            Phase::Initializing(handshake) => {
                let version = handshake.version;
                self.initialize(now, call, handshake, version).is_ok()
            }
            other => {
                self.phase = other;
                false
            }
        };
        match self.calls.get_mut(&call).filter(|_| sent) {
            Some(fresh) => fresh.retries_left = state.retries_left,
            None => self.end_call(now, call, &state, Err(CallError::Closed { dispatched: false })),
        }
    }

    /// The next of the numbers that begin at the seed (SplitMix64): for waits, where all that matters is that they differ.
    fn random(&mut self) -> u64 {
        let seed = &mut self.config.retry.jitter_seed;
        *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 from the seed 0, as its reference implementation has them.
    #[test]
    fn waits_differ_by_the_numbers_of_splitmix64() {
        let mut config = crate::Config::new(mcp_model::Implementation::new("tests", "1.0"));
        config.retry.jitter_seed = 0;
        let mut core = Connection::new(config);
        let numbers = [core.random(), core.random(), core.random()];
        assert_eq!(numbers, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
    }

    /// protocol:H-38, seed:3.4: half of the wait is certain, the other half is chance, and it doubles up to its limit.
    #[test]
    fn waits_double_within_their_range() {
        let config = RetryConfig::default();
        let check = |retry: u32, random: u64, asked: Option<u64>, expected: Option<u64>| {
            let waited = config.wait(retry, random, asked.map(Duration::from_millis));
            assert_eq!(waited, expected.map(Duration::from_millis), "{retry} {random} {asked:?}");
        };
        for (retry, whole) in [(0, 250), (1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 5000), (40, 5000)] {
            check(retry, u64::MAX, None, Some(whole));
            check(retry, 0, None, Some(whole / 2));
        }
        // The server may ask for more, up to the longest wait, and never for less.
        check(0, u64::MAX, Some(0), Some(250));
        check(0, 0, Some(1000), Some(1000));
        check(0, 0, Some(5000), Some(5000));
        check(0, 0, Some(5001), None);
        check(0, 0, Some(86_400_000), None);
    }
}
