//! Times several ways of doing the same side by side.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 11;
/// What is faster is repeated until it takes about this long, which the clock can tell apart.
const SLICE_SECONDS: f64 = 0.004;

/// Processor time of this thread so far, in seconds.
fn thread_cpu() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Ways of doing the same, by name.
#[derive(Default)]
pub(crate) struct Contest<'a> {
    entries: Vec<(&'static str, Box<dyn FnMut() + 'a>)>,
    once: bool,
}

impl<'a> Contest<'a> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn enter<R>(mut self, name: &'static str, mut work: impl FnMut() -> R + 'a) -> Self {
        let work = move || {
            black_box(work());
        };
        self.entries.push((name, Box::new(work)));
        self
    }

    /// Nothing is repeated within a round, however fast it is. What is repeated at once gets its memory back warm.
    pub(crate) fn once_a_round(mut self) -> Self {
        self.once = true;
        self
    }

    /// Runs all of them in each round, forwards and backwards in turn, so that none always follows the same other.
    pub(crate) fn run(mut self) -> Times {
        let mut repeats: Vec<usize> = self.entries.iter_mut().map(|(_, work)| repeats(work)).collect();
        if self.once {
            repeats.fill(1);
        }
        let mut seconds = vec![vec![0.0; ROUNDS]; self.entries.len()];
        for round in 0..ROUNDS {
            for place in 0..self.entries.len() {
                let index = if round % 2 == 0 { place } else { self.entries.len() - 1 - place };
                let (_, work) = &mut self.entries[index];
                let start = thread_cpu();
                for _ in 0..repeats[index] {
                    work();
                }
                seconds[index][round] = (thread_cpu() - start) / repeats[index] as f64;
            }
        }
        let times = Times { names: self.entries.iter().map(|(name, _)| *name).collect(), seconds };
        if std::env::var_os("BENCH_TIMES").is_some() {
            times.print();
        }
        times
    }
}

/// How often it fits into a slice; warms up on the way.
fn repeats(work: &mut dyn FnMut()) -> usize {
    let mut repeats = 1;
    loop {
        let start = thread_cpu();
        for _ in 0..repeats {
            work();
        }
        let seconds = thread_cpu() - start;
        if seconds >= SLICE_SECONDS / 4.0 {
            return ((SLICE_SECONDS / seconds * repeats as f64) as usize).max(1);
        }
        repeats *= 4;
    }
}

/// What each took in each round.
pub(crate) struct Times {
    names: Vec<&'static str>,
    seconds: Vec<Vec<f64>>,
}

impl Times {
    fn of(&self, name: &str) -> &[f64] {
        let index = self.names.iter().position(|entry| *entry == name);
        &self.seconds[index.unwrap_or_else(|| panic!("{name} did not take part"))]
    }

    fn print(&self) {
        let figures = self.names.iter().map(|name| format!("{name} {:.2} us", self.seconds(name) * 1e6));
        eprintln!("{}", figures.collect::<Vec<_>>().join(", "));
    }

    /// Seconds that one run takes, the median.
    pub(crate) fn seconds(&self, name: &str) -> f64 {
        median(self.of(name).to_vec())
    }

    /// The time of one over the time of another.
    pub(crate) fn ratio(&self, over: &str, under: &str) -> f64 {
        self.ratio_of_sum(&[over], under)
    }

    /// The time of several, one after the other, over the time of another.
    pub(crate) fn ratio_of_sum(&self, over: &[&str], under: &str) -> f64 {
        let under = self.of(under);
        let rounds =
            (0..ROUNDS).map(|round| over.iter().map(|name| self.of(name)[round]).sum::<f64>() / under[round]);
        median(rounds.collect())
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
