//! Servers that other people wrote, visited with the `connect` example as anybody would use it: from its command line, checking
//! the JSON lines it prints.

mod catalog;
mod left;
mod same;
mod transcript;
mod visits;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use left::Mark;
use transcript::Transcript;
use visits::Visit;

use crate::Outcome;
use crate::support::args::Args;
use crate::support::cargo;
use crate::support::interrupt::interrupted;
use crate::support::peers;
use crate::support::process::{self, Background, End, Output};
use crate::support::tally::Tally;

/// Every step has its own deadline inside; this one is for a program that hangs.
const VISIT_LIMIT: Duration = Duration::from_secs(300);
/// The deadline of each step, where the visit is not about deadlines.
const STEP_SECONDS: &str = "60";
/// How long a server may take to listen. Node on a busy machine needs seconds.
const LISTEN_LIMIT: Duration = Duration::from_secs(60);
/// How many ports a server is offered: somebody else may take one between our look and its start.
const PORTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Http,
    Stdio,
}

/// One server over one transport.
struct Peer {
    name: &'static str,
    transport: Transport,
    /// Over stdio the client starts it; over HTTP it gets a port in `PORT`.
    command: Vec<String>,
    /// Over HTTP, where on that port it serves.
    path: &'static str,
    env: Vec<(&'static str, String)>,
    /// The client's working folder, which is also the root it offers.
    folder: PathBuf,
    test: Test,
}

/// What is done at a server.
enum Test {
    /// The one program that visits all servers which do the same things, and the revision that this one speaks.
    Same(&'static str),
    /// Runs of `connect`.
    Visits(Vec<Visit>),
}

impl Peer {
    fn new(name: &'static str, transport: Transport, command: Vec<String>, folder: &Path) -> Self {
        let (path, env, test) = ("", Vec::new(), Test::Visits(Vec::new()));
        Self { name, transport, command, path, env, folder: folder.to_path_buf(), test }
    }

    fn visited(mut self, visits: Vec<Visit>) -> Self {
        self.test = Test::Visits(visits);
        self
    }
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let transport = args.choice("--transport", &["stdio", "http"])?;
    args.finish()?;
    let mut peers = Vec::new();
    match peers::node() {
        Ok(node) => peers.extend(catalog::node(&node)?),
        Err(absent) => absent.or_skip("the servers on Node.js")?,
    }
    match peers::python() {
        Ok(python) => peers.extend(catalog::python(&python)?),
        Err(absent) => absent.or_skip("the servers on Python")?,
    }
    let wanted = |peer: &Peer| match transport.as_deref() {
        Some("http") => peer.transport == Transport::Http,
        Some(_) => peer.transport == Transport::Stdio,
        None => true,
    };
    peers.retain(wanted);
    let connect = cargo::build(&["-p", "mcp-client", "--example", "connect"])?;
    let same = cargo::build(&["-p", "mcp-tests", "--bin", "same-program"])?;
    let mut tally = Tally::default();
    for peer in &peers {
        let started = Instant::now();
        let (outcome, done) = match &peer.test {
            Test::Same(version) => {
                (same::visit(peer, &same, version), format!("the same program, {version}"))
            }
            Test::Visits(visits) => (visit(peer, visits, &connect), format!("{} visits", visits.len())),
        };
        let transport = if peer.transport == Transport::Http { "http" } else { "stdio" };
        let seconds = started.elapsed().as_secs_f64();
        tally.record(&format!("{} over {transport} ({done}, {seconds:.1} s)", peer.name), outcome);
    }
    Ok(tally.finish())
}

fn visit(peer: &Peer, visits: &[Visit], connect: &Path) -> Result<(), String> {
    let mut faults = Vec::new();
    let mark = Mark::new();
    let server = if peer.transport == Transport::Http { Some(serve(peer, &mark)?) } else { None };
    for visit in visits {
        if interrupted() {
            return Err("interrupted".into());
        }
        let mut command = Command::new(connect);
        command.current_dir(&peer.folder).arg("--json").args(&visit.options);
        if !visit.options.iter().any(|option| option == "--timeout") {
            command.args(["--timeout", STEP_SECONDS]);
        }
        match &server {
            Some((_, url)) => {
                command.args(["http", url]);
            }
            None => {
                for (name, value) in &peer.env {
                    command.args(["--env", &format!("{name}={value}")]);
                }
                command.args(["--env", mark.as_str(), "stdio"]).args(&peer.command);
            }
        }
        let finished = process::run(command, VISIT_LIMIT, Output::Capture);
        let outcome = match &finished.end {
            End::Exited(status) => Transcript::read(&finished.stdout).and_then(|transcript| {
                transcript.lifecycle(status.code())?;
                (visit.check)(&transcript)
            }),
            other => Err(other.to_string()),
        };
        // A server over stdio is gone with its client; nobody here ends it.
        let outcome = if server.is_none() { outcome.and(mark.is_gone()) } else { outcome };
        if let Err(why) = outcome {
            faults.push(format!("{}: {why}", visit.name));
            faults.push(process::tail(&finished.stdout, 12));
            faults.push(process::tail(&finished.stderr, 8));
        }
    }
    drop(server);
    if let Err(why) = mark.is_gone() {
        faults.push(why);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Starts a server and waits until it listens.
fn serve(peer: &Peer, mark: &Mark) -> Result<(Background, String), String> {
    let mut ended = String::new();
    for _ in 0..PORTS {
        match serve_on_a_port(peer, mark)? {
            Ok(served) => return Ok(served),
            Err(why) => ended = why,
        }
    }
    Err(ended)
}

/// The inner error is that of a server that ended before it listened, which a port that is taken makes it do.
fn serve_on_a_port(peer: &Peer, mark: &Mark) -> Result<Result<(Background, String), String>, String> {
    // Free now; the server asks for it a moment later.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))?
        .port();
    let (program, arguments) = peer.command.split_first().ok_or("the peer has no command")?;
    let mut command = Command::new(program);
    command.args(arguments).env("PORT", port.to_string()).current_dir(&peer.folder);
    command.envs(mark.as_str().split_once('='));
    let mut server =
        Background::start(command, Output::Capture).map_err(|error| format!("{program}: {error}"))?;
    let deadline = Instant::now() + LISTEN_LIMIT;
    loop {
        // In this order: where somebody else listens there, the server has ended.
        let listens = TcpStream::connect(("127.0.0.1", port)).is_ok();
        if let Some(status) = server.ended() {
            return Ok(Err(format!("the server ended: {status}\n{}", process::tail(&server.so_far(), 10))));
        }
        if listens {
            return Ok(Ok((server, format!("http://127.0.0.1:{port}{}", peer.path))));
        }
        if Instant::now() >= deadline || interrupted() {
            return Err(format!("the server does not listen\n{}", process::tail(&server.so_far(), 10)));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
