//! The decoder against a slow, obvious one built on `serde_json`.

mod check;
mod generate;
mod reference;

use check::check;
use mcp_jsonrpc::RequestId;
use proptest::prelude::*;
use reference::Verdict;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(1200))]

    #[test]
    fn valid_json_is_judged_as_the_reference_does(text in generate::json_text()) {
        prop_assert!(reference::judge(&text).is_some(), "the generator writes valid JSON: {}", text);
        check(text.as_bytes());
    }

    #[test]
    fn broken_bytes_are_never_taken_for_something_else(
        text in generate::json_text(),
        mutations in proptest::collection::vec((any::<prop::sample::Index>(), generate::mutation()), 1..4),
    ) {
        let mut bytes = text.into_bytes();
        for (place, mutation) in mutations {
            generate::mutate(&mut bytes, place, mutation);
        }
        check(&bytes);
    }

    #[test]
    fn any_text_is_refused_or_understood(text in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,60}") {
        check(text.as_bytes());
    }
}

#[test]
fn the_reference_knows_the_simple_cases() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#;
    let verdict =
        Verdict::Request { id: RequestId::from(1), method: "m".into(), params: Some("{\"a\":1}".into()) };
    assert_eq!(reference::judge(request), Some(vec![verdict]));
    let both = r#"{"jsonrpc":"2.0","id":"x","result":1,"error":{"code":1,"message":""}}"#;
    assert_eq!(reference::judge(both), Some(vec![Verdict::Refused { id: Some(RequestId::from("x")) }]));
    assert_eq!(reference::judge("{"), None);
}
