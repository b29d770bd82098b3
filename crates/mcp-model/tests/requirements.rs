//! What the types promise beside reading and writing what the schemas say.

#![expect(clippy::unwrap_used, reason = "a test")]

use mcp_model::{
    CallToolResult, CreateMessageRequestParams, CreateMessageResult, GetPromptRequestParams,
    LoggingMessageNotificationParams, ResourceNotFoundData, Tool,
};
use serde_json::{Value, json};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// protocol:TL-03: what a server leaves out has the cautious default, and nonsense counts as left out.
#[test]
fn a_tool_without_hints_is_taken_for_a_dangerous_one() {
    for annotations in [json!(null), json!({}), json!({ "readOnlyHint": "yes", "destructiveHint": 0 })] {
        let tool: Tool =
            read(json!({ "name": "t", "inputSchema": { "type": "object" }, "annotations": annotations }));
        let hints = tool.hints();
        assert_eq!(
            (hints.read_only, hints.destructive, hints.idempotent, hints.open_world),
            (false, true, false, true)
        );
    }
}

/// protocol:TL-06: a tool's own failure is a result, with its words for the model.
#[test]
fn a_tool_that_failed_has_a_result() {
    let result: CallToolResult =
        read(json!({ "content": [{ "type": "text", "text": "no such city" }], "isError": true }));
    assert!(result.is_error());
    assert_eq!(result.texts().collect::<Vec<_>>(), ["no such city"]);
}

/// protocol:LG-03: the eight levels in their order, unknown ones too, and any JSON as data.
#[test]
fn every_log_level_is_known_and_data_is_anything() {
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    for (severity, level) in levels.into_iter().enumerate() {
        for data in [json!(null), json!("text"), json!([1]), json!({ "a": 1 })] {
            let log: LoggingMessageNotificationParams = read(json!({ "level": level, "data": data }));
            assert_eq!(log.level.severity(), Some(severity));
            assert_eq!(serde_json::from_str::<Value>(log.data.get()).unwrap(), data);
        }
    }
    let odd: LoggingMessageNotificationParams = read(json!({ "level": "loud", "data": 1 }));
    assert_eq!(odd.level.severity(), None);
}

/// protocol:PR-01: prompt arguments are strings under their names.
#[test]
fn a_prompt_is_asked_for_with_strings() {
    let params = GetPromptRequestParams::new("p").with_argument("a", "1").with_argument("b", "");
    assert_eq!(
        serde_json::to_value(&params).unwrap(),
        json!({ "name": "p", "arguments": { "a": "1", "b": "" } })
    );
}

/// protocol:RS-02: what is said to be missing is in the data, whichever code the error has.
#[test]
fn a_missing_resource_is_named_in_the_data() {
    let data: ResourceNotFoundData = read(json!({ "uri": "file:///gone", "more": 1 }));
    assert_eq!(data.uri, "file:///gone");
    assert!(serde_json::from_value::<ResourceNotFoundData>(json!({ "reason": "other" })).is_err());
}

/// protocol:SM-07: modes of tool choice and reasons to stop are open sets.
#[test]
fn tool_choices_and_stop_reasons_are_open() {
    for mode in ["auto", "required", "none", "sometimes"] {
        let params: CreateMessageRequestParams =
            read(json!({ "messages": [], "maxTokens": 1, "toolChoice": { "mode": mode } }));
        assert_eq!(serde_json::to_value(&params).unwrap()["toolChoice"]["mode"], mode);
    }
    for reason in ["endTurn", "stopSequence", "maxTokens", "toolUse", "boredom"] {
        let result: CreateMessageResult = read(json!({
            "role": "assistant", "model": "m", "stopReason": reason, "content": { "type": "text", "text": "" },
        }));
        assert_eq!(serde_json::to_value(&result).unwrap()["stopReason"], reason);
    }
}

/// protocol:J-25: a value under a reserved key that is not what the specification defines fails nothing and is kept.
#[test]
fn odd_values_under_reserved_keys_are_kept() {
    let meta = json!({ "io.modelcontextprotocol/serverInfo": 7, "io.modelcontextprotocol/unheard-of": [1], "traceparent": {} });
    let result: CallToolResult = read(json!({ "content": [], "_meta": meta }));
    assert_eq!(serde_json::to_value(&result).unwrap()["_meta"], meta);
}
