//! The client's side: connects to one misbehaving server, calls, and compares each ending with the table.

use std::fmt::Debug;
use std::future::{Future, IntoFuture};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mcp_client::model::{ProtocolVersion, SubscriptionFilter};
use mcp_client::transport::http::{HttpLimits, HttpTimeouts};
use mcp_client::transport::stdio::{CloseWaits, LineLimits};
use mcp_client::{
    Change, Client, ElicitRequest, ElicitResult, ElicitationContext, Endpoint, Error, ErrorKind, HttpServer,
    Mode, StdioServer,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::behaviour::{Behaviour, Expect, Launch, On, Outcome, Speaks, Told, Transport};
use crate::http_peer::{self, Offences, SESSION};
use crate::met::{Met, VARIABLE};
use crate::server::{AIMED, OTHER};

/// The deadline of whatever must end in time out. Before it, the call must have left, on however busy a machine.
const SHORT: Duration = Duration::from_millis(1500);
/// The deadline of everything else. What ends by it has not ended by itself, on however busy a machine.
const LONG: Duration = Duration::from_secs(30);
/// What a step may take beyond its own deadline.
const GRACE: Duration = Duration::from_secs(20);
/// The largest message that is taken; so that what is oversized need not be large.
pub(crate) const MAX_MESSAGE: usize = 512 * 1024;

/// The longest error: both attempts of a connect, each with 2 KiB of standard error of which every byte is escaped.
const MAX_SHOWN: usize = 24 * 1024;

/// What went wrong with a behaviour.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) hung: Vec<String>,
    pub(crate) lost: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

impl Findings {
    pub(crate) const fn is_empty(&self) -> bool {
        self.hung.is_empty() && self.lost.is_empty() && self.wrong.is_empty()
    }
}

pub(crate) async fn visit(behaviour: &Behaviour) -> Findings {
    let mut findings = Findings::default();
    let server = match endpoint(behaviour).await {
        Ok(server) => server,
        Err(why) => {
            findings.wrong.push(why);
            return findings;
        }
    };
    let (offences, met) = (server.offences.clone(), server.met.clone());
    go_through(behaviour, server, &met, &mut findings).await;
    let offences = offences.lock().unwrap_or_else(PoisonError::into_inner);
    findings.wrong.extend(offences.iter().map(|what| format!("the client sent {what}")));
    let missing = met.missing(&behaviour.rules).into_iter();
    findings.wrong.extend(missing.map(|on| format!("what the server does on {on} never came to pass")));
    met.forget();
    findings
}

async fn go_through(behaviour: &Behaviour, server: Server, met: &Met, findings: &mut Findings) {
    let expect = &behaviour.expect;
    let builder = Client::builder("hostile", "1")
        .initialize_timeout(limit(&expect.connect))
        // Of a subscription: every call has its own.
        .request_timeout(limit(&expect.aimed))
        .server_request_timeout(SHORT)
        .mode(match behaviour.speaks {
            Speaks::Legacy => Mode::Auto,
            Speaks::Modern => Mode::Pinned(ProtocolVersion::LATEST),
        })
        .on_elicitation(accept);
    let Some(connected) = findings.step("connect", builder.connect(server.endpoint)).await else {
        return;
    };
    let client = match connected {
        Ok(client) => {
            check(&mut findings.wrong, "connect", &Ok(()), &expect.connect);
            client
        }
        Err(error) => {
            check(&mut findings.wrong, "connect", &Err::<(), _>(error), &expect.connect);
            return;
        }
    };

    let other = client.call_tool(OTHER, json!({})).timeout(LONG).into_future();
    let other = async { timeout(LONG + GRACE, other).await };
    let deadline = limit(&expect.aimed);
    let aimed = async {
        let progress = |_| {};
        match behaviour.aim {
            On::List => {
                let list = client.list_tools().timeout(deadline).max_pages(20).all();
                timeout(deadline + GRACE, list).await.map(|list| (list.map(drop), None))
            }
            On::Listen => timeout(2 * (LONG + GRACE), listen(&client, deadline, behaviour.told)).await,
            _ => {
                let call = client.call_tool(AIMED, json!({})).timeout(deadline).on_progress(progress);
                timeout(deadline + GRACE, call.into_future()).await.map(|call| (call.map(drop), None))
            }
        }
    };
    // In this order, so that the other call is under way when the fault comes.
    let (other, aimed) = tokio::join!(other, aimed);
    match aimed {
        Ok((aimed, told)) => {
            findings.wrong.extend(told);
            check(&mut findings.wrong, "the call", &aimed, &expect.aimed);
            check_outcome(&mut findings.wrong, behaviour, &aimed);
        }
        Err(_) => findings.hung.push("the call".to_owned()),
    }
    match other {
        Ok(other) => check(&mut findings.lost, "the other call", &other, &expect.other),
        Err(_) => findings.hung.push("the other call".to_owned()),
    }
    let after = client.call_tool("after", json!({})).timeout(limit(&expect.after)).into_future();
    if let Some(after) = findings.step("the call after", after).await {
        check(&mut findings.lost, "the call after", &after, &expect.after);
    }
    if behaviour.rules.iter().any(|rule| matches!(rule.on, On::Cancelled | On::Get)) {
        // Nothing here waits for these, which may come last.
        let came = async {
            while !met.missing(&behaviour.rules).is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        // What does not come at all is found when all is over.
        let _ = timeout(LONG, came).await;
    }
    if findings.step("close", client.close()).await.is_some()
        && let Some(late) = findings.step("a call on the closed client", client.ping().into_future()).await
    {
        let closed = Outcome::fails(ErrorKind::Closed);
        check(&mut findings.wrong, "a call on the closed client", &late, &closed);
    }
}

/// Subscribes within `deadline`, and looks at what is told then. Gives how it ended, and what was told amiss.
async fn listen(client: &Client, deadline: Duration, expected: Told) -> (Result<(), Error>, Option<String>) {
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    wanted.resource_subscriptions = Some(vec!["a:b".to_owned()]);
    let subscribed = timeout(deadline + GRACE, client.subscription(wanted)).await;
    let mut subscription = match subscribed {
        Ok(Ok(subscription)) => subscription,
        Ok(Err(error)) => return (Err(error), None),
        Err(_) => return (Ok(()), Some(format!("no subscription and no error within {deadline:?}"))),
    };
    let patience = if expected == Told::Nothing { SHORT } else { LONG };
    let telling = async {
        loop {
            match subscription.next().await {
                Ok(Some(Change::Interrupted)) => {}
                told => return told,
            }
        }
    };
    let told = match timeout(patience, telling).await {
        Ok(Err(error)) => return (Err(error), None),
        Ok(Ok(None)) => Told::End,
        Ok(Ok(Some(Change::Restored))) => Told::Restored,
        Ok(Ok(Some(_))) => Told::Change,
        Err(_) => Told::Nothing,
    };
    let amiss = (told != expected).then(|| format!("{told:?} was told where {expected:?} was due"));
    (Ok(()), amiss)
}

impl Findings {
    /// Awaits something that has its own bound below this one.
    async fn step<F: Future>(&mut self, name: &str, step: F) -> Option<F::Output> {
        match timeout(LONG + GRACE, step).await {
            Ok(output) => Some(output),
            Err(_) => {
                self.hung.push(name.to_owned());
                None
            }
        }
    }
}

/// Compares an ending with the table, and holds every error to the rules of all errors.
fn check<T: Debug>(into: &mut Vec<String>, what: &str, ending: &Result<T, Error>, expected: &Outcome) {
    let error = match ending {
        Ok(_) if expected.ok => return,
        Ok(_) => return into.push(format!("{what}: success where {expected} was due")),
        Err(error) => error,
    };
    if !expected.kinds.contains(&error.kind()) {
        into.push(format!("{what}: {} where {expected} was due: {error}", error.kind().as_str()));
    }
    let (shown, debug) = (error.to_string(), format!("{error:?}"));
    if shown.chars().any(char::is_control) || shown.contains('\u{202e}') {
        into.push(format!("{what}: the error shows control characters: {shown:?}"));
    }
    if shown.len() > MAX_SHOWN {
        into.push(format!("{what}: the error is {} bytes long", shown.len()));
    }
    if shown.contains(SESSION) || debug.contains(SESSION) {
        into.push(format!("{what}: the error shows the session id"));
    }
}

/// Where the call left and nothing came back, the error must say that nobody knows what became of it.
fn check_outcome(into: &mut Vec<String>, behaviour: &Behaviour, ending: &Result<(), Error>) {
    let Err(error) = ending else { return };
    // A server that refused the call, or died before it, did not carry it out.
    let left = matches!(behaviour.rules.as_slice(), [rule, ..] if rule.on == behaviour.aim && rule.times > 1);
    let unanswered = matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Closed);
    if left && unanswered && !error.outcome_unknown() {
        into.push(format!("the call: it may have been carried out, and the error does not say so: {error}"));
    }
}

/// How long something may take that must end so.
fn limit(outcome: &Outcome) -> Duration {
    if outcome.is_timeout() { SHORT } else { LONG }
}

/// Accepts every question with its defaults.
async fn accept(request: ElicitRequest, _: ElicitationContext) -> ElicitResult {
    match request {
        ElicitRequest::Form(form) => ElicitResult::accept(form.defaults()),
        ElicitRequest::Url(_) => ElicitResult::accept_url(),
        _ => ElicitResult::accept(Map::<String, Value>::new()),
    }
}

/// A server to connect to. Over HTTP it runs here until this is dropped.
struct Server {
    endpoint: Endpoint,
    /// None over stdio, where nobody looks for them.
    offences: Offences,
    met: Met,
    _running: Option<Running>,
}

struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn endpoint(behaviour: &Behaviour) -> Result<Server, String> {
    match behaviour.transport {
        Transport::Stdio => {
            let met = Met::in_file().map_err(|error| format!("no file for what was met: {error}"))?;
            let endpoint = stdio(behaviour, &met)?.into();
            Ok(Server { endpoint, offences: Offences::default(), met, _running: None })
        }
        Transport::Http => {
            let listener =
                TcpListener::bind("127.0.0.1:0").await.map_err(|error| format!("no port: {error}"))?;
            let address = listener.local_addr().map_err(|error| format!("no address: {error}"))?;
            let (offences, met) = (Offences::default(), Met::here());
            let (rules, noted) = (behaviour.rules.clone(), Arc::clone(&offences));
            let serving = http_peer::serve(listener, behaviour.speaks, rules, noted, met.clone());
            let running = Some(Running(tokio::spawn(serving)));
            let server =
                HttpServer::new(&format!("http://{address}/mcp")).map_err(|error| error.to_string())?;
            let server = server.limits(http_limits()).timeouts(http_timeouts(&behaviour.expect));
            Ok(Server { endpoint: server.into(), offences, met, _running: running })
        }
    }
}

fn http_limits() -> HttpLimits {
    let mut limits = HttpLimits::default();
    limits.max_body_bytes = MAX_MESSAGE;
    limits.max_event_bytes = MAX_MESSAGE;
    limits
}

/// Shorter than the defaults wherever a behaviour runs into them; longer where a busy machine would.
fn http_timeouts(expect: &Expect) -> HttpTimeouts {
    let mut timeouts = HttpTimeouts::default();
    timeouts.head = limit(&expect.connect);
    timeouts.message = LONG;
    timeouts.close = Duration::from_millis(400);
    timeouts.linger = Duration::from_millis(50);
    timeouts.reconnect_initial = Duration::from_millis(5);
    timeouts.reconnect_cap = Duration::from_millis(20);
    timeouts.retry_max = Duration::from_millis(200);
    timeouts
}

fn stdio(behaviour: &Behaviour, met: &Met) -> Result<StdioServer, String> {
    let own = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let table = behaviour.table.to_string();
    let peer = ["--peer", &table, &behaviour.name];
    let server = match &behaviour.launch {
        Launch::Itself => StdioServer::new(own).args(peer),
        Launch::NoFolder => StdioServer::new(own).args(peer).current_dir("/nonexistent/folder"),
        Launch::Program(path) => StdioServer::new(path),
        Launch::Shell(script) => StdioServer::new("sh").args(["-c", script]).arg(own).args(peer),
    };
    let server = met.path().into_iter().fold(server, |server, path| server.env(VARIABLE, path));
    let mut limits = LineLimits::default();
    limits.max_line_bytes = MAX_MESSAGE;
    let mut waits = CloseWaits::default();
    waits.flush = Duration::from_millis(200);
    waits.exit = Duration::from_millis(400);
    waits.terminate = Duration::from_millis(300);
    Ok(server.limits(limits).close_waits(waits))
}
