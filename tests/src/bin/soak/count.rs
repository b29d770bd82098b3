//! What happened: calls, errors, panics, on each way between the client and its servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_client::{Error, ErrorKind};

/// Of a hundred calls on each way so many succeed at least: one goes wrong, and takes those that are under way on its
/// connection along. Where fewer do, the faults are not what the run is about any more.
const MIN_SUCCESSES_IN_100: u64 = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// A transport and an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) transport: Transport,
    pub(crate) era: Era,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [
        Self { transport: Transport::Stdio, era: Era::Legacy },
        Self { transport: Transport::Stdio, era: Era::Modern },
        Self { transport: Transport::Http, era: Era::Legacy },
        Self { transport: Transport::Http, era: Era::Modern },
    ];

    pub(crate) const fn name(self) -> &'static str {
        match (self.transport, self.era) {
            (Transport::Stdio, Era::Legacy) => "stdio, legacy",
            (Transport::Stdio, Era::Modern) => "stdio, modern",
            (Transport::Http, Era::Legacy) => "http, legacy",
            (Transport::Http, Era::Modern) => "http, modern",
        }
    }

    const fn place(self) -> usize {
        (self.transport as usize) * 2 + self.era as usize
    }
}

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Count {
    lanes: [Lane; 4],
    pub(crate) hung: AtomicU64,
    pub(crate) connections: AtomicU64,
    panics: Arc<AtomicU64>,
    pub(crate) done: AtomicBool,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// What happened on one way.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) calls: AtomicU64,
    pub(crate) succeeded: AtomicU64,
    /// Of these, modern ones that were made once more with the answer to a question.
    pub(crate) after_a_question: AtomicU64,
    /// Questions that the handler answered.
    pub(crate) questions: AtomicU64,
    /// Changes that a modern subscription told of.
    pub(crate) changes: AtomicU64,
    /// Modern subscriptions that were granted.
    pub(crate) subscriptions: AtomicU64,
}

pub(crate) fn add_one(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Whether it is as it should be, and what that is about.
pub(crate) type Check = (bool, String);

impl Lane {
    /// Whether so many succeeded that the others are the faults' doing; and whether all that the era has was there.
    fn checks(&self, way: Way) -> Vec<Check> {
        let (name, calls, succeeded) = (way.name(), read(&self.calls), read(&self.succeeded));
        let is_good = calls > 0 && succeeded < calls && succeeded * 100 >= calls * MIN_SUCCESSES_IN_100;
        let had = format!("{name}: had traffic, and faults in it: {succeeded} of {calls} calls succeeded");
        let questions = read(&self.questions);
        let mut checks = vec![(is_good, had)];
        match way.era {
            Era::Legacy => {
                checks.push((questions > 0, format!("{name}: {questions} questions were answered")));
            }
            Era::Modern => {
                let after = read(&self.after_a_question);
                let asked = format!("{name}: {after} calls succeeded after one of {questions} questions");
                // Whatever goes wrong with the first request or with the second one leaves a question without a result.
                checks.push((after > 0 && after * 2 > questions, asked));
                let (subscriptions, changes) = (read(&self.subscriptions), read(&self.changes));
                let told = format!("{name}: {subscriptions} subscriptions told of {changes} changes");
                checks.push((subscriptions > 0 && changes > 0, told));
            }
        }
        checks
    }
}

impl Count {
    pub(crate) fn lane(&self, way: Way) -> &Lane {
        // As many as there are ways.
        #[expect(clippy::indexing_slicing, reason = "the place of a way is below four")]
        &self.lanes[way.place()]
    }

    pub(crate) fn calls(&self) -> u64 {
        self.lanes.iter().map(|lane| read(&lane.calls)).sum()
    }

    pub(crate) fn error(&self, place: &str, error: &Error) {
        let mut kind = format!("{place}: {:?}", error.kind());
        if let Some(object) = error.error_object().filter(|_| error.kind() == ErrorKind::Rpc) {
            kind += &format!(" {}", object.code.get());
        }
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// Counts every panic: in a task of the client it would only look like a connection that was lost.
    pub(crate) fn count_panics(&self) {
        let panics = Arc::clone(&self.panics);
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            add_one(&panics);
            print(info);
        }));
    }

    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks: Vec<Check> =
            Way::ALL.into_iter().flat_map(|way| self.lane(way).checks(way)).collect();
        let (hung, panics) = (read(&self.hung), read(&self.panics));
        checks.push((panics == 0, format!("{panics} panics")));
        checks.push((hung == 0, format!("{hung} calls hung")));
        // Every kind that the faults can cause; anything else is a mistake of the client, or of this program.
        let expected = ["Closed", "LimitExceeded", "PeerMisbehaved", "Rpc -32603", "Timeout", "Transport"];
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let odd: Vec<&String> =
            errors.keys().filter(|kind| !expected.iter().any(|known| kind.ends_with(known))).collect();
        checks.push((odd.is_empty(), format!("every failure is of a kind that the faults explain {odd:?}")));
        checks
    }

    pub(crate) fn print(&self) {
        println!("{} calls on {} connections", self.calls(), read(&self.connections));
        println!("errors by kind:");
        for (kind, times) in self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("  {times:8}  {kind}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_lane_of_its_own() {
        let count = Count::default();
        for (at, way) in Way::ALL.into_iter().enumerate() {
            assert_eq!(count.lane(way).calls.load(Ordering::Relaxed), 0, "{}", way.name());
            add_one(&count.lane(way).calls);
            assert_eq!(count.calls(), at as u64 + 1);
        }
    }

    /// The checks of a lane with these numbers that fail.
    fn failed(way: Way, set: impl FnOnce(&Lane)) -> usize {
        let lane = Lane::default();
        set(&lane);
        lane.checks(way).iter().filter(|(good, _)| !good).count()
    }

    #[test]
    fn a_lane_without_traffic_faults_questions_or_changes_is_not_good() {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        let usual = |lane: &Lane| {
            set(&lane.calls, 100);
            set(&lane.succeeded, 90);
            set(&lane.questions, 10);
            set(&lane.after_a_question, 9);
            set(&lane.subscriptions, 1);
            set(&lane.changes, 1);
        };
        for way in Way::ALL {
            assert_eq!(failed(way, usual), 0, "{}", way.name());
            let with = |change: fn(&Lane) -> &AtomicU64, value: u64| {
                failed(way, |lane| {
                    usual(lane);
                    set(change(lane), value);
                })
            };
            for (succeeded, expected) in [(79, 1), (80, 0), (99, 0), (100, 1), (0, 1)] {
                assert_eq!(with(|lane| &lane.succeeded, succeeded), expected, "{succeeded}");
            }
            let modern = usize::from(way.era == Era::Modern);
            assert_eq!(with(|lane| &lane.calls, 0), 1);
            assert_eq!(with(|lane| &lane.questions, 0), 1 - modern);
            assert_eq!(with(|lane| &lane.after_a_question, 0), modern);
            assert_eq!(with(|lane| &lane.after_a_question, 5), modern);
            assert_eq!(with(|lane| &lane.changes, 0), modern);
            assert_eq!(with(|lane| &lane.subscriptions, 0), modern);
        }
    }
}
