use super::*;

#[test]
fn describe_is_exact_and_unambiguous() {
    // protocol:T-18, auth:SEC-08
    let check = |args: &[&str], expected: &str| {
        assert_eq!(StdioServer::new("npx").args(args).describe(), expected);
    };
    check(&[], "npx");
    check(&["-y", "@scope/server@1.2"], "npx -y @scope/server@1.2");
    check(&["a b"], "npx \"a b\"");
    check(&["a", "b"], "npx a b");
    check(&[""], "npx \"\"");
    check(&["say \"hi\" \\"], "npx \"say \\\"hi\\\" \\\\\"");
    check(&["; rm -rf ~ &"], "npx \"; rm -rf ~ &\"");
    check(&["line\nbreak\u{1b}[2K"], "npx \"line\\u{a}break\\u{1b}[2K\"");
    check(&["\u{202e}exe"], "npx \"\\u{202e}exe\"");
    check(&["Größe 漢\u{a0}x"], "npx \"Gr\\u{f6}\\u{df}e \\u{6f22}\\u{a0}x\"");
    // A letter of another script that looks like an `a`, and fillers that count as letters and show as nothing.
    check(&["p\u{430}ckage"], "npx \"p\\u{430}ckage\"");
    check(&["a\u{3164}\u{115f}\u{1160}\u{ffa0}"], "npx \"a\\u{3164}\\u{115f}\\u{1160}\\u{ffa0}\"");
    let long = "x".repeat(100_000);
    assert!(StdioServer::new("npx").arg(&long).describe().ends_with(&long), "untruncated");
}

/// Whatever a character looks like in whatever font: what is shown is printable ASCII, and says which character it was.
#[test]
fn describe_shows_printable_ascii_alone_and_each_character_as_another_text() {
    // auth:SEC-08
    let mut seen = std::collections::HashSet::new();
    for c in ('\u{1}'..='\u{ffff}').chain('\u{1d400}'..='\u{1d7ff}').chain('\u{e0000}'..='\u{e0fff}') {
        let shown = StdioServer::new("x").arg(String::from(c)).describe();
        assert!(shown.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{shown}");
        assert!(seen.insert(shown), "{}", c.escape_unicode());
    }
}

/// Each variable once, the last value of it, in order: the fingerprint depends on that.
#[test]
fn a_variable_that_is_set_again_has_its_last_value() {
    let server = StdioServer::new("x").env("M", "1").env("A", "2").env("Z", "3").env("M", "4").env("B", "5");
    let pairs: Vec<_> =
        server.env.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap())).collect();
    assert_eq!(pairs, [("A", "2"), ("B", "5"), ("M", "4"), ("Z", "3")]);
}

#[cfg(unix)]
#[test]
fn describe_shows_bytes_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let server = StdioServer::new("x").arg(OsStr::from_bytes(b"a\xff"));
    assert_eq!(server.describe(), "x \"a\\xff\"");
}

#[test]
fn the_fingerprint_changes_with_everything_it_covers_and_with_nothing_else() {
    // auth:SEC-08
    let server = || StdioServer::new("a").arg("bc").arg("d").env("NAME", "1");
    let base = server().fingerprint();
    assert_eq!(base, server().fingerprint());
    assert_eq!(base, server().limits(LineLimits { excerpt_bytes: 1, ..LineLimits::default() }).fingerprint());
    let others = [
        StdioServer::new("A").arg("bc").arg("d").env("NAME", "1"),
        StdioServer::new("ab").arg("c").arg("d").env("NAME", "1"),
        StdioServer::new("a").arg("b").arg("cd").env("NAME", "1"),
        StdioServer::new("a").arg("bc d").env("NAME", "1"),
        server().arg(""),
        server().env("NAME2", "1"),
        // Each of these values has other code run under the same program and arguments.
        server().env("NAME", "2"),
        server().env("PATH", "/usr/bin"),
        server().env("PATH", "/tmp/usr/bin"),
        server().env("LD_PRELOAD", "/tmp/x.so"),
        server().env("NODE_OPTIONS", "--require /tmp/x.js"),
        server().env("npm_config_registry", "https://registry.example"),
        StdioServer::new("a").arg("bc").arg("d").env("NAM", "E1"),
        StdioServer::new("a").arg("bc").arg("d").env("NAME", "").env("1", ""),
        server().current_dir("/"),
        server().inherit_env(InheritEnv::All),
        server().inherit_env(InheritEnv::Nothing),
        StdioServer::new("a").arg("bc").arg("d"),
    ];
    let mut seen = vec![base];
    for other in others {
        assert!(!seen.contains(&other.fingerprint()), "{}", other.describe());
        seen.push(other.fingerprint());
    }
}

#[test]
fn the_fingerprint_is_stable_text() {
    // A stored approval must outlive an update of this crate. The digest was computed apart from it.
    let text = StdioServer::new("npx").args(["-y", "server"]).env("A", "1").fingerprint().to_string();
    assert_eq!(text.len(), 64);
    assert_eq!(text, PINNED);
}

const PINNED: &str = "c40ebbfb8d49efaf0d0c79f8d4e3c3c1ae1606048b07257e9a1f61938f77ea3e";

#[test]
fn debug_shows_neither_arguments_nor_values() {
    // auth:SEC-14
    let server = StdioServer::new("x").arg("--token=canary").env("KEY", "canary");
    let text = format!("{server:?}");
    assert!(!text.contains("canary"), "{text}");
    assert!(text.contains("KEY"));
}
