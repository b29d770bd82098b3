//! What several commands need.

pub(crate) mod args;
pub(crate) mod cargo;
pub(crate) mod interrupt;
pub(crate) mod peers;
pub(crate) mod process;
pub(crate) mod tally;

use std::path::{Path, PathBuf};

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Whether a missing tool is a failure (on the build server) or a loud remark (on a person's machine).
pub(crate) fn on_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
