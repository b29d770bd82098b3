//! A scripted peer for the stdio tests: answers each request by what its method says, well or badly.
//!
//! `stdio-peer [--crlf] [--deaf]`: `--crlf` ends lines with CR LF, `--deaf` stays after the end of its input. A method is a
//! verb, with a number after a slash where it needs one (`size/5242880`); see `answer`.

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, Write as _},
    process::{Command, ExitCode},
};

struct Peer {
    line_end: &'static str,
    out: io::StdoutLock<'static>,
}

fn main() -> io::Result<ExitCode> {
    let flags: Vec<_> = std::env::args_os().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let mut peer = Peer { line_end: if has("--crlf") { "\r\n" } else { "\n" }, out: io::stdout().lock() };
    for line in io::stdin().lock().split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        let Some(method) = text_after(&line, "\"method\":\"").and_then(|rest| rest.split('"').next()) else {
            continue;
        };
        let id = text_after(&line, "\"id\":").and_then(|rest| rest.split([',', '}']).next());
        if let Some(code) = peer.answer(method, id, &line)? {
            return Ok(ExitCode::from(code));
        }
    }
    while has("--deaf") {
        std::thread::park();
    }
    Ok(ExitCode::SUCCESS)
}

impl Peer {
    /// Does what the method says; gives an exit code if that is to end.
    fn answer(&mut self, method: &str, id: Option<&str>, line: &str) -> io::Result<Option<u8>> {
        let (verb, number) = method.split_once('/').unwrap_or((method, "0"));
        let number: usize = number.parse().unwrap_or(0);
        let result = match verb {
            // What arrived, byte for byte.
            "echo" => json_string(line),
            "size" => json_string(&"x".repeat(number)),
            "pid" => std::process::id().to_string(),
            "cwd" => json_string(&std::env::current_dir()?.to_string_lossy()),
            "args" => json_array(std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned())),
            "env" => json_array(
                std::env::vars_os()
                    .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy())),
            ),
            // A message swallowed.
            "mute" => return Ok(None),
            "exit" => return Ok(Some(u8::try_from(number).unwrap_or(u8::MAX))),
            "abort" => std::process::abort(),
            // Answers without a line end, and ends.
            "last" => {
                write!(self.out, "{}", message(id, "\"last\""))?;
                self.out.flush()?;
                return Ok(Some(0));
            }
            "blank" => {
                write!(self.out, "{0}{0}", self.line_end)?;
                "\"after blank lines\"".to_owned()
            }
            "banner" => {
                write!(
                    self.out,
                    "Widget server v1.0 started OK\n{{\"level\":\"info\"}}\n[mcp] tools requested\n"
                )?;
                "\"after noise\"".to_owned()
            }
            "batch" => {
                writeln!(self.out, "[{},{}]", message(Some("9001"), "1"), message(Some("9002"), "2"))?;
                "\"after a batch\"".to_owned()
            }
            "codepage" => {
                let (before, after) = ("{\"jsonrpc\":\"2.0\",\"id\":", ",\"result\":{\"text\":\"");
                write!(self.out, "{before}{}{after}", id.unwrap_or("null"))?;
                self.out.write_all(b"\xb0\xa1\xc7\xd1\"}}\n")?;
                return Ok(None);
            }
            "headers" => {
                let body = message(id, "\"framed\"");
                write!(self.out, "Content-Length: {}\r\n\r\n{body}", body.len())?;
                self.out.flush()?;
                return Ok(None);
            }
            "noise" => {
                flood(
                    &mut self.out,
                    number,
                    b"2026-01-01 INFO  a line of log output that went to the wrong stream\n",
                )?;
                writeln!(self.out)?;
                "\"after noise\"".to_owned()
            }
            "endless" => {
                flood(&mut self.out, number, &[b'y'; 4096])?;
                writeln!(self.out)?;
                "\"after the long line\"".to_owned()
            }
            "stderr" => {
                flood(
                    &mut io::stderr().lock(),
                    number,
                    b"2026-01-01 DEBUG a line of log output where it belongs\n",
                )?;
                "\"after the log\"".to_owned()
            }
            // A process that holds the pipes open, in the same group or out of it.
            "child" => Command::new("sleep").arg("100000").spawn()?.id().to_string(),
            "runaway" => Command::new("setsid").args(["sleep", "100000"]).spawn()?.id().to_string(),
            _ => json_string(method),
        };
        if id.is_some() {
            write!(self.out, "{}{}", message(id, &result), self.line_end)?;
            self.out.flush()?;
        }
        Ok(None)
    }
}

fn message(id: Option<&str>, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", id.unwrap_or("null"))
}

fn flood(out: &mut impl io::Write, bytes: usize, piece: &[u8]) -> io::Result<()> {
    let block = piece.repeat((64 * 1024 / piece.len()).max(1));
    let mut left = bytes;
    while left > 0 {
        let now = block.get(..left.min(block.len())).unwrap_or_default();
        out.write_all(now)?;
        left -= now.len();
    }
    out.flush()
}

fn text_after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark).map(|(_, rest)| rest)
}

fn json_array(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.map(|item| json_string(&item)).collect();
    format!("[{}]", items.join(","))
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
