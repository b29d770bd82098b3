//! The four tools: their descriptions and what they do.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::message::{INVALID_PARAMS, Refusal};
use crate::session::{Answer, Call, Mode, NoAnswer};

/// Tools on one page. Smaller than the number of tools, so that a client must follow the cursor.
const PAGE: usize = 3;
const COUNT_MAX: u64 = 1000;
const DELAY_MS_MAX: u64 = 1000;
const GUESTS_MAX: u64 = 12;
const SEATINGS: [(&str, &str); 3] =
    [("inside", "Inside"), ("window", "By the window"), ("garden", "In the garden")];
/// How long the pretended person needs for the web page of `connect_account`.
const WEB_PAGE_WAIT: Duration = Duration::from_millis(200);

/// The result of `tools/list`.
pub(crate) fn list(params: &Value) -> Result<Value, Refusal> {
    let start = match params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|text| text.strip_prefix("from-")?.parse().ok())
            .ok_or_else(|| Refusal::new(INVALID_PARAMS, "this cursor did not come from here"))?,
    };
    let all = descriptions();
    let page: Vec<&Value> = all.iter().skip(start).take(PAGE).collect();
    let next = start.saturating_add(PAGE);
    Ok(if next < all.len() {
        json!({"tools": page, "nextCursor": format!("from-{next}")})
    } else {
        json!({"tools": page})
    })
}

pub(crate) fn exists(name: &str) -> bool {
    matches!(name, "book_table" | "connect_account" | "count" | "echo")
}

/// Runs a tool to its `CallToolResult`. Wrong arguments are a result with `isError`, which a model can read and mend.
pub(crate) async fn run(name: &str, arguments: &Map<String, Value>, call: &Call) -> Value {
    let outcome = match name {
        "book_table" => book_table(call).await,
        "connect_account" => connect_account(call).await,
        "count" => count(arguments, call).await,
        _ => echo(arguments),
    };
    outcome.unwrap_or_else(|message| json!({"content": [{"type": "text", "text": message}], "isError": true}))
}

fn descriptions() -> [Value; 4] {
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    [
        json!({
            "name": "count",
            "title": "Count",
            "description": "Counts from 1 to `to`, reporting progress at each step.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "to": {"type": "integer", "minimum": 1, "maximum": COUNT_MAX},
                    "delay_ms": {"type": "integer", "minimum": 0, "maximum": DELAY_MS_MAX, "default": 100},
                },
                "required": ["to"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {"total": {"type": "integer"}},
                "required": ["total"],
            },
            "execution": {"taskSupport": "optional"},
        }),
        json!({
            "name": "book_table",
            "title": "Book a table",
            "description": "Asks who is coming and books a table.",
            "inputSchema": nothing,
        }),
        json!({
            "name": "connect_account",
            "title": "Connect an account",
            "description": "Asks to open a web page that connects an account.",
            "inputSchema": nothing,
        }),
        json!({
            "name": "echo",
            "title": "Echo",
            "description": "Returns the message.",
            "inputSchema": {
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            },
        }),
    ]
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn structured(text: String, structured: &Value) -> Value {
    json!({"content": [{"type": "text", "text": text}], "structuredContent": structured})
}

fn echo(arguments: &Map<String, Value>) -> Result<Value, String> {
    match arguments.get("message").and_then(Value::as_str) {
        Some(message) => Ok(text(message)),
        None => Err("message must be a string".into()),
    }
}

async fn count(arguments: &Map<String, Value>, call: &Call) -> Result<Value, String> {
    let (to, delay) = counting(arguments)?;
    for step in 1..=to {
        tokio::time::sleep(delay).await;
        call.progress(step, to, &format!("counted {step} of {to}")).await;
    }
    Ok(counted(to))
}

/// How far to count, and how slowly.
pub(crate) fn counting(arguments: &Map<String, Value>) -> Result<(u64, Duration), String> {
    let to = integer(arguments, "to", 1, COUNT_MAX)?.ok_or("to is required")?;
    let delay = integer(arguments, "delay_ms", 0, DELAY_MS_MAX)?.unwrap_or(100);
    Ok((to, Duration::from_millis(delay)))
}

pub(crate) fn counted(to: u64) -> Value {
    structured(format!("counted to {to}"), &json!({"total": to}))
}

async fn book_table(call: &Call) -> Result<Value, String> {
    let seatings: Vec<Value> =
        SEATINGS.iter().map(|(value, title)| json!({"const": value, "title": title})).collect();
    let question = json!({
        "mode": "form",
        "message": "Which table may I book?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string", "title": "Name", "description": "In whose name?", "minLength": 1, "maxLength": 60,
                },
                "guests": {
                    "type": "integer", "title": "Guests", "minimum": 1, "maximum": GUESTS_MAX, "default": 2,
                },
                "seating": {"type": "string", "title": "Seating", "oneOf": seatings},
                "reminder": {"type": "boolean", "title": "Send a reminder", "default": true},
            },
            "required": ["name", "seating"],
        },
    });
    let answer = match call.ask(Mode::Form, question).await.map_err(explain)? {
        Answer::Accept(answer) => answer,
        Answer::Cancel => return Ok(text("nothing booked: the question was cancelled")),
        Answer::Decline => return Ok(text("nothing booked: the question was declined")),
    };
    let name = match answer.get("name").and_then(Value::as_str) {
        Some(name) if (1..=60).contains(&name.chars().count()) => name,
        _ => return Err("name must be a string of 1 to 60 characters".into()),
    };
    let guests = integer(&answer, "guests", 1, GUESTS_MAX)?.unwrap_or(2);
    let seating = answer
        .get("seating")
        .and_then(Value::as_str)
        .filter(|given| SEATINGS.iter().any(|(value, _)| value == given))
        .ok_or("seating must be one of the offered values")?;
    let reminder = match answer.get("reminder") {
        None => true,
        Some(Value::Bool(reminder)) => *reminder,
        Some(_) => return Err("reminder must be a boolean".into()),
    };
    let noun = if guests == 1 { "guest" } else { "guests" };
    let with = if reminder { "with" } else { "without" };
    let booked = json!({"name": name, "guests": guests, "seating": seating, "reminder": reminder});
    Ok(structured(format!("booked for {name}: {guests} {noun}, {seating}, {with} a reminder"), &booked))
}

async fn connect_account(call: &Call) -> Result<Value, String> {
    let id = random_hex()?;
    let question = json!({
        "mode": "url",
        "message": "Please connect your account in the browser.",
        "url": format!("https://accounts.example.com/connect?request={id}"),
        "elicitationId": id,
    });
    match call.ask(Mode::Url, question).await.map_err(explain)? {
        Answer::Accept(_) => {}
        Answer::Cancel => return Ok(text("not connected: the question was cancelled")),
        Answer::Decline => return Ok(text("not connected: the question was declined")),
    }
    // Accepting means that the page is being opened; what happens there reaches the server by another way. example.com hosts
    // no such page, so the visit is played.
    tokio::time::sleep(WEB_PAGE_WAIT).await;
    call.completed(&id).await;
    Ok(text("account connected"))
}

fn explain(no_answer: NoAnswer) -> String {
    match no_answer {
        NoAnswer::Error(message) => format!("the client could not ask: {message}"),
        NoAnswer::Later => "the client is asked with this result".into(),
        NoAnswer::Malformed => "the client's answer is not an elicitation result".into(),
        NoAnswer::TimedOut => "nobody answered in time".into(),
        NoAnswer::Undeclared => "this client did not declare that it can ask this".into(),
    }
}

/// An integer argument within its bounds; `None` when absent.
fn integer(values: &Map<String, Value>, name: &str, min: u64, max: u64) -> Result<Option<u64>, String> {
    let Some(value) = values.get(name) else { return Ok(None) };
    // 3.0 is an integer to JSON Schema, and some clients write all numbers that way.
    let whole = value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        (0.0..=1e6).contains(&float).then_some(float as u64)
    });
    match whole {
        Some(whole) if (min..=max).contains(&whole) => Ok(Some(whole)),
        _ => Err(format!("{name} must be an integer from {min} to {max}")),
    }
}

/// 16 random bytes, as ids that nobody can guess.
pub(crate) fn random_hex() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random bytes from the system: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
