//! What is done at each server, and what must come of it.

use serde_json::{Value, json};

use super::transcript::Transcript;

/// One run of `connect`.
pub(super) struct Visit {
    pub(super) name: &'static str,
    pub(super) options: Vec<String>,
    pub(super) check: fn(&Transcript) -> Result<(), String>,
}

/// The message of the one commit in the repository of `mcp-server-git`.
pub(super) const COMMIT: &str = "Lay the first stone";

fn visit(
    name: &'static str,
    options: &[&str],
    calls: &[(&str, Value)],
    check: fn(&Transcript) -> Result<(), String>,
) -> Visit {
    let mut all: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    for (name, arguments) in calls {
        all.extend(["--call".to_owned(), (*name).to_owned(), arguments.to_string()]);
    }
    Visit { name, options: all, check }
}

/// `found` as the refusal where it is not what it should be.
fn expect(holds: bool, what: &str, found: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
}

/// `value` at a JSON pointer is `wanted`.
fn is(value: &Value, pointer: &str, wanted: &Value) -> Result<(), String> {
    let found = value.pointer(pointer).unwrap_or(&Value::Null);
    // 4 and 4.0 are one number in JSON.
    let same = match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => found.total_cmp(&wanted).is_eq(),
        _ => found == wanted,
    };
    expect(same, &format!("{pointer} should be {wanted}"), found)
}

pub(super) fn everything() -> Vec<Visit> {
    let none = json!({});
    let form = ("trigger-elicitation-request", none.clone());
    let url = "https://example.com/start?step=1";
    vec![
        visit(
            "lists, calls, progress, roots",
            &["--list"],
            &[
                ("echo", json!({"message": "Grüße \u{1f980}"})),
                ("get-sum", json!({"a": 2, "b": 3})),
                ("trigger-long-running-operation", json!({"duration": 1, "steps": 4})),
                ("get-structured-content", json!({"location": "Chicago"})),
                ("get-roots-list", none.clone()),
                ("get-sum", json!({"a": "two"})),
            ],
            |run| {
                is(run.result("connect")?, "/serverInfo/name", &json!("mcp-servers/everything"))?;
                is(run.result("connect")?, "/protocolVersion", &json!("2025-11-25"))?;
                let tools = run.names("list_tools", "tools")?;
                expect(tools.len() >= 10 && tools.contains(&"get-sum"), "the tools", &tools)?;
                // The server offers these only to a client that can be asked, which this run does not declare.
                for asking in
                    ["trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request"]
                {
                    expect(!tools.contains(&asking), "a tool that asks", asking)?;
                }
                expect(!run.names("list_resources", "resources")?.is_empty(), "the resources", "none")?;
                expect(!run.names("list_prompts", "prompts")?.is_empty(), "the prompts", "none")?;
                run.says(0, "Grüße \u{1f980}")?;
                run.says(1, "5")?;
                run.says(2, "completed")?;
                let steps = run.events("progress");
                expect(steps.len() == 4, "progress events", steps.len())?;
                for (step, event) in (1..).zip(&steps) {
                    is(event, "/index", &json!(2))?;
                    is(event, "/total", &json!(4))?;
                    let progress = event.get("progress").and_then(Value::as_f64);
                    expect(progress == Some(f64::from(step)), "progress", event)?;
                }
                let structured = run.call(3)?.get("structuredContent");
                expect(structured.is_some_and(Value::is_object), "the structured content", structured)?;
                run.says(4, "file://")?;
                expect(run.is_tool_error(5)?, "wrong arguments should be a tool error", run.call(5)?)
            },
        ),
        visit(
            "a form, answered; omitted fields come from the defaults",
            &["--elicit", r#"{"name": "Ada", "check": true}"#],
            std::slice::from_ref(&form),
            |run| {
                let asked = run.events("elicitation");
                let [asked] = asked.as_slice() else { return Err(format!("{} questions", asked.len())) };
                is(asked, "/mode", &json!("form"))?;
                is(asked, "/action", &json!("accept"))?;
                is(asked, "/content/name", &json!("Ada"))?;
                is(asked, "/content/integer", &json!(42))?;
                is(asked, "/content/untitledMultipleSelectEnum", &json!(["Guitar"]))?;
                run.says(0, "Name: Ada")?;
                run.says(0, "Favorite Integer: 42")
            },
        ),
        visit(
            "a form whose required field has no default is cancelled",
            &["--elicit", "accept"],
            std::slice::from_ref(&form),
            |run| {
                let asked = run.events("elicitation");
                expect(asked.len() == 1, "questions", asked.len())?;
                for asked in asked {
                    is(asked, "/action", &json!("cancel"))?;
                }
                expect(!run.events("diagnostic").is_empty(), "diagnostics", "none")?;
                run.says(0, "cancelled")
            },
        ),
        visit("a form, declined", &["--elicit", "decline"], &[form], |run| run.says(0, "declined")),
        visit(
            "a URL, consented to; a URL required by an error",
            &["--elicit", "accept"],
            &[
                ("trigger-url-elicitation", json!({"url": url, "message": "Open this"})),
                ("trigger-url-elicitation", json!({"url": url, "errorPath": true})),
                ("echo", json!({"message": "still here"})),
            ],
            |run| {
                let asked = run.events("elicitation");
                let Some(first) = asked.first() else { return Err("no question".into()) };
                is(first, "/mode", &json!("url"))?;
                is(first, "/url", &json!("https://example.com/start?step=1"))?;
                is(first, "/host", &json!("example.com"))?;
                is(first, "/action", &json!("accept"))?;
                expect(!run.is_tool_error(0)?, "the first call", run.call(0)?)?;
                // The page that the error names, and then what the call asks for itself.
                expect(asked.len() == 3, "questions", asked.len())?;
                expect(!run.is_tool_error(1)?, "the call made again", run.call(1)?)?;
                run.says(2, "still here")
            },
        ),
        visit(
            "two calls side by side",
            &["--parallel"],
            &[
                ("trigger-long-running-operation", json!({"duration": 2, "steps": 2})),
                ("echo", json!({"message": "first home"})),
            ],
            |run| {
                run.says(0, "completed")?;
                run.says(1, "first home")?;
                expect(run.position(1) < run.position(0), "the short call ends first", run.position(1))
            },
        ),
        visit(
            "a call that is too slow, and one after it",
            // Connecting has the same deadline, and starting Node.js takes seconds on a busy machine.
            &["--timeout", "12"],
            &[
                ("trigger-long-running-operation", json!({"duration": 30, "steps": 60})),
                ("echo", json!({"message": "still here"})),
            ],
            |run| {
                is(run.call_error(0)?, "/kind", &json!("timeout"))?;
                expect(!run.events("progress").is_empty(), "progress before the deadline", "none")?;
                run.says(1, "still here")
            },
        ),
    ]
}

/// A server of the first revision. It asks for sampling without looking at what the client declared.
pub(super) fn everything_2024() -> Vec<Visit> {
    vec![visit(
        "an old revision, and sampling that is refused",
        &["--list"],
        &[
            ("add", json!({"a": 2, "b": 3})),
            ("sampleLLM", json!({"prompt": "hello"})),
            ("echo", json!({"message": "still here"})),
        ],
        |run| {
            is(run.result("connect")?, "/protocolVersion", &json!("2024-11-05"))?;
            expect(
                run.names("list_tools", "tools")?.contains(&"sampleLLM"),
                "the tools",
                run.result("list_tools")?,
            )?;
            run.says(0, "5")?;
            // The server passes our refusal on, as an error or as a tool error.
            let refused = match run.call(1) {
                Ok(result) => result,
                Err(_) => run.call_error(1)?,
            };
            expect(refused.to_string().contains("-32601"), "the refusal", refused)?;
            run.says(2, "still here")
        },
    )]
}

pub(super) fn filesystem(folder: &str) -> Vec<Visit> {
    let path = format!("{folder}/note.txt");
    vec![visit(
        "writes and reads below the offered root",
        &["--list"],
        &[
            ("list_allowed_directories", json!({})),
            ("write_file", json!({"path": path, "content": "line one\nline two\n"})),
            ("read_text_file", json!({"path": path, "head": 1})),
            ("list_directory", json!({"path": folder})),
            ("read_text_file", json!({"path": "/etc/hostname"})),
        ],
        |run| {
            is(run.result("connect")?, "/serverInfo/name", &json!("secure-filesystem-server"))?;
            expect(
                run.names("list_tools", "tools")?.contains(&"write_file"),
                "the tools",
                "write_file is missing",
            )?;
            expect(!run.has_step("list_prompts"), "prompts are not declared", "listed")?;
            run.says(0, "filesystem")?;
            expect(!run.is_tool_error(1)?, "writing", run.call(1)?)?;
            run.says(2, "line one")?;
            run.says(3, "note.txt")?;
            expect(run.is_tool_error(4)?, "a file elsewhere should be refused", run.call(4)?)
        },
    )]
}

pub(super) fn memory() -> Vec<Visit> {
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]});
    vec![visit(
        "keeps what it was told",
        &["--list"],
        &[
            ("create_entities", json!({"entities": [entity]})),
            ("search_nodes", json!({"query": "first program"})),
            ("read_graph", json!({})),
        ],
        |run| {
            is(run.result("connect")?, "/serverInfo/name", &json!("memory-server"))?;
            expect(!run.is_tool_error(0)?, "creating", run.call(0)?)?;
            run.says(1, "Ada")?;
            is(run.call(2)?, "/structuredContent/entities/0/name", &json!("Ada"))
        },
    )]
}

pub(super) fn time() -> Vec<Visit> {
    vec![visit(
        "the time, and a place that does not exist",
        &["--list"],
        &[
            ("get_current_time", json!({"timezone": "Etc/UTC"})),
            (
                "convert_time",
                json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ),
            ("get_current_time", json!({"timezone": "Nowhere/Atlantis"})),
            ("get_current_time", json!({"timezone": "Etc/UTC"})),
        ],
        |run| {
            let tools = run.names("list_tools", "tools")?;
            expect(tools.len() == 2 && tools.contains(&"get_current_time"), "the tools", &tools)?;
            run.says(0, "Etc/UTC")?;
            run.says(1, "Asia/Tokyo")?;
            let refused = run.call_error(2).is_ok() || run.is_tool_error(2)?;
            expect(refused, "a place that does not exist", run.call(2))?;
            run.says(3, "Etc/UTC")
        },
    )]
}

/// Over `sse` the server speaks the older revisions only; what is called answers the same.
pub(super) fn fastmcp(transport: &str) -> Vec<Visit> {
    let calls = [
        ("add", json!({"a": 2, "b": 3})),
        ("count", json!({"steps": 3})),
        ("fail", json!({})),
        ("add", json!({"a": "two"})),
    ];
    let check = |run: &Transcript| {
        let names = run.names("list_tools", "tools")?;
        expect(names == ["add", "count", "ask_name", "fail"], "the tools", &names)?;
        is(run.result("list_resources")?, "/resources/0/uri", &json!("note://today"))?;
        is(run.result("list_prompts")?, "/prompts/0/name", &json!("greet"))?;
        is(run.call(0)?, "/structuredContent/result", &json!(5))?;
        run.says(1, "counted to 3")?;
        let steps = run.events("progress");
        let seen: Vec<_> = steps.iter().filter_map(|step| step.get("message")?.as_str()).collect();
        expect(seen == ["step 1", "step 2", "step 3"], "the progress", &seen)?;
        expect(run.is_tool_error(2)?, "a tool that fails", run.call(2)?)?;
        expect(run.is_tool_error(3)?, "wrong arguments", run.call(3)?)
    };
    let name = ["--elicit", r#"{"value": "Ada"}"#, "--mode", "legacy"];
    let mut all = vec![
        visit("lists, calls, progress, by the era rules", &["--list"], &calls, check),
        visit("lists, calls, progress, by initialize", &["--list", "--mode", "legacy"], &calls, check),
        visit(
            "a question and the log",
            &name,
            &[("ask_name", json!({})), ("count", json!({"steps": 2}))],
            |run| {
                is(run.result("connect")?, "/protocolVersion", &json!("2025-11-25"))?;
                run.says(0, "accept Ada")?;
                let logged = run.events("log");
                expect(logged.len() == 2, "the log", &logged)?;
                is(logged.first().copied().unwrap_or(&Value::Null), "/data/msg", &json!("step 1"))
            },
        ),
    ];
    if transport == "http" {
        all.push(visit(
            "the modern era, where this library does not ask",
            &["--mode", "modern", "--elicit", "accept"],
            &[("add", json!({"a": 2, "b": 3})), ("ask_name", json!({}))],
            |run| {
                let versions = run.result("connect")?.get("supportedVersions").and_then(Value::as_array);
                let modern = versions.is_some_and(|versions| versions.contains(&json!("2026-07-28")));
                expect(modern, "the versions", versions)?;
                is(run.call(0)?, "/structuredContent/result", &json!(5))?;
                expect(run.is_tool_error(1)?, "a question in the modern era", run.call(1)?)
            },
        ));
    }
    all
}

pub(super) fn git(repository: &str) -> Vec<Visit> {
    vec![visit(
        "the log and the state of a repository",
        &["--list"],
        &[("git_log", json!({"repo_path": repository})), ("git_status", json!({"repo_path": repository}))],
        |run| {
            expect(
                run.names("list_tools", "tools")?.contains(&"git_log"),
                "the tools",
                "git_log is missing",
            )?;
            run.says(0, COMMIT)?;
            run.says(1, "nothing to commit")
        },
    )]
}
