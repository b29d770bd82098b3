//! Servers that write without end. Each test runs in a process of its own and compares its peak memory with the cap.

use super::support::{Session, figure, is_own_process, peak_memory, peer};

const MIB: usize = 1024 * 1024;

/// Lines are capped at 16 MiB by default; what a flood may cost is three of them.
const MOST: u64 = 3 * 16 * MIB as u64;

fn flood(name: &str, method: &str, check: fn(&Session)) {
    if !is_own_process(name) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = Session::start(&peer());
        session.ask("ping").await;
        let before = peak_memory();
        let begin = std::time::Instant::now();
        session.ask(method).await;
        let took = begin.elapsed();
        // The same connection still works.
        session.ask("ping").await;
        let grown = peak_memory() - before;
        figure(&format!("{method}: {} KiB more at the peak, {} ms", grown / 1024, took.as_millis()));
        assert!(grown < MOST, "{grown}");
        check(&session);
    });
}

#[test]
fn a_quarter_gib_of_noise_is_counted_in_bounded_memory() {
    // auth:SEC-09, auth:LIM-08
    let name = "stdio::flood::a_quarter_gib_of_noise_is_counted_in_bounded_memory";
    flood(name, "noise/268435456", |session| {
        let lines = 268_435_456u64.div_ceil(68);
        assert!(session.receiver.counts().invalid.abs_diff(lines) <= 4096, "{:?}", session.receiver.counts());
    });
}

#[test]
fn one_gib_of_standard_error_is_drained_in_bounded_memory() {
    // auth:SEC-09, auth:LIM-16
    let name = "stdio::flood::one_gib_of_standard_error_is_drained_in_bounded_memory";
    flood(name, "stderr/1073741824", |session| assert_eq!(session.receiver.counts().invalid, 0));
}

#[test]
fn one_endless_line_is_dropped_in_bounded_memory() {
    // auth:SEC-09, auth:LIM-08
    let name = "stdio::flood::one_endless_line_is_dropped_in_bounded_memory";
    flood(name, "endless/1073741824", |session| assert_eq!(session.oversized, [1_073_741_824]));
}
