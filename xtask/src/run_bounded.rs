//! Runs a program with a deadline, for callers that cannot bound their children themselves.
//!
//! The conformance suite waits for ever for a client that hangs, and takes one that was aborted for a success. Started through
//! this, a hang ends with exit 124 and a signal with 128 plus its number.
//!
//! The program stays in the caller's process group, so that who kills the group gets it too.

use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::args::Args;
use crate::{Outcome, Stop};

const TIMED_OUT: u8 = 124;
const POLL: Duration = Duration::from_millis(10);

pub(crate) fn run(mut args: Args) -> Outcome {
    let words = args.rest();
    let seconds = args.value("--seconds")?.and_then(|text| text.parse().ok());
    let hidden = args.names("--hide")?.unwrap_or_default();
    args.finish()?;
    let (Some(seconds), Some((program, arguments))) = (seconds, words.split_first()) else {
        return Err(Stop::Usage(
            "run-bounded --seconds N [--hide VARIABLE,...] -- program arguments...".into(),
        ));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    for name in hidden {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|error| Stop::Broken(format!("{program}: {error}")))?;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(ExitCode::from(code(status))),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
            Ok(None) => {
                eprintln!("{program} did not end within {seconds} s and was killed");
                let _ = child.kill();
                let _ = child.wait();
                return Ok(ExitCode::from(TIMED_OUT));
            }
            Err(error) => return Err(Stop::Broken(format!("{program}: {error}"))),
        }
    }
}

fn code(status: std::process::ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
