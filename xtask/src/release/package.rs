//! Builds each package from the files that would be published, against the others as they would be published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::plan::{Package, Plan};
use crate::support::Scratch;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Stop, support};

/// All packages with all their dependencies, from nothing, on a machine that does something else as well.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// What a package must bring along, whatever else is in it.
const NEEDED: [&str; 5] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];
/// The registry takes no larger archives.
const MAX_ARCHIVE_BYTES: u64 = 10 * 1024 * 1024;

/// Lets cargo package all packages at once, as they are published: in the order of their arrows it builds each from its archive alone,
/// and takes ours from a registry of the other archives.
pub(super) fn check(plan: &Plan, tally: &mut Tally) {
    let target = support::target_dir().join("package");
    match package_all(plan, &target) {
        Ok(()) => {
            for package in &plan.packages {
                let what = format!("{}: builds from its packaged files alone", package.published_as);
                match look_into(&target.join("package"), package) {
                    Ok(size) => tally.pass(&format!("{what}, {size}")),
                    Err(why) => tally.fail(&what, &why),
                }
            }
        }
        Err(Failure::Failed(why)) => tally.fail("each package builds from its packaged files alone", &why),
        Err(Failure::Unreached(why)) => {
            tally.unchecked("each package builds from its packaged files alone", &why);
        }
    }
}

enum Failure {
    Failed(String),
    /// Cargo needs something from the registry that is not here.
    Unreached(String),
}

fn package_all(plan: &Plan, target: &Path) -> Result<(), Failure> {
    let scratch = Scratch::new("package").map_err(|stop| match stop {
        Stop::Broken(why) | Stop::Usage(why) => Failure::Failed(why),
    })?;
    let copy = scratch.path().join("workspace");
    stage(plan, &copy).map_err(Failure::Failed)?;
    forget_unpacked(plan);
    forget_built(plan, target);
    let run = |offline: &str| {
        let mut command = Command::new("cargo");
        command.current_dir(&copy).args(["package", "--quiet", "--target-dir"]).arg(target);
        command.env("CARGO_NET_OFFLINE", offline);
        for package in &plan.packages {
            command.args(["--package", &package.published_as]);
        }
        process::run(command, LIMIT, Output::Capture)
    };
    let mut finished = run("false");
    // What was downloaded for the workspace is all that the packages need, so that the network is no condition.
    let is_unreached = is_unreached(&finished.stderr);
    if is_unreached {
        finished = run("true");
    }
    if finished.end.is_success() {
        return Ok(());
    }
    let why = format!("cargo package: {}\n{}", finished.end, process::tail(&finished.stderr, 30));
    Err(if is_unreached { Failure::Unreached(why) } else { Failure::Failed(why) })
}

/// Cargo unpacks the archives of the other packages beside those of the registry, and takes what it finds there of the same version
/// for the same: a package would be built against what the others were when they were last packaged.
fn forget_unpacked(plan: &Plan) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))) else {
        return;
    };
    let registries = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    // Registries in a folder have no host, and so nothing before the dash.
    for registry in registries.filter(|entry| entry.file_name().to_string_lossy().starts_with('-')) {
        for package in &plan.packages {
            let unpacked = registry.path().join(format!("{}-{}", package.published_as, package.version));
            // What is not there need not go; what cannot go will show itself when the package is built.
            let _ = fs::remove_dir_all(unpacked);
        }
    }
}

/// Nor does cargo build again what comes from a registry and is of the same version.
fn forget_built(plan: &Plan, target: &Path) {
    let built = fs::read_dir(target.join("debug/.fingerprint")).into_iter().flatten().flatten();
    for entry in built {
        let name = entry.file_name();
        let is_ours = |package: &Package| name.to_string_lossy().starts_with(&package.published_as);
        if plan.packages.iter().any(is_ours) {
            // As above.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether cargo gave up because it could not reach the registry.
fn is_unreached(stderr: &str) -> bool {
    [
        "failed to download",
        "download of config.json failed",
        "Could not resolve host",
        "failed to query replaced source",
    ]
    .iter()
    .any(|sign| stderr.contains(sign))
}

/// Whether a package has what it must bring along; its size.
fn look_into(archives: &Path, package: &Package) -> Result<String, String> {
    let stem = format!("{}-{}", package.published_as, package.version);
    let archive = archives.join(format!("{stem}.crate"));
    let bytes = fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
    if bytes > MAX_ARCHIVE_BYTES {
        return Err(format!("{bytes} bytes exceed the registry's limit of {MAX_ARCHIVE_BYTES}"));
    }
    // Cargo unpacks an archive beside it in order to build it.
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|name| !archives.join(&stem).join(name).is_file()).collect();
    if missing.is_empty() {
        Ok(format!("{} KiB", bytes.div_ceil(1024)))
    } else {
        Err(format!("not in the package: {}", missing.join(", ")))
    }
}

/// Writes the workspace as it is published: what is committed, with the packages under the names that they are published under.
pub(super) fn stage(plan: &Plan, to: &Path) -> Result<(), String> {
    if fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{} is not empty", to.display()));
    }
    copy_tracked(to)?;
    let renamed = plan.packages.iter().filter(|package| package.name != package.published_as);
    renamed.into_iter().try_for_each(|package| rename(to, &package.name, &package.published_as))
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
    edit(&copy.join("Cargo.toml"), &|text| workspace_manifest(text, name, published_as))?;
    // The workspace's tests take the bodies of the fuzz targets along, which name packages of ours by their paths.
    edit(&copy.join("fuzz/Cargo.toml"), &|text| {
        Some(workspace_manifest(text, name, published_as).unwrap_or_else(|| text.to_owned()))
    })
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
