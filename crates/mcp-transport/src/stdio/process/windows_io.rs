//! A server process on Windows.
//!
//! It runs in a job object of its own, which is to Windows what a process group is to Unix: what the server starts belongs to it, and
//! ends with it, also when this process dies, because the system ends a job whose last handle is closed.
//!
//! There is no SIGTERM, so the step after the end of input ends the whole job at once.

use std::{
    fmt,
    process::Stdio,
    task::{Context, Poll},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::Command;
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::{
    StderrDrain, environment_of,
    lookup::{find_program, no_such_file, said_of, spawn_error},
};
use crate::{
    Error, ErrorKind, ProcessExit, SpawnFailure,
    stdio::{
        StdioServer,
        io::{KeptProcess, Spawned},
    },
};

pub(crate) struct Process {
    /// The process in its job: killing it kills the job, and so does dropping it.
    child: Box<dyn ChildWrapper>,
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
        let text = format!("{file:?} is a batch file, which must be allowed");
        return Err(Error::new(ErrorKind::Misuse, text));
    }
    let mut command = Command::new(&file);
    command.args(&server.args).env_clear().envs(env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &server.current_dir {
        command.current_dir(dir);
    }
    let mut wrapped = CommandWrap::from(command);
    // A console program started by a program without console opens no window.
    wrapped.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(KillOnDrop).wrap(JobObject);
    let mut child = wrapped.spawn().map_err(|error| {
        let failure = match error.kind() {
            std::io::ErrorKind::NotFound => return no_such_file(server).with_source(error),
            std::io::ErrorKind::PermissionDenied => SpawnFailure::PermissionDenied,
            // ERROR_BAD_EXE_FORMAT.
            _ if error.raw_os_error() == Some(193) => SpawnFailure::NotExecutable,
            _ => SpawnFailure::Os,
        };
        spawn_error(failure, said_of(server, "cannot be started")).with_source(error)
    })?;
    let (Some(input), Some(output), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
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
    /// Ready when the process exited. What it started may live on in the job until [`end`](Self::end).
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exit.is_none() {
            // The process itself; the wrapper around it would wait for the whole job.
            let waited = std::task::ready!(self.child.inner_mut().wait().as_mut().poll(cx));
            self.exit = Some(waited.map_or(ProcessExit::unknown(), Into::into));
        }
        Poll::Ready(())
    }

    /// Ends what is left of the job, and says how the process ended.
    pub(crate) fn end(&mut self) -> ProcessExit {
        self.kill();
        self.exit.unwrap_or(ProcessExit::unknown())
    }

    pub(crate) fn terminate(&mut self) {
        self.kill();
    }

    pub(crate) fn kill(&mut self) {
        // The one error there is says that all of it already ended.
        let _ = self.child.start_kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.child.id()).finish_non_exhaustive()
    }
}
