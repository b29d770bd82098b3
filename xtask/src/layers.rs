//! Who may import whom: the arrows of the workspace, checked against the table below.
//!
//! Normal and build dependencies count for every crate. Development dependencies may also point to the unpublished test
//! packages and to anything below the crate. Crates marked [`Purity::NoIo`] must have no async runtime and no network library
//! anywhere in their normal dependency tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::args::Args;
use crate::support::cargo::cargo;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Purity {
    Io,
    NoIo,
}

/// What one crate may name in `[dependencies]` and `[build-dependencies]`.
struct Rule {
    name: &'static str,
    purity: Purity,
    /// Crates of this workspace.
    ours: &'static [&'static str],
    /// Crates of others; `None` means any.
    others: Option<&'static [&'static str]>,
}

/// Crates that nothing below the facade knows, shown in use by the facade in their examples.
const EXAMPLE_ARROWS: &[(&str, &str)] = &[("mcp-inbox-sqlite", "mcp-client")];

/// The layers, lowest first. A crate that is not here fails, so that its place is decided once, here. `mcp-auth` and
/// `mcp-terminal` are on the roadmap, and their places are kept.
const RULES: &[Rule] = &[
    Rule {
        name: "mcp-jsonrpc",
        purity: Purity::NoIo,
        ours: &[],
        others: Some(&["memchr", "serde", "serde_json"]),
    },
    Rule { name: "mcp-sse", purity: Purity::NoIo, ours: &[], others: Some(&["memchr", "simdutf8"]) },
    Rule {
        name: "mcp-model",
        purity: Purity::NoIo,
        ours: &[],
        others: Some(&["memchr", "serde", "serde_json"]),
    },
    Rule {
        name: "mcp-elicitation",
        purity: Purity::NoIo,
        ours: &[],
        others: Some(&["idna_adapter", "psl", "regex", "serde", "serde_json", "url"]),
    },
    Rule {
        name: "mcp-proto",
        purity: Purity::NoIo,
        ours: &["mcp-elicitation", "mcp-jsonrpc", "mcp-model"],
        others: Some(&["bytes", "serde", "serde_json"]),
    },
    Rule {
        name: "mcp-transport",
        purity: Purity::Io,
        ours: &["mcp-jsonrpc", "mcp-sse"],
        others: Some(&[
            "bytes",
            "h2",
            "hmac-sha256",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "idna_adapter",
            "memchr",
            "process-wrap",
            "rustix",
            "rustls",
            "rustls-platform-verifier",
            "serde_json",
            "tokio",
            "tokio-rustls",
            "tracing",
            "url",
            "webpki-roots",
            "windows",
        ]),
    },
    Rule {
        name: "mcp-auth",
        purity: Purity::Io,
        ours: &["mcp-transport"],
        others: Some(&["base64", "ring", "serde", "serde_json", "subtle", "url", "zeroize"]),
    },
    Rule {
        name: "mcp-client",
        purity: Purity::Io,
        ours: &[
            "mcp-auth",
            "mcp-elicitation",
            "mcp-jsonrpc",
            "mcp-model",
            "mcp-proto",
            "mcp-sse",
            "mcp-transport",
        ],
        others: Some(&[
            "base64",
            "bytes",
            "hmac-sha256",
            "jsonschema",
            "saphyr-parser",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
        ]),
    },
    Rule {
        name: "mcp-inbox-sqlite",
        purity: Purity::Io,
        ours: &["mcp-elicitation"],
        others: Some(&["rusqlite", "serde", "serde_json"]),
    },
    Rule {
        name: "mcp-terminal",
        purity: Purity::Io,
        ours: &["mcp-client"],
        others: Some(&["clap", "indicatif", "serde_json", "tokio"]),
    },
    // The peer of the quickstart must not be built from the client it is there to test.
    Rule { name: "mcp-demo-server", purity: Purity::Io, ours: &["mcp-jsonrpc", "mcp-sse"], others: None },
    Rule {
        name: "mcp-tests",
        purity: Purity::Io,
        ours: &[
            "mcp-auth",
            "mcp-client",
            "mcp-demo-server",
            "mcp-elicitation",
            "mcp-fuzz",
            "mcp-inbox-sqlite",
            "mcp-jsonrpc",
            "mcp-model",
            "mcp-proto",
            "mcp-sse",
            "mcp-terminal",
            "mcp-transport",
        ],
        others: None,
    },
    Rule { name: "xtask", purity: Purity::Io, ours: &[], others: None },
];

/// Packages that only tests may use, besides the layers below.
const TEST_PACKAGES: &[&str] = &["mcp-demo-server", "mcp-fuzz", "mcp-tests"];

/// What does I/O, waits or spawns, under any of these names.
const IO_CRATES: &[&str] = &[
    "async-executor",
    "async-io",
    "async-std",
    "curl",
    "futures-executor",
    "h2",
    "hyper",
    "hyper-util",
    "mio",
    "native-tls",
    "polling",
    "process-wrap",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "ureq",
];

const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run(mut args: Args) -> Outcome {
    let manifest = args.value("--manifest-path")?;
    args.finish()?;
    let text = metadata(manifest.as_deref().map(Path::new))?;
    let graph = Graph::read(&text).map_err(Stop::Broken)?;
    let mut tally = Tally::default();
    check(&graph, &mut tally);
    Ok(tally.finish())
}

fn metadata(manifest: Option<&Path>) -> Result<String, Stop> {
    let mut command: Command = cargo();
    command.args(["metadata", "--format-version", "1", "--all-features"]);
    if let Some(manifest) = manifest {
        if !manifest.is_file() {
            return Err(Stop::Usage(format!("{} is no file", manifest.display())));
        }
        let absolute = std::path::absolute(manifest);
        command.arg("--manifest-path").arg(absolute.unwrap_or_else(|_| manifest.to_path_buf()));
    }
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        Ok(finished.stdout)
    } else {
        Err(Stop::Broken(format!(
            "cargo metadata: {}\n{}",
            finished.end,
            process::tail(&finished.stderr, 20)
        )))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Build,
    Development,
    Normal,
}

/// The part of `cargo metadata` that matters here.
#[derive(Debug, Default)]
struct Graph {
    /// Members of the workspace and what they declare.
    members: BTreeMap<String, Vec<(String, Kind)>>,
    /// Members, and packages beside the workspace in the same repository.
    ours: BTreeSet<String>,
    /// Package id to package ids of its normal dependencies, over the whole resolved graph.
    normal: BTreeMap<String, Vec<String>>,
    names: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
}

impl Graph {
    fn read(text: &str) -> Result<Self, String> {
        let metadata: Value =
            serde_json::from_str(text).map_err(|error| format!("cargo metadata: {error}"))?;
        let mut graph = Self::default();
        let members: BTreeSet<&str> =
            list(&metadata, "workspace_members").filter_map(Value::as_str).collect();
        for package in list(&metadata, "packages") {
            let (Some(id), Some(name)) = (text_of(package, "id"), text_of(package, "name")) else {
                return Err("cargo metadata: a package without id or name".into());
            };
            graph.names.insert(id.to_owned(), name.to_owned());
            if !members.contains(id) {
                // A package beside the workspace has no registry to come from.
                if package.get("source").is_none_or(Value::is_null) && name.starts_with("mcp-") {
                    graph.ours.insert(name.to_owned());
                }
                continue;
            }
            graph.ids.insert(name.to_owned(), id.to_owned());
            graph.ours.insert(name.to_owned());
            let mut declared = Vec::new();
            for dependency in list(package, "dependencies") {
                let Some(name) = text_of(dependency, "name") else {
                    return Err("cargo metadata: a dependency without a name".into());
                };
                let kind = match text_of(dependency, "kind") {
                    None => Kind::Normal,
                    Some("build") => Kind::Build,
                    Some("dev") => Kind::Development,
                    Some(other) => return Err(format!("cargo metadata: dependency kind {other:?}")),
                };
                declared.push((name.to_owned(), kind));
            }
            graph.members.insert(name.to_owned(), declared);
        }
        if graph.members.is_empty() {
            return Err("cargo metadata: no workspace members".into());
        }
        for node in list(metadata.get("resolve").unwrap_or(&Value::Null), "nodes") {
            let normal = list(node, "deps").filter(|dependency| {
                list(dependency, "dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null))
            });
            let ids = normal.filter_map(|dependency| text_of(dependency, "pkg")).map(str::to_owned).collect();
            if let Some(id) = text_of(node, "id") {
                graph.normal.insert(id.to_owned(), ids);
            }
        }
        // Without its edges every crate would be free of I/O.
        match graph.ids.iter().find(|(_, id)| !graph.normal.contains_key(*id)) {
            Some((name, _)) => Err(format!("cargo metadata: the dependencies of {name} are not resolved")),
            None => Ok(graph),
        }
    }

    /// The shortest way by normal dependencies from a member to a crate that does I/O.
    fn way_to_io(&self, member: &str) -> Option<Vec<String>> {
        let start = self.ids.get(member)?;
        let mut seen = BTreeSet::from([start]);
        let mut ways = std::collections::VecDeque::from([vec![start]]);
        while let Some(way) = ways.pop_front() {
            let end = way.last()?;
            for next in self.normal.get(*end).into_iter().flatten() {
                if !seen.insert(next) {
                    continue;
                }
                let mut longer = way.clone();
                longer.push(next);
                if self.names.get(next).is_some_and(|name| IO_CRATES.contains(&name.as_str())) {
                    return Some(longer.iter().filter_map(|id| self.names.get(*id)).cloned().collect());
                }
                ways.push_back(longer);
            }
        }
        None
    }
}

fn list<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

fn text_of<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

fn check(graph: &Graph, tally: &mut Tally) {
    for (member, declared) in &graph.members {
        let Some(rule) = RULES.iter().find(|rule| rule.name == member) else {
            tally
                .fail(member, "this crate has no place in the layers; give it a rule in xtask/src/layers.rs");
            continue;
        };
        for (name, kind) in declared {
            let arrow = match kind {
                Kind::Normal => format!("{member} -> {name}"),
                Kind::Build => format!("{member} -> {name} (build)"),
                Kind::Development => format!("{member} -> {name} (dev)"),
            };
            let ours = graph.ours.contains(name);
            let allowed = if *kind == Kind::Development {
                // A test may use other people's crates freely.
                !ours
                    || below(rule).contains(name.as_str())
                    || TEST_PACKAGES.contains(&name.as_str())
                    || EXAMPLE_ARROWS.contains(&(member.as_str(), name.as_str()))
            } else if ours {
                rule.ours.contains(&name.as_str())
            } else {
                rule.others.is_none_or(|others| others.contains(&name.as_str()))
            };
            if !allowed {
                tally.fail(&arrow, "this arrow is not in the table of xtask/src/layers.rs");
            } else if ours {
                tally.pass(&arrow);
            }
        }
        if rule.purity == Purity::NoIo {
            let what = format!("{member} does no I/O");
            match graph.way_to_io(member) {
                Some(way) => tally.fail(&what, &way.join(" -> ")),
                None => tally.pass(&what),
            }
        }
    }
}

/// Every crate below this one, over any number of arrows.
fn below(rule: &Rule) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&'static str> = rule.ours.to_vec();
    while let Some(name) = open.pop() {
        if found.insert(name)
            && let Some(lower) = RULES.iter().find(|rule| rule.name == name)
        {
            open.extend(lower.ours);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;

    fn fixture(name: &str) -> Vec<String> {
        let manifest = crate::support::root().join("xtask/fixtures/layers").join(name).join("Cargo.toml");
        let text = metadata(Some(&manifest)).unwrap();
        let mut tally = Tally::default();
        check(&Graph::read(&text).unwrap(), &mut tally);
        tally.failures()
    }

    #[test]
    fn a_good_workspace_passes() {
        assert_eq!(fixture("good"), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_upwards_fails() {
        assert_eq!(fixture("bad-arrow"), ["mcp-jsonrpc -> mcp-model"]);
    }

    #[test]
    fn a_development_arrow_upwards_fails() {
        assert_eq!(fixture("bad-dev-arrow"), ["mcp-jsonrpc -> mcp-model (dev)"]);
    }

    #[test]
    fn a_runtime_below_a_core_fails_and_so_does_naming_it() {
        assert_eq!(fixture("io-in-core"), ["mcp-proto -> helper", "mcp-proto does no I/O"]);
    }

    #[test]
    fn a_workspace_whose_dependencies_are_not_resolved_is_refused() {
        let manifest = crate::support::root().join("xtask/fixtures/layers/io-in-core/Cargo.toml");
        let mut metadata: Value = serde_json::from_str(&metadata(Some(&manifest)).unwrap()).unwrap();
        metadata["resolve"] = Value::Null;
        assert!(Graph::read(&metadata.to_string()).unwrap_err().contains("not resolved"));
    }

    #[test]
    fn a_crate_without_a_place_fails() {
        assert_eq!(fixture("unknown-crate"), ["mcp-surprise"]);
    }

    #[test]
    fn the_layers_have_no_circle() {
        for rule in RULES {
            assert!(!below(rule).contains(rule.name), "{} is below itself", rule.name);
        }
    }

    #[test]
    fn a_bad_workspace_makes_the_command_fail() {
        let manifest = crate::support::root().join("xtask/fixtures/layers/bad-arrow/Cargo.toml");
        let args = Args::new(vec!["--manifest-path".into(), manifest.display().to_string()]);
        assert_eq!(format!("{:?}", run(args).unwrap()), format!("{:?}", ExitCode::FAILURE));
    }
}
