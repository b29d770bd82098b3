use std::fmt::Debug;

use proptest::prelude::*;
use serde::de::DeserializeOwned;

use super::*;
use crate::json::{read, read_directly};
use crate::{
    Annotations, CancelledNotificationParams, CompleteResult, CreateMessageRequestParams,
    CreateMessageResult, CreateTaskResult, DiscoverResult, EmptyResult, GetPromptResult, GetTaskResult, Icon,
    Implementation, InputRequest, InputRequiredResult, ListPromptsResult, ListResourcesResult,
    ListTasksResult, Prompt, PromptMessage, Resource, ServerCapabilities,
    SubscriptionsAcknowledgedNotificationParams, Tool,
};

fn agree<T: DeserializeOwned + Debug>(text: &str) {
    let [read, expected] =
        [read::<T>(text), read_directly::<T>(text)].map(|read| read.map(|value| format!("{value:?}")));
    assert_eq!(read.ok(), expected.ok(), "{}: {text}", std::any::type_name::<T>());
}

fn all_agree(text: &str) {
    agree::<Annotations>(text);
    agree::<CancelledNotificationParams>(text);
    agree::<CompleteResult>(text);
    agree::<CreateMessageRequestParams>(text);
    agree::<CreateMessageResult>(text);
    agree::<CreateTaskResult>(text);
    agree::<DiscoverResult>(text);
    agree::<EmptyResult>(text);
    agree::<GetPromptResult>(text);
    agree::<GetTaskResult>(text);
    agree::<Icon>(text);
    agree::<Implementation>(text);
    agree::<InputRequest>(text);
    agree::<InputRequiredResult>(text);
    agree::<ListPromptsResult>(text);
    agree::<ListResourcesResult>(text);
    agree::<ListTasksResult>(text);
    agree::<Prompt>(text);
    agree::<PromptMessage>(text);
    agree::<Resource>(text);
    agree::<ServerCapabilities>(text);
    agree::<SubscriptionsAcknowledgedNotificationParams>(text);
    agree::<Tool>(text);
}

#[test]
fn every_type_is_read_as_serde_json_reads_it_in_one_pass() {
    for text in [
        r#"{"name":"n","version":"1","title":null,"icons":[{"src":"data:,"},7],"websiteUrl":"x"}"#,
        r#" { "name" : "\u0061\n" , "version" : "1" , "more" : [ { } ] } "#,
        r#"{"supportedVersions":["2026-07-28",5],"capabilities":{"tools":true},"ttlMs":-1,"resultType":3}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},{}],"description":"d"}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"maxTokens":5.5,"temperature":1e3}"#,
        r#"{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text"}}],"maxTokens":1,"stopSequences":["a","\""]}"#,
        r#"{"task":{"taskId":"t","status":"working","ttl":null},"_meta":{"a":1}}"#,
        r#"{"tasks":[{"taskId":"t","status":"odd"},{"taskId":5}],"nextCursor":""}"#,
        r#"{"completion":{"values":["a",1],"total":3.5,"hasMore":"x"}}"#,
        r#"{"inputRequests":{"a":{"method":"roots/list"}},"requestState":"s","resultType":"input_required"}"#,
        r#"{"method":"elicitation/create","params":{"message":"m"}}"#,
        r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a"]}}"#,
        r#"{"uri":"u","name":"n","size":1e2,"annotations":{"audience":["user",1],"priority":"x"},"_meta":null}"#,
        r#"{"name":"n","inputSchema":{"type":"object"},"annotations":{"title":"t","readOnlyHint":1}}"#,
        r#"{"name":"n","name":"m","version":"1"}"#,
        r#"{"name":"\ud800","version":"1"}"#,
        r#"{"name":"n","version":"1"} x"#,
        r#"{"name":"n","version":"1",}"#,
        r#"{"name":"n","version":"1","odd":NaN}"#,
        r#"{"name":"n""#,
        "{}",
        "[]",
        r#"["n","1"]"#,
        "null",
        "7",
        "",
    ] {
        all_agree(text);
    }
}

#[test]
fn an_error_names_the_member_that_it_is_about() {
    let check = |text: &str, expected: &str| {
        assert_eq!(read::<Implementation>(text).unwrap_err().to_string(), expected, "{text}");
    };
    check(r#"{"name":7,"version":"1"}"#, "`name`: invalid type: integer `7`, expected a string");
    check(r#"{"name":"n"}"#, "missing field `version`");
    check("{\"name\":\"n\"\n,,}", "key must be a string at line 2 column 2");
}

/// The limit of lists: below, at, above.
#[test]
fn lists_in_which_each_item_counts_are_capped() {
    let count =
        |items: usize| read::<Vec<u8>>(&format!("[{}]", vec!["7"; items].join(","))).map(|list| list.len());
    assert_eq!(count(MAX_LIST_ITEMS - 1).unwrap(), MAX_LIST_ITEMS - 1);
    assert_eq!(count(MAX_LIST_ITEMS).unwrap(), MAX_LIST_ITEMS);
    assert!(count(MAX_LIST_ITEMS + 1).unwrap_err().to_string().contains("100000"));
}

fn object() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "name",
        "title",
        "version",
        "description",
        "icons",
        "src",
        "sizes",
        "mimeType",
        "uri",
        "size",
        "annotations",
        "audience",
        "priority",
        "role",
        "content",
        "messages",
        "maxTokens",
        "model",
        "_meta",
        "inputSchema",
        "task",
        "taskId",
        "status",
        "ttl",
        "result",
        "resultType",
        "nextCursor",
        "tasks",
        "method",
        "params",
        "capabilities",
        "tools",
        "prompts",
        "resources",
        "requestId",
        "odd",
    ]);
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "-1",
        "2.5",
        "1e400",
        "\"\"",
        "\"user\"",
        "\"working\"",
        "\"a\\nb\"",
        "\"\\ud800\"",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 24, 6, move |inner| {
        let member = (name.clone(), inner.clone()).prop_map(|(name, value)| format!("\"{name}\": {value}"));
        prop_oneof![
            4 => prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(" ,"))),
            1 => prop::collection::vec(inner, 0..3).prop_map(|items| format!("[ {}]", items.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn every_type_is_read_as_serde_json_reads_it_whatever_the_object_holds(text in object()) {
        all_agree(&text);
    }
}
