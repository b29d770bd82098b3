//! Runs each fuzz target for some seconds, on the corpus that is committed.
//!
//! New inputs go to a scratch folder, so that a run leaves the tree as it was. What crashed stays in `fuzz/artifacts`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::args::Args;
use crate::support::process::{self, End, Output};
use crate::support::tally::Tally;
use crate::support::{self, cargo, peers::Absent};
use crate::{Outcome, Stop};

/// Our crates forbid unsafe code, so the address sanitizer would only watch other people's, at half the speed.
const PLAIN: [&str; 2] = ["--sanitizer", "none"];
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);
/// For an input that hangs. Inputs are a few KiB, so that none is slow without end; what takes seconds is a machine that stalls.
const INPUT_LIMIT: &str = "-timeout=60";
/// What a run may take beyond its seconds: the corpus, the last input, and a build when a source changed meanwhile.
const RUN_GRACE: Duration = Duration::from_secs(10 * 60);

pub(crate) fn run(mut args: Args) -> Outcome {
    let seconds = args
        .value("--seconds")?
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| Stop::Usage("fuzz needs --seconds N, at least 1".into()))?;
    let wanted = args.names("--targets")?;
    args.finish()?;
    let root = support::root();
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml"))
        .map_err(|error| Stop::Broken(format!("fuzz/Cargo.toml: {error}")))?;
    let targets = select(&targets(&manifest), wanted)?;
    if targets.is_empty() {
        return Err(Stop::Broken("fuzz/Cargo.toml declares no target".into()));
    }
    if let Err(absent) = ready() {
        absent.or_skip("fuzzing")?;
        return Ok(Tally::default().finish());
    }
    eprintln!("building {} targets", targets.len());
    let mut build = cargo::nightly();
    build.args(["fuzz", "build"]).args(PLAIN);
    let built = process::run(build, BUILD_LIMIT, Output::Capture);
    if !built.end.is_success() {
        let text = process::tail(&built.stderr, 40);
        return Err(Stop::Broken(format!("cargo fuzz build: {}\n{text}", built.end)));
    }
    let mut tally = Tally::default();
    for target in &targets {
        match run_one(&root, target, seconds) {
            Ok(did) => tally.pass(&format!("{target}: {did}")),
            Err(why) => tally.fail(target, &why),
        }
    }
    Ok(tally.finish())
}

/// The targets that `fuzz/Cargo.toml` declares.
fn targets(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_target = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_target = line == "[[bin]]";
        } else if in_target && let Some(name) = line.strip_prefix("name = ") {
            names.push(name.trim_matches('"').to_owned());
        }
    }
    names
}

fn select(all: &[String], wanted: Option<Vec<String>>) -> Result<Vec<String>, Stop> {
    let Some(wanted) = wanted else { return Ok(all.to_vec()) };
    match wanted.iter().find(|name| !all.contains(name)) {
        Some(name) => Err(Stop::Usage(format!("there is no target {name:?}; there are {}", all.join(", ")))),
        None => Ok(wanted),
    }
}

/// Sees to a nightly toolchain, which must be there, and cargo-fuzz, which is installed where it is missing.
fn ready() -> Result<(), Absent> {
    let works = |mut command: Command, words: &[&str]| {
        command.args(words);
        process::run(command, Duration::from_secs(60), Output::Capture).end.is_success()
    };
    if !works(cargo::nightly(), &["--version"]) {
        return Err(Absent::Tool("a nightly toolchain is needed: rustup toolchain install nightly".into()));
    }
    if !works(cargo::nightly(), &["fuzz", "--version"]) {
        eprintln!("installing cargo-fuzz");
        let mut install = cargo::cargo();
        install.args(["install", "cargo-fuzz", "--locked"]);
        let installed = process::run(install, BUILD_LIMIT, Output::Inherit);
        if !installed.end.is_success() {
            return Err(Absent::Failed(format!("cargo install cargo-fuzz: {}", installed.end)));
        }
    }
    Ok(())
}

fn run_one(root: &Path, target: &str, seconds: u64) -> Result<String, String> {
    let scratch = root.join("fuzz/target/scratch").join(target);
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let corpus = root.join("fuzz/corpus").join(target);
    let mut command = cargo::nightly();
    command.args(["fuzz", "run"]).args(PLAIN).arg(target).arg(&scratch);
    if corpus.is_dir() {
        command.arg(&corpus);
    }
    command.args(["--", INPUT_LIMIT, "-rss_limit_mb=2048", "-print_final_stats=1"]);
    command.arg(format!("-max_total_time={seconds}"));
    let finished = process::run(command, Duration::from_secs(seconds) + RUN_GRACE, Output::Capture);
    match finished.end {
        End::Exited(status) if status.success() => {
            let runs = executed(&finished.stderr).ok_or("libFuzzer did not say what it did")?;
            if runs == 0 {
                Err("not one input was run".into())
            } else {
                Ok(format!("{runs} inputs in {seconds} s"))
            }
        }
        end => Err(format!("{end}\n{}", report(&finished.stderr))),
    }
}

fn executed(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok())
}

/// The lines of a log that say what crashed and how to run it again.
fn report(log: &str) -> String {
    const TELLING: [&str; 6] =
        ["panicked at", "ERROR: ", "SUMMARY: ", "Test unit written to", "artifact_prefix", "cargo fuzz run"];
    let lines: Vec<&str> = log.lines().collect();
    let mut kept = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if TELLING.iter().any(|word| line.contains(word)) {
            kept.push(*line);
            if line.contains("panicked at") {
                kept.extend(lines.get(index + 1..).unwrap_or_default().iter().take(2));
            }
        }
    }
    if kept.is_empty() { process::tail(log, 15) } else { kept.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"mcp-fuzz\"\n\n[[bin]]\nname = \"one\"\npath = \"a.rs\"\n\n\
                            [[bin]]\nname = \"two\"\n\n[lints]\nname = \"no\"\n";

    #[test]
    fn the_targets_are_the_binaries_of_the_manifest() {
        assert_eq!(targets(MANIFEST), ["one", "two"]);
    }

    #[test]
    fn an_unknown_target_is_a_usage_mistake() {
        let all = targets(MANIFEST);
        assert_eq!(select(&all, None).unwrap(), all);
        assert_eq!(select(&all, Some(vec!["two".into()])).unwrap(), ["two"]);
        assert!(matches!(select(&all, Some(vec!["three".into()])), Err(Stop::Usage(_))));
    }

    #[test]
    fn the_count_of_inputs_and_the_crash_are_read_from_the_log() {
        let log = "INFO: Seed: 1\nthread panicked at src/sse.rs:3:5:\nleft is not right\nnote: run with\n\
                   ==1== ERROR: libFuzzer: deadly signal\nTest unit written to artifacts/x\n\
                   stat::number_of_executed_units: 42\n";
        assert_eq!(executed(log), Some(42));
        assert_eq!(report(log).lines().count(), 5);
        assert_eq!(report("one\ntwo"), "one\ntwo");
    }
}
