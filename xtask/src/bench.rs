//! Runs the benchmark package, which is a workspace of its own so that its peers stay out of everybody's build.

use std::process::ExitCode;
use std::time::Duration;

use crate::support::args::Args;
use crate::support::process::{self, Output};
use crate::support::{self, cargo};
use crate::{Outcome, Stop};

const LIMIT: Duration = Duration::from_secs(60 * 60);

pub(crate) fn run(mut args: Args) -> Outcome {
    match args.word().as_deref() {
        Some("leaves") => {}
        Some(other) => return Err(Stop::Usage(format!("bench knows leaves, not {other:?}"))),
        None => return Err(Stop::Usage("bench needs to know what: leaves".into())),
    }
    args.finish()?;
    let manifest = support::root().join("tests/bench/Cargo.toml");
    if !manifest.is_file() {
        return Err(Stop::Broken("tests/bench is not in this checkout".into()));
    }
    let mut command = cargo::cargo();
    command.args(["run", "--quiet", "--profile", "leaves", "--package", "bench-leaves", "--manifest-path"]);
    command.arg(&manifest);
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        // Beside the other builds, where git ignores it.
        command.env("CARGO_TARGET_DIR", support::root().join("target/bench"));
    }
    // The package prints the table and ends with `N passed, M failed` itself.
    let finished = process::run(command, LIMIT, Output::Tee);
    match tally(&finished.stdout) {
        Some((_, failed)) if finished.end.is_success() == (failed == 0) => {
            Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => Err(Stop::Broken(format!("the benchmark: {}, without a tally that fits", finished.end))),
    }
}

/// The counts of a last line `N passed, M failed`.
fn tally(output: &str) -> Option<(u64, u64)> {
    let (passed, failed) = output.trim_end().lines().next_back()?.split_once(" passed, ")?;
    Some((passed.trim().parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tally_is_the_last_line() {
        assert_eq!(tally("1 passed, 9 failed\ntable\n12 passed, 3 failed\n"), Some((12, 3)));
        assert_eq!(tally("12 passed, 3 failed\ntable\n"), None);
        assert_eq!(tally(""), None);
    }
}
