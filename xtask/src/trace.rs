//! Holds `tests/requirements.toml` against the tests: each requirement is named by a test, or waived with a reason.

mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use places::{SOURCES, places};

use toml::{Table, Value};

use crate::support::args::Args;
use crate::support::tally::Tally;
use crate::{Outcome, Stop, support};

/// The levels, in the order in which they matter.
const LEVELS: [&str; 6] = ["MUST", "SHOULD", "MAY", "PEER", "REC", "SEED"];

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

/// The ids that are named, each with the files that do.
#[derive(Debug, Default)]
struct Named {
    by_tests: BTreeMap<String, BTreeSet<String>>,
    /// In test code, and at no test.
    elsewhere: BTreeMap<String, BTreeSet<String>>,
}

pub(crate) fn run(mut args: Args) -> Outcome {
    let uncovered_only = args.flag("--uncovered");
    args.finish()?;
    let root = support::root();
    let path = root.join("tests/requirements.toml");
    let broken = |why: String| Stop::Broken(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| broken(error.to_string()))?;
    let requirements = parse(&text).map_err(broken)?;
    let named = named(&root).map_err(|error| Stop::Broken(format!("{}: {error}", root.display())))?;
    Ok(report(&requirements, &named, uncovered_only).finish())
}

fn report(requirements: &BTreeMap<String, Requirement>, named: &Named, uncovered_only: bool) -> Tally {
    let mut tally = Tally::default();
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (id, requirement) in requirements {
        let standing = standing(requirement, named.by_tests.contains_key(id));
        if let Some(count) = counts.entry(requirement.level.as_str()).or_default().get_mut(standing as usize)
        {
            *count += 1;
        }
        let what = format!("{id} ({}) {}", requirement.level, requirement.says);
        match standing {
            Standing::Uncovered => tally.fail(&what, &named.why_uncovered(id)),
            Standing::Covered if requirement.waived.is_some() => {
                tally.fail(&what, &format!("it is waived, although a test names it: {}", named.files(id)));
            }
            _ if uncovered_only => tally.pass_silently(),
            Standing::Covered => tally.pass(&what),
            Standing::Waived => {
                tally.pass(&format!("{what}; waived: {}", requirement.waived.as_deref().unwrap_or_default()));
            }
        }
    }
    let known = named.by_tests.keys().chain(named.elsewhere.keys()).collect::<BTreeSet<_>>().into_iter();
    for id in known.filter(|id| !requirements.contains_key(*id)) {
        tally.fail(id, &format!("is named in test code and not in the list: {}", named.files(id)));
    }
    println!("\n{:8}{:>8}{:>8}{:>11}", "level", "covered", "waived", "uncovered");
    for level in LEVELS {
        let [covered, waived, uncovered] = counts.get(level).copied().unwrap_or_default();
        println!("{level:8}{covered:8}{waived:8}{uncovered:11}");
    }
    tally
}

impl Named {
    fn files(&self, id: &str) -> String {
        let files = self.by_tests.get(id).or_else(|| self.elsewhere.get(id)).into_iter().flatten();
        files.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn why_uncovered(&self, id: &str) -> String {
        let why = "no test names it, and it is not waived";
        if !self.elsewhere.contains_key(id) {
            return why.to_owned();
        }
        format!("{why}; it stands beside the tests of {}, where it shows nothing", self.files(id))
    }
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

/// Looks through all test code. A benchmark is none: nothing runs it on each change.
fn named(root: &Path) -> std::io::Result<Named> {
    let mut named = Named::default();
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
                    for place in places(&relative, &text) {
                        let into =
                            if place.is_at_a_test { &mut named.by_tests } else { &mut named.elsewhere };
                        into.entry(place.id).or_default().insert(relative.clone());
                    }
                }
            }
        }
    }
    Ok(named)
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
    fn what_is_neither_named_nor_waived_fails_and_so_does_an_unknown_id() {
        let requirements = parse(LIST).unwrap();
        let failures = |by_tests: &[&str], elsewhere: &[&str]| {
            let of = |names: &[&str]| {
                names.iter().map(|name| ((*name).to_owned(), BTreeSet::from(["a.rs".to_owned()]))).collect()
            };
            let named = Named { by_tests: of(by_tests), elsewhere: of(elsewhere) };
            report(&requirements, &named, true).failures().len()
        };
        let all = ["protocol:J-01", "seed:S-95a"];
        assert_eq!(failures(&all, &[]), 0);
        assert_eq!(failures(&["protocol:J-01"], &["seed:S-95a"]), 1);
        assert_eq!(failures(&["protocol:J-01", "protocol:J-99"], &[]), 2);
        assert_eq!(failures(&all, &["protocol:J-99"]), 1);
        // A waiver that is not needed would hide that the test goes.
        assert_eq!(failures(&["protocol:J-01", "protocol:J-02", "seed:S-95a"], &[]), 1);
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
