//! What a user of the published packages agrees to, and compiles twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plan::Plan;
use crate::support::cargo::cargo;
use crate::support::process::{self, Output};

const LIMIT: Duration = Duration::from_secs(120);

/// Licences that ask for no more than a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that come in two versions, and whose doing that is.
const DOUBLE: &[(&str, &str)] = &[
    ("getrandom", "ring stays with the older one"),
    ("syn", "derive macros below jsonschema stay with the older one; it is needed at build time alone"),
];

/// `name version|licence` of everything that the packages need on this platform, with all features.
fn tree(plan: &Plan) -> Result<BTreeSet<(String, String, String)>, String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--edges", "normal,build", "--all-features", "--prefix", "none"]);
    command.args(["--format", "{p}|{l}"]);
    for package in &plan.packages {
        command.args(["--package", &package.name]);
    }
    let finished = process::run(command, LIMIT, Output::Capture);
    if !finished.end.is_success() {
        return Err(format!("cargo tree: {}\n{}", finished.end, process::tail(&finished.stderr, 10)));
    }
    let lines = finished.stdout.lines().filter(|line| !line.is_empty());
    let entries: BTreeSet<_> = lines
        .map(|line| entry(line).ok_or_else(|| format!("cargo tree: a line is not understood: {line}")))
        .collect::<Result<_, _>>()?;
    if entries.is_empty() { Err("cargo tree: there is nothing in it".to_owned()) } else { Ok(entries) }
}

fn entry(line: &str) -> Option<(String, String, String)> {
    let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
    let mut words = package.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned(), licence.trim_end_matches(" (*)").to_owned()))
}

pub(super) fn allowed(plan: &Plan) -> Result<(), String> {
    let refused = tree(plan)?.into_iter().filter(|(_, _, licence)| !is_allowed(licence));
    let refused: Vec<String> =
        refused.map(|(name, version, licence)| format!("{name} {version}: {licence:?}")).collect();
    if refused.is_empty() { Ok(()) } else { Err(refused.join("\n")) }
}

pub(super) fn duplicates(plan: &Plan) -> Result<(), String> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in tree(plan)? {
        versions.entry(name).or_default().insert(version);
    }
    let is_known = |name: &str| DOUBLE.iter().any(|(known, _)| *known == name);
    let double = versions.into_iter().filter(|(name, versions)| versions.len() > 1 && !is_known(name));
    let double: Vec<String> = double
        .map(|(name, versions)| format!("{name}: {}", versions.into_iter().collect::<Vec<_>>().join(", ")))
        .collect();
    if double.is_empty() { Ok(()) } else { Err(double.join("\n")) }
}

/// Whether an SPDX expression can be met from the list. `OR` binds weaker than `AND`; parentheses group.
fn is_allowed(expression: &str) -> bool {
    // The older way of writing "or".
    let expression = expression.replace('/', " OR ");
    alternatives(expression.trim())
}

fn alternatives(expression: &str) -> bool {
    split(expression, " OR ").into_iter().any(|one| split(one, " AND ").into_iter().all(single))
}

fn single(expression: &str) -> bool {
    let expression = expression.trim();
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => alternatives(inner),
        None => ALLOWED.contains(&expression),
    }
}

/// Splits outside of parentheses.
fn split<'a>(text: &'a str, by: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && at >= start && text.get(at..).is_some_and(|rest| rest.starts_with(by)) => {
                parts.extend(text.get(start..at));
                start = at + by.len();
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_if_one_of_its_ways_is() {
        for (expression, allowed) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0", false),
            ("Apache-2.0 AND ISC", true),
            ("Apache-2.0 AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR GPL-3.0) AND (GPL-3.0)", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression), allowed, "{expression}");
        }
    }

    #[test]
    fn a_line_of_the_tree_is_read() {
        let read =
            |line: &str| entry(line).map(|(name, version, licence)| format!("{name},{version},{licence}"));
        assert_eq!(
            read("ring v0.17.14|Apache-2.0 AND ISC").as_deref(),
            Some("ring,v0.17.14,Apache-2.0 AND ISC")
        );
        assert_eq!(read("a v1.0.0 (/a/b) (proc-macro)|MIT (*)").as_deref(), Some("a,v1.0.0,MIT"));
        assert_eq!(read(""), None);
    }
}
