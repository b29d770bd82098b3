//! The next version: numbers, changelog, commit and tag.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::plan::Plan;
use crate::support::cargo::cargo;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop, support};

const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn run(plan: &Plan, version: &str, execute: bool) -> Outcome {
    check_version(plan.version(), version).map_err(Stop::Usage)?;
    let root = support::root();
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| Stop::Broken(format!("{name}: {error}")))
    };
    let manifest = numbered(&read("Cargo.toml")?, plan.version(), version);
    let changelog = dated(&read("CHANGELOG.md")?, version, &today()?).map_err(Stop::Broken)?;
    let mut tally = Tally::default();
    let steps = [
        format!("Cargo.toml: {} becomes {version} in {} places", plan.version(), manifest.1),
        format!("CHANGELOG.md: what is unreleased becomes {version}"),
        "Cargo.lock follows".to_owned(),
        format!("commit \"Release {version}\", tag v{version}"),
    ];
    if !execute {
        println!("dry run; --execute does it");
        for step in &steps {
            tally.pass(&format!("would: {step}"));
        }
        return Ok(tally.finish());
    }
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
    if !is_clean {
        return Err(Stop::Broken("there are changes that are not committed".into()));
    }
    let write = |name: &str, text: &str| {
        fs::write(root.join(name), text).map_err(|error| Stop::Broken(format!("{name}: {error}")))
    };
    write("Cargo.toml", &manifest.0)?;
    write("CHANGELOG.md", &changelog)?;
    let mut lock = cargo();
    lock.args(["update", "--workspace", "--quiet"]);
    finish(lock)?;
    git(&[
        "commit",
        "--quiet",
        "--message",
        &format!("Release {version}"),
        "--",
        "Cargo.toml",
        "Cargo.lock",
        "CHANGELOG.md",
    ])?;
    git(&["tag", "--annotate", &format!("v{version}"), "--message", &format!("Version {version}")])?;
    for step in &steps {
        tally.pass(step);
    }
    Ok(tally.finish())
}

fn git(words: &[&str]) -> Result<String, Stop> {
    let mut command = Command::new("git");
    command.current_dir(support::root()).args(words);
    finish(command)
}

fn finish(command: Command) -> Result<String, Stop> {
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        return Ok(finished.stdout);
    }
    Err(Stop::Broken(format!("{}\n{}", finished.end, process::tail(&finished.stderr, 10))))
}

fn today() -> Result<String, Stop> {
    let mut command = Command::new("date");
    command.args(["-u", "+%Y-%m-%d"]);
    finish(command).map(|date| date.trim().to_owned())
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let parts: Vec<u64> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn check_version(old: &str, new: &str) -> Result<(), String> {
    let (Some(before), Some(after)) = (numbers(old), numbers(new)) else {
        return Err(format!("{new:?} is no version like 1.2.3"));
    };
    // The version in the manifest may itself be unreleased.
    if after >= before { Ok(()) } else { Err(format!("{new} lies before {old}")) }
}

/// The manifest with the new version of the workspace and of the packages of ours in it, and how many places that are.
fn numbered(manifest: &str, old: &str, new: &str) -> (String, usize) {
    let mut places = 0;
    let lines = manifest.lines().map(|line| {
        let is_own = line == format!("version = \"{old}\"") || line.contains("path = \"crates/");
        let changed = line.replace(&format!("version = \"{old}\""), &format!("version = \"{new}\""));
        if !is_own || changed == line {
            return line.to_owned();
        }
        places += 1;
        changed
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    (text, places)
}

fn dated(changelog: &str, version: &str, date: &str) -> Result<String, String> {
    let heading = "\n## Unreleased\n";
    let (before, after) = changelog.split_once(heading).ok_or("CHANGELOG.md has no section Unreleased")?;
    if !after.trim_start().starts_with("- ") {
        return Err("CHANGELOG.md has nothing unreleased".into());
    }
    Ok(format!("{before}{heading}\n## {version} - {date}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_versions_change() {
        let manifest = "version = \"0.1.0\"\nmcp-a = { path = \"crates/mcp-a\", version = \"0.1.0\" }\nother = { version = \"0.1.0\" }\n";
        let (text, places) = numbered(manifest, "0.1.0", "0.2.0");
        assert_eq!(places, 2);
        assert!(text.ends_with("other = { version = \"0.1.0\" }\n"));
        assert!(text.contains("mcp-a = { path = \"crates/mcp-a\", version = \"0.2.0\" }"));
    }

    #[test]
    fn what_is_unreleased_gets_a_number_and_a_date() {
        let text = dated("# Changelog\n\n## Unreleased\n\n- Add x\n", "0.2.0", "2030-01-02").unwrap();
        assert_eq!(text, "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2030-01-02\n\n- Add x\n");
        assert!(dated("# Changelog\n\n## Unreleased\n\n## 0.1.0\n", "0.2.0", "d").is_err());
    }

    #[test]
    fn versions_do_not_go_back() {
        assert!(check_version("0.1.0", "0.1.0").is_ok());
        assert!(check_version("0.1.0", "0.0.9").is_err());
        assert!(check_version("0.1.0", "next").is_err());
    }
}
