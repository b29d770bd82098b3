//! The lines of `connect` for people: what happened in words, the server's own text cut and escaped.

use std::fmt::Write as _;

use mcp_client::transport::Untrusted;
use serde_json::{Map, Value};

/// How much of one line of the server is shown, in bytes.
const MAX_LINE: usize = 2_000;

/// How many lines of one result are shown.
const MAX_LINES: usize = 400;

/// How much of a description is shown beside a name, in bytes.
const MAX_DESCRIPTION: usize = 120;

/// What a JSON line says, in words.
pub(crate) fn render(line: &str) -> String {
    // JSON that no number type holds (1e999) is shown as it is.
    let Ok(Value::Object(line)) = serde_json::from_str(line) else { return shown(line) };
    let text = match (word(&line, "op"), word(&line, "event")) {
        (Some(op), _) => step(op, &line),
        (None, Some(event)) => self::event(event, &line),
        (None, None) => None,
    };
    text.unwrap_or_else(|| shown(&Value::Object(line).to_string()))
}

fn step(op: &str, line: &Map<String, Value>) -> Option<String> {
    let took = milliseconds(line.get("ms")?.as_f64()?);
    let what = match (op, word(line, "name")) {
        ("call_tool", Some(name)) => format!("call {}", shown(name)),
        (op, _) => op.replace('_', " "),
    };
    if let Some(Value::Object(error)) = line.get("error") {
        return Some(failure(&what, &took, error));
    }
    let result = line.get("result")?;
    Some(match op {
        "connect" => connected(result, &took),
        "list_tools" => list("tools", result.get("tools"), "name", &took),
        "list_resources" => list("resources", result.get("resources"), "uri", &took),
        "list_prompts" => list("prompts", result.get("prompts"), "name", &took),
        "call_tool" => called(&what, result, &took),
        "close" => format!("closed ({took})"),
        _ => return None,
    })
}

fn milliseconds(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

fn failure(what: &str, took: &str, error: &Map<String, Value>) -> String {
    let kind = word(error, "kind").unwrap_or("error").replace('_', " ");
    let message = word(error, "message").unwrap_or_default();
    let mut failure = format!("{what} FAILED after {took}: {} [{kind}]", shown(message));
    if let Some(data) = error.get("data").filter(|data| !data.is_null()) {
        let _ = write!(failure, "\n  data: {}", shown(&data.to_string()));
    }
    if error.get("outcome_unknown") == Some(&Value::Bool(true)) {
        failure.push_str("\n  Whether the server did it all the same is unknown.");
    }
    failure
}

fn connected(result: &Value, took: &str) -> String {
    let modern = result.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
    let server = result.get("serverInfo").or(modern);
    let about = |name: &str| server.and_then(|server| server.get(name)).and_then(Value::as_str).map(shown);
    let mut line = match (about("title").or_else(|| about("name")), about("version")) {
        (Some(name), Some(version)) => format!("connected to {name} {version}"),
        (Some(name), None) => format!("connected to {name}"),
        (None, _) => "connected to a server without a name".to_owned(),
    };
    if let Some(version) = result.get("protocolVersion").and_then(Value::as_str) {
        let _ = write!(line, ", protocol {}", shown(version));
    } else if let Some(Value::Array(versions)) = result.get("supportedVersions") {
        let versions: Vec<String> = versions.iter().filter_map(Value::as_str).map(shown).collect();
        let _ = write!(line, ", it speaks protocol {}", versions.join(", "));
    }
    let _ = write!(line, " ({took})");
    if let Some(Value::Object(capabilities)) =
        result.get("capabilities").filter(|all| all != &&Value::Object(Map::new()))
    {
        let names: Vec<String> = capabilities.keys().map(|name| shown(name)).collect();
        let _ = write!(line, "\n  it has {}", names.join(", "));
    }
    if let Some(instructions) = result.get("instructions").and_then(Value::as_str) {
        line.push_str("\n  it says:");
        indented(&mut line, instructions, 4);
    }
    line
}

fn list(what: &str, items: Option<&Value>, key: &str, took: &str) -> String {
    let items = items.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut text = format!("{} {what} ({took})", items.len());
    let name = |item: &Value| {
        item.get(key)
            .and_then(Value::as_str)
            .map_or_else(|| "?".to_owned(), |name| Untrusted::new(name, 80).to_string())
    };
    let width = items.iter().map(|item| name(item).chars().count()).max().unwrap_or(0).min(32);
    for item in items {
        let said = ["description", "title", "name"].into_iter().filter(|member| *member != key);
        let said = said.filter_map(|member| item.get(member)?.as_str()).find(|said| !said.trim().is_empty());
        let first = said.and_then(|said| said.trim().lines().next()).unwrap_or_default();
        let line = format!("\n  {:width$}  {}", name(item), Untrusted::new(first, MAX_DESCRIPTION));
        text.push_str(line.trim_end_matches(' '));
    }
    text
}

fn called(what: &str, result: &Value, took: &str) -> String {
    let failed = result.get("isError") == Some(&Value::Bool(true));
    let mut text = format!("{what}{} ({took})", if failed { ": the tool reports an error" } else { "" });
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for block in blocks {
        match (block.get("type").and_then(Value::as_str), block.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(said)) => indented(&mut text, said, 2),
            (kind, _) => indented(&mut text, &format!("[{}]", other_block(kind, block)), 2),
        }
    }
    if let Some(structured) = result.get("structuredContent").filter(|_| blocks.is_empty()) {
        indented(&mut text, &pretty(structured), 2);
    }
    if blocks.is_empty() && result.get("structuredContent").is_none() {
        indented(&mut text, &pretty(result), 2);
    }
    text
}

/// What can be said of content that is no text.
fn other_block(kind: Option<&str>, block: &Value) -> String {
    let mut said = kind.unwrap_or("content").replace('_', " ");
    let resource = block.get("resource").unwrap_or(block);
    for member in ["uri", "mimeType"] {
        if let Some(word) = resource.get(member).and_then(Value::as_str) {
            let _ = write!(said, " {word}");
        }
    }
    if let Some(data) = block.get("data").or_else(|| resource.get("blob")).and_then(Value::as_str) {
        let _ = write!(said, ", {} bytes of base64", data.len());
    }
    said
}

fn event(event: &str, line: &Map<String, Value>) -> Option<String> {
    Some(match event {
        "progress" => {
            let mut text = format!("  progress {}", line.get("progress")?);
            if let Some(total) = line.get("total").filter(|total| !total.is_null()) {
                let _ = write!(text, " of {total}");
            }
            if let Some(message) = word(line, "message") {
                let _ = write!(text, ": {}", shown(message));
            }
            text
        }
        "log" => {
            let logger = word(line, "logger").map(|logger| format!(" from {}", shown(logger)));
            let data = match line.get("data")? {
                Value::String(said) => shown(said),
                other => shown(&other.to_string()),
            };
            format!("  log {}{}: {data}", shown(word(line, "level")?), logger.unwrap_or_default())
        }
        "elicitation" => {
            let mut text = format!("  the server asks: {}", shown(word(line, "message")?));
            if let Some(url) = word(line, "url") {
                let _ = write!(text, "\n    to open {}", shown(url));
            }
            let _ = write!(text, "\n    answer: {}", word(line, "action")?);
            if let Some(Value::Object(content)) = line.get("content") {
                for (name, value) in content {
                    let _ = write!(text, "\n      {} = {}", shown(name), shown(&value.to_string()));
                }
            }
            text
        }
        "list_changed" => format!("  the server's list of {} changed", word(line, "list")?),
        "diagnostic" => {
            let kind = word(line, "kind")?.replace('_', " ");
            format!("  note: {} [{kind}]", shown(word(line, "message")?))
        }
        _ => return None,
    })
}

fn word<'a>(line: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    line.get(member)?.as_str()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn shown(text: &str) -> String {
    Untrusted::new(text, MAX_LINE).to_string()
}

/// The lines of a text, each made safe to print, below what is there.
fn indented(out: &mut String, text: &str, by: usize) {
    for (at, line) in text.lines().enumerate() {
        if at == MAX_LINES {
            let _ = write!(out, "\n{:by$}… ({} more lines)", "", text.lines().count() - at);
            return;
        }
        let _ = write!(out, "\n{:by$}{}", "", shown(line));
    }
}
