//! Answers of sloppy servers, from `vectors/odd`: what is read of them, or that they are refused.
//!
//! A file is a list of cases: `name`, the `ids` of what asks for it, the `type`, the `input`, and the `facts` that must
//! come out, `null` when the input must be refused. Which facts there are depends on the type: see [`facts_of`].

use mcp_model::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    name: String,
    ids: Vec<String>,
    r#type: String,
    input: Box<RawValue>,
    facts: Value,
}

/// Methods that wait for a declaration, one for each declaration that a legacy server can make, in alphabetical order.
const GATED: [&str; 6] = [
    methods::COMPLETION_COMPLETE,
    methods::LOGGING_SET_LEVEL,
    methods::PROMPTS_LIST,
    methods::RESOURCES_LIST,
    methods::RESOURCES_SUBSCRIBE,
    methods::TOOLS_CALL,
];

fn facts_of(case: &Case) -> Result<Value, serde_json::Error> {
    let input = case.input.get();
    Ok(match case.r#type.as_str() {
        "ListToolsResult" => {
            let result: ListToolsResult = serde_json::from_str(input)?;
            json!({
                "items": result.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
                "rejected": result.tools.rejected().iter().map(RejectedItem::index).collect::<Vec<_>>(),
                "next_cursor": result.next_cursor(),
                "ttl_ms": result.ttl_ms,
                "shared": CacheScope::is_shared(result.cache_scope.as_ref()),
            })
        }
        "CallToolResult" => {
            let result: CallToolResult = serde_json::from_str(input)?;
            let kind = |block: &ContentBlock| match block {
                ContentBlock::Unknown(block) => format!("?{}", block.kind().unwrap_or_default()),
                known => known.kind().unwrap_or_default().to_owned(),
            };
            json!({
                "kinds": result.content.iter().map(kind).collect::<Vec<_>>(),
                "structured": result.structured_content.as_ref().map(|raw| {
                    raw.get().chars().filter(|c| !c.is_whitespace()).collect::<String>()
                }),
                "is_error": result.is_error(),
            })
        }
        "InitializeResult" => {
            let result: InitializeResult = serde_json::from_str(input)?;
            let version = result.version();
            let permits =
                |method: &&str| version.is_some_and(|version| result.capabilities.permits(method, version));
            let permitted: Vec<&str> = GATED.into_iter().filter(permits).collect();
            json!({
                "version": version,
                "server": result.server_info.as_ref().map(|server| &server.name),
                "permits": permitted,
            })
        }
        other => panic!("{}: no facts for {other}", case.name),
    })
}

#[test]
fn odd_answers_are_read_as_the_vectors_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/odd");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in serde_json::from_str::<Vec<Case>>(&text).unwrap() {
            assert!(!case.ids.is_empty(), "{} names no requirement", case.name);
            let found = facts_of(&case);
            if case.facts.is_null() {
                assert!(found.is_err(), "{}: {found:?}", case.name);
            } else {
                let found = found.unwrap_or_else(|error| panic!("{}: {error}", case.name));
                for (name, expected) in case.facts.as_object().unwrap() {
                    assert_eq!(&found[name], expected, "{}: {name}", case.name);
                }
            }
            seen += 1;
        }
    }
    assert!(seen >= 15, "only {seen} cases were found");
}
