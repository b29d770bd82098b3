//! Holds `tests/requirements.toml` against the tests: each requirement is named by a test, or waived with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use crate::support::args::Args;
use crate::support::tally::Tally;
use crate::{Outcome, Stop, support};

/// The levels, in the order in which they matter.
const LEVELS: [&str; 6] = ["MUST", "SHOULD", "MAY", "PEER", "REC", "SEED"];
/// The sources that the list covers; ids of other sources may be named by tests, and are not looked at.
const SOURCES: [&str; 2] = ["protocol", "seed"];

/// One line of the list.
#[derive(Debug, PartialEq)]
struct Requirement {
    level: String,
    says: String,
    waived: Option<String>,
}

/// What became of one requirement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Covered,
    Waived,
    Uncovered,
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let uncovered_only = args.flag("--uncovered");
    args.finish()?;
    let root = support::root();
    let path = root.join("tests/requirements.toml");
    let broken = |why: String| Stop::Broken(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| broken(error.to_string()))?;
    let requirements = parse(&text).map_err(broken)?;
    let named =
        named_by_tests(&root).map_err(|error| Stop::Broken(format!("{}: {error}", root.display())))?;
    Ok(report(&requirements, &named, uncovered_only).finish())
}

fn report(
    requirements: &BTreeMap<String, Requirement>,
    named: &BTreeMap<String, BTreeSet<String>>,
    uncovered_only: bool,
) -> Tally {
    let mut tally = Tally::default();
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (id, requirement) in requirements {
        let standing = standing(requirement, named.contains_key(id));
        if let Some(count) = counts.entry(requirement.level.as_str()).or_default().get_mut(standing as usize)
        {
            *count += 1;
        }
        let what = format!("{id} ({}) {}", requirement.level, requirement.says);
        match standing {
            Standing::Uncovered => tally.fail(&what, "no test names it, and it is not waived"),
            _ if uncovered_only => tally.pass_silently(),
            Standing::Covered => tally.pass(&what),
            Standing::Waived => {
                tally.pass(&format!("{what}; waived: {}", requirement.waived.as_deref().unwrap_or_default()));
            }
        }
    }
    for (id, files) in named.iter().filter(|(id, _)| !requirements.contains_key(*id)) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        tally.fail(id, &format!("is named by a test and not in the list: {}", files.join(", ")));
    }
    println!("\n{:8}{:>8}{:>8}{:>11}", "level", "covered", "waived", "uncovered");
    for level in LEVELS {
        let [covered, waived, uncovered] = counts.get(level).copied().unwrap_or_default();
        println!("{level:8}{covered:8}{waived:8}{uncovered:11}");
    }
    tally
}

fn standing(requirement: &Requirement, named: bool) -> Standing {
    match (named, &requirement.waived) {
        (true, _) => Standing::Covered,
        (false, Some(_)) => Standing::Waived,
        (false, None) => Standing::Uncovered,
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, Requirement>, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    table
        .iter()
        .map(|(id, value)| {
            let requirement = requirement(value).map_err(|why| format!("{id}: {why}"))?;
            let known = id.split_once(':').is_some_and(|(source, _)| SOURCES.contains(&source));
            if known { Ok((id.clone(), requirement)) } else { Err(format!("{id}: of no known source")) }
        })
        .collect()
}

fn requirement(value: &Value) -> Result<Requirement, String> {
    let text = |name: &str| match value.get(name).and_then(Value::as_str) {
        Some("") => Err(format!("`{name}` is empty")),
        Some(text) => Ok(Some(text.to_owned())),
        None => Ok(None),
    };
    let required = |name: &str| text(name)?.ok_or_else(|| format!("`{name}` is missing"));
    let level = required("level")?;
    if !LEVELS.contains(&level.as_str()) {
        return Err(format!("level {level:?} is none of {}", LEVELS.join(", ")));
    }
    required("on")?;
    Ok(Requirement { level, says: required("says")?, waived: text("waived")? })
}

/// Each id that a test names, with the files that do. A benchmark is no test: nothing runs it on each change.
fn named_by_tests(root: &Path) -> std::io::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for top in ["crates", "tests"] {
        let mut folders = vec![root.join(top)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    let foreign =
                        matches!(name.as_str(), "bench" | "node_modules" | "target") || name.starts_with('.');
                    if !foreign {
                        folders.push(path);
                    }
                } else if name.ends_with(".rs") {
                    let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                    let text = std::fs::read_to_string(&path)?;
                    for id in ids(test_part(&relative, &text)) {
                        named.entry(id).or_default().insert(relative.clone());
                    }
                }
            }
        }
    }
    Ok(named)
}

/// What of a file is test code: all of it in a folder or file of tests, else what follows `#[cfg(test)]`.
fn test_part<'a>(path: &str, text: &'a str) -> &'a str {
    let is_test = path.starts_with("tests/")
        || path.split('/').any(|part| part == "tests")
        || path.ends_with("tests.rs");
    if is_test {
        return text;
    }
    text.find("#[cfg(test)]\nmod").and_then(|at| text.get(at..)).unwrap_or_default()
}

/// The ids in a text: a source, a colon, and what looks like an id.
fn ids(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |byte: char| byte.is_ascii_alphanumeric() || byte == '-';
    text.match_indices(':').filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let source = SOURCES.into_iter().find(|source| before.ends_with(source))?;
        let after = text.get(at + 1..)?;
        let end = after.find(|byte: char| !is_part(byte)).unwrap_or(after.len());
        let id = after.get(..end)?.trim_end_matches('-');
        let letters = id.find(|byte: char| !byte.is_ascii_uppercase()).unwrap_or(id.len());
        let number = id.get(letters..)?.trim_start_matches('-');
        let is_id = letters > 0 && number.starts_with(|byte: char| byte.is_ascii_digit());
        is_id.then(|| format!("{source}:{id}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        "protocol:J-01" = { on = "all", level = "MUST", says = "one" }
        "protocol:J-02" = { on = "all", level = "SHOULD", says = "two", waived = "the host's" }
        "seed:S-95a" = { on = "all", level = "SEED", says = "three" }
    "#;

    #[test]
    fn ids_are_found_in_comments_of_any_form() {
        let text = "/// protocol:J-01, seed:S-95a; protocol:S1 (auth:SEC-01) `seed:E5`. a protocol: none, protocol:x-1";
        assert_eq!(ids(text).collect::<Vec<_>>(), ["protocol:J-01", "seed:S-95a", "protocol:S1", "seed:E5"]);
    }

    #[test]
    fn only_tests_count() {
        let text = "// A-1\n#[cfg(test)]\nmod tests { // B-2 }";
        assert!(!test_part("crates/a/src/b.rs", text).contains("A-1"));
        assert!(test_part("crates/a/src/b.rs", text).contains("B-2"));
        assert_eq!(test_part("crates/a/src/c.rs", "// A-1"), "");
        assert_eq!(test_part("crates/a/src/tests/c.rs", "// A-1"), "// A-1");
        assert_eq!(test_part("tests/scenarios/c.rs", "// A-1"), "// A-1");
    }

    #[test]
    fn what_is_neither_named_nor_waived_fails_and_so_does_an_unknown_id() {
        let requirements = parse(LIST).unwrap();
        let named = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), BTreeSet::from(["a.rs".to_owned()]))).collect()
        };
        assert!(report(&requirements, &named(&["protocol:J-01", "seed:S-95a"]), false).failures().is_empty());
        let failures = report(&requirements, &named(&["protocol:J-01", "protocol:J-99"]), true).failures();
        assert_eq!(failures.len(), 2);
    }

    #[test]
    fn a_line_of_the_list_is_checked() {
        for (line, why) in [
            (r#""protocol:J-01" = { on = "all", level = "WISH", says = "one" }"#, "WISH"),
            (r#""protocol:J-01" = { on = "all", level = "MUST" }"#, "says"),
            (r#""protocol:J-01" = { level = "MUST", says = "one" }"#, "on"),
            (r#""protocol:J-01" = { on = "all", level = "MUST", says = "one", waived = "" }"#, "waived"),
            (r#""other:J-01" = { on = "all", level = "MUST", says = "one" }"#, "source"),
        ] {
            assert!(parse(line).unwrap_err().contains(why), "{line}");
        }
    }

    #[test]
    fn the_committed_list_is_readable() {
        let text = std::fs::read_to_string(support::root().join("tests/requirements.toml")).unwrap();
        assert!(parse(&text).unwrap().len() > 400);
    }
}
