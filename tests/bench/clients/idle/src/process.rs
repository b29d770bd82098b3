//! What this process costs, by `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What all threads but the one that asks have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakeups {
    /// How often one of them went to sleep: as often as it was woken.
    pub(crate) switches: u64,
    /// How long they ran.
    pub(crate) ran: Duration,
}

impl Wakeups {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            switches: self.switches.saturating_sub(earlier.switches),
            ran: self.ran.saturating_sub(earlier.ran),
        }
    }
}

/// Asked by the main thread, which is none of those that count.
pub(crate) fn wakeups() -> io::Result<Wakeups> {
    let main_thread = std::process::id().to_string();
    let mut all = Wakeups::default();
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        if task.file_name() == main_thread.as_str() {
            continue;
        }
        let status = fs::read_to_string(task.path().join("status"))?;
        all.switches += field(&status, "voluntary_ctxt_switches:")?;
        let schedule = fs::read_to_string(task.path().join("schedstat"))?;
        let ran = schedule.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        all.ran += Duration::from_nanos(ran.ok_or_else(|| unknown("schedstat"))?);
    }
    Ok(all)
}

pub(crate) fn resident_bytes() -> io::Result<usize> {
    let kib = field(&fs::read_to_string("/proc/self/status")?, "VmRSS:")?;
    usize::try_from(kib * 1024).map_err(io::Error::other)
}

fn field(status: &str, name: &str) -> io::Result<u64> {
    let value =
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| unknown(name))
}

fn unknown(what: &str) -> io::Error {
    io::Error::other(format!("{what} is not what it is on Linux"))
}

/// Takes as many file descriptors as the system grants; the server inherits that.
pub(crate) fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where that is refused there may be enough all the same; else connecting fails and says why.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
