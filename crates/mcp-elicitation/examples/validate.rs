//! Reads one JSON object a line: `{"params": <elicitation/create params>, "answer": <ElicitResult>, "revision":
//! "2025-11-25"}`, and prints what a client would send, or everything that is wrong. `revision` may be left out.
//!
//! Further arguments are a usage mistake: exit 2.

#![expect(clippy::print_stderr, reason = "a program at a shell")]

use std::{
    io::{self, BufRead, Write},
    process::ExitCode,
};

use mcp_elicitation::{ElicitRequest, ElicitResult, Revision, Violation};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

#[derive(Deserialize)]
struct Line<'a> {
    // Text and not a value: the order of fields and duplicate names are part of what is checked.
    #[serde(borrow)]
    params: &'a RawValue,
    answer: Value,
    revision: Option<String>,
}

fn judge(line: &str) -> Value {
    let input = |message: String| json!({"ok": false, "stage": "input", "message": message});
    // A derived reader would also take an array, member by member.
    if !line.trim_start().starts_with('{') {
        return input("the line is no JSON object".to_owned());
    }
    let line: Line<'_> = match serde_json::from_str(line) {
        Ok(line) => line,
        Err(error) => return input(error.to_string()),
    };
    let revision = line.revision.as_deref().unwrap_or(Revision::V2025_11_25.as_str());
    let Ok(revision) = revision.parse::<Revision>() else {
        return input("not a revision with elicitation".to_owned());
    };
    let broken = |stage: &str, violations: &[Violation]| json!({"ok": false, "stage": stage, "violations": violations});
    let request = match ElicitRequest::parse(line.params.get(), revision) {
        Ok(request) => request,
        Err(error) => return broken("request", error.violations()),
    };
    match ElicitResult::from_value(line.answer).and_then(|answer| request.check(answer)) {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(error) => broken("answer", error.violations()),
    }
}

fn main() -> io::Result<ExitCode> {
    if std::env::args_os().len() > 1 {
        eprintln!("usage: validate < lines");
        return Ok(ExitCode::from(2));
    }
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let judgement = match std::str::from_utf8(&line) {
            Ok(line) => judge(line),
            Err(_) => json!({"ok": false, "stage": "input", "message": "not UTF-8"}),
        };
        writeln!(stdout, "{judgement}")?;
    }
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
