use super::*;
use crate::{
    AudioContent, ContentBlock, SamplingMessageContentBlock, TextContent, ToolResultContent, ToolUseContent,
};

fn call(id: &str) -> SamplingMessageContentBlock {
    let input = RawValue::from_string("{}".into()).unwrap();
    SamplingMessageContentBlock::ToolUse(ToolUseContent::new(id, "t", input).unwrap())
}

fn outcome(id: &str) -> SamplingMessageContentBlock {
    SamplingMessageContentBlock::ToolResult(ToolResultContent::new(id, vec![ContentBlock::text("x")]))
}

fn text() -> SamplingMessageContentBlock {
    SamplingMessageContentBlock::text("x")
}

/// protocol:SM-06
#[test]
fn tool_calls_and_outcomes_come_in_pairs() {
    use Role::{Assistant, User};
    let check = |messages: Vec<(Role, Vec<SamplingMessageContentBlock>)>,
                 expected: Result<(), ToolMessageFault>| {
        let messages: Vec<_> =
            messages.into_iter().map(|(role, blocks)| SamplingMessage::new(role, blocks)).collect();
        assert_eq!(tool_rules::check(&messages), expected, "{messages:?}");
    };
    let ask = |ids: &[&str]| (Assistant, ids.iter().map(|id| call(id)).collect::<Vec<_>>());
    let answer = |ids: &[&str]| (User, ids.iter().map(|id| outcome(id)).collect::<Vec<_>>());
    check(vec![], Ok(()));
    check(vec![(User, vec![text()])], Ok(()));
    check(
        vec![(User, vec![text()]), ask(&["a", "b"]), answer(&["b", "a"]), (Assistant, vec![text()])],
        Ok(()),
    );
    check(vec![ask(&["a"]), answer(&["a"]), ask(&["a"]), answer(&["a"])], Ok(()));
    check(vec![ask(&["a"])], Err(ToolMessageFault::Unanswered { message: 0 }));
    check(vec![ask(&["a", "b"]), answer(&["a"])], Err(ToolMessageFault::Unanswered { message: 0 }));
    check(vec![ask(&["a"]), (User, vec![text()])], Err(ToolMessageFault::Unanswered { message: 0 }));
    check(vec![ask(&["a"]), (User, vec![outcome("a"), text()])], Err(ToolMessageFault::Mixed { message: 1 }));
    check(vec![ask(&["a"]), (Assistant, vec![outcome("a")])], Err(ToolMessageFault::Mixed { message: 1 }));
    check(vec![answer(&["a"])], Err(ToolMessageFault::Unasked { message: 0 }));
    check(vec![ask(&["a"]), answer(&["a", "c"])], Err(ToolMessageFault::Unasked { message: 1 }));
    check(vec![ask(&["a"]), answer(&["a"]), answer(&["a"])], Err(ToolMessageFault::Unasked { message: 2 }));
}

/// protocol:SM-05: a list never goes to a revision that has none.
#[test]
fn results_are_cut_to_the_revision_or_refused() {
    let audio = || SamplingMessageContentBlock::Audio(AudioContent::new("", "audio/wav"));
    let check = |content: SamplingContent, expected: [&str; 5]| {
        for (version, expected) in ProtocolVersion::ALL.into_iter().zip(expected) {
            let cut = CreateMessageResult::new("m", content.clone()).for_version(version);
            let cut = match cut {
                Ok(CreateMessageResult { content: SamplingContent::Single(_), .. }) => "single",
                Ok(CreateMessageResult { content: SamplingContent::List(_), .. }) => "list",
                Err(_) => "refused",
            };
            assert_eq!(cut, expected, "{content:?} under {version}");
        }
    };
    check(text().into(), ["single"; 5]);
    check(vec![text()].into(), ["single", "single", "single", "list", "list"]);
    check(vec![text(), text()].into(), ["refused", "refused", "refused", "list", "list"]);
    check(Vec::new().into(), ["refused", "refused", "refused", "list", "list"]);
    check(audio().into(), ["refused", "single", "single", "single", "single"]);
    check(call("a").into(), ["refused", "refused", "refused", "single", "single"]);
    let unknown: SamplingMessageContentBlock = serde_json::from_str(r#"{"type":"video"}"#).unwrap();
    check(unknown.into(), ["refused"; 5]);
}

#[test]
fn members_of_later_revisions_are_left_out_of_blocks() {
    let mut block = TextContent::new("x");
    block.meta = Some(RawValue::from_string("{}".into()).unwrap());
    block.annotations =
        serde_json::from_str(r#"{"priority":1,"lastModified":"2025-01-12T15:00:58Z"}"#).unwrap();
    let result = CreateMessageResult::new("m", SamplingMessageContentBlock::Text(block));
    let written = |version| serde_json::to_string(&result.clone().for_version(version).unwrap()).unwrap();
    assert!(!written(ProtocolVersion::V2025_03_26).contains("_meta"));
    assert!(!written(ProtocolVersion::V2025_03_26).contains("lastModified"));
    assert!(written(ProtocolVersion::V2025_06_18).contains("_meta"));
    assert!(written(ProtocolVersion::V2025_06_18).contains("lastModified"));
}

/// protocol:SM-06
#[test]
fn a_breach_and_the_use_of_tools_are_seen_in_the_request() {
    let read = |members: &str| {
        let json = format!(r#"{{"messages":[],"maxTokens":1{members}}}"#);
        serde_json::from_str::<CreateMessageRequestParams>(&json).unwrap()
    };
    for (members, uses_tools) in
        [("", false), (r#","tools":[]"#, true), (r#","toolChoice":{"mode":"none"}"#, true)]
    {
        assert_eq!(read(members).uses_tools(), uses_tools, "{members}");
    }
    for (message, said) in [
        (vec![outcome("a"), text()], "message 1 mixes tool results with other content"),
        (vec![outcome("a"), outcome("b")], "message 1 has tool results without calls"),
        (vec![text()], "message 0 has tool calls without results"),
    ] {
        let mut params = read("");
        params.messages.push(SamplingMessage::new(Role::Assistant, call("a")));
        params.messages.push(SamplingMessage::new(Role::User, message));
        assert_eq!(params.check_tool_messages().unwrap_err().to_string(), said);
    }
}

#[test]
fn what_cannot_be_said_under_a_revision_is_named_with_it() {
    let version = ProtocolVersion::V2024_11_05;
    let error =
        CreateMessageResult::new("m", SamplingMessageContentBlock::Audio(AudioContent::new("", "audio/wav")))
            .for_version(version)
            .unwrap_err();
    assert_eq!(error.version(), version);
    assert_eq!(error.to_string(), "audio content cannot be sent under protocol version 2024-11-05");
}

/// protocol:SM-03: the limit is never read as more than it says.
#[test]
fn the_token_limit_is_required_and_never_grows() {
    let read = |limit: &str| {
        let json = format!(r#"{{"messages":[],"maxTokens":{limit}}}"#);
        serde_json::from_str::<CreateMessageRequestParams>(&json).map(|params| params.max_tokens).ok()
    };
    assert_eq!(read("100"), Some(100));
    assert_eq!(read("100.9"), Some(100));
    assert_eq!(read("1e3"), Some(1000));
    assert_eq!(read("-1"), Some(0));
    assert_eq!(read("null"), None);
    assert_eq!(read("\"100\""), None);
    assert!(serde_json::from_str::<CreateMessageRequestParams>(r#"{"messages":[]}"#).is_err());
}

/// protocol:SM-04
#[test]
fn hints_are_tried_in_order_as_parts_of_names() {
    let pick = |hints: &str, models: &[&'static str]| {
        let preferences: ModelPreferences = serde_json::from_str(&format!(r#"{{"hints":{hints}}}"#)).unwrap();
        preferences.hinted(models)
    };
    let models = ["big-2", "small-1", "big-1"];
    assert_eq!(pick(r#"[{"name":"huge"},{"name":"small"},{"name":"big"}]"#, &models), Some("small-1"));
    assert_eq!(pick(r#"[{"name":"big"}]"#, &models), Some("big-2"));
    assert_eq!(pick(r#"[{}, 7, {"name":""}]"#, &models), None);
    assert_eq!(pick("null", &models), None);
}

/// protocol:10.27
#[test]
fn unknown_words_do_not_fail_the_request() {
    let json = r#"{"messages":[{"role":"narrator","content":{"type":"video"}}],"maxTokens":1,
        "includeContext":"everything","toolChoice":{"mode":"perhaps"},"modelPreferences":5,"tools":[{"name":"t"}]}"#;
    let params: CreateMessageRequestParams = serde_json::from_str(json).unwrap();
    assert!(!params.messages[0].role.is_known());
    assert!(!params.include_context.as_ref().unwrap().is_known());
    assert_eq!(params.tools.as_ref().unwrap().rejected().len(), 1);
    assert!(params.uses_tools());
    params.check_tool_messages().unwrap();
}
