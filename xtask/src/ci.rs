//! Everything a change must pass. A step that fails ends the run.
//!
//! `cargo test` comes last, so that the output ends on its summary; what is cheap and what fails most often comes first.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::conformance::CLAIMS;
use crate::support::cargo::{self, cargo};
use crate::support::peers::NOT_RUN;
use crate::support::process::{self, Output};
use crate::support::{self, args::Args};
use crate::{Outcome, Stop};

/// For a step that hangs. The longest one, a cold build with everything after it, takes minutes, and several times as many on a
/// machine that others use too.
const STEP_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Long enough to run the committed corpus and to meet a fresh regression; the long runs are for people.
const FUZZ_SECONDS: &str = "10";

/// What makes a step good.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Proof {
    Exit,
    /// Exit 0 of a command of this program, which says what it leaves out for want of a tool.
    Own,
    /// Exit 0, and at least one test was run.
    Tests,
}

struct Step {
    name: String,
    command: Command,
    proof: Proof,
}

impl Step {
    fn new(name: &str, mut command: Command, words: &[&str], proof: Proof) -> Self {
        command.args(words);
        Self { name: name.to_owned(), command, proof }
    }
}

pub(crate) fn run(args: Args) -> Outcome {
    args.finish()?;
    let steps = steps()?;
    let count = steps.len();
    let started = Instant::now();
    let mut took: Vec<(String, Duration)> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        if index + 1 == count {
            println!("\n=== so far ===");
            for (name, took) in &took {
                println!("{:8.1} s  {name}", took.as_secs_f64());
            }
            println!("{:8.1} s  in all", started.elapsed().as_secs_f64());
            for what in &left_out {
                println!("  NOT RUN  {what}");
            }
        }
        println!("\n=== {}/{count} {} ===", index + 1, step.name);
        let begun = Instant::now();
        let outcome = run_step(step.command, step.proof);
        let seconds = begun.elapsed().as_secs_f64();
        let missed = match outcome {
            Ok(missed) => missed,
            Err(why) => {
                println!("=== {} FAILED after {seconds:.1} s: {why} ===", step.name);
                return Ok(ExitCode::FAILURE);
            }
        };
        if index + 1 < count {
            let verdict = if missed.is_empty() { "ok" } else { "ok, BUT NOT ALL OF IT WAS RUN" };
            println!("=== {} {verdict}, {seconds:.1} s ===", step.name);
        }
        left_out.extend(missed.into_iter().map(|what| format!("{}: {what}", step.name)));
        took.push((step.name, begun.elapsed()));
    }
    Ok(ExitCode::SUCCESS)
}

fn steps() -> Result<Vec<Step>, Stop> {
    let mut doc = cargo();
    doc.env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        Step::new("format", cargo(), &["fmt", "--all", "--check"], Proof::Exit),
        Step::new(
            "clippy",
            cargo(),
            &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            Proof::Exit,
        ),
        Step::new("layers", own()?, &["layers"], Proof::Own),
        Step::new("tidy", own()?, &["tidy"], Proof::Own),
        Step::new("trace", own()?, &["trace", "--uncovered"], Proof::Own),
        Step::new("documentation", doc, &["doc", "--workspace", "--no-deps"], Proof::Exit),
        Step::new("doc tests", cargo(), &["test", "--workspace", "--doc"], Proof::Tests),
    ];
    for name in crates()? {
        let words = ["clippy", "-p", &name, "--no-default-features", "--", "-D", "warnings"];
        steps.push(Step::new(&format!("{name} without default features"), cargo(), &words, Proof::Exit));
    }
    let corpus = ["test", "-p", "mcp-tests", "--test", "scenarios", "corpus::"];
    steps.push(Step::new("corpus replay", cargo(), &corpus, Proof::Tests));
    steps.push(Step::new("fuzz", own()?, &["fuzz", "--seconds", FUZZ_SECONDS], Proof::Own));
    steps.push(Step::new("hostile servers", own()?, &["hostile"], Proof::Own));
    steps.push(Step::new("real servers", own()?, &["real-servers"], Proof::Own));
    for claim in CLAIMS {
        let mut words = vec!["conformance", "--no-auth", "--revision", claim.revision, "--mode", claim.mode];
        if let Some(only) = claim.only {
            words.extend(["--only", only]);
        }
        let name = format!("conformance {} {}", claim.revision, claim.mode);
        steps.push(Step::new(&name, own()?, &words, Proof::Own));
    }
    for (package, example) in examples()? {
        let words = ["run", "-p", &package, "--all-features", "--example", &example];
        steps.push(Step::new(&format!("example {example}"), cargo(), &words, Proof::Exit));
    }
    // Of the transport too: its HTTP/2 is tested with it only.
    let optional = ["test", "-p", "mcp-client", "-p", "mcp-transport", "--all-features", "--lib", "--tests"];
    steps.push(Step::new("tests of optional features", cargo(), &optional, Proof::Tests));
    steps.push(Step::new("tests", cargo(), &["test", "--workspace", "--all-targets"], Proof::Tests));
    Ok(steps)
}

/// Packages with examples that take no arguments, bring their servers along and end by themselves: those of one file. Larger ones
/// (`connect`) take arguments, and have tests of their own.
const WITH_EXAMPLES: [&str; 3] = ["mcp-client", "mcp-inbox-sqlite", "mcp-transport"];

fn examples() -> Result<Vec<(String, String)>, Stop> {
    let broken = |error| Stop::Broken(format!("examples: {error}"));
    let mut names = Vec::new();
    for package in WITH_EXAMPLES {
        let folder = support::root().join("crates").join(package).join("examples");
        for entry in std::fs::read_dir(folder).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(
                    path.file_stem().map(|stem| (package.to_owned(), stem.to_string_lossy().into_owned())),
                );
            }
        }
    }
    names.sort();
    Ok(names)
}

/// This program again: each command is a step that can be run by hand, and is run here the same way.
fn own() -> Result<Command, Stop> {
    let path =
        std::env::current_exe().map_err(|error| Stop::Broken(format!("where this program is: {error}")))?;
    Ok(Command::new(path))
}

/// The packages below `crates/`, by the names of their folders.
fn crates() -> Result<Vec<String>, Stop> {
    let broken = |error| Stop::Broken(format!("crates: {error}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(support::root().join("crates")).map_err(broken)? {
        let entry = entry.map_err(broken)?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What a step left out, where it was good otherwise.
fn run_step(command: Command, proof: Proof) -> Result<Vec<String>, String> {
    let output = if proof == Proof::Exit { Output::Inherit } else { Output::Tee };
    let finished = process::run(command, STEP_LIMIT, output);
    if !finished.end.is_success() {
        return Err(finished.end.to_string());
    }
    match proof {
        Proof::Exit => Ok(Vec::new()),
        Proof::Own => Ok(left_out(&finished.stderr)),
        Proof::Tests => enough(&finished.stdout).map(|()| Vec::new()),
    }
}

fn left_out(stderr: &str) -> Vec<String> {
    let said = stderr.lines().filter_map(|line| line.strip_prefix(NOT_RUN));
    said.map(|what| what.trim_end_matches(" ***").to_owned()).collect()
}

fn enough(output: &str) -> Result<(), String> {
    match cargo::tests_passed(output) {
        Some(count) if count > 0 => Ok(()),
        _ => Err("not one test was run".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_step_that_ran_no_test_fails() {
        assert!(enough("test result: ok. 0 passed; 0 failed; 0 ignored").is_err());
        assert!(enough("").is_err());
        assert!(enough("test result: ok. 1 passed; 0 failed; 0 ignored").is_ok());
    }

    #[test]
    fn tests_are_the_last_step_and_every_crate_is_checked_alone() {
        let steps = steps().unwrap();
        assert_eq!(steps.last().map(|step| (step.name.as_str(), step.proof)), Some(("tests", Proof::Tests)));
        let alone = steps.iter().filter(|step| step.name.ends_with("without default features")).count();
        assert_eq!(alone, crates().unwrap().len());
        assert!(alone > 5);
        assert!(steps.iter().any(|step| step.name == "example quickstart"));
    }

    #[cfg(unix)]
    #[test]
    fn what_a_step_of_our_own_leaves_out_is_told() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo; echo '*** NOT RUN: the servers ***' >&2; echo '*** no Node.js ***' >&2"]);
        assert_eq!(run_step(command, Proof::Own).unwrap(), ["the servers"]);
        let all_of_it = steps().unwrap().into_iter().filter(|step| step.proof == Proof::Own);
        assert!(all_of_it.count() > 8);
    }

    #[cfg(unix)]
    #[test]
    fn a_step_that_fails_says_how() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        assert!(run_step(command, Proof::Exit).unwrap_err().contains('7'));
    }
}
