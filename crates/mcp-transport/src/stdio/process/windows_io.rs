//! A server process on Windows.
//!
//! What is not covered: a job object, for which there is no safe interface in the standard library or tokio. Only the process
//! itself is ended, not what it started; a grandchild that ignores the end of its input stays. There is no SIGTERM either, so
//! the step after the end of input ends the process at once.

use std::{
    fmt,
    future::Future,
    process::Stdio,
    task::{Context, Poll},
};

use tokio::process::{Child, Command};

use super::{
    StderrDrain, environment_of,
    lookup::{find_program, spawn_error},
};
use crate::{
    Error, ErrorKind, ProcessExit, SpawnFailure,
    stdio::{
        StdioServer,
        io::{KeptProcess, Spawned},
    },
};

/// `CREATE_NO_WINDOW`: a console program started by a program without console opens no window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

pub(crate) struct Process {
    child: Child,
    exit: Option<ProcessExit>,
}

/// Starts the server; on error nothing is left running.
pub(crate) fn spawn(server: &StdioServer) -> Result<Spawned, Error> {
    let env = environment_of(server)?;
    let file = find_program(server, &env)?;
    let batch = file.extension().is_some_and(|extension| {
        extension.eq_ignore_ascii_case("bat") || extension.eq_ignore_ascii_case("cmd")
    });
    if batch && !server.allow_batch {
        let text = format!("{file:?} is a batch file, which has to be allowed");
        return Err(Error::new(ErrorKind::Misuse, text));
    }
    let mut command = Command::new(&file);
    command.args(&server.args).env_clear().envs(&env).creation_flags(CREATE_NO_WINDOW).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &server.current_dir {
        command.current_dir(dir);
    }
    let mut child = command.spawn().map_err(|error| {
        let failure = match error.kind() {
            std::io::ErrorKind::NotFound => SpawnFailure::NotFound,
            std::io::ErrorKind::PermissionDenied => SpawnFailure::PermissionDenied,
            // ERROR_BAD_EXE_FORMAT.
            _ if error.raw_os_error() == Some(193) => SpawnFailure::NotExecutable,
            _ => SpawnFailure::Os,
        };
        spawn_error(failure, format!("program {:?} cannot be started", server.program)).with_source(error)
    })?;
    let (Some(input), Some(output), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(spawn_error(SpawnFailure::Os, "a pipe of the child is missing".to_owned()));
    };
    Ok(Spawned {
        output: Box::new(output),
        input: Box::new(input),
        process: KeptProcess {
            process: Process { child, exit: None },
            stderr: StderrDrain::new(Box::new(stderr), server.stderr_limits, server.stderr_hook.clone()),
        },
    })
}

impl Process {
    /// Ready when the process exited.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_none() {
            let waited = std::task::ready!(std::pin::pin!(self.child.wait()).poll(cx));
            self.exit = Some(waited.map_or(ProcessExit::unknown(), Into::into));
        }
        Poll::Ready(())
    }

    /// How the process ended.
    pub(crate) fn end(&mut self) -> ProcessExit {
        self.exit.unwrap_or(ProcessExit::unknown())
    }

    pub(crate) fn terminate(&mut self) {
        self.kill();
    }

    pub(crate) fn kill(&mut self) {
        // The one error there is says that it already ended.
        let _ = self.child.start_kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.child.id()).finish_non_exhaustive()
    }
}
