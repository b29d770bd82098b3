//! What the example programs `validate` and `url_check` promise at the shell.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::LazyLock,
};

use serde_json::{Value, json};

/// Where the examples are. `cargo test` builds them, and `cargo test --all-targets` does not, so they are built here: at once, where they
/// are built already.
static EXAMPLES: LazyLock<PathBuf> = LazyLock::new(|| {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.ancestors().nth(2).unwrap();
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    build.args(["--examples", "--target-dir"]).arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    profile.join("examples")
});

/// Runs an example. Returns the exit code and the lines.
fn run(name: &str, args: &[&str], input: &[u8]) -> (Option<i32>, Vec<Value>) {
    let mut child = Command::new(EXAMPLES.join(name))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

fn judged(lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (code, judged) = run("validate", &[], input.as_bytes());
    assert_eq!((code, judged.len()), (Some(0), lines.len()));
    judged
}

fn form() -> Value {
    json!({
        "message": "m",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "age": { "type": "integer", "default": 30, "maximum": 150 },
            },
            "required": ["name"],
        },
    })
}

/// seed:E24: defaults are filled in, and every violation is named by its place in `content`.
#[test]
fn validate_prints_what_would_be_sent_or_all_violations() {
    let answer = |content: Value| json!({ "action": "accept", "content": content });
    let url = json!({ "mode": "url", "message": "m", "elicitationId": "e", "url": "https://example.com/" });
    let judged = judged(&[
        json!({ "params": form(), "answer": answer(json!({ "name": "Ada" })), "revision": "2025-11-25" }),
        json!({ "params": form(), "answer": answer(json!({ "name": "A", "age": 151 })) }),
        json!({ "params": form(), "answer": { "action": "decline", "content": { "name": 7 } } }),
        json!({ "params": url, "answer": answer(json!({ "secret": 1 })) }),
        json!({ "params": url, "answer": { "action": "accept" }, "revision": "2025-06-18" }),
        json!({ "params": { "message": " ", "requestedSchema": { "type": "array" } }, "answer": { "action": "cancel" } }),
        json!({ "params": form(), "answer": { "action": "yes" } }),
    ]);
    assert_eq!(judged[0], json!({ "ok": true, "result": answer(json!({ "name": "Ada", "age": 30 })) }));
    assert_eq!((&judged[1]["ok"], &judged[1]["stage"]), (&json!(false), &json!("answer")));
    let pointers: Vec<&Value> =
        judged[1]["violations"].as_array().unwrap().iter().map(|one| &one["pointer"]).collect();
    assert_eq!(pointers, [&json!("/age"), &json!("/name")]);
    assert!(
        judged[1]["violations"][0]["rule"].is_string() && judged[1]["violations"][0]["message"].is_string()
    );
    assert_eq!(judged[2], json!({ "ok": true, "result": { "action": "decline" } }));
    assert_eq!(judged[3], json!({ "ok": true, "result": { "action": "accept" } }));
    assert_eq!(
        (&judged[4]["stage"], &judged[4]["violations"][0]["pointer"]),
        (&json!("request"), &json!("/mode"))
    );
    assert_eq!(judged[5]["stage"], "request");
    assert_eq!(judged[6]["stage"], "answer");
}

#[test]
fn validate_goes_on_after_a_line_it_cannot_read() {
    let (code, judged) =
        run("validate", &[], b"{\n\n\xff\n[]\n{\"params\":{},\"answer\":{},\"revision\":\"x\"}\n");
    assert_eq!((code, judged.len()), (Some(0), 4));
    for line in judged {
        assert_eq!((&line["ok"], &line["stage"]), (&json!(false), &json!("input")));
        assert!(line["message"].is_string());
    }
    assert_eq!(run("validate", &["more"], b"").0, Some(2));
}

/// protocol:E-11, protocol:E-13, protocol:E-15, seed:B15, field:FR-141, auth:SEC-06
#[test]
fn url_check_prints_a_judgement_for_each_line() {
    let cases = [
        ("https://example.com/x", "ok", json!([])),
        ("http://127.0.0.1:3000/x", "warn", json!(["ip_host"])),
        ("http://example.com/", "refuse", json!([])),
        ("javascript:alert(1)", "refuse", json!([])),
        ("https://bank.example@evil.example/", "refuse", json!(["userinfo"])),
        ("https://xn--pple-43d.com/", "warn", json!(["punycode"])),
        ("https://example.com:8443/", "warn", json!(["port"])),
        ("", "refuse", json!([])),
    ];
    let input: String = cases.iter().map(|(url, _, _)| format!("{url}\n")).collect();
    let (code, judged) = run("url_check", &[], input.as_bytes());
    assert_eq!((code, judged.len()), (Some(0), cases.len()));
    for ((url, verdict, warnings), line) in cases.iter().zip(&judged) {
        assert_eq!((&line["input"], &line["verdict"]), (&json!(url), &json!(verdict)), "{line}");
        let known = line["warnings"].as_array().unwrap();
        for warning in warnings.as_array().unwrap() {
            assert!(known.contains(warning), "{line}");
        }
        assert_eq!(line["reason"].is_string(), *verdict == "refuse", "{line}");
        for member in ["normalized", "host", "registrable_domain"] {
            assert!(line.get(member).is_some(), "{member} is always there: {line}");
        }
    }
    assert_eq!(
        (&judged[0]["normalized"], &judged[0]["host"]),
        (&json!("https://example.com/x"), &json!("example.com"))
    );
    assert!(judged[3]["host"].is_null() && judged[7]["normalized"].is_null());
}

#[test]
fn url_check_knows_the_server_and_stricter_rules() {
    let look = b"https://examp1e.com/\nhttp://localhost/\n";
    let (_, judged) = run("url_check", &["--server", "https://example.com/mcp", "--no-loopback-http"], look);
    assert_eq!(judged[0]["warnings"], json!(["lookalike"]));
    assert_eq!(judged[1]["verdict"], "refuse");
    let (_, judged) = run("url_check", &[], look);
    assert_eq!((&judged[0]["warnings"], &judged[1]["verdict"]), (&json!([]), &json!("ok")));
    assert_eq!(run("url_check", &["--server"], b"").0, Some(2));
    assert_eq!(run("url_check", &["--frob"], b"").0, Some(2));
}
