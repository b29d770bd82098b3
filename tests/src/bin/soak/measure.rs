//! What the process holds, over time.

use std::time::{Duration, Instant};

use crate::heap::live_bytes;

/// One look at the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    pub(crate) resident_bytes: u64,
    /// Allocated and not given back.
    pub(crate) heap_bytes: u64,
    pub(crate) descriptors: usize,
    pub(crate) tasks: usize,
}

impl Holds {
    /// What this process holds now. Zeros where the system does not tell in the way of Linux.
    pub(crate) fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        // The handle that reads the folder is itself one of its entries.
        let descriptors =
            std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1));
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Self { resident_bytes: pages * 4096, heap_bytes: live_bytes(), descriptors, tasks }
    }
}

/// Memory at points in time, from which a slope is taken.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    began: Instant,
    points: Vec<(f64, f64)>,
}

impl Series {
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, points: Vec::new() }
    }

    pub(crate) fn push(&mut self, at: Instant, bytes: u64) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        self.points.push((at.duration_since(self.began).as_secs_f64(), bytes as f64));
    }

    /// Drops what was measured before `warm`.
    pub(crate) fn after(&self, warm: Duration) -> Self {
        let points = self.points.iter().copied().filter(|(at, _)| *at >= warm.as_secs_f64()).collect();
        Self { began: self.began, points }
    }

    /// The lowest point of each stretch of time so long. What stays behind is there at the quietest moment too; what is above it
    /// is traffic in flight, and depends on what else the machine has to do.
    pub(crate) fn floors(&self, stretch: Duration) -> Self {
        let stretch = stretch.as_secs_f64();
        let mut floors: Vec<(f64, f64)> = Vec::new();
        let mut ends = f64::NEG_INFINITY;
        for &(at, bytes) in &self.points {
            match floors.last_mut() {
                Some(lowest) if at < ends => {
                    if bytes < lowest.1 {
                        *lowest = (at, bytes);
                    }
                }
                _ => {
                    ends = at + stretch;
                    floors.push((at, bytes));
                }
            }
        }
        Self { began: self.began, points: floors }
    }

    /// MiB an hour, by least squares; `None` for fewer than two points in time.
    pub(crate) fn slope_mib_per_hour(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a point a second")]
        let count = self.points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.points.iter().map(of).sum::<f64>() / count;
        let (mean_at, mean_bytes) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = self.points.iter().map(|(at, _)| (at - mean_at).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let joint: f64 = self.points.iter().map(|(at, bytes)| (at - mean_at) * (bytes - mean_bytes)).sum();
        Some(joint / spread * 3600.0 / (1024.0 * 1024.0))
    }

    pub(crate) fn hours(&self) -> f64 {
        match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => (last.0 - first.0) / 3600.0,
            _ => 0.0,
        }
    }

    pub(crate) fn peak_mib(&self) -> f64 {
        self.points.iter().map(|(_, bytes)| bytes / (1024.0 * 1024.0)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bytes_per_second: u64, seconds: u64) -> Series {
        let began = Instant::now();
        let mut series = Series::new(began);
        for second in 0..seconds {
            series.push(began + Duration::from_secs(second), 1_000_000 + second * bytes_per_second);
        }
        series
    }

    #[test]
    fn the_slope_of_a_line_is_its_own() {
        let slope = series(1024, 100).slope_mib_per_hour().unwrap();
        assert!((slope - 3600.0 / 1024.0).abs() < 1e-6, "{slope}");
        assert!(series(0, 100).slope_mib_per_hour().unwrap().abs() < 1e-9);
        assert_eq!(series(1, 1).slope_mib_per_hour(), None);
    }

    #[test]
    fn peaks_between_floors_do_not_count() {
        let mut busy = series(0, 100);
        for (second, point) in busy.points.iter_mut().enumerate().filter(|(second, _)| second % 10 != 7) {
            point.1 += f64::from(u32::try_from(second).unwrap()) * 1e6;
        }
        assert!(busy.slope_mib_per_hour().unwrap() > 1.0);
        let floors = busy.floors(Duration::from_secs(10));
        assert_eq!(floors.points.len(), 10);
        assert!(floors.slope_mib_per_hour().unwrap().abs() < 1e-9);
        let leak = series(1024, 100).floors(Duration::from_secs(10));
        assert!((leak.slope_mib_per_hour().unwrap() - 3600.0 / 1024.0).abs() < 1e-6);
    }

    #[test]
    fn what_lies_before_the_warm_up_does_not_count() {
        let mut late = series(1 << 20, 10);
        for point in late.points.iter_mut().filter(|point| point.0 >= 5.0) {
            point.1 = 7.0;
        }
        assert!(late.after(Duration::from_secs(5)).slope_mib_per_hour().unwrap().abs() < 1e-9);
    }
}
