//! Media types and content codings of responses, read as loosely as proxies write them.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// What a `Content-Type` header makes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentType {
    /// `text/event-stream`.
    EventStream,
    /// `application/json` or any `+json` type.
    Json,
    /// No header at all, or an empty one.
    Missing,
    /// Neither JSON nor text.
    Other,
    /// Other `text/*`, and the markup types that are text in truth.
    Text,
}

impl ContentType {
    /// Compares type and subtype without case and without parameters. Of a list (`a/b, a/b`, as joining proxies make
    /// it) the first item counts.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Self::Missing };
        let Ok(value) = value.to_str() else { return Self::Other };
        let essence = value.split([',', ';']).next().unwrap_or_default().trim();
        if essence.is_empty() {
            return Self::Missing;
        }
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        if is("application/json") || ends_with_ignore_case(essence, "+json") {
            Self::Json
        } else if is("text/event-stream") {
            Self::EventStream
        } else if starts_with_ignore_case(essence, "text/")
            || is("application/xml")
            || is("application/xhtml+xml")
        {
            Self::Text
        } else {
            Self::Other
        }
    }
}

/// Whether the body is sent as it is. Everything else is refused: we ask for `identity`, and an unpacker would be a way
/// to fill memory from few bytes.
pub(crate) fn is_identity_coded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|value| {
        let value = value.as_bytes().trim_ascii();
        value.is_empty() || value.eq_ignore_ascii_case(b"identity")
    })
}

fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

fn ends_with_ignore_case(text: &str, suffix: &str) -> bool {
    let cut = text.len().checked_sub(suffix.len());
    cut.and_then(|cut| text.get(cut..)).is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(value: Option<&str>, expected: ContentType) {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(ContentType::of(&headers), expected, "{value:?}");
    }

    /// field:FR-043, protocol:H-04
    #[test]
    fn content_type_is_compared_by_essence() {
        check(None, ContentType::Missing);
        check(Some(""), ContentType::Missing);
        check(Some("application/json"), ContentType::Json);
        check(Some("APPLICATION/JSON"), ContentType::Json);
        check(Some("application/json;charset=utf-8"), ContentType::Json);
        check(Some("application/json ; charset=utf-8"), ContentType::Json);
        check(Some("application/json, application/json"), ContentType::Json);
        check(Some("application/problem+json"), ContentType::Json);
        check(Some("text/event-stream"), ContentType::EventStream);
        check(Some("text/event-stream; charset=utf-8"), ContentType::EventStream);
        check(Some("Text/Event-Stream;charset=UTF-8"), ContentType::EventStream);
        check(Some("text/html; charset=utf-8"), ContentType::Text);
        check(Some("TEXT/plain"), ContentType::Text);
        check(Some("application/jsonl"), ContentType::Other);
        check(Some("application/octet-stream"), ContentType::Other);
    }

    /// auth:SEC-10
    #[test]
    fn packed_bodies_are_recognised() {
        for (value, expected) in [
            ("identity", true),
            ("Identity", true),
            ("", true),
            ("gzip", false),
            ("br", false),
            ("deflate", false),
            ("zstd", false),
            ("identity, gzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_str(value).unwrap());
            assert_eq!(is_identity_coded(&headers), expected, "{value}");
        }
        assert!(is_identity_coded(&HeaderMap::new()));
    }
}
