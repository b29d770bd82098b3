//! What the types answer when they are asked about what they hold.

use mcp_model::{
    ContentBlock, InputRequiredResult, ProgressNotificationParams, ProtocolVersion, ResourceContents,
    TaskSupport, Tool, UnsupportedProtocolVersionData,
};
use serde_json::json;

fn tool(json: serde_json::Value) -> Tool {
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
