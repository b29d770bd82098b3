//! Event streams as servers send them.

use bytes::Bytes;

use crate::messages;

/// `message` events with progress notifications, 142 bytes each.
pub(crate) fn small(events: usize) -> Bytes {
    events_of((0..events).map(messages::progress), "\n")
}

/// The same with CRLF, as Python servers send them.
pub(crate) fn small_crlf(events: usize) -> Bytes {
    events_of((0..events).map(messages::progress), "\r\n")
}

/// The same with an id line of 33 bytes.
pub(crate) fn small_with_ids(events: usize) -> Bytes {
    let event = |index| format!("event: message\nid: {index:028}\ndata: {}\n\n", messages::progress(index));
    (0..events).map(event).collect::<String>().into()
}

/// `message` events with one `data` line each.
pub(crate) fn events_of(messages: impl Iterator<Item = String>, line_end: &str) -> Bytes {
    let event = |message| format!("event: message{line_end}data: {message}{line_end}{line_end}");
    messages.map(event).collect::<String>().into()
}

/// Tool results with text of so many bytes, one character in a hundred outside of ASCII.
pub(crate) fn texts(events: usize, bytes: usize) -> Bytes {
    events_of((0..events).map(|index| messages::mixed_text(bytes, index)), "\n")
}

/// 200 `data` lines an event.
pub(crate) fn data_lines(events: usize) -> Bytes {
    let event: String = (0..200).map(|line| format!("data: {line:044}\n")).chain(["\n".to_owned()]).collect();
    event.repeat(events).into()
}

/// A hundred keep-alives before each small event.
pub(crate) fn comments(events: usize) -> Bytes {
    let keep_alives = ": ping - 2026-11-29 17:00:00.000000+00:00\n\n".repeat(100);
    let event = |index| format!("{keep_alives}event: message\ndata: {}\n\n", messages::progress(index));
    (0..events).map(event).collect::<String>().into()
}

/// The first bytes of a `data` line that does not end.
pub(crate) fn endless_line(bytes: usize) -> Bytes {
    let mut line = b"data: ".to_vec();
    line.resize(bytes, b'x');
    line.into()
}
