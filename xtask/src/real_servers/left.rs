//! What a server leaves behind: processes that live on after the client that started them has ended.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that marks every process of a visit: children inherit it, also those that leave the process group.
const NAME: &str = "MCP_REAL_SERVERS_VISIT";
/// A killed process is listed until its parent, or init, has taken notice.
const GRACE: Duration = Duration::from_secs(20);

/// The mark of one visit.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{NAME}={}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The variable, `NAME=value`.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether everything with this mark has ended. Where the system does not show the variables of processes, it has.
    pub(super) fn is_gone(&self) -> Result<(), String> {
        self.is_gone_within(GRACE)
    }

    fn is_gone_within(&self, grace: Duration) -> Result<(), String> {
        let deadline = Instant::now() + grace;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(format!("left running: {}", left.join("; ")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[cfg(target_os = "linux")]
    fn processes(&self) -> Vec<String> {
        let marked = |folder: &std::path::Path| {
            let environment = std::fs::read(folder.join("environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == self.0.as_bytes())
                .then_some(())?;
            let words = std::fs::read(folder.join("cmdline")).unwrap_or_default();
            Some(format!("{} {}", folder.display(), String::from_utf8_lossy(&words).replace('\0', " ")))
        };
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter_map(|entry| marked(&entry.path())).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn processes(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_with_the_mark_is_found_until_it_ends() {
        let mark = Mark::new();
        let (name, value) = mark.as_str().split_once('=').unwrap();
        let mut child = Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let begun = Instant::now();
        // A new process shows its variables a little after it was started.
        let found = loop {
            match mark.is_gone_within(Duration::ZERO) {
                Ok(()) if begun.elapsed() < GRACE => thread::sleep(Duration::from_millis(1)),
                found => break found,
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.unwrap_err().contains("sleep 60"));
        assert_eq!(mark.is_gone(), Ok(()));
        assert_eq!(Mark::new().is_gone(), Ok(()));
    }
}
