//! The matrix of malformed and aborted server behaviours, against the public API of `mcp-client`.
//!
//! `hostile [--transport stdio|http] [--verbose] [--only PART]` prints each behaviour that went wrong (with `--verbose` each one) and ends
//! with `N tried, 0 hung, 0 panicked, 0 lost another call, 0 wrong error`. Exit 1 where one of the last four is not 0, 2 for
//! a usage mistake. `--peer <table> <behaviour>` is this program in the role of the server; it is for itself.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the shell")]

mod behaviour;
mod http_bodies;
mod http_heads;
mod http_peer;
mod http_streams;
mod letters;
mod met;
mod modern;
mod modern_errors;
mod modern_http;
mod modern_input;
mod modern_listen;
mod modern_probe;
mod modern_stdio;
mod runner;
mod server;
mod stdio_bytes;
mod stdio_peer;
mod stdio_processes;
mod visit;

use std::collections::HashSet;
use std::process::ExitCode;

use behaviour::{Behaviour, Transport};

const USAGE: &str = "usage: hostile [--transport stdio|http] [--verbose] [--only PART_OF_A_NAME]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, table, name] = words.as_slice()
        && flag == "--peer"
    {
        return match find(table, name) {
            Some(behaviour) => stdio_peer::run(behaviour),
            None => usage(&format!("there is no behaviour {name:?}")),
        };
    }
    let (mut transport, mut verbose, mut only) = (None, false, None);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--verbose" => verbose = true,
            "--only" => only = words.next(),
            "--transport" => match words.next().as_deref() {
                Some("stdio") => transport = Some(Transport::Stdio),
                Some("http") => transport = Some(Transport::Http),
                _ => return usage("--transport is stdio or http"),
            },
            _ => return usage(&format!("{word:?} is not understood here")),
        }
    }
    let mut behaviours = all(transport);
    let mut names = HashSet::new();
    if let Some(twice) = behaviours.iter().find(|behaviour| !names.insert(behaviour.name.clone())) {
        eprintln!("hostile: two behaviours are called {:?}", twice.name);
        return ExitCode::FAILURE;
    }
    if let Some(part) = only {
        behaviours.retain(|behaviour| behaviour.name.contains(&part));
        if behaviours.is_empty() {
            return usage(&format!("no name has {part:?} in it"));
        }
    }
    let tally = runner::run(behaviours, verbose);
    println!("{tally}");
    if tally.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(mistake: &str) -> ExitCode {
    eprintln!("hostile: {mistake}\n\n{USAGE}");
    ExitCode::from(2)
}

/// What is in one table.
type Rows = fn() -> Vec<Behaviour>;

/// The tables, each with the transport of what is in it.
const TABLES: &[(Transport, Rows)] = &[
    (Transport::Stdio, stdio_bytes::all),
    (Transport::Stdio, stdio_processes::all),
    (Transport::Stdio, modern_stdio::all),
    (Transport::Stdio, || modern_errors::all(Transport::Stdio)),
    (Transport::Stdio, || modern_input::all(Transport::Stdio)),
    (Transport::Stdio, || modern_listen::all(Transport::Stdio)),
    (Transport::Stdio, || modern_probe::all(Transport::Stdio)),
    (Transport::Http, http_bodies::all),
    (Transport::Http, http_heads::all),
    (Transport::Http, http_streams::all),
    (Transport::Http, modern_http::all),
    (Transport::Http, || modern_errors::all(Transport::Http)),
    (Transport::Http, || modern_input::all(Transport::Http)),
    (Transport::Http, || modern_listen::all(Transport::Http)),
    (Transport::Http, || modern_probe::all(Transport::Http)),
];

/// The matrix.
fn all(transport: Option<Transport>) -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (table, (of, rows)) in TABLES.iter().enumerate() {
        if transport.is_none_or(|transport| transport == *of) {
            all.extend(rows().into_iter().map(|row| Behaviour { table, ..row }));
        }
    }
    all
}

/// One row, by its table and its name.
fn find(table: &str, name: &str) -> Option<Behaviour> {
    let (_, rows) = TABLES.get(table.parse::<usize>().ok()?)?;
    rows().into_iter().find(|behaviour| behaviour.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_of_each_transport_has_its_hundreds_of_behaviours_by_names_of_their_own() {
        for transport in [Transport::Stdio, Transport::Http] {
            let names: Vec<String> =
                all(Some(transport)).into_iter().map(|behaviour| behaviour.name).collect();
            let modern = names.iter().filter(|name| name.starts_with("modern ")).count();
            assert!(modern >= 200 && names.len() - modern >= 200);
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        }
    }

    #[test]
    fn the_peer_finds_what_it_is_to_be() {
        for behaviour in all(Some(Transport::Stdio)).iter().step_by(97) {
            let found = find(&behaviour.table.to_string(), &behaviour.name);
            assert_eq!(found.map(|found| found.name).as_ref(), Some(&behaviour.name));
        }
        assert!(find("0", "no such behaviour").is_none() && find("99", "").is_none());
    }
}
