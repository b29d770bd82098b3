//! The lists of all servers, and names for their tools.

use mcp_client::host::{Host, HostLimits, ToolNames};
use serde_json::json;

use super::support::*;
use crate::client::peer::{Peer, builder};

async fn answer_tools(peer: &mut Peer, names: &[&str]) {
    let request = peer.expect("tools/list").await;
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    peer.answer(&request, json!({ "tools": tools })).await;
}

/// seed:B35, protocol:TL-01, protocol:TL-02: equal names are told apart, none is refused, and a list that failed is an error
/// beside the others, not an empty list.
#[tokio::test(start_paused = true)]
async fn the_tools_of_all_servers_get_names_of_their_own_and_lead_back() {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    let host = Host::builder(builder()).limits(limits).build();
    let (_, _p1, mut files) = connected(&host, "files").await;
    let (_, _p2, mut other) = connected(&host, "other").await;
    let (_, _p3, mut hanging) = connected(&host, "hanging").await;
    let (connector, mut p4) = plug();
    let (_no_tools, mut no_tools) = tokio::join!(host.connect("no-tools", connector), async {
        let mut peer = p4.peer().await;
        peer.handshake(json!({ "prompts": {} })).await;
        peer
    });

    let (lists, ()) = tokio::join!(host.list_tools(), async {
        answer_tools(&mut files, &["read", "a/b"]).await;
        answer_tools(&mut other, &["read"]).await;
        hanging.expect("tools/list").await;
    });
    let table = ToolNames::default().table(lists);
    let names: Vec<&str> = table.iter().map(|tool| tool.name()).collect();
    assert_eq!(names.len(), 3);
    assert!(names.contains(&"files__read") && names.contains(&"other__read"));
    assert!(names.iter().any(|name| name.starts_with("files___a_b_")), "{names:?}");
    assert_eq!(
        table.failures().iter().map(|(name, error)| (&**name, kind(error))).collect::<Vec<_>>(),
        [("hanging", "timeout")]
    );
    no_tools.expect_silence(SECOND).await;

    let (result, ()) = tokio::join!(
        async { host.call_tool(table.resolve("other__read").unwrap(), json!({ "x": 1 })).unwrap().await },
        async {
            let call = other.expect("tools/call").await;
            assert_eq!(call["params"], json!({ "name": "read", "arguments": { "x": 1 } }));
            other.answer(&call, json!({ "content": [] })).await;
        }
    );
    result.unwrap();
    host.disconnect("other").await.unwrap();
    assert_eq!(failed(host.call_tool(table.resolve("other__read").unwrap(), json!({}))), "closed");
}

#[tokio::test(start_paused = true)]
async fn other_lists_are_fetched_the_same_way() {
    let host = host();
    let (_, _pa, mut a) = connected(&host, "a").await;
    let (_, _pb, mut b) = connected(&host, "b").await;
    let answer = async |peer: &mut Peer, method: &str, result: serde_json::Value| {
        let request = peer.expect(method).await;
        peer.answer(&request, result).await;
    };
    let (prompts, ..) = tokio::join!(
        host.list_prompts(),
        answer(&mut a, "prompts/list", json!({ "prompts": [{ "name": "x" }, { "name": "y" }] })),
        answer(&mut b, "prompts/list", json!({ "prompts": [] })),
    );
    let counts: Vec<_> =
        prompts.iter().map(|list| (&*list.server, list.items.as_ref().unwrap().len())).collect();
    assert_eq!(counts, [("a", 2), ("b", 0)]);
    let (resources, ..) = tokio::join!(
        host.list_resources(),
        answer(&mut a, "resources/list", json!({ "resources": [{ "uri": "file:///x", "name": "x" }] })),
        answer(&mut b, "resources/list", json!({ "resources": 7 })),
    );
    assert_eq!(resources[0].items.as_ref().unwrap()[0].uri, "file:///x");
    assert_eq!(kind(resources[1].items.as_ref().unwrap_err()), "peer_misbehaved");
    let template = json!({ "resourceTemplates": [{ "uriTemplate": "file:///{x}", "name": "x" }] });
    let (templates, ..) = tokio::join!(
        host.list_resource_templates(),
        answer(&mut a, "resources/templates/list", template.clone()),
        answer(&mut b, "resources/templates/list", template),
    );
    assert_eq!(templates.len(), 2);
    assert!(templates.iter().all(|list| list.items.is_ok() && list.generation.get() <= 2));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_list_cancels_its_calls() {
    let host = host();
    let (_, _plug, mut peer) = connected(&host, "srv").await;
    let listing = tokio::spawn({
        let host = host.clone();
        async move { host.list_tools().await.len() }
    });
    let request = peer.expect("tools/list").await;
    listing.abort();
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

/// Whoever talks to many servers is told which one it was, and which of its tools; the error itself stays as it was.
#[tokio::test(start_paused = true)]
async fn errors_say_which_server_and_which_tool() {
    let mut limits = HostLimits::default();
    limits.list_timeout = SECOND;
    let host = Host::builder(builder()).limits(limits).build();
    let (_client, _plug, mut files) = connected(&host, "files").await;
    let (lists, ()) = tokio::join!(host.list_tools(), answer_tools(&mut files, &["read\u{1b}"]));
    let table = ToolNames::default().table(lists);
    let tool = table.iter().next().unwrap();

    let (refused, ()) =
        tokio::join!(async { host.call_tool(tool, json!({})).unwrap().await.unwrap_err() }, async {
            let call = files.expect("tools/call").await;
            let error = json!({ "code": -32602, "message": "no such file" });
            files.send(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })).await;
        });
    assert_eq!((refused.server_name(), refused.tool_name()), (Some("files"), Some("read\u{1b}")));
    assert_eq!(
        refused.to_string(),
        r#"tool "read\u{1b}" of server "files": the server answered with error -32602: "no such file""#
    );
    assert_eq!(refused.error_object().map(|object| object.code.get()), Some(-32602));

    // A result that cannot be read is found out in the caller's own task.
    let (unreadable, ()) =
        tokio::join!(async { host.call_tool(tool, json!({})).unwrap().await.unwrap_err() }, async {
            let call = files.expect("tools/call").await;
            files.answer(&call, json!({ "content": 5 })).await;
        });
    assert_eq!(unreadable.tool_name(), Some("read\u{1b}"));

    let (lists, ()) = tokio::join!(host.list_tools(), async { drop(files.expect("tools/list").await) });
    let late = lists[0].items.as_ref().unwrap_err();
    assert_eq!((late.server_name(), late.tool_name()), (Some("files"), None));
    assert_eq!(late.method(), Some("tools/list"));
    assert!(late.to_string().starts_with("tools/list of server \"files\": "), "{late}");

    let (connector, mut plug) = plug();
    let (failed, ()) = tokio::join!(host.connect("other", connector), async { drop(plug.peer().await) });
    let failed = failed.unwrap_err();
    assert_eq!(failed.server_name(), Some("other"));
    assert_eq!(host.server("other").unwrap().last_error.unwrap().to_string(), failed.to_string());

    // Also the ones that come before there is a call.
    host.disconnect("files").await.unwrap();
    let refused = host.call_tool(tool, json!({})).unwrap_err();
    assert_eq!((refused.server_name(), refused.tool_name()), (Some("files"), Some("read\u{1b}")));
    let why = "not connected: the application disconnected the server, or gave up the attempt";
    assert_eq!(refused.to_string(), format!(r#"tool "read\u{{1b}}" of server "files": {why}"#));
    assert_eq!(host.client("files").unwrap_err().to_string(), format!("server \"files\": {why}"));
}
