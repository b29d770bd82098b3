//! Finding the program on the child's `PATH`. Looks at the file system.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::environment::is_same_name;
use crate::{Error, ErrorKind, SpawnFailure, stdio::StdioServer};

/// What is searched when the child has no `PATH`.
#[cfg(not(windows))]
const DEFAULT_PATH: &str = "/usr/bin:/bin";
#[cfg(windows)]
const DEFAULT_PATH: &str = "";

pub(super) fn spawn_error(failure: SpawnFailure, text: String) -> Error {
    Error::new(ErrorKind::Spawn(failure), text)
}

/// The file to execute. A path with a separator is left to the system, relative to the child's working directory.
pub(super) fn find_program(server: &StdioServer, env: &[(OsString, OsString)]) -> Result<PathBuf, Error> {
    check_directory(server)?;
    let program = Path::new(&server.program);
    if server.program.is_empty() || server.program.as_encoded_bytes().contains(&0) {
        return Err(Error::new(ErrorKind::Misuse, "the program's name is empty or has a NUL in it"));
    }
    if has_separator(&server.program) {
        return Ok(program.to_owned());
    }
    let path =
        env.iter().rfind(|(name, _)| is_path(name)).map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    let mut denied = None;
    for dir in std::env::split_paths(path).filter(|dir| dir.is_absolute()) {
        for candidate in candidates(&dir, program, env) {
            match std::fs::metadata(&candidate) {
                Ok(found) if found.is_file() && may_execute(&found) => return Ok(candidate),
                Ok(found) if found.is_file() => denied = denied.or(Some(candidate)),
                _ => {}
            }
        }
    }
    Err(match denied {
        Some(file) => {
            spawn_error(SpawnFailure::PermissionDenied, format!("{file:?} has no permission to be executed"))
        }
        None => not_found(server, "is not on the child's PATH"),
    })
}

/// What is said of a program that is not there.
pub(super) fn not_found(server: &StdioServer, how: &str) -> Error {
    spawn_error(SpawnFailure::NotFound, said_of(server, how))
}

/// Says this of the program. Many a command line is given as a program: of that only the first word is shown, without the value of a
/// variable that is set there, as what follows may be a secret.
pub(super) fn said_of(server: &StdioServer, what: &str) -> String {
    let name = server.program.to_string_lossy();
    let Some((word, _)) = name.split_once(char::is_whitespace) else {
        return format!("program {name:?} {what}");
    };
    let (shown, end) = word.split_once('=').map_or((word, " …"), |(variable, _)| (variable, "=…"));
    let shown = format!("{shown}{end}");
    format!("program {shown:?} {what}; there is a space in its name: arguments go into `args`, one by one")
}

/// The file a program given as a path means, for a look at why it could not be started.
#[cfg(unix)]
pub(super) fn file_of(server: &StdioServer, program: &Path) -> PathBuf {
    match &server.current_dir {
        Some(dir) => dir.join(program),
        None => program.to_owned(),
    }
}

fn check_directory(server: &StdioServer) -> Result<(), Error> {
    let Some(dir) = &server.current_dir else { return Ok(()) };
    let failed = |text: String| spawn_error(SpawnFailure::WorkingDirectory, text);
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(failed(format!("the working directory {dir:?} is no directory"))),
        Err(error) => {
            Err(failed(format!("the working directory {dir:?} cannot be entered")).with_source(error))
        }
    }
}

fn has_separator(program: &OsStr) -> bool {
    let bytes = program.as_encoded_bytes();
    bytes.contains(&b'/') || (cfg!(windows) && bytes.contains(&b'\\'))
}

fn is_path(name: &OsStr) -> bool {
    is_same_name(name, OsStr::new("PATH"))
}

#[cfg(unix)]
fn candidates(dir: &Path, program: &Path, _env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    vec![dir.join(program)]
}

#[cfg(unix)]
fn may_execute(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0
}

/// A name with an extension means that file; one without means the extensions of `PATHEXT` in turn.
#[cfg(windows)]
fn candidates(dir: &Path, program: &Path, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if program.extension().is_some() {
        return vec![dir.join(program)];
    }
    let extensions = env
        .iter()
        .rfind(|(name, _)| name.eq_ignore_ascii_case("PATHEXT"))
        .and_then(|(_, value)| value.to_str())
        .unwrap_or(".COM;.EXE;.BAT;.CMD");
    let with = |extension: &str| {
        let mut name = program.as_os_str().to_owned();
        name.push(extension);
        dir.join(name)
    };
    extensions.split(';').filter(|extension| extension.starts_with('.')).map(with).collect()
}

#[cfg(windows)]
fn may_execute(_found: &std::fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A directory of that name is passed over, and so is a file that may not be executed; whose fault it was is told.
    #[test]
    fn only_a_file_that_may_be_executed_is_found() {
        let root = std::env::temp_dir().join(format!("mcp-lookup-{}", std::process::id()));
        let folder = |name: &str| {
            let folder = root.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let file = |folder: &Path, mode: u32| {
            let file = folder.join("prog");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let (nested, plain, right) = (folder("nested"), folder("plain"), folder("right"));
        folder("nested/prog");
        file(&plain, 0o644);
        file(&right, 0o755);
        let found = |dirs: &[&Path]| {
            let path = std::env::join_paths(dirs).unwrap();
            find_program(&StdioServer::new("prog"), &[("PATH".into(), path)])
                .map_err(|error| error.to_string())
        };
        assert_eq!(found(&[&nested, &plain, &right]), Ok(right.join("prog")));
        let denied = found(&[&nested, &plain]).unwrap_err();
        assert!(denied.contains("no permission") && denied.contains("plain"), "{denied}");
        assert_eq!(found(&[&nested]).unwrap_err(), "program \"prog\" is not on the child's PATH");
        let here = StdioServer::new("prog").current_dir(right.join("prog"));
        assert!(find_program(&here, &[]).unwrap_err().to_string().contains("is no directory"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
