//! How servers say that they do not know a session, beside the 404 that the specification asks of them (2025-11-25,
//! "Session Management").
//!
//! The servers that were written after the examples of the official SDKs answer 400 to a session that they do not know, as they
//! do after a restart. Nothing but the text of such a refusal tells it from any other, so only texts that are known are taken
//! for it, and only in answer to a request that carried a session id.

use http::StatusCode;
use mcp_jsonrpc::{ErrorCode, ErrorObject};

/// How the texts begin, in lower case and behind [`PREFIX`], by which they are known: of the TypeScript and the Python SDK and
/// of the reference servers.
const KNOWN: [&str; 5] = [
    "invalid session id",
    "no valid session id",
    "invalid or missing session id",
    "server not initialized",
    "session not found",
];

/// What some of them say first.
const PREFIX: &str = "bad request: ";

/// The codes that go with them; all are free for servers to use, or say that the request was not understood.
const CODES: [ErrorCode; 3] = [ErrorCode::INVALID_REQUEST, ErrorCode::new(-32000), ErrorCode::new(-32001)];

/// Whether this refusal of a request that carried a session id says that there is no such session. `object` is the JSON-RPC
/// error in its body if there is one, `body` its text otherwise.
pub(crate) fn is_told(status: StatusCode, object: Option<&ErrorObject>, body: Option<&str>) -> bool {
    if status != StatusCode::BAD_REQUEST {
        return false;
    }
    let text = match object {
        Some(object) if CODES.contains(&object.code) => object.message.as_ref(),
        Some(_) => return false,
        None => body.unwrap_or_default(),
    };
    let text = text.trim_start().to_ascii_lowercase();
    let text = text.strip_prefix(PREFIX).unwrap_or(&text);
    // From the beginning: a tool may have sessions of its own, of which it says more.
    KNOWN.iter().any(|known| text.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64, message: &str) -> ErrorObject {
        ErrorObject::new(ErrorCode::new(code), message.to_owned())
    }

    /// protocol:H-14
    #[test]
    fn the_refusals_of_known_servers_are_known() {
        let check = |code, message, told| {
            let object = error(code, message);
            assert_eq!(is_told(StatusCode::BAD_REQUEST, Some(&object), None), told, "{code} {message}");
        };
        check(-32000, "Bad Request: No valid session ID provided", true);
        check(-32000, "Invalid or missing session ID", true);
        check(-32000, "Bad Request: Server not initialized", true);
        check(-32001, "Session not found", true);
        check(-32600, "Session not found", true);
        // What is said of anything else.
        check(-32000, "Bad Request: Unsupported protocol version", false);
        check(-32000, "the session of the database has expired", false);
        check(-32000, "Browser session not found: tab 7", false);
        check(-32000, "Bad Request: the browser has no valid session ID", false);
        check(-32602, "Session not found", false);
        check(-32603, "Invalid session ID", false);
    }

    #[test]
    fn a_text_tells_as_well_and_another_status_does_not() {
        let text = Some("Bad Request: No valid session ID provided");
        assert!(is_told(StatusCode::BAD_REQUEST, None, text));
        assert!(!is_told(StatusCode::BAD_REQUEST, None, None));
        assert!(!is_told(StatusCode::BAD_REQUEST, None, Some("no")));
        for status in [StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR] {
            assert!(!is_told(status, None, text));
        }
    }
}
