//! What is printed in the end, and what of it is as it should be.

use std::process::ExitCode;
use std::time::Duration;

use crate::count::{Check, Count};
use crate::measure::{Holds, Series};
use crate::traffic::Seen;

/// Memory may grow by so much an hour.
const MAX_SLOPE_MIB_PER_HOUR: f64 = 1.0;
/// A run shorter than this says little of a slope, because the heap is still finding its size; then only a gross leak counts.
const MIN_HOURS_FOR_SLOPE: f64 = 0.25;
const MAX_SHORT_GROWTH_MIB: f64 = 16.0;
/// A slope is taken from the lowest point of each stretch so long.
const STRETCH: Duration = Duration::from_secs(30);

pub(crate) fn report(count: &Count, seen: &Seen, before: Holds, after: Holds) -> ExitCode {
    count.print();
    let resident = growth("memory", &seen.resident);
    let heap = growth("allocated", &seen.heap);
    println!(
        "descriptors: {} before, {} after; tasks: {} before, {} after",
        before.descriptors, after.descriptors, before.tasks, after.tasks
    );
    let mut checks = count.checks();
    checks.extend([
        resident,
        heap,
        (
            // None at all is a system that does not tell.
            after.descriptors > 0 && after.descriptors <= before.descriptors,
            "no descriptor is left".to_owned(),
        ),
        (after.tasks <= before.tasks, "no task is left".to_owned()),
    ]);
    let failed = checks.iter().filter(|(good, _)| !good).count();
    for (good, what) in &checks {
        println!("{}  {what}", if *good { "ok  " } else { "FAIL" });
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints how something grew, and tells whether that is little enough.
fn growth(what: &str, series: &Series) -> Check {
    if series.peak_mib() <= 0.0 {
        return (false, format!("{what} can be told on this system"));
    }
    let is_long = series.hours() >= MIN_HOURS_FOR_SLOPE;
    let slope = if is_long { series.floors(STRETCH) } else { series.clone() }.slope_mib_per_hour();
    let growth = slope.map(|slope| slope * series.hours());
    println!(
        "{what}: peak {:.1} MiB, slope {:.2} MiB/h ({:.2} MiB over {:.2} h{})",
        series.peak_mib(),
        slope.unwrap_or_default(),
        growth.unwrap_or_default(),
        series.hours(),
        if is_long { ", from the lowest of each 30 s" } else { "" }
    );
    if is_long {
        let is_good = slope.is_some_and(|slope| slope <= MAX_SLOPE_MIB_PER_HOUR);
        return (is_good, format!("{what} grows by less than {MAX_SLOPE_MIB_PER_HOUR} MiB/h"));
    }
    let is_good = growth.is_some_and(|growth| growth <= MAX_SHORT_GROWTH_MIB);
    (
        is_good,
        format!("{what} grows by less than {MAX_SHORT_GROWTH_MIB} MiB; a longer run would tell a slope"),
    )
}
