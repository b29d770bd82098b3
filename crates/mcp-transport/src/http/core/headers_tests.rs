use http::header::AUTHORIZATION;

use super::*;

fn template() -> Template {
    let mut application = ApplicationHeaders::default();
    application.set("X-Api-Key", "key-canary").unwrap();
    application.set("authorization", "Bearer token-canary").unwrap();
    Template::new(&application)
}

fn session() -> SessionId {
    SessionId::from_header(&HeaderValue::from_static("session-canary"), 1024).unwrap()
}

/// One row of the matrix: every field the transport owns, `None` = must be absent.
struct Row {
    content_type: Option<&'static str>,
    accept: Option<&'static str>,
    session: Option<&'static str>,
    version: Option<&'static str>,
    event_id: Option<&'static str>,
    method: Option<&'static str>,
}

const POSTED: Row = Row {
    content_type: Some("application/json"),
    accept: Some("application/json, text/event-stream"),
    session: None,
    version: None,
    event_id: None,
    method: None,
};
const GOTTEN: Row = Row {
    content_type: None,
    accept: Some("text/event-stream"),
    session: None,
    version: None,
    event_id: None,
    method: None,
};

fn check(headers: &HeaderMap, row: &Row) {
    let field = |name: &HeaderName| {
        assert!(headers.get_all(name).iter().count() <= 1, "{name} twice");
        headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()).unwrap())
    };
    assert_eq!(field(&CONTENT_TYPE), row.content_type);
    assert_eq!(field(&ACCEPT), row.accept);
    assert_eq!(field(&SESSION_ID), row.session);
    assert_eq!(field(&PROTOCOL_VERSION), row.version);
    assert_eq!(field(&LAST_EVENT_ID), row.event_id);
    assert_eq!(field(&METHOD), row.method);
    assert_eq!(field(&ACCEPT_ENCODING), Some("identity"));
    assert_eq!(field(&AUTHORIZATION), Some("Bearer token-canary"));
    assert_eq!(field(&HeaderName::from_static("x-api-key")), Some("key-canary"));
    assert!(field(&USER_AGENT).is_some_and(|agent| agent.starts_with("mcp-transport/")));
    let shown = format!("{headers:?}");
    assert!(!shown.contains("canary"), "{shown}");
}

/// seed:S-69, protocol:H-02, protocol:H-03, protocol:H-12, protocol:H-18, field:FR-064
#[test]
fn matrix_of_posts() {
    let template = template();
    let session = session();
    let legacy = RequestHead::legacy("2025-11-25");
    let version = Some("2025-11-25");
    check(&template.initialize().write(), &POSTED);
    check(&template.post(&legacy, None).unwrap().write(), &Row { version, ..POSTED });
    check(
        &template.post(&legacy, Some(session.clone())).unwrap().write(),
        &Row { version, session: Some("session-canary"), ..POSTED },
    );
    check(
        &template.post(&RequestHead::default(), Some(session.clone())).unwrap().write(),
        &Row { session: Some("session-canary"), ..POSTED },
    );
}

/// protocol:H-35, protocol:H-37
#[test]
fn modern_posts_are_routed_and_carry_no_session() {
    let template = template();
    let head = RequestHead::modern("2026-07-28", "tools/call");
    let row = Row { version: Some("2026-07-28"), method: Some("tools/call"), ..POSTED };
    check(&template.post(&head, None).unwrap().write(), &row);
    check(&template.post(&head, Some(session())).unwrap().write(), &row);
}

/// protocol:H-20, protocol:H-26, protocol:H-27, seed:E5
#[test]
fn matrix_of_gets() {
    let template = template();
    let session = session();
    let head = RequestHead::legacy("2025-06-18");
    let version = Some("2025-06-18");
    let canary = Some("session-canary");
    check(&template.get(&head, None, "").unwrap().write(), &Row { version, ..GOTTEN });
    check(
        &template.get(&head, Some(session.clone()), "").unwrap().write(),
        &Row { version, session: canary, ..GOTTEN },
    );
    check(
        &template.get(&head, Some(session.clone()), "e-7").unwrap().write(),
        &Row { version, session: canary, event_id: Some("e-7"), ..GOTTEN },
    );
    check(
        &template.get(&head, None, "é世").unwrap().write(),
        &Row { version, event_id: Some("é世"), ..GOTTEN },
    );
    assert_eq!(template.get(&head, None, "a\u{1}b").unwrap_err(), BadHeader::Value { name: LAST_EVENT_ID });
}

/// protocol:H-16, seed:S-99a
#[test]
fn delete_names_the_session() {
    let row = Row { accept: None, version: Some("2025-11-25"), session: Some("session-canary"), ..GOTTEN };
    check(&template().delete(&RequestHead::legacy("2025-11-25"), session()).unwrap().write(), &row);
}

/// seed:E13
#[test]
fn application_fields_merge_without_case_and_spare_the_protocol() {
    let mut application = ApplicationHeaders::default();
    application.set("x-api-key", "one").unwrap();
    application.set("X-API-KEY", "two").unwrap();
    application.set("User-Agent", "mine").unwrap();
    let headers = Template::new(&application).initialize().write();
    assert_eq!(headers.get_all("x-api-key").iter().collect::<Vec<_>>(), ["two"]);
    assert_eq!(headers.get_all(USER_AGENT).iter().collect::<Vec<_>>(), ["mine"]);

    for name in [
        "accept",
        "Accept",
        "ACCEPT-ENCODING",
        "connection",
        "content-encoding",
        "Content-Length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "Mcp-Method",
        "mcp-name",
        "MCP-Protocol-Version",
        "mcp-session-id",
        "Mcp-Param-Region",
        "proxy-connection",
        "te",
        "trailer",
        "Transfer-Encoding",
        "upgrade",
    ] {
        let error = application.set(name, "evil").unwrap_err();
        assert_eq!(error, BadHeader::Protected { name: name.to_ascii_lowercase().parse().unwrap() });
    }
}

/// auth:SEC-13, protocol:H-56
#[test]
fn unsendable_fields_are_refused_by_name() {
    let mut application = ApplicationHeaders::default();
    for value in ["a\r\nb", "a\nb", "a\0b", "\u{7f}"] {
        let error = application.set("x-a", value).unwrap_err();
        assert_eq!(error, BadHeader::Value { name: HeaderName::from_static("x-a") });
    }
    for name in ["", "a b", "a\r\n", "é", "a:b"] {
        assert_eq!(application.set(name, "v").unwrap_err(), BadHeader::Name { name: name.to_owned() });
    }
    assert_eq!(format!("{application:?}"), "[]");
}

/// protocol:H-48, protocol:H-50, field:FR-052
#[test]
fn names_and_parameters_are_encoded_where_they_must() {
    let mut head = RequestHead::modern("2026-07-28", "tools/call");
    head.name = Some("Привет-工具".to_owned());
    head.params = vec![("Region".to_owned(), "us-west1".to_owned()), ("Note".to_owned(), "a\nb".to_owned())];
    let headers = template().post(&head, None).unwrap().write();
    assert_eq!(headers.get(NAME).unwrap(), "=?base64?0J/RgNC40LLQtdGCLeW3peWFtw==?=");
    assert_eq!(headers.get("Mcp-Param-Region").unwrap(), "us-west1");
    assert_eq!(headers.get("Mcp-Param-Note").unwrap(), "=?base64?YQpi?=");
    head.params = vec![("a b".to_owned(), "v".to_owned())];
    assert_eq!(template().post(&head, None).unwrap_err(), BadHeader::Name { name: "a b".to_owned() });
}

#[test]
fn an_odd_version_is_sent_as_given_if_it_can_be() {
    let template = template();
    let row = Row { version: Some("2099-01-01"), ..POSTED };
    check(&template.post(&RequestHead::legacy("2099-01-01"), None).unwrap().write(), &row);
    assert!(template.post(&RequestHead::legacy("20\n99"), None).is_err());
}
