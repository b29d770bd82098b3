use std::time::Duration;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use mcp_jsonrpc::RequestId;

use super::*;
use crate::ErrorKind;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"n"}"#;

/// An exchange whose head has come, on a clock that stands until it is moved.
struct Rig {
    core: ExchangeCore,
    slot: SessionSlot,
    now: Instant,
}

impl Rig {
    fn new(resumable: bool, content_type: &'static str) -> Self {
        Self::with_config(Config::default(), resumable, content_type)
    }

    fn with_config(config: Config, resumable: bool, content_type: &'static str) -> Self {
        let kind = PostKind::Request { id: RequestId::Integer(1), establishes_session: true };
        let mut core = ExchangeCore::new(kind, resumable, &Arc::new(config));
        let now = Instant::now();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(SESSION_ID, HeaderValue::from_static("s"));
        let head = Head {
            status: StatusCode::OK,
            headers: &headers,
            length: None,
            had_authorization: true,
            had_session: false,
            tells_lost: false,
            is_plain: true,
            wall: || std::time::SystemTime::UNIX_EPOCH,
        };
        core.handle_head(now, head).unwrap();
        Self { core, slot: SessionSlot::default(), now }
    }

    fn stream() -> Self {
        Self::new(true, "text/event-stream")
    }

    fn push(&mut self, text: &'static str) {
        self.core.handle_chunk(self.now, Bytes::from_static(text.as_bytes())).unwrap();
    }

    /// Takes all messages that are ready, and says what the machine wants then.
    fn run(&mut self) -> (usize, Result<Step, ErrorKind>) {
        let mut messages = 0;
        loop {
            match self.core.poll() {
                Ok(Step::Message) => {
                    match self.core.message(&self.slot, &DecodeLimits::new(), &mut |_| false) {
                        Ok(_) => messages += 1,
                        Err(error) => return (messages, Err(error.kind())),
                    }
                }
                step => return (messages, step.map_err(|error| error.kind())),
            }
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.core.handle_end(self.now, 0.0, None)
    }

    fn reopened(&mut self, status: u16, content_type: &'static str) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let status = StatusCode::from_u16(status).unwrap();
        let head = Head {
            status,
            headers: &headers,
            length: None,
            had_authorization: true,
            had_session: true,
            tells_lost: false,
            is_plain: true,
            wall: || std::time::SystemTime::UNIX_EPOCH,
        };
        self.core.handle_reopened(self.now, 0.0, head)
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.now + Duration::from_millis(milliseconds)
    }
}

#[test]
fn a_json_answer_is_one_message_and_the_end() {
    let mut rig = Rig::new(true, "application/json");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    rig.push(RESULT);
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    rig.end().unwrap();
    assert!(!rig.slot.is_open());
    assert_eq!(rig.run(), (1, Ok(Step::Done)));
    assert!(rig.slot.is_open());
}

/// seed:S-96c
#[test]
fn a_json_body_without_the_answer_is_an_error_after_it() {
    let mut rig = Rig::new(true, "application/json");
    rig.push(NOTE);
    rig.end().unwrap();
    assert_eq!(rig.run(), (1, Err(ErrorKind::PeerMisbehaved)));
    assert_eq!(rig.run(), (0, Ok(Step::Done)));
    assert!(!rig.slot.is_open());
}

#[test]
fn events_are_messages_until_the_answer() {
    let mut rig = Rig::stream();
    rig.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n: c\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\ndata: x\n\n");
    assert_eq!(rig.run(), (2, Ok(Step::Done)));
}

/// protocol:H-29: the wait is the server's, from the moment of the cut
/// seed:S-84
#[test]
fn a_cut_stream_waits_then_reopens_then_goes_on() {
    let mut rig = Rig::stream();
    rig.push("id: 7\nretry: 500\ndata:\n\n");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    rig.end().unwrap();
    let at = rig.at(500);
    assert_eq!(rig.run(), (0, Ok(Step::Wait(at))));
    rig.core.handle_timeout(rig.at(499), 0.0).unwrap();
    assert_eq!(rig.run(), (0, Ok(Step::Wait(at))));
    rig.core.handle_timeout(at, 0.0).unwrap();
    assert_eq!(rig.run(), (0, Ok(Step::Reopen)));
    assert_eq!(rig.core.cursor(), "7");
    rig.now = at;
    rig.reopened(200, "text/event-stream").unwrap();
    rig.push("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
    assert_eq!(rig.run(), (1, Ok(Step::Done)));
}

/// protocol:H-25, protocol:H-37
#[test]
fn a_cut_stream_without_a_cursor_or_a_right_to_resume_is_lost() {
    let mut rig = Rig::stream();
    rig.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    assert_eq!(rig.run(), (1, Ok(Step::Read)));
    let error = rig.end().unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::ConnectionLost, true));

    let mut rig = Rig::new(false, "text/event-stream");
    rig.push("id: 7\ndata:\n\n");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    assert_eq!(rig.end().unwrap_err().kind(), ErrorKind::ConnectionLost);
    assert_eq!(rig.run(), (0, Ok(Step::Done)));
}

fn reopening() -> Rig {
    let mut rig = Rig::stream();
    rig.push("id: 7\nretry: 1\ndata:\n\n");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    rig.end().unwrap();
    rig.now = rig.at(1);
    rig.core.handle_timeout(rig.now, 0.0).unwrap();
    rig
}

/// protocol:H-32
#[test]
fn a_refused_resumption_is_the_end() {
    for (status, kind) in [
        (400, ErrorKind::Status),
        (401, ErrorKind::Unauthorized),
        (404, ErrorKind::SessionLost),
        (405, ErrorKind::Status),
    ] {
        let mut rig = reopening();
        let error = rig.reopened(status, "text/plain").unwrap_err();
        assert_eq!((error.kind(), error.outcome_unknown()), (kind, true), "{status}");
        assert_eq!(rig.run(), (0, Ok(Step::Done)));
    }
    let mut rig = reopening();
    assert_eq!(rig.reopened(200, "application/json").unwrap_err().kind(), ErrorKind::PeerMisbehaved);
}

#[test]
fn a_passing_refusal_is_tried_again_until_the_schedule_ends() {
    let mut rig = reopening();
    for _ in 0..4 {
        rig.reopened(503, "text/plain").unwrap();
        let at = rig.at(1);
        assert_eq!(rig.run(), (0, Ok(Step::Wait(at))));
        rig.now = at;
        rig.core.handle_timeout(at, 0.0).unwrap();
        assert_eq!(rig.run(), (0, Ok(Step::Reopen)));
    }
    let failed = Error::new(ErrorKind::Connect, "refused");
    let error = rig.core.handle_reopen_failed(rig.now, 0.0, failed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "refused");
}

#[test]
fn an_error_that_time_does_not_heal_ends_the_resumption() {
    let mut rig = reopening();
    let failed = Error::new(ErrorKind::PeerMisbehaved, "redirected away");
    let error = rig.core.handle_reopen_failed(rig.now, 0.0, failed).unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::PeerMisbehaved, true));
}

/// auth:SEC-18
#[test]
fn a_dripping_event_and_a_dripping_body_time_out() {
    let mut rig = Rig::stream();
    assert_eq!(rig.core.poll_timeout(), None);
    rig.push("da");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    let due = rig.at(30_000);
    assert_eq!(rig.core.poll_timeout(), Some(due));
    rig.core.handle_timeout(rig.at(29_999), 0.0).unwrap();
    assert_eq!(rig.core.handle_timeout(due, 0.0).unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(rig.run(), (0, Ok(Step::Done)));

    let mut rig = Rig::new(true, "application/json");
    assert_eq!(rig.core.poll_timeout(), None);
    rig.push("{");
    let due = rig.at(30_000);
    assert_eq!(rig.core.poll_timeout(), Some(due));
    assert_eq!(rig.core.handle_timeout(due, 0.0).unwrap_err().kind(), ErrorKind::Timeout);
}

/// field:FR-062: a watched silence breaks the stream, which is then resumed if it can be
#[test]
fn silence_breaks_a_watched_stream() {
    let mut config = Config::default();
    config.timeouts.stream_idle = Some(Duration::from_secs(1));
    let mut rig = Rig::with_config(config, true, "text/event-stream");
    rig.push("id: 7\nretry: 10\ndata:\n\n");
    assert_eq!(rig.run(), (0, Ok(Step::Read)));
    let due = rig.at(1000);
    assert_eq!(rig.core.poll_timeout(), Some(due));
    rig.core.handle_timeout(due, 0.0).unwrap();
    assert_eq!(rig.run(), (0, Ok(Step::Wait(due + Duration::from_millis(10)))));
}

/// auth:LIM-08
#[test]
fn limits_end_the_exchange() {
    let mut config = Config::default();
    config.limits.max_event_bytes = 3;
    config.limits.max_body_bytes = 3;
    let mut rig = Rig::with_config(config.clone(), true, "text/event-stream");
    rig.push("data: 1234\n\n");
    assert_eq!(rig.run(), (0, Err(ErrorKind::LimitExceeded)));
    assert_eq!(rig.run(), (0, Ok(Step::Done)));

    let mut rig = Rig::with_config(config, true, "application/json");
    rig.push("123");
    let error = rig.core.handle_chunk(rig.now, Bytes::from_static(b"4")).unwrap_err();
    assert_eq!(error.limit().unwrap().value, 3);
    assert_eq!(rig.run(), (0, Ok(Step::Done)));
}

/// seed:3.7: a declared length above the cap is refused before anything is read
#[test]
fn a_declared_length_above_the_cap_is_refused_at_the_head() {
    let kind = PostKind::Request { id: RequestId::Integer(1), establishes_session: false };
    let mut core = ExchangeCore::new(kind, true, &Arc::default());
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for length in [16 * 1024 * 1024 + 1, u64::MAX] {
        let head = Head {
            status: StatusCode::OK,
            headers: &headers,
            length: Some(length),
            had_authorization: true,
            had_session: false,
            tells_lost: false,
            is_plain: true,
            wall: || std::time::SystemTime::UNIX_EPOCH,
        };
        assert_eq!(core.handle_head(Instant::now(), head).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}
