//! What the registry has under our names.

use std::process::Command;
use std::time::Duration;

use super::plan::Package;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;

const LIMIT: Duration = Duration::from_secs(60);

/// What became of a question to the registry.
#[derive(Debug, PartialEq)]
enum Name {
    Free,
    /// Somebody has it; their description.
    Taken(String),
}

/// Whether the name to publish under is free, and, where we renamed, why.
pub(super) fn check(package: &Package, tally: &mut Tally) {
    let what = format!("{} can be published under {}", package.name, package.published_as);
    match ask(&package.published_as) {
        Ok(Name::Free) => tally.pass(&format!("{what}: the name is free")),
        Ok(Name::Taken(by)) => tally.fail(&what, &format!("the name is taken: {by}")),
        Err(why) => tally.fail(&what, &why),
    }
    if package.published_as != package.name {
        match ask(&package.name) {
            Ok(Name::Taken(by)) => {
                println!("      {} is taken on the registry by others: {by}", package.name)
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
    let finished = process::run(command, LIMIT, Output::Capture);
    if finished.end.is_success() {
        return Ok(Name::Taken(finished.stdout.lines().nth(1).unwrap_or_default().to_owned()));
    }
    if finished.stderr.contains("could not find") {
        return Ok(Name::Free);
    }
    Err(format!("the registry was not reached: {}", process::tail(&finished.stderr, 3)))
}
