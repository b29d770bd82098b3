//! What `Debug` shows of data that people wrote or that is nobody's business: its size.

use std::collections::BTreeMap;

use mcp_model::{
    CallToolRequestParams, CallToolResult, CompleteRequestParams, ContentBlock, CreateMessageRequestParams,
    GetPromptRequestParams, GetTaskPayloadResult, GetTaskRequestParams, GetTaskResult, InputRequest,
    InputRequiredResult, ListToolsRequestParams, ListToolsResult, MetaObject, ProgressNotificationParams,
    ReadResourceRequestParams, RelatedTaskMetadata, ResourceContents, SamplingMessage,
    SubscribeRequestParams, SubscriptionFilter, Task, UpdateTaskRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

const SECRET: &str = "hunter2";

fn debug<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    let value: T = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    format!("{value:?} {value:#?}")
}

#[test]
fn debug_shows_sizes_in_place_of_content() {
    let params = r#"{"message":"hunter2"}"#;
    let question = format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
    let answered =
        r#""inputResponses":{"q":{"action":"accept","content":{"pin":"hunter2"}}},"requestState":"hunter2""#;
    for shown in [
        debug::<InputRequest>(&question),
        debug::<InputRequiredResult>(&format!(
            r#"{{"inputRequests":{{"q":{question}}},"requestState":"hunter2","resultType":"input_required"}}"#
        )),
        debug::<CallToolRequestParams>(&format!(r#"{{"name":"n","arguments":{params},{answered}}}"#)),
        debug::<GetPromptRequestParams>(&format!(
            r#"{{"name":"n","arguments":{{"a":"hunter2"}},{answered}}}"#
        )),
        debug::<ReadResourceRequestParams>(&format!(r#"{{"uri":"a:b",{answered}}}"#)),
        debug::<GetTaskResult>(&format!(
            r#"{{"taskId":"t","status":"completed","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",
                "ttlMs":1,"result":{params},"error":{params},"inputRequests":{{"q":{question}}}}}"#
        )),
        debug::<ContentBlock>(&format!(r#"{{"type":"chart","data":{params}}}"#)),
        debug::<ResourceContents>(&format!(r#"{{"uri":5,"data":{params}}}"#)),
        debug::<ListToolsResult>(&format!(r#"{{"tools":[{{"name":5,"x":{params}}}]}}"#)),
    ] {
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(shown.contains("bytes: "), "{shown}");
    }
    let task = r#"{"taskId":"hunter2","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":null}"#;
    for (shown, said) in [
        (debug::<Task>(task), "Task { task_id_bytes: 7, status: Working,"),
        (debug::<RelatedTaskMetadata>(r#"{"taskId":"hunter2"}"#), "RelatedTaskMetadata { task_id_bytes: 7 }"),
        (debug::<SubscriptionFilter>(r#"{"taskIds":["hunter2"]}"#), "task_ids: Some(1) }"),
    ] {
        assert!(shown.contains(said) && !shown.contains(SECRET), "{shown}");
    }
    let meta = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"hunter2"}}"#;
    let typed = r#""ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"pin","value":"hunter2"}"#;
    for shown in [
        debug::<GetTaskRequestParams>(&format!(r#"{{"taskId":"t",{meta}}}"#)),
        debug::<GetTaskPayloadResult>(r#"{"content":[{"type":"text","text":"hunter2"}]}"#),
        debug::<CompleteRequestParams>(&format!(
            r#"{{{typed},"context":{{"arguments":{{"a":"hunter2"}}}},{meta}}}"#
        )),
        debug::<CallToolResult>(&format!(r#"{{"content":[],{meta}}}"#)),
        debug::<CreateMessageRequestParams>(&format!(
            r#"{{"messages":[],"maxTokens":1,"metadata":{{"k":"hunter2"}},{meta}}}"#
        )),
        debug::<ListToolsRequestParams>(&format!(r#"{{"cursor":"c",{meta}}}"#)),
        debug::<ListToolsResult>(&format!(
            r#"{{"tools":[{{"name":"n","inputSchema":{{"type":"object"}},{meta}}}],{meta}}}"#
        )),
        debug::<ProgressNotificationParams>(&format!(r#"{{"progressToken":1,"progress":1,{meta}}}"#)),
        debug::<SubscribeRequestParams>(&format!(r#"{{"uri":"a:b",{meta}}}"#)),
        debug::<ContentBlock>(&format!(r#"{{"type":"text","text":"t",{meta}}}"#)),
        debug::<SamplingMessage>(
            r#"{"role":"assistant","content":{"type":"tool_use","id":"i","name":"n","input":{"pin":"hunter2"}}}"#,
        ),
        debug::<MetaObject>(r#"{"a/b":"hunter2"}"#),
    ] {
        assert!(!shown.contains(SECRET), "{shown}");
        assert!(shown.contains(" bytes"), "{shown}");
    }
    let mut responses = BTreeMap::new();
    responses.insert("q".to_owned(), to_raw_value(SECRET).unwrap());
    let update = UpdateTaskRequestParams::new("t", responses);
    assert!(!format!("{update:?}").contains(SECRET), "{update:?}");
    assert!(format!("{update:?}").contains("task_id_bytes: 1"), "{update:?}");
}
