//! A slow and obvious decoder of event streams: the whole text, cut into lines, read line by line.
//! The parser must agree with it on every input and every chunking.

use mcp_sse::{Limit, LimitError, Limits, OwnedEvent, Parser};

/// What comes of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Events and errors, in order.
    pub(crate) items: Vec<Item>,
    /// The last event id at the end.
    pub(crate) last_event_id: String,
    /// The last `retry` at the end.
    pub(crate) retry_ms: Option<u64>,
}

/// One thing that the parser hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A dispatched event.
    Event {
        /// Its type.
        event_type: String,
        /// Its data.
        data: String,
        /// The last event id at its dispatch.
        last_event_id: String,
    },
    /// A limit that a block broke.
    TooLong(Limit),
}

/// Decodes a stream that has arrived in full.
///
/// An unfinished last line counts for nothing here, so only for streams that end with a line end
/// does this tell which limits a parser reports.
pub(crate) fn decode(stream: &[u8], limits: &Limits) -> Outcome {
    let text = String::from_utf8_lossy(stream).into_owned();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);

    let mut outcome = Outcome::default();
    let mut data: Vec<String> = Vec::new();
    let mut event_type = String::new();
    let mut id: Option<String> = None;
    let mut broken = false;

    for line in finished_lines(text) {
        if line.is_empty() {
            if let Some(id) = id.take() {
                outcome.last_event_id = id;
            }
            if !data.is_empty() && !broken {
                outcome.items.push(Item::Event {
                    event_type: if event_type.is_empty() { "message".into() } else { event_type.clone() },
                    data: data.join("\n"),
                    last_event_id: outcome.last_event_id.clone(),
                });
            }
            data.clear();
            event_type.clear();
            broken = false;
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let mut too_long = None;
        match name {
            "data" if !broken => {
                data.push(value.to_owned());
                let line_feeds = data.len() - 1;
                if data.iter().map(String::len).sum::<usize>() + line_feeds > limits.max_event_data_bytes {
                    too_long = Some(Limit::EventData);
                }
            }
            "event" if !broken => {
                event_type = value.to_owned();
                if value.len() > limits.max_event_type_bytes {
                    too_long = Some(Limit::EventType);
                }
            }
            "id" => match value.find('\0') {
                None if value.len() <= limits.max_event_id_bytes => id = Some(value.to_owned()),
                Some(nul) if nul <= limits.max_event_id_bytes => {}
                _ => {
                    too_long = Some(Limit::EventId);
                    id = None;
                }
            },
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // Digits alone fail to parse only when there are too many of them.
                outcome.retry_ms = Some(value.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
        if let Some(limit) = too_long
            && !broken
        {
            broken = true;
            outcome.items.push(Item::TooLong(limit));
        }
    }
    outcome
}

/// The lines that a line end follows.
fn finished_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                if characters.peek() == Some(&'\n') {
                    characters.next();
                }
                lines.push(std::mem::take(&mut line));
            }
            '\n' => lines.push(std::mem::take(&mut line)),
            _ => line.push(character),
        }
    }
    lines
}

/// What the parser makes of a stream that arrives in these pieces.
pub(crate) fn parse<'c>(pieces: impl IntoIterator<Item = &'c [u8]>, limits: &Limits) -> Outcome {
    let mut parser = Parser::new(*limits);
    let mut items = Vec::new();
    for mut piece in pieces {
        loop {
            match parser.next(&mut piece) {
                Ok(None) => break,
                Ok(Some(event)) => items.push(Item::Event {
                    event_type: event.event_type().to_owned(),
                    data: event.data().to_owned(),
                    last_event_id: event.last_event_id().to_owned(),
                }),
                Err(error) => items.push(Item::TooLong(LimitError::limit(&error))),
            }
        }
        assert!(piece.is_empty(), "`None` means that the input is used up");
    }
    outcome(&parser, items)
}

/// The same with owned events.
pub(crate) fn parse_owned<'c>(pieces: impl IntoIterator<Item = &'c [u8]>, limits: &Limits) -> Outcome {
    let mut parser = Parser::new(*limits);
    let mut items = Vec::new();
    for mut piece in pieces {
        loop {
            match parser.next_owned(&mut piece) {
                Ok(None) => break,
                Ok(Some(event)) => items.push(Item::Event {
                    event_type: event.event_type().to_owned(),
                    last_event_id: event.last_event_id().to_owned(),
                    data: event.into_data(),
                }),
                Err(error) => items.push(Item::TooLong(error.limit())),
            }
        }
    }
    outcome(&parser, items)
}

/// The owned events themselves, which have to be equal wherever what they tell is. Limits are out of reach.
pub(crate) fn owned_events<'c>(pieces: impl IntoIterator<Item = &'c [u8]>) -> Vec<OwnedEvent> {
    let mut parser = Parser::new(Limits::new());
    let mut events = Vec::new();
    for mut piece in pieces {
        while let Ok(Some(event)) = parser.next_owned(&mut piece) {
            events.push(event);
        }
    }
    events
}

fn outcome(parser: &Parser, items: Vec<Item>) -> Outcome {
    Outcome {
        items,
        last_event_id: parser.last_event_id().to_owned(),
        retry_ms: parser.retry().map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
    }
}
