//! Counting as a task: answered at once with an id under which the result is to be had later, from any connection of this
//! process.
//!
//! Nothing runs meanwhile. How far a task has counted follows from the time that has passed.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::message::{INVALID_PARAMS, Refusal, UNAVAILABLE, with};
use crate::tools;

/// Tasks that are kept; the oldest goes first.
const TASKS_MAX: usize = 64;
const TTL: Duration = Duration::from_secs(600);
const POLL_INTERVAL_MS: u64 = 100;

static TASKS: LazyLock<Mutex<VecDeque<Counting>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Debug)]
struct Counting {
    id: String,
    to: u64,
    delay: Duration,
    begun: Instant,
    created: String,
    /// How far it had counted when it was cancelled.
    cancelled: Option<u64>,
}

/// Which of the two designs a task is told in: with or without `Ms` behind the members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Design {
    Extension,
    Core,
}

impl Counting {
    fn counted(&self) -> u64 {
        let steps = self.begun.elapsed().as_nanos().checked_div(self.delay.as_nanos());
        steps.map_or(self.to, |steps| u64::try_from(steps).unwrap_or(u64::MAX).min(self.to))
    }

    fn state(&self, design: Design) -> Value {
        let (status, counted) = match self.cancelled {
            Some(counted) => ("cancelled", counted),
            None if self.counted() == self.to => ("completed", self.to),
            None => ("working", self.counted()),
        };
        let state = json!({
            "taskId": self.id, "status": status, "statusMessage": format!("counted {counted} of {}", self.to),
            "createdAt": self.created, "lastUpdatedAt": iso_8601(SystemTime::now()),
        });
        let ttl = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
        match design {
            Design::Core => with(with(state, "ttl", ttl), "pollInterval", POLL_INTERVAL_MS),
            Design::Extension => {
                let state = with(with(state, "ttlMs", ttl), "pollIntervalMs", POLL_INTERVAL_MS);
                if status == "completed" { with(state, "result", self.result()) } else { state }
            }
        }
    }

    fn result(&self) -> Value {
        tools::counted(self.to)
    }
}

/// Begins to count, if this tool can be a task.
pub(crate) fn begin(params: &Value, design: Design) -> Option<Result<Value, Refusal>> {
    if params.get("name").and_then(Value::as_str) != Some("count") {
        return None;
    }
    let nothing = Map::new();
    let arguments = params.get("arguments").and_then(Value::as_object).unwrap_or(&nothing);
    // Wrong arguments are a result that a model can read, and that comes at once.
    let (to, delay) = tools::counting(arguments).ok()?;
    let id = match tools::random_hex() {
        Ok(id) => id,
        Err(why) => return Some(Err(Refusal::new(UNAVAILABLE, why))),
    };
    let (begun, created) = (Instant::now(), iso_8601(SystemTime::now()));
    let task = Counting { id, to, delay, begun, created, cancelled: None };
    let state = task.state(design);
    let mut tasks = lock();
    tasks.push_back(task);
    while tasks.len() > TASKS_MAX {
        tasks.pop_front();
    }
    Some(Ok(state))
}

pub(crate) fn state(params: &Value, design: Design) -> Result<Value, Refusal> {
    find(params, |task| task.state(design))
}

/// The result, and how long it is until then.
pub(crate) fn result(params: &Value) -> Result<(Value, Duration), Refusal> {
    find(params, |task| {
        let whole = task.delay.saturating_mul(u32::try_from(task.to).unwrap_or(u32::MAX));
        match task.cancelled {
            Some(counted) => (tools::counted(counted), Duration::ZERO),
            None => (task.result(), whole.saturating_sub(task.begun.elapsed())),
        }
    })
}

pub(crate) fn cancel(params: &Value, design: Design) -> Result<Value, Refusal> {
    find(params, |task| {
        let counted = task.counted();
        if counted < task.to {
            task.cancelled.get_or_insert(counted);
        } else if design == Design::Core {
            return Err(Refusal::new(INVALID_PARAMS, "this task is over already"));
        }
        Ok(task.state(design))
    })?
}

fn find<T>(params: &Value, read: impl FnOnce(&mut Counting) -> T) -> Result<T, Refusal> {
    let id = params.get("taskId").and_then(Value::as_str);
    let mut tasks = lock();
    tasks.retain(|task| task.begun.elapsed() < TTL);
    let task = tasks.iter_mut().find(|task| Some(task.id.as_str()) == id);
    task.map(read).ok_or_else(|| Refusal::new(INVALID_PARAMS, "there is no such task"))
}

fn lock() -> MutexGuard<'static, VecDeque<Counting>> {
    TASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time as text, in UTC. Days are counted in eras of 400 years that begin in March, behind the leap day.
fn iso_8601(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        let check = |seconds: u64, expected: &str| {
            assert_eq!(iso_8601(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        };
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_785_196_800, "2026-07-28T00:00:00Z");
    }
}
