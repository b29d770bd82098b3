//! Results that are used again (2026-07-28, "Caching").

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::modern::{on_channel, on_exchanges};
use super::{Session, raw};
use crate::{CacheConfig, CacheUse, CallOptions, Config, Event};

const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

fn with(cache: CacheConfig) -> Config {
    Config { cache, ..on_channel() }
}

fn session() -> Session {
    Session::modern(on_channel())
}

fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result
}

/// A result that is fresh for a minute.
fn minute(scope: &str) -> Value {
    complete(json!({"ttlMs": 60_000, "cacheScope": scope}))
}

impl Session {
    fn fetch_with(&mut self, method: &str, params: &Value, options: &CallOptions, result: &Value) {
        let (call, request) = self.ask_with(method, params, options);
        self.answer(&request["id"], result);
        self.outcome(call).unwrap();
    }

    /// Asks the server, which answers with this.
    fn fetch(&mut self, method: &str, params: &Value, result: &Value) {
        self.fetch_with(method, params, &CallOptions::default(), result);
    }

    /// Whether the call ends by itself, with nothing sent.
    fn hits_with(&mut self, method: &str, params: &Value, options: &CallOptions) -> bool {
        let call = self.core.call(self.now, method, Some(&raw(params)), options).unwrap();
        let sent = self.sent();
        if sent.is_empty() {
            self.outcome(call).unwrap();
            return true;
        }
        assert!(self.core.is_open(call));
        self.core.forget(call);
        false
    }

    fn hits(&mut self, method: &str, params: &Value) -> bool {
        self.hits_with(method, params, &CallOptions::default())
    }

    fn listen_to(&mut self, wanted: Value) {
        let wanted = serde_json::from_value(wanted).unwrap();
        self.core.listen(self.now, &wanted, &CallOptions::default()).unwrap();
        let listen = self.only_sent();
        self.peer_json(&json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
                "notifications": listen["params"]["notifications"]},
        }));
        self.events();
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.peer_json(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        self.events();
    }
}

/// protocol:K-01, protocol:K-10
#[test]
fn results_that_may_be_kept_are_used_again_and_nothing_is_sent() {
    for method in LISTS.into_iter().chain(["server/discover", "resources/read"]) {
        let mut session = session();
        let params = if method == "resources/read" { json!({"uri": "a:b"}) } else { json!({}) };
        let result = complete(json!({"ttlMs": 1000, "cacheScope": "public", "x": [1]}));
        session.fetch(method, &params, &result);
        let call =
            session.core.call(session.now, method, Some(&raw(&params)), &CallOptions::default()).unwrap();
        let again: Value = session.outcome(call).unwrap().parse().unwrap();
        assert_eq!((again, session.sent()), (result, vec![]), "{method}");
        session.assert_idle();
    }
    for method in ["tools/call", "prompts/get", "completion/complete", "x/list"] {
        let mut session = session();
        session.fetch(method, &json!({"name": "n"}), &minute("public"));
        assert!(!session.hits(method, &json!({"name": "n"})), "{method}");
        assert_eq!(session.core.cache.held().0, 0);
    }
}

/// protocol:K-10: no list of the legacy eras is kept, whatever it says; so a renewed session has none of the old one.
#[test]
fn a_legacy_server_is_always_asked() {
    let mut session = Session::ready();
    session.fetch("tools/list", &json!({}), &minute("public"));
    assert!(!session.hits("tools/list", &json!({})));
    assert_eq!(session.core.cache.held(), (0, 0));
}

/// protocol:K-02, protocol:K-10
#[test]
fn what_was_asked_differently_is_asked_again() {
    let mut session = session();
    session.fetch("resources/read", &json!({"uri": "a:1"}), &minute("public"));
    session.fetch("tools/list", &json!({"cursor": ""}), &minute("public"));
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
    assert!(session.hits("tools/list", &json!({"cursor": ""})));
    assert!(!session.hits("resources/read", &json!({"uri": "a:2"})));
    assert!(!session.hits("tools/list", &json!({})));
    assert!(!session.hits("prompts/list", &json!({"cursor": ""})));
    // The application's own `_meta` may mean something to the server; trace context does not.
    let meta = |meta: Value| CallOptions { meta: meta.as_object().cloned(), ..CallOptions::default() };
    let trace = meta(json!({"traceparent": "00-1", "tracestate": "a=b", "baggage": "c"}));
    assert!(session.hits_with("tools/list", &json!({"cursor": ""}), &trace));
    let mode = meta(json!({"com.example/mode": 1, "traceparent": "00-1"}));
    assert!(!session.hits_with("tools/list", &json!({"cursor": ""}), &mode));
    session.fetch_with("tools/list", &json!({"cursor": ""}), &mode, &minute("public"));
    assert!(session.hits_with("tools/list", &json!({"cursor": ""}), &meta(json!({"com.example/mode": 1}))));
}

/// protocol:K-03, protocol:M-09
#[test]
fn what_was_answered_for_on_the_way_is_not_kept() {
    let mut session = session();
    let (call, request) = session.ask("resources/read", &json!({"uri": "a:b"}));
    let required = json!({"resultType": "input_required", "requestState": "s", "ttlMs": 60_000});
    session.answer(&request["id"], &required);
    session.advance(Duration::from_millis(50));
    let retry = session.only_sent();
    assert_eq!(retry["params"]["requestState"], "s");
    assert_eq!(session.core.cache.held().0, 0);
    session.answer(&retry["id"], &minute("public"));
    session.outcome(call).unwrap();
    assert!(!session.hits("resources/read", &json!({"uri": "a:b"})));
    // Nor where the application made the retry itself.
    for own in [json!({"uri": "a:b", "requestState": "s"}), json!({"uri": "a:b", "inputResponses": {}})] {
        session.fetch("resources/read", &own, &minute("public"));
        assert!(!session.hits("resources/read", &own), "{own}");
    }
}

/// protocol:K-04, protocol:TL-10
#[test]
fn another_authorization_sees_nothing_that_was_for_the_old_one() {
    for scope in [json!("private"), json!("galaxy"), json!(7), Value::Null] {
        let mut session = session();
        let private = complete(json!({"ttlMs": 60_000, "cacheScope": scope}));
        session.fetch("tools/list", &json!({}), &private);
        session.fetch("prompts/list", &json!({}), &minute("public"));
        assert!(session.hits("tools/list", &json!({})));
        session.core.handle_authorization_changed();
        assert!(!session.hits("tools/list", &json!({})), "{scope}");
        assert!(session.hits("prompts/list", &json!({})), "{scope}");
    }
    // What was asked for under the old one and arrives now is not for the new one.
    let mut session = session();
    let (call, request) = session.ask("tools/list", &json!({}));
    session.core.handle_authorization_changed();
    session.answer(&request["id"], &minute("private"));
    session.outcome(call).unwrap();
    assert!(!session.hits("tools/list", &json!({})));
}

/// protocol:K-04: where nobody says when the authorization changes, what is for one alone is not kept.
#[test]
fn private_results_can_be_left_out() {
    let cache = CacheConfig { keep_private: false, ..CacheConfig::default() };
    let mut session = Session::modern(with(cache));
    session.fetch("tools/list", &json!({}), &minute("public"));
    session.fetch("prompts/list", &json!({}), &minute("public"));
    session.fetch("resources/read", &json!({"uri": "a:1"}), &minute("public"));
    session.fetch("tools/list", &json!({"cursor": "2"}), &minute("private"));
    session.fetch("resources/read", &json!({"uri": "a:2"}), &minute("private"));
    assert!(!session.hits("tools/list", &json!({"cursor": "2"})));
    // One private page makes the list private.
    assert!(!session.hits("tools/list", &json!({})));
    assert!(session.hits("prompts/list", &json!({})));
    assert!(!session.hits("resources/read", &json!({"uri": "a:2"})));
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
}

/// protocol:K-05, field:FR-058
/// field:FR-127
#[test]
fn a_result_is_fresh_until_its_time_is_over_and_not_at_that_moment() {
    let check = |ttl: &str, fresh_for: Option<Duration>| {
        let mut session = session();
        let (call, request) = session.ask("tools/list", &json!({}));
        let id = &request["id"];
        session.peer(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","cacheScope":"public"{ttl}}}}}"#
        ));
        session.outcome(call).unwrap();
        let Some(fresh_for) = fresh_for else {
            assert_eq!(session.core.cache.held(), (0, 0), "{ttl}");
            assert!(!session.hits("tools/list", &json!({})), "{ttl}");
            return;
        };
        session.advance(fresh_for - Duration::from_millis(1));
        assert!(session.hits("tools/list", &json!({})), "{ttl}");
        session.advance(Duration::from_millis(1));
        assert!(!session.hits("tools/list", &json!({})), "{ttl}");
        assert_eq!(session.core.cache.held(), (0, 0), "{ttl}");
    };
    let day = Duration::from_secs(86_400);
    check("", None);
    for odd in ["0", "-1", "-1e18", "null", "\"60000\"", "true", "1.5", "{}", "[1]", "1e999"] {
        check(&format!(r#","ttlMs":{odd}"#), None);
    }
    check(r#","ttlMs":1,"ttlMs":2"#, None);
    check(r#","ttlMs":1500"#, Some(Duration::from_millis(1500)));
    check(r#","ttlMs":2.5e3"#, Some(Duration::from_millis(2500)));
    for huge in ["86400000", "86400001", "1000000000000000000", "18446744073709551615", "1e18", "1e300"] {
        check(&format!(r#","ttlMs":{huge}"#), Some(day));
    }
}

/// protocol:K-06: the clock alone never makes a request, and the next call asks.
#[test]
fn what_is_stale_is_fetched_when_it_is_asked_for() {
    let mut session = session();
    session.fetch("tools/list", &json!({}), &complete(json!({"ttlMs": 10})));
    assert_eq!(session.core.poll_timeout(), None);
    session.seconds(3600);
    assert_eq!(session.sent(), Vec::<Value>::new());
    session.fetch("tools/list", &json!({}), &minute("private"));
    assert!(session.hits("tools/list", &json!({})));
}

/// protocol:K-07, protocol:PG-04
#[test]
fn a_refusal_that_hints_at_an_old_list_drops_it() {
    let check = |method: &str, params: Value, list: &str, code: i64, dropped: bool| {
        let mut session = session();
        session.fetch(list, &json!({}), &minute("public"));
        session.fetch(list, &json!({"cursor": "2"}), &minute("public"));
        let (_, request) = session.ask(method, &params);
        session.refuse_modern(&request, code, &Value::Null);
        session.events();
        assert_eq!(session.hits(list, &json!({})), !dropped, "{method} {code}");
        assert_eq!(session.hits(list, &json!({"cursor": "2"})), !dropped, "{method} {code}");
    };
    let named = json!({"name": "gone"});
    for code in [-32602, -32601] {
        check("tools/call", named.clone(), "tools/list", code, true);
        check("prompts/get", named.clone(), "prompts/list", code, true);
        check("resources/read", json!({"uri": "a:b"}), "resources/list", code, true);
        check("resources/read", json!({"uri": "a:b"}), "resources/templates/list", code, true);
        check("tools/list", json!({"cursor": "old"}), "tools/list", code, true);
    }
    check("resources/read", json!({"uri": "a:b"}), "resources/list", -32002, true);
    check("tools/call", named.clone(), "tools/list", -32603, false);
    check("tools/call", named, "prompts/list", -32602, false);
}

/// protocol:K-08: at once, and for what was asked before the notice and arrives after it.
#[test]
fn a_notice_of_a_change_drops_what_it_is_about() {
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["a:b"],
    });
    let notices = [
        ("notifications/tools/list_changed", vec!["tools/list"]),
        ("notifications/prompts/list_changed", vec!["prompts/list"]),
        ("notifications/resources/list_changed", vec!["resources/list", "resources/templates/list"]),
    ];
    for (notice, about) in notices {
        let mut session = session();
        session.listen_to(all.clone());
        for method in LISTS {
            session.fetch(method, &json!({}), &minute("public"));
            session.fetch(method, &json!({"cursor": "2"}), &minute("public"));
        }
        let late: Vec<_> = about.iter().map(|method| session.ask(method, &json!({"cursor": "3"}))).collect();
        session.notify(notice, json!({}));
        for (call, request) in late {
            session.answer(&request["id"], &minute("public"));
            session.outcome(call).unwrap();
        }
        for method in LISTS {
            for params in [json!({}), json!({"cursor": "2"})] {
                assert_eq!(session.hits(method, &params), !about.contains(&method), "{notice} {method}");
            }
            assert!(!session.hits(method, &json!({"cursor": "3"})), "{notice} {method}");
        }
    }
}

/// protocol:K-08, protocol:S-09: a notice may be about a part of what was read.
#[test]
fn a_changed_resource_is_read_again() {
    let uris = ["a:dir", "a:dir/file", "a:other"];
    let check = |params: Value, dropped: &[&str]| {
        let mut session = session();
        for uri in uris {
            session.fetch("resources/read", &json!({"uri": uri}), &minute("public"));
        }
        session.fetch("resources/list", &json!({}), &minute("public"));
        let (late, request) = session.ask("resources/read", &json!({"uri": "a:late"}));
        session.notify("notifications/resources/updated", params.clone());
        session.answer(&request["id"], &minute("public"));
        session.outcome(late).unwrap();
        for uri in uris {
            assert_eq!(
                session.hits("resources/read", &json!({"uri": uri})),
                !dropped.contains(&uri),
                "{params}"
            );
        }
        assert!(!session.hits("resources/read", &json!({"uri": "a:late"})));
        assert!(session.hits("resources/list", &json!({})));
    };
    check(json!({"uri": "a:dir/file"}), &["a:dir", "a:dir/file"]);
    check(json!({"uri": "a:dir"}), &["a:dir"]);
    check(json!({"uri": "b:none"}), &[]);
    check(json!({}), &uris);
}

/// protocol:K-09
#[test]
fn each_page_has_its_own_time_and_all_have_the_strictest_scope() {
    let mut session = session();
    session.fetch("tools/list", &json!({}), &complete(json!({"ttlMs": 1000, "cacheScope": "public"})));
    session.fetch(
        "tools/list",
        &json!({"cursor": "2"}),
        &complete(json!({"ttlMs": 9000, "cacheScope": "private"})),
    );
    session.fetch(
        "tools/list",
        &json!({"cursor": "3"}),
        &complete(json!({"ttlMs": 9000, "cacheScope": "public"})),
    );
    session.seconds(1);
    assert!(!session.hits("tools/list", &json!({})));
    assert!(session.hits("tools/list", &json!({"cursor": "2"})));
    session.fetch("tools/list", &json!({}), &minute("public"));
    session.core.handle_authorization_changed();
    for params in [json!({}), json!({"cursor": "2"}), json!({"cursor": "3"})] {
        assert!(!session.hits("tools/list", &params), "{params}");
    }
}

/// protocol:K-04, protocol:K-09
#[test]
fn a_private_page_makes_those_before_it_private_and_nothing_else() {
    let mut session = session();
    session.fetch("tools/list", &json!({}), &minute("public"));
    session.fetch("prompts/list", &json!({}), &minute("public"));
    session.fetch("resources/read", &json!({"uri": "a:1"}), &minute("public"));
    session.fetch("tools/list", &json!({"cursor": "2"}), &minute("private"));
    session.fetch("resources/read", &json!({"uri": "a:2"}), &minute("private"));
    session.core.handle_authorization_changed();
    assert!(!session.hits("tools/list", &json!({})));
    assert!(session.hits("prompts/list", &json!({})));
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
}

/// protocol:S-08: nothing is replayed to a subscription that was opened again, so what is fetched then is new.
#[test]
fn a_new_subscription_begins_with_nothing_kept() {
    let mut session = session();
    session.fetch("tools/list", &json!({}), &minute("public"));
    let (late, request) = session.ask("prompts/list", &json!({}));
    session.listen_to(json!({"toolsListChanged": true}));
    session.answer(&request["id"], &minute("public"));
    session.outcome(late).unwrap();
    assert!(!session.hits("tools/list", &json!({})));
    assert!(!session.hits("prompts/list", &json!({})));
}

/// protocol:K-10: the revision is a part of the key.
#[test]
fn another_revision_sees_nothing_of_the_old_one() {
    let mut session = session();
    session.fetch("tools/list", &json!({}), &minute("public"));
    let (_, request) = session.ask("prompts/list", &json!({}));
    session.refuse_modern(&request, -32022, &json!({"supported": ["2026-07-28"], "requested": "2026-07-28"}));
    session.events();
    session.sent();
    assert!(!session.hits("tools/list", &json!({})));
}

/// protocol:K-10: off for a call, and off for good.
#[test]
fn a_call_can_do_without() {
    let using = |cache| CallOptions { cache, ..CallOptions::default() };
    let mut session = session();
    session.fetch_with("tools/list", &json!({}), &using(CacheUse::Never), &minute("public"));
    assert!(!session.hits("tools/list", &json!({})));
    session.fetch_with("tools/list", &json!({}), &using(CacheUse::Refresh), &minute("public"));
    assert!(session.hits("tools/list", &json!({})));
    assert!(!session.hits_with("tools/list", &json!({}), &using(CacheUse::Never)));
    // What a refreshing call brings takes the place of what was kept, also where it must not be kept itself.
    session.fetch_with("tools/list", &json!({}), &using(CacheUse::Refresh), &complete(json!({"tools": []})));
    assert!(!session.hits("tools/list", &json!({})));

    let mut session = Session::modern(with(CacheConfig::off()));
    session.fetch("tools/list", &json!({}), &minute("public"));
    assert!(!session.hits("tools/list", &json!({})));
}

/// auth:LIM-14: below, at and above the limit of entries; what is stale first gives way.
#[test]
fn the_entries_are_bounded() {
    let cache = CacheConfig { max_entries: 2, ..CacheConfig::default() };
    let mut session = Session::modern(with(cache));
    let read = |session: &mut Session, uri: &str, ttl: u64| {
        session.fetch("resources/read", &json!({"uri": uri}), &complete(json!({"ttlMs": ttl})));
    };
    read(&mut session, "a:1", 3000);
    read(&mut session, "a:2", 2000);
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
    assert!(session.hits("resources/read", &json!({"uri": "a:2"})));
    read(&mut session, "a:3", 9000);
    assert_eq!(session.core.cache.held().0, 2);
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
    assert!(!session.hits("resources/read", &json!({"uri": "a:2"})));
    session.seconds(4);
    read(&mut session, "a:4", 1000);
    assert!(session.hits("resources/read", &json!({"uri": "a:3"})));
    assert!(session.hits("resources/read", &json!({"uri": "a:4"})));
}

#[test]
fn the_bytes_are_bounded_and_no_message_is_held_for_a_small_part_of_it() {
    let cache = CacheConfig { max_bytes: 8 * 1024, ..CacheConfig::default() };
    let mut session = Session::modern(with(cache));
    let of = |bytes: usize| complete(json!({"ttlMs": 60_000, "x": "x".repeat(bytes)}));
    session.fetch("resources/read", &json!({"uri": "a:1"}), &of(7 * 1024));
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})));
    session.fetch("resources/read", &json!({"uri": "a:2"}), &of(8 * 1024));
    assert!(!session.hits("resources/read", &json!({"uri": "a:2"})));
    assert!(session.hits("resources/read", &json!({"uri": "a:1"})), "what does not fit drives out nothing");
    session.fetch("resources/read", &json!({"uri": "a:3"}), &of(4 * 1024));
    assert!(!session.hits("resources/read", &json!({"uri": "a:1"})));
    assert!(session.hits("resources/read", &json!({"uri": "a:3"})));
    // Below, at and above the size of one, and of two.
    let held = |max_bytes: usize| {
        let mut session = Session::modern(with(CacheConfig { max_bytes, ..CacheConfig::default() }));
        session.fetch("resources/read", &json!({"uri": "a:1"}), &of(100));
        session.fetch("resources/read", &json!({"uri": "a:2"}), &of(100));
        session.core.cache.held().0
    };
    let mut one = Session::modern(with(CacheConfig::default()));
    one.fetch("resources/read", &json!({"uri": "a:1"}), &of(100));
    let size = one.core.cache.held().1;
    assert_eq!([size - 1, size, size + 1].map(held), [0, 1, 1]);
    assert_eq!([2 * size - 1, 2 * size, 2 * size + 1].map(held), [1, 2, 2]);
    // Long params count as well.
    session.fetch("resources/read", &json!({"uri": "a".repeat(8 * 1024)}), &of(1));
    assert_eq!(session.core.cache.held().0, 1);
}

#[test]
fn a_result_that_is_no_json_is_not_kept() {
    let mut session = session();
    let (call, request) = session.ask("tools/list", &json!({}));
    let id = &request["id"];
    session.peer(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":60000,"tools":[tru]}}}}"#
    ));
    let _ = session.outcome(call);
    assert!(!session.hits("tools/list", &json!({})));
}

/// A tool that was left out of the list stays out of the kept one.
#[test]
fn the_list_is_kept_as_the_application_got_it() {
    let mut session = Session::modern(on_exchanges());
    let header = json!({"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}});
    let tools =
        json!([{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": header}]);
    let (call, request) = session.ask("tools/list", &json!({}));
    session.answer(&request["id"], &complete(json!({"ttlMs": 60_000, "tools": tools})));
    let ended = |event: Event| match event {
        Event::CallEnded { call: ended, outcome } if ended == call => Some(outcome.unwrap()),
        _ => None,
    };
    let first = session.events().into_iter().find_map(ended).unwrap();
    let again = session
        .core
        .call(session.now, "tools/list", Some(&raw(&json!({}))), &CallOptions::default())
        .unwrap();
    let kept = session.outcome(again).unwrap();
    assert_eq!(kept.as_str(), first.as_str());
    assert!(!kept.as_str().contains("bad"));
}

#[test]
fn closing_forgets_everything_and_debug_shows_counts_only() {
    let mut session = session();
    session.fetch("resources/read", &json!({"uri": "a:secret"}), &minute("private"));
    let shown = format!("{:?} {:?}", session.core, session.core.cache);
    assert!(shown.contains("entries: 1") && !shown.contains("secret") && !shown.contains("ttl"), "{shown}");
    session.core.handle_closed();
    assert_eq!(session.core.cache.held(), (0, 0));
}

proptest! {
    /// Whatever happens, the cache stays within its bounds, and a hit is the newest result that was fetched since the last
    /// notice of a change, and fresh.
    #[test]
    fn a_hit_is_what_an_honest_memory_says(
        operations in prop::collection::vec((0_u8..5, 0_u8..4, 0_u64..4), 1..60),
        max_entries in 0_usize..4,
    ) {
        let cache = CacheConfig { max_entries, ..CacheConfig::default() };
        let mut session = Session::modern(with(cache));
        // By URI: which result, and until when.
        let mut memory = std::collections::HashMap::<u8, (usize, std::time::Instant)>::new();
        for (at, (operation, which, amount)) in operations.into_iter().enumerate() {
            let params = json!({"uri": format!("a:{which}")});
            match operation {
                0 | 1 => {
                    let call = session.core.call(
                        session.now, "resources/read", Some(&raw(&params)), &CallOptions::default(),
                    ).unwrap();
                    let mut sent = session.sent();
                    if let Some(request) = sent.pop() {
                        let result = complete(json!({"ttlMs": amount * 10, "n": at}));
                        session.answer(&request["id"], &result);
                        session.outcome(call).unwrap();
                        memory.insert(which, (at, session.now + Duration::from_millis(amount * 10)));
                    } else {
                        let result: Value = session.outcome(call).unwrap().parse().unwrap();
                        let (newest, until) = memory[&which];
                        prop_assert_eq!(&result["n"], &json!(newest));
                        prop_assert!(session.now < until);
                    }
                }
                2 => session.advance(Duration::from_millis(amount * 5)),
                3 => {
                    session.notify("notifications/resources/updated", params);
                    memory.remove(&which);
                }
                _ => {
                    session.core.handle_authorization_changed();
                    memory.clear();
                }
            }
            prop_assert!(session.core.cache.held().0 <= max_entries);
        }
    }
}
