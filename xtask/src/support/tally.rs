//! The line that a command ends with.

use std::process::ExitCode;

/// Counts what passed and what failed, and prints each as it happens.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: Vec<String>,
    unchecked: Vec<String>,
}

impl Tally {
    pub(crate) fn pass(&mut self, what: &str) {
        self.passed += 1;
        println!("ok    {what}");
    }

    /// Counts what needs no line of its own.
    pub(crate) fn pass_silently(&mut self) {
        self.passed += 1;
    }

    /// `why` may have several lines.
    pub(crate) fn fail(&mut self, what: &str, why: &str) {
        self.failed.push(what.to_owned());
        println!("FAIL  {what}");
        for line in why.lines() {
            println!("      {line}");
        }
    }

    /// Something is missing here that the check needs, so that nobody knows: no pass. On the build server, which has everything,
    /// that is a failure.
    pub(crate) fn unchecked(&mut self, what: &str, why: &str) {
        if super::on_ci() {
            return self.fail(what, &format!("not checked: {why}"));
        }
        self.unchecked.push(what.to_owned());
        println!("????  {what}");
        for line in why.lines() {
            println!("      not checked: {line}");
        }
    }

    pub(crate) fn record(&mut self, what: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.pass(what),
            Err(why) => self.fail(what, &why),
        }
    }

    /// A measured figure beside what it may be at most.
    pub(crate) fn goal(&mut self, what: &str, at_most: impl std::fmt::Display, is_met: bool) {
        self.record(
            &format!("{what} (goal: at most {at_most})"),
            if is_met { Ok(()) } else { Err("missed".into()) },
        );
    }

    /// What failed, in the order of time.
    #[cfg(test)]
    pub(crate) fn failures(self) -> Vec<String> {
        self.failed
    }

    /// Prints `N passed, M failed`, and before it what could not be checked; exit 1 exactly when something failed.
    pub(crate) fn finish(self) -> ExitCode {
        if !self.unchecked.is_empty() {
            println!("{} could not be checked here:", self.unchecked.len());
            for what in &self.unchecked {
                println!("  {what}");
            }
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
