//! Runs the matrix: each behaviour on a runtime of its own, many at a time, with a watch outside of all of them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::behaviour::Behaviour;
use crate::visit::{Findings, visit};

/// How many at a time. Most of them wait most of the time.
const WORKERS: usize = 16;
/// What no visit takes, whatever it runs into: a runtime that does not come back is stuck in a loop.
const LIMIT: Duration = Duration::from_secs(360);

/// The counts of the last line.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    tried: usize,
    hung: usize,
    panicked: usize,
    lost: usize,
    wrong: usize,
}

impl Tally {
    pub(crate) const fn is_clean(&self) -> bool {
        self.hung == 0 && self.panicked == 0 && self.lost == 0 && self.wrong == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, hung, panicked, lost, wrong } = self;
        write!(
            f,
            "{tried} tried, {hung} hung, {panicked} panicked, {lost} lost another call, {wrong} wrong error"
        )
    }
}

type Queue = Arc<Mutex<VecDeque<(usize, Behaviour)>>>;
type Panics = Arc<Mutex<Vec<(Option<usize>, String)>>>;

enum Report {
    Began(usize),
    Ended(usize, Findings),
}

thread_local! {
    /// The behaviour that this thread is at, for the panic hook.
    static AT: RefCell<Option<usize>> = const { RefCell::new(None) };
}

pub(crate) fn run(behaviours: Vec<Behaviour>, verbose: bool) -> Tally {
    let panics = catch_panics();
    let names: Vec<String> = behaviours.iter().map(|behaviour| behaviour.name.clone()).collect();
    let queue: Queue = Arc::new(Mutex::new(behaviours.into_iter().enumerate().collect()));
    let (sender, reports) = channel();
    for _ in 0..WORKERS.min(names.len()) {
        start_worker(&queue, &sender);
    }
    let mut results = watch(names.len(), &reports, || start_worker(&queue, &sender));

    let mut tally = Tally { tried: names.len(), ..Tally::default() };
    let panics = panics.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, why) in panics.iter().filter(|(at, _)| at.is_none()) {
        println!("outside of any behaviour: panicked: {why}");
        tally.panicked += 1;
    }
    for (index, name) in names.iter().enumerate() {
        let (findings, took) = results.remove(&index).unwrap_or_default();
        let panicked: Vec<&String> =
            panics.iter().filter(|(at, _)| *at == Some(index)).map(|(_, why)| why).collect();
        tally.hung += usize::from(!findings.hung.is_empty());
        tally.panicked += usize::from(!panicked.is_empty());
        tally.lost += usize::from(!findings.lost.is_empty());
        tally.wrong += usize::from(!findings.wrong.is_empty());
        if verbose && findings.is_empty() && panicked.is_empty() {
            println!("{name}: ok, {} ms", took.as_millis());
        }
        let all = [("hung", &findings.hung), ("lost", &findings.lost), ("wrong", &findings.wrong)];
        for (what, texts) in all {
            for text in texts {
                println!("{name}: {what}: {text}");
            }
        }
        for why in panicked {
            println!("{name}: panicked: {why}");
        }
    }
    tally
}

/// Collects what the workers report, until all is reported or given up.
fn watch(
    count: usize,
    reports: &Receiver<Report>,
    mut replace: impl FnMut(),
) -> HashMap<usize, (Findings, Duration)> {
    let mut running: HashMap<usize, Instant> = HashMap::new();
    let mut results: HashMap<usize, (Findings, Duration)> = HashMap::new();
    while results.len() < count {
        match reports.recv_timeout(Duration::from_millis(500)) {
            Ok(Report::Began(index)) => {
                running.insert(index, Instant::now());
            }
            // One that was given up and ends all the same stays given up.
            Ok(Report::Ended(index, findings)) => {
                if let Some(began) = running.remove(&index) {
                    results.insert(index, (findings, began.elapsed()));
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let late: Vec<usize> =
            running.iter().filter(|(_, began)| began.elapsed() > LIMIT).map(|(index, _)| *index).collect();
        for index in late {
            running.remove(&index);
            let findings = Findings {
                hung: vec![format!("not back after {} s", LIMIT.as_secs())],
                ..Findings::default()
            };
            results.insert(index, (findings, LIMIT));
            replace();
        }
    }
    results
}

fn start_worker(queue: &Queue, reports: &Sender<Report>) {
    let (queue, reports) = (Arc::clone(queue), reports.clone());
    thread::spawn(move || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((index, behaviour)) = next else { return };
            AT.with_borrow_mut(|at| *at = Some(index));
            let _ = reports.send(Report::Began(index));
            // A panic of the visit itself was noted by the hook.
            let findings = panic::catch_unwind(|| alone(&behaviour)).unwrap_or_default();
            let _ = reports.send(Report::Ended(index, findings));
        }
    });
}

/// Visits one server in a runtime that serves nothing else. Dropping it ends every task that is left.
fn alone(behaviour: &Behaviour) -> Findings {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(visit(behaviour)),
        Err(error) => {
            Findings { wrong: vec![format!("there is no runtime: {error}")], ..Findings::default() }
        }
    }
}

/// Notes every panic, also those that a runtime would catch in silence.
fn catch_panics() -> Panics {
    let panics = Panics::default();
    let noted = Arc::clone(&panics);
    panic::set_hook(Box::new(move |info| {
        let at = AT.try_with(|at| *at.borrow()).ok().flatten();
        noted.lock().unwrap_or_else(PoisonError::into_inner).push((at, info.to_string().replace('\n', " ")));
    }));
    panics
}
