use super::*;

fn read(json: &str) -> ContentBlock {
    serde_json::from_str(json).unwrap()
}

/// protocol:TL-07
#[test]
fn known_kinds_are_typed_wherever_the_type_stands() {
    let check = |json: &str, kind: &str| {
        let block = read(json);
        assert!(!matches!(block, ContentBlock::Unknown(_)), "{json}");
        assert_eq!(block.kind(), Some(kind), "{json}");
        let written = serde_json::to_string(&block).unwrap();
        assert_eq!(read(&written).kind(), Some(kind));
    };
    check(r#"{"type":"text","text":""}"#, "text");
    check(r#"{"text":"late","annotations":{"priority":1},"type":"text"}"#, "text");
    check(r#"{"type":"image","data":"","mimeType":"image/png"}"#, "image");
    check(r#"{"mimeType":"image/png","type":"image","data":""}"#, "image");
    check(r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#, "audio");
    check(r#"{"type":"resource_link","uri":"a:b","name":"n","size":1.0}"#, "resource_link");
    check(r#"{"type":"resource","resource":{"uri":"a:b","text":""}}"#, "resource");
    check(r#"{"resource":{"uri":"a:b","blob":""},"type":"resource","x":[{}]}"#, "resource");
}

#[test]
fn every_member_of_every_kind_comes_back() {
    const SHARED: [&str; 3] = [
        r#""type":"text","text":"t""#,
        r#""type":"image","data":"AA==","mimeType":"image/png""#,
        r#""type":"audio","data":"AA==","mimeType":"audio/wav""#,
    ];
    const HINTS: &str =
        r#""annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}"#;
    const META: &str = r#""_meta":{"k":[1]}"#;
    fn check<T: Serialize + serde::de::DeserializeOwned>(members: &[&str]) {
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        let written = |json: &str| serde_json::to_value(serde_json::from_str::<T>(json).unwrap()).unwrap();
        let json = format!("{{{}}}", members.join(","));
        assert_eq!(written(&json), value(&json));
        // And `null` is as good as nothing.
        let nulls = format!("{{{},\"annotations\":null,\"_meta\":null}}", members[0]);
        assert_eq!(written(&nulls), value(&format!("{{{}}}", members[0])));
    }
    for block in SHARED {
        check::<ContentBlock>(&[block, HINTS, META]);
        check::<SamplingMessageContentBlock>(&[block, HINTS, META]);
        let read = serde_json::from_str(&format!("{{{block}}}")).unwrap();
        assert!(!matches!(read, SamplingMessageContentBlock::Unknown(_)), "{block}");
    }
    for block in [
        r#""type":"resource_link","uri":"a:b","name":"n","title":"t","description":"d","mimeType":"x/y","size":7,"icons":[{"src":"a:i"}]"#,
        r#""type":"resource","resource":{"uri":"a:b","text":"t","mimeType":"x/y","_meta":{"k":1}}"#,
    ] {
        check::<ContentBlock>(&[block, HINTS, META]);
    }
    for block in [
        r#""type":"tool_use","id":"1","name":"n","input":{"a":[]}"#,
        r#""type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}],"structuredContent":{"a":1},"isError":true"#,
    ] {
        check::<SamplingMessageContentBlock>(&[block, META]);
    }
}

/// field:FR-123: unknown kinds stay as they came.
#[test]
fn unknown_kinds_are_kept_as_they_came() {
    for json in [
        r#"{"type":"chart","data":{"b":1,"a":1e400},"text":[1.0]}"#,
        r#"{"data":{"b":1,"a":1e400},"type":"chart","text":[1.0]}"#,
        r#"{"type":"tool_use","id":"1","name":"n","input":{}}"#,
        r#"{"text":"no type"}"#,
        r#"{"type":5,"text":"x"}"#,
        r#"{"type":-5}"#,
        r#"{"type":0.5}"#,
        r#"{"type":true}"#,
        r#"{"type":null}"#,
        r#"{"type":["text"]}"#,
        r#"{"type":{"text":1}}"#,
        "{}",
        "[1,2]",
        "\"text\"",
        "null",
        "1",
        "-1",
        "1.5",
        "true",
    ] {
        let block = read(json);
        assert!(matches!(block, ContentBlock::Unknown(_)), "{json}");
        assert_eq!(serde_json::to_string(&block).unwrap(), json);
    }
}

#[test]
fn a_malformed_block_says_what_is_wrong_and_keeps_its_members() {
    let check = |json: &str, expected: &str| {
        let ContentBlock::Unknown(block) = read(json) else { panic!("{json} was read as a known kind") };
        assert!(block.problem().is_some_and(|problem| problem.contains(expected)), "{json}: {block:?}");
        let before: serde_json::Value = serde_json::from_str(json).unwrap();
        let after: serde_json::Value = serde_json::from_str(block.raw().get()).unwrap();
        assert_eq!(before, after, "{json}");
    };
    check(r#"{"type":"text"}"#, "text");
    check(r#"{"type":"text","text":null}"#, "text");
    check(r#"{"type":"text","text":{"a":1},"extra":1,"_meta":{}}"#, "text");
    check(r#"{"type":"image","data":""}"#, "mimeType");
    check(r#"{"type":"image","mimeType":"image/png","data":7}"#, "data");
    check(r#"{"type":"resource_link","uri":"a:b","title":"t"}"#, "name");
    check(r#"{"type":"resource_link","name":"n"}"#, "uri");
    check(r#"{"type":"resource"}"#, "resource");
    check(r#"{"type":"resource_link","uri":"a:b","description":"d","icons":[],"size":1}"#, "name");
    let twice = read(r#"{"type":"text","text":"a","type":"image"}"#);
    assert!(matches!(twice, ContentBlock::Unknown(block) if block.problem().is_some()));
}

#[test]
fn sampling_blocks_know_tools() {
    let read = |json: &str| serde_json::from_str::<SamplingMessageContentBlock>(json).unwrap();
    let block = read(r#"{"type":"tool_use","id":"1","name":"n","input":{"a":[]},"_meta":{"k":1}}"#);
    let SamplingMessageContentBlock::ToolUse(call) = block else { panic!("not a tool use") };
    assert_eq!(call.input.get(), r#"{"a":[]}"#);
    let block = read(r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"t"}]}"#);
    let SamplingMessageContentBlock::ToolResult(outcome) = block else { panic!("not a tool result") };
    assert_eq!(outcome.content.len(), 1);
    assert!(outcome.structured_content.is_none());
    let block = read(r#"{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":null}"#);
    let SamplingMessageContentBlock::ToolResult(outcome) = block else { panic!("not a tool result") };
    assert_eq!(outcome.structured_content.unwrap().get(), "null");
    let block = read(r#"{"type":"tool_result","toolUseId":"1","isError":true}"#);
    let SamplingMessageContentBlock::ToolResult(outcome) = block else { panic!("not a tool result") };
    assert_eq!((outcome.is_error, outcome.content.len()), (Some(true), 0));
    for json in [
        r#"{"type":"tool_use","id":"1","name":"n","input":[]}"#,
        r#"{"type":"tool_use","id":"1","name":"n"}"#,
        r#"{"type":"tool_use","id":"1","input":{}}"#,
        r#"{"type":"tool_use","id":1,"name":"n","input":{}}"#,
        r#"{"type":"tool_result","toolUseId":"1","content":5}"#,
        r#"{"type":"tool_result","toolUseId":1,"content":[]}"#,
        r#"{"type":"tool_result","toolUseId":"1","content":[],"isError":"yes"}"#,
        r#"{"type":"resource_link","uri":"a:b","name":"n"}"#,
    ] {
        assert!(matches!(read(json), SamplingMessageContentBlock::Unknown(_)), "{json}");
    }
}

#[test]
fn lists_of_blocks_are_capped() {
    let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    let read = |json: &str| serde_json::from_str::<Blocks>(json).map(|blocks| blocks.0.len());
    assert_eq!(read(&list(MAX_CONTENT_BLOCKS - 1)).unwrap(), MAX_CONTENT_BLOCKS - 1);
    assert_eq!(read(&list(MAX_CONTENT_BLOCKS)).unwrap(), MAX_CONTENT_BLOCKS);
    let error = read(&list(MAX_CONTENT_BLOCKS + 1)).unwrap_err().to_string();
    assert!(error.contains("100000"), "{error}");
    let error = read("5").unwrap_err().to_string();
    assert!(error.contains("expected a list of content blocks"), "{error}");
}
