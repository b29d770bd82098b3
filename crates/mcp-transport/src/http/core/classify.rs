//! What a response means, as one table of status, content type and what was asked.
//!
//! Redirects are followed before this table is asked; a 3xx that gets here has been refused already.

use http::StatusCode;

use super::media::ContentType;

/// What kind of request the response answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// POST of a notification or of a response: nothing but acceptance is due.
    Acceptance,
    /// POST of a request: a JSON-RPC response is due.
    Answer,
    /// DELETE of the session.
    Deletion,
    /// GET that opens a stream of its own.
    Listening,
    /// GET that continues a cut stream.
    Resumption,
}

/// The facts of a response head that decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) status: StatusCode,
    pub(crate) content_type: ContentType,
    /// Whether the request carried a session id.
    pub(crate) had_session: bool,
    /// Whether the response has a `WWW-Authenticate` field.
    pub(crate) has_challenge: bool,
    /// Whether its body says that there is no such session, in words that are known.
    pub(crate) tells_lost: bool,
}

/// What to do with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Done; the body means nothing.
    Accepted,
    /// 202 or an empty success to a request: the answer would never come.
    AcceptedInsteadOfAnswered,
    /// The body is one JSON message, or a batch.
    Json,
    /// The server offers no stream here.
    NoStream,
    /// Success with a body that is no MCP answer.
    NotMcp,
    /// A refusal: the body may hold a JSON-RPC error.
    Refused,
    /// 404 for a session, or another way to say that there is no such session.
    SessionLost,
    /// The body is an event stream.
    Stream,
    /// A refusal that may pass: reconnecting is worth a try.
    Transient,
    /// The server wants other credentials.
    Unauthorized,
}

/// The table.
pub(crate) fn classify(asked: Asked, facts: Facts) -> Verdict {
    let Facts { status, content_type, had_session, has_challenge, tells_lost } = facts;
    let code = status.as_u16();
    if status.is_success() {
        return match asked {
            Asked::Acceptance | Asked::Deletion => Verdict::Accepted,
            Asked::Answer => match (code, content_type) {
                (202 | 204 | 205, _) => Verdict::AcceptedInsteadOfAnswered,
                (_, ContentType::EventStream) => Verdict::Stream,
                (_, ContentType::Json | ContentType::Missing) => Verdict::Json,
                (_, ContentType::Other | ContentType::Text) => Verdict::NotMcp,
            },
            Asked::Listening | Asked::Resumption => match content_type {
                ContentType::EventStream if code != 202 && code != 204 && code != 205 => Verdict::Stream,
                _ if asked == Asked::Listening => Verdict::NoStream,
                _ => Verdict::NotMcp,
            },
        };
    }
    match (code, asked) {
        (401, _) => Verdict::Unauthorized,
        // A bare 403 to a POST is often a refused `Origin` with a JSON-RPC error in its body, and a bare 403 to a GET
        // says no more than any other 4xx.
        (403, Asked::Listening) if !has_challenge => Verdict::NoStream,
        (403, Asked::Answer | Asked::Acceptance) if !has_challenge && content_type == ContentType::Json => {
            Verdict::Refused
        }
        (403, _) => Verdict::Unauthorized,
        // The session is gone already, or the server does not let clients end it.
        (404 | 405, Asked::Deletion) => Verdict::Accepted,
        // A GET may be refused by a 404 that says nothing about the session: the next POST will tell.
        (404, Asked::Listening) => Verdict::NoStream,
        (404, _) if had_session => Verdict::SessionLost,
        (408 | 425 | 429, Asked::Listening | Asked::Resumption) => Verdict::Transient,
        (501 | 505, Asked::Listening) => Verdict::NoStream,
        (400, Asked::Listening | Asked::Resumption) if had_session && tells_lost => Verdict::SessionLost,
        (400..=499, Asked::Listening) => Verdict::NoStream,
        (500..=599, Asked::Listening | Asked::Resumption) => Verdict::Transient,
        _ => Verdict::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [ContentType; 5] = [
        ContentType::EventStream,
        ContentType::Json,
        ContentType::Missing,
        ContentType::Other,
        ContentType::Text,
    ];

    /// Checks a row for each of the content types, in the order of `TYPES`.
    fn check(asked: Asked, code: u16, had_session: bool, has_challenge: bool, expected: [Verdict; 5]) {
        for (content_type, expected) in TYPES.into_iter().zip(expected) {
            let status = StatusCode::from_u16(code).unwrap();
            let facts = Facts { status, content_type, had_session, has_challenge, tells_lost: false };
            assert_eq!(classify(asked, facts), expected, "{asked:?} {facts:?}");
        }
    }

    fn check_all(asked: Asked, code: u16, expected: Verdict) {
        for had_session in [false, true] {
            for has_challenge in [false, true] {
                check(asked, code, had_session, has_challenge, [expected; 5]);
            }
        }
    }

    /// protocol:H-04, protocol:H-06, protocol:H-07, protocol:2.8, protocol:9.4
    #[test]
    fn answers_to_a_request() {
        use Verdict::{AcceptedInsteadOfAnswered, Json, NotMcp, Refused, SessionLost, Stream, Unauthorized};
        for code in [200, 201, 203, 206, 299] {
            check(Asked::Answer, code, false, false, [Stream, Json, Json, NotMcp, NotMcp]);
            check(Asked::Answer, code, true, true, [Stream, Json, Json, NotMcp, NotMcp]);
        }
        for code in [202, 204, 205] {
            check_all(Asked::Answer, code, AcceptedInsteadOfAnswered);
        }
        for code in [400, 402, 405, 406, 408, 409, 413, 415, 422, 429, 431, 500, 502, 503, 504] {
            check_all(Asked::Answer, code, Refused);
        }
        check_all(Asked::Answer, 401, Unauthorized);
        for session in [false, true] {
            check(Asked::Answer, 403, session, true, [Unauthorized; 5]);
            let bare = [Unauthorized, Refused, Unauthorized, Unauthorized, Unauthorized];
            check(Asked::Answer, 403, session, false, bare);
        }
        // protocol:H-14, protocol:H-15
        check(Asked::Answer, 404, true, false, [SessionLost; 5]);
        check(Asked::Answer, 404, false, false, [Refused; 5]);
        for code in [300, 301, 304, 307, 399] {
            check_all(Asked::Answer, code, Refused);
        }
    }

    /// protocol:H-05, field:FR-038
    #[test]
    fn answers_to_a_notification_or_response() {
        use Verdict::{Accepted, Refused, SessionLost, Unauthorized};
        for code in [200, 201, 202, 204, 205] {
            check_all(Asked::Acceptance, code, Accepted);
        }
        for code in [400, 405, 413, 429, 500, 503] {
            check_all(Asked::Acceptance, code, Refused);
        }
        check_all(Asked::Acceptance, 401, Unauthorized);
        check(Asked::Acceptance, 403, false, true, [Unauthorized; 5]);
        check(
            Asked::Acceptance,
            403,
            true,
            false,
            [Unauthorized, Refused, Unauthorized, Unauthorized, Unauthorized],
        );
        check(Asked::Acceptance, 404, true, false, [SessionLost; 5]);
        check(Asked::Acceptance, 404, false, false, [Refused; 5]);
    }

    /// protocol:H-20, field:FR-040
    #[test]
    fn answers_to_a_listening_get() {
        use Verdict::{NoStream, Stream, Transient, Unauthorized};
        for session in [false, true] {
            check(Asked::Listening, 200, session, false, [Stream, NoStream, NoStream, NoStream, NoStream]);
            check(Asked::Listening, 404, session, false, [NoStream; 5]);
            check(Asked::Listening, 403, session, false, [NoStream; 5]);
            check(Asked::Listening, 403, session, true, [Unauthorized; 5]);
        }
        for code in [202, 204, 205, 400, 402, 404, 405, 406, 410, 415, 422, 501, 505] {
            check_all(Asked::Listening, code, NoStream);
        }
        check_all(Asked::Listening, 401, Unauthorized);
        for code in [408, 425, 429, 500, 502, 503, 504] {
            check_all(Asked::Listening, code, Transient);
        }
    }

    /// protocol:H-32
    #[test]
    fn answers_to_a_resuming_get() {
        use Verdict::{NotMcp, Refused, SessionLost, Stream, Transient, Unauthorized};
        for session in [false, true] {
            check(Asked::Resumption, 200, session, false, [Stream, NotMcp, NotMcp, NotMcp, NotMcp]);
        }
        for code in [202, 204, 205] {
            check_all(Asked::Resumption, code, NotMcp);
        }
        for code in [400, 405, 406, 410] {
            check_all(Asked::Resumption, code, Refused);
        }
        check_all(Asked::Resumption, 401, Unauthorized);
        check_all(Asked::Resumption, 403, Unauthorized);
        check(Asked::Resumption, 404, true, false, [SessionLost; 5]);
        check(Asked::Resumption, 404, false, false, [Refused; 5]);
        for code in [408, 425, 429, 500, 501, 502, 503, 504] {
            check_all(Asked::Resumption, code, Transient);
        }
    }

    /// protocol:H-14, field:FR-056
    #[test]
    fn a_get_is_told_by_a_400_that_its_session_is_lost() {
        for asked in [Asked::Listening, Asked::Resumption] {
            for (had_session, tells_lost) in [(true, true), (true, false), (false, true)] {
                for code in [400, 403, 405, 503] {
                    let status = StatusCode::from_u16(code).unwrap();
                    let content_type = ContentType::Json;
                    let facts = Facts { status, content_type, had_session, has_challenge: false, tells_lost };
                    let is_lost = classify(asked, facts) == Verdict::SessionLost;
                    assert_eq!(is_lost, code == 400 && had_session && tells_lost, "{asked:?} {facts:?}");
                }
            }
        }
    }

    /// protocol:H-16, field:FR-050
    #[test]
    fn answers_to_a_delete() {
        use Verdict::{Accepted, Refused, Unauthorized};
        for code in [200, 202, 204, 404, 405] {
            check_all(Asked::Deletion, code, Accepted);
        }
        check_all(Asked::Deletion, 401, Unauthorized);
        check_all(Asked::Deletion, 403, Unauthorized);
        for code in [400, 410, 500, 503] {
            check_all(Asked::Deletion, code, Refused);
        }
    }
}
