//! The cases, and how they are run: client after client on each case, and all of it again, so that a busy moment of the
//! machine meets all clients alike.

use std::collections::HashMap;
use std::fmt;

use super::clients::{Amount, Client, Programs, Sample};
use crate::Stop;
use crate::support::interrupt::interrupted;

/// Calls one after the other, to count the connections that they take.
pub(crate) const SEQUENTIAL_CALLS: u64 = 2046;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    /// HTTP, answered with JSON.
    Json,
    /// HTTP, answered with an event stream.
    Sse,
    Stdio,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    pub(crate) transport: Transport,
    pub(crate) op: &'static str,
    pub(crate) size: usize,
    pub(crate) in_flight: usize,
}

impl Case {
    /// A large structured result, parsed into a tree.
    pub(crate) const PARSED: Self = Self::new(Transport::Stdio, "struct", 1_000_000, 1);
    /// The same, left as raw JSON.
    pub(crate) const RAW: Self = Self { op: "struct-raw", ..Self::PARSED };

    pub(crate) const fn new(transport: Transport, op: &'static str, size: usize, in_flight: usize) -> Self {
        Self { transport, op, size, in_flight }
    }

    /// The case of the peers that this one is compared with. They read structured content into a value in any case.
    fn of_peers(self) -> Self {
        if self.op == "struct-raw" { Self { op: "struct", ..self } } else { self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Json => "HTTP JSON",
            Transport::Sse => "HTTP SSE",
            Transport::Stdio => "stdio",
        };
        let unit = if self.op == "list" { "tools" } else { "B" };
        let Self { op, size, in_flight, .. } = self;
        write!(f, "{transport} {op} {size} {unit}, {in_flight} in flight")
    }
}

/// Operation, size, calls in flight.
const CASES: &[(&str, usize, usize)] = &[
    ("blob", 100, 1),
    ("blob", 100, 64),
    ("blob", 10_000, 1),
    ("blob", 10_000, 64),
    ("blob", 1_000_000, 1),
    ("blob", 1_000_000, 64),
    ("blob", 16_000_000, 1),
    ("blob", 16_000_000, 8),
    ("echo", 10_000, 1),
    ("echo", 1_000_000, 1),
    ("struct", 10_000, 1),
    ("struct", 1_000_000, 1),
    ("struct-raw", 1_000_000, 1),
    ("list", 1_000, 1),
];

pub(crate) fn cases(transport: Transport) -> impl Iterator<Item = Case> {
    CASES.iter().map(move |(op, size, in_flight)| Case::new(transport, op, *size, *in_flight))
}

/// All runs of all clients.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    runs: HashMap<(Case, Client), Vec<Result<Sample, String>>>,
    /// New TCP connections of [`SEQUENTIAL_CALLS`] calls.
    pub(crate) connections: HashMap<(Transport, Client), Result<f64, String>>,
}

impl Samples {
    pub(crate) fn add(&mut self, case: Case, client: Client, run: Result<Sample, String>) {
        self.runs.entry((case, client)).or_default().push(run);
    }

    /// The median of a figure.
    pub(crate) fn figure(&self, case: Case, client: Client, of: fn(&Sample) -> f64) -> Result<f64, String> {
        median(self.good(case, client)?.map(of).collect())
    }

    /// The median of the ratios of the rounds, ours over a peer's.
    pub(crate) fn ratio(&self, case: Case, peer: Client, of: fn(&Sample) -> f64) -> Result<f64, String> {
        self.ratio_of(Client::Ours, case, peer, of)
    }

    /// The median of the ratios of the rounds, one client's over a peer's.
    pub(crate) fn ratio_of(
        &self,
        client: Client,
        case: Case,
        peer: Client,
        of: fn(&Sample) -> f64,
    ) -> Result<f64, String> {
        let clients = self.good(case, client)?;
        let peers = self.good(case.of_peers(), peer)?;
        median(clients.zip(peers).map(|(client, peer)| of(client) / of(peer)).collect())
    }

    /// The runs of one client, where none failed.
    fn good(&self, case: Case, client: Client) -> Result<impl Iterator<Item = &Sample>, String> {
        let runs = self.runs.get(&(case.of(client), client)).map(Vec::as_slice).unwrap_or_default();
        match runs.iter().find_map(|run| run.as_ref().err()) {
            Some(error) => Err(format!("{client:?}: {error}")),
            None => Ok(runs.iter().flatten()),
        }
    }
}

impl Case {
    fn of(self, client: Client) -> Self {
        if client == Client::Ours { self } else { self.of_peers() }
    }
}

fn median(mut figures: Vec<f64>) -> Result<f64, String> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().ok_or_else(|| "was not run".to_owned())
}

pub(crate) fn measure(transports: &[Transport], quick: bool, programs: &Programs) -> Result<Samples, Stop> {
    let (rounds, seconds) = if quick { (1, 0.3) } else { (3, 1.0) };
    println!(
        "client and server {}, {rounds} rounds of {seconds} s a case and client",
        if programs.pinned {
            "pinned to one core together"
        } else {
            "NOT pinned, as there is no taskset here"
        }
    );
    if let Some(load) = load_average() {
        println!(
            "load average {load} before the runs; latencies and calls per second mean little unless it is near 0"
        );
    }
    let mut samples = Samples::default();
    for round in 1..=rounds {
        for case in transports.iter().flat_map(|transport| cases(*transport)) {
            eprintln!("round {round}: {case}");
            for client in programs.clients(case) {
                if interrupted() {
                    return Err(Stop::Broken("interrupted".into()));
                }
                if case.of(client) != case {
                    continue;
                }
                samples.add(case, client, programs.run(client, &case, Amount::Seconds(seconds)));
            }
        }
    }
    for transport in transports.iter().filter(|transport| **transport != Transport::Stdio) {
        let case = Case::new(*transport, "blob", 100, 1);
        for client in Client::of(*transport) {
            let run = programs.run(*client, &case, Amount::Calls(SEQUENTIAL_CALLS));
            let connections = run.and_then(|run| run.connections.ok_or_else(|| "no number".to_owned()));
            samples.connections.insert((*transport, *client), connections);
        }
    }
    Ok(samples)
}

/// Of the last minute, where the system tells.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_us_per_call: f64) -> Result<Sample, String> {
        Ok(Sample::of_cpu(cpu_us_per_call))
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let case = Case::new(Transport::Stdio, "struct-raw", 100, 1);
        let mut samples = Samples::default();
        samples.runs.insert((case, Client::Ours), vec![sample(1.0), sample(8.0), sample(3.0)]);
        samples.runs.insert((case.of_peers(), Client::Rmcp), vec![sample(2.0), sample(10.0), sample(10.0)]);
        assert_eq!(samples.ratio(case, Client::Rmcp, |sample| sample.cpu_us_per_call), Ok(0.5));
        assert_eq!(samples.figure(case, Client::Rmcp, |sample| sample.cpu_us_per_call), Ok(10.0));
    }

    #[test]
    fn one_failed_run_spoils_the_figure() {
        let case = Case::new(Transport::Json, "blob", 100, 1);
        let mut samples = Samples::default();
        samples.runs.insert((case, Client::Ours), vec![sample(1.0), Err("timed out".to_owned())]);
        assert!(
            samples.figure(case, Client::Ours, |sample| sample.p99_us).unwrap_err().contains("timed out")
        );
        assert!(samples.figure(case, Client::Rmcp, |sample| sample.p99_us).unwrap_err().contains("not run"));
    }
}
