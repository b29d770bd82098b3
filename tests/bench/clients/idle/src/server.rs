//! The server, in a process of its own so that it does not count.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running server; ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(program: &str, kind: &str) -> io::Result<Self> {
        let words: &[&str] = match kind {
            "lines" => &["lines"],
            "streams" => &["http", "--stream"],
            _ => &["http"],
        };
        let mut child = Command::new(program).args(words).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut address)?;
        }
        Ok(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about any other failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
