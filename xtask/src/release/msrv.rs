//! Whether the oldest Rust that we promise is one that our dependencies can be built with.
//!
//! What they declare is all that can be known without that toolchain; for the standard library there is clippy's `incompatible_msrv`.

use std::time::Duration;

use serde_json::Value;

use crate::support::cargo::cargo;
use crate::support::process::{self, Output};

const LIMIT: Duration = Duration::from_secs(120);

/// No locked package asks for a newer Rust than ours do.
pub(super) fn check() -> Result<(), String> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let finished = process::run(command, LIMIT, Output::Capture);
    if !finished.end.is_success() {
        return Err(format!("cargo metadata: {}\n{}", finished.end, process::tail(&finished.stderr, 10)));
    }
    let metadata = serde_json::from_str(&finished.stdout).map_err(|error| error.to_string())?;
    let newer = newer(&metadata)?;
    if newer.is_empty() { Ok(()) } else { Err(newer.join("\n")) }
}

fn newer(metadata: &Value) -> Result<Vec<String>, String> {
    let packages = metadata.get("packages").and_then(Value::as_array).ok_or("no packages")?;
    let asked = |package: &Value| package.get("rust_version").and_then(Value::as_str).map(numbers);
    // Ours come from a path, and have one version for all.
    let is_ours = |package: &&Value| package.get("source").is_none_or(Value::is_null);
    let promised = packages.iter().filter(is_ours).filter_map(asked).min().ok_or("no rust-version")?;
    let text = |package: &Value, name: &str| {
        package.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let newer = packages.iter().filter(|package| asked(package).is_some_and(|asked| asked > promised));
    let line = |package: &Value| {
        format!(
            "{} {} asks for {}",
            text(package, "name"),
            text(package, "version"),
            text(package, "rust_version")
        )
    };
    Ok(newer.map(line).collect())
}

/// Missing numbers count as 0.
fn numbers(version: &str) -> [u64; 3] {
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(version.split('.')) {
        *number = part.parse().unwrap_or(0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_that_asks_for_more_than_we_promise_is_named() {
        let package = |name: &str, asked: Option<&str>, source: Option<&str>| json!({ "name": name, "version": "1.0.0", "rust_version": asked, "source": source });
        let metadata = json!({ "packages": [
            package("ours", Some("1.88"), None),
            package("old", Some("1.9"), Some("registry")),
            package("same", Some("1.88.0"), Some("registry")),
            package("silent", None, Some("registry")),
            package("new", Some("1.100"), Some("registry")),
        ] });
        assert_eq!(newer(&metadata).unwrap(), ["new 1.0.0 asks for 1.100"]);
    }
}
