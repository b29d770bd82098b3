//! Reads one URL a line and prints what a person should be told before opening it. Nothing is fetched or opened.
//!
//! `--server URL` names the MCP server, for the `lookalike` warning; `--no-loopback-http` refuses `http` on
//! loopback hosts too. Anything else is a usage mistake: exit 2.

#![expect(clippy::print_stderr, reason = "a program at a shell")]

use std::{
    io::{self, BufRead, Write},
    process::ExitCode,
};

use mcp_elicitation::{UrlPolicy, UrlWarning};
use serde_json::json;

fn policy(mut args: impl Iterator<Item = String>) -> Option<UrlPolicy> {
    let mut policy = UrlPolicy::default();
    while let Some(arg) = args.next() {
        policy = match arg.as_str() {
            "--no-loopback-http" => policy.allow_loopback_http(false),
            "--server" => {
                let policy = policy.server(&args.next()?);
                policy.server_host()?;
                policy
            }
            _ => return None,
        };
    }
    Some(policy)
}

fn main() -> io::Result<ExitCode> {
    let Some(policy) = policy(std::env::args().skip(1)) else {
        eprintln!("usage: url_check [--server URL] [--no-loopback-http] < lines");
        return Ok(ExitCode::from(2));
    };
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        // The line end belongs to the format of this program, everything before it to the URL.
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let given = String::from_utf8_lossy(line);
        let report = policy.examine(&given);
        let warnings: Vec<&str> = report.warnings().iter().copied().map(UrlWarning::as_str).collect();
        let judgement = json!({
            "input": report.given(),
            "normalized": report.normalized(),
            "host": report.host(),
            "registrable_domain": report.registrable_domain(),
            "verdict": report.verdict().as_str(),
            "reason": report.refusal().map(ToString::to_string),
            "warnings": warnings,
        });
        writeln!(stdout, "{judgement}")?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
