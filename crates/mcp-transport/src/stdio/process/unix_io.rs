//! A server process on Unix: its own process group, watched without being collected.
//!
//! The process id of a dead child stays taken until its parent collects it ("reaps" it), and with it the id of its process
//! group. So the order is: see the exit without collecting, kill what is left of the group, then collect. The other way round
//! the group's id could already belong to somebody else when it is killed. The guard's drop keeps the same order, also when
//! the runtime is shut down under it.
//!
//! What this cannot reach: a process that left the group (`setsid`, a daemon), and the whole tree when this process itself is
//! killed; the server then sees the end of its input.

use std::{
    fmt, io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    task::{Context, Poll},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{SignalKind, signal},
};

use super::{
    StderrDrain, environment_of,
    lookup::{file_of, find_program, no_such_file, said_of, spawn_error},
    unix_output::{HasEnded, Output},
};
use crate::{
    Error, ErrorKind, ProcessExit, SpawnFailure,
    stdio::{
        StdioServer,
        io::{KeptProcess, Spawned},
    },
};

/// `ENOEXEC`, the same number on every Unix.
const NO_EXEC: i32 = 8;

pub(crate) struct Process {
    child: Child,
    pid: Pid,
    /// Some child of this process exited; which one is then looked into.
    exits: tokio::signal::unix::Signal,
    /// It was looked at since `exits` was registered: from then on only a signal is a reason to look again.
    looked: bool,
    collected: bool,
    /// For its output.
    ended: HasEnded,
}

/// Starts the server; on error nothing is left running.
pub(crate) fn spawn(server: &StdioServer) -> Result<Spawned, Error> {
    let env = environment_of(server)?;
    let file = find_program(server, &env)?;
    if server.args.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
        return Err(Error::new(ErrorKind::Misuse, "an argument has a NUL in it"));
    }
    let mut command = Command::new(&file);
    command.arg0(&server.program).args(&server.args).env_clear().envs(env).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &server.current_dir {
        command.current_dir(dir);
    }
    let child = command.spawn().map_err(|error| explain(server, &file, error))?;
    let mut guard = Unwatched(Some(child));
    let wrapped = wrap(server, &mut guard);
    wrapped.map_err(|error| {
        spawn_error(SpawnFailure::Os, "the server process cannot be watched".to_owned()).with_source(error)
    })
}

fn wrap(server: &StdioServer, guard: &mut Unwatched) -> io::Result<Spawned> {
    let missing = || io::Error::other("a pipe of the child is missing");
    let child = guard.0.as_mut().ok_or_else(missing)?;
    let pid = pid_of(child).ok_or_else(missing)?;
    let input = ChildStdin::from_std(child.stdin.take().ok_or_else(missing)?)?;
    let output = ChildStdout::from_std(child.stdout.take().ok_or_else(missing)?)?;
    let stderr = ChildStderr::from_std(child.stderr.take().ok_or_else(missing)?)?;
    let exits = signal(SignalKind::child())?;
    let child = guard.0.take().ok_or_else(missing)?;
    let ended = HasEnded::default();
    Ok(Spawned {
        output: Box::new(Output::new(output, ended.clone())),
        input: Box::new(input),
        process: KeptProcess {
            process: Process { child, pid, exits, looked: false, collected: false, ended },
            stderr: StderrDrain::new(Box::new(stderr), server.stderr_limits, server.stderr_hook.clone()),
        },
    })
}

/// A child between its start and the moment a [`Process`] guards it.
struct Unwatched(Option<Child>);

impl Drop for Unwatched {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            if let Some(pid) = pid_of(&child) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = child.wait();
        }
    }
}

impl Process {
    /// Ready when the process exited. It is not collected: [`end`](Self::end) comes next.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.collected {
            return Poll::Ready(());
        }
        loop {
            // Registered before looking: an exit in between is seen here or wakes.
            let signalled = self.exits.poll_recv(cx);
            if std::mem::replace(&mut self.looked, true) && !matches!(signalled, Poll::Ready(Some(()))) {
                return Poll::Pending;
            }
            match look(self.pid) {
                Seen::Running => {}
                Seen::Exited => return Poll::Ready(()),
                Seen::Lost => {
                    self.collected = true;
                    return Poll::Ready(());
                }
            }
            if !matches!(signalled, Poll::Ready(Some(()))) {
                return Poll::Pending;
            }
        }
    }

    /// Ends what is left of the group of an exited process, and collects the process.
    pub(crate) fn end(&mut self) -> ProcessExit {
        self.ended.note();
        self.kill();
        let status = if self.collected { None } else { self.child.try_wait().ok().flatten() };
        self.collected = true;
        status.map_or(ProcessExit::unknown(), Into::into)
    }

    /// Asks every process of the group to end.
    pub(crate) fn terminate(&mut self) {
        self.signal_group(Signal::TERM);
    }

    /// Ends every process of the group.
    pub(crate) fn kill(&mut self) {
        self.signal_group(Signal::KILL);
    }

    fn signal_group(&self, signal: Signal) {
        // Never after collecting: the id may be somebody else's. The one other error there is says that nobody is left.
        if !self.collected {
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.collected {
            return;
        }
        self.kill();
        if let Ok(None) = self.child.try_wait() {
            // Dying takes the kernel a moment, and this may be a runtime's thread: collect it elsewhere. Without the thread
            // it stays a zombie until this process ends.
            let pid = self.pid;
            let _ =
                std::thread::Builder::new().name("mcp-collect-child".to_owned()).spawn(move || collect(pid));
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.child.id()).finish_non_exhaustive()
    }
}

/// Waits for a killed process and collects it.
fn collect(pid: Pid) {
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED) {}
}

/// Finds out why the process could not be started. The answer of the system does not tell which file it means.
fn explain(server: &StdioServer, file: &Path, error: io::Error) -> Error {
    let program = &server.program;
    let is_there = file_of(server, file).exists();
    // The name of a file that is there is no command line.
    let said =
        |what: &str| if is_there { format!("program {program:?} {what}") } else { said_of(server, what) };
    let (failure, text) = match error.kind() {
        io::ErrorKind::NotFound if is_there => (
            SpawnFailure::NotExecutable,
            said("names an interpreter (`#!` line or loader) that does not exist"),
        ),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            return no_such_file(server).with_source(error);
        }
        io::ErrorKind::PermissionDenied if file_of(server, file).is_dir() => {
            (SpawnFailure::PermissionDenied, said("is a directory"))
        }
        io::ErrorKind::PermissionDenied => {
            (SpawnFailure::PermissionDenied, said("has no permission to be executed"))
        }
        _ if error.raw_os_error() == Some(NO_EXEC) => (
            SpawnFailure::NotExecutable,
            said("is neither a program for this machine nor begins with a `#!` line"),
        ),
        _ => (SpawnFailure::Os, said("cannot be started")),
    };
    spawn_error(failure, text).with_source(error)
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

enum Seen {
    Running,
    Exited,
    /// Somebody else collected it, or SIGCHLD is ignored in this process. Its id may already be another one's.
    Lost,
}

/// Looks for the exit of the process without collecting it.
fn look(pid: Pid) -> Seen {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) => return Seen::Running,
            Ok(Some(_)) => return Seen::Exited,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Seen::Lost,
        }
    }
}
