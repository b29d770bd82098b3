//! The steps of ending a connection, as a state machine without I/O or clock.
//!
//! ```text
//!          begin              flushed or time            time (process)       time
//!  Open ─────────> Flushing ─────────────────> Waiting ───────────────> Terminating ──> Killing
//!    │                 │        CloseInput        │       Terminate          │    Kill     │
//!    │ ended           │ ended                    │ ended                    │ ended       │ ended or time
//!    └─────────────────┴──────────────────────────┴──────────┬───────────────┴─────────────┘
//!                                                            v      drained or time
//!                                                         Draining ─────────────────> Over
//! ```
//!
//! "Ended" is the exit of the process, or the end of the peer's output over a byte stream, which has no Terminating and no
//! Killing. The driver carries out each [`Step`] and calls back; after every input it drains [`Ladder::poll_step`], then
//! asks [`Ladder::poll_timeout`].

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{CloseStage, CloseWaits};

/// See the module's diagram.
#[derive(Debug)]
pub(crate) struct Ladder {
    waits: CloseWaits,
    process: bool,
    state: State,
    stage: CloseStage,
    began: Option<Instant>,
    deadline: Option<Instant>,
    steps: VecDeque<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Flushing,
    Waiting,
    Terminating,
    Killing,
    Draining,
    Over,
}

/// What the driver has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Drop what is still queued and close the peer's input.
    CloseInput,
    /// Ask the process group to end (SIGTERM).
    Terminate,
    /// End the process group (SIGKILL).
    Kill,
}

impl Ladder {
    /// A ladder for a process, or for a byte stream whose peer cannot be killed.
    pub(crate) fn new(waits: CloseWaits, process: bool) -> Self {
        Self {
            waits,
            process,
            state: State::Open,
            stage: CloseStage::Ended,
            began: None,
            deadline: None,
            steps: VecDeque::new(),
        }
    }

    /// Starts to close; later calls change nothing. `flush` is false when queued messages cannot arrive any more.
    pub(crate) fn begin(&mut self, now: Instant, flush: bool) {
        if self.state != State::Open {
            return;
        }
        self.began = Some(now);
        self.enter(State::Flushing, now, self.waits.flush);
        if !flush {
            self.handle_flushed(now);
        }
    }

    /// Everything queued is written, or never can be.
    pub(crate) fn handle_flushed(&mut self, now: Instant) {
        if self.state == State::Flushing {
            self.close_input(now);
        }
    }

    /// The process exited, or the byte stream's peer ended its side.
    pub(crate) fn handle_ended(&mut self, now: Instant) {
        self.stage = match self.state {
            State::Open | State::Flushing => CloseStage::Ended,
            State::Waiting => CloseStage::EndedOnInputEnd,
            State::Terminating => CloseStage::Terminated,
            State::Killing => CloseStage::Killed,
            State::Draining | State::Over => return,
        };
        self.began.get_or_insert(now);
        self.enter(State::Draining, now, self.waits.drain);
    }

    /// All output pipes are at their end.
    pub(crate) fn handle_drained(&mut self) {
        if self.state == State::Draining {
            self.finish();
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come; earlier calls change nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.state {
            State::Open | State::Over => self.deadline = None,
            State::Flushing => self.close_input(now),
            State::Waiting if self.process => {
                self.steps.push_back(Step::Terminate);
                self.enter(State::Terminating, now, self.waits.terminate);
            }
            State::Terminating => {
                self.steps.push_back(Step::Kill);
                self.enter(State::Killing, now, self.waits.kill);
            }
            State::Waiting | State::Killing => {
                self.stage = CloseStage::Abandoned;
                self.finish();
            }
            State::Draining => self.finish(),
        }
    }

    /// The next thing to do.
    pub(crate) fn poll_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(crate) fn is_flushing(&self) -> bool {
        self.state == State::Flushing
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.state == State::Draining
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The step at which the connection ended; meaningful when over.
    pub(crate) fn stage(&self) -> CloseStage {
        self.stage
    }

    /// Since closing began, or since the end that nobody asked for.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began))
    }

    fn close_input(&mut self, now: Instant) {
        self.steps.push_back(Step::CloseInput);
        self.enter(State::Waiting, now, self.waits.exit);
    }

    fn enter(&mut self, state: State, now: Instant, wait: Duration) {
        self.state = state;
        // A wait too long for the clock is no wait at all for a person; a day keeps the arithmetic defined.
        self.deadline = now.checked_add(wait).or_else(|| now.checked_add(Duration::from_secs(86_400)));
    }

    fn finish(&mut self) {
        self.state = State::Over;
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Bench {
        ladder: Ladder,
        start: Instant,
    }

    impl Bench {
        fn new(process: bool) -> Self {
            Self { ladder: Ladder::new(CloseWaits::default(), process), start: Instant::now() }
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn timeout_in(&self) -> Option<u128> {
            self.ladder.poll_timeout().map(|at| (at - self.start).as_millis())
        }

        fn steps(&mut self) -> Vec<Step> {
            std::iter::from_fn(|| self.ladder.poll_step()).collect()
        }
    }

    #[test]
    fn a_server_that_exits_on_end_of_input_never_sees_a_signal() {
        // protocol:T-13, seed:E30
        let mut bench = Bench::new(true);
        bench.ladder.begin(bench.at(0), true);
        assert_eq!(bench.timeout_in(), Some(500));
        bench.ladder.handle_flushed(bench.at(10));
        assert_eq!(bench.steps(), [Step::CloseInput]);
        assert_eq!(bench.timeout_in(), Some(2010));
        bench.ladder.handle_ended(bench.at(1900));
        assert_eq!(bench.steps(), []);
        assert!(bench.ladder.is_draining());
        bench.ladder.handle_drained();
        assert!(bench.ladder.is_over());
        assert_eq!(bench.ladder.stage(), CloseStage::EndedOnInputEnd);
        assert_eq!(bench.timeout_in(), None);
    }

    #[test]
    fn a_deaf_server_is_terminated_then_killed_then_given_up_in_bounded_time() {
        // protocol:T-13, field:FR-013
        let mut bench = Bench::new(true);
        bench.ladder.begin(bench.at(0), true);
        let mut seen = Vec::new();
        while let Some(at) = bench.ladder.poll_timeout() {
            bench.ladder.handle_timeout(at);
            seen.extend(bench.steps().into_iter().map(|step| (step, (at - bench.start).as_millis())));
        }
        assert_eq!(seen, [(Step::CloseInput, 500), (Step::Terminate, 2500), (Step::Kill, 4500)]);
        assert!(bench.ladder.is_over());
        assert_eq!(bench.ladder.stage(), CloseStage::Abandoned);
        assert_eq!(bench.ladder.elapsed(bench.at(6500)), 6 * SECOND + SECOND / 2);
        assert!(bench.ladder.elapsed(bench.at(6500)) <= CloseWaits::default().total());
    }

    #[test]
    fn each_stage_is_reported() {
        let check = |timeouts: usize, expected: CloseStage| {
            let mut bench = Bench::new(true);
            bench.ladder.begin(bench.at(0), true);
            let mut now = bench.at(0);
            for _ in 0..timeouts {
                now = bench.ladder.poll_timeout().unwrap();
                bench.ladder.handle_timeout(now);
            }
            bench.ladder.handle_ended(now);
            assert_eq!(bench.ladder.stage(), expected, "{timeouts}");
            assert!(bench.ladder.is_draining());
        };
        check(0, CloseStage::Ended);
        check(1, CloseStage::EndedOnInputEnd);
        check(2, CloseStage::Terminated);
        check(3, CloseStage::Killed);
    }

    #[test]
    fn an_unasked_end_needs_no_begin() {
        let mut bench = Bench::new(true);
        bench.ladder.handle_ended(bench.at(50));
        assert_eq!(bench.steps(), []);
        assert_eq!(bench.timeout_in(), Some(300));
        bench.ladder.begin(bench.at(60), true);
        assert!(bench.ladder.is_draining(), "a late begin does not restart the ladder");
        bench.ladder.handle_timeout(bench.at(300));
        assert!(bench.ladder.is_over());
        assert_eq!(bench.ladder.stage(), CloseStage::Ended);
    }

    #[test]
    fn a_byte_stream_is_never_signalled() {
        let mut bench = Bench::new(false);
        bench.ladder.begin(bench.at(0), false);
        assert_eq!(bench.steps(), [Step::CloseInput]);
        bench.ladder.handle_timeout(bench.at(2000));
        assert_eq!(bench.steps(), []);
        assert!(bench.ladder.is_over());
        assert_eq!(bench.ladder.stage(), CloseStage::Abandoned);
    }

    #[test]
    fn early_timeouts_and_repeated_begins_change_nothing() {
        let mut bench = Bench::new(true);
        bench.ladder.handle_timeout(bench.at(9999));
        assert!(bench.ladder.is_open());
        bench.ladder.begin(bench.at(0), true);
        bench.ladder.handle_timeout(bench.at(499));
        bench.ladder.begin(bench.at(400), false);
        assert!(bench.ladder.is_flushing());
        assert_eq!(bench.timeout_in(), Some(500));
    }

    #[test]
    fn an_endless_wait_does_not_overflow() {
        let mut ladder = Ladder::new(CloseWaits { flush: Duration::MAX, ..CloseWaits::default() }, true);
        ladder.begin(Instant::now(), true);
        assert!(ladder.poll_timeout().is_some());
        assert_eq!(CloseWaits { flush: Duration::MAX, ..CloseWaits::default() }.total(), Duration::MAX);
    }
}
