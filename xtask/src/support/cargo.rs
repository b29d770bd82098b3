//! Calls of cargo in this workspace.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::process::{self, Output};
use crate::Stop;

/// Longest build that is waited for: a cold one on two busy cores takes minutes, not this long.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// `cargo` in the root of the workspace, the one that started this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(super::root());
    command
}

/// `cargo +nightly`, by way of rustup's own `cargo`.
pub(crate) fn nightly() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").current_dir(super::root());
    // Set by the outer cargo; they would pin the inner one to the stable toolchain.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

/// Builds one program and says where it is.
pub(crate) fn build(selection: &[&str]) -> Result<PathBuf, Stop> {
    let mut command = cargo();
    command.args(["build", "--message-format", "json-render-diagnostics"]).args(selection);
    let finished = process::run(command, BUILD_LIMIT, Output::Capture);
    if !finished.end.is_success() {
        let text = process::tail(&finished.stderr, 40);
        return Err(Stop::Broken(format!("cargo build {}: {}\n{text}", selection.join(" "), finished.end)));
    }
    executable(&finished.stdout)
        .ok_or_else(|| Stop::Broken(format!("cargo build {} built no program", selection.join(" "))))
}

/// The program that cargo's messages name, the last one where there are several.
fn executable(messages: &str) -> Option<PathBuf> {
    let mut paths = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    paths.next_back()
}

/// How many tests cargo's output says have passed; `None` where it has no summary at all.
pub(crate) fn tests_passed(output: &str) -> Option<u64> {
    let counts = output.lines().filter_map(|line| {
        let (_, rest) = line.split_once("test result: ")?;
        let (_, rest) = rest.split_once(". ")?;
        rest.split_once(" passed")?.0.trim().parse::<u64>().ok()
    });
    counts.fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed_over_binaries() {
        let output = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\
                      test result: ok. 0 passed; 0 failed\n\
                      \u{1b}[0mtest result: FAILED. 3 passed; 1 failed";
        assert_eq!(tests_passed(output), Some(5));
        assert_eq!(tests_passed("test result: ok. 0 passed; 0 failed"), Some(0));
        assert_eq!(tests_passed("nothing was run"), None);
    }

    #[test]
    fn the_built_program_is_found_among_the_messages() {
        let output = "{\"reason\":\"compiler-artifact\",\"executable\":null}\nnoise\n\
                      {\"reason\":\"compiler-artifact\",\"executable\":\"target/debug/examples/connect\"}\n\
                      {\"reason\":\"build-finished\",\"success\":true}";
        assert_eq!(executable(output), Some(PathBuf::from("target/debug/examples/connect")));
        assert_eq!(executable("{\"reason\":\"build-finished\"}"), None);
    }
}
