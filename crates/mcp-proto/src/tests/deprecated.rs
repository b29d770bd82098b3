//! What is said of features that are going to be dropped.

use mcp_model::Root;
use serde_json::{Value, json};

use super::modern::on_channel;
use super::{ALL_CAPABILITIES, Session, config, raw};
use crate::{CallOptions, Config};

fn everything(config: Config) -> Config {
    Config { sampling: true, roots: Some(vec![Root::new("file:///a")]), ..config }
}

fn wants(session: &mut Session, requests: &Value) {
    let (_, request) = session.ask("tools/call", &json!({"name": "t"}));
    session.answer(&request["id"], &json!({"resultType": "input_required", "inputRequests": requests}));
}

/// protocol:SM-10: they work, and each is told once a connection.
#[test]
fn the_use_of_a_deprecated_feature_is_told_once() {
    let mut session = Session::modern(everything(on_channel()));
    let level = raw(&json!({"level": "info"}));
    let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}});
    for round in 0..2 {
        wants(&mut session, &json!({"r": {"method": "roots/list"}, "s": sampling}));
        assert_eq!(session.questions().len(), 1, "it is asked all the same");
        session.core.call(session.now, "logging/setLevel", Some(&level), &CallOptions::default()).unwrap();
        session.events();
        let told = std::mem::take(&mut session.deprecated);
        if round == 0 {
            assert_eq!(
                told,
                [
                    "the server asks for roots, which is deprecated since 2026-07-28",
                    "the server asks for samples of a model, which is deprecated since 2026-07-28",
                    "log levels are in use, which is deprecated since 2026-07-28",
                ]
            );
        } else {
            assert!(told.is_empty(), "{told:?}");
        }
    }
}

/// protocol:SM-10: no earlier revision calls them so.
#[test]
fn nothing_is_deprecated_in_the_legacy_era() {
    let mut session = Session::ready_with(everything(config()), "2025-11-25", ALL_CAPABILITIES);
    session.peer(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    session.peer(r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[]}}"#);
    assert_eq!(session.sent().len(), 1);
    session.question();
    assert!(session.deprecated.is_empty());
}
