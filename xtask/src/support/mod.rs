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

/// Where what is built goes.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A folder of its own in the system's place for such; gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(purpose: &str) -> Result<Self, crate::Stop> {
        let path = std::env::temp_dir().join(format!("mcp-{purpose}-{}", std::process::id()));
        // What a process of this number left behind when it was killed; what cannot go fails below.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path)
            .map_err(|error| crate::Stop::Broken(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind in the system's place for such is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a missing tool is a failure (on the build server) or a loud remark (on a person's machine).
pub(crate) fn on_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn a_scratch_folder_is_gone_afterwards() {
        let path = Scratch::new("test").unwrap().path().to_path_buf();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("left"), "by somebody who was killed").unwrap();
        let scratch = Scratch::new("test").unwrap();
        assert_eq!(scratch.path(), path);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        drop(scratch);
        assert!(!path.exists());
    }
}
