//! Runs the benchmarks in `tests/bench`, a workspace of its own so that the peers stay out of everybody's build.
//!
//! `leaves` measures the parsers alone and judges itself. `stdio` and `http` run whole clients, ours, rmcp and the official ones in
//! TypeScript, against one neutral server; what they must reach is in [`goals`]. `idle` looks at what many connections cost while
//! nothing happens on them.

mod clients;
mod goals;
mod idle;
mod matrix;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::support::args::Args;
use crate::support::process::{self, Output};
use crate::support::{self, cargo};
use crate::{Outcome, Stop};
use matrix::Transport;

const LEAVES_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Goals that were met and goals that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    passed: u64,
    failed: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    fn judge(&mut self, met: bool) {
        if met {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let quick = args.flag("--quick");
    let what = args.word();
    let transports: &[Transport] = match what.as_deref() {
        Some("leaves" | "idle") => &[],
        Some("stdio") => &[Transport::Stdio],
        Some("http") => &[Transport::Json, Transport::Sse],
        Some("all") => &[Transport::Stdio, Transport::Json, Transport::Sse],
        Some(other) => {
            return Err(Stop::Usage(format!("bench knows leaves, stdio, http, idle and all, not {other:?}")));
        }
        None => return Err(Stop::Usage("bench needs to know what: leaves, stdio, http, idle or all".into())),
    };
    args.finish()?;
    let mut count = Count::default();
    if matches!(what.as_deref(), Some("leaves" | "all")) {
        count.add(run_leaves()?);
    }
    if !transports.is_empty() {
        let programs = clients::build()?;
        let samples = matrix::measure(transports, quick, &programs)?;
        count.add(goals::judge(&samples, transports, programs.has_typescript()));
    }
    if matches!(what.as_deref(), Some("idle" | "all")) {
        count.add(idle::measure(quick)?);
    }
    // The leaves have said it themselves.
    if what.as_deref() != Some("leaves") {
        println!("{} passed, {} failed", count.passed, count.failed);
    }
    Ok(if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn manifest() -> Result<PathBuf, Stop> {
    let manifest = support::root().join("tests/bench/Cargo.toml");
    if manifest.is_file() {
        Ok(manifest)
    } else {
        Err(Stop::Broken("tests/bench is not in this checkout".into()))
    }
}

/// The package prints the table and ends with `N passed, M failed` itself.
fn run_leaves() -> Result<Count, Stop> {
    let mut command = cargo::cargo();
    command.args(["run", "--locked", "--quiet", "--profile", "leaves", "--package", "bench-leaves"]);
    command.arg("--manifest-path").arg(manifest()?).args(target_dir());
    let finished = process::run(command, LEAVES_LIMIT, Output::Tee);
    match count(&finished.stdout) {
        Some(count) if finished.end.is_success() == (count.failed == 0) => Ok(count),
        _ => Err(Stop::Broken(format!("the benchmark: {}, without a tally that fits", finished.end))),
    }
}

/// Builds where git ignores it, unless the caller has another place.
fn target_dir() -> Vec<String> {
    if std::env::var_os("CARGO_TARGET_DIR").is_some() {
        return Vec::new();
    }
    vec!["--target-dir".to_owned(), support::root().join("target/bench").display().to_string()]
}

/// The counts of a last line `N passed, M failed`.
fn count(output: &str) -> Option<Count> {
    let (passed, failed) = output.trim_end().lines().next_back()?.split_once(" passed, ")?;
    Some(Count { passed: passed.trim().parse().ok()?, failed: failed.strip_suffix(" failed")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tally_is_the_last_line() {
        assert_eq!(
            count("1 passed, 9 failed\ntable\n12 passed, 3 failed\n"),
            Some(Count { passed: 12, failed: 3 })
        );
        assert_eq!(count("12 passed, 3 failed\ntable\n"), None);
        assert_eq!(count(""), None);
    }
}
