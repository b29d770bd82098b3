//! Servers that break off, lie or flood: the matrix of their behaviours, against the client as an application uses it.
//!
//! The last line is the matrix's own: `N tried, 0 hung, 0 panicked, 0 lost another call, 0 wrong error`.

use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::support::args::Args;
use crate::support::cargo;
use crate::support::process::{self, End, Output};
use crate::{Outcome, Stop};

/// A behaviour that hangs is given up long before; this is for a matrix that hangs itself.
const LIMIT: Duration = Duration::from_secs(15 * 60);

pub(crate) fn run(mut args: Args) -> Outcome {
    let transport = args.choice("--transport", &["stdio", "http"])?;
    let verbose = args.flag("--verbose");
    args.finish()?;
    let mut command = Command::new(cargo::build(&["-p", "mcp-tests", "--bin", "hostile"])?);
    if let Some(transport) = transport {
        command.args(["--transport", &transport]);
    }
    if verbose {
        command.arg("--verbose");
    }
    let finished = process::run(command, LIMIT, Output::Inherit);
    match finished.end {
        End::Exited(status) if status.success() => Ok(ExitCode::SUCCESS),
        End::Exited(status) if status.code() == Some(1) => Ok(ExitCode::FAILURE),
        other => Err(Stop::Broken(format!("the matrix ended: {other}"))),
    }
}
