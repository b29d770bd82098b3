//! Children that cannot hang the caller: each runs in its own process group, with a deadline, and its pipes are always drained.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use super::interrupt::interrupted;

/// Bytes kept of one captured stream. More is read and dropped, so that the child never blocks on a full pipe.
const KEPT_MAX_BYTES: usize = 16 * 1024 * 1024;
/// How long a pipe may stay open after its process group was killed: something left the group and still holds it. On a busy
/// machine the thread that reads what was written may come late too, and what it has not read is lost.
const PIPE_GRACE: Duration = Duration::from_secs(30);
/// How long a group may take to end when asked to: this program itself, as a child, ends its own children then.
const TERM_GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(15);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Output {
    Capture,
    /// Passed through and not kept.
    Inherit,
    /// Passed through and kept.
    Tee,
}

#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    Interrupted,
    /// It could not be started, or not be waited for.
    Lost(io::Error),
    TimedOut(Duration),
}

impl End {
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "{status}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Lost(error) => write!(f, "could not be run: {error}"),
            Self::TimedOut(limit) => write!(f, "did not end within {} s and was killed", limit.as_secs()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) end: End,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end, or kills its whole process group when `limit` is over.
pub(crate) fn run(command: Command, limit: Duration, output: Output) -> Finished {
    let mut finished = Finished { end: End::TimedOut(limit), stdout: String::new(), stderr: String::new() };
    let mut background = match Background::start(command, output) {
        Ok(background) => background,
        Err(error) => {
            finished.end = End::Lost(error);
            return finished;
        }
    };
    let deadline = Instant::now() + limit;
    loop {
        match background.child.try_wait() {
            Ok(Some(status)) => {
                finished.end = End::Exited(status);
                break;
            }
            Ok(None) => {}
            Err(error) => {
                finished.end = End::Lost(error);
                break;
            }
        }
        if interrupted() {
            finished.end = End::Interrupted;
            break;
        }
        if Instant::now() >= deadline {
            break;
        }
        thread::sleep(POLL);
    }
    if !matches!(finished.end, End::Exited(_)) {
        background.terminate();
    }
    background.kill();
    (finished.stdout, finished.stderr) = background.output();
    finished
}

/// A child that runs until it is dropped; then its whole process group is killed.
#[derive(Debug)]
pub(crate) struct Background {
    child: Child,
    stdout: Option<Drain>,
    stderr: Option<Drain>,
}

impl Background {
    pub(crate) fn start(mut command: Command, output: Output) -> io::Result<Self> {
        // Before the first child exists, so that no Ctrl-C is missed.
        let _ = interrupted();
        command.stdin(Stdio::null());
        if output != Output::Inherit {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let tee = output == Output::Tee;
        let stdout = child.stdout.take().map(|pipe| Drain::start(pipe, tee.then(io::stdout)));
        let stderr = child.stderr.take().map(|pipe| Drain::start(pipe, tee.then(io::stderr)));
        Ok(Self { child, stdout, stderr })
    }

    /// Whether it has ended by itself, and how.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What was written until now.
    pub(crate) fn so_far(&self) -> String {
        let text = |drain: &Option<Drain>| drain.as_ref().map(Drain::text).unwrap_or_default();
        text(&self.stdout) + &text(&self.stderr)
    }

    /// Asks the group to end and waits a little.
    fn terminate(&mut self) {
        #[cfg(unix)]
        {
            self.signal(rustix::process::Signal::TERM);
            let deadline = Instant::now() + TERM_GRACE;
            while self.ended().is_none() && Instant::now() < deadline {
                thread::sleep(POLL);
            }
        }
    }

    fn kill(&mut self) {
        // The group outlives its first process when a grandchild still runs, so it is killed in any case.
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn output(&mut self) -> (String, String) {
        let finish = |drain: Option<Drain>| drain.map(Drain::finish).unwrap_or_default();
        (finish(self.stdout.take()), finish(self.stderr.take()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a pipe to its end on a thread of its own.
#[derive(Debug)]
struct Drain {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Drain {
    fn start<R: Read + Send + 'static, W: Write + Send + 'static>(mut pipe: R, mut echo: Option<W>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (done, ended): (Sender<()>, _) = channel();
        let keep = Arc::clone(&kept);
        thread::spawn(move || {
            let _done = done;
            let mut buffer = [0; 16 * 1024];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                let chunk = buffer.get(..length).unwrap_or_default();
                if let Some(echo) = &mut echo {
                    // A closed terminal is no reason to stop the child.
                    let _ = echo.write_all(chunk).and_then(|()| echo.flush());
                }
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT_MAX_BYTES.saturating_sub(kept.len());
                kept.extend_from_slice(chunk.get(..room.min(length)).unwrap_or_default());
            }
        });
        Self { kept, ended }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn finish(self) -> String {
        // The thread drops its sender at the end of the pipe; the timeout is for a pipe that never ends.
        let (Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) =
            self.ended.recv_timeout(PIPE_GRACE);
        self.text()
    }
}

/// The last lines of a text, for a report.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Finished {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, Output::Capture)
    }

    #[test]
    fn both_streams_and_the_exit_code_are_kept() {
        let finished = shell("echo out; echo err >&2; exit 3", Duration::from_secs(120));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert!(matches!(finished.end, End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn a_hanging_child_is_killed_with_its_grandchildren() {
        // The grandchild holds the pipe; only the death of the whole group closes it.
        let started = Instant::now();
        let finished = shell("echo begun; sleep 300 & wait", Duration::from_secs(2));
        assert!(matches!(finished.end, End::TimedOut(_)));
        assert_eq!(finished.stdout, "begun\n");
        assert!(started.elapsed() < PIPE_GRACE, "the pipe was closed by the kill, not by the grace");
    }

    #[test]
    fn a_program_that_does_not_exist_is_told_apart() {
        let finished = run(Command::new("no-such-program-here"), Duration::from_secs(1), Output::Capture);
        assert!(matches!(finished.end, End::Lost(_)));
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
