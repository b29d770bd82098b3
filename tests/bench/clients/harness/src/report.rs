//! One line of JSON about one case.

use serde_json::json;

use crate::{Measured, process};

/// Prints what was measured. `connections` is what the server counted, where it was asked.
pub fn report(client: &str, measured: &Measured, connections: Option<u64>) {
    let calls = measured.latencies.len();
    let per_call = |value: f64| if calls == 0 { f64::NAN } else { value / calls as f64 };
    let line = json!({
        "client": client,
        "calls": calls,
        "errors": measured.errors,
        "first_error": measured.first_error,
        "calls_per_s": calls as f64 / measured.wall.as_secs_f64(),
        "cpu_us_per_call": per_call(measured.cpu.as_secs_f64() * 1e6),
        "p50_us": quantile(&measured.latencies, 0.5),
        "p99_us": quantile(&measured.latencies, 0.99),
        "resident_before_mb": measured.resident_before_mb,
        "peak_resident_mb": process::peak_resident_mb(),
        "connections": connections,
    });
    println!("{line}");
}

fn quantile(sorted: &[u32], share: f64) -> Option<u32> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share) as usize).copied()
}
