//! Which servers are visited, how each is started, and what is done there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::visits;
use super::{Peer, Test, Transport};
use crate::Stop;
use crate::support::peers::{self, Node, Python};
use crate::support::process::{self, Output};

/// Ends long after the server does, if nobody ends it, and leaves a child beside the server.
#[cfg(unix)]
const WRAPPER: &str = r#"sleep 600 & "$@"; sleep 600"#;

pub(super) fn node(node: &Node) -> Result<Vec<Peer>, Stop> {
    let program = |path: &str, arguments: &[&str]| {
        let mut command = vec![text(&node.program)?, text(&node.file(path))?];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Ok::<_, Stop>(command)
    };
    let folder = peers::state("everything")?;
    let everything = "@modelcontextprotocol/server-everything/dist/index.js";
    let stdio = |name, command| Peer::new(name, Transport::Stdio, command, &folder);
    let http = |name, command, path| Peer { path, ..Peer::new(name, Transport::Http, command, &folder) };
    let old = "server-everything of 2024";
    let files = fresh("filesystem")?;
    let listed = program("@modelcontextprotocol/server-filesystem/dist/index.js", &[&text(&files)?])?;
    let memory = program("@modelcontextprotocol/server-memory/dist/index.js", &[])?;
    let mut all = vec![
        stdio("server-everything", program(everything, &["stdio"])?).visited(visits::everything()),
        http("server-everything", program(everything, &["streamableHttp"])?, "/mcp")
            .visited(visits::everything()),
        stdio(old, program("server-everything-2024/dist/index.js", &[])?).visited(visits::everything_2024()),
        http(old, program("server-everything-2024/dist/sse.js", &[])?, "/sse")
            .visited(visits::everything_2024()),
        Peer::new("server-filesystem", Transport::Stdio, listed, &files)
            .visited(visits::filesystem(&text(&files)?)),
        remembering("server-memory", memory.clone(), "memory")?,
    ];
    all.extend(node_launchers(memory)?);
    let server = peers::folder().join("servers/typescript_server.mjs");
    let names = ["TypeScript SDK", "TypeScript SDK, slow to start"];
    all.extend(same(names, &[text(&node.program)?, text(&server)?])?);
    Ok(all)
}

/// The same servers as users start them: by a package runner, which stays as the parent.
fn node_launchers(memory: Vec<String>) -> Result<Vec<Peer>, Stop> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let installed = text(&peers::folder())?;
    let files = fresh("filesystem-launched")?;
    let exec = ["npm", "exec", "--offline", "--no", "--prefix", &installed, "--", "mcp-server-filesystem"];
    let exec = [words(&exec), vec![text(&files)?]].concat();
    let npx = ["npx", "--offline", "--no-install", "--prefix", &installed, "mcp-server-memory"];
    let mut all = vec![
        remembering("server-memory by npx", words(&npx), "memory-npx")?,
        Peer::new("server-filesystem by npm exec", Transport::Stdio, exec, &files)
            .visited(visits::filesystem(&text(&files)?)),
    ];
    #[cfg(unix)]
    {
        let wrapped = [words(&["sh", "-c", WRAPPER, "wrapper"]), memory].concat();
        all.push(remembering("server-memory by a wrapper that stays", wrapped, "memory-wrapped")?);
    }
    Ok(all)
}

fn remembering(name: &'static str, command: Vec<String>, state: &str) -> Result<Peer, Stop> {
    let folder = fresh(state)?;
    let mut peer = Peer::new(name, Transport::Stdio, command, &folder).visited(visits::memory());
    peer.env.push(("MEMORY_FILE_PATH", text(&folder.join("memory.jsonl"))?));
    Ok(peer)
}

pub(super) fn python(python: &Python) -> Result<Vec<Peer>, Stop> {
    let repository = repository("git")?;
    let launched = self::repository("git-launched")?;
    let time = peers::state("time")?;
    let program = |name: &str, arguments: &[&str]| {
        let mut command = vec![text(&python.program(name))?];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Ok::<_, Stop>(command)
    };
    let stdio = |name, command, folder: &Path| Peer::new(name, Transport::Stdio, command, folder);
    let git = text(&repository)?;
    let module = ["-m", "mcp_server_git", "--repository", &text(&launched)?];
    let fastmcp = text(&peers::folder().join("servers/fastmcp_server.py"))?;
    let http = |name, transport, path| {
        let command = program("python", &[&fastmcp, transport])?;
        let peer = Peer { path, ..Peer::new(name, Transport::Http, command, &time) };
        Ok::<_, Stop>(peer.visited(visits::fastmcp(transport)))
    };
    let mut uvx = stdio("mcp-server-time by uvx", python.uvx("mcp-server-time")?, &time);
    uvx.env.push(("UV_CACHE_DIR", text(&python.uv_cache())?));
    let server = text(&peers::folder().join("servers/python_server.py"))?;
    let own = program("python", &["-W", "ignore::DeprecationWarning", &server])?;
    let mut all = vec![
        stdio("mcp-server-time", program("mcp-server-time", &[])?, &time).visited(visits::time()),
        stdio("mcp-server-git", program("mcp-server-git", &["--repository", &git])?, &repository)
            .visited(visits::git(&git)),
        uvx.visited(visits::time()),
        stdio("mcp-server-git by python -m", program("python", &module)?, &launched)
            .visited(visits::git(&text(&launched)?)),
        http("fastmcp", "http", "/mcp")?,
        http("fastmcp on http+sse", "sse", "/sse")?,
    ];
    all.extend(same(["Python SDK", "Python SDK, slow to start"], &own)?);
    Ok(all)
}

/// A server of ours in each era over each transport, and over stdio also behind a start that outlasts the client's patience
/// with its question for the era.
fn same(names: [&'static str; 2], own: &[String]) -> Result<Vec<Peer>, Stop> {
    let folder = peers::state("same")?;
    let mut all = Vec::new();
    for (era, version) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let command = |transport: &str| [own, &[transport.to_owned(), era.to_owned()]].concat();
        let peer = |name, transport, command| {
            let peer = Peer::new(name, transport, command, &folder);
            Peer { path: "/mcp", test: Test::Same(version), ..peer }
        };
        all.push(peer(names[0], Transport::Stdio, command("stdio")));
        all.push(peer(names[0], Transport::Http, command("http")));
        if cfg!(unix) {
            let slow = ["sh", "-c", r#"sleep 4; exec "$@""#, "slow"].map(str::to_owned);
            all.push(peer(names[1], Transport::Stdio, [&slow[..], &command("stdio")].concat()));
        }
    }
    Ok(all)
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
fn repository(name: &str) -> Result<PathBuf, Stop> {
    let folder = fresh(name)?;
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
    peers::text(path)
}
