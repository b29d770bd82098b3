//! What the types answer when they are asked about what they hold.

use mcp_model::{
    CallToolResult, ClientCapabilities, ContentBlock, DiscoverResult, GetTaskResult, Implementation,
    InputRequiredResult, List, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListTasksResult, ListToolsResult, MetaObject, Page, ProgressNotificationParams, ProgressToken, Prompt,
    PromptArgument, ProtocolVersion, Resource, ResourceContents, ResourceLink, ResourceTemplate,
    SamplingCapability, SamplingContent, SamplingMessageContentBlock, Settings, SubscriptionFilter,
    TaskSupport, Tool, UnsupportedProtocolVersionData, inspect_result_type,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn tool(json: Value) -> Tool {
    let mut whole = json!({ "name": "n", "inputSchema": { "type": "object" } });
    whole.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

/// A title comes before one among the annotations, and both before the name.
#[test]
fn a_tool_is_shown_by_the_best_name_that_it_has() {
    for (members, shown) in [
        (json!({}), "n"),
        (json!({ "annotations": { "title": "a" } }), "a"),
        (json!({ "title": "t", "annotations": { "title": "a" } }), "t"),
        (json!({ "title": "t" }), "t"),
    ] {
        assert_eq!(tool(members.clone()).display_name(), shown, "{members}");
    }
}

/// People see the title where there is one.
#[test]
fn what_has_a_title_is_shown_by_it_and_the_rest_by_its_name() {
    fn check<T: DeserializeOwned>(shown: fn(&T) -> &str, mut members: Value) {
        members["name"] = json!("n");
        assert_eq!(shown(&serde_json::from_value(members.clone()).unwrap()), "n", "{members}");
        members["title"] = json!("t");
        assert_eq!(shown(&serde_json::from_value(members.clone()).unwrap()), "t", "{members}");
    }
    check(Implementation::display_name, json!({ "version": "1" }));
    check(Prompt::display_name, json!({}));
    check(PromptArgument::display_name, json!({}));
    check(Resource::display_name, json!({ "uri": "a:b" }));
    check(ResourceLink::display_name, json!({ "type": "resource_link", "uri": "a:b" }));
    check(ResourceTemplate::display_name, json!({ "uriTemplate": "a:{b}" }));
}

#[test]
fn a_page_tells_where_the_next_one_begins() {
    fn check<T: Page + DeserializeOwned>(items: &str) {
        for cursor in [None, Some("c")] {
            let page: T = serde_json::from_value(json!({ items: [], "nextCursor": cursor })).unwrap();
            assert_eq!(page.next_cursor(), cursor, "{items}");
        }
    }
    check::<ListPromptsResult>("prompts");
    check::<ListResourcesResult>("resources");
    check::<ListResourceTemplatesResult>("resourceTemplates");
    check::<ListTasksResult>("tasks");
    check::<ListToolsResult>("tools");
}

#[test]
fn an_argument_is_required_where_that_is_said() {
    for (required, expected) in [(json!(null), false), (json!(false), false), (json!(true), true)] {
        let argument: PromptArgument =
            serde_json::from_value(json!({ "name": "n", "required": required })).unwrap();
        assert_eq!(argument.is_required(), expected, "{required}");
    }
}

#[test]
fn a_list_is_taken_apart_and_made_of_its_items() {
    let list: List<u8> = serde_json::from_value(json!([1, "x", 2])).unwrap();
    assert_eq!(list.clone().into_items(), [1, 2]);
    assert_eq!(list.clone().into_iter().collect::<Vec<_>>(), [1, 2]);
    let (items, rejected) = list.into_parts();
    assert_eq!((items.as_slice(), rejected.len()), (&[1, 2][..], 1));
    for made in [List::from(items.clone()), items.into_iter().collect()] {
        assert_eq!((made.items(), made.rejected().len()), (&[1, 2][..], 0));
    }
}

#[test]
fn a_meta_object_gives_back_what_was_put_in() {
    let mut meta = MetaObject::new();
    assert!(meta.is_empty());
    meta.insert_raw("progressToken", serde_json::value::to_raw_value("t").unwrap());
    assert!(!meta.is_empty());
    assert_eq!(meta.progress_token(), Some(ProgressToken::from("t")));
    assert_eq!(meta.remove("progressToken").map(|raw| raw.get().to_owned()), Some("\"t\"".to_owned()));
    assert!(meta.is_empty() && meta.remove("progressToken").is_none());
}

#[test]
fn capabilities_are_declared_one_by_one() {
    for (sampling, written) in [
        (SamplingCapability::new(), json!({})),
        (SamplingCapability::new().with_tools(), json!({ "tools": {} })),
        (SamplingCapability::new().with_context(), json!({ "context": {} })),
        (SamplingCapability::new().with_context().with_tools(), json!({ "context": {}, "tools": {} })),
    ] {
        assert_eq!(serde_json::to_value(&sampling).unwrap(), written);
    }
    let declared: ClientCapabilities =
        serde_json::from_value(json!({ "extensions": { "a/b": { "c": 1 } } })).unwrap();
    assert!(declared.declares_extension("a/b") && !declared.declares_extension("a/c"));
    assert_eq!(declared.extensions["a/b"].as_str(), r#"{"c":1}"#);
    assert_eq!(Settings::empty().as_str(), "{}");
}

/// protocol:L-29
#[test]
fn a_discovered_server_says_its_name_in_the_metadata() {
    let result: DiscoverResult = serde_json::from_value(json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {},
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "n", "version": "1" } },
    }))
    .unwrap();
    assert_eq!(result.server_info().map(|info| info.name), Some("n".to_owned()));
}

#[test]
fn a_structured_result_is_read_as_a_type_or_says_why_not() {
    let read = |result: Value| serde_json::from_value::<CallToolResult>(result).unwrap();
    assert!(read(json!({ "content": [] })).structured::<Value>().is_none());
    let result = read(json!({ "content": [], "structuredContent": [1, 2] }));
    assert_eq!(result.structured::<Vec<u8>>().unwrap().unwrap(), [1, 2]);
    assert!(result.structured::<String>().unwrap().is_err());
}

#[test]
fn names_of_tools_are_conventional_up_to_128_plain_letters() {
    for (name, is_conventional) in [
        (String::new(), false),
        ("a".to_owned(), true),
        ("A-Z_0.9".to_owned(), true),
        ("a".repeat(128), true),
        ("a".repeat(129), false),
        ("two words".to_owned(), false),
        ("naïve".to_owned(), false),
        ("a/b".to_owned(), false),
    ] {
        assert_eq!(tool(json!({ "name": name })).has_conventional_name(), is_conventional, "{name:?}");
    }
}

#[test]
fn a_tool_that_says_nothing_of_tasks_takes_none() {
    for (members, expected) in [
        (json!({}), TaskSupport::Forbidden),
        (json!({ "execution": {} }), TaskSupport::Forbidden),
        (json!({ "execution": { "taskSupport": "optional" } }), TaskSupport::Optional),
        (json!({ "execution": { "taskSupport": "required" } }), TaskSupport::Required),
    ] {
        assert_eq!(tool(members.clone()).task_support(), expected, "{members}");
    }
}

/// What is left out is the worst that it may be.
#[test]
fn hints_that_a_tool_leaves_out_have_the_defaults_of_the_specification() {
    for (annotations, read_only, destructive, idempotent, open_world) in [
        (json!(null), false, true, false, true),
        (json!({}), false, true, false, true),
        (json!({ "readOnlyHint": true, "openWorldHint": false }), true, true, false, false),
        (json!({ "destructiveHint": false, "idempotentHint": true }), false, false, true, true),
    ] {
        let hints = tool(json!({ "annotations": annotations })).hints();
        let read = (hints.read_only, hints.destructive, hints.idempotent, hints.open_world);
        assert_eq!(read, (read_only, destructive, idempotent, open_world), "{annotations}");
    }
}

#[test]
fn a_filter_is_empty_where_nothing_is_selected() {
    for (filter, is_empty) in [
        (json!({}), true),
        (json!({ "toolsListChanged": false, "resourceSubscriptions": [], "taskIds": [] }), true),
        (json!({ "toolsListChanged": true }), false),
        (json!({ "promptsListChanged": true }), false),
        (json!({ "resourcesListChanged": true }), false),
        (json!({ "resourceSubscriptions": ["a:b"] }), false),
        (json!({ "taskIds": ["t"] }), false),
    ] {
        let read: SubscriptionFilter = serde_json::from_value(filter.clone()).unwrap();
        assert_eq!(read.is_empty(), is_empty, "{filter}");
    }
}

#[test]
fn a_refused_value_is_told_from_what_was_expected() {
    fn said<T: DeserializeOwned + std::fmt::Debug>(json: Value) -> String {
        serde_json::from_value::<T>(json).unwrap_err().to_string()
    }
    assert!(said::<List<u8>>(json!(5)).contains("expected a list"));
    assert!(said::<ProtocolVersion>(json!(5)).contains("expected a known protocol version"));
    assert_eq!(
        said::<ProtocolVersion>(json!("1999-01-01")),
        "unknown protocol version; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
    );
    assert!(said::<SamplingContent>(json!(5)).contains("expected a content block or a list of them"));
    assert!(said::<GetTaskResult>(json!({})).contains("no task: `taskId` or `status` is missing"));
    assert!(inspect_result_type("5").unwrap_err().to_string().contains("expected a result object"));
}

#[test]
fn progress_is_a_fraction_where_a_total_is_known() {
    for (progress, total, fraction) in [
        (1.0, Some(4.0), Some(0.25)),
        (5.0, Some(4.0), Some(1.0)),
        (-1.0, Some(4.0), Some(0.0)),
        (1.0, Some(0.0), None),
        (1.0, Some(-4.0), None),
        (1.0, None, None),
    ] {
        let mut params = ProgressNotificationParams::new(1_i64, progress);
        params.total = total;
        assert_eq!(params.fraction(), fraction, "{progress} of {total:?}");
    }
}

#[test]
fn the_newest_version_that_both_know_is_chosen_whatever_the_order() {
    let data: UnsupportedProtocolVersionData = serde_json::from_value(
        json!({ "supported": ["2025-03-26", "3000-01-01", "2025-11-25", "2024-11-05"] }),
    )
    .unwrap();
    assert_eq!(data.newest_supported(|_| true), Some(ProtocolVersion::V2025_11_25));
    let old = |version| version < ProtocolVersion::V2025_11_25;
    assert_eq!(data.newest_supported(old), Some(ProtocolVersion::V2025_03_26));
    assert_eq!(data.newest_supported(|_| false), None);
}

#[test]
fn contents_and_blocks_give_their_text_and_address_where_they_have_one() {
    for (contents, uri, text) in [
        (json!({ "uri": "a:b", "text": "t" }), Some("a:b"), Some("t")),
        (json!({ "uri": "a:b", "blob": "AA==" }), Some("a:b"), None),
        (json!({ "uri": "a:b" }), None, None),
    ] {
        let read: ResourceContents = serde_json::from_value(contents.clone()).unwrap();
        assert_eq!((read.uri(), read.as_text()), (uri, text), "{contents}");
    }
    let image: ContentBlock =
        serde_json::from_value(json!({ "type": "image", "data": "", "mimeType": "image/png" })).unwrap();
    assert_eq!(image.as_text(), None);
    assert_eq!(ContentBlock::text("t").as_text(), Some("t"));
    assert_eq!(SamplingMessageContentBlock::text("t").as_text(), Some("t"));
    let image = SamplingMessageContentBlock::deserialize(
        json!({ "type": "image", "data": "", "mimeType": "image/png" }),
    );
    assert_eq!(image.unwrap().as_text(), None);
}

/// A result that asks nothing and keeps nothing leads nowhere.
#[test]
fn a_result_that_requires_input_has_a_question_or_a_state() {
    for (result, is_valid) in [
        (json!({}), false),
        (json!({ "inputRequests": {} }), false),
        (json!({ "requestState": "" }), true),
        (json!({ "inputRequests": { "q": { "method": "roots/list" } } }), true),
    ] {
        let read: InputRequiredResult = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(read.is_valid(), is_valid, "{result}");
    }
}
