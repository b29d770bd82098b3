//! The official conformance suite, strictly: each scenario in a process of its own, the client's exit code counts, and each
//! required check must be there with SUCCESS.
//!
//! The suite alone would pass a client that does nothing: in its own suite mode it ignores exit codes and takes skipped or absent
//! checks for green. `data/required-checks.json` lists, by revision and scenario, the check ids that a correct client earns.
//!
//! The client gets `--mode pinned` or `--mode auto` before the server's address. `auto` also hides the version that the suite
//! announces in the environment, so that the client can only find out by itself.

mod gate;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::support::args::Args;
use crate::support::cargo;
use crate::support::interrupt::interrupted;
use crate::support::peers::{self, Node};
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop};

/// A run of this command that must stay green.
pub(crate) struct Claim {
    pub(crate) revision: &'static str,
    pub(crate) mode: &'static str,
    /// `None`: every scenario of the revision that needs no authorization.
    pub(crate) only: Option<&'static str>,
}

/// What `ci` runs. A revision joins when the library has learned what its scenarios ask for, with `only` while that is some of
/// them; none ever leaves. When every scenario without authorization passes in both modes, and authorization is there, `ci` calls
/// the command without options and the list goes.
pub(crate) const CLAIMS: &[Claim] = &[
    Claim { revision: "2026-07-28", mode: "both", only: None },
    Claim { revision: "2025-11-25", mode: "both", only: None },
    Claim { revision: "2025-06-18", mode: "both", only: None },
    Claim { revision: EXTENSIONS, mode: "both", only: None },
];

const REQUIRED: &str = include_str!("../data/required-checks.json");
/// Not a revision: scenarios off the timeline, which never match `--spec-version`.
const EXTENSIONS: &str = "extensions";
/// Where the suite announces the revision of a scenario.
const VERSION_VARIABLE: &str = "MCP_CONFORMANCE_PROTOCOL_VERSION";
/// The client's own deadline is shorter; this one is for a client that hangs.
const CLIENT_SECONDS: &str = "25";
const SCENARIO_LIMIT: Duration = Duration::from_secs(90);
/// The suite itself is slow to start; more at once and its timing checks measure the machine.
const JOBS: usize = 2;

/// Scenario to the ids of its required checks.
type Scenarios = BTreeMap<String, Vec<String>>;

#[derive(Clone, Debug)]
struct Job {
    revision: String,
    mode: &'static str,
    scenario: String,
    required: Vec<String>,
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let revision = args.value("--revision")?;
    let only = args.names("--only")?;
    let mode = args.choice("--mode", &["pinned", "auto", "both"])?;
    let no_auth = args.flag("--no-auth");
    args.finish()?;
    let modes: &[&'static str] = match mode.as_deref() {
        Some("pinned") => &["pinned"],
        Some("auto") => &["auto"],
        _ => &["pinned", "auto"],
    };
    let jobs = select(revision.as_deref(), only.as_deref(), modes, !no_auth)?;
    let node = match peers::node() {
        Ok(node) => node,
        Err(absent) => {
            absent.or_skip("the conformance suite")?;
            return Ok(Tally::default().finish());
        }
    };
    let client = cargo::build(&["-p", "mcp-tests", "--bin", "conformance-client"])?;
    let folder = peers::state("conformance")?;
    println!("{} runs; logs in {}", jobs.len(), folder.display());
    Ok(run_all(jobs, &Bench { node, client, folder }).finish())
}

fn required() -> Result<BTreeMap<String, Scenarios>, Stop> {
    serde_json::from_str(REQUIRED).map_err(|error| Stop::Broken(format!("required-checks.json: {error}")))
}

fn select(
    revision: Option<&str>,
    only: Option<&[String]>,
    modes: &[&'static str],
    auth: bool,
) -> Result<Vec<Job>, Stop> {
    let all = required()?;
    if let Some(revision) = revision
        && !all.contains_key(revision)
    {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        return Err(Stop::Usage(format!("--revision is one of {}, not {revision:?}", known.join(", "))));
    }
    let mut jobs = Vec::new();
    for (name, scenarios) in all.iter().filter(|(name, _)| revision.is_none_or(|wanted| wanted == *name)) {
        for mode in modes {
            for (scenario, required) in scenarios {
                let wanted = only.is_none_or(|only| only.contains(scenario));
                if wanted && (auth || !scenario.starts_with("auth/")) {
                    let (revision, scenario) = (name.clone(), scenario.clone());
                    jobs.push(Job { revision, mode, scenario, required: required.clone() });
                }
            }
        }
    }
    let unknown = only.unwrap_or_default().iter().find(|name| !jobs.iter().any(|job| job.scenario == **name));
    match unknown {
        Some(name) => Err(Stop::Usage(format!("there is no scenario {name:?} here"))),
        None => Ok(jobs),
    }
}

/// What every run needs.
struct Bench {
    node: Node,
    client: PathBuf,
    folder: PathBuf,
}

fn run_all(jobs: Vec<Job>, bench: &Bench) -> Tally {
    let tally = Mutex::new(Tally::default());
    let queue = Mutex::new(jobs.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(job) = next else { return };
                    let started = Instant::now();
                    let outcome =
                        if interrupted() { Err("interrupted".into()) } else { run_one(&job, bench) };
                    let what = format!(
                        "{} {} {} ({:.1} s)",
                        job.revision,
                        job.mode,
                        job.scenario,
                        started.elapsed().as_secs_f64()
                    );
                    tally.lock().unwrap_or_else(PoisonError::into_inner).record(&what, outcome);
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_one(job: &Job, bench: &Bench) -> Result<(), String> {
    let folder =
        bench.folder.join(format!("{}-{}-{}", job.revision, job.mode, job.scenario.replace('/', "_")));
    // What an earlier run left behind must not be taken for this run's checks.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new(&bench.node.program);
    command
        .arg(bench.node.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--scenario", &job.scenario, "--command"])
        .arg(client_command(&bench.client, job.mode)?)
        .arg("-o")
        .arg(&folder);
    if job.revision != EXTENSIONS {
        command.args(["--spec-version", &job.revision]);
    }
    let finished = process::run(command, SCENARIO_LIMIT, Output::Capture);
    let log = format!("{}\n{}", finished.stdout, finished.stderr);
    let _ = fs::write(folder.join("log.txt"), &log);
    let mut faults = Vec::new();
    if !finished.end.is_success() {
        faults.push(finished.end.to_string());
    }
    match find_checks(&folder) {
        Some(text) => faults.extend(gate::faults(&text, &job.required)),
        None => faults.push("the suite wrote no checks".into()),
    }
    if faults.is_empty() {
        return Ok(());
    }
    faults.push(process::tail(&log, 15));
    Err(faults.join("\n"))
}

/// What the suite hands to a shell, with the server's address put after it.
fn client_command(client: &Path, mode: &str) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let (own, client) = (quoted(&own)?, quoted(client)?);
    let hide = if mode == "auto" { format!("--hide {VERSION_VARIABLE} ") } else { String::new() };
    Ok(format!("{own} run-bounded --seconds {CLIENT_SECONDS} {hide}-- {client} --mode {mode}"))
}

fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// The suite makes a folder per scenario and time; `auth/...` scenarios lie a level deeper.
fn find_checks(folder: &Path) -> Option<String> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let found = if path.is_dir() {
            find_checks(&path)
        } else if path.file_name().is_some_and(|name| name == "checks.json") {
            fs::read_to_string(&path).ok()
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(revision: Option<&str>, modes: &[&'static str], auth: bool) -> usize {
        select(revision, None, modes, auth).unwrap().len()
    }

    #[test]
    fn each_revision_has_its_scenarios() {
        let modes = ["pinned"];
        for (revision, without, with) in
            [("2025-06-18", 2, 5), ("2025-11-25", 5, 19), ("2026-07-28", 8, 33), (EXTENSIONS, 4, 10)]
        {
            assert_eq!(count(Some(revision), &modes, false), without, "{revision}");
            assert_eq!(count(Some(revision), &modes, true), with, "{revision} with authorization");
        }
        assert_eq!(count(None, &["pinned", "auto"], false), 2 * (2 + 5 + 8 + 4));
    }

    #[test]
    fn no_scenario_is_green_for_nothing() {
        for (revision, scenarios) in required().unwrap() {
            for (scenario, ids) in scenarios {
                assert!(!ids.is_empty(), "{revision} {scenario} requires no check");
            }
        }
    }

    #[test]
    fn names_that_do_not_exist_are_usage_mistakes() {
        let only = ["initialize".to_owned(), "initialise".to_owned()];
        assert!(matches!(select(None, Some(&only), &["auto"], true), Err(Stop::Usage(_))));
        assert!(matches!(select(Some("2024-11-05"), None, &["auto"], true), Err(Stop::Usage(_))));
        // It exists, but not in this revision.
        let only = ["sse-retry".to_owned()];
        assert!(matches!(select(Some("2025-06-18"), Some(&only), &["auto"], true), Err(Stop::Usage(_))));
    }

    #[test]
    fn every_claim_selects_something() {
        for claim in CLAIMS {
            let only: Option<Vec<String>> =
                claim.only.map(|names| names.split(',').map(str::to_owned).collect());
            assert!(!select(Some(claim.revision), only.as_deref(), &["pinned"], false).unwrap().is_empty());
        }
    }

    #[test]
    fn a_path_is_one_word_to_the_shell() {
        assert_eq!(quoted(Path::new("a b/it's")).unwrap(), r"'a b/it'\''s'");
    }
}
