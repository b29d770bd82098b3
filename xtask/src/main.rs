//! Build, check, fuzz, benchmark and release tasks, one file a command: `cargo xtask <command>`.
//!
//! Every command prints what it did and ends with `N passed, M failed`, except `ci`, which ends with the summary of the last
//! test run, and `hostile`, which counts what must not happen. Exit 0 when nothing failed, 1 when something did, 2 for a usage mistake (then nothing was started).

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task's output is what it prints")]

mod bench;
mod ci;
mod conformance;
mod fuzz;
mod hostile;
mod layers;
mod real_servers;
mod release;
mod run_bounded;
mod soak;
mod support;
mod tidy;
mod trace;
mod weight;

use std::process::ExitCode;

use support::args::Args;

/// Why a command ended before it had a tally to print.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something the command needs is missing or broken; exit 1.
    Broken(String),
    /// The command line is wrong; exit 2.
    Usage(String),
}

type Outcome = Result<ExitCode, Stop>;

const USAGE: &str = "usage: cargo xtask <command>

  ci                                    everything that a change must pass, cheap steps first
  layers [--manifest-path FILE]         checks which crate may depend on which
  tidy [--root DIR]                     source rules that the compiler does not check
  trace [--uncovered]                   each requirement has a test, or a waiver with a reason
  weight [--crates]                     crates, build time and size of a minimal program, next to rmcp's;
                                        --crates only counts crates
  fuzz --seconds N [--targets a,b]      runs each fuzz target for N seconds
  conformance [--revision R] [--only a,b] [--mode pinned|auto|both] [--no-auth]
                                        the official conformance suite
  real-servers [--transport stdio|http] third-party servers
  hostile [--transport stdio|http] [--verbose]
                                        servers that break off, break the protocol or flood
  release --check [--write-api]         whether everything is ready to be published; --write-api updates the API snapshots
  release VERSION [--execute]           the next version; a dry run without --execute
  release --stage DIR                   writes the workspace with the package names to publish under
  soak --minutes N                      mixed traffic with faults, and a search for leaks
  bench leaves|stdio|http|idle|all [--quick]
                                        parsers, whole clients and idle connections, against goals and next to peers";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let args = Args::new(arguments.collect());
    let outcome = match command.as_deref() {
        Some("bench") => bench::run(args),
        Some("ci") => ci::run(args),
        Some("conformance") => conformance::run(args),
        Some("fuzz") => fuzz::run(args),
        Some("hostile") => hostile::run(args),
        Some("layers") => layers::run(args),
        Some("real-servers") => real_servers::run(args),
        Some("release") => release::run(args),
        // Not for people: the conformance suite starts the client through it.
        Some("run-bounded") => run_bounded::run(args),
        Some("soak") => soak::run(args),
        Some("tidy") => tidy::run(args),
        Some("trace") => trace::run(args),
        Some("weight") => weight::run(args),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some(other) => Err(Stop::Usage(format!("there is no command {other:?}"))),
        None => Err(Stop::Usage("a command is missing".into())),
    };
    match outcome {
        Ok(code) => code,
        Err(Stop::Broken(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
        Err(Stop::Usage(why)) => {
            eprintln!("xtask: {why}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}
