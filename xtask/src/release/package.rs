//! Builds each package from the files that would be published, against the others as they would be published.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::plan::Plan;
use crate::support::Scratch;
use crate::support::process::{self, Output};
use crate::{Stop, support};

/// All packages with all their dependencies, from nothing.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Copies what is committed, gives the packages the names they are published under, and lets cargo package all of them at once:
/// it builds each from its archive, and takes ours from a registry of the other archives.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let scratch = Scratch::new("package").map_err(|stop| match stop {
        Stop::Broken(why) | Stop::Usage(why) => why,
    })?;
    let copy = scratch.path().join("workspace");
    copy_tracked(&copy)?;
    for package in plan.packages.iter().filter(|package| package.name != package.published_as) {
        rename(&copy, &package.name, &package.published_as)?;
    }
    let mut command = Command::new("cargo");
    command
        .current_dir(&copy)
        .args(["package", "--quiet", "--target-dir"])
        .arg(support::target_dir().join("package"));
    for package in &plan.packages {
        command.args(["--package", &package.published_as]);
    }
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        Ok(())
    } else {
        Err(format!("cargo package: {}\n{}", finished.end, process::tail(&finished.stderr, 30)))
    }
}

fn copy_tracked(to: &Path) -> Result<(), String> {
    let mut command = Command::new("git");
    command.current_dir(support::root()).args(["ls-files", "-z"]);
    let listed = process::run(command, LIMIT, Output::Capture);
    if !listed.end.is_success() {
        return Err(format!("git ls-files: {}", listed.end));
    }
    for name in listed.stdout.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (support::root().join(name), to.join(name));
        let copied = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(&from, &to));
        match copied {
            Ok(_) => {}
            // Deleted and not committed yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(())
}

/// Gives one package another name in its own manifest and wherever the workspace names it; the library keeps its name.
fn rename(copy: &Path, name: &str, published_as: &str) -> Result<(), String> {
    let edit = |path: &Path, edit: &dyn Fn(&str) -> Option<String>| {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = edit(&text).ok_or_else(|| format!("{} does not name {name}", path.display()))?;
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    edit(&copy.join("crates").join(name).join("Cargo.toml"), &|text| own_manifest(text, name, published_as))?;
    edit(&copy.join("Cargo.toml"), &|text| workspace_manifest(text, name, published_as))
}

fn own_manifest(text: &str, name: &str, published_as: &str) -> Option<String> {
    let line = format!("name = \"{name}\"\n");
    let renamed = text.replacen(&line, &format!("name = \"{published_as}\"\n"), 1);
    (renamed != text).then(|| format!("{renamed}\n[lib]\nname = \"{}\"\n", name.replace('-', "_")))
}

fn workspace_manifest(text: &str, name: &str, published_as: &str) -> Option<String> {
    let line = format!("\n{name} = {{ ");
    let renamed = text.replacen(&line, &format!("{line}package = \"{published_as}\", "), 1);
    (renamed != text).then_some(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_package_keeps_the_name_of_its_library() {
        let own = own_manifest("[package]\nname = \"a-b\"\n", "a-b", "c").unwrap();
        assert_eq!(own, "[package]\nname = \"c\"\n\n[lib]\nname = \"a_b\"\n");
        let workspace =
            workspace_manifest("[workspace.dependencies]\na-b = { path = \"x\" }\n", "a-b", "c").unwrap();
        assert!(workspace.contains("a-b = { package = \"c\", path = \"x\" }"));
        assert!(own_manifest("[package]\n", "a-b", "c").is_none());
    }
}
