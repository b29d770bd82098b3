//! A caller on top of the transport, as small as can be, and looks at the process table.

use std::{future::Future, path::PathBuf, process::Command, time::Duration};

use bytes::Bytes;
use mcp_jsonrpc::{Incoming, Message, RequestId, encode};
use mcp_transport::{
    Error, Received,
    stdio::{CloseWaits, LineReceiver, LineSender, StdioServer},
};
use serde_json::Value;

/// What waits longer hangs. Some tests move a GiB through a debug build, which takes a machine with other work a minute.
pub(super) const HANG: Duration = Duration::from_secs(300);

/// A wait that has to end by its time.
pub(super) const SOON: Duration = Duration::from_millis(150);

pub(super) fn peer() -> StdioServer {
    StdioServer::new(env!("CARGO_BIN_EXE_stdio-peer")).close_waits(patient())
}

pub(crate) fn sh(script: &str) -> StdioServer {
    StdioServer::new("sh").args(["-c", script]).close_waits(patient())
}

/// No wait ends before [`HANG`] does: what a test sees then happened by itself, however slowly the machine runs, and whatever
/// would sit through a wait hangs. The waits themselves are tested in virtual time, beside the ladder.
pub(crate) fn patient() -> CloseWaits {
    let mut waits = CloseWaits::default();
    for wait in [
        &mut waits.flush,
        &mut waits.exit,
        &mut waits.terminate,
        &mut waits.kill,
        &mut waits.drain,
        &mut waits.status,
    ] {
        *wait = 10 * HANG;
    }
    waits
}

/// For servers that do not heed the end of their input.
pub(super) fn deaf() -> CloseWaits {
    let mut waits = patient();
    waits.exit = SOON;
    waits
}

/// For servers that do not heed SIGTERM either.
pub(super) fn stubborn() -> CloseWaits {
    let mut waits = deaf();
    waits.terminate = SOON;
    waits
}

pub(super) struct Session {
    pub(super) sender: LineSender,
    pub(super) receiver: LineReceiver,
    next_id: i64,
    /// Excerpts of the first lines that were no message.
    pub(super) noise: Vec<String>,
    pub(super) oversized: Vec<u64>,
    /// Ids of answers nobody waited for.
    pub(super) strays: Vec<String>,
}

impl Session {
    pub(super) fn start(server: &StdioServer) -> Self {
        let (sender, receiver) = server.spawn().expect("the server starts").split();
        Self::over(sender, receiver)
    }

    pub(super) fn over(sender: LineSender, receiver: LineReceiver) -> Self {
        Self { sender, receiver, next_id: 0, noise: Vec::new(), oversized: Vec::new(), strays: Vec::new() }
    }

    pub(super) async fn call(&mut self, method: &str) -> Result<Value, Error> {
        let id = self.send(method).await?;
        within(self.answer(&id)).await
    }

    /// The result of a call that must succeed.
    pub(super) async fn ask(&mut self, method: &str) -> Value {
        match self.call(method).await {
            Ok(value) => value,
            other => panic!("{method}: {other:?}"),
        }
    }

    pub(super) async fn send(&mut self, method: &str) -> Result<RequestId, Error> {
        self.next_id += 1;
        let id = RequestId::Integer(self.next_id);
        within(self.sender.send(request(&id, method))).await?;
        Ok(id)
    }

    pub(super) async fn answer(&mut self, id: &RequestId) -> Result<Value, Error> {
        loop {
            match self.receiver.recv().await? {
                Received::Message(Incoming::Single(Message::Response(response))) => {
                    if response.id == *id {
                        return Ok(response.result.parse().expect("the result is JSON"));
                    }
                    self.strays.push(response.id.to_string());
                }
                Received::Message(Incoming::Batch(items)) => {
                    self.strays.extend(items.iter().map(|item| match item {
                        Ok(Message::Response(response)) => response.id.to_string(),
                        other => panic!("{other:?}"),
                    }));
                }
                Received::Invalid { excerpt, .. } => note(&mut self.noise, &excerpt),
                Received::OversizedStart { .. } => {}
                Received::Oversized { bytes, .. } => self.oversized.push(bytes),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The error at the end of the connection.
    pub(super) async fn end(&mut self) -> Error {
        within(async {
            loop {
                if let Err(error) = self.receiver.recv().await {
                    return error;
                }
            }
        })
        .await
    }

    pub(super) async fn pid(&mut self, method: &str) -> u32 {
        let value = self.ask(method).await;
        value.as_u64().and_then(|pid| pid.try_into().ok()).expect("a process id")
    }
}

/// A flood of noise is counted by the receiver; here its beginning is enough.
fn note(noise: &mut Vec<String>, excerpt: &str) {
    if noise.len() < 100 {
        noise.push(excerpt.to_owned());
    }
}

pub(super) fn request(id: &RequestId, method: &str) -> Bytes {
    let mut text = Vec::new();
    encode::request(&mut text, id, method, ()).expect("it can be encoded");
    text.into()
}

/// Fails instead of hanging.
pub(super) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("it hangs")
}

/// `R`, `S`, `T`, `Z` and so on; None when the process is gone.
pub(super) fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Waits until there is no process of this id and no zombie of it either.
pub(super) async fn gone(pid: u32) {
    within(async {
        while state_of(pid).is_some() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(super) async fn state_becomes(pid: u32, state: char) {
    within(async {
        while state_of(pid) != Some(state) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(super) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill {name} {pid}");
}

pub(super) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the system has /proc").count()
}

/// Children of this process, zombies included.
pub(crate) fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("the system has /proc");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(&me)
    })
    .collect()
}

/// The largest this process has been, in bytes.
pub(super) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the system has /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024
}

/// Runs a test in a process of its own, where nothing else opens files, starts children or takes memory.
///
/// `name` is the test's full name; the test must call this first and return when it gives false.
pub(crate) fn is_own_process(name: &str) -> bool {
    const MARK: &str = "MCP_TESTS_OWN_PROCESS";
    if std::env::var_os(MARK).is_some_and(|value| value == name) {
        return true;
    }
    let exe = std::env::current_exe().expect("the test knows its program");
    let output =
        Command::new(exe).args([name, "--exact", "--nocapture"]).env(MARK, name).output().expect("it runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    print_figures(&text);
    false
}

#[expect(clippy::print_stdout, reason = "measured figures are shown by `--nocapture`")]
fn print_figures(text: &str) {
    text.lines().filter(|line| line.starts_with("figure:")).for_each(|line| println!("{line}"));
}

#[expect(clippy::print_stdout, reason = "measured figures are shown by `--nocapture`")]
pub(super) fn figure(text: &str) {
    println!("figure: {text}");
}

/// A new folder for one test, removed with the value.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-stdio-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Self(path)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// A file with this text and mode.
    pub(super) fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the file can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode can be set");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
