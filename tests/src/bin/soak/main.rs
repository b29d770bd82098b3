//! Mixed traffic for as long as one likes, over both transports and in both eras at once, with a fault in every hundredth answer.
//!
//! `soak --minutes N` prints what was called, what failed and how, and how memory, descriptors and tasks developed, and ends with
//! `N passed, M failed`. `--serve stdio` and `--serve http` are this program in the role of the server; they are for itself.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

mod count;
mod heap;
mod measure;
mod replies;
mod report;
mod serve_http;
mod serve_stdio;
mod traffic;

use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: soak --minutes N";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve", "stdio"] => serve_stdio::run(),
        ["--serve", "http"] => serve_http::run(),
        ["--minutes", minutes] => match minutes.parse::<f64>() {
            Ok(minutes) if minutes > 0.0 && minutes < 100_000.0 => {
                soak(Duration::from_secs_f64(minutes * 60.0))
            }
            _ => usage(&format!("{minutes:?} is no number of minutes")),
        },
        _ => usage("--minutes is missing"),
    }
}

fn usage(mistake: &str) -> ExitCode {
    eprintln!("soak: {mistake}\n\n{USAGE}");
    ExitCode::from(2)
}

fn soak(time: Duration) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(traffic::run(time)),
        Err(error) => {
            eprintln!("soak: no runtime: {error}");
            ExitCode::FAILURE
        }
    }
}
