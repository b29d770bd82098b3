//! `release --check`: whether what is here can be published. `release VERSION`: makes the next version. `release --stage DIR`: writes the
//! workspace as it is published, under the names that are free.
//!
//! Nothing here publishes. That a person does, in what was staged and in the order that is printed: `cargo publish` for each package.

mod api;
mod bump;
mod licences;
mod manifest;
mod msrv;
mod package;
mod plan;
mod registry;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plan::Plan;

use crate::support::args::Args;
use crate::support::cargo::{cargo, tests_passed};
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop, support};

const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Foreign crates whose types may be a part of a public interface: those whose major versions we are willing to follow.
const FOREIGN_TYPES: &[(&str, &[&str])] = &[
    ("mcp-client", &["bytes", "serde", "serde_core", "serde_json", "tokio", "url"]),
    ("mcp-elicitation", &["serde", "serde_core", "serde_json", "url"]),
    ("mcp-inbox-sqlite", &["serde", "serde_core", "serde_json"]),
    ("mcp-jsonrpc", &["serde", "serde_core", "serde_json"]),
    ("mcp-model", &["serde", "serde_core", "serde_json"]),
    ("mcp-proto", &["bytes", "serde", "serde_core", "serde_json"]),
    ("mcp-sse", &[]),
    ("mcp-transport", &["bytes", "http", "rustls", "rustls_pki_types", "tokio", "url"]),
];

pub(crate) fn run(mut args: Args) -> Outcome {
    let check = args.flag("--check");
    let write_api = args.flag("--write-api");
    let execute = args.flag("--execute");
    let stage = args.value("--stage")?;
    let version = args.word();
    args.finish()?;
    match (check, version, stage) {
        (true, None, None) if !execute => Ok(check_all(&Plan::read()?, write_api)?.finish()),
        (false, Some(version), None) if !write_api => bump::run(&Plan::read()?, &version, execute),
        (false, None, Some(to)) if !write_api && !execute => staged(&Plan::read()?, Path::new(&to)),
        _ => Err(Stop::Usage(
            "release takes --check [--write-api], or VERSION [--execute], or --stage DIR".into(),
        )),
    }
}

fn staged(plan: &Plan, to: &Path) -> Outcome {
    package::stage(plan, to).map_err(Stop::Broken)?;
    let mut tally = Tally::default();
    for package in &plan.packages {
        tally.pass(&format!("{}: cargo publish --package {}", to.display(), package.published_as));
    }
    Ok(tally.finish())
}

fn check_all(plan: &Plan, write_api: bool) -> Result<Tally, Stop> {
    let mut tally = Tally::default();
    println!("published in this order:");
    for package in &plan.packages {
        let under = if package.published_as == package.name {
            String::new()
        } else {
            format!(
                " under the name {} (the library stays {})",
                package.published_as,
                package.name.replace('-', "_")
            )
        };
        println!("  {} {}{under}", package.name, package.version);
    }
    for package in &plan.packages {
        registry::check(package, &mut tally);
    }
    for package in &plan.packages {
        let problems = if package.problems.is_empty() { Ok(()) } else { Err(package.problems.join("\n")) };
        tally.record(&format!("{}: the manifest is what the registry takes", package.name), problems);
    }
    if let Some(note) = plan.without_repository() {
        println!("note  {note}");
    }
    tally.record("versions agree", plan.versions_agree());
    tally.record("the changelog has something to say", changelog(plan));
    tally.record("licences are on the list", licences::allowed(plan));
    tally.record("no crate comes in two versions", licences::duplicates(plan));
    tally.record("no dependency asks for a newer Rust than the packages promise", msrv::check());
    for name in bump::LOCKS {
        locked(name, &mut tally);
    }
    interfaces(plan, write_api, &mut tally);
    compatible(plan, &mut tally);
    for package in &plan.packages {
        tally.record(&format!("{}: documentation as docs.rs builds it", package.name), docs(&package.name));
    }
    tally.record("the code of the documentation and the READMEs runs", doc_tests());
    package::check(plan, &mut tally);
    Ok(tally)
}

/// Each public interface beside the committed one, and whose types are in it.
fn interfaces(plan: &Plan, write_api: bool, tally: &mut Tally) {
    let toolchain = api::toolchain();
    for package in &plan.packages {
        let name = &package.name;
        let (as_committed, on_the_list) = (
            format!("{name}: public interface is as committed"),
            format!("{name}: foreign types are on the list"),
        );
        match toolchain.clone().map(|()| api::of(name)) {
            Ok(Ok(api)) => {
                tally.record(&as_committed, snapshot(name, &api, write_api));
                tally.record(&on_the_list, foreign_types(name, &api));
            }
            Ok(Err(why)) => tally.fail(&as_committed, &why),
            Err(why) => {
                tally.unchecked(&as_committed, &why);
                tally.unchecked(&on_the_list, &why);
            }
        }
    }
}

/// Whether a lock file says what its manifests ask for.
fn locked(name: &str, tally: &mut Tally) {
    let what = format!("{name} is what its manifests ask for");
    let mut command = cargo();
    command
        .args(["tree", "--quiet", "--locked", "--manifest-path"])
        .arg(Path::new(name).with_extension("toml"));
    let finished = process::run(command, LIMIT, Output::Capture);
    let why = process::tail(&finished.stderr, 3);
    if finished.end.is_success() {
        tally.pass(&what);
    } else if finished.stderr.contains("--locked was passed") {
        tally.fail(&what, &why);
    } else {
        // What is locked has to be downloaded before it can be looked at.
        tally.unchecked(&what, &why);
    }
}

fn changelog(plan: &Plan) -> Result<(), String> {
    let text =
        std::fs::read_to_string(support::root().join("CHANGELOG.md")).map_err(|error| error.to_string())?;
    let version = plan.version();
    let section = |title: &str| {
        let (_, rest) = text.split_once(&format!("\n## {title}"))?;
        Some(rest.split("\n## ").next().unwrap_or(rest).lines().skip(1).any(|line| line.starts_with("- ")))
    };
    match (section("Unreleased"), section(version)) {
        (Some(true), _) | (_, Some(true)) => Ok(()),
        _ => Err(format!("neither Unreleased nor {version} has a line")),
    }
}

fn api_path(name: &str) -> PathBuf {
    Path::new("crates").join(name).join("public-api.txt")
}

fn snapshot(name: &str, api: &api::Api, write: bool) -> Result<(), String> {
    let path = support::root().join(api_path(name));
    let mut text = String::new();
    for line in &api.lines {
        let _ = writeln!(text, "{line}");
    }
    if write {
        return std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let gone = committed.lines().filter(|line| !api.lines.contains(*line)).map(|line| format!("- {line}"));
    let known: std::collections::BTreeSet<&str> = committed.lines().collect();
    let new = api.lines.iter().filter(|line| !known.contains(line.as_str())).map(|line| format!("+ {line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = changes.iter().map(String::as_str).take(20).collect();
    Err(format!("{} lines differ; --write-api writes them\n{}", changes.len(), shown.join("\n")))
}

fn foreign_types(name: &str, api: &api::Api) -> Result<(), String> {
    let allowed = FOREIGN_TYPES.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, allowed)| allowed);
    let is_allowed = |foreign: &str| {
        matches!(foreign, "core" | "alloc" | "std")
            || foreign.starts_with("mcp_")
            || allowed.contains(&foreign)
    };
    let strangers = api.foreign.iter().filter(|(foreign, _)| !is_allowed(foreign));
    let strangers: Vec<String> = strangers.map(|(foreign, line)| format!("{foreign} in {line}")).collect();
    if strangers.is_empty() { Ok(()) } else { Err(strangers.join("\n")) }
}

/// Compares the committed interfaces with those of the last tag.
fn compatible(plan: &Plan, tally: &mut Tally) {
    let what = "the interface is compatible with the last tag, or the version says so";
    let Some(tag) = git(&["describe", "--tags", "--abbrev=0", "--match", "v*"]) else {
        match git(&["rev-parse", "--is-shallow-repository"]).as_deref().map(str::trim) {
            // Nothing is left out by that: a first version may look as it likes.
            Some("false") => {
                println!("      {what}: no version has a tag here, so that there is none to compare with");
            }
            Some(_) => tally.unchecked(what, "this clone is shallow, and may lack the tag"),
            None => tally.unchecked(what, "git is not there, or this is no clone"),
        }
        return;
    };
    let tag = tag.trim();
    let mut gone = Vec::new();
    for package in &plan.packages {
        let Some(before) = git(&["show", &format!("{tag}:{}", api_path(&package.name).display())]) else {
            continue;
        };
        let now = std::fs::read_to_string(support::root().join(api_path(&package.name))).unwrap_or_default();
        let now: std::collections::BTreeSet<&str> = now.lines().collect();
        gone.extend(before.lines().filter(|line| !now.contains(line)).map(str::to_owned));
    }
    let (old, new) = (tag.trim_start_matches('v'), plan.version());
    if gone.is_empty() || plan::is_incompatible(old, new) {
        tally.pass(&format!("{what} ({tag})"));
    } else {
        tally.fail(what, &format!("{new} may not take back what {old} had:\n{}", gone.join("\n")));
    }
}

fn git(words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.current_dir(support::root()).args(words);
    let finished = process::run(command, LIMIT, Output::Capture);
    finished.end.is_success().then_some(finished.stdout)
}

fn docs(name: &str) -> Result<(), String> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--no-deps", "--all-features", "--package", name]);
    command.env("RUSTDOCFLAGS", "-D warnings --cfg docsrs");
    succeed(command)
}

fn doc_tests() -> Result<(), String> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--workspace", "--doc"]);
    let finished = process::run(command, LIMIT, Output::Capture);
    if !finished.end.is_success() {
        return Err(format!("{}\n{}", finished.end, process::tail(&finished.stdout, 20)));
    }
    match tests_passed(&finished.stdout) {
        Some(count) if count > 0 => Ok(()),
        _ => Err("not one was run".into()),
    }
}

fn succeed(command: Command) -> Result<(), String> {
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        Ok(())
    } else {
        Err(format!("{}\n{}", finished.end, process::tail(&finished.stderr, 20)))
    }
}
