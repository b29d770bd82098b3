//! Whatever else a peer writes into a right message, the message is read.

use std::sync::OnceLock;

use mcp_model::*;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::examples::{RoundTrip, examples, ours};

/// Any JSON value, small.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        // Numbers that survive serde_json's fast (inexact) parse of floating point.
        (-(1_i64 << 53)..(1 << 53)).prop_map(Value::from),
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "\\PC{0,6}".prop_map(Value::from),
        "(text|image|complete|task|user|debug|type|\u{0}|\u{2028})".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((member_name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Names that the specification uses somewhere, and names that it does not.
fn member_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "(type|text|data|uri|name|title|content|resource|_meta|annotations|icons|size|role|tools|inputSchema)",
        "\\PC{0,6}",
    ]
}

/// Examples that a client reads, with the way to read them. What a client sends it need not read leniently.
fn read_by_clients() -> &'static [(String, Value, RoundTrip)] {
    static EXAMPLES: OnceLock<Vec<(String, Value, RoundTrip)>> = OnceLock::new();
    EXAMPLES.get_or_init(find_read_by_clients)
}

fn find_read_by_clients() -> Vec<(String, Value, RoundTrip)> {
    let ours = ours();
    let sent = ["Complete", "ListRootsRes", "CreateMessageRes", "Root"];
    examples()
        .into_iter()
        .filter(|(name, ..)| {
            !sent.iter().any(|prefix| name.starts_with(prefix)) || name.starts_with("CompleteResult")
        })
        .filter_map(|(name, _, value)| ours.get(name.as_str()).map(|read| (name, value, *read)))
        .collect()
}

/// Members that the model keeps as raw JSON.
const RAW: &[&str] = &[
    "_meta",
    "arguments",
    "data",
    "experimental",
    "extensions",
    "input",
    "inputRequests",
    "inputResponses",
    "inputSchema",
    "metadata",
    "outputSchema",
    "params",
    "structuredContent",
];

/// The JSON pointers of the places inside a value, outside of what is kept raw, for which `wanted` says yes. An
/// envelope's `params` are walked into, those of an embedded request are raw.
fn places(value: &Value, wanted: fn(&str, &Value) -> bool) -> Vec<String> {
    fn walk(value: &Value, path: &str, wanted: fn(&str, &Value) -> bool, found: &mut Vec<String>) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if wanted(name, value) {
            found.push(path.to_owned());
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if !RAW.contains(&name.as_str()) || (path.is_empty() && name == "params") {
                        walk(
                            member,
                            &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")),
                            wanted,
                            found,
                        );
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, &format!("{path}/{index}"), wanted, found);
                }
            }
            _ => {}
        }
    }

    let mut found = Vec::new();
    walk(value, "", wanted, &mut found);
    found
}

fn is_word(name: &str, value: &Value) -> bool {
    const WORDS: &[&str] = &[
        "role",
        "level",
        "theme",
        "status",
        "cacheScope",
        "stopReason",
        "includeContext",
        "mode",
        "taskSupport",
        "resultType",
    ];
    WORDS.contains(&name) && value.is_string()
}

proptest! {
    /// protocol:10.27: an unknown member never fails a message.
    #[test]
    fn unknown_members_are_ignored(
        pick in any::<Index>(),
        place in any::<Index>(),
        name in "x-[a-z\u{e9}]{0,5}",
        extra in any_json(),
    ) {
        let examples = read_by_clients();
        let (definition, value, read) = pick.get(examples);
        let mut value = value.clone();
        let objects = places(&value, |_, value| value.is_object());
        let place = value.pointer_mut(place.get(objects.as_slice()).as_str()).unwrap();
        place.as_object_mut().unwrap().insert(name, extra);
        prop_assert!(read(&value).is_ok(), "{definition}: {:?}\n{value}", read(&value));
    }

    /// protocol:10.27: an unknown word in the place of an enumeration is kept, and comes back as it was.
    #[test]
    fn unknown_words_are_kept(pick in any::<Index>(), place in any::<Index>(), word in "\\PC{0,12}") {
        let with_words = |(_, value, _): &&(String, Value, RoundTrip)| !places(value, is_word).is_empty();
        let examples: Vec<_> = read_by_clients().iter().filter(with_words).collect();
        let (definition, value, read) = pick.get(examples.as_slice());
        let mut value = value.clone();
        let words = places(&value, is_word);
        *value.pointer_mut(place.get(words.as_slice()).as_str()).unwrap() = word.into();
        prop_assert_eq!(read(&value), Ok(value), "{}", definition);
    }

    /// protocol:10.27: one malformed entry of a list costs none of the others, and comes back in its place.
    #[test]
    fn one_odd_entry_costs_no_other(
        list in 0..LISTS.len(),
        before in 0_usize..3,
        after in 0_usize..3,
        odd in any_json(),
    ) {
        let (wrap, good, read) = LISTS[list];
        let good: Value = serde_json::from_str(good).unwrap();
        let mut items = vec![good.clone(); before];
        items.push(odd);
        items.resize(before + 1 + after, good);
        let text = wrap.replace("LIST", &Value::from(items).to_string());
        let value: Value = serde_json::from_str(&text).unwrap();
        let (readable, rejected) = read(&value).map_err(TestCaseError::fail)?;
        prop_assert!(readable >= before + after, "{text}");
        prop_assert_eq!(readable + rejected, before + 1 + after, "{}", text);
    }

    /// Hints of any shape never cost the item they belong to.
    #[test]
    fn hints_of_any_shape_are_harmless(hint in 0..HINTS.len(), value in any_json()) {
        let (name, wrap, read) = HINTS[hint];
        let text = wrap.replace("HINT", &format!("{name:?}:{value}"));
        prop_assert!(read(&text), "{text}");
    }

    /// protocol:TL-04, protocol:J-39: raw members keep their text to the byte.
    #[test]
    fn raw_members_keep_their_text(structured in any_json(), space in "[ \n\t]{0,3}") {
        let text = structured.to_string();
        let json = format!(r#"{{"content":[],"structuredContent":{space}{text}{space},"isError":false}}"#);
        let result: CallToolResult = serde_json::from_str(&json).unwrap();
        let kept = result.structured_content.unwrap();
        prop_assert_eq!(kept.get(), text.as_str());
        let json = format!(r#"{{"name":"t","inputSchema":{{"$defs":{space}{text}}}}}"#);
        let tool: Tool = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(tool.input_schema.get(), format!(r#"{{"$defs":{space}{text}}}"#));
    }

    /// Whatever stands in whatever place: the message is refused, or it is read, and then reading what was written of
    /// it gives the same again.
    #[test]
    fn any_value_in_any_place_is_refused_or_settles(
        pick in any::<Index>(),
        place in any::<Index>(),
        odd in any_json(),
    ) {
        let examples = read_by_clients();
        let (definition, value, read) = pick.get(examples);
        let mut value = value.clone();
        let all = places(&value, |_, _| true);
        *value.pointer_mut(place.get(all.as_slice()).as_str()).unwrap() = odd;
        if let Ok(written) = read(&value) {
            prop_assert_eq!(read(&written), Ok(written), "{}", definition);
        }
    }

    /// protocol:J-33: the look at the raw text agrees with a full parse.
    #[test]
    fn inspection_agrees_with_a_full_parse(mut value in any_json(), kind in any_json()) {
        if let Some(members) = value.as_object_mut() {
            members.insert("resultType".into(), kind.clone());
        }
        let found = inspect_result_type(&value.to_string());
        match (value.is_object(), kind) {
            (true, Value::String(kind)) => prop_assert_eq!(found.unwrap().as_str().to_owned(), kind),
            (true, Value::Null) => prop_assert_eq!(found.unwrap(), ResultType::Complete),
            _ => prop_assert!(found.is_err()),
        }
    }
}

type Counted = fn(&Value) -> Result<(usize, usize), String>;

fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_str(&value.to_string()).map_err(|error| format!("{error}: {value}"))
}

fn parts<T>(list: &List<T>) -> (usize, usize) {
    (list.len(), list.rejected().len())
}

const LISTS: &[(&str, &str, Counted)] = &[
    (r#"{"tools":LIST}"#, r#"{"name":"t","inputSchema":{}}"#, |value| {
        typed::<ListToolsResult>(value).map(|result| parts(&result.tools))
    }),
    (r#"{"resources":LIST}"#, r#"{"uri":"a:b","name":"n"}"#, |value| {
        typed::<ListResourcesResult>(value).map(|result| parts(&result.resources))
    }),
    (r#"{"resourceTemplates":LIST}"#, r#"{"uriTemplate":"a:{b}","name":"n"}"#, |value| {
        typed::<ListResourceTemplatesResult>(value).map(|result| parts(&result.resource_templates))
    }),
    (r#"{"prompts":LIST}"#, r#"{"name":"p","arguments":[{"name":"a"}]}"#, |value| {
        typed::<ListPromptsResult>(value).map(|result| parts(&result.prompts))
    }),
    (r#"{"prompts":[{"name":"p","arguments":LIST}]}"#, r#"{"name":"a"}"#, |value| {
        typed::<ListPromptsResult>(value).map(|result| parts(result.prompts[0].arguments.as_ref().unwrap()))
    }),
    (r#"{"messages":LIST}"#, r#"{"role":"user","content":{"type":"text","text":"x"}}"#, |value| {
        typed::<GetPromptResult>(value).map(|result| parts(&result.messages))
    }),
    (r#"{"contents":LIST}"#, r#"{"uri":"a:b","text":"x"}"#, |value| {
        typed::<ReadResourceResult>(value).map(|result| (result.contents.len(), 0))
    }),
    (r#"{"completion":{"values":LIST}}"#, "\"v\"", |value| {
        typed::<CompleteResult>(value).map(|result| parts(&result.completion.values))
    }),
    (r#"{"supportedVersions":LIST,"capabilities":{}}"#, "\"2026-07-28\"", |value| {
        typed::<DiscoverResult>(value).map(|result| parts(&result.supported_versions))
    }),
    (r#"{"tasks":LIST}"#, r#"{"taskId":"t","status":"working","ttl":null}"#, |value| {
        typed::<ListTasksResult>(value).map(|result| parts(&result.tasks))
    }),
    (r#"{"content":LIST}"#, r#"{"type":"text","text":"x"}"#, |value| {
        typed::<CallToolResult>(value).map(|result| (result.content.len(), 0))
    }),
    (r#"{"content":LIST}"#, r#"{"text":"x","type":"text"}"#, |value| {
        typed::<CallToolResult>(value).map(|result| (result.content.len(), 0))
    }),
];

fn reads<T: serde::de::DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<T>(text).is_ok()
}

fn reads_one_tool(text: &str) -> bool {
    serde_json::from_str::<ListToolsResult>(text).is_ok_and(|result| result.tools.len() == 1)
}

fn reads_known_block(text: &str) -> bool {
    serde_json::from_str::<ContentBlock>(text).is_ok_and(|block| !matches!(block, ContentBlock::Unknown(_)))
}

type Hint = (&'static str, &'static str, fn(&str) -> bool);

const HINTS: &[Hint] = &[
    ("annotations", r#"{"tools":[{"name":"t","inputSchema":{},HINT}]}"#, reads_one_tool),
    ("icons", r#"{"tools":[{"name":"t","inputSchema":{},HINT}]}"#, reads_one_tool),
    ("execution", r#"{"tools":[{"name":"t","inputSchema":{},HINT}]}"#, reads_one_tool),
    ("_meta", r#"{"tools":[{"name":"t","inputSchema":{},HINT}]}"#, reads_one_tool),
    ("outputSchema", r#"{"tools":[{"name":"t","inputSchema":{},HINT}]}"#, reads_one_tool),
    ("destructiveHint", r#"{"tools":[{"name":"t","inputSchema":{},"annotations":{HINT}}]}"#, reads_one_tool),
    ("ttlMs", r#"{"tools":[{"name":"t","inputSchema":{}}],HINT}"#, reads_one_tool),
    ("cacheScope", r#"{"tools":[{"name":"t","inputSchema":{}}],HINT}"#, reads_one_tool),
    ("annotations", r#"{"type":"text","text":"x",HINT}"#, reads_known_block),
    ("annotations", r#"{HINT,"text":"x","type":"text"}"#, reads_known_block),
    ("size", r#"{"type":"resource_link","uri":"a:b","name":"n",HINT}"#, reads_known_block),
    ("title", r#"{"type":"resource_link","uri":"a:b","name":"n",HINT}"#, reads_known_block),
    ("resource", r#"{"type":"resource",HINT}"#, reads_known_block),
    ("size", r#"{"uri":"a:b","name":"n",HINT}"#, reads::<Resource>),
    ("icons", r#"{"name":"n","version":"1",HINT}"#, reads::<Implementation>),
    ("serverInfo", r#"{"protocolVersion":"2025-11-25","capabilities":{},HINT}"#, reads::<InitializeResult>),
    ("tools", r#"{"protocolVersion":"2025-11-25","capabilities":{HINT}}"#, reads::<InitializeResult>),
    ("experimental", r#"{"protocolVersion":"2025-11-25","capabilities":{HINT}}"#, reads::<InitializeResult>),
    ("extensions", r#"{"supportedVersions":[],"capabilities":{HINT}}"#, reads::<DiscoverResult>),
    (
        "listChanged",
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{HINT}}}"#,
        reads::<InitializeResult>,
    ),
    ("_meta", r#"{"supportedVersions":[],"capabilities":{},HINT}"#, reads::<DiscoverResult>),
    ("total", r#"{"progressToken":1,"progress":1,HINT}"#, reads::<ProgressNotificationParams>),
    ("message", r#"{"progressToken":1,"progress":1,HINT}"#, reads::<ProgressNotificationParams>),
    ("reason", r#"{"requestId":1,HINT}"#, reads::<CancelledNotificationParams>),
    ("data", r#"{"level":"info",HINT}"#, reads::<LoggingMessageNotificationParams>),
    ("logger", r#"{"level":"info","data":1,HINT}"#, reads::<LoggingMessageNotificationParams>),
    ("total", r#"{"completion":{"values":[],HINT}}"#, reads::<CompleteResult>),
    ("modelPreferences", r#"{"messages":[],"maxTokens":1,HINT}"#, reads::<CreateMessageRequestParams>),
    ("temperature", r#"{"messages":[],"maxTokens":1,HINT}"#, reads::<CreateMessageRequestParams>),
    ("metadata", r#"{"messages":[],"maxTokens":1,HINT}"#, reads::<CreateMessageRequestParams>),
    ("ttl", r#"{"taskId":"t","status":"working",HINT}"#, reads::<Task>),
    ("structuredContent", r#"{"content":[],HINT}"#, reads::<CallToolResult>),
    (
        "requiredCapabilities",
        r#"{"requiredCapabilities":{HINT}}"#,
        reads::<MissingRequiredClientCapabilityData>,
    ),
];

/// protocol:TL-04, field:FR-107: `null` is a value in `structuredContent` and nowhere else.
#[test]
fn null_is_a_value_only_where_the_specification_says_so() {
    let read = |value: Value| typed::<CallToolResult>(&value).unwrap();
    let with_null =
        read(json!({ "content": null, "structuredContent": null, "isError": null, "_meta": null }));
    assert_eq!(with_null.structured_content.as_ref().map(|raw| raw.get()), Some("null"));
    assert!(with_null.content.is_empty() && with_null.is_error.is_none() && with_null.meta.is_none());
    assert!(read(json!({})).structured_content.is_none());
    let written = serde_json::to_string(&with_null).unwrap();
    assert_eq!(written, r#"{"content":[],"structuredContent":null}"#);
}

/// field:FR-109: every digit survives, in results and in arguments.
#[test]
fn numbers_keep_their_digits_in_both_directions() {
    let numbers =
        r#"{"id":1234567890123456789,"u":18446744073709551615,"n":-9007199254740993,"e":1e400,"f":0.1000}"#;
    let json = format!(r#"{{"content":[],"structuredContent":{numbers}}}"#);
    let result: CallToolResult = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&result).unwrap(), json);
    let arguments = serde_json::value::RawValue::from_string(numbers.to_owned()).unwrap();
    let call = CallToolRequestParams::new("t").with_arguments(&arguments).unwrap();
    assert_eq!(serde_json::to_string(&call).unwrap(), format!(r#"{{"name":"t","arguments":{numbers}}}"#));
    assert!(CallToolRequestParams::new("t").with_arguments(&[1, 2]).is_err());
}

/// field:FR-112: nesting without end in a raw member costs no stack, and in a typed one only an error.
#[test]
fn deep_nesting_overflows_no_stack() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let raw = format!(r#"{{"content":[],"structuredContent":{deep}}}"#);
    assert!(serde_json::from_str::<CallToolResult>(&raw).is_ok());
    for text in [
        format!(r#"{{"content":[{{"type":"text","text":{deep}}}]}}"#),
        format!(r#"{{"content":[{deep}]}}"#),
        format!(r#"{{"content":[{{"type":{deep}}}]}}"#),
    ] {
        assert!(serde_json::from_str::<CallToolResult>(&text).is_err());
    }
    let nested = r#"{"type":"tool_result","toolUseId":"1","content":["#.repeat(10_000);
    let _ = serde_json::from_str::<SamplingMessageContentBlock>(&nested);
}
