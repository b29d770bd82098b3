//! The client's side: workers on each transport, and somebody who watches.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_client::{
    Client, ElicitRequest, ElicitResult, ElicitationContext, Endpoint, Error, ErrorKind, HttpServer, Mode,
    StdioServer,
};
use serde_json::json;

use crate::measure::{Holds, Series};
use crate::replies::Dice;

const WORKERS: u64 = 8;
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// A call that is not over then hangs.
const HANGS_AFTER: Duration = Duration::from_secs(5);
/// How long what a closed connection held may take to be gone.
const SETTLE: Duration = Duration::from_secs(10);
/// The pause between two calls of a worker, at most. The run is about what stays behind, not about load.
const MAX_PAUSE_US: u64 = 10_000;
/// Memory may grow by so much an hour.
const MAX_SLOPE_MIB_PER_HOUR: f64 = 1.0;
/// A run shorter than this says little of a slope, because the heap is still finding its size; then only a gross leak counts.
const MIN_HOURS_FOR_SLOPE: f64 = 0.25;
const MAX_SHORT_GROWTH_MIB: f64 = 16.0;
/// A slope is taken from the lowest point of each stretch so long.
const STRETCH: Duration = Duration::from_secs(30);

/// Of a hundred calls over each transport so many succeed at least: one goes wrong, and takes those that are under way on its
/// connection along. Where fewer do, the faults are not what the run is about any more.
const MIN_SUCCESSES_IN_100: u64 = 80;

/// What happened so far.
#[derive(Debug, Default)]
struct Count {
    stdio: Lane,
    http: Lane,
    hung: AtomicU64,
    connections: AtomicU64,
    panics: Arc<AtomicU64>,
    done: AtomicBool,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// The calls over one transport.
#[derive(Debug, Default)]
struct Lane {
    calls: AtomicU64,
    succeeded: AtomicU64,
}

impl Lane {
    /// Whether so many succeeded that the others are the faults' doing, and how many that were.
    fn check(&self, transport: &str) -> (bool, String) {
        let (calls, succeeded) = (self.calls.load(Ordering::Relaxed), self.succeeded.load(Ordering::Relaxed));
        let is_good = calls > 0 && succeeded < calls && succeeded * 100 >= calls * MIN_SUCCESSES_IN_100;
        (
            is_good,
            format!("{transport} had traffic, and faults in it: {succeeded} of {calls} calls succeeded"),
        )
    }
}

impl Count {
    fn lane(&self, transport: &str) -> &Lane {
        if transport == "http" { &self.http } else { &self.stdio }
    }

    fn calls(&self) -> u64 {
        [&self.stdio, &self.http].iter().map(|lane| lane.calls.load(Ordering::Relaxed)).sum()
    }

    fn error(&self, transport: &str, error: &Error) {
        let kind = format!("{transport} {:?}", error.kind());
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// Counts every panic: in a task of the client it would only look like a connection that was lost.
    fn count_panics(&self) {
        let panics = Arc::clone(&self.panics);
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            panics.fetch_add(1, Ordering::Relaxed);
            print(info);
        }));
    }
}

/// A server in a process of its own, so that its memory is not taken for the client's.
struct HttpProcess {
    child: Child,
    url: String,
}

impl HttpProcess {
    fn start(program: &PathBuf) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(["--serve", "http"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut port = String::new();
        let stdout = child.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut port).map_err(|error| error.to_string())?;
        Ok(Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) })
    }
}

impl Drop for HttpProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn run(time: Duration) -> ExitCode {
    match try_run(time).await {
        Ok(code) => code,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn try_run(time: Duration) -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let server = HttpProcess::start(&program)?;
    let count = Arc::new(Count::default());
    count.count_panics();
    let stdio = program.clone();
    let url = server.url.clone();
    // Once each before anything is counted: what is made once for good (the runtime's own signal pipe) is no leak.
    visit_once(&|| Ok(stdio_server(&stdio)), &count).await?;
    visit_once(&|| http_server(&url), &count).await?;
    let before =
        settled(Holds { descriptors: 0, tasks: 0, ..Holds::default() }, Duration::from_secs(1)).await;

    let stdio = program.clone();
    let loops = [
        tokio::spawn(keep_busy("stdio", move || Ok(stdio_server(&stdio)), Arc::clone(&count))),
        tokio::spawn(keep_busy("http", move || http_server(&url), Arc::clone(&count))),
    ];
    let seen = watch(time, &count).await;
    count.done.store(true, Ordering::Relaxed);
    for one in loops {
        one.await.map_err(|error| error.to_string())??;
    }
    let after = settled(before, SETTLE).await;
    Ok(report(&count, &seen, before, after))
}

fn stdio_server(program: &PathBuf) -> Endpoint {
    StdioServer::new(program).args(["--serve", "stdio"]).into()
}

fn http_server(url: &str) -> Result<Endpoint, String> {
    HttpServer::new(url).map(Endpoint::from).map_err(|error| error.to_string())
}

async fn connect(endpoint: Endpoint) -> Result<Client, Error> {
    let handler = |request: ElicitRequest, _: ElicitationContext| async move {
        match request {
            ElicitRequest::Form(form) => ElicitResult::accept(form.defaults()),
            _ => ElicitResult::cancel(),
        }
    };
    let builder = Client::builder("soak", env!("CARGO_PKG_VERSION")).mode(Mode::Legacy);
    builder.on_elicitation(handler).request_timeout(CALL_TIMEOUT).connect(endpoint).await
}

async fn visit_once(endpoint: &impl Fn() -> Result<Endpoint, String>, count: &Count) -> Result<(), String> {
    let client = connect(endpoint()?).await.map_err(|error| error.to_string())?;
    for size in [100, 10_000, 1_000_000] {
        if let Err(error) = client.call_tool("blob", json!({ "size": size })).await {
            count.error("warm-up", &error);
        }
    }
    client.close().await;
    Ok(())
}

/// Connects again and again until the time is over, with workers on each connection.
async fn keep_busy(
    transport: &'static str,
    endpoint: impl Fn() -> Result<Endpoint, String>,
    count: Arc<Count>,
) -> Result<(), String> {
    while !count.done.load(Ordering::Relaxed) {
        let client = match connect(endpoint()?).await {
            Ok(client) => client,
            Err(error) => {
                count.error(transport, &error);
                continue;
            }
        };
        let number = count.connections.fetch_add(1, Ordering::Relaxed);
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                tokio::spawn(work(
                    transport,
                    client.clone(),
                    Dice::new(number * 31 + worker * 7),
                    Arc::clone(&count),
                ))
            })
            .collect();
        for worker in workers {
            worker.await.map_err(|error| format!("a worker panicked: {error}"))?;
        }
        // Half of the connections are just dropped: both ways must leave nothing behind.
        if number.is_multiple_of(2) {
            client.close().await;
        }
    }
    Ok(())
}

/// Calls until the connection ends, the time is over, or it has been enough for one connection.
async fn work(transport: &'static str, client: Client, mut dice: Dice, count: Arc<Count>) {
    for _ in 0..2000 {
        if count.done.load(Ordering::Relaxed) {
            return;
        }
        tokio::time::sleep(Duration::from_micros(dice.below(MAX_PAUSE_US))).await;
        let lane = count.lane(transport);
        lane.calls.fetch_add(1, Ordering::Relaxed);
        let Ok(outcome) = tokio::time::timeout(HANGS_AFTER, one_call(&client, &mut dice)).await else {
            count.hung.fetch_add(1, Ordering::Relaxed);
            // When and where, as the count alone leads nowhere.
            println!("a call over {transport} hangs, after {} calls", count.calls());
            continue;
        };
        match outcome {
            Ok(()) => drop(lane.succeeded.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                count.error(transport, &error);
                if error.kind() == ErrorKind::Closed {
                    return;
                }
            }
        }
    }
}

async fn one_call(client: &Client, dice: &mut Dice) -> Result<(), Error> {
    let size = match dice.below(100) {
        0 => 1_000_000,
        1..=20 => 10_000,
        _ => 100,
    };
    let call = client.call_tool("blob", json!({ "size": size }));
    match dice.below(20) {
        0 => client.list_tools().all().await.map(drop),
        1 => client.ping().await.map(drop),
        2 => call.on_progress(|_| {}).await.map(drop),
        3 => {
            // Given up in the middle, as users do.
            let patience = Duration::from_micros(dice.below(300));
            tokio::time::timeout(patience, async { call.await })
                .await
                .map_or(Ok(()), |outcome| outcome.map(drop))
        }
        _ => call.await.map(drop),
    }
}

/// What the process held, from when it was warm.
struct Seen {
    resident: Series,
    heap: Series,
}

/// Looks at the process every second.
async fn watch(time: Duration, count: &Count) -> Seen {
    let began = Instant::now();
    let warm = (time / 5).max(Duration::from_secs(10)).min(time / 2).min(Duration::from_secs(300));
    let (mut resident, mut heap) = (Series::new(began), Series::new(began));
    let mut said = 0;
    while began.elapsed() < time {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let holds = Holds::now();
        let now = Instant::now();
        resident.push(now, holds.resident_bytes);
        heap.push(now, holds.heap_bytes);
        let minutes = began.elapsed().as_secs() / 60;
        if minutes > said {
            said = minutes;
            println!(
                "{minutes:4} min  {:>10} calls  {:6.1} MiB, {:5.2} of them allocated  {:4} descriptors  {:4} tasks",
                count.calls(),
                to_mib(holds.resident_bytes),
                to_mib(holds.heap_bytes),
                holds.descriptors,
                holds.tasks
            );
        }
    }
    Seen { resident: resident.after(warm), heap: heap.after(warm) }
}

/// Waits until the process holds no more than `goal`, and gives what it holds then.
async fn settled(goal: Holds, limit: Duration) -> Holds {
    let began = Instant::now();
    loop {
        let holds = Holds::now();
        if (holds.descriptors <= goal.descriptors && holds.tasks <= goal.tasks) || began.elapsed() >= limit {
            return holds;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
fn to_mib(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

fn report(count: &Count, seen: &Seen, before: Holds, after: Holds) -> ExitCode {
    let calls = count.calls();
    let errors = count.errors.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{calls} calls on {} connections", count.connections.load(Ordering::Relaxed));
    println!("errors by kind:");
    for (kind, times) in errors.iter() {
        println!("  {times:8}  {kind}");
    }
    let resident = growth("memory", &seen.resident);
    let heap = growth("allocated", &seen.heap);
    println!(
        "descriptors: {} before, {} after; tasks: {} before, {} after",
        before.descriptors, after.descriptors, before.tasks, after.tasks
    );
    let (hung, panics) = (count.hung.load(Ordering::Relaxed), count.panics.load(Ordering::Relaxed));
    // Every kind that the faults can cause; anything else is a mistake of the client, or of this program.
    let expected = ["Closed", "LimitExceeded", "PeerMisbehaved", "Rpc", "Timeout", "Transport"];
    let odd: Vec<&String> =
        errors.keys().filter(|kind| !expected.iter().any(|known| kind.ends_with(known))).collect();
    let checks = [
        count.stdio.check("stdio"),
        count.http.check("http"),
        (panics == 0, format!("{panics} panics")),
        (hung == 0, format!("{hung} calls hung")),
        (odd.is_empty(), format!("every failure is of a kind that the faults explain {odd:?}")),
        resident,
        heap,
        (
            // None at all is a system that does not tell.
            after.descriptors > 0 && after.descriptors <= before.descriptors,
            "no descriptor is left".to_owned(),
        ),
        (after.tasks <= before.tasks, "no task is left".to_owned()),
    ];
    let failed = checks.iter().filter(|(good, _)| !good).count();
    for (good, what) in &checks {
        println!("{}  {what}", if *good { "ok  " } else { "FAIL" });
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints how something grew, and tells whether that is little enough.
fn growth(what: &str, series: &Series) -> (bool, String) {
    if series.peak_mib() <= 0.0 {
        return (false, format!("{what} can be told on this system"));
    }
    let is_long = series.hours() >= MIN_HOURS_FOR_SLOPE;
    let slope = if is_long { series.floors(STRETCH) } else { series.clone() }.slope_mib_per_hour();
    let growth = slope.map(|slope| slope * series.hours());
    println!(
        "{what}: peak {:.1} MiB, slope {:.2} MiB/h ({:.2} MiB over {:.2} h{})",
        series.peak_mib(),
        slope.unwrap_or_default(),
        growth.unwrap_or_default(),
        series.hours(),
        if is_long { ", from the lowest of each 30 s" } else { "" }
    );
    if is_long {
        let is_good = slope.is_some_and(|slope| slope <= MAX_SLOPE_MIB_PER_HOUR);
        return (is_good, format!("{what} grows by less than {MAX_SLOPE_MIB_PER_HOUR} MiB/h"));
    }
    let is_good = growth.is_some_and(|growth| growth <= MAX_SHORT_GROWTH_MIB);
    (
        is_good,
        format!("{what} grows by less than {MAX_SHORT_GROWTH_MIB} MiB; a longer run would tell a slope"),
    )
}
