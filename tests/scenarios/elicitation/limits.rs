//! Capacity, quotas, nobody there, and ids that are taken.

use std::future::pending;
use std::sync::atomic::Ordering;

use mcp_client::{
    Desk, DeskConfig, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext, ElicitationLimits,
    ElicitationSupport, PendingElicitation, RequestLimits,
};
use serde_json::json;

use super::support::*;

fn config(all: usize, each: usize) -> DeskConfig {
    DeskConfig::default()
        .limits(ElicitationLimits::default().max_concurrent(all).max_concurrent_per_server(each))
}

/// seed:B7, seed:S-25, seed:S-04: one beyond the capacity is declined, said so, and the earlier one goes on.
#[tokio::test(start_paused = true)]
async fn a_question_above_the_capacity_is_declined_and_the_earlier_one_stays() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.desk_config(config(1, 16)).elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let first = questions.next().await.unwrap();
    peer.send(form(2)).await;
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(2), &json!({ "action": "decline" })));
    first.respond(named("Ada")).unwrap();
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]["name"]), (&json!(1), &json!("Ada")));
    peer.send(form(3)).await;
    assert!(questions.next().await.is_some(), "there is room again");
    assert_eq!(
        told(&events),
        [
            "asked",
            "not shown: capacity_exceeded",
            "ended Answered(Accept)",
            "asked",
            "ended Answered(Cancel)"
        ]
    );
    assert_idle(&client);
}

/// seed:E22, seed:S-26: hung handlers of one server take its own quota and not the places of others, and not for ever.
#[tokio::test(start_paused = true)]
async fn hung_handlers_cost_their_server_its_quota_and_others_nothing() {
    let desk = Desk::new(config(4, 2));
    let (_hung, mut hung) = connected(builder().on_elicitation(never).desk(&desk, "hung")).await;
    let (_well, mut well) = connected(builder().on_elicitation(accept).desk(&desk, "well")).await;
    for id in 0..8 {
        hung.send(form(id)).await;
    }
    for id in 2..8 {
        let answer = hung.receive().await;
        assert_eq!((&answer["id"], &answer["result"]["action"]), (&json!(id), &json!("decline")));
    }
    well.send(form("w")).await;
    assert_eq!(well.receive().await["result"]["action"], "accept");
    // Their time frees their places.
    let answers = [hung.receive().await, hung.receive().await];
    assert!(answers.iter().all(|answer| answer["result"]["action"] == "cancel"), "{answers:?}");
    assert_eq!(desk.open_questions().len(), 0);
}

/// seed:B6, seed:S-35, seed:S-34: nobody is there, or a handler puts off what nobody could answer.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_takes_is_declined_and_said_so() {
    let pass = |_: ElicitRequest, _: ElicitationContext| async { ElicitReply::Pass };
    let defer = |_: ElicitRequest, _: ElicitationContext| async { ElicitReply::Defer };
    for builder in [builder().on_elicitation(pass), builder().on_elicitation(defer)] {
        let (builder, events) = recorded(builder);
        let (client, mut peer) = connected(builder).await;
        peer.send(form(1)).await;
        assert_eq!(peer.receive().await["result"], json!({ "action": "decline" }));
        assert_eq!(told(&events), ["asked", "not shown: no_interactive_host", "ended NoHost"]);
        assert_idle(&client);
    }
}

/// seed:E19, seed:S-39: the second question under an id in use is not asked and gets no answer of its own.
#[tokio::test(start_paused = true)]
async fn a_second_question_under_an_open_id_is_not_asked() {
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form("q")).await;
    peer.send(form("q")).await;
    let question = questions.next().await.unwrap();
    settle().await;
    assert_eq!(diagnostics(&events), ["repeated_server_request"]);
    question.respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    peer.expect_silence(SECOND).await;
    assert_idle(&client);
}

/// seed:E20, seed:S-36: 1 and "1" are two questions.
#[tokio::test(start_paused = true)]
async fn a_number_and_its_text_are_two_questions() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    peer.send(form("1")).await;
    let number = questions.next().await.unwrap();
    let text = questions.next().await.unwrap();
    assert_ne!(number.question(), text.question());
    text.respond(named("text")).unwrap();
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]["name"]), (&json!("1"), &json!("text")));
    number.respond(named("number")).unwrap();
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]["name"]), (&json!(1), &json!("number")));
}

/// seed:B14, seed:S-28, seed:B15, seed:S-19, seed:S-10, seed:S-27: what is refused is refused with -32602 and shown to
/// nobody.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_right_is_refused_and_shown_to_nobody() {
    let (handler, shown) = unasked();
    let (client, mut peer) = connected(builder().on_elicitation(handler.clone())).await;
    let wrong = |member: &str, value: serde_json::Value| {
        let mut params = url_params("e1");
        params[member] = value;
        params
    };
    for params in [
        wrong("url", json!("http://example.com/x")),
        wrong("url", json!("https://user:secret@example.com/")),
        wrong("url", json!("javascript:alert(1)")),
        wrong("url", json!("https://exam\nple.com/")),
        wrong("elicitationId", json!("")),
        wrong("mode", json!("URL")),
        wrong("message", json!({})),
        json!({ "message": "no schema" }),
    ] {
        peer.send(ask(1, params)).await;
        let answer = peer.receive().await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_idle(&client);

    let (connection, mut peer) = pipe(1 << 16);
    let modes = builder().on_elicitation(handler).elicitation_modes(ElicitationSupport::all());
    let (client, ()) = tokio::join!(modes.connect(connection), async {
        let initialize = peer.expect("initialize").await;
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        peer.answer(&initialize, result).await;
        peer.expect("notifications/initialized").await;
    });
    let _client = client.unwrap();
    peer.send(url(1, "e1")).await;
    assert_eq!(peer.receive().await["error"]["code"], -32602);
    settle().await;
    assert_eq!(shown.load(Ordering::SeqCst), 0);
}

/// The limits on one question are the application's.
#[tokio::test(start_paused = true)]
async fn a_question_above_the_applications_own_limits_is_refused() {
    let mut limits = RequestLimits::default();
    limits.max_message_chars = 3;
    let (_client, mut peer) = connected(builder().on_elicitation(accept).elicitation_limits(limits)).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["error"]["code"], -32602);
}

/// seed:B4, seed:S-32, seed:S-22, seed:S-23, seed:E24: what a listener answers is checked and filled like what a handler
/// answers; one that does not fit can be mended.
#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_the_form_is_given_back_and_the_question_stays() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    let mut wrong = named("Ada");
    wrong.content.as_mut().unwrap()["name"] = json!(7);
    let refused = question.respond(wrong).unwrap_err();
    assert_eq!(refused.to_string(), "the answer breaks the rules of the form: /name: must be a string");
    assert!(question.respond(named("Ada")).is_ok());
    assert_eq!(peer.receive().await["result"]["content"], json!({ "name": "Ada", "age": 30 }));
    assert!(question.respond(named("again")).is_err(), "seed:S-38: a second answer is none");
    peer.expect_silence(SECOND).await;
}

/// seed:S-33: one that panics is a cancel and gives its place back.
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_frees_its_place() {
    let panics = |request: ElicitRequest, _: ElicitationContext| async move {
        if request.message() == "Who?" {
            panic!("on purpose")
        }
        pending::<ElicitResult>().await
    };
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.on_elicitation(panics).desk_config(config(1, 1))).await;
    for id in 0..3 {
        peer.send(form(id)).await;
        assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    }
    assert_eq!(told(&events)[..2], ["asked", "ended Failed"]);
    assert_idle(&client);
}

/// seed:S-34, seed:S-35: an id that was kept is no hold on the question; one that was taken and let go of is.
#[tokio::test(start_paused = true)]
async fn a_question_is_put_off_for_its_id_by_taking_it_and_letting_go() {
    for takes in [false, true] {
        let (kept, mut ids) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |_: ElicitRequest, context: ElicitationContext| {
            let id =
                if takes { context.take().map(PendingElicitation::defer).unwrap() } else { context.question };
            kept.send(id).unwrap();
            async { ElicitReply::Defer }
        };
        let (client, mut peer) = connected(builder().on_elicitation(handler)).await;
        peer.send(form(1)).await;
        let question = ids.recv().await.unwrap();
        settle().await;
        assert_eq!(client.desk().open_questions().len(), usize::from(takes));
        assert_eq!(client.desk().respond(question, named("Ada")).is_ok(), takes);
        let expected = if takes { "accept" } else { "decline" };
        assert_eq!(peer.receive().await["result"]["action"], expected);
        assert_idle(&client);
    }
}
