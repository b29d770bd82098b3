//! Output of tools, checked against the schemas that a scripted server declares.

use mcp_client::model::{CallToolRequestParams, Tool};
use mcp_client::schema::{SchemaError, SchemaLimits};
use mcp_client::{Client, ClientEvent, Error, ErrorKind};
use serde_json::{Value, json};

use super::peer::{Peer, builder, connected, diagnostics, recorded};

fn tool(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": schema })
}

fn sum_schema() -> Value {
    json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] })
}

async fn checking(limits: SchemaLimits) -> (Client, Peer) {
    connected(builder().check_output(limits)).await
}

async fn list(client: &Client, peer: &mut Peer, tools: Value) {
    let (listed, ()) = tokio::join!(client.list_tools().all(), async {
        let request = peer.expect("tools/list").await;
        peer.answer(&request, json!({ "tools": tools })).await;
    });
    listed.unwrap();
}

/// What a call of the tool comes to when the server answers with this.
async fn call(client: &Client, peer: &mut Peer, name: &str, result: Value) -> Result<(), Error> {
    let (called, ()) = tokio::join!(client.call_tool(name, json!({})), async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, result).await;
    });
    called.map(drop)
}

fn content(value: Value) -> Value {
    json!({ "content": [{ "type": "text", "text": "x" }], "structuredContent": value })
}

fn why(outcome: Result<(), Error>) -> SchemaError {
    outcome.unwrap_err().output_error().unwrap().error.clone()
}

/// protocol:TL-05
#[tokio::test(start_paused = true)]
async fn output_that_does_not_fit_fails_the_call_and_is_handed_over() {
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    list(&client, &mut peer, json!([tool("sum", &sum_schema())])).await;
    call(&client, &mut peer, "sum", content(json!({ "sum": 5 }))).await.unwrap();
    let error = call(&client, &mut peer, "sum", content(json!({ "sum": "5" }))).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome_unknown()), (ErrorKind::PeerMisbehaved, true));
    let output = error.output_error().unwrap();
    assert_eq!(output.tool, "sum");
    assert_eq!(output.result.parse::<Value>().unwrap()["structuredContent"]["sum"], "5");
    let SchemaError::Violated { violations, more } = &output.error else { panic!("{error}") };
    assert_eq!((violations.len(), violations[0].pointer.as_str(), more), (1, "/sum", &false));
}

/// protocol:TL-04, protocol:TL-05: absent and `null` differ.
#[tokio::test(start_paused = true)]
async fn missing_content_is_an_error_and_null_is_content() {
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    let tools = json!([tool("sum", &sum_schema()), tool("nothing", &json!({ "type": "null" }))]);
    list(&client, &mut peer, tools).await;
    for name in ["sum", "nothing"] {
        assert_eq!(why(call(&client, &mut peer, name, json!({ "content": [] })).await), SchemaError::Missing);
    }
    call(&client, &mut peer, "nothing", content(json!(null))).await.unwrap();
    let refused = why(call(&client, &mut peer, "sum", content(json!(null))).await);
    assert!(matches!(refused, SchemaError::Violated { .. }), "{refused}");
}

/// field:FR-121
#[tokio::test(start_paused = true)]
async fn a_tool_that_failed_is_never_checked() {
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    list(&client, &mut peer, json!([tool("sum", &sum_schema())])).await;
    for content in [Some(json!({ "code": 401 })), None] {
        let mut result = json!({ "isError": true, "content": [{ "type": "text", "text": "auth failed" }] });
        if let Some(content) = content {
            result["structuredContent"] = content;
        }
        call(&client, &mut peer, "sum", result).await.unwrap();
    }
}

/// field:FR-131, protocol:TL-05: a schema that cannot be used costs its own tool alone, and the result is not lost.
#[tokio::test(start_paused = true)]
async fn a_bad_schema_costs_the_calls_of_its_own_tool() {
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    let tree = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": {
        "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } },
    } } });
    let tools = json!([
        tool("tree", &tree),
        tool("dangling", &json!({ "$ref": "#/$defs/Missing" })),
        tool("outside", &json!({ "$ref": "http://127.0.0.1:9/canary" })),
        { "name": "plain", "inputSchema": { "type": "object" } },
    ]);
    list(&client, &mut peer, tools).await;
    call(&client, &mut peer, "tree", content(json!({ "next": { "next": {} } }))).await.unwrap();
    assert!(call(&client, &mut peer, "tree", content(json!({ "next": { "next": 1 } }))).await.is_err());
    for name in ["dangling", "outside"] {
        let error = call(&client, &mut peer, name, content(json!({ "a": 1 }))).await.unwrap_err();
        let output = error.output_error().unwrap();
        assert!(matches!(output.error, SchemaError::Unusable { .. }), "{error}");
        assert_eq!(output.result.parse::<Value>().unwrap()["structuredContent"]["a"], 1);
    }
    call(&client, &mut peer, "plain", content(json!([1]))).await.unwrap();
    call(&client, &mut peer, "never listed", content(json!([1]))).await.unwrap();
}

/// protocol:TL-05: validators follow the newest listing.
#[tokio::test(start_paused = true)]
async fn the_newest_listing_decides() {
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    let number = content(json!(1));
    for (schema, fits) in
        [(json!({ "type": "string" }), false), (json!({ "type": "number" }), true), (json!(null), true)]
    {
        list(&client, &mut peer, json!([tool("t", &schema)])).await;
        assert_eq!(call(&client, &mut peer, "t", number.clone()).await.is_ok(), fits, "{schema}");
    }
    call(&client, &mut peer, "t", json!({ "content": [] })).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_checked_unless_it_is_asked_for() {
    let (client, mut peer) = connected(builder()).await;
    list(&client, &mut peer, json!([tool("sum", &sum_schema())])).await;
    call(&client, &mut peer, "sum", content(json!({ "sum": "5" }))).await.unwrap();

    // One call of it, by the tool in the caller's hand.
    let sum: Tool = serde_json::from_value(tool("sum", &sum_schema())).unwrap();
    let checked = client.call_tool("sum", json!({})).check_output(&sum, SchemaLimits::default()).raw();
    let (called, ()) = tokio::join!(async { checked.await }, async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, content(json!({ "sum": "5" }))).await;
    });
    assert!(called.unwrap_err().output_error().is_some());
    // By that of another tool it could only be checked wrongly: it is not sent, whatever kind of call it is.
    let other: Tool = serde_json::from_value(tool("other", &sum_schema())).unwrap();
    let params = || CallToolRequestParams::new("sum");
    for call in [client.call_tool("sum", ()), client.call_tool("sum", json!({})), client.request(params())] {
        let error = call.check_output(&other, SchemaLimits::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        let mixed_up =
            "the call is of the tool \"sum\", but its output is to be checked as that of \"other\"";
        assert!(error.to_string().ends_with(&format!(": {mixed_up}")), "{error}");
    }
    // What is wrong with the call itself is said first.
    let error = client.call_tool("sum", 7).check_output(&other, SchemaLimits::default()).await.unwrap_err();
    assert!(error.to_string().contains("must be a JSON object"), "{error}");

    // And one that is left out.
    let (client, mut peer) = checking(SchemaLimits::default()).await;
    list(&client, &mut peer, json!([tool("sum", &sum_schema())])).await;
    let (called, ()) =
        tokio::join!(async { client.call_tool("sum", json!({})).unchecked_output().await }, async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, content(json!({ "sum": "5" }))).await;
        });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tools_beyond_the_limit_are_not_taken_for_tools_without_a_schema() {
    let mut limits = SchemaLimits::default();
    (limits.max_tools, limits.max_value_bytes) = (1, 40);
    let (client, mut peer) = checking(limits).await;
    list(&client, &mut peer, json!([tool("a", &sum_schema()), tool("b", &sum_schema())])).await;
    call(&client, &mut peer, "a", content(json!({ "sum": 5 }))).await.unwrap();
    let error = call(&client, &mut peer, "b", content(json!({ "sum": 5 }))).await.unwrap_err();
    assert_eq!((error.kind(), error.limit().unwrap().name), (ErrorKind::LimitExceeded, "max_tools"));
    let long = content(json!({ "sum": 5, "text": "x".repeat(40) }));
    let error = call(&client, &mut peer, "a", long).await.unwrap_err();
    assert_eq!(error.limit().map(|limit| (limit.name, limit.value)), Some(("max_value_bytes", 40)));
}

/// A tool that is known to declare nothing is none of those that there was no room for.
#[tokio::test]
async fn a_tool_without_a_schema_is_called_though_there_was_no_room_for_others() {
    let mut limits = SchemaLimits::default();
    limits.max_tools = 1;
    let (client, mut peer) = checking(limits).await;
    let plain = json!({ "name": "plain", "inputSchema": { "type": "object" } });
    list(&client, &mut peer, json!([tool("a", &sum_schema()), tool("b", &sum_schema()), plain])).await;
    assert!(call(&client, &mut peer, "b", content(json!({ "sum": 5 }))).await.is_err());
    call(&client, &mut peer, "plain", content(json!(1))).await.unwrap();
}

/// A server that gives its tool the name of another server's changes nothing of what is checked of that one, in a host for example.
#[tokio::test]
async fn each_client_of_a_builder_remembers_the_tools_of_its_own_server() {
    let builder = builder().check_output(SchemaLimits::default());
    let (client, mut peer) = connected(builder.clone()).await;
    let (other, mut other_peer) = connected(builder).await;
    list(&client, &mut peer, json!([tool("sum", &sum_schema())])).await;
    list(&other, &mut other_peer, json!([{ "name": "sum", "inputSchema": { "type": "object" } }])).await;
    let wrong = || content(json!({ "sum": "5" }));
    why(call(&client, &mut peer, "sum", wrong()).await);
    call(&other, &mut other_peer, "sum", wrong()).await.unwrap();
}

/// Whoever asked for checks is told where there are none, and what to do; once, and not of tools that declare nothing.
#[tokio::test(start_paused = true)]
async fn a_tool_that_was_not_listed_is_said_not_to_be_checked() {
    let (builder, events) = recorded(builder().check_output(SchemaLimits::default()));
    let (client, mut peer) = connected(builder).await;
    let wrong = || content(json!({ "sum": "5" }));
    for _ in 0..3 {
        call(&client, &mut peer, "sum", wrong()).await.unwrap();
    }
    call(&client, &mut peer, "other\u{1b}", wrong()).await.unwrap();
    assert_eq!(diagnostics(&events), ["output_unchecked", "output_unchecked"]);
    let told: Vec<String> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Diagnostic(diagnostic) => Some(diagnostic.to_string()),
            _ => None,
        })
        .collect();
    assert!(
        told[0].contains("\"sum\" was not checked") && told[0].contains("list the tools first"),
        "{told:?}"
    );
    assert!(told[1].contains("other\\u{1b}"), "{told:?}");

    let plain = json!({ "name": "plain", "inputSchema": { "type": "object" } });
    list(&client, &mut peer, json!([tool("sum", &sum_schema()), plain])).await;
    call(&client, &mut peer, "plain", wrong()).await.unwrap();
    why(call(&client, &mut peer, "sum", wrong()).await);
    assert_eq!(diagnostics(&events).len(), 2);
    // It is gone from the list, and was there.
    list(&client, &mut peer, json!([{ "name": "sum", "inputSchema": { "type": "object" } }])).await;
    call(&client, &mut peer, "sum", wrong()).await.unwrap();
    assert_eq!(diagnostics(&events).len(), 2);
}

/// A server may list more than is remembered; nothing is said then that may be wrong.
#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_tools_where_not_all_that_were_listed_are_remembered() {
    for (names, told) in [(1, 1), (2, 1), (3, 0)] {
        let mut limits = SchemaLimits::default();
        limits.max_tools = 2;
        let (builder, events) = recorded(builder().check_output(limits));
        let (client, mut peer) = connected(builder).await;
        let tools: Vec<Value> = (0..names)
            .map(|name| json!({ "name": name.to_string(), "inputSchema": { "type": "object" } }))
            .collect();
        list(&client, &mut peer, json!(tools)).await;
        call(&client, &mut peer, "unknown", content(json!(1))).await.unwrap();
        assert_eq!(diagnostics(&events).len(), told, "{names}");
    }
    // Nor of more of them than that.
    let mut limits = SchemaLimits::default();
    limits.max_tools = 2;
    let (builder, events) = recorded(builder().check_output(limits));
    let (client, mut peer) = connected(builder).await;
    for name in ["a", "b", "c", "d"] {
        call(&client, &mut peer, name, content(json!(1))).await.unwrap();
    }
    assert_eq!(diagnostics(&events).len(), 2);
}
