//! Paginated lists.

use serde_json::{Value, json};

use super::peer::{Peer, builder, connected, diagnostics, recorded};

/// Serves these pages in order; each gives the cursor of the request it expects, and its answer.
async fn serve(peer: &mut Peer, pages: &[(Option<&str>, Value)]) {
    for (cursor, answer) in pages {
        let request = peer.expect("tools/list").await;
        assert_eq!(request["params"].get("cursor"), cursor.map(Value::from).as_ref(), "{request}");
        peer.answer(&request, answer.clone()).await;
    }
}

fn tools(names: &[&str], next: Option<&str>) -> Value {
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    match next {
        Some(cursor) => json!({ "tools": tools, "nextCursor": cursor }),
        None => json!({ "tools": tools }),
    }
}

async fn check(pages: &[(Option<&str>, Value)], names: &[&str], reported: &[&str]) {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let (all, ()) = tokio::join!(client.list_tools().all(), serve(&mut peer, pages));
    let all: Vec<_> = all.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(all, names);
    assert_eq!(diagnostics(&events), reported);
}

/// seed:E16, protocol:PG-01, protocol:PG-02
#[tokio::test(start_paused = true)]
async fn all_pages_are_followed() {
    check(&[(None, tools(&["a"], None))], &["a"], &[]).await;
    let pages = [
        (None, tools(&["a", "b"], Some("2"))),
        (Some("2"), tools(&[], Some("opaque \u{e9}\"}"))),
        (Some("opaque \u{e9}\"}"), tools(&["c"], None)),
    ];
    check(&pages, &["a", "b", "c"], &[]).await;
}

/// protocol:PG-03: the empty string is a cursor; `null` is none.
/// field:FR-117
#[tokio::test(start_paused = true)]
async fn an_empty_cursor_is_followed_and_a_null_one_ends_the_list() {
    let end = json!({ "tools": [], "nextCursor": null });
    check(&[(None, tools(&["a"], Some(""))), (Some(""), end)], &["a"], &[]).await;
}

/// protocol:PG-04, auth:LIM-14
#[tokio::test(start_paused = true)]
async fn a_cursor_that_comes_again_ends_the_list_and_is_reported() {
    let pages = [(None, tools(&["a"], Some("x"))), (Some("x"), tools(&["b"], Some("x")))];
    check(&pages, &["a", "b"], &["repeated_cursor"]).await;
    let pages = [(None, tools(&["a"], Some(""))), (Some(""), tools(&["b"], Some("")))];
    check(&pages, &["a", "b"], &["repeated_cursor"]).await;
}

/// auth:LIM-14
#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_cut_at_the_page_limit() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder).await;
    let pages = [(None, tools(&["a"], Some("1"))), (Some("1"), tools(&["b"], Some("2")))];
    let (all, ()) = tokio::join!(client.list_tools().max_pages(2).all(), serve(&mut peer, &pages));
    assert_eq!(all.unwrap().len(), 2);
    assert_eq!(diagnostics(&events), ["too_many_pages"]);
}

/// protocol:10.27: one malformed item does not lose the others.
#[tokio::test(start_paused = true)]
async fn an_unreadable_item_is_left_out_and_reported() {
    let page = json!({ "tools": [{ "name": "a", "inputSchema": {} }, { "name": 7 }, 3] });
    check(&[(None, page)], &["a"], &["unreadable_item"; 2]).await;
}

#[tokio::test(start_paused = true)]
async fn awaiting_a_list_gives_the_first_page_alone() {
    let (client, mut peer) = connected(builder()).await;
    let pages = [(None, tools(&["a"], Some("2")))];
    let (first, ()) = tokio::join!(client.list_tools().page(), serve(&mut peer, &pages));
    assert_eq!(first.unwrap().next_cursor.as_deref(), Some("2"));
}
