//! What is published, under which names, in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::manifest;
use crate::Stop;
use crate::support::cargo::cargo;
use crate::support::process::{self, Output};

const LIMIT: Duration = Duration::from_secs(120);

/// Names of ours that somebody else has on the registry already, and what to publish under instead. The library keeps its
/// name, so that the code of users is the same.
const RENAMED: &[(&str, &str)] = &[("mcp-client", "mcp-client-kit")];

#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) published_as: String,
    pub(super) version: String,
    pub(super) description: String,
    /// What the registry would refuse of its manifest.
    pub(super) problems: Vec<String>,
    /// Whether its manifest says where its source is.
    names_repository: bool,
    /// Packages of ours that must be published before it.
    needs: Vec<String>,
    /// The version that each of them is asked for.
    asks: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct Plan {
    /// In the order of publication.
    pub(super) packages: Vec<Package>,
    /// Everything in the workspace, what is never published included: its versions move together.
    pub(super) members: Vec<String>,
}

impl Plan {
    pub(super) fn read() -> Result<Self, Stop> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--no-deps"]);
        let finished = process::run(command, LIMIT, Output::Capture);
        let broken = |why: String| Stop::Broken(format!("cargo metadata: {why}"));
        if !finished.end.is_success() {
            return Err(broken(format!("{}\n{}", finished.end, process::tail(&finished.stderr, 10))));
        }
        let metadata = serde_json::from_str(&finished.stdout).map_err(|error| broken(error.to_string()))?;
        Self::from_metadata(&metadata).map_err(broken)
    }

    fn from_metadata(metadata: &Value) -> Result<Self, String> {
        let packages = metadata.get("packages").and_then(Value::as_array).ok_or("no packages")?;
        // `publish = false` is an empty list of registries.
        let is_published = |package: &&Value| package.get("publish").is_none_or(Value::is_null);
        let mut waiting: Vec<Package> = packages
            .iter()
            .filter(is_published)
            .map(package)
            .collect::<Option<_>>()
            .ok_or("a package without a name")?;
        let name = |package: &Value| package.get("name").and_then(Value::as_str).map(str::to_owned);
        let members = packages.iter().filter_map(name).collect();
        let names: Vec<String> = waiting.iter().map(|package| package.name.clone()).collect();
        for package in &mut waiting {
            package.needs.retain(|name| names.contains(name));
            package.asks.retain(|name, _| names.contains(name));
        }
        waiting.sort_by(|a, b| a.name.cmp(&b.name));
        let mut ordered: Vec<Package> = Vec::new();
        while !waiting.is_empty() {
            let is_done = |name: &String| ordered.iter().any(|package| package.name == *name);
            let at = waiting.iter().position(|package| package.needs.iter().all(is_done));
            ordered.push(waiting.remove(at.ok_or("the packages depend on each other in a circle")?));
        }
        if ordered.is_empty() {
            return Err("nothing is published".into());
        }
        Ok(Self { packages: ordered, members })
    }

    /// The version of all of them.
    pub(super) fn version(&self) -> &str {
        self.packages.first().map_or("", |package| &package.version)
    }

    /// What to know of packages whose manifest names no repository. The registry takes them, so that this is no failure; only whoever
    /// publishes knows the address.
    pub(super) fn without_repository(&self) -> Option<String> {
        let without = self.packages.iter().filter(|package| !package.names_repository);
        let names: Vec<&str> = without.map(|package| package.name.as_str()).collect();
        let by = if names.len() == self.packages.len() { "any package".to_owned() } else { names.join(", ") };
        (!names.is_empty()).then(|| {
            format!(
                "no repository is named by {by}: set `repository` in [workspace.package] before the first publication, or the registry's \
                 pages lead to no source, and the relative links of the READMEs nowhere"
            )
        })
    }

    pub(super) fn versions_agree(&self) -> Result<(), String> {
        let version = self.version();
        let odd = self.packages.iter().flat_map(|package| {
            let own =
                (package.version != version).then(|| format!("{} is {}", package.name, package.version));
            let asks = package.asks.iter().filter(|(_, asked)| asked.trim_start_matches('^') != version);
            own.into_iter().chain(asks.map(|(of, asked)| format!("{} asks for {of} {asked}", package.name)))
        });
        let odd: Vec<String> = odd.collect();
        if odd.is_empty() { Ok(()) } else { Err(odd.join("\n")) }
    }
}

fn package(package: &Value) -> Option<Package> {
    let name = package.get("name")?.as_str()?.to_owned();
    // Development dependencies are published with their versions, but for those that have none.
    let normal = package.get("dependencies")?.as_array()?.iter().filter(|dependency| {
        dependency.get("path").is_some() && dependency.get("req").and_then(Value::as_str) != Some("*")
    });
    let asks: BTreeMap<String, String> = normal
        .filter_map(|dependency| {
            Some((dependency.get("name")?.as_str()?.to_owned(), dependency.get("req")?.as_str()?.to_owned()))
        })
        .collect();
    let published_as =
        RENAMED.iter().find(|(ours, _)| *ours == name).map_or(name.as_str(), |(_, other)| other);
    Some(Package {
        published_as: published_as.to_owned(),
        version: package.get("version")?.as_str()?.to_owned(),
        description: package.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        problems: manifest::problems(package),
        names_repository: package.get("repository").is_some_and(Value::is_string),
        needs: asks.keys().cloned().collect(),
        asks,
        name,
    })
}

/// Whether the step from `old` to `new` may break users: the leftmost number that is not 0 has grown.
pub(super) fn is_incompatible(old: &str, new: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let core = version.split(['-', '+']).next().unwrap_or(version);
        core.split('.').map(|number| number.parse().unwrap_or(0)).collect()
    };
    let (old, new) = (numbers(old), numbers(new));
    let leading = old.iter().position(|number| *number != 0).unwrap_or(old.len());
    old.iter().zip(&new).take(leading + 1).any(|(old, new)| new > old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(version_of_low: &str) -> Value {
        let on = |name: &str, req: &str| json!({ "name": name, "path": "p", "req": req });
        json!({ "packages": [
            { "name": "mcp-client", "version": "1.0.0", "publish": null, "dependencies": [on("low", "^1.0.0"), on("tests", "*")] },
            { "name": "low", "version": version_of_low, "publish": null, "dependencies": [] },
            { "name": "tests", "version": "0.0.0", "publish": [], "dependencies": [] },
        ] })
    }

    #[test]
    fn what_others_need_is_published_first_and_tests_are_not() {
        let plan = Plan::from_metadata(&metadata("1.0.0")).unwrap();
        let names: Vec<&str> = plan.packages.iter().map(|package| package.published_as.as_str()).collect();
        assert_eq!(names, ["low", "mcp-client-kit"]);
        assert!(plan.versions_agree().is_ok());
    }

    #[test]
    fn packages_without_a_repository_are_named() {
        let mut metadata = metadata("1.0.0");
        let named = |metadata: &Value| Plan::from_metadata(metadata).unwrap().without_repository();
        assert!(named(&metadata).unwrap().starts_with("no repository is named by any package: set"));
        metadata["packages"][1]["repository"] = json!("https://example.com/source");
        assert!(named(&metadata).unwrap().starts_with("no repository is named by mcp-client: set"));
        metadata["packages"][0]["repository"] = json!("https://example.com/source");
        assert_eq!(named(&metadata), None);
    }

    #[test]
    fn versions_that_differ_are_named() {
        let why = Plan::from_metadata(&metadata("1.1.0")).unwrap().versions_agree().unwrap_err();
        assert!(why.contains("mcp-client is 1.0.0"), "{why}");
    }

    #[test]
    fn the_leftmost_number_that_counts_says_what_may_break() {
        for (old, new, breaks) in [
            ("0.1.0", "0.1.1", false),
            ("0.1.0", "0.2.0", true),
            ("0.0.1", "0.0.2", true),
            ("1.2.0", "1.3.0", false),
            ("1.2.0", "2.0.0", true),
            ("1.2.0", "1.2.0", false),
        ] {
            assert_eq!(is_incompatible(old, new), breaks, "{old} {new}");
        }
    }
}
