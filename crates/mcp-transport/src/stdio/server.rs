//! The configuration of a server process: program, arguments, environment, working directory.

use std::{
    ffi::{OsStr, OsString},
    fmt::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use hmac_sha256::Hash as Sha256;

use super::{CloseWaits, LineConnection, LineLimits, StderrLimits, io::runtime, process};
use crate::Error;

/// A server to start as a child process: a program and its arguments, never a shell command line.
///
/// It is a description that can be started any number of times, also after the last process has exited.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_transport::Error> {
/// use mcp_transport::stdio::StdioServer;
///
/// let server = StdioServer::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]).env("LOG_LEVEL", "debug");
/// println!("about to run: {}", server.describe());
/// let (sender, receiver) = server.spawn()?.split();
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows neither arguments nor environment values, which often hold secrets; use [`describe`](Self::describe) for a
/// consent screen.
#[derive(Clone)]
pub struct StdioServer {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// By name, each once.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) inherit: InheritEnv,
    pub(crate) current_dir: Option<PathBuf>,
    pub(crate) allow_batch: bool,
    pub(crate) stderr_limits: StderrLimits,
    pub(crate) stderr_hook: Option<StderrHook>,
    limits: LineLimits,
    waits: CloseWaits,
}

pub(crate) type StderrHook = Arc<dyn Fn(&str) + Send + Sync>;

/// What a server process inherits of this process's environment, before the caller's variables are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InheritEnv {
    /// Every variable, secrets included.
    All,
    /// Nothing.
    Nothing,
    /// What programs need to run, and nothing that tends to hold secrets: `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and
    /// `USER` on Unix; on Windows `APPDATA`, `COMSPEC`, `HOMEDRIVE`, `HOMEPATH`, `LOCALAPPDATA`, `PATH`, `PATHEXT`,
    /// `PROCESSOR_ARCHITECTURE`, `PROGRAMDATA`, `PROGRAMFILES`, `SYSTEMDRIVE`, `SYSTEMROOT`, `TEMP`, `TMP`, `USERNAME` and
    /// `USERPROFILE`. Values that start with `()` are left out: shells read those as functions.
    #[default]
    Safe,
}

impl StdioServer {
    /// A server by its program: a path, or a name that is looked up on the child's `PATH`.
    ///
    /// A relative path with a separator is taken from the child's working directory. Empty and relative entries of `PATH` are
    /// skipped, so that a name never means a file that happens to lie in the working directory.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: InheritEnv::default(),
            current_dir: None,
            allow_batch: false,
            stderr_limits: StderrLimits::default(),
            stderr_hook: None,
            limits: LineLimits::default(),
            waits: CloseWaits::default(),
        }
    }

    /// Adds one argument. It is passed unchanged; nothing splits or expands it.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one variable of the child's environment; it overrides an inherited one.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set_env(name.into(), value.into());
        self
    }

    fn set_env(&mut self, name: OsString, value: OsString) {
        let at = self.env.partition_point(|(known, _)| *known < name);
        match self.env.get_mut(at) {
            Some((known, old)) if *known == name => *old = value,
            _ => self.env.insert(at, (name, value)),
        }
    }

    /// Sets variables of the child's environment; they override inherited ones.
    pub fn envs(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> Self {
        for (name, value) in variables {
            self.set_env(name.into(), value.into());
        }
        self
    }

    /// Sets what is inherited of this process's environment. Default: `mcp_transport::stdio::InheritEnv::Safe`.
    pub fn inherit_env(mut self, inherit: InheritEnv) -> Self {
        self.inherit = inherit;
        self
    }

    /// Sets the child's working directory. Default: that of this process.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: LineLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how much of standard error is kept and shown.
    pub fn stderr_limits(mut self, limits: StderrLimits) -> Self {
        self.stderr_limits = limits;
        self
    }

    /// Sets how long each step of closing may take.
    pub fn close_waits(mut self, waits: CloseWaits) -> Self {
        self.waits = waits;
        self
    }

    /// Calls `hook` with each line that the server writes to standard error, without its terminator, invalid UTF-8 replaced,
    /// long ones in pieces (`mcp_transport::stdio::StderrLimits::line_bytes`). Untrusted text: in a log, show it
    /// through [`Untrusted`](crate::Untrusted), which keeps it on one line.
    ///
    /// The hook runs on the connection's background task and must not block. If it panics, it is not called again. Without a
    /// hook the lines go to `tracing` at DEBUG.
    pub fn on_stderr(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr_hook = Some(Arc::new(hook));
        self
    }

    /// Allows a `.bat` or `.cmd` file as the program on Windows. Default: refused, because the command interpreter that runs
    /// it parses the arguments again. The standard library quotes them and refuses what cannot be quoted. No effect on other
    /// systems.
    pub fn allow_batch(mut self, allow: bool) -> Self {
        self.allow_batch = allow;
        self
    }

    /// The program as given.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments as given.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// The working directory, if one was set.
    pub fn working_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// The exact program and arguments, untruncated, for a consent screen. The variables and the working directory are not in it.
    ///
    /// A word is shown unchanged if it has only ASCII letters, digits and `_-./:@%+=,`; any other is shown in double quotes,
    /// with everything escaped that is not printable ASCII, including invisible characters and letters of other scripts that
    /// look like ASCII. So two different commands never give the same text, nor look the same where a font distinguishes the
    /// ASCII characters. It is meant for people, not for a shell.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for word in std::iter::once(&self.program).chain(&self.args) {
            if !text.is_empty() {
                text.push(' ');
            }
            describe_word(&mut text, word);
        }
        text
    }

    /// A digest of what will be run, to bind an approval to: program, arguments, the variables that are set with their values,
    /// the kind of inheritance, working directory. Any change to these changes it.
    ///
    /// Values are covered because many of them determine which code runs: `PATH`, `LD_PRELOAD`, `NODE_OPTIONS`, the package
    /// index of `npx` or `uvx`; no list of such names is complete. A digest does not reveal a long random token, but whoever
    /// has it and knows the rest can try out short or guessable values, so store it as safely as the values. If an approval
    /// should outlive a change of a token, compute the digest with a fixed text in place of the token, and set the token
    /// afterwards.
    ///
    /// It covers neither the content of the program's file nor inherited variables.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        // Each field carries its length, so that moving a byte from one to the next changes the digest.
        let mut field = |tag: &[u8], bytes: &[u8]| {
            hash.update(tag);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        field(b"program", self.program.as_encoded_bytes());
        for arg in &self.args {
            field(b"arg", arg.as_encoded_bytes());
        }
        for (name, value) in &self.env {
            field(b"env", name.as_encoded_bytes());
            field(b"value", value.as_encoded_bytes());
        }
        let inherit: &[u8] = match self.inherit {
            InheritEnv::All => b"all",
            InheritEnv::Nothing => b"nothing",
            InheritEnv::Safe => b"safe",
        };
        field(b"inherit", inherit);
        if let Some(dir) = &self.current_dir {
            field(b"dir", dir.as_os_str().as_encoded_bytes());
        }
        Fingerprint(hash.finalize())
    }

    /// Starts the process in its own process group and returns the connection to it. Standard error is read from now on.
    ///
    /// Accesses the file system and starts the process on the calling thread, which takes about a millisecond.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Spawn`](crate::ErrorKind::Spawn) with the [reason](crate::SpawnFailure);
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) outside a tokio runtime, for a NUL in an argument or variable, and for a
    /// variable name that is empty or has a `=` in it.
    ///
    /// # Panics
    ///
    /// If the tokio runtime was built without its I/O or time driver.
    pub fn spawn(&self) -> Result<LineConnection, Error> {
        let runtime = runtime()?;
        LineConnection::from_process(process::spawn(self)?, &self.limits, self.waits, &runtime)
    }
}

impl fmt::Debug for StdioServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("inherit", &self.inherit)
            .field("current_dir", &self.current_dir)
            .finish_non_exhaustive()
    }
}

/// The SHA-256 digest of what a [`StdioServer`] will run. `Display` shows it in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The digest, for storage.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

fn describe_word(text: &mut String, word: &OsStr) {
    let bytes = word.as_encoded_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(byte);
    if let Some(word) = word.to_str()
        && !word.is_empty()
        && bytes.iter().all(plain)
    {
        text.push_str(word);
        return;
    }
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                ' '..='~' => text.push(c),
                _ => text.extend(c.escape_unicode()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
