//! Mixed traffic with faults in it for some minutes, and what it leaves behind.
//!
//! The last line is the program's own: `N passed, M failed`.

use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::support::args::Args;
use crate::support::cargo;
use crate::support::process::{self, End, Output};
use crate::{Outcome, Stop};

/// What comes before and after the minutes that were asked for.
const MARGIN: Duration = Duration::from_secs(120);

pub(crate) fn run(mut args: Args) -> Outcome {
    let minutes = args.value("--minutes")?.ok_or_else(|| Stop::Usage("soak needs --minutes".into()))?;
    args.finish()?;
    let time = match minutes.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 24.0 * 60.0 => Duration::from_secs_f64(number * 60.0),
        _ => return Err(Stop::Usage(format!("{minutes:?} is no number of minutes up to a day"))),
    };
    let program = cargo::build(&["--release", "-p", "mcp-tests", "--bin", "soak"])?;
    let mut command = Command::new(program);
    command.args(["--minutes", &minutes]);
    match process::run(command, time + MARGIN, Output::Inherit).end {
        End::Exited(status) if status.success() => Ok(ExitCode::SUCCESS),
        End::Exited(status) if status.code() == Some(1) => Ok(ExitCode::FAILURE),
        other => Err(Stop::Broken(format!("the traffic ended: {other}"))),
    }
}
