//! The next version: numbers, changelog, commit and tag.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::plan::Plan;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop, support};

const LIMIT: Duration = Duration::from_secs(120);

/// The lock files that name packages of ours: the workspace's, and those of the two workspaces beside it.
pub(super) const LOCKS: [&str; 3] = ["Cargo.lock", "fuzz/Cargo.lock", "tests/bench/Cargo.lock"];

/// A file with what will be in it.
struct Change {
    name: &'static str,
    text: String,
    /// For people.
    what: String,
}

pub(super) fn run(plan: &Plan, version: &str, execute: bool) -> Outcome {
    check_version(plan.version(), version).map_err(Stop::Usage)?;
    let changes = changes(plan, version)?;
    let (message, tag) = (format!("Release {version}"), format!("v{version}"));
    if !git(&["tag", "--list", &tag])?.trim().is_empty() {
        return Err(Stop::Broken(format!("there is a tag {tag} already")));
    }
    let committed = format!("commit {message:?}, tag {tag}");
    let mut tally = Tally::default();
    if !execute {
        println!("dry run, nothing is changed; --execute does it");
        for what in changes.iter().map(|change| &change.what).chain([&committed]) {
            tally.pass(&format!("would: {what}"));
        }
        return Ok(tally.finish());
    }
    if !git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty() {
        return Err(Stop::Broken("there are changes that are not committed".into()));
    }
    let mut commit = vec!["commit", "--quiet", "--message", &message, "--"];
    for change in &changes {
        fs::write(support::root().join(change.name), &change.text)
            .map_err(|error| Stop::Broken(format!("{}: {error}", change.name)))?;
        tally.pass(&change.what);
        commit.push(change.name);
    }
    git(&commit)?;
    git(&["tag", "--annotate", &tag, "--message", &format!("Version {version}")])?;
    tally.pass(&committed);
    Ok(tally.finish())
}

/// All files that the new version changes.
fn changes(plan: &Plan, new: &str) -> Result<Vec<Change>, Stop> {
    let old = plan.version();
    let read = |name: &str| {
        fs::read_to_string(support::root().join(name))
            .map_err(|error| Stop::Broken(format!("{name}: {error}")))
    };
    let (text, places) = numbered(&read("Cargo.toml")?, old, new);
    let manifest = Change {
        name: "Cargo.toml",
        text,
        what: format!("Cargo.toml: {old} becomes {new} in {places} places"),
    };
    let text = dated(&read("CHANGELOG.md")?, new, &today()?).map_err(Stop::Broken)?;
    let changelog = Change {
        name: "CHANGELOG.md",
        text,
        what: format!("CHANGELOG.md: what is unreleased becomes {new}, under a new empty section"),
    };
    let mut changes = vec![manifest, changelog];
    for name in LOCKS {
        let (text, places) = locked(&read(name)?, &plan.members, old, new);
        changes.push(Change { name, text, what: format!("{name}: {places} packages of ours follow") });
    }
    Ok(changes)
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

/// A lock file with the new version of the workspace's members, and how many those are in it. Cargo would write the same, and might
/// ask the network before.
fn locked(lock: &str, members: &[String], old: &str, new: &str) -> (String, usize) {
    let mut places = 0;
    let (old, new) = (format!("\nversion = \"{old}\"\n"), format!("\nversion = \"{new}\"\n"));
    let parts = lock.split("[[package]]").map(|package| {
        let is_member = members.iter().any(|name| package.starts_with(&format!("\nname = \"{name}\"\n")));
        if !is_member || package.contains("\nsource = ") || !package.contains(&old) {
            return package.to_owned();
        }
        places += 1;
        package.replacen(&old, &new, 1)
    });
    let text = parts.collect::<Vec<_>>().join("[[package]]");
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
    fn members_follow_in_a_lock_file_and_others_do_not() {
        let package = |name: &str, version: &str, rest: &str| {
            format!("\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{rest}")
        };
        let lock = |ours: &str| {
            let ours = package("mcp-a", ours, "dependencies = [\n \"other\",\n]\n");
            // A package of the same name and version that is not ours, and one beside the workspace.
            let foreign = package("mcp-a", "0.1.0", "source = \"registry\"\n");
            format!("version = 4\n{ours}{foreign}{}", package("bench", "0.1.0", ""))
        };
        let members = ["mcp-a".to_owned()];
        assert_eq!(locked(&lock("0.1.0"), &members, "0.1.0", "0.2.0"), (lock("0.2.0"), 1));
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
