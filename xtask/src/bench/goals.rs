//! What a whole client must reach beside rmcp 3.11.0, and the table that says whether it does.

use super::Count;
use super::clients::{Client, Sample};
use super::matrix::{Case, SEQUENTIAL_CALLS, Samples, Transport, cases};

/// Most processor time per call, as a ratio to a peer's, for the cases with a goal of their own.
const CPU_GOALS: &[(Case, Client, f64)] = &[
    (Case::new(Transport::Stdio, "blob", 100, 1), Client::Rmcp, 0.52),
    (Case::new(Transport::Stdio, "blob", 100, 64), Client::Rmcp, 0.33),
    (Case::new(Transport::Stdio, "blob", 10_000, 64), Client::Rmcp, 0.45),
    (Case::new(Transport::Stdio, "blob", 1_000_000, 1), Client::Rmcp, 0.35),
    (Case::PARSED, Client::Rmcp, 0.4),
    (Case::RAW, Client::Rmcp, KEPT_RAW),
    (Case::new(Transport::Stdio, "list", 1_000, 1), Client::Rmcp, 0.42),
    (Case::new(Transport::Json, "blob", 100, 1), Client::RmcpTuned, 0.35),
    (Case::new(Transport::Json, "blob", 100, 64), Client::RmcpTuned, 0.5),
    (Case::new(Transport::Json, "list", 1_000, 1), Client::Rmcp, 0.42),
    (Case::new(Transport::Sse, "blob", 100, 64), Client::RmcpTuned, 0.5),
    (Case::new(Transport::Sse, "blob", 1_000_000, 1), Client::RmcpTuned, 0.22),
    (Case::new(Transport::Sse, "list", 1_000, 1), Client::Rmcp, 0.42),
];
/// What a large structured result may cost that is not parsed.
const KEPT_RAW: f64 = 0.08;
/// Every other case: not slower than the best that a user of the peer can have.
const NO_SLOWER: f64 = 1.0;

/// Most of the latency that 99 in 100 calls stay under, with 64 in flight.
const P99_GOAL: f64 = 0.6;

/// The least calls per second with 64 in flight.
const fn rate_goal(transport: Transport) -> f64 {
    match transport {
        Transport::Stdio => 2.6,
        Transport::Json | Transport::Sse => 1.7,
    }
}

const LARGE_BYTES: usize = 16_000_000;
/// Most memory that a large text may take, as a multiple of the text.
const GROWTH_GOAL: f64 = 3.0;

/// Prints the table, and a second one where the TypeScript clients were run, which are compared and not a goal.
pub(crate) fn judge(samples: &Samples, transports: &[Transport], typescript: bool) -> Count {
    println!("| goal | case | ours | rmcp | rmcp tuned | measured | threshold | |");
    println!("|---|---|--:|--:|--:|--:|--:|---|");
    let mut table = Table::new(samples);
    for transport in transports {
        for case in cases(*transport) {
            table.cpu(case);
        }
        let busy = Case::new(*transport, "blob", 100, 64);
        table.ratio(
            "p99 latency",
            busy,
            peer(*transport),
            |sample| sample.p99_us,
            0,
            "us",
            Bound::AtMost(P99_GOAL),
        );
        let least = Bound::AtLeast(rate_goal(*transport));
        table.ratio("calls per second", busy, peer(*transport), |sample| sample.calls_per_s, 0, "/s", least);
        for in_flight in [1, 8] {
            table.growth(Case::new(*transport, "blob", LARGE_BYTES, in_flight));
        }
        if *transport != Transport::Stdio {
            table.connections(*transport);
        }
    }
    if typescript {
        println!();
        println!(
            "| client CPU per call | ours | TypeScript 2.4 | TypeScript 1.32 | of the faster of these | |"
        );
        println!("|---|--:|--:|--:|--:|---|");
        for case in transports.iter().flat_map(|transport| cases(*transport)) {
            table.typescript(case);
        }
    }
    println!();
    for note in &table.notes {
        println!("note: {note}");
    }
    for missed in &table.missed {
        println!("missed: {missed}");
    }
    table.count
}

/// The best that a user of rmcp can have.
fn peer(transport: Transport) -> Client {
    if transport == Transport::Stdio { Client::Rmcp } else { Client::RmcpTuned }
}

fn cpu_us(sample: &Sample) -> f64 {
    sample.cpu_us_per_call
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

struct Table<'a> {
    samples: &'a Samples,
    count: Count,
    missed: Vec<String>,
    notes: Vec<String>,
}

impl<'a> Table<'a> {
    fn new(samples: &'a Samples) -> Self {
        Self { samples, count: Count::default(), missed: Vec::new(), notes: Vec::new() }
    }

    /// Where parsing a tree takes more than the goal by itself, or nearly, no client that hands out the tree can meet it. It may then
    /// come to as much above that as an answer costs that is not parsed.
    fn cpu(&mut self, case: Case) {
        let goal = CPU_GOALS.iter().find(|(goal, ..)| *goal == case);
        let (peer, mut at_most) =
            goal.map_or((peer(case.transport), NO_SLOWER), |(_, peer, at_most)| (*peer, *at_most));
        if case == Case::PARSED
            && let Ok(parser) = self.samples.ratio_of(Client::Floor, case, peer, cpu_us)
        {
            at_most = at_most.max(parser + KEPT_RAW);
            self.notes.push(format!("{case}: parsing and dropping the tree alone takes {parser:.2}x"));
        }
        self.ratio("CPU per call", case, peer, cpu_us, 1, "us", Bound::AtMost(at_most));
    }

    /// A figure of ours over that of a peer.
    #[expect(clippy::too_many_arguments, reason = "it is a row, and each of them a cell")]
    fn ratio(
        &mut self,
        what: &str,
        case: Case,
        peer: Client,
        of: fn(&Sample) -> f64,
        decimals: usize,
        unit: &str,
        bound: Bound,
    ) {
        let cells = self.cells(case, of, decimals, unit);
        let against = if peer == Client::Rmcp { "rmcp" } else { "tuned" };
        let measured = self.samples.ratio(case, peer, of);
        self.row(&format!("{what}, against {against}"), &case.to_string(), cells, measured, "x", bound);
    }

    /// Ours over the faster of the TypeScript clients.
    fn typescript(&self, case: Case) {
        let [client, sdk] = Client::TYPESCRIPT;
        let cells = [Client::Ours, client, sdk]
            .map(|client| cell(self.samples.figure(case, client, cpu_us), 1, "us"))
            .join(" | ");
        let [client, sdk] = [client, sdk].map(|client| self.samples.ratio(case, client, cpu_us));
        let (measured, verdict) = match client.and_then(|client| Ok(client.max(sdk?))) {
            Ok(ratio) => (format!("{ratio:.2}x"), if ratio > 1.0 { "slower" } else { "faster" }),
            Err(why) => (why, "failed"),
        };
        println!("| {case} | {cells} | {measured} | {verdict} |");
    }

    fn growth(&mut self, case: Case) {
        let of: fn(&Sample) -> f64 = |sample| sample.growth_mb;
        let cells = self.cells(case, of, 0, "MB");
        let payload_mb = (case.size * case.in_flight) as f64 / 1e6;
        let measured = self.samples.figure(case, Client::Ours, of).map(|growth| growth / payload_mb);
        let what = "peak memory above start, in payloads";
        self.row(what, &case.to_string(), cells, measured, "x", Bound::AtMost(GROWTH_GOAL));
    }

    fn connections(&mut self, transport: Transport) {
        let of = |client| {
            let missing = || Err("was not run".to_owned());
            self.samples.connections.get(&(transport, client)).cloned().unwrap_or_else(missing)
        };
        let cells = [Client::Ours, Client::Rmcp, Client::RmcpTuned].map(|client| cell(of(client), 0, ""));
        let case = format!("{SEQUENTIAL_CALLS} calls, {transport:?}");
        self.row("TCP connections", &case, cells, of(Client::Ours), "", Bound::AtMost(1.0));
    }

    fn cells(&self, case: Case, of: fn(&Sample) -> f64, decimals: usize, unit: &str) -> [String; 3] {
        [Client::Ours, Client::Rmcp, Client::RmcpTuned].map(|client| {
            if Client::of(case.transport).contains(&client) {
                cell(self.samples.figure(case, client, of), decimals, unit)
            } else {
                "-".to_owned()
            }
        })
    }

    fn row(
        &mut self,
        goal: &str,
        case: &str,
        cells: [String; 3],
        measured: Result<f64, String>,
        unit: &str,
        bound: Bound,
    ) {
        let (met, sign, threshold) = match bound {
            Bound::AtLeast(least) => (measured.as_ref().is_ok_and(|figure| *figure >= least), ">=", least),
            Bound::AtMost(most) => (measured.as_ref().is_ok_and(|figure| *figure <= most), "<=", most),
        };
        let measured = measured.map_or_else(|why| why, |figure| format!("{figure:.2}{unit}"));
        let verdict = if met { "met" } else { "MISSED" };
        let cells = cells.join(" | ");
        println!("| {goal} | {case} | {cells} | {measured} | {sign} {threshold:.2}{unit} | {verdict} |");
        self.count.judge(met);
        if !met {
            self.missed.push(format!("{goal}, {case}: {measured} instead of {sign} {threshold:.2}{unit}"));
        }
    }
}

fn cell(figure: Result<f64, String>, decimals: usize, unit: &str) -> String {
    figure.map_or_else(
        |_| "failed".to_owned(),
        |figure| format!("{figure:.decimals$} {unit}").trim_end().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goal_is_about_a_case_that_is_run() {
        for (goal, peer, _) in CPU_GOALS {
            assert!(cases(goal.transport).any(|case| case == *goal), "{goal}");
            assert!(Client::of(goal.transport).contains(peer), "{goal}");
        }
    }

    #[test]
    fn a_parsed_tree_is_held_against_the_goal_or_the_parser_alone() {
        let met = |ours: f64, parser: f64| {
            let mut samples = Samples::default();
            for (client, cpu) in [(Client::Ours, ours), (Client::Floor, parser), (Client::Rmcp, 100.0)] {
                samples.add(Case::PARSED, client, Ok(Sample::of_cpu(cpu)));
            }
            let mut table = Table::new(&samples);
            table.cpu(Case::PARSED);
            table.count.failed == 0
        };
        assert!(met(39.0, 20.0));
        assert!(!met(41.0, 20.0));
        assert!(met(49.0, 42.0));
        assert!(!met(51.0, 42.0));
    }

    #[test]
    fn what_was_not_run_is_not_met() {
        for typescript in [false, true] {
            let count = judge(&Samples::default(), &[Transport::Stdio], typescript);
            assert_eq!(count, Count { passed: 0, failed: cases(Transport::Stdio).count() as u64 + 4 });
        }
    }
}
