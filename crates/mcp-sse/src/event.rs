//! Events of the parser, borrowed or owned.

use std::fmt;

/// The type of an event that names none.
pub(crate) const DEFAULT_TYPE: &str = "message";

/// A dispatched event, which borrows from the parser or its input.
///
/// `Debug` shows sizes only: data and id may be confidential.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    event_type: &'a str,
    data: &'a str,
    last_event_id: &'a str,
    has_own_id: bool,
}

impl<'a> Event<'a> {
    pub(crate) const fn new(
        event_type: &'a str,
        data: &'a str,
        last_event_id: &'a str,
        has_own_id: bool,
    ) -> Self {
        Self { event_type, data, last_event_id, has_own_id }
    }

    /// The event type: the value of the block's last `event` field, or `message` if that is absent or empty.
    #[must_use]
    pub const fn event_type(&self) -> &'a str {
        if self.event_type.is_empty() { DEFAULT_TYPE } else { self.event_type }
    }

    /// The data: the values of the block's `data` fields, joined by line feeds. May be empty: a block with an empty `data`
    /// field is an event.
    #[must_use]
    pub const fn data(&self) -> &'a str {
        self.data
    }

    /// The last event ID of the stream when this event was dispatched: the event's own, or the one that an earlier block set.
    /// Empty if there is none.
    #[must_use]
    pub const fn last_event_id(&self) -> &'a str {
        self.last_event_id
    }

    /// The id of the event itself: `None` if its block had no valid `id` field, `Some("")` if that reset the last event ID. Use it to
    /// forward an event unchanged; to resume a stream use [`last_event_id`](Self::last_event_id).
    #[must_use]
    pub const fn id(&self) -> Option<&'a str> {
        if self.has_own_id { Some(self.last_event_id) } else { None }
    }

    /// Copies the event, with one allocation.
    #[must_use]
    pub fn into_owned(self) -> OwnedEvent {
        let size = self.data.len() + self.event_type.len() + self.last_event_id.len();
        let mut text = String::with_capacity(size);
        text.push_str(self.data);
        OwnedEvent::from_buffer(text, self.event_type, self.last_event_id, self.has_own_id)
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_sizes(f, "Event", *self)
    }
}

/// A dispatched event that owns its text, in a single allocation.
///
/// `Debug` shows sizes only, as for [`Event`].
#[derive(Clone, PartialEq, Eq)]
pub struct OwnedEvent {
    /// Data, type and id, one after the other.
    // Invariant: `data_end <= type_end <= text.len()`, both on character boundaries.
    text: String,
    data_end: usize,
    type_end: usize,
    has_own_id: bool,
}

impl OwnedEvent {
    /// Takes over a buffer that holds the data, and appends the rest.
    pub(crate) fn from_buffer(
        mut text: String,
        event_type: &str,
        last_event_id: &str,
        has_own_id: bool,
    ) -> Self {
        let data_end = text.len();
        let type_end = data_end + event_type.len();
        text.reserve_exact(event_type.len() + last_event_id.len());
        text.push_str(event_type);
        text.push_str(last_event_id);
        Self { text, data_end, type_end, has_own_id }
    }

    /// As [`Event::event_type`].
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.as_event().event_type()
    }

    /// As [`Event::data`].
    #[must_use]
    pub fn data(&self) -> &str {
        self.as_event().data()
    }

    /// As [`Event::last_event_id`].
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.as_event().last_event_id()
    }

    /// As [`Event::id`].
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.as_event().id()
    }

    /// The same event, borrowed.
    #[must_use]
    pub fn as_event(&self) -> Event<'_> {
        let part = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        Event::new(
            part(self.data_end, self.type_end),
            part(0, self.data_end),
            part(self.type_end, self.text.len()),
            self.has_own_id,
        )
    }

    /// The data, without a copy.
    #[must_use]
    pub fn into_data(mut self) -> String {
        self.text.truncate(self.data_end);
        self.text
    }
}

impl fmt::Debug for OwnedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_sizes(f, "OwnedEvent", self.as_event())
    }
}

fn debug_sizes(f: &mut fmt::Formatter<'_>, name: &str, event: Event<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("event_type_bytes", &event.event_type().len())
        .field("data_bytes", &event.data().len())
        .field("last_event_id_bytes", &event.last_event_id().len())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owned_event_is_one_allocation_of_its_size() {
        let owned = Event::new("type", "data of it", "cursor", true).into_owned();
        assert_eq!((owned.text.as_str(), owned.text.capacity()), ("data of ittypecursor", 20));
        let owned = OwnedEvent::from_buffer("data".to_owned(), "type", "cursor", true);
        assert_eq!((owned.text.as_str(), owned.text.capacity()), ("datatypecursor", 14));
    }
}
