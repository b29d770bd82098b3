//! The name that an application gives a server, in everything that says or keeps which server it is.

use std::fmt::Debug;
use std::future::IntoFuture;

use mcp_client::model::{CallToolResult, ProtocolVersion};
use mcp_client::{
    Answer, Call, Client, ClientBuilder, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext, Error,
    ErrorCode, ErrorKind, ErrorObject, Mode, RawJson, SamplingContext, StdioServer, SuspendedCall,
};
use serde_json::{Map, json};
use tokio::sync::mpsc;

use super::peer::{self, Peer, builder, empty_form, pipe};
use crate::elicitation::support::ask;

fn asking() -> ClientBuilder {
    builder()
        .mode(Mode::Pinned(ProtocolVersion::V2026_07_28))
        .on_elicitation(|_: ElicitRequest, _: ElicitationContext| std::future::ready(ElicitReply::Defer))
}

async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    peer::discovered(builder, json!({ "tools": {} })).await
}

/// A call of a client that was set up like this, put away.
async fn put_away(builder: ClientBuilder) -> SuspendedCall {
    let (client, mut peer) = connected(builder).await;
    let call = peer::suspended(&client, &mut peer).await;
    // As another process reads it.
    serde_json::from_str(&serde_json::to_string(&call).unwrap()).unwrap()
}

/// Takes it up with a client that was set up like this, whose server answers with a result.
async fn taken_up(call: SuspendedCall, builder: ClientBuilder) -> Result<CallToolResult, Error> {
    let (client, mut peer) = connected(builder).await;
    let answer = Answer::Elicit(ElicitResult::accept(Map::new()));
    let resumed = client.resume::<CallToolResult>(call, [("q".to_owned(), answer)]).into_future();
    let serve = async {
        let call = peer.expect("tools/call").await;
        peer.answer(&call, json!({ "resultType": "complete", "content": [] })).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = resumed => result,
        () = serve => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_taken_up_by_clients_of_the_server_of_that_name_alone() {
    let of = |name: &str| asking().server_name(name);
    let call = put_away(of("files")).await;
    assert_eq!(call.server, "files");
    taken_up(call.clone(), of("files")).await.unwrap();
    for (other, shown) in [(of("mail"), "mail"), (asking(), "a byte stream")] {
        let error = taken_up(call.clone(), other).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        let both =
            format!("the suspended call was made to another server, \"files\"; this one is \"{shown}\" (");
        assert!(error.to_string().contains(&both), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_put_away_before_the_server_had_a_name_is_taken_up() {
    let call = put_away(asking()).await;
    assert_eq!(call.server, "a byte stream");
    taken_up(call.clone(), asking().server_name("files")).await.unwrap();
    let mut unsaid = call;
    unsaid.server.clear();
    taken_up(unsaid, asking().server_name("files")).await.unwrap();
}

/// Handlers are told the name, and so is an inbox and whoever looks at the desk.
#[tokio::test(start_paused = true)]
async fn whoever_is_asked_is_told_the_name() {
    let (told, mut names) = mpsc::unbounded_channel();
    let (of_elicitation, of_sampling) = (told.clone(), told);
    let builder = builder()
        .server_name("my files")
        .on_elicitation(move |_: ElicitRequest, context: ElicitationContext| {
            of_elicitation.send(context.server).unwrap();
            std::future::ready(ElicitResult::decline())
        })
        .on_sampling(move |_: RawJson, context: SamplingContext| {
            of_sampling.send(context.server).unwrap();
            std::future::ready(Err::<RawJson, _>(ErrorObject::new(ErrorCode::new(-1), "no")))
        });
    let (_client, mut peer) = peer::connected(builder).await;
    peer.send(ask(1, empty_form())).await;
    assert_eq!(names.recv().await.unwrap(), "my files");
    let params = json!({ "messages": [], "maxTokens": 9 });
    peer.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage", "params": params }))
        .await;
    assert_eq!(names.recv().await.unwrap(), "my files");
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_server_those_of_connecting_too() {
    let (client, mut peer) = peer::connected(builder().server_name("files")).await;
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), async {
        let call = peer.expect("tools/call").await;
        peer.refuse(&call, -32603, "no").await;
    });
    let missing = StdioServer::new("/no/such/program");
    let connecting = builder().server_name("files").connect(missing).await.unwrap_err();
    for (error, about) in [(outcome.unwrap_err(), "tool \"t\" of server"), (connecting, "server")] {
        assert_eq!(error.server_name(), Some("files"));
        assert!(error.to_string().starts_with(&format!("{about} \"files\": ")), "{error}");
    }
}

/// The error of one call, which the server refuses.
async fn refused<T: Debug + 'static>(call: Call<T>, peer: &mut Peer) -> Error {
    let (outcome, ()) = tokio::join!(call.into_future(), async {
        let request = peer.receive().await;
        peer.refuse(&request, -32603, "no").await;
    });
    outcome.unwrap_err()
}

/// auth:SEC-15. An application that prints an error and nothing else has to be told what failed.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_call_says_which_one_it_was() {
    let (client, mut peer) = connected(asking()).await;
    let server_says = "the server answered with error -32603: \"no\"";
    let check = |error: &Error, method: &str, tool: Option<&str>, about: &str| {
        assert_eq!((error.method(), error.tool_name(), error.server_name()), (Some(method), tool, None));
        assert_eq!(error.to_string(), format!("{about}: {server_says}"));
    };

    let tool = client.call_tool("read\u{1b}", json!({}));
    check(&refused(tool, &mut peer).await, "tools/call", Some("read\u{1b}"), "tool \"read\\u{1b}\"");
    let raw = client.request_raw("acme/do\n", ());
    check(&refused(raw, &mut peer).await, "acme/do\n", None, "\"acme/do\\n\"");
    let answers = [("q".to_owned(), Answer::Elicit(ElicitResult::accept(Map::new())))];
    let resumed = client.resume::<CallToolResult>(put_away(asking()).await, answers);
    check(&refused(resumed, &mut peer).await, "tools/call", Some("t"), "tool \"t\"");

    // Also one that was never sent, and one whose result cannot be read.
    let misused = client.call_tool("t", json!(5)).await.unwrap_err();
    assert_eq!(misused.to_string(), "tool \"t\": tool arguments must be a JSON object");
    let (list, ()) = tokio::join!(client.list_tools().all(), async {
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({ "resultType": "complete", "tools": 5 })).await;
    });
    let unreadable = list.unwrap_err();
    assert_eq!(unreadable.method(), Some("tools/list"));
    assert!(unreadable.to_string().starts_with("tools/list: the result of tools/list "), "{unreadable}");
    client.close().await;
    let closed = client.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!((closed.kind(), closed.tool_name()), (ErrorKind::Closed, Some("t")));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_cannot_be_one_is_refused_before_anything_is_started() {
    for name in ["", "a\nb", &"n".repeat(257)] {
        let (connection, mut peer) = pipe(1 << 10);
        let error = builder().server_name(name).connect(connection).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{name:?}: {error}");
        peer.expect_end().await;
    }
}
