use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::*;
use crate::ErrorKind;

struct Rig {
    core: ListenCore,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let mut config = Config::default();
        config.limits.max_event_bytes = 64;
        let now = Instant::now();
        Self { core: ListenCore::new(now, &Arc::new(config)), now }
    }

    fn push(&mut self, text: &'static str) {
        self.core.handle_chunk(self.now, Bytes::from_static(text.as_bytes())).unwrap();
    }

    fn run(&mut self) -> (Vec<&'static str>, Step) {
        let mut messages = Vec::new();
        loop {
            match self.core.poll().unwrap() {
                Step::Message => messages.push(match self.core.message(&DecodeLimits::new()) {
                    Received::Message(_) => "message",
                    Received::Invalid { .. } => "invalid",
                    Received::Oversized { .. } | Received::OversizedStart { .. } => "oversized",
                    Received::Gap => "gap",
                    Received::Taken => "taken",
                }),
                step => return (messages, step),
            }
        }
    }

    /// Lets the stream end and the wait pass.
    fn reopen(&mut self) -> Result<Duration, Error> {
        self.core.handle_end(self.now, 0.0, None)?;
        let Step::Wait(at) = self.core.poll()? else { panic!("no wait") };
        let waited = at - self.now;
        self.now = at;
        self.core.handle_timeout(at, 0.0)?;
        assert_eq!(self.core.poll()?, Step::Reopen);
        Ok(waited)
    }

    fn reopened(&mut self, status: u16) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
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
}

#[test]
fn bad_messages_cost_only_themselves() {
    let mut rig = Rig::new();
    rig.push("data: {\ndata: \n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    assert_eq!(rig.run(), (vec!["invalid", "message"], Step::Read));
    rig.push("data: 0123456789012345678901234567890123456789012345678901234567890123456789\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    assert_eq!(rig.run(), (vec!["oversized", "message"], Step::Read));
}

/// field:FR-042: delays grow while nothing comes of it, and start again with anything that does
#[test]
fn delays_grow_until_there_is_progress() {
    let mut rig = Rig::new();
    let mut delays = Vec::new();
    for _ in 0..3 {
        delays.push(rig.reopen().unwrap().as_millis());
        rig.reopened(200).unwrap();
    }
    assert_eq!(delays, [1000, 1500, 2250]);
    rig.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    assert_eq!(rig.run(), (vec!["gap", "message"], Step::Read));
    assert_eq!(rig.reopen().unwrap().as_millis(), 1000);
    rig.reopened(200).unwrap();
    // A connection that lasted is progress as well: proxies close idle streams.
    rig.now += Duration::from_secs(30);
    assert_eq!(rig.reopen().unwrap().as_millis(), 1000);
    for _ in 0..4 {
        rig.reopened(200).unwrap();
        rig.reopen().unwrap();
    }
    rig.reopened(200).unwrap();
    assert_eq!(rig.reopen().unwrap_err().kind(), ErrorKind::ConnectionLost);
    assert_eq!(rig.run(), (vec![], Step::Done));
}

/// protocol:H-26: where the server gives its events ids it says what was missed, and where not nobody does.
#[test]
fn a_stream_that_goes_on_from_nowhere_has_a_gap() {
    let mut rig = Rig::new();
    rig.push("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
    assert_eq!(rig.run(), (vec!["message"], Step::Read));
    rig.reopen().unwrap();
    rig.reopened(200).unwrap();
    assert_eq!(rig.run(), (vec!["gap"], Step::Read));
    rig.push("id: 1\ndata:\n\n");
    assert_eq!(rig.run(), (vec![], Step::Read));
    rig.reopen().unwrap();
    rig.reopened(200).unwrap();
    assert_eq!(rig.run(), (vec![], Step::Read));
}

/// protocol:H-29, auth:LIM-09: one event a connection is progress, and no reason to connect as fast as one can
#[test]
fn a_stream_that_wants_no_delay_gets_one_until_a_connection_lasts() {
    let mut rig = Rig::new();
    let mut waited = |lived| {
        rig.push("retry: 0\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n");
        assert_eq!(rig.run().0.last(), Some(&"message"));
        rig.now += Duration::from_secs(lived);
        let waited = rig.reopen().unwrap();
        rig.reopened(200).unwrap();
        waited.as_millis()
    };
    let delays: Vec<_> = (0..50).map(|_| waited(0)).collect();
    assert_eq!(delays, [[0; 10].as_slice(), &[500; 40]].concat());
    assert_eq!([waited(9), waited(10), waited(0)], [500, 0, 0]);
}

/// seed:E11
#[test]
fn a_refusal_ends_the_stream_and_a_passing_one_does_not() {
    for (status, kind) in [
        (401, ErrorKind::Unauthorized),
        (404, ErrorKind::SessionLost),
        (405, ErrorKind::Status),
        (410, ErrorKind::Status),
    ] {
        let mut rig = Rig::new();
        rig.reopen().unwrap();
        assert_eq!(rig.reopened(status).unwrap_err().kind(), kind);
        assert_eq!(rig.run(), (vec![], Step::Done));
    }
    let mut rig = Rig::new();
    rig.reopen().unwrap();
    rig.reopened(503).unwrap();
    assert!(matches!(rig.run(), (_, Step::Wait(_))));
}

/// auth:SEC-18
#[test]
fn a_dripping_event_breaks_the_connection_not_the_stream() {
    let mut rig = Rig::new();
    rig.push("data: x");
    assert_eq!(rig.run(), (vec![], Step::Read));
    let due = rig.now + Duration::from_secs(30);
    assert_eq!(rig.core.poll_timeout(), Some(due));
    // Early is harmless.
    rig.core.handle_timeout(due - Duration::from_millis(1), 0.0).unwrap();
    assert_eq!(rig.run(), (vec![], Step::Read));
    rig.core.handle_timeout(due, 0.0).unwrap();
    assert!(matches!(rig.run(), (_, Step::Wait(_))));
}
