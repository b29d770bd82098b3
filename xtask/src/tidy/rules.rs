//! The rules. Each returns its offences, one a line, with file and line where there is one.

use std::collections::BTreeMap;

use super::tree::Tree;

pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    pub(super) find: fn(&Tree) -> Vec<String>,
}

pub(super) const RULES: &[Rule] = &[
    Rule { name: "length", says: "no Rust file above 600 lines", find: length },
    Rule {
        name: "cores",
        says: "cores read no clock, never wait, never spawn, know no runtime",
        find: cores,
    },
    Rule {
        name: "core-lints",
        says: "each crate without I/O has clippy refuse clocks and threads",
        find: core_lints,
    },
    Rule { name: "unsafe", says: "each published library forbids unsafe code", find: forbid_unsafe },
    Rule { name: "unfinished", says: "nothing is left to be written, no test is ignored", find: unfinished },
    Rule { name: "promises", says: "a to-do names the condition that removes it", find: promises },
    Rule { name: "machine", says: "no paths of somebody's machine", find: machine },
    Rule { name: "npm-lock", says: "npm lock files record no addresses", find: npm_lock },
    Rule {
        name: "crate-facts",
        says: "each published crate has description, README, licence, lints",
        find: crate_facts,
    },
    Rule { name: "examples", says: "example names are unique in the workspace", find: examples },
    Rule {
        name: "workspace",
        says: "licences, changelog, README and lock file are there; no default-members",
        find: workspace,
    },
];

const LINES_MAX: usize = 600;

fn length(tree: &Tree) -> Vec<String> {
    let count = |text: &str| text.lines().count();
    tree.rust()
        .filter(|(_, text)| count(text) > LINES_MAX)
        .map(|(path, text)| format!("{path}: {} lines", count(text)))
        .collect()
}

/// Crates that are cores from end to end.
const NO_IO: &[&str] = &["mcp-elicitation", "mcp-jsonrpc", "mcp-model", "mcp-proto", "mcp-sse"];

/// What a core never says.
const IO_WORDS: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    ".elapsed()",
    "thread::sleep",
    "thread::spawn",
    "time::sleep",
    "task::spawn",
    "tokio::",
    "hyper::",
    "std::net::Tcp",
    "std::fs::",
];

fn cores(tree: &Tree) -> Vec<String> {
    let mut offences = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| is_core(path)) {
        for (number, line) in code(text) {
            if let Some(word) = IO_WORDS.iter().find(|word| line.contains(*word)) {
                offences.push(format!("{path}:{number}: {word}"));
            }
        }
    }
    offences
}

/// In `mcp-transport` the adapters are what lies below `io` or `process`, and the files beside `http/core`; all else is a core.
fn is_core(path: &str) -> bool {
    let Some(path) = path.strip_prefix("crates/") else { return false };
    let Some((name, path)) = path.split_once('/') else { return false };
    let Some(path) = path.strip_prefix("src/") else { return false };
    if is_test_file(path) {
        return false;
    }
    let beside = path.strip_prefix("http/").is_some_and(|rest| !rest.starts_with("core/"));
    let adapter = beside || path.split('/').any(|part| matches!(part, "io" | "process"));
    NO_IO.contains(&name) || (name == "mcp-transport" && !adapter)
}

fn core_lints(tree: &Tree) -> Vec<String> {
    let mut offences = Vec::new();
    for name in NO_IO {
        if tree.get(&format!("crates/{name}/Cargo.toml")).is_none() {
            offences.push(format!("crates/{name} is gone; mend the list in xtask/src/tidy/rules.rs"));
            continue;
        }
        let path = format!("crates/{name}/clippy.toml");
        let text = tree.get(&path).unwrap_or_default();
        for method in ["Instant::now", "SystemTime::now", "thread::sleep", "thread::spawn"] {
            if !text.contains(method) {
                offences.push(format!("{path}: does not refuse {method}"));
            }
        }
    }
    offences
}

fn forbid_unsafe(tree: &Tree) -> Vec<String> {
    let mut offences = Vec::new();
    for (folder, _) in tree.published() {
        let path = ["lib.rs", "main.rs"].map(|name| format!("{folder}/src/{name}"));
        let found = path.iter().find_map(|path| Some((path, tree.get(path)?)));
        match found {
            Some((_, text)) if text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]") => {}
            Some((path, _)) => offences.push(format!("{path}: #![forbid(unsafe_code)] is missing")),
            None => offences.push(format!("{folder}: no src/lib.rs")),
        }
    }
    offences
}

fn unfinished(tree: &Tree) -> Vec<String> {
    // Put together here, so that this file does not offend against itself.
    let words = [concat!("to", "do!("), concat!("unimpl", "emented!("), concat!("#[ign", "ore")];
    let mut offences = Vec::new();
    for (path, text) in tree.rust() {
        for (number, line) in numbered(text) {
            let line = without_comment(line);
            offences.extend(
                words
                    .iter()
                    .filter(|word| line.contains(*word))
                    .map(|word| format!("{path}:{number}: {word}")),
            );
        }
    }
    offences
}

/// Words that tell when a to-do can go.
const CONDITIONS: &[&str] = &[" when ", " once ", " until ", " after ", " as soon as "];

fn promises(tree: &Tree) -> Vec<String> {
    let (promise, complaints) =
        (concat!("TO", "DO"), [concat!("FIX", "ME"), concat!("XX", "X:"), concat!("HA", "CK:")]);
    let mut offences = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".toml")) {
        for (number, line) in numbered(text) {
            let unconditional = line.contains(promise) && !CONDITIONS.iter().any(|word| line.contains(word));
            if unconditional || complaints.iter().any(|word| line.contains(word)) {
                offences.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    offences
}

/// People who have no machine. The first is whom the specification's own examples name.
const PLACEHOLDERS: &[&str] = &["user", "ada", "me", "x"];

fn machine(tree: &Tree) -> Vec<String> {
    let words = [
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
        concat!("/wo", "rk/"),
        concat!("C:", "\\Us", "ers\\"),
    ];
    let mut offences = Vec::new();
    for (path, text) in tree.files() {
        for (number, line) in numbered(text) {
            for word in words {
                let named = line.match_indices(word).any(|(at, _)| {
                    let rest = line.get(at + word.len()..).unwrap_or_default();
                    let before = line.get(..at).unwrap_or_default();
                    !PLACEHOLDERS.iter().any(|name| is_first_part(rest, name)) && !is_inner(before)
                });
                if named {
                    offences.push(format!("{path}:{number}: {word}"));
                }
            }
        }
    }
    offences
}

fn is_first_part(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
}

/// Whether what stands before makes it a part of a longer path, such as `tests/home/`.
fn is_inner(before: &str) -> bool {
    before
        .chars()
        .next_back()
        .is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-'))
}

fn npm_lock(tree: &Tree) -> Vec<String> {
    let mut offences = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with("package-lock.json")) {
        let lines = numbered(text).filter(|(_, line)| line.trim_start().starts_with("\"resolved\""));
        offences.extend(lines.map(|(number, _)| format!("{path}:{number}: resolved")));
    }
    offences
}

fn crate_facts(tree: &Tree) -> Vec<String> {
    let mut offences = Vec::new();
    for (folder, manifest) in tree.published() {
        let has = |start: &str| manifest.lines().any(|line| line.trim_start().starts_with(start));
        for field in ["description", "license", "readme", "rust-version"] {
            if !has(field) {
                offences.push(format!("{folder}/Cargo.toml: no {field}"));
            }
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            offences.push(format!("{folder}/Cargo.toml: the workspace's lints are not on"));
        }
        match tree.get(&format!("{folder}/README.md")) {
            Some(text) if text.lines().count() > 3 => {}
            Some(_) => offences.push(format!("{folder}/README.md: says nothing")),
            None => offences.push(format!("{folder}: no README.md")),
        }
    }
    offences
}

fn examples(tree: &Tree) -> Vec<String> {
    let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, _) in tree.rust() {
        if let Some((folder, file)) = path.split_once("/examples/") {
            // `examples/name.rs` or `examples/name/main.rs`; other files of such a folder are its modules.
            let name = file.strip_suffix("/main.rs").or_else(|| file.strip_suffix(".rs"));
            if let Some(name) = name.filter(|name| !name.contains('/')) {
                homes.entry(name).or_default().push(folder);
            }
        }
    }
    homes
        .iter()
        .filter(|(_, homes)| homes.len() > 1)
        .map(|(name, homes)| format!("{name}: in {}", homes.join(", ")))
        .collect()
}

fn workspace(tree: &Tree) -> Vec<String> {
    let needed = [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "CHANGELOG.md",
        "Cargo.lock",
        "rustfmt.toml",
        "clippy.toml",
    ];
    let mut offences: Vec<String> = needed
        .iter()
        .filter(|path| tree.get(path).is_none_or(|text| text.trim().is_empty()))
        .map(|path| format!("{path}: missing or empty"))
        .collect();
    if tree.get("CHANGELOG.md").is_some_and(|text| !text.contains("\n## ")) {
        offences.push("CHANGELOG.md: no section".into());
    }
    if tree.get("Cargo.toml").unwrap_or_default().contains("default-members") {
        offences.push("Cargo.toml: default-members would hide packages from a plain cargo test".into());
    }
    offences
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The lines of a file outside comments and before its unit tests, which sit at the bottom.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let tests = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let line = text.get(*at..).and_then(|rest| rest.lines().nth(1));
        line.is_some_and(|line| line.trim_end().ends_with('{'))
    });
    let end = tests.map_or(text.len(), |(at, _)| at);
    numbered(text.get(..end).unwrap_or_default()).map(|(number, line)| (number, without_comment(line)))
}

/// `//` inside a string, as in an address, follows a colon.
fn without_comment(line: &str) -> &str {
    let start = line
        .match_indices("//")
        .map(|(at, _)| at)
        .find(|at| !line.get(..*at).is_some_and(|before| before.ends_with(':')));
    start.and_then(|at| line.get(..at)).unwrap_or(line)
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("tests.rs") || path.split('/').any(|part| matches!(part, "tests" | "test_support"))
}
