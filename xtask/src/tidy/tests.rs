use super::rules::RULES;
use super::tree::Tree;

const MANIFEST: &str = "[package]\nname = \"mcp-sse\"\ndescription = \"x\"\nlicense = \"MIT\"\nreadme = \"README.md\"\n\
                        rust-version = \"1.88\"\n\n[lints]\nworkspace = true\n";
const CLIPPY: &str = "Instant::now SystemTime::now thread::sleep thread::spawn";
const README: &str = "# x\n\nWhat it is.\n\nHow it is used.\n";
const LIB: &str = "//! A core.\n#![forbid(unsafe_code)]\n";

/// A workspace that offends against nothing.
fn good() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = [
        ("Cargo.toml", "[workspace]\n"),
        ("Cargo.lock", "version = 4\n"),
        ("CHANGELOG.md", "# Changelog\n\n## Unreleased\n"),
        ("LICENSE-APACHE", "text"),
        ("LICENSE-MIT", "text"),
        ("README.md", README),
        ("clippy.toml", "x"),
        ("rustfmt.toml", "x"),
        ("tests/peers/package-lock.json", "{\n  \"integrity\": \"x\"\n}\n"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into();
    for name in ["mcp-elicitation", "mcp-jsonrpc", "mcp-model", "mcp-proto", "mcp-sse"] {
        for (file, text) in
            [("Cargo.toml", MANIFEST), ("clippy.toml", CLIPPY), ("README.md", README), ("src/lib.rs", LIB)]
        {
            files.push((format!("crates/{name}/{file}"), text.to_owned()));
        }
    }
    files
}

/// The names of the rules that the good workspace breaks with these files put in or replaced.
fn broken(files: &[(&str, &str)]) -> Vec<&'static str> {
    let mut all = good();
    for (path, text) in files {
        all.retain(|(other, _)| other != path);
        all.push(((*path).to_owned(), (*text).to_owned()));
    }
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let tree = Tree::of(&all);
    RULES.iter().filter(|rule| !(rule.find)(&tree).is_empty()).map(|rule| rule.name).collect()
}

#[test]
fn a_good_workspace_offends_against_nothing() {
    assert_eq!(broken(&[]), Vec::<&str>::new());
}

#[test]
fn a_file_of_600_lines_passes_and_one_of_601_does_not() {
    assert_eq!(
        broken(&[("xtask/src/long.rs", &"\n".repeat(599)), ("xtask/src/full.rs", &"\n".repeat(600))]),
        [""; 0]
    );
    assert_eq!(broken(&[("xtask/src/long.rs", &"\n".repeat(601))]), ["length"]);
}

#[test]
fn a_core_that_reads_a_clock_or_knows_a_runtime_is_found() {
    for line in [
        "let now = Instant::now();",
        "let now = std::time::SystemTime::now();",
        "let past = start.elapsed();",
        "std::thread::sleep(wait);",
        "tokio::spawn(work);",
        "use hyper::Request;",
    ] {
        let text = format!("fn f() {{\n    {line}\n}}\n");
        assert_eq!(broken(&[("crates/mcp-sse/src/parser.rs", &text)]), ["cores"], "{line}");
        assert_eq!(broken(&[("crates/mcp-transport/src/http/core/feed.rs", &text)]), ["cores"], "{line}");
        assert_eq!(broken(&[("crates/mcp-transport/src/stdio/outbox.rs", &text)]), ["cores"], "{line}");
        for elsewhere in [
            "crates/mcp-transport/src/http/io/exchange.rs",
            "crates/mcp-transport/src/http/exchange.rs",
            "crates/mcp-transport/src/stdio/io/sender.rs",
            "crates/mcp-transport/src/stdio/process/lookup.rs",
            "crates/mcp-transport/src/http/core/feed_tests.rs",
            "crates/mcp-client/src/driver.rs",
            "crates/mcp-sse/tests/peer.rs",
        ] {
            assert_eq!(broken(&[(elsewhere, &text)]), [""; 0], "{line} in {elsewhere}");
        }
        let tests = format!("fn g() {{}} // {line}\n#[cfg(test)]\nmod tests {{\n    {line}\n}}\n");
        assert_eq!(broken(&[("crates/mcp-sse/src/parser.rs", &tests)]), [""; 0], "{line}");
    }
}

#[test]
fn code_after_a_test_module_in_another_file_is_still_scanned() {
    let text = "#[cfg(test)]\nmod tests;\n\nfn f() { tokio::spawn(work); }\n";
    assert_eq!(broken(&[("crates/mcp-sse/src/parser.rs", text)]), ["cores"]);
}

#[test]
fn each_crate_fact_is_checked() {
    for (path, text, rule) in [
        ("crates/mcp-sse/clippy.toml", "", "core-lints"),
        ("crates/mcp-sse/src/lib.rs", "//! No forbid.\n", "unsafe"),
        ("crates/mcp-sse/README.md", "# x\n", "crate-facts"),
        ("crates/mcp-sse/Cargo.toml", "[package]\n", "crate-facts"),
    ] {
        assert_eq!(broken(&[(path, text)]), [rule], "{path}");
    }
}

#[test]
fn an_unpublished_crate_needs_no_crate_facts() {
    assert_eq!(broken(&[("crates/mcp-new/Cargo.toml", "[package]\npublish = false\n")]), [""; 0]);
    assert_eq!(broken(&[("crates/mcp-new/Cargo.toml", "[package]\n")]), ["unsafe", "crate-facts"]);
}

#[test]
fn what_is_left_to_do_is_found() {
    for (text, rules) in [
        (concat!("fn f() { to", "do!() }\n"), vec!["unfinished"]),
        (concat!("fn f() { unimpl", "emented!() }\n"), vec!["unfinished"]),
        (concat!("#[ign", "ore = \"slow\"]\n"), vec!["unfinished"]),
        (concat!("// TO", "DO: later\n"), vec!["promises"]),
        (concat!("// TO", "DO: drop this once the 1.90 release is the oldest we build on\n"), vec![]),
        (concat!("// FIX", "ME\n"), vec!["promises"]),
    ] {
        assert_eq!(broken(&[("xtask/src/a.rs", text)]), rules, "{text}");
    }
}

#[test]
fn paths_of_a_machine_are_found_and_those_of_the_specification_are_not() {
    for (text, rules) in [
        (concat!("see /ro", "ot/notes\n"), vec!["machine"]),
        (concat!("file:///ho", "me/xaver/x\n"), vec!["machine"]),
        (concat!("/wo", "rk/notes\n"), vec!["machine"]),
        (concat!("file:///ho", "me/user/projects\n"), vec![]),
        (concat!("HOME=/ho", "me/x\n"), vec![]),
        (concat!("tests/wo", "rk/x and $dir.d/ro", "ot/x\n"), vec![]),
    ] {
        assert_eq!(broken(&[("README.md", &format!("{README}{text}"))]), rules, "{text}");
    }
}

#[test]
fn an_address_in_an_npm_lock_file_is_found() {
    let text = "{\n      \"resolved\": \"https://registry.example/x.tgz\"\n}\n";
    assert_eq!(broken(&[("tests/peers/package-lock.json", text)]), ["npm-lock"]);
}

#[test]
fn two_examples_of_one_name_are_found() {
    let one = ("crates/mcp-sse/examples/events.rs", "fn main() {}\n");
    let module = ("crates/mcp-jsonrpc/examples/connect/events.rs", "");
    assert_eq!(broken(&[one, module]), [""; 0]);
    assert_eq!(broken(&[one, ("crates/mcp-jsonrpc/examples/events/main.rs", "")]), ["examples"]);
}

#[test]
fn what_a_workspace_needs_is_checked() {
    for path in ["LICENSE-MIT", "README.md", "CHANGELOG.md", "Cargo.lock"] {
        assert_eq!(broken(&[(path, "")]), ["workspace"], "{path}");
    }
    assert_eq!(broken(&[("CHANGELOG.md", "# Changelog\n")]), ["workspace"]);
    assert_eq!(broken(&[("Cargo.toml", "default-members = []\n")]), ["workspace"]);
}
