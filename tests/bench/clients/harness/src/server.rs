//! The HTTP server as a child of the client that is measured.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Args;

/// A running server; ended when it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl HttpServer {
    /// Starts it and waits until it says where it listens.
    ///
    /// # Errors
    /// When the program cannot be started or says nothing.
    pub fn start(args: &Args) -> io::Result<Self> {
        let mut command = Command::new(&args.server);
        command.args(["http", "--reply", &args.reply, "--tools", &args.tools().to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url)?;
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// How many TCP connections it has accepted, without the one that asks.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn connections(&self) -> io::Result<u64> {
        let bad = || io::Error::other("the server does not say how many connections it has");
        let address =
            self.url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).ok_or_else(bad)?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET /connections HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let count: u64 =
            answer.lines().next_back().and_then(|line| line.trim().parse().ok()).ok_or_else(bad)?;
        Ok(count.saturating_sub(1))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about any other failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
