//! Rules that the compiler and clippy do not know, over every text file of the workspace.

mod rules;
#[cfg(test)]
mod tests;
mod tree;

use std::path::PathBuf;

use rules::RULES;
use tree::Tree;

use crate::support::args::Args;
use crate::support::tally::Tally;
use crate::{Outcome, Stop};

pub(crate) fn run(mut args: Args) -> Outcome {
    let root = args.value("--root")?.map_or_else(crate::support::root, PathBuf::from);
    args.finish()?;
    if !root.join("Cargo.toml").is_file() {
        return Err(Stop::Usage(format!("{} is no workspace", root.display())));
    }
    let tree = Tree::read(&root).map_err(|error| Stop::Broken(format!("{}: {error}", root.display())))?;
    println!("{} text files", tree.files().count());
    let mut tally = Tally::default();
    for rule in RULES {
        let offences = (rule.find)(&tree);
        let outcome = if offences.is_empty() { Ok(()) } else { Err(offences.join("\n")) };
        tally.record(&format!("{}: {}", rule.name, rule.says), outcome);
    }
    Ok(tally.finish())
}
