//! The client's side: workers on each way to a server, and somebody who watches.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::{
    Change, Client, ElicitRequest, ElicitResult, ElicitationContext, Endpoint, Error, ErrorKind, HttpServer,
    Mode, StdioServer,
};
use serde_json::json;

use crate::count::{Count, Era, Transport, Way, add_one};
use crate::measure::{Holds, Series};
use crate::replies::Dice;
use crate::report::report;

const WORKERS: u64 = 8;
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// A call that is not over then hangs: a modern one has the time of two requests, and that of a question between them.
const HANGS_AFTER: Duration = Duration::from_secs(5);
/// How long what a closed connection held may take to be gone.
const SETTLE: Duration = Duration::from_secs(10);
/// The pause between two calls of a worker, at most. The run is about what stays behind, not about load.
const MAX_PAUSE_US: u64 = 20_000;
/// The pause before somebody subscribes again whose subscription has ended.
const BETWEEN_SUBSCRIPTIONS: Duration = Duration::from_millis(50);

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
    let servers = Arc::new(Servers { program, url: server.url.clone() });
    let count = Arc::new(Count::default());
    count.count_panics();
    // Once each before anything is counted: what is made once for good (the runtime's own signal pipe) is no leak.
    for way in Way::ALL {
        visit_once(&servers, way, &count).await?;
    }
    let before =
        settled(Holds { descriptors: 0, tasks: 0, ..Holds::default() }, Duration::from_secs(1)).await;

    let loops = Way::ALL.map(|way| tokio::spawn(keep_busy(Arc::clone(&servers), way, Arc::clone(&count))));
    let seen = watch(time, &count).await;
    count.done.store(true, Ordering::Relaxed);
    for one in loops {
        one.await.map_err(|error| error.to_string())??;
    }
    let after = settled(before, SETTLE).await;
    Ok(report(&count, &seen, before, after))
}

/// Where the servers are.
struct Servers {
    program: PathBuf,
    url: String,
}

impl Servers {
    fn endpoint(&self, transport: Transport) -> Result<Endpoint, String> {
        match transport {
            Transport::Stdio => Ok(StdioServer::new(&self.program).args(["--serve", "stdio"]).into()),
            Transport::Http => {
                HttpServer::new(&self.url).map(Endpoint::from).map_err(|error| error.to_string())
            }
        }
    }
}

async fn connect(endpoint: Endpoint, way: Way, count: &Arc<Count>) -> Result<Client, Error> {
    let counting = Arc::clone(count);
    let handler = move |request: ElicitRequest, _: ElicitationContext| {
        add_one(&counting.lane(way).questions);
        async move {
            match request {
                ElicitRequest::Form(form) => ElicitResult::accept(form.defaults()),
                _ => ElicitResult::cancel(),
            }
        }
    };
    let mode = match way.era {
        Era::Legacy => Mode::Legacy,
        Era::Modern => Mode::Pinned(ProtocolVersion::V2026_07_28),
    };
    let builder = Client::builder("soak", env!("CARGO_PKG_VERSION")).mode(mode);
    builder.on_elicitation(handler).request_timeout(CALL_TIMEOUT).connect(endpoint).await
}

async fn visit_once(servers: &Servers, way: Way, count: &Arc<Count>) -> Result<(), String> {
    let endpoint = servers.endpoint(way.transport)?;
    let client = connect(endpoint, way, count).await.map_err(|error| format!("{}: {error}", way.name()))?;
    for size in [100, 10_000, 1_000_000] {
        if let Err(error) = client.call_tool("blob", json!({ "size": size })).await {
            count.error("warm-up", &error);
        }
    }
    client.close().await;
    Ok(())
}

/// Connects again and again until the time is over, with workers on each connection.
async fn keep_busy(servers: Arc<Servers>, way: Way, count: Arc<Count>) -> Result<(), String> {
    while !count.done.load(Ordering::Relaxed) {
        let client = match connect(servers.endpoint(way.transport)?, way, &count).await {
            Ok(client) => client,
            Err(error) => {
                count.error(way.name(), &error);
                continue;
            }
        };
        let number = add_one(&count.connections);
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let dice = Dice::new(number * 31 + worker * 7);
                tokio::spawn(work(way, client.clone(), dice, Arc::clone(&count)))
            })
            .collect();
        let listener =
            (way.era == Era::Modern).then(|| tokio::spawn(listen(way, client.clone(), Arc::clone(&count))));
        for worker in workers {
            worker.await.map_err(|error| format!("a worker panicked: {error}"))?;
        }
        // Half of the connections are closed under their subscription, and the others just dropped after it: all must leave nothing.
        if number.is_multiple_of(2) {
            client.close().await;
        } else if let Some(listener) = &listener {
            listener.abort();
        }
        drop(client);
        if let Some(listener) = listener {
            match listener.await {
                Err(error) if error.is_panic() => return Err(format!("a listener panicked: {error}")),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Calls until the connection ends, the time is over, or it has been enough for one connection.
async fn work(way: Way, client: Client, mut dice: Dice, count: Arc<Count>) {
    let lane = count.lane(way);
    for _ in 0..2000 {
        if count.done.load(Ordering::Relaxed) {
            return;
        }
        tokio::time::sleep(Duration::from_micros(dice.below(MAX_PAUSE_US))).await;
        add_one(&lane.calls);
        let Ok(outcome) = tokio::time::timeout(HANGS_AFTER, one_call(way, &client, &mut dice)).await else {
            add_one(&count.hung);
            // When and where, as the count alone leads nowhere.
            println!("a call over {} hangs, after {} calls", way.name(), count.calls());
            continue;
        };
        match outcome {
            Ok(was_asked) => {
                add_one(&lane.succeeded);
                if was_asked {
                    add_one(&lane.after_a_question);
                }
            }
            Err(error) => {
                count.error(way.name(), &error);
                if error.kind() == ErrorKind::Closed {
                    return;
                }
            }
        }
    }
}

/// Whether the server had asked something before it gave its result.
async fn one_call(way: Way, client: &Client, dice: &mut Dice) -> Result<bool, Error> {
    let size = match dice.below(100) {
        0 => 1_000_000,
        1..=20 => 10_000,
        _ => 100,
    };
    let call = client.call_tool("blob", json!({ "size": size }));
    let result = match dice.below(20) {
        0 => return client.list_tools().all().await.map(|_| false),
        // There is no ping in the modern era.
        1 if way.era == Era::Legacy => return client.ping().await.map(|_| false),
        1 => return client.request_raw("soak/anything", ()).await.map(|_| false),
        2 => call.on_progress(|_| {}).await?,
        3 => {
            // Given up in the middle, as users do.
            let patience = Duration::from_micros(dice.below(300));
            match tokio::time::timeout(patience, async { call.await }).await {
                Ok(outcome) => outcome?,
                Err(_) => return Ok(false),
            }
        }
        _ => call.await?,
    };
    Ok(result.structured_content.is_some())
}

/// Subscribes, again and again, until the connection ends.
async fn listen(way: Way, client: Client, count: Arc<Count>) {
    let lane = count.lane(way);
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    while !client.is_closed() {
        match client.subscription(wanted.clone()).await {
            Ok(mut subscription) => {
                add_one(&lane.subscriptions);
                loop {
                    match subscription.next().await {
                        Ok(Some(Change::List(_))) => drop(add_one(&lane.changes)),
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(error) => {
                            count.error(way.name(), &error);
                            break;
                        }
                    }
                }
            }
            Err(error) => count.error(way.name(), &error),
        }
        tokio::time::sleep(BETWEEN_SUBSCRIPTIONS).await;
    }
}

/// What the process held, from when it was warm.
pub(crate) struct Seen {
    pub(crate) resident: Series,
    pub(crate) heap: Series,
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
