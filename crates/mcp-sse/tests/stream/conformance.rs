//! Every case of the table, in every way it can arrive.

use mcp_sse::Limits;

use crate::cases::{Case, OWN, WEB_PLATFORM};
use crate::reference::{self, Item, Outcome};

fn expected(case: &Case) -> Outcome {
    let event = |&(event_type, data, last_event_id): &(&str, &str, &str)| Item::Event {
        event_type: event_type.to_owned(),
        data: data.to_owned(),
        last_event_id: last_event_id.to_owned(),
    };
    Outcome {
        items: case.events.iter().map(event).collect(),
        last_event_id: case.last_event_id.to_owned(),
        retry_ms: case.retry_ms,
    }
}

fn all() -> impl Iterator<Item = &'static Case> {
    WEB_PLATFORM.iter().chain(OWN)
}

#[test]
fn the_table_has_its_size() {
    assert!(WEB_PLATFORM.len() >= 26, "{}", WEB_PLATFORM.len());
    assert!(OWN.len() >= 75, "{}", OWN.len());
}

// seed:S-85 to seed:S-95d, seed:E5 to seed:E9, protocol:H-10, protocol:H-26
#[test]
fn every_case_arriving_whole() {
    for case in all() {
        assert_eq!(reference::parse([case.stream], &Limits::new()), expected(case), "{}", case.name);
    }
}

#[test]
fn every_case_arriving_byte_by_byte() {
    for case in all() {
        let outcome = reference::parse(case.stream.chunks(1), &Limits::new());
        assert_eq!(outcome, expected(case), "{}", case.name);
    }
}

// field:FR-029
#[test]
fn every_case_split_at_every_offset() {
    for case in all() {
        for at in 0..=case.stream.len() {
            let (one, two) = case.stream.split_at(at);
            let outcome = reference::parse([one, two], &Limits::new());
            assert_eq!(outcome, expected(case), "{} split at {at}", case.name);
            let outcome = reference::parse([one, b"", two], &Limits::new());
            assert_eq!(outcome, expected(case), "{} split at {at} with an empty piece", case.name);
        }
    }
}

#[test]
fn every_case_as_owned_events() {
    for case in all() {
        for size in [1, 3, usize::MAX] {
            let outcome = reference::parse_owned(case.stream.chunks(size), &Limits::new());
            assert_eq!(outcome, expected(case), "{} in pieces of {size}", case.name);
        }
    }
}

#[test]
fn the_reference_agrees_with_the_table() {
    for case in all() {
        assert_eq!(reference::decode(case.stream, &Limits::new()), expected(case), "{}", case.name);
    }
}
