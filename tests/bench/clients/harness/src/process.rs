//! What this process has used up so far.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads, in the program and in the kernel.
pub(crate) fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

/// Resident memory now, in MB.
pub(crate) fn resident_mb() -> f64 {
    status_mb("VmRSS:")
}

/// The most resident memory so far, in MB.
pub(crate) fn peak_resident_mb() -> f64 {
    status_mb("VmHWM:")
}

/// 0 where the system has no such file.
fn status_mb(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0 / 1e6
}
