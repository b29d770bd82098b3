//! What the encoder writes, and that it reads back as the same.

use std::time::Duration;

use mcp_sse::Limits;
use mcp_sse::encode::{self, Block, EncodeError};
use proptest::prelude::*;

use crate::reference::{self, Item};

fn check(block: Block<'_>, expected: &str) {
    let mut stream = Vec::new();
    assert_eq!(block.write(&mut stream), Ok(()));
    assert_eq!(String::from_utf8_lossy(&stream), expected);
}

#[test]
fn fields_are_written_in_order_and_only_if_set() {
    check(Block::new(), "\n");
    check(Block::new().data("a"), "data: a\n\n");
    check(Block::new().data(""), "data: \n\n");
    check(Block::new().id("").data(" a"), "id: \ndata:  a\n\n");
    check(
        Block::new().data("a").retry(Duration::from_millis(1500)).id("1").event_type("e"),
        "event: e\nid: 1\nretry: 1500\ndata: a\n\n",
    );
}

#[test]
fn retry_is_rounded_up_and_capped() {
    check(Block::new().retry(Duration::ZERO), "retry: 0\n\n");
    check(Block::new().retry(Duration::from_micros(1)), "retry: 1\n\n");
    check(Block::new().retry(Duration::MAX), &format!("retry: {}\n\n", u64::MAX));
}

#[test]
fn data_is_cut_at_every_kind_of_line_end() {
    check(Block::new().data("a\nb\rc\r\nd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
    check(Block::new().data("\n"), "data: \ndata: \n\n");
    check(Block::new().data("a\n\n"), "data: a\ndata: \ndata: \n\n");
}

#[test]
fn no_text_breaks_out_of_its_field() {
    for (block, error) in [
        (Block::new().event_type("a\ndata: x"), EncodeError::LineEndInEventType),
        (Block::new().event_type("a\r"), EncodeError::LineEndInEventType),
        (Block::new().id("1\n\ndata: x"), EncodeError::LineEndInId),
        (Block::new().id("\r"), EncodeError::LineEndInId),
        (Block::new().id("a\0"), EncodeError::NulInId),
    ] {
        let mut stream = b"before".to_vec();
        assert_eq!(block.data("d").write(&mut stream), Err(error));
        assert_eq!(stream, b"before", "nothing is written");
    }
    let mut stream = Vec::new();
    encode::comment(&mut stream, "a\r\ndata: b\n\nid: 1");
    assert_eq!(stream, b": a\n: data: b\n: \n: id: 1\n\n");
    let outcome = reference::parse([&stream[..]], &Limits::new());
    assert_eq!(outcome, reference::Outcome::default());
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(EncodeError::LineEndInEventType.to_string(), "event type contains a line end");
    assert_eq!(EncodeError::LineEndInId.to_string(), "event id contains a line end");
    assert_eq!(EncodeError::NulInId.to_string(), "event id contains a NUL character");
}

#[test]
fn debug_shows_sizes_and_no_content() {
    let shown = format!("{:?}", Block::new().event_type("e").id("secret").data("secret"));
    assert!(!shown.contains("secret"), "{shown}");
}

#[derive(Clone, Debug)]
struct Fields {
    event_type: Option<String>,
    id: Option<String>,
    retry_ms: Option<u64>,
    data: Option<String>,
    comment: Option<String>,
}

fn fields() -> impl Strategy<Value = Fields> {
    let text = || {
        proptest::collection::vec(prop_oneof![
        3 => proptest::sample::select(&["a", " ", ":", "\n", "\r", "\r\n", "data: ", "\u{FEFF}", "\u{1F600}", "\0"][..]),
        1 => proptest::sample::select(&["id: 1", "\u{85}", "\u{2028}", "{}"][..]),
    ], 0..12).prop_map(|parts| parts.concat())
    };
    let in_line = move || text().prop_map(|text| text.replace(['\r', '\n', '\0'], "_"));
    let some = proptest::option::of::<BoxedStrategy<String>>;
    (
        some(in_line().boxed()),
        some(in_line().boxed()),
        proptest::option::of(any::<u64>()),
        some(text().boxed()),
        some(text().boxed()),
    )
        .prop_map(|(event_type, id, retry_ms, data, comment)| Fields {
            event_type,
            id,
            retry_ms,
            data,
            comment,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_read_back_as_they_were(blocks in proptest::collection::vec(fields(), 0..6), size in 1..40_usize) {
        let mut stream = Vec::new();
        let mut expected = reference::Outcome::default();
        for fields in &blocks {
            if let Some(text) = &fields.comment {
                encode::comment(&mut stream, text);
            }
            let mut block = Block::new();
            if let Some(event_type) = &fields.event_type {
                block = block.event_type(event_type);
            }
            if let Some(id) = &fields.id {
                block = block.id(id);
                expected.last_event_id.clone_from(id);
            }
            if let Some(millis) = fields.retry_ms {
                block = block.retry(Duration::from_millis(millis));
                expected.retry_ms = Some(millis);
            }
            if let Some(data) = &fields.data {
                block = block.data(data);
                expected.items.push(Item::Event {
                    event_type: fields.event_type.clone().filter(|name| !name.is_empty()).unwrap_or("message".to_owned()),
                    data: data.replace("\r\n", "\n").replace('\r', "\n"),
                    last_event_id: expected.last_event_id.clone(),
                });
            }
            prop_assert_eq!(block.write(&mut stream), Ok(()));
        }
        prop_assert_eq!(reference::parse(stream.chunks(size), &Limits::new()), expected);
    }
}
