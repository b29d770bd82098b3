//! Goals and whether they are met: a table, printed as it grows.

use std::process::ExitCode;

/// What a figure must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    NanosPerByte,
    /// The figure is a share of one.
    Percent,
    /// The figure is a ratio.
    Times,
}

/// The goals so far.
#[derive(Debug)]
pub(crate) struct Goals {
    met: usize,
    missed: Vec<String>,
}

impl Goals {
    /// Prints the head of the table.
    pub(crate) fn new() -> Self {
        println!("| goal | what | measured | threshold | |");
        println!("|---|---|--:|--:|---|");
        Self { met: 0, missed: Vec::new() }
    }

    /// How many times faster than another something is.
    pub(crate) fn faster(&mut self, id: &str, what: &str, measured: f64, at_least: f64) {
        self.check(id, what, measured, Bound::AtLeast(at_least), Unit::Times);
    }

    /// How many times the time of another something takes.
    pub(crate) fn within(&mut self, id: &str, what: &str, measured: f64, at_most: f64) {
        self.check(id, what, measured, Bound::AtMost(at_most), Unit::Times);
    }

    pub(crate) fn check(&mut self, id: &str, what: &str, measured: f64, bound: Bound, unit: Unit) {
        let (met, sign, threshold) = match bound {
            Bound::AtLeast(least) => (measured >= least, ">=", least),
            Bound::AtMost(most) => (measured <= most, "<=", most),
        };
        let show = |figure: f64| match unit {
            Unit::NanosPerByte => format!("{figure:.3} ns/B"),
            Unit::Percent => format!("{:.0} %", figure * 100.0),
            Unit::Times => format!("{figure:.2}x"),
        };
        let verdict = if met { "met" } else { "MISSED" };
        println!("| {id} | {what} | {} | {sign} {} | {verdict} |", show(measured), show(threshold));
        if met {
            self.met += 1;
        } else {
            self.missed.push(format!(
                "{id} {what}: {} instead of {sign} {}",
                show(measured),
                show(threshold)
            ));
        }
    }

    /// Prints the missed goals once more and the tally.
    pub(crate) fn finish(self) -> ExitCode {
        println!();
        for missed in &self.missed {
            println!("missed: {missed}");
        }
        println!("{} passed, {} failed", self.met, self.missed.len());
        if self.missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
