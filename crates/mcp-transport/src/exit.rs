//! How a process ended.

use std::fmt;

/// How a server process ended: an exit code, a signal, or something the system did not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessExit {
    code: Option<i32>,
    signal: Option<i32>,
}

impl ProcessExit {
    /// The end by `exit(code)`.
    pub const fn from_code(code: i32) -> Self {
        Self { code: Some(code), signal: None }
    }

    /// The end by a signal.
    pub const fn from_signal(signal: i32) -> Self {
        Self { code: None, signal: Some(signal) }
    }

    /// The process is gone, and somebody else collected its status.
    pub const fn unknown() -> Self {
        Self { code: None, signal: None }
    }

    /// The exit code, unless a signal ended it.
    pub const fn code(self) -> Option<i32> {
        self.code
    }

    /// The number of the signal that ended it.
    pub const fn signal(self) -> Option<i32> {
        self.signal
    }

    /// The end as the verb of a sentence: `ended with exit code 1`, `was ended by signal 9 (SIGKILL)`.
    #[cfg_attr(not(feature = "stdio"), allow(dead_code, reason = "only that transport has processes"))]
    pub(crate) fn told(self) -> String {
        let verb = if self.signal.is_some() { "was ended by" } else { "ended with" };
        format!("{verb} {self}")
    }

    /// Whether it ended by itself with code 0.
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}

impl From<std::process::ExitStatus> for ProcessExit {
    fn from(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            (None, None) => f.write_str("an unknown status"),
        }
    }
}

/// The signals whose numbers POSIX fixes; the rest differ from system to system.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_code_and_signal() {
        assert_eq!(ProcessExit::from_code(3).to_string(), "exit code 3");
        assert_eq!(ProcessExit::from_signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(ProcessExit::from_signal(64).to_string(), "signal 64");
        assert_eq!(ProcessExit::unknown().to_string(), "an unknown status");
        assert_eq!(ProcessExit::from_code(3).told(), "ended with exit code 3");
        assert_eq!(ProcessExit::from_signal(9).told(), "was ended by signal 9 (SIGKILL)");
        let names = ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "ALRM", "TERM"];
        for (signal, name) in [1, 2, 3, 6, 9, 11, 13, 14, 15].into_iter().zip(names) {
            let text = ProcessExit::from_signal(signal).to_string();
            assert_eq!(text, format!("signal {signal} (SIG{name})"));
        }
    }

    #[test]
    fn only_code_zero_is_a_success() {
        for (exit, code, signal, success) in [
            (ProcessExit::from_code(0), Some(0), None, true),
            (ProcessExit::from_code(1), Some(1), None, false),
            (ProcessExit::from_signal(9), None, Some(9), false),
            (ProcessExit::unknown(), None, None, false),
        ] {
            assert_eq!((exit.code(), exit.signal(), exit.success()), (code, signal, success));
        }
    }
}
