//! The load: so many calls under way, until the time or the number is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Args, Caller, Op, process};

/// A task that saw so many errors gives up.
const MOST_ERRORS: u64 = 100;

/// What a load came to.
#[derive(Debug, Default)]
pub struct Measured {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// Of the calls that succeeded, in microseconds.
    pub(crate) latencies: Vec<u32>,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) resident_before_mb: f64,
}

/// Warms up for a tenth of the time, then measures.
pub async fn load<C: Caller>(args: &Args, caller: Arc<C>) -> Measured {
    let text: Arc<str> = if args.op == Op::Echo { echo_text(args.size) } else { String::new() }.into();
    let resident_before_mb = process::resident_mb();
    if args.calls.is_none() {
        run(args, &caller, &text, args.seconds / 10.0).await;
    }
    let mut measured = run(args, &caller, &text, args.seconds).await;
    measured.resident_before_mb = resident_before_mb;
    measured
}

fn echo_text(size: usize) -> String {
    let line = "The quick brown fox jumps over the lazy dog; pack my box with five jugs.\n";
    line.chars().cycle().take(size).collect()
}

async fn run<C: Caller>(args: &Args, caller: &Arc<C>, text: &Arc<str>, seconds: f64) -> Measured {
    let left = Arc::new(AtomicU64::new(args.calls.unwrap_or(u64::MAX)));
    let cpu = process::cpu();
    let start = Instant::now();
    let deadline = if args.calls.is_some() { None } else { Some(start + Duration::from_secs_f64(seconds)) };
    let tasks: Vec<_> = (0..args.in_flight)
        .map(|_| {
            let one = OneAtATime {
                caller: Arc::clone(caller),
                text: Arc::clone(text),
                left: Arc::clone(&left),
                op: args.op,
                size: args.size,
                deadline,
            };
            tokio::spawn(one.run())
        })
        .collect();
    let mut measured = Measured::default();
    for task in tasks {
        match task.await {
            Ok(part) => {
                measured.latencies.extend(part.latencies);
                measured.errors += part.errors;
                measured.first_error = measured.first_error.or(part.first_error);
            }
            Err(error) => {
                measured.errors += 1;
                measured.first_error.get_or_insert(error.to_string());
            }
        }
    }
    measured.wall = start.elapsed();
    measured.cpu = process::cpu().saturating_sub(cpu);
    measured.latencies.sort_unstable();
    measured
}

/// A task that makes one call after the other.
struct OneAtATime<C> {
    caller: Arc<C>,
    text: Arc<str>,
    left: Arc<AtomicU64>,
    op: Op,
    size: usize,
    deadline: Option<Instant>,
}

impl<C: Caller> OneAtATime<C> {
    async fn run(self) -> Measured {
        let mut measured = Measured::default();
        while self.goes_on() && measured.errors < MOST_ERRORS {
            let start = Instant::now();
            let wrong = match self.caller.call(self.op, self.size, &self.text).await {
                Ok(count) if count == self.expected() => None,
                Ok(count) => Some(format!("{count} came back instead of {}", self.expected())),
                Err(error) => Some(error),
            };
            match wrong {
                None => {
                    measured.latencies.push(u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX))
                }
                Some(why) => {
                    measured.errors += 1;
                    measured.first_error.get_or_insert(why);
                }
            }
        }
        measured
    }

    fn goes_on(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
            && self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }

    fn expected(&self) -> usize {
        match self.op {
            Op::Blob | Op::Echo | Op::List => self.size,
            Op::Struct | Op::StructRaw => 1,
        }
    }
}
