//! The programs that are measured, and one run of one of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::matrix::{Case, Transport};
use crate::Stop;
use crate::support::process::{self, Output};
use crate::support::{self, cargo, peers};

/// A run takes a second or two; one that takes so long hangs.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Client and server share it. Any one would do.
const CORE: &str = "0";
/// The TypeScript clients ask for it.
const NODE_MAJOR: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    Ours,
    Rmcp,
    /// With everything that a user of rmcp can switch on: a pooled HTTP client, more parallel requests, no caps.
    RmcpTuned,
    /// The TypeScript client of today, `@modelcontextprotocol/client`.
    TsV2,
    /// The one before it, `@modelcontextprotocol/sdk`.
    TsV1,
    /// No client: what parsing the answer into a tree takes by itself.
    Floor,
}

impl Client {
    pub(crate) const TYPESCRIPT: [Self; 2] = [Self::TsV2, Self::TsV1];

    /// The Rust clients that a transport has; over stdio there is nothing to tune.
    pub(crate) fn of(transport: Transport) -> &'static [Self] {
        match transport {
            Transport::Stdio => &[Self::Ours, Self::Rmcp],
            Transport::Json | Transport::Sse => &[Self::Ours, Self::Rmcp, Self::RmcpTuned],
        }
    }
}

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    server: PathBuf,
    ours: PathBuf,
    rmcp: PathBuf,
    floor: PathBuf,
    typescript: Option<TypeScript>,
    /// Whether a program can be held on one core here.
    pub(crate) pinned: bool,
}

#[derive(Debug)]
struct TypeScript {
    node: PathBuf,
    script: PathBuf,
}

/// Builds them with the release profile as it comes.
pub(crate) fn build() -> Result<Programs, Stop> {
    eprintln!("building the server and the clients");
    Ok(Programs {
        server: build_one("bench-server")?,
        ours: build_one("bench-ours")?,
        rmcp: build_one("bench-rmcp")?,
        floor: build_one("bench-floor")?,
        typescript: typescript()?,
        pinned: can_pin(),
    })
}

/// Installs the TypeScript clients; where there is no Node.js they are left out, and that is said.
fn typescript() -> Result<Option<TypeScript>, Stop> {
    let name = "tests/bench/clients/typescript";
    let folder = support::root().join(name);
    match peers::node_for(&folder, name, NODE_MAJOR) {
        Ok(node) => Ok(Some(TypeScript { node, script: folder.join("client.mjs") })),
        Err(absent) => absent.or_skip("the TypeScript clients").map(|()| None),
    }
}

/// Each by itself, so that none gets features of dependencies that only another asks for.
pub(super) fn build_one(package: &str) -> Result<PathBuf, Stop> {
    let manifest = super::manifest()?.display().to_string();
    let target_dir = super::target_dir();
    let mut selection = vec!["--locked", "--release", "--package", package, "--manifest-path", &manifest];
    selection.extend(target_dir.iter().map(String::as_str));
    cargo::build(&selection)
}

fn can_pin() -> bool {
    let mut command = Command::new("taskset");
    command.args(["-c", CORE, "true"]);
    process::run(command, RUN_LIMIT, Output::Capture).end.is_success()
}

/// What one run came to.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) cpu_us_per_call: f64,
    pub(crate) calls_per_s: f64,
    pub(crate) p99_us: f64,
    /// Peak resident memory over that before the load.
    pub(crate) growth_mb: f64,
    pub(crate) connections: Option<f64>,
}

/// How long or how much.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Calls(u64),
    Seconds(f64),
}

impl Programs {
    /// Whether the TypeScript clients are here.
    pub(crate) fn has_typescript(&self) -> bool {
        self.typescript.is_some()
    }

    /// Those that are run on a case.
    pub(crate) fn clients(&self, case: Case) -> impl Iterator<Item = Client> {
        let typescript = if self.has_typescript() { &Client::TYPESCRIPT[..] } else { &[] };
        let floor = if case == Case::PARSED { &[Client::Floor][..] } else { &[] };
        Client::of(case.transport).iter().chain(typescript).chain(floor).copied()
    }

    /// Runs one client on one case.
    ///
    /// # Errors
    /// When a call failed, or the client itself.
    pub(crate) fn run(&self, client: Client, case: &Case, amount: Amount) -> Result<Sample, String> {
        let mut command = match (client, &self.typescript) {
            (Client::Ours, _) => self.pinned_command(&self.ours),
            (Client::Rmcp | Client::RmcpTuned, _) => self.pinned_command(&self.rmcp),
            (Client::Floor, _) => self.pinned_command(&self.floor),
            (Client::TsV2 | Client::TsV1, None) => return Err("there is no Node.js".to_owned()),
            (Client::TsV2 | Client::TsV1, Some(TypeScript { node, script })) => {
                let mut command = self.pinned_command(node);
                command.arg(script);
                command.args(["--sdk", if client == Client::TsV1 { "sdk" } else { "client" }]);
                command
            }
        };
        command.arg("--server").arg(&self.server);
        command.args(["--transport", if case.transport == Transport::Stdio { "stdio" } else { "http" }]);
        command.args(["--reply", if case.transport == Transport::Sse { "sse" } else { "json" }]);
        command.args(["--op", case.op, "--size", &case.size.to_string()]);
        command.args(["--in-flight", &case.in_flight.to_string()]);
        match amount {
            Amount::Calls(calls) => command.args(["--calls", &calls.to_string()]),
            Amount::Seconds(seconds) => command.args(["--seconds", &seconds.to_string()]),
        };
        if client == Client::RmcpTuned {
            command.arg("--tuned");
        }
        let finished = process::run(command, RUN_LIMIT, Output::Capture);
        if !finished.end.is_success() {
            return Err(format!("{}: {}", finished.end, process::tail(&finished.stderr, 3)));
        }
        sample(&finished.stdout)
    }

    fn pinned_command(&self, program: &Path) -> Command {
        if !self.pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", CORE]).arg(program);
        command
    }
}

/// Reads the line that a client prints.
fn sample(output: &str) -> Result<Sample, String> {
    let line = output.trim_end().lines().next_back().unwrap_or_default();
    let report: Value = serde_json::from_str(line).map_err(|error| format!("no report: {error}"))?;
    let of = |key: &str| report.get(key).unwrap_or(&Value::Null);
    let errors = of("errors").as_u64().unwrap_or(u64::MAX);
    if errors > 0 {
        return Err(format!("{errors} calls failed, the first with {}", of("first_error")));
    }
    // None of them can be nothing: where one is, it was not measured, and would be below every goal.
    let number = |key: &str| {
        let number = of(key).as_f64().filter(|number| *number > 0.0);
        number.ok_or_else(|| format!("the report has no {key}"))
    };
    let connections = if of("connections").is_null() { None } else { Some(number("connections")?) };
    Ok(Sample {
        cpu_us_per_call: number("cpu_us_per_call")?,
        calls_per_s: number("calls_per_s")?,
        p99_us: number("p99_us")?,
        growth_mb: number("peak_resident_mb")? - number("resident_before_mb")?,
        connections,
    })
}

#[cfg(test)]
impl Sample {
    /// One of which only the processor time matters.
    pub(super) fn of_cpu(cpu_us_per_call: f64) -> Self {
        Self { cpu_us_per_call, calls_per_s: 1.0, p99_us: 1.0, growth_mb: 1.0, connections: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_last_line_and_has_no_failed_call() {
        let line = |errors: u64| {
            format!(
                r#"{{"errors":{errors},"first_error":"late","calls":3,"cpu_us_per_call":6.5,"calls_per_s":100.0,"p99_us":70,
                "peak_resident_mb":9.5,"resident_before_mb":7.0,"connections":null}}"#
            )
            .replace('\n', "")
        };
        let read = sample(&format!("noise\n{}\n", line(0))).unwrap();
        assert_eq!((read.cpu_us_per_call, read.growth_mb, read.connections), (6.5, 2.5, None));
        for (measured, not) in [("\"connections\":null", "\"connections\":0"), ("7.0", "0.0"), ("6.5", "0")] {
            assert!(sample(&line(0).replace(measured, not)).unwrap_err().starts_with("the report has no "));
        }
        assert!(sample(&line(2)).unwrap_err().contains("2 calls failed, the first with \"late\""));
        assert!(sample("").is_err());
        assert!(sample(r#"{"errors":0}"#).is_err());
    }
}
