//! What the example program `connect` promises at the shell, with servers that are broken.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

/// The example. `cargo test` builds it, and `cargo test --all-targets` does not, so it is built here: at once, where it is built already.
fn connect() -> Command {
    static EXAMPLE: LazyLock<PathBuf> = LazyLock::new(|| {
        let deps = std::env::current_exe().unwrap();
        let profile = deps.ancestors().nth(2).unwrap();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args([
            "build",
            "--quiet",
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ]);
        build.args(["--example", "connect", "--target-dir"]).arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
        profile.join("examples/connect")
    });
    Command::new(&*EXAMPLE)
}

/// A server for the shell: answers `initialize`, then does what the script says.
fn server(script: &str) -> [String; 3] {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let hello = format!(r#"read l; echo '{{"jsonrpc":"2.0","id":1,"result":{result}}}'; read l;"#);
    ["sh".to_owned(), "-c".to_owned(), format!("{hello} {script}")]
}

/// Answers the requests from the second on with these results, as they are.
fn answers(results: &[&str]) -> String {
    let answer = |(at, result): (usize, &&str)| {
        format!("read -r l; printf '%s\\n' '{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}'; ", at + 2)
    };
    results.iter().enumerate().map(answer).collect()
}

/// Runs it with a server. Returns the exit code and the lines.
fn run(options: &[&str], script: &str) -> (Option<i32>, Vec<Value>) {
    let output = connect()
        .args(["--json", "--mode", "legacy"])
        .args(options)
        .arg("stdio")
        .args(server(script))
        .output()
        .unwrap();
    (output.status.code(), lines(&output))
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// `op` or `event` of each line, with the kind of a failure.
fn steps(lines: &[Value]) -> Vec<String> {
    let step = |line: &Value| {
        let name = line["op"].as_str().or(line["event"].as_str()).unwrap();
        match line["error"]["kind"].as_str() {
            Some(kind) => format!("{name} {kind}"),
            None => name.to_owned(),
        }
    };
    lines.iter().map(step).collect()
}

#[test]
fn a_mistake_on_the_command_line_starts_nothing_and_prints_nothing() {
    let marker = std::env::temp_dir().join(format!("connect-started-{}", std::process::id()));
    let touch = ["stdio", "touch", marker.to_str().unwrap()];
    for options in [
        &[][..],
        &["--list"],
        &["stdio"],
        &["http"],
        &["http", "not a url"],
        &["http", "http://127.0.0.1:1/", "more"],
        &["--call", "name"],
        &["--call", "name", "[1]", "stdio", "true"],
        &["--call", "name", "{", "stdio", "true"],
        &["--timeout", "0", "stdio", "true"],
        &["--timeout", "-1", "stdio", "true"],
        &["--timeout", "nan", "stdio", "true"],
        &["--timeout", "1e300", "stdio", "true"],
        &["--mode", "other", "stdio", "true"],
        &["--elicit", "maybe", "stdio", "true"],
        &["--elicit", "[]", "stdio", "true"],
        &["--header", "K: V", "stdio", "true"],
        &["--env", "K=V", "http", "http://127.0.0.1:1/"],
        &["--env", "K", "stdio", "true"],
        &["--unknown", touch[0], touch[1], touch[2]],
    ] {
        let output = connect().args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{options:?}");
    }
    assert!(!marker.exists());
}

#[test]
fn help_is_no_mistake() {
    let output = connect().arg("--help").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains("--elicit"));
}

/// Each step prints one line of JSON, also where the server writes what is none.
#[cfg(unix)]
#[test]
fn a_result_that_is_no_json_is_the_failure_of_its_step() {
    let script = answers(&["{nonsense}", r#"{"a":01}"#, "{}"]);
    let (code, lines) =
        run(&["--call", "a", "{}", "--call", "b", "{}", "--call", "c", "{}"], &format!("{script} cat"));
    assert_eq!(steps(&lines)[..3], ["connect", "call_tool peer_misbehaved", "call_tool peer_misbehaved"]);
    assert_eq!((lines.len(), code), (5, Some(1)));
}

/// The kinds that the output may have are fixed; one that the library tells apart from them is printed as the one that it is a part of.
#[test]
fn a_failure_of_tls_is_one_of_the_transport() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
        // Until the client has seen it: closing with its greeting unread would reset the connection.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = connect().args(["--json", "--mode", "legacy", "http", &url]).output().unwrap();
    let lines = lines(&output);
    assert_eq!((steps(&lines), output.status.code()), (vec!["connect transport".to_owned()], Some(1)));
    let message = lines[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not speak TLS"), "{message}");
    server.join().unwrap();
}

/// field:FR-107: `null` is a list without items.
#[cfg(unix)]
#[test]
fn a_list_that_is_none_is_the_failure_of_its_step() {
    let (code, lines) = run(&["--list"], &format!("{} cat", answers(&[r#"{"tools":7}"#])));
    assert_eq!(steps(&lines), ["connect", "list_tools peer_misbehaved", "close"]);
    assert_eq!(code, Some(1));
    for empty in [r#"{"tools":null}"#, "{}"] {
        let (code, lines) = run(&["--list"], &format!("{} cat", answers(&[empty])));
        assert_eq!(steps(&lines), ["connect", "list_tools", "close"]);
        assert_eq!((lines[1]["result"].to_string(), code), (r#"{"tools":[]}"#.to_owned(), Some(0)));
    }
}

#[cfg(unix)]
#[test]
fn a_log_message_is_printed_as_the_server_wrote_it() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":DATA}}"#;
    let data = [r#"{"n":123456789012345678901234567890}"#, "1e999", r#""\ud800""#];
    let logs: String = data.map(|data| format!("printf '%s\\n' '{}'; ", log.replace("DATA", data))).concat();
    let output = connect()
        .args(["--json", "--mode", "legacy", "--call", "t", "{}", "stdio"])
        .args(server(&format!("{logs} {} cat", answers(&["{}"]))))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for data in data {
        assert!(text.contains(&format!(r#""data":{data}"#)), "{text}");
    }
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[cfg(unix)]
#[test]
fn steps_after_the_death_of_the_server_fail_one_by_one() {
    let (code, lines) = run(
        &["--list", "--call", "a", "{}", "--call", "b", "{}"],
        "read l; echo 'no more memory' >&2; exit 9",
    );
    assert_eq!(
        steps(&lines),
        ["connect", "list_tools closed", "call_tool closed", "call_tool closed", "close"]
    );
    for line in &lines[1..4] {
        let message = line["error"]["message"].as_str().unwrap();
        assert!(message.contains("exit code 9") && message.contains("no more memory"), "{message}");
        for absent in ["code", "data"] {
            assert_eq!(line["error"].get(absent), Some(&Value::Null), "{line}");
        }
    }
    assert_eq!(lines[1]["error"]["outcome_unknown"], true);
    assert_eq!(lines[2]["error"]["outcome_unknown"], false);
    assert_eq!((&lines[2]["index"], &lines[3]["index"], code), (&0.into(), &1.into(), Some(1)));
}

/// Arguments are passed on as they are; the program itself stays with text.
#[cfg(unix)]
#[test]
fn arguments_of_the_server_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let output = connect()
        .args(["--json", "stdio", "sh", "-c", r#"printf '%s' "$0" | od -An -tx1 >&2; exit 3"#])
        .arg(odd)
        .output()
        .unwrap();
    let lines = lines(&output);
    assert!(lines[0]["error"]["message"].as_str().unwrap().contains("ff fe"), "{lines:?}");
    let mistake = connect().arg(odd).output().unwrap();
    assert_eq!(mistake.status.code(), Some(2));
}

/// A server that ignores the end of its input is not left behind when the program is ended.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_too() {
    use std::io::{BufRead as _, BufReader};
    let pid_file = std::env::temp_dir().join(format!("connect-server-{}", std::process::id()));
    let stay = format!("trap '' TERM INT; echo $$ > '{}'; while :; do sleep 0.05; done", pid_file.display());
    let mut child = connect()
        .args(["--json", "--mode", "legacy", "--call", "t", "{}", "stdio"])
        .args(server(&format!("read l; {stay}")))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"connect\""), "{line}");
    let pid = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    let _ = std::fs::remove_file(&pid_file);
    let alive = || Command::new("kill").args(["-0", &pid]).stderr(Stdio::null()).status().unwrap().success();
    assert!(alive());
    let signalled = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let begun = std::time::Instant::now();
    while alive() && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!alive());
}

/// auth:SEC-15: without `--json` people read what happened on standard error, and no server writes to their terminal.
#[cfg(unix)]
#[test]
fn people_get_words_and_no_control_characters() {
    let tools = r#"{"tools":[{"name":"a\u001b[2J","description":"first\nsecond"},{"name":"long-name"}]}"#;
    let result = r#"{"content":[{"type":"text","text":"one\ntwo\u001b]0;x\u0007"},{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#;
    let odd = r#"{"content":[{"type":"text","text":"no"}],"isError":true,"structuredContent":1e999}"#;
    let script = answers(&[tools, result, odd, r#"{"content":[],"structuredContent":{"a":1}}"#]);
    let options =
        ["--mode", "legacy", "--list", "--call", "t", "{}", "--call", "u", "{}", "--call", "v", "{}"];
    let error = r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"x\u001b[1m","data":{"k":1}}}"#;
    let script = format!("{script} read -r l; printf '%s\\n' '{error}'; cat");
    let output =
        connect().args(options).args(["--call", "w", "{}", "stdio"]).args(server(&script)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    for line in [
        "connected to a server without a name, protocol 2025-11-25 (",
        "  it has tools",
        "2 tools (",
        "  a\\u{1b}[2J  first",
        "  long-name",
        "call t (",
        "  one",
        "  two\\u{1b}]0;x\\u{7}",
        "  [image image/png, 4 bytes of base64]",
        "    \"a\": 1",
        "call w FAILED after ",
        r#"the server answered with error -32000: "x\u{1b}[1m" [rpc]"#,
        "  data: {\"k\":1}",
        "closed (",
    ] {
        assert!(text.lines().any(|shown| shown.contains(line)), "{line} in {text}");
    }
    // What no number holds is shown as it came.
    assert!(text.contains("1e999"), "{text}");
}
