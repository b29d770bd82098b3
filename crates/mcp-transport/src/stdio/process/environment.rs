//! The environment of a server process.

use std::ffi::{OsStr, OsString};

use crate::{
    Error, ErrorKind,
    stdio::{InheritEnv, StdioServer},
};

#[cfg(not(windows))]
const SAFE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
#[cfg(windows)]
const SAFE: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

/// Variables with their values; of a name that comes twice the last one counts.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// The whole environment of the child: what it inherits, with the server's own variables over it.
pub(crate) fn environment_of(server: &StdioServer) -> Result<Environment, Error> {
    merge(server, std::env::vars_os())
}

fn merge(
    server: &StdioServer,
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Environment, Error> {
    let is_inherited = |(name, value): &(OsString, OsString)| match server.inherit {
        InheritEnv::All => true,
        InheritEnv::Nothing => false,
        InheritEnv::Safe => is_safe(name, value),
    };
    let mut variables: Environment = ours.filter(is_inherited).collect();
    for (name, value) in &server.env {
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') || has_nul(bytes) || has_nul(value.as_encoded_bytes()) {
            let text = format!("the environment variable {name:?} has a name or value that cannot be passed");
            return Err(Error::new(ErrorKind::Misuse, text));
        }
        variables.retain(|(known, _)| !is_same_name(known, name));
        variables.push((name.clone(), value.clone()));
    }
    Ok(variables)
}

fn is_safe(name: &OsString, value: &OsString) -> bool {
    SAFE.iter().any(|safe| is_same_name(name, OsStr::new(safe)))
        && !value.as_encoded_bytes().starts_with(b"()")
}

pub(super) fn is_same_name(a: &OsStr, b: &OsStr) -> bool {
    if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b }
}

fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_some()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &StdioServer, expected: &[(&str, &str)]) {
        let ours = [
            ("PATH", "/bin"),
            ("HOME", "/home/x"),
            ("TERM", "() { :; }"),
            ("API_TOKEN", "canary"),
            ("LD_PRELOAD", "/tmp/x.so"),
        ];
        let ours = ours.into_iter().map(|(name, value)| (name.into(), value.into()));
        let merged = merge(server, ours).unwrap();
        let mut merged: Vec<_> =
            merged.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        merged.sort();
        assert_eq!(merged, expected);
    }

    #[test]
    fn the_safe_subset_leaves_out_secrets_and_shell_functions() {
        // protocol:T-17, auth:SEC-08
        check(&StdioServer::new("x"), &[("HOME", "/home/x"), ("PATH", "/bin")]);
    }

    #[test]
    fn given_variables_are_merged_over_the_inherited() {
        // field:FR-022
        let server = StdioServer::new("x").env("A", "1").env("PATH", "/opt");
        check(&server, &[("A", "1"), ("HOME", "/home/x"), ("PATH", "/opt")]);
        check(&server.clone().inherit_env(InheritEnv::Nothing), &[("A", "1"), ("PATH", "/opt")]);
        let all = server.inherit_env(InheritEnv::All);
        assert_eq!(merge(&all, [("B".into(), "2".into())].into_iter()).unwrap().len(), 3);
    }

    #[test]
    fn names_that_cannot_be_passed_are_misuse_and_values_are_not_shown() {
        // auth:SEC-14
        for (name, value) in [("", "canary"), ("a=b", "canary"), ("a\0", "canary"), ("a", "canary\0")] {
            let error = merge(&StdioServer::new("x").env(name, value), std::iter::empty()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }
}
