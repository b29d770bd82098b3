use proptest::prelude::*;

use super::*;

/// protocol:J-23
#[test]
fn keys_follow_the_grammar() {
    let check = |key: &str, expected: bool| assert_eq!(is_key(key), expected, "{key:?}");
    check("", true);
    check("a", true);
    check("0", true);
    check("progressToken", true);
    check("a_b.c-d", true);
    check("com.example/", true);
    check("com.example/name", true);
    check("a/b", true);
    check("x-1.y-2/0", true);
    check("_a", false);
    check("a_", false);
    check("-", false);
    check("a b", false);
    check("\u{e9}", false);
    check("/", false);
    check("/a", false);
    check("a//b", false);
    check("a/b/c", false);
    check("1a.b/c", false);
    check("a-.b/c", false);
    check("a..b/c", false);
    check(".a/c", false);
    check("a./c", false);
    check("a_b/c", false);
}

/// protocol:J-24, where 2025-06-18 had another rule than its successors.
#[test]
fn reserved_prefixes_depend_on_the_revision() {
    use ProtocolVersion as V;
    let check = |key: &str, reserved: [bool; 5]| {
        let found = V::ALL.map(|version| is_reserved(key, version));
        assert_eq!(found, reserved, "{key}");
    };
    check("io.modelcontextprotocol/x", [false, false, false, true, true]);
    check("dev.mcp/", [false, false, false, true, true]);
    check("com.mcp.tools/x", [false, false, true, true, true]);
    check("org.modelcontextprotocol.api/x", [false, false, true, true, true]);
    check("mcp.dev/x", [false, false, true, false, false]);
    check("modelcontextprotocol.io/x", [false, false, true, false, false]);
    check("tools.mcp.com/x", [false, false, true, true, true]);
    check("com.example.mcp/x", [false; 5]);
    check("mcp/x", [false; 5]);
    check("example.com/x", [false; 5]);
    check("progressToken", [true; 5]);
    check("traceparent", [false, false, false, false, true]);
    check("tracestate", [false, false, false, false, true]);
    check("baggage", [false, false, false, false, true]);
    check("mcp", [false; 5]);
}

#[test]
fn every_key_constant_obeys_the_grammar_and_is_reserved() {
    for key in [
        PROGRESS_TOKEN,
        PROTOCOL_VERSION,
        CLIENT_CAPABILITIES,
        CLIENT_INFO,
        LOG_LEVEL,
        SERVER_INFO,
        SUBSCRIPTION_ID,
        RELATED_TASK,
        MODEL_IMMEDIATE_RESPONSE,
        RELATED_TASK_IDS,
        TRACEPARENT,
        TRACESTATE,
        BAGGAGE,
        TASKS_EXTENSION,
    ] {
        assert!(is_key(key) && is_reserved(key, ProtocolVersion::LATEST), "{key}");
    }
}

/// protocol:J-24, protocol:J-27
#[test]
fn applications_set_their_own_keys_and_a_few_reserved_ones() {
    let check = |key: &str, expected: bool| {
        assert_eq!(is_for_application(key, ProtocolVersion::LATEST), expected, "{key}");
    };
    check("com.example/a", true);
    check("plain", true);
    check(PROGRESS_TOKEN, true);
    check(LOG_LEVEL, true);
    check(TRACEPARENT, true);
    check(PROTOCOL_VERSION, false);
    check(CLIENT_CAPABILITIES, false);
    check(CLIENT_INFO, false);
    check("dev.mcp/x", false);
    check("not a key", false);
}

/// protocol:L-25
#[test]
fn extension_ids_need_a_prefix() {
    assert!(is_extension_id(TASKS_EXTENSION));
    assert!(!is_extension_id("tasks"));
    assert!(!is_extension_id("/tasks"));
}

/// protocol:J-27: keys that the library sets win over the caller's.
#[test]
fn filling_keeps_what_is_set() {
    let mut ours = MetaObject::new();
    ours.insert(PROTOCOL_VERSION, &"2026-07-28").unwrap();
    let theirs =
        RawValue::from_string(format!(r#"{{"{PROTOCOL_VERSION}":"x","com.example/a":1.0}}"#)).unwrap();
    ours.fill_from(MetaObject::from_raw(&theirs).unwrap());
    assert_eq!(ours.read::<String>(PROTOCOL_VERSION).as_deref(), Some("2026-07-28"));
    assert_eq!(ours.get("com.example/a").unwrap().get(), "1.0");
}

/// protocol:J-28: an illegible value is an absent one.
#[test]
fn reading_tolerates_every_shape() {
    for raw in ["{}", "5", "[]", "null", r#"{"progressToken":null}"#, r#"{"progressToken":1.5}"#] {
        let raw = RawValue::from_string(raw.into()).unwrap();
        assert!(read::<ProgressToken>(Some(&raw), PROGRESS_TOKEN).is_none());
    }
    assert!(read::<ProgressToken>(None, PROGRESS_TOKEN).is_none());
}

/// The slow twin: the grammar written as the specification words it, one character at a time.
fn is_key_by_the_letter(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let (prefix, name) = match characters.iter().position(|c| *c == '/') {
        Some(slash) => (Some(&characters[..slash]), &characters[slash + 1..]),
        None => (None, &characters[..]),
    };
    let label = |label: &[char]| {
        !label.is_empty()
            && label[0].is_ascii_alphabetic()
            && label[label.len() - 1].is_ascii_alphanumeric()
            && label.iter().all(|c| c.is_ascii_alphanumeric() || *c == '-')
    };
    let named = name.is_empty()
        || (name[0].is_ascii_alphanumeric()
            && name[name.len() - 1].is_ascii_alphanumeric()
            && name.iter().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)));
    named && prefix.is_none_or(|prefix| prefix.split(|c| *c == '.').all(label))
}

proptest! {
    #[test]
    fn the_grammar_agrees_with_its_slow_twin(key in "[a1._/\u{e9}-]{0,8}") {
        prop_assert_eq!(is_key(&key), is_key_by_the_letter(&key));
    }
}
