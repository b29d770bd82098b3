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
    let path = env.iter().rfind(|(name, _)| is_path(name)).map(|(_, value)| value.as_os_str());
    let (has_path, path) = (path.is_some(), path.unwrap_or(OsStr::new(DEFAULT_PATH)));
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
        Some(file) => spawn_error(
            SpawnFailure::PermissionDenied,
            format!("program {file:?} has no permission to be executed"),
        ),
        None if has_path && path.is_empty() => not_found(server, "was not found: PATH is empty"),
        None if has_path => not_found(server, "was not found in PATH"),
        None if path.is_empty() => not_found(server, "was not found: there is no PATH"),
        None => not_found(server, &format!("was not found in {DEFAULT_PATH} (there is no PATH)")),
    })
}

/// What is said of a program given as a path where there is no file.
pub(super) fn no_such_file(server: &StdioServer) -> Error {
    if Path::new(&server.program).is_absolute() {
        return not_found(server, "does not exist");
    }
    match &server.current_dir {
        Some(dir) => not_found(server, &format!("does not exist in {dir:?}")),
        None => not_found(server, "does not exist in the working directory of this process"),
    }
}

fn not_found(server: &StdioServer, how: &str) -> Error {
    spawn_error(SpawnFailure::NotFound, said_of(server, how))
}

/// Says this of the program. Many a command line is given as a program, and what follows the space may be a secret: only folders
/// that are there are shown with spaces, then one word, without the value of a variable that is set there.
pub(super) fn said_of(server: &StdioServer, what: &str) -> String {
    let name = server.program.to_string_lossy();
    let folder = folder_of(server);
    let rest = name.strip_prefix(&*folder).unwrap_or(&name);
    let Some((word, _)) = rest.split_once(char::is_whitespace) else {
        // A line of a shell that was split begins with its variables.
        return match rest.split_once('=') {
            Some((variable, _)) => format!("program {:?} {what}", format!("{folder}{variable}=…")),
            None => format!("program {name:?} {what}"),
        };
    };
    let (shown, end) = word.split_once('=').map_or((word, " …"), |(variable, _)| (variable, "=…"));
    let shown = format!("{folder}{shown}{end}");
    format!(
        "program {shown:?} {what}; if arguments follow the space in its name, they go into `args`, one by one"
    )
}

/// As much of a path as leads to a folder that is there.
fn folder_of(server: &StdioServer) -> String {
    let is_there = |folder: &Path| match &server.current_dir {
        Some(dir) => dir.join(folder).is_dir(),
        None => folder.is_dir(),
    };
    let mut folders = Path::new(&server.program).ancestors().skip(1);
    folders
        .find(|folder| is_there(folder))
        .map_or_else(String::new, |folder| folder.to_string_lossy().into_owned())
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
        let file = plain.join("prog");
        assert_eq!(denied, format!("program {file:?} has no permission to be executed"));
        assert_eq!(found(&[&nested]).unwrap_err(), "program \"prog\" was not found in PATH");
        let here = StdioServer::new("prog").current_dir(right.join("prog"));
        assert!(find_program(&here, &[]).unwrap_err().to_string().contains("is no directory"));
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn it_is_said_where_a_program_was_looked_for() {
        let said = |env: &[(OsString, OsString)]| {
            find_program(&StdioServer::new("no-such-program"), env).unwrap_err().to_string()
        };
        let path = |value: &str| [("PATH".into(), value.into())];
        let program = "program \"no-such-program\"";
        assert_eq!(said(&path("/no/such/folder")), format!("{program} was not found in PATH"));
        assert_eq!(said(&path("")), format!("{program} was not found: PATH is empty"));
        assert_eq!(said(&[]), format!("{program} was not found in /usr/bin:/bin (there is no PATH)"));
        let file = |program: &str| StdioServer::new(program);
        for (server, text) in [
            (file("/no/such"), "program \"/no/such\" does not exist"),
            (file("./such"), "program \"./such\" does not exist in the working directory of this process"),
            (file("./such").current_dir("/opt"), "program \"./such\" does not exist in \"/opt\""),
        ] {
            assert_eq!(no_such_file(&server).to_string(), text);
        }
    }

    /// field:FR-022: a path may have a space in it, and what follows that in a command line may be a secret.
    #[test]
    fn of_a_path_with_a_space_all_is_shown_that_leads_to_a_folder() {
        let root = std::env::temp_dir().join(format!("mcp-lookup-space-{}", std::process::id()));
        let folder = root.join("my server");
        std::fs::create_dir_all(&folder).unwrap();
        let check = |program: &str, shown: &str, is_cut: bool| {
            let hint = if is_cut {
                "; if arguments follow the space in its name, they go into `args`, one by one"
            } else {
                ""
            };
            let expected = format!("program {shown:?} does not exist{hint}");
            assert_eq!(no_such_file(&StdioServer::new(program)).to_string(), expected);
        };
        let folder = folder.to_str().unwrap();
        check(&format!("{folder}/run"), &format!("{folder}/run"), false);
        check(&format!("{folder}/run --token=secret"), &format!("{folder}/run …"), true);
        check(&format!("{folder}/x=secret --token=secret"), &format!("{folder}/x=…"), true);
        check("/no/such server/run", "/no/such …", true);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
