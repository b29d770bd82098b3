//! What the registry has under our names.

use std::process::Command;
use std::time::Duration;

use super::plan::Package;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;

const LIMIT: Duration = Duration::from_secs(60);

/// What the registry says of a name.
#[derive(Debug, PartialEq)]
enum Name {
    Free,
    Taken { description: String, newest: String },
}

/// Whether the name to publish under is free or ours, and, where we renamed, why. A name that nobody could be asked about is
/// unchecked: it does not count as free.
pub(super) fn check(package: &Package, tally: &mut Tally) {
    let what = format!("{} can be published under {}", package.name, package.published_as);
    match ask(&package.published_as) {
        Ok(Name::Free) => tally.pass(&format!("{what}: the name is free")),
        // The registry's client does not tell owners; nobody else describes their package in our words.
        Ok(Name::Taken { description, newest }) if description == package.description => {
            tally.pass(&format!("{what}: the name is ours, with {newest} as its newest version"));
        }
        Ok(Name::Taken { description, .. }) => {
            tally.fail(&what, &format!("the name is taken by others: {description}"));
        }
        Err(why) => tally.unchecked(&what, &why),
    }
    if package.published_as != package.name {
        match ask(&package.name) {
            Ok(Name::Taken { description, .. }) => {
                println!("      {} is taken on the registry by others: {description}", package.name);
            }
            Ok(Name::Free) => println!("      {} has become free on the registry", package.name),
            Err(why) => println!("      {}: {why}", package.name),
        }
    }
}

fn ask(name: &str) -> Result<Name, String> {
    let mut command = Command::new("cargo");
    // Outside of the workspace, where our own packages would be found instead of the registry's.
    command.current_dir(std::env::temp_dir()).args(["info", "--quiet", name]);
    // Offline, cargo answers out of its cache, where a name that it never saw looks as if it were free.
    command.env("CARGO_NET_OFFLINE", "false");
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        return Ok(taken(&finished.stdout));
    }
    if finished.stderr.contains("could not find") {
        return Ok(Name::Free);
    }
    let lines: Vec<&str> = finished.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(format!("the registry was not reached: {}", lines.last().unwrap_or(&"no reason given")))
}

/// Reads what `cargo info` prints: the name with keywords, the description, then `key: value` lines.
fn taken(info: &str) -> Name {
    let newest = info.lines().find_map(|line| line.strip_prefix("version: ")).unwrap_or_default();
    // Behind a version that is not the newest one comes a remark about that.
    let newest = newest.split_whitespace().next().unwrap_or_default().to_owned();
    Name::Taken { description: info.lines().nth(1).unwrap_or_default().to_owned(), newest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_registry_tells_of_a_package_is_read() {
        let info = "a-b #one #two\nDoes this and that\nversion: 1.2.3 (latest 2.0.0)\nlicense: MIT\n";
        let expected =
            Name::Taken { description: "Does this and that".to_owned(), newest: "1.2.3".to_owned() };
        assert_eq!(taken(info), expected);
    }
}
