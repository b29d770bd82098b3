//! Starting a server process and ending all of it. Does I/O.

mod environment;
mod lookup;
mod stderr_io;
#[cfg(unix)]
mod unix_io;
#[cfg(unix)]
mod unix_output;
#[cfg(windows)]
mod windows_io;

pub(crate) use environment::environment_of;
pub(crate) use stderr_io::StderrDrain;
#[cfg(unix)]
pub(crate) use unix_io::{Process, spawn};
#[cfg(windows)]
pub(crate) use windows_io::{Process, spawn};
