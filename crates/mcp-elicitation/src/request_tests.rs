//! Requests and answers as a whole; the schema has tests of its own.

use serde_json::{Value, json};

use crate::{
    ElicitAction, ElicitRequest, ElicitResult, Modes, RequestRules, Revision, Rule, UrlPolicy, UrlRequest,
};

const NEW: Revision = Revision::V2025_11_25;

fn form(mut extra: Value) -> String {
    let mut params = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    params.as_object_mut().unwrap().append(extra.as_object_mut().unwrap());
    params.to_string()
}

fn url(mut extra: Value) -> String {
    let mut params = json!({"mode": "url", "message": "m", "elicitationId": "e1", "url": "https://example.com/x?token=s3cret"});
    params.as_object_mut().unwrap().append(extra.as_object_mut().unwrap());
    params.to_string()
}

fn violation(params: &str, revision: Revision) -> Option<(String, Rule)> {
    let error = ElicitRequest::parse(params, revision).err()?;
    assert_eq!(error.wire_code(), -32602);
    assert!(!error.wire_message().contains('\n'));
    let first = &error.violations()[0];
    Some((first.pointer.clone(), first.rule))
}

fn parse_url(params: &str, revision: Revision) -> UrlRequest {
    match ElicitRequest::parse(params, revision).unwrap() {
        ElicitRequest::Url(request) => request,
        ElicitRequest::Form(_) => panic!("a url request"),
    }
}

// protocol:E-05 seed:S-14
#[test]
fn a_missing_mode_is_a_form_and_an_unknown_one_is_refused() {
    for params in [form(json!({})), form(json!({"mode": null})), form(json!({"mode": "form"}))] {
        for revision in Revision::ALL {
            assert!(
                matches!(ElicitRequest::parse(&params, revision), Ok(ElicitRequest::Form(_))),
                "{params}"
            );
        }
    }
    for mode in [json!("URL"), json!("Form"), json!(""), json!("voice"), json!(1), json!(["url"]), json!({})]
    {
        assert_eq!(
            violation(&form(json!({"mode": mode})), NEW),
            Some(("/mode".into(), Rule::Mode)),
            "{mode}"
        );
    }
}

// seed:S-15
#[test]
fn the_message_is_a_string_with_something_in_it() {
    let cases = [
        (json!(""), Rule::Value),
        (json!("  \n\t "), Rule::Value),
        (json!({"text": "x"}), Rule::Type),
        (json!(5), Rule::Type),
        (json!(null), Rule::Type),
        (json!("m".repeat(4097)), Rule::Limit),
    ];
    for (message, rule) in cases {
        for params in [form(json!({"message": message})), url(json!({"message": message}))] {
            assert_eq!(violation(&params, NEW), Some(("/message".into(), rule)), "{message}");
        }
    }
    let missing = r#"{"requestedSchema": {"type": "object", "properties": {}}}"#;
    assert_eq!(violation(missing, NEW), Some(("/message".into(), Rule::Required)));
    let longest = ElicitRequest::parse(&form(json!({"message": "é".repeat(4096)})), NEW).unwrap();
    assert_eq!(longest.message().chars().count(), 4096);
    let padded = ElicitRequest::parse(&form(json!({"message": " hi "})), NEW).unwrap();
    assert_eq!(padded.message(), " hi ");
}

// auth:SEC-15 seed:B11
#[test]
fn control_characters_are_escaped_in_forms_and_refused_with_urls() {
    let message = json!({"message": "a\u{1b}[31mb\nc\u{202e}"});
    let request = ElicitRequest::parse(&form(message.clone()), NEW).unwrap();
    assert_eq!(request.message(), "a\\u{1b}[31mb\nc\\u{202e}");
    assert_eq!(violation(&url(message), NEW), Some(("/message".into(), Rule::ControlCharacter)));
    assert_eq!(violation(&url(json!({"message": "line\nline"})), NEW), None);
}

// seed:S-17 seed:E24
#[test]
fn a_form_needs_a_schema_that_is_an_object() {
    assert_eq!(violation(r#"{"message": "m"}"#, NEW), Some(("/requestedSchema".into(), Rule::Required)));
    for schema in [json!("string"), json!(null), json!([]), json!(true)] {
        let params = form(json!({"requestedSchema": schema}));
        assert_eq!(violation(&params, NEW), Some(("/requestedSchema".into(), Rule::Type)));
    }
}

#[test]
fn params_that_are_no_object_are_refused() {
    for (params, rule) in
        [("[]", Rule::Type), ("null", Rule::Type), ("", Rule::Json), ("{", Rule::Json), ("{} {}", Rule::Json)]
    {
        assert_eq!(violation(params, NEW), Some((String::new(), rule)), "{params}");
    }
    let half = r#"{"message": "\ud800", "requestedSchema": {"type": "object", "properties": {}}}"#;
    assert_eq!(violation(half, NEW), Some(("/message".into(), Rule::Json)));
    let half_name = r#"{"\ud800": 1}"#;
    assert_eq!(violation(half_name, NEW), Some((String::new(), Rule::Json)));
}

// seed:B14 seed:S-28
#[test]
fn url_mode_does_not_exist_in_the_oldest_revision() {
    assert_eq!(violation(&url(json!({})), Revision::V2025_06_18), Some(("/mode".into(), Rule::Mode)));
}

// protocol:E-22
#[test]
fn a_mode_that_was_not_declared_is_refused() {
    let forms_only = RequestRules::new(NEW).modes(Modes::FORM);
    let error = ElicitRequest::parse_with(&url(json!({})), &forms_only).unwrap_err();
    assert_eq!(error.violations()[0].pointer, "/mode");
    assert_eq!(error.wire_code(), -32602);
    assert!(ElicitRequest::parse_with(&form(json!({})), &forms_only).is_ok());
}

// protocol:5.1 seed:S-18
#[test]
fn the_elicitation_id_is_opaque_and_belongs_to_one_revision() {
    assert_eq!(parse_url(&url(json!({"elicitationId": " e 1 "})), NEW).elicitation_id(), Some(" e 1 "));
    for (id, rule) in [
        (json!(""), Rule::Value),
        (json!(" "), Rule::Value),
        (json!(1), Rule::Type),
        (json!(null), Rule::Type),
        (json!("a\nb"), Rule::ControlCharacter),
        (json!("a".repeat(1025)), Rule::Limit),
    ] {
        assert_eq!(
            violation(&url(json!({"elicitationId": id})), NEW),
            Some(("/elicitationId".into(), rule)),
            "{id}"
        );
    }
    let without = r#"{"mode": "url", "message": "m", "url": "https://example.com/"}"#;
    assert_eq!(violation(without, NEW), Some(("/elicitationId".into(), Rule::Required)));
    assert_eq!(parse_url(without, Revision::V2026_07_28).elicitation_id(), None);
    assert_eq!(parse_url(&url(json!({})), Revision::V2026_07_28).elicitation_id(), None);
}

// seed:B15 seed:S-19 field:FR-141 protocol:E-15
#[test]
fn dangerous_urls_are_refused_before_anybody_sees_them() {
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "vscode://x",
        "http://example.com",
        "https://user:pw@host/",
        "not a url",
        "",
        "https://",
        "https://exa\tmple.com/",
    ] {
        assert_eq!(violation(&url(json!({"url": bad})), NEW), Some(("/url".into(), Rule::Url)), "{bad}");
    }
    assert_eq!(violation(&url(json!({"url": 1})), NEW), Some(("/url".into(), Rule::Type)));
    let missing = r#"{"mode": "url", "message": "m", "elicitationId": "e"}"#;
    assert_eq!(violation(missing, NEW), Some(("/url".into(), Rule::Required)));
    assert_eq!(violation(&url(json!({"url": "http://localhost:3000/"})), NEW), None);
    let strict = RequestRules::new(NEW).url(UrlPolicy::default().allow_loopback_http(false));
    assert!(ElicitRequest::parse_with(&url(json!({"url": "http://localhost:3000/"})), &strict).is_err());
}

// seed:S-16 seed:S-21
#[test]
fn unknown_members_stay_in_the_raw_text_and_reach_no_field() {
    let params = form(
        json!({"server": "evil", "urlHost": "evil", "_meta": {"a": 1}, "task": {"ttl": 1}, "url": "https://evil.example"}),
    );
    let request = ElicitRequest::parse(&params, NEW).unwrap();
    assert_eq!(request.raw().get(), params);
    assert!(matches!(request, ElicitRequest::Form(_)));
    let params = url(json!({"requestedSchema": 5, "urlHost": "evil"}));
    let request = parse_url(&params, NEW);
    assert_eq!((request.url().host(), request.raw().get()), ("example.com", params.as_str()));
}

// seed:S-20 protocol:E-11
#[test]
fn a_url_request_shows_the_url_as_given_and_as_normalised() {
    let request = parse_url(&url(json!({"url": "https://B\u{dc}CHER.example/a b".replace(' ', "%20")})), NEW);
    assert_eq!(request.url().given(), "https://B\u{dc}CHER.example/a%20b");
    assert_eq!(request.url().normalized(), "https://xn--bcher-kva.example/a%20b");
    assert_eq!(request.url().host(), "xn--bcher-kva.example");
    assert_eq!(request.message(), "m");
}

// seed:B5 seed:S-23 protocol:E-17
#[test]
fn a_url_answer_never_carries_content() {
    let request = ElicitRequest::parse(&url(json!({})), NEW).unwrap();
    let content = json!({"password": "x"}).as_object().unwrap().clone();
    let answer = request.check(ElicitResult::accept(content)).unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"action":"accept"}"#);
    for answer in [ElicitResult::accept_url(), ElicitResult::decline(), ElicitResult::cancel()] {
        assert_eq!(request.check(answer.clone()).unwrap(), answer);
    }
}

// field:FR-139 seed:S-23 seed:S-24 protocol:5.5
#[test]
fn decline_and_cancel_lose_their_content_and_accept_always_has_an_object() {
    let request = ElicitRequest::parse(&form(json!({})), NEW).unwrap();
    let content = json!({"x": {"not": "valid"}}).as_object().unwrap().clone();
    for (action, text) in
        [(ElicitAction::Decline, r#"{"action":"decline"}"#), (ElicitAction::Cancel, r#"{"action":"cancel"}"#)]
    {
        let answer = ElicitResult { action, content: Some(content.clone()) };
        assert_eq!(serde_json::to_string(&request.check(answer).unwrap()).unwrap(), text);
    }
    let accepted = request.check(ElicitResult::accept_url()).unwrap();
    assert_eq!(serde_json::to_string(&accepted).unwrap(), r#"{"action":"accept","content":{}}"#);
}

// seed:S-22
#[test]
fn actions_are_exact_on_the_wire_and_loose_in_front_ends() {
    for (text, expected) in [
        ("accept", ElicitAction::Accept),
        ("ACCEPT", ElicitAction::Accept),
        ("Cancel", ElicitAction::Cancel),
        ("decline", ElicitAction::Decline),
        ("yes", ElicitAction::Decline),
        ("", ElicitAction::Decline),
    ] {
        assert_eq!(ElicitAction::from_loose(text), expected, "{text}");
    }
    for action in [ElicitAction::Accept, ElicitAction::Decline, ElicitAction::Cancel] {
        assert_eq!(serde_json::to_string(&action).unwrap(), format!("\"{action}\""));
    }
}

#[test]
fn answers_are_read_from_json() {
    let read = |value: Value| ElicitResult::from_value(value).map_err(|error| error.violations()[0].rule);
    assert_eq!(
        read(json!({"action": "accept", "content": {}})),
        Ok(ElicitResult::accept(serde_json::Map::new()))
    );
    assert_eq!(read(json!({"action": "accept", "content": null})), Ok(ElicitResult::accept_url()));
    assert_eq!(read(json!({"action": "accept", "_meta": {}})), Ok(ElicitResult::accept_url()));
    assert_eq!(read(json!({"action": "decline", "content": 7})), Ok(ElicitResult::decline()));
    assert_eq!(read(json!({"action": "cancel"})), Ok(ElicitResult::cancel()));
    assert_eq!(read(json!({"action": "accept", "content": []})), Err(Rule::Type));
    assert_eq!(read(json!({"action": "ACCEPT"})), Err(Rule::Action));
    assert_eq!(read(json!({"action": null})), Err(Rule::Action));
    assert_eq!(read(json!({})), Err(Rule::Action));
    assert_eq!(read(json!("accept")), Err(Rule::Type));
    let text = r#"{"action":"accept","content":{"a":1}}"#;
    let result: ElicitResult = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&result).unwrap(), text);
    assert!(
        serde_json::from_str::<ElicitResult>(r#"{"action":"no"}"#)
            .unwrap_err()
            .to_string()
            .contains("action")
    );
}

#[test]
fn debug_shows_what_is_asked() {
    let parse = |params: &str| ElicitRequest::parse(params, Revision::V2025_11_25).unwrap();
    for (params, expected) in [
        (form(json!({})), "FormRequest { message: \"m\", fields: 0, .. }"),
        (
            url(json!({"url": "https://example.com/secret"})),
            "UrlRequest { message: \"m\", url: SafeUrl(https://example.com), .. }",
        ),
    ] {
        let shown = format!("{:?}", parse(&params));
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn no_secret_shows_in_debug_or_in_errors() {
    let content = json!({"password": "hunter2"}).as_object().unwrap().clone();
    let answer = ElicitResult::accept(content.clone());
    assert_eq!(format!("{answer:?}"), "ElicitResult { action: Accept, content_members: Some(1) }");
    let request = ElicitRequest::parse(&url(json!({})), NEW).unwrap();
    assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
    assert!(format!("{request:?}").contains("https://example.com"), "{request:?}");
    let closed = form(
        json!({"requestedSchema": {"type": "object", "additionalProperties": false, "properties": {"password": {"type": "integer"}}}}),
    );
    let request = ElicitRequest::parse(&closed, NEW).unwrap();
    let error = request.check(ElicitResult::accept(content)).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    assert!(!format!("{request:?}").contains("additionalProperties"));
    let error = ElicitRequest::parse(&url(json!({"url": "https://u:s3cret@h/?s3cret"})), NEW).unwrap_err();
    assert!(!format!("{error} {error:?} {}", error.wire_message()).contains("s3cret"));
}

#[test]
fn a_wire_message_is_one_short_line() {
    for (name, chars) in [("n\n\u{1b}".repeat(80), 503), ("\u{1b}".repeat(256), 512)] {
        let params =
            form(json!({"requestedSchema": {"type": "object", "properties": {name: {"type": "object"}}}}));
        let error = ElicitRequest::parse(&params, NEW).unwrap_err();
        let message = error.wire_message();
        assert_eq!(message.chars().count(), chars);
        assert!(!message.contains(['\n', '\u{1b}']), "{message}");
        assert!(message.starts_with("invalid elicitation request: "), "{message}");
    }
}

#[test]
fn strings_of_the_schema_are_the_same_however_they_are_escaped() {
    for params in [
        r#"{"message": "m", "requestedSchema": {"type": "\u006fbject", "properties": {}}}"#,
        r#"{"mode": "\u0066orm", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}"#,
        r#"{"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "array",
            "items": {"type": "\u0073tring", "enum": ["a"]}}}}}"#,
    ] {
        let request = ElicitRequest::parse(params, NEW);
        assert!(matches!(request, Ok(ElicitRequest::Form(_))), "{params}");
    }
}
