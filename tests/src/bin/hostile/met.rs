//! Which of its rules a server has met: a fault that never came to pass proves nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::behaviour::Rule;

/// Where a child process finds the file that it tells it in.
pub(crate) const VARIABLE: &str = "MCP_HOSTILE_MET";

/// The places of the rules, in the order of the behaviour.
#[derive(Clone, Debug)]
pub(crate) enum Met {
    /// By a server in this process.
    Here(Arc<Mutex<BTreeSet<u8>>>),
    /// By a child, however often it is started: a byte each.
    InFile(PathBuf),
}

impl Met {
    pub(crate) fn here() -> Self {
        Self::Here(Arc::default())
    }

    /// In a new file, for a child.
    pub(crate) fn in_file() -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mcp-hostile-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        File::create(&path)?;
        Ok(Self::InFile(path))
    }

    /// In the file that the parent has made; to nobody where this was started by hand.
    pub(crate) fn of_the_parent() -> Self {
        std::env::var_os(VARIABLE).map_or_else(Self::here, |path| Self::InFile(path.into()))
    }

    /// What the child is to find in [`VARIABLE`].
    pub(crate) fn path(&self) -> Option<OsString> {
        match self {
            Self::Here(_) => None,
            Self::InFile(path) => Some(path.clone().into_os_string()),
        }
    }

    pub(crate) fn note(&self, place: usize) {
        let place = u8::try_from(place).unwrap_or(u8::MAX);
        match self {
            Self::Here(places) => drop(places.lock().unwrap_or_else(PoisonError::into_inner).insert(place)),
            // What cannot be noted will be missed.
            Self::InFile(path) => drop(append(path, place)),
        }
    }

    /// The messages whose rules were never met.
    pub(crate) fn missing(&self, rules: &[Rule]) -> Vec<String> {
        let places = match self {
            Self::Here(places) => places.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Self::InFile(path) => fs::read(path).unwrap_or_default().into_iter().collect(),
        };
        let missing = (0..).zip(rules).filter(|(place, _)| !places.contains(place));
        missing.map(|(_, rule)| rule.on.to_string()).collect()
    }

    /// Nobody asks any more.
    pub(crate) fn forget(self) {
        if let Self::InFile(path) = self {
            // One that stays in the system's folder for such does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

fn append(path: &Path, place: u8) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(&[place])
}
