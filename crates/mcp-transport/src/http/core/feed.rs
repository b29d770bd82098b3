//! An event stream as a source of messages: events that carry none are passed over, and no event may drip for ever.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_jsonrpc::RequestId;
use mcp_sse::{Event, Limit as Bound, LimitError, Limits, Parser};

use super::dropped::DataWatch;
use super::fault;
use crate::http::config::HttpLimits;
use crate::{Error, Limit, Received};

/// The text of one message, held without a copy where it came in one piece.
pub(crate) enum Payload {
    /// A part of a piece of the response, not checked to be UTF-8 by its type.
    Bytes(Bytes),
    /// Text that was put together from several pieces.
    Text(String),
}

impl Payload {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.as_bytes().len())
    }
}

/// What an event is to this transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Where to post, in the transport of 2024-11-05.
    Endpoint,
    /// A message.
    Message,
    /// Anything else; it means nothing.
    Other,
}

/// An event above a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overflow {
    over: LimitError,
    /// The length of what is too long; as far as it was read where the stream is left at once, and of an id or a type.
    pub(crate) bytes: u64,
    /// The call that it answers, where that is beyond doubt.
    pub(crate) answer_to: Option<RequestId>,
    stage: Stage,
}

/// How far an event above a limit has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its end has not come, and may never do.
    Begun,
    /// All of it has come. `announced`: it was told of before.
    Ended { announced: bool },
}

impl Overflow {
    pub(crate) fn into_received(self) -> Received<'static> {
        let limit = Limit::new(self.name(), widen(self.over.max_bytes()));
        let Self { bytes, answer_to, .. } = self;
        match self.stage {
            Stage::Begun => Received::OversizedStart { bytes, limit },
            Stage::Ended { announced } => Received::Oversized { bytes, limit, answer_to, announced },
        }
    }

    pub(crate) fn into_error(self) -> Error {
        let what = match self.over.limit() {
            Bound::EventId => "the id of an event",
            Bound::EventType => "the type of an event",
            _ => "an event",
        };
        fault::over_limit(self.name(), what, self.over.max_bytes())
    }

    /// The limit's field in [`HttpLimits`].
    fn name(&self) -> &'static str {
        match self.over.limit() {
            Bound::EventId | Bound::EventType => "max_event_id_bytes",
            _ => "max_event_bytes",
        }
    }
}

fn widen(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Parser, the piece it is working on, and the two clocks of the stream.
#[derive(Debug)]
pub(crate) struct Feed {
    parser: Parser,
    chunk: Bytes,
    /// When the first byte of the unfinished event came.
    open_since: Option<Instant>,
    last_byte: Instant,
    opened: Instant,
    /// Where many calls share the stream: whose answer an event above the limit is.
    watch_data: Option<Box<DataWatch>>,
    /// The block under way is above this limit, and is passed over.
    dropping: Option<LimitError>,
    /// That was told.
    announced: bool,
}

impl Feed {
    pub(crate) fn new(now: Instant, limits: &HttpLimits) -> Self {
        let limits = Limits::new()
            .with_max_event_data_bytes(limits.max_event_bytes)
            .with_max_event_id_bytes(limits.max_event_id_bytes)
            .with_max_event_type_bytes(limits.max_event_id_bytes);
        Self {
            parser: Parser::new(limits),
            chunk: Bytes::new(),
            open_since: None,
            last_byte: now,
            opened: now,
            watch_data: None,
            dropping: None,
            announced: false,
        }
    }

    /// As [`new`](Self::new), for a stream of many messages, which goes on after one above the limit: that is told as soon as the
    /// limit is passed, and again at its end, with the call that it answers.
    pub(crate) fn shared(now: Instant, limits: &HttpLimits) -> Self {
        Self { watch_data: Some(Box::new(DataWatch::new())), ..Self::new(now, limits) }
    }

    /// Prepares for the bytes of a new connection; the cursor stays.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.parser.reset();
        self.chunk = Bytes::new();
        self.open_since = None;
        self.last_byte = now;
        self.opened = now;
        self.dropping = None;
        self.announced = false;
        if let Some(watch) = &mut self.watch_data {
            **watch = DataWatch::new();
        }
    }

    /// Takes the next piece of the stream. Call [`next`](Self::next) until it is used up before the next one.
    pub(crate) fn push(&mut self, now: Instant, chunk: Bytes) {
        self.last_byte = now;
        self.chunk = chunk;
    }

    /// The next message in the current piece. Events of other types and events without data (as they prime a cursor)
    /// are no messages.
    pub(crate) fn next(&mut self) -> Result<Option<Payload>, Overflow> {
        loop {
            match self.next_event()? {
                None => return Ok(None),
                Some((EventKind::Message, payload)) => return Ok(Some(payload)),
                Some(_) => {}
            }
        }
    }

    /// The next event in the current piece, of whatever kind.
    pub(crate) fn next_event(&mut self) -> Result<Option<(EventKind, Payload)>, Overflow> {
        if let Some(error) = self.dropping {
            return self.pass_over(error);
        }
        let mut input: &[u8] = &self.chunk;
        let before = input.len();
        // An event that began in an earlier piece lies in the parser's buffer, which it takes along when it is large.
        // One that lies in this piece shares it. So neither is copied.
        let event = if self.open_since.is_some() {
            let event = self.parser.next_owned(&mut input);
            event.map(|event| {
                event.map(|event| (EventKind::of(event.as_event()), Payload::Text(event.into_data())))
            })
        } else {
            let event = self.parser.next(&mut input);
            event.map(|event| event.map(|event| (EventKind::of(event), lent_payload(event, &self.chunk))))
        };
        let used = before - input.len();
        if let Ok(None) = event {
            self.end_piece();
            return Ok(None);
        }
        let passed = self.chunk.split_to(used);
        match event {
            Ok(event) => {
                self.open_since = None;
                if let Some(watch) = &mut self.watch_data {
                    **watch = DataWatch::new();
                }
                Ok(event)
            }
            Err(error) => self.overflow(error, &passed),
        }
    }

    /// The block under way is above the limit; `passed` came of this piece before that showed.
    fn overflow(
        &mut self,
        error: LimitError,
        passed: &[u8],
    ) -> Result<Option<(EventKind, Payload)>, Overflow> {
        let Some(watch) = &mut self.watch_data else {
            let bytes = widen(error.max_bytes()).saturating_add(1);
            let stage = Stage::Ended { announced: false };
            return Err(Overflow { over: error, bytes, answer_to: None, stage });
        };
        watch.pass(passed);
        self.dropping = Some(error);
        self.open_since.get_or_insert(self.last_byte);
        self.pass_over(error)
    }

    /// Passes over the block that is above the limit, and says so once, and at its end.
    fn pass_over(&mut self, error: LimitError) -> Result<Option<(EventKind, Payload)>, Overflow> {
        let Some(watch) = &mut self.watch_data else { return Ok(None) };
        let end = watch.find_end(&self.chunk);
        let passed = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
        // The parser gave the block up too, and brings nothing before its end.
        let mut input: &[u8] = &passed;
        let _ = self.parser.next(&mut input);
        let length = |data| match error.limit() {
            Bound::EventData => data,
            _ => widen(error.max_bytes()).saturating_add(1),
        };
        if end.is_none() {
            if std::mem::replace(&mut self.announced, true) {
                return Ok(None);
            }
            let bytes = length(watch.bytes());
            return Err(Overflow { over: error, bytes, answer_to: None, stage: Stage::Begun });
        }
        let (bytes, answer_to) = watch.take();
        let stage = Stage::Ended { announced: std::mem::take(&mut self.announced) };
        self.dropping = None;
        self.open_since = None;
        Err(Overflow { over: error, bytes: length(bytes), answer_to, stage })
    }

    /// What is left of the piece belongs to no event that has ended.
    fn end_piece(&mut self) {
        if let Some(watch) = &mut self.watch_data {
            watch.pass(&self.chunk);
        }
        if self.parser.inside_block() {
            self.open_since.get_or_insert(self.last_byte);
        } else {
            self.open_since = None;
        }
        self.chunk = Bytes::new();
    }

    /// When the unfinished event has taken too long.
    pub(crate) fn message_deadline(&self, message: Duration) -> Option<Instant> {
        self.open_since.and_then(|since| since.checked_add(message))
    }

    /// When the stream has been silent for too long.
    pub(crate) fn idle_deadline(&self, idle: Option<Duration>) -> Option<Instant> {
        idle.and_then(|idle| self.last_byte.checked_add(idle))
    }

    /// How long this connection of the stream has lasted.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    /// What to resume from; empty if there is nothing.
    pub(crate) fn cursor(&self) -> &str {
        self.parser.last_event_id()
    }

    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }
}

impl EventKind {
    fn of(event: Event<'_>) -> Self {
        match event.event_type() {
            "message" if !event.data().is_empty() => Self::Message,
            "endpoint" => Self::Endpoint,
            _ => Self::Other,
        }
    }
}

/// The data of an event, shared with the piece it is lent from, or copied out of the parser.
fn lent_payload(event: Event<'_>, chunk: &Bytes) -> Payload {
    let data = event.data().as_bytes();
    if chunk.as_ptr_range().contains(&data.as_ptr()) {
        Payload::Bytes(chunk.slice_ref(data))
    } else {
        Payload::Text(event.data().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAP: usize = 64;

    fn limits(max_event_bytes: usize) -> HttpLimits {
        HttpLimits { max_event_bytes, ..HttpLimits::default() }
    }

    fn texts(feed: &mut Feed, now: Instant, piece: &'static [u8]) -> Vec<String> {
        feed.push(now, Bytes::from_static(piece));
        let mut texts = Vec::new();
        while let Some(payload) = feed.next().unwrap() {
            texts.push(String::from_utf8(payload.as_bytes().to_vec()).unwrap());
        }
        texts
    }

    /// field:FR-027, field:FR-031, seed:E9
    #[test]
    fn only_message_events_with_data_are_messages() {
        let now = Instant::now();
        let mut feed = Feed::new(now, &limits(CAP));
        assert!(texts(&mut feed, now, b"id: s1_0\nretry: 3000\ndata:\n\n: ping\n\n").is_empty());
        assert_eq!(feed.cursor(), "s1_0");
        assert_eq!(feed.retry(), Some(Duration::from_secs(3)));
        assert!(texts(&mut feed, now, b"event: ping\ndata: {}\n\nevent: endpoint\ndata: /x\n\n").is_empty());
        assert_eq!(texts(&mut feed, now, b"event: message\ndata: 1\n\ndata: 2\n\n"), ["1", "2"]);
        assert_eq!(texts(&mut feed, now, b"data: a\ndata: b\n\n"), ["a\nb"]);
    }

    #[test]
    fn a_message_in_one_piece_is_shared_not_copied() {
        let now = Instant::now();
        let mut feed = Feed::new(now, &limits(CAP));
        feed.push(now, Bytes::from_static(b"data: one\n\nda"));
        assert!(matches!(feed.next(), Ok(Some(Payload::Bytes(_)))));
        assert!(matches!(feed.next(), Ok(None)));
        feed.push(now, Bytes::from_static(b"ta: two\n\n"));
        assert!(matches!(feed.next(), Ok(Some(Payload::Text(text))) if text == "two"));
    }

    /// auth:SEC-18: what ends without being an event stops the clock too, and comments that keep the stream alive do not start it.
    #[test]
    fn an_id_alone_is_over_at_its_blank_line() {
        let start = Instant::now();
        for mut feed in [Feed::new(start, &limits(CAP)), Feed::shared(start, &limits(CAP))] {
            texts(&mut feed, start, b"id: 1\n");
            assert!(feed.message_deadline(Duration::ZERO).is_some());
            for piece in [&b"\n: c\n"[..], b": c\n", b"\n: c"] {
                texts(&mut feed, start, piece);
                assert_eq!(feed.message_deadline(Duration::ZERO), None, "{piece:?}");
            }
        }
    }

    /// The slow twin: whether a line that is no comment came since the last blank line.
    fn stands_inside_an_event(text: &str) -> bool {
        let unix = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines = unix.split('\n').peekable();
        let mut inside = false;
        while let Some(line) = lines.next() {
            match line {
                "" if lines.peek().is_some() => inside = false,
                "" => {}
                line => inside |= !line.starts_with(':'),
            }
        }
        inside
    }

    proptest! {
        /// auth:SEC-18
        #[test]
        fn the_clock_runs_while_the_stream_stands_inside_an_event(
            pieces in prop::collection::vec("(data: x|id: 1|:|d|\r|\n|\r\n){0,6}", 0..6),
            shared: bool,
        ) {
            let now = Instant::now();
            let mut feed = if shared { Feed::shared(now, &limits(CAP)) } else { Feed::new(now, &limits(CAP)) };
            let mut text = String::new();
            for piece in pieces {
                text.push_str(&piece);
                feed.push(now, Bytes::from(piece));
                while feed.next_event().unwrap().is_some() {}
                let runs = feed.message_deadline(Duration::ZERO).is_some();
                prop_assert_eq!(runs, stands_inside_an_event(&text), "{:?}", text);
            }
        }
    }

    /// auth:SEC-18
    #[test]
    fn the_clock_of_a_message_starts_with_its_first_byte() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limit = Duration::from_secs(30);
        let mut feed = Feed::new(start, &limits(CAP));
        assert_eq!(feed.message_deadline(limit), None);
        texts(&mut feed, at(100), b": comment\n\n: another");
        assert_eq!(feed.message_deadline(limit), None);
        texts(&mut feed, at(110), b"\nda");
        texts(&mut feed, at(120), b"ta: x");
        assert_eq!(feed.message_deadline(limit), Some(at(140)));
        texts(&mut feed, at(130), b"\n\n");
        assert_eq!(feed.message_deadline(limit), None);
        texts(&mut feed, at(140), b"data: a");
        texts(&mut feed, at(150), b"\n\ndata: b");
        assert_eq!(feed.message_deadline(limit), Some(at(180)));
        feed.restart(at(200));
        assert_eq!(feed.message_deadline(limit), None);
    }

    /// field:FR-062, protocol:H-41
    #[test]
    fn comments_count_as_life() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut feed = Feed::new(start, &limits(CAP));
        let idle = Some(Duration::from_secs(10));
        assert_eq!(feed.idle_deadline(idle), Some(at(10)));
        texts(&mut feed, at(8), b":\n");
        assert_eq!(feed.idle_deadline(idle), Some(at(18)));
        assert_eq!(feed.idle_deadline(None), None);
    }

    /// auth:LIM-08
    #[test]
    fn an_event_at_the_cap_passes_and_one_above_fails() {
        let now = Instant::now();
        let mut feed = Feed::new(now, &limits(4));
        assert_eq!(texts(&mut feed, now, b"data: 123\n\ndata: 1234\n\n"), ["123", "1234"]);
        feed.push(now, Bytes::from_static(b"data: 12345\n\ndata: 6\n\n"));
        assert!(feed.next().is_err());
        assert!(matches!(feed.next(), Ok(Some(_))));
    }

    /// auth:LIM-09: it is the id's own limit that is told, on a stream of one call and on one of many.
    #[test]
    fn an_id_at_its_limit_passes_and_one_above_is_told_by_its_own_limit() {
        let now = Instant::now();
        let event = |id: usize, kind: usize| {
            let (id, kind) = ("i".repeat(id), "t".repeat(kind));
            let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
            Bytes::from(format!("id: {id}\nevent: {kind}\ndata: {answer}\n\ndata: next\n\n"))
        };
        let limit = 64 * 1024;
        for (id, kind, what) in
            [(limit, limit, None), (limit + 1, 1, Some("id")), (1, limit + 1, Some("type"))]
        {
            for shared in [false, true] {
                let limits = HttpLimits::default();
                let mut feed = if shared { Feed::shared(now, &limits) } else { Feed::new(now, &limits) };
                feed.push(now, event(id, kind));
                if let Some(what) = what {
                    let overflow = feed.next().unwrap_err();
                    let error = overflow.clone().into_error();
                    let expected = Limit::new("max_event_id_bytes", 65_536);
                    assert_eq!(error.limit(), Some(expected));
                    let text = format!("the {what} of an event exceeds the limit of 65536 bytes");
                    assert_eq!(error.to_string(), text);
                    let Received::Oversized { bytes, limit, answer_to, .. } = overflow.into_received() else {
                        panic!("it is told as what is too large")
                    };
                    assert_eq!((bytes, limit), (65_537, expected));
                    assert_eq!(answer_to, shared.then_some(RequestId::Integer(7)));
                }
                assert_eq!(feed.next().unwrap().unwrap().as_bytes(), b"next", "{what:?} {shared}");
            }
        }
    }

    /// protocol:H-64, seed:B30, auth:LIM-08
    #[test]
    fn a_large_event_on_a_shared_stream_costs_itself_and_tells_whose_answer_it_was() {
        let now = Instant::now();
        let answer = r#"{"result":{"text":"\"id\":1"},"jsonrpc":"2.0","id":7}"#;
        for line_end in ["\n", "\r\n", "\r"] {
            let text = format!(
                ": c{line_end}{line_end}data: 1234{line_end}{line_end}id: x{line_end}event: message{line_end}\
                 data: {answer}{line_end}{line_end}id: y{line_end}{line_end}data:567{line_end}{line_end}\
                 data: {{\"id\":8,{line_end}data:\"result\":1}}{line_end}{line_end}\
                 data: 0123456789{line_end}{line_end}data: 8{line_end}{line_end}"
            );
            for size in 1..text.len() {
                let mut feed = Feed::shared(now, &limits(9));
                let (mut seen, mut begun) = (Vec::new(), false);
                for piece in text.as_bytes().chunks(size) {
                    feed.push(now, Bytes::copy_from_slice(piece));
                    loop {
                        match feed.next() {
                            Ok(None) => break,
                            Ok(Some(payload)) => {
                                seen.push(String::from_utf8(payload.as_bytes().to_vec()).unwrap());
                            }
                            Err(Overflow { bytes, over, stage: Stage::Begun, .. }) => {
                                assert_eq!((over.limit(), over.max_bytes()), (Bound::EventData, 9));
                                assert!(bytes > 9 && !std::mem::replace(&mut begun, true), "{size}: {bytes}");
                            }
                            Err(Overflow { bytes, answer_to, over, stage: Stage::Ended { announced } }) => {
                                assert_eq!((over.limit(), over.max_bytes()), (Bound::EventData, 9));
                                assert_eq!(announced, std::mem::take(&mut begun), "{size}");
                                assert!(announced || size > 1, "its end comes after all of its data");
                                seen.push(format!("{bytes} {answer_to:?}"));
                            }
                        }
                    }
                }
                let large = format!("{} Some(Integer(7))", answer.len());
                let lines = "20 Some(Integer(8))";
                assert_eq!(seen, ["1234", &large, "567", lines, "10 None", "8"], "{size} {line_end:?}");
                assert_eq!(feed.cursor(), "y");
                assert_eq!(feed.message_deadline(Duration::ZERO), None);
            }
        }
    }
}
