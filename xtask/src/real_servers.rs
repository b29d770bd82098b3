//! Servers that other people wrote, visited with the `connect` example as anybody would use it: from its command line, checking
//! the JSON lines it prints.

mod transcript;
mod visits;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use transcript::Transcript;
use visits::Visit;

use crate::support::args::Args;
use crate::support::cargo;
use crate::support::interrupt::interrupted;
use crate::support::peers::{self, Node};
use crate::support::process::{self, Background, End, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop};

/// Every step has its own deadline inside; this one is for a program that hangs.
const VISIT_LIMIT: Duration = Duration::from_secs(120);
/// The deadline of each step, where the visit is not about deadlines.
const STEP_SECONDS: &str = "30";
/// How long a server may take to listen. Node on a busy machine needs seconds.
const LISTEN_LIMIT: Duration = Duration::from_secs(30);

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
    visits: Vec<Visit>,
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let transport = args.choice("--transport", &["stdio", "http"])?;
    args.finish()?;
    let mut peers = Vec::new();
    match peers::node() {
        Ok(node) => peers.extend(node_peers(&node)?),
        Err(absent) => absent.or_skip("the servers on Node.js")?,
    }
    match peers::python() {
        Ok(programs) => peers.extend(python_peers(&programs)?),
        Err(absent) => absent.or_skip("the servers on Python")?,
    }
    let wanted = |peer: &Peer| match transport.as_deref() {
        Some("http") => peer.transport == Transport::Http,
        Some(_) => peer.transport == Transport::Stdio,
        None => true,
    };
    peers.retain(wanted);
    let connect = cargo::build(&["-p", "mcp-client", "--example", "connect"])?;
    let mut tally = Tally::default();
    for peer in &peers {
        let started = Instant::now();
        let outcome = visit(peer, &connect);
        let transport = if peer.transport == Transport::Http { "http" } else { "stdio" };
        let (count, seconds) = (peer.visits.len(), started.elapsed().as_secs_f64());
        tally.record(&format!("{} over {transport} ({count} visits, {seconds:.1} s)", peer.name), outcome);
    }
    Ok(tally.finish())
}

fn node_peers(node: &Node) -> Result<Vec<Peer>, Stop> {
    let program = |path: &str, arguments: &[&str]| {
        let mut command = vec![text(&node.program)?, text(&node.file(path))?];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Ok::<_, Stop>(command)
    };
    let folder = peers::state("everything")?;
    let everything = "@modelcontextprotocol/server-everything/dist/index.js";
    let files = fresh("filesystem")?;
    let memory = fresh("memory")?;
    Ok(vec![
        Peer {
            name: "server-everything",
            transport: Transport::Stdio,
            command: program(everything, &["stdio"])?,
            path: "",
            env: Vec::new(),
            folder: folder.clone(),
            visits: visits::everything(),
        },
        Peer {
            name: "server-everything",
            transport: Transport::Http,
            command: program(everything, &["streamableHttp"])?,
            path: "/mcp",
            env: Vec::new(),
            folder: folder.clone(),
            visits: visits::everything(),
        },
        Peer {
            name: "server-everything of 2024",
            transport: Transport::Stdio,
            command: program("server-everything-2024/dist/index.js", &[])?,
            path: "",
            env: Vec::new(),
            folder: folder.clone(),
            visits: visits::everything_2024(),
        },
        Peer {
            name: "server-everything of 2024",
            transport: Transport::Http,
            command: program("server-everything-2024/dist/sse.js", &[])?,
            path: "/sse",
            env: Vec::new(),
            folder,
            visits: visits::everything_2024(),
        },
        Peer {
            name: "server-filesystem",
            transport: Transport::Stdio,
            command: program("@modelcontextprotocol/server-filesystem/dist/index.js", &[&text(&files)?])?,
            path: "",
            env: Vec::new(),
            visits: visits::filesystem(&text(&files)?),
            folder: files,
        },
        Peer {
            name: "server-memory",
            transport: Transport::Stdio,
            command: program("@modelcontextprotocol/server-memory/dist/index.js", &[])?,
            path: "",
            env: vec![("MEMORY_FILE_PATH", text(&memory.join("memory.jsonl"))?)],
            folder: memory,
            visits: visits::memory(),
        },
    ])
}

fn python_peers(programs: &Path) -> Result<Vec<Peer>, Stop> {
    let repository = repository()?;
    Ok(vec![
        Peer {
            name: "mcp-server-time",
            transport: Transport::Stdio,
            command: vec![text(&programs.join("mcp-server-time"))?],
            path: "",
            env: Vec::new(),
            folder: peers::state("time")?,
            visits: visits::time(),
        },
        Peer {
            name: "mcp-server-git",
            transport: Transport::Stdio,
            command: vec![text(&programs.join("mcp-server-git"))?, "--repository".into(), text(&repository)?],
            path: "",
            env: Vec::new(),
            visits: visits::git(&text(&repository)?),
            folder: repository,
        },
    ])
}

/// An empty folder for what a server keeps.
fn fresh(name: &str) -> Result<PathBuf, Stop> {
    let folder = peers::state(name)?;
    let made = fs::remove_dir_all(&folder).and_then(|()| fs::create_dir_all(&folder));
    // Servers compare paths after resolving links, so the path they are given has none.
    made.and_then(|()| folder.canonicalize())
        .map_err(|error| Stop::Broken(format!("{}: {error}", folder.display())))
}

/// A repository with one commit.
fn repository() -> Result<PathBuf, Stop> {
    let folder = fresh("git")?;
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"];
    for words in
        [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "--message", visits::COMMIT]]
    {
        let mut git = Command::new("git");
        // A hook sets these for its own repository.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        git.current_dir(&folder).args(identity).args(words);
        let finished = process::run(git, Duration::from_secs(60), Output::Capture);
        if !finished.end.is_success() {
            return Err(Stop::Broken(format!(
                "git {}: {}\n{}",
                words.join(" "),
                finished.end,
                finished.stderr
            )));
        }
    }
    Ok(folder)
}

fn text(path: &Path) -> Result<String, Stop> {
    path.to_str().map(str::to_owned).ok_or_else(|| Stop::Broken(format!("{} is not UTF-8", path.display())))
}

fn visit(peer: &Peer, connect: &Path) -> Result<(), String> {
    let mut faults = Vec::new();
    let server = if peer.transport == Transport::Http { Some(serve(peer)?) } else { None };
    for visit in &peer.visits {
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
                command.arg("stdio").args(&peer.command);
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
        if let Err(why) = outcome {
            faults.push(format!("{}: {why}", visit.name));
            faults.push(process::tail(&finished.stdout, 12));
            faults.push(process::tail(&finished.stderr, 8));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Starts a server and waits until it listens.
fn serve(peer: &Peer) -> Result<(Background, String), String> {
    // Free now; the server asks for it a moment later. Nobody else on this machine picks ports between.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))?
        .port();
    let (program, arguments) = peer.command.split_first().ok_or("the peer has no command")?;
    let mut command = Command::new(program);
    command.args(arguments).env("PORT", port.to_string()).current_dir(&peer.folder);
    let mut server =
        Background::start(command, Output::Capture).map_err(|error| format!("{program}: {error}"))?;
    let deadline = Instant::now() + LISTEN_LIMIT;
    loop {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok((server, format!("http://127.0.0.1:{port}{}", peer.path)));
        }
        if let Some(status) = server.ended() {
            return Err(format!("the server ended: {status}\n{}", process::tail(&server.so_far(), 10)));
        }
        if Instant::now() >= deadline || interrupted() {
            return Err(format!("the server does not listen\n{}", process::tail(&server.so_far(), 10)));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
