//! The structured content of a tool's result, read as a type of the application's own.

use std::fmt;

use mcp_model::CallToolResult;
use mcp_transport::Untrusted;
use serde::de::DeserializeOwned;

/// How much of a server's words an error shows, in bytes.
const MAX_TEXT: usize = 300;

/// How much of a path is kept, in bytes: the names in it are the server's.
const MAX_POINTER: usize = 1200;

/// Why there is no value of the type in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructuredError {
    /// The result has no structured content: the tool gives none, or the server is of a revision before 2025-06-18. What it has is in
    /// [`content`](CallToolResult::content).
    Missing,
    /// The tool failed, so that its result is no output, whatever is in it.
    #[non_exhaustive]
    ToolFailed {
        /// The first text block of the tool about that, cut, escaped and in quotes; empty if there is none. Untrusted.
        message: String,
    },
    /// There is structured content, and it is not what the type takes.
    #[non_exhaustive]
    WrongShape {
        /// Where, as a JSON pointer (RFC 6901), at most 1,200 bytes of it; empty for the whole. Where the type looks at several values
        /// before it decides (an untagged or flattened part of it), the one that holds them. Untrusted.
        pointer: String,
        /// What is wrong there, cut and escaped. It may quote the value. Untrusted.
        reason: String,
    },
}

/// Reads the structured content of a tool's result as a type, and says what is wrong where it cannot.
///
/// As [`CallToolResult::structured`], which leaves it to the caller to tell these apart; and the result of a tool that failed
/// ([`CallToolResult::is_error`]) is not read. `null` is content. Whether the content is what the tool declares is another question: see
/// `ClientBuilder::check_output`, of the feature `schema`.
///
/// ```no_run
/// use mcp_client::{Client, read_structured};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Weather {
///     temperature: f64,
/// }
///
/// # async fn example(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
/// let result = client.call_tool("get-weather", json!({ "city": "Oslo" })).await?;
/// let weather: Weather = read_structured(&result)?;
/// println!("{}", weather.temperature);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`StructuredError`].
pub fn read_structured<T: DeserializeOwned>(result: &CallToolResult) -> Result<T, StructuredError> {
    let text = content(result)?;
    serde_json::from_str(text).map_err(|error| wrong_shape(text, &error))
}

/// Not generic, so that it is compiled in this crate.
fn content(result: &CallToolResult) -> Result<&str, StructuredError> {
    if result.is_error() {
        let words = result.texts().next().unwrap_or_default();
        let message = match words {
            "" => String::new(),
            _ => Untrusted::new(words, MAX_TEXT).quoted().to_string(),
        };
        return Err(StructuredError::ToolFailed { message });
    }
    let content = result.structured_content.as_deref().ok_or(StructuredError::Missing)?;
    Ok(content.get())
}

fn wrong_shape(text: &str, error: &serde_json::Error) -> StructuredError {
    // The place is said by the pointer, in words that mean something to whoever has not the text at hand.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = error.to_string();
    let reason = reason.strip_suffix(&place).unwrap_or(&reason);
    let lines_before = error.line().saturating_sub(1);
    let line_begins = match lines_before {
        0 => 0,
        _ => text.match_indices('\n').nth(lines_before - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    let read = line_begins.saturating_add(error.column()).min(text.len());
    let mut pointer = pointer_at(text.as_bytes().get(..read).unwrap_or_default());
    let mut kept = MAX_POINTER.min(pointer.len());
    while !pointer.is_char_boundary(kept) {
        kept -= 1;
    }
    pointer.truncate(kept);
    StructuredError::WrongShape { pointer, reason: Untrusted::new(reason, MAX_TEXT).to_string() }
}

/// A container that is open where a reader stands.
enum Open {
    /// At this index.
    Array(usize),
    /// At the member with this name, if it has come to one.
    Object(Option<String>),
}

/// Where a reader stands that has consumed this much of a JSON text: at the value that it has just read, or is about to read.
fn pointer_at(read: &[u8]) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut rest = read;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'{' => open.push(Open::Object(None)),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Array(index)) => *index += 1,
                Some(Open::Object(name)) => *name = None,
                None => {}
            },
            b'"' => {
                let length = string_length(after);
                let (string, beyond) = after.split_at_checked(length).unwrap_or((after, &[]));
                rest = beyond.get(1..).unwrap_or_default();
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = Some(decoded(string));
                }
            }
            _ => {}
        }
    }
    let mut pointer = String::new();
    for step in open {
        match step {
            Open::Array(index) => pointer.push_str(&format!("/{index}")),
            Open::Object(Some(name)) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Open::Object(None) => {}
        }
    }
    pointer
}

/// How long a string is that begins here, without its quote.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}

/// A name in an object, without its escapes.
fn decoded(string: &[u8]) -> String {
    let text = String::from_utf8_lossy(string);
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_| text.into_owned())
}

impl fmt::Display for StructuredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the result of the tool has no structured content"),
            Self::ToolFailed { message } if message.is_empty() => f.write_str("the tool failed"),
            Self::ToolFailed { message } => write!(f, "the tool failed: {message}"),
            Self::WrongShape { pointer, reason } => {
                f.write_str("the structured content of the tool has another shape")?;
                if !pointer.is_empty() {
                    write!(f, " at {}", Untrusted::new(pointer, MAX_TEXT))?;
                }
                write!(f, ": {reason}")
            }
        }
    }
}

impl std::error::Error for StructuredError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[expect(dead_code, reason = "it is only read")]
        id: u32,
        #[serde(default)]
        #[expect(dead_code, reason = "it is only read")]
        items: Vec<Item>,
        #[serde(default)]
        #[expect(dead_code, reason = "it is only read")]
        pair: (u8, u8),
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        #[expect(dead_code, reason = "it is only read")]
        name: String,
        #[serde(rename = "a/b~c\"é", default)]
        #[expect(dead_code, reason = "it is only read")]
        odd: u32,
        #[serde(default)]
        #[expect(dead_code, reason = "it is only read")]
        kind: Kind,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        #[default]
        Plain,
    }

    fn result(text: &str) -> CallToolResult {
        let text = format!(r#"{{"content":[],"structuredContent":{text}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn shape(text: &str) -> (String, String) {
        match read_structured::<Order>(&result(text)).unwrap_err() {
            StructuredError::WrongShape { pointer, reason } => (pointer, reason),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn content_of_another_shape_is_told_with_its_path() {
        for (text, pointer, reason) in [
            ("null", "", "invalid type: null, expected struct Order"),
            ("7", "", "invalid type: integer `7`, expected struct Order"),
            ("{}", "", "missing field `id`"),
            (r#"{"id":"7"}"#, "/id", r#"invalid type: string "7", expected u32"#),
            (r#"{"id":{"a":[1,2]}}"#, "/id", "invalid type: map, expected u32"),
            (r#"{"id":[{"a":1}]}"#, "/id", "invalid type: sequence, expected u32"),
            (r#"{"id":-1}"#, "/id", "invalid value: integer `-1`, expected u32"),
            (r#"{"id":null,"items":[]}"#, "/id", "invalid type: null, expected u32"),
            (r#"{"id":1,"more":{}}"#, "/more", "unknown field `more`, expected one of `id`, `items`, `pair`"),
            (r#"{"id":1,"id":2}"#, "/id", "duplicate field `id`"),
            (r#"{"id":1,"items":{}}"#, "/items", "invalid type: map, expected a sequence"),
            (r#"{"id":1,"items":[{"name":"a"},{}]}"#, "/items/1", "missing field `name`"),
            (
                r#"{"id":1,"items":[{"name":"a"},[7]]}"#,
                "/items/1/0",
                "invalid type: integer `7`, expected a string",
            ),
            (
                r#"{"id":1,"items":[{"name":"a"}, {"name" : [] } ]}"#,
                "/items/1/name",
                "invalid type: sequence, expected a string",
            ),
            (
                "{\"id\":1,\n \"items\": [\n{\"name\":\"a\"},\n\n{\"name\": false}]}",
                "/items/1/name",
                "invalid type: boolean `false`, expected a string",
            ),
            (
                r#"{"id":1,"items":[{"name":"{[,\"\\","a/b~c\"\u00e9":true}]}"#,
                "/items/0/a~1b~0c\"é",
                "invalid type: boolean `true`, expected u32",
            ),
            (
                r#"{"id":1,"items":[{"name":"a","kind":"odd"}]}"#,
                "/items/0/kind",
                "unknown variant `odd`, expected `plain`",
            ),
            (r#"{"id":1,"pair":[1]}"#, "/pair", "invalid length 1, expected a tuple of size 2"),
            (r#"{"id":1,"pair":[1,300]}"#, "/pair/1", "invalid value: integer `300`, expected u8"),
        ] {
            assert_eq!(shape(text), (pointer.to_owned(), reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_apart_from_what_does_not_fit() {
        let none: CallToolResult = serde_json::from_value(json!({ "content": [] })).unwrap();
        assert_eq!(read_structured::<Value>(&none), Err(StructuredError::Missing));
        assert_eq!(read_structured::<Value>(&result("null")), Ok(Value::Null));
        assert_eq!(read_structured::<Option<u8>>(&result("null")), Ok(None));
        assert_eq!(read_structured::<Vec<u8>>(&result("[1, 2]")), Ok(vec![1, 2]));
    }

    /// The result of a tool that failed is no output, though it may look like one.
    #[test]
    fn a_tool_that_failed_has_no_output() {
        let failed = json!({
            "content": [{ "type": "text", "text": "no such\u{1b}[2K city" }], "structuredContent": 7, "isError": true,
        });
        let error = read_structured::<u8>(&serde_json::from_value(failed).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "the tool failed: \"no such\\u{1b}[2K city\"");
        let silent = serde_json::from_value(json!({ "content": [], "isError": true })).unwrap();
        assert_eq!(read_structured::<u8>(&silent).unwrap_err().to_string(), "the tool failed");
    }

    /// auth:LIM-14
    #[test]
    fn what_is_shown_of_the_server_is_cut_and_escaped() {
        let text = json!({ "id": format!("\u{202e}{}", "y".repeat(10_000)) }).to_string();
        let shown = read_structured::<Order>(&result(&text)).unwrap_err().to_string();
        assert!(shown.len() < 500 && shown.contains("at /id: ") && !shown.contains('\u{202e}'), "{shown}");
        let text = json!({ format!("\u{202e}{}", "é".repeat(10_000)): 1 }).to_string();
        let error = read_structured::<Order>(&result(&text)).unwrap_err();
        let StructuredError::WrongShape { pointer, .. } = &error else { panic!("{error}") };
        assert!(pointer.len() <= MAX_POINTER, "{}", pointer.len());
        let shown = error.to_string();
        assert!(shown.len() < 1500 && !shown.contains('\u{202e}'), "{shown}");
    }

    /// Any value, and each scalar in it by its pointer.
    fn any_value() -> impl Strategy<Value = Value> {
        let name = prop_oneof!["[a-z]{0,2}", "[ -~é/~\"\\\\]{0,4}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            name.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn marked(value: &Value, at: String, all: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| marked(item, format!("{at}/{index}"), all));
            }
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                marked(member, format!("{at}/{name}"), all);
            }),
            _ => all.push(at),
        }
    }

    proptest! {
        /// A reader that has just read a scalar stands at that scalar, in compact text and in text with lines.
        #[test]
        fn each_scalar_is_where_it_is(value in any_value()) {
            let mut pointers = Vec::new();
            marked(&value, String::new(), &mut pointers);
            for pointer in pointers {
                let mut one = value.clone();
                // Nothing else in it is a boolean.
                *one.pointer_mut(&pointer).unwrap() = Value::Bool(true);
                for text in [one.to_string(), serde_json::to_string_pretty(&one).unwrap()] {
                    let ends: Vec<usize> = text.match_indices("true").map(|(at, _)| at + 4).collect();
                    let found: Vec<String> = ends.iter().map(|end| pointer_at(&text.as_bytes()[..*end])).collect();
                    prop_assert!(found.contains(&pointer), "{found:?} {pointer} {text}");
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<Vec<u8>>()) {
            let _ = pointer_at(&text);
        }
    }
}
