//! Many connections in one process while nothing happens: what each takes of memory, and how often the process wakes up.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Count;
use super::clients::build_one;
use crate::Stop;
use crate::support::process::{self, Output};

const CONNECTIONS: u32 = 1_000;
/// Connecting takes seconds, and so does every wait in there.
const RUN_LIMIT: Duration = Duration::from_secs(180);
/// What connections there are, what a reader is to know of them, and most resident memory of each in KB where that is a goal: with a
/// standing stream two sockets are open at the same time for a while, and one for ever.
const KINDS: [(&str, &str, Option<f64>); 3] = [
    ("requests", "HTTP", Some(40.0)),
    ("streams", "HTTP, a standing stream each", None),
    ("lines", "a message a line over a socket each", None),
];

/// What one run came to.
#[derive(Debug, PartialEq)]
struct Figures {
    connected_kb: f64,
    idle_kb: f64,
    wakeups: u64,
    cpu_us: f64,
}

/// Runs each kind and prints the table.
pub(super) fn measure(quick: bool) -> Result<Count, Stop> {
    let (server, client) = (build_one("bench-server")?, build_one("bench-idle")?);
    let seconds = if quick { "3" } else { "10" };
    println!("{CONNECTIONS} connected clients in one process, looked at for {seconds} s once it is quiet");
    println!(
        "| connections | KB each when connected | KB each, idle | threshold | | wake-ups | CPU | threshold | |"
    );
    println!("|---|--:|--:|--:|---|--:|--:|--:|---|");
    let mut count = Count::default();
    for (kind, what, most_kb) in KINDS {
        let mut command = Command::new(&client);
        command.arg(&server).args([&CONNECTIONS.to_string(), seconds, kind]);
        let finished = process::run(command, RUN_LIMIT, Output::Capture);
        let figures = if finished.end.is_success() {
            figures(&finished.stdout)
        } else {
            Err(format!("{}: {}", finished.end, process::tail(&finished.stderr, 3)))
        };
        match figures {
            Ok(Figures { connected_kb, idle_kb, wakeups, cpu_us }) => {
                let memory = most_kb.map_or("- | ".to_owned(), |most| {
                    let met = idle_kb <= most;
                    count.judge(met);
                    format!("<= {most:.0} | {}", verdict(met))
                });
                count.judge(wakeups == 0);
                println!(
                    "| {what} | {connected_kb:.1} | {idle_kb:.1} | {memory} | {wakeups} | {cpu_us:.0} us | 0 wake-ups | {} |",
                    verdict(wakeups == 0)
                );
            }
            Err(why) => {
                println!("| {what} | {why} | | | | | | | MISSED |");
                count.judge(false);
            }
        }
    }
    println!();
    Ok(count)
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// Reads the line that the program prints.
fn figures(output: &str) -> Result<Figures, String> {
    let report: Value = serde_json::from_str(output.trim()).map_err(|error| format!("no report: {error}"))?;
    let number =
        |key: &str| report.get(key).and_then(Value::as_f64).ok_or_else(|| format!("the report has no {key}"));
    Ok(Figures {
        connected_kb: number("resident_kb_each_when_connected")?,
        idle_kb: number("resident_kb_each")?,
        wakeups: report.get("wakeups").and_then(Value::as_u64).ok_or("the report has no wakeups")?,
        cpu_us: number("cpu_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_a_figure_is_none() {
        let line =
            r#"{"resident_kb_each_when_connected":31.5,"resident_kb_each":30,"wakeups":2,"cpu_us":12.5}"#;
        let expected = Figures { connected_kb: 31.5, idle_kb: 30.0, wakeups: 2, cpu_us: 12.5 };
        assert_eq!(figures(line), Ok(expected));
        assert!(figures(&line.replace("wakeups", "sleeps")).unwrap_err().contains("wakeups"));
        assert!(figures("").is_err());
    }
}
