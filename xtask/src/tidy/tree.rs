//! The text files of a workspace, read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Folders that hold nothing we wrote by hand.
const SKIPPED: &[&str] =
    &[".git", ".state", ".venv", "artifacts", "corpus", "coverage", "fixtures", "node_modules", "target"];
const TEXT: &[&str] = &["json", "md", "mjs", "js", "npmrc", "py", "rs", "sh", "toml", "txt", "yaml", "yml"];
/// Without an extension, but text.
const TEXT_NAMES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "Cargo.lock", "run"];

/// Paths relative to the root, with `/` between their parts, and what the files hold.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.fill(root, "")?;
        Ok(tree)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }

    fn fill(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.fill(&entry.path(), &format!("{path}/"))?;
                }
            } else if kind.is_file() {
                let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
                if TEXT.contains(&extension) || TEXT_NAMES.contains(&name.as_str()) {
                    let bytes = fs::read(entry.path())?;
                    self.files.insert(path, String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The folders of the packages below `crates/` that are meant for a registry, with their manifests.
    pub(super) fn published(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter_map(|(path, text)| {
            let folder = path.strip_suffix("/Cargo.toml")?;
            let direct = folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
            (direct && !text.contains("publish = false")).then_some((folder, text))
        })
    }
}
