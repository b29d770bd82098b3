//! Questions that are written down before they are shown, and answered by others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use mcp_client::{
    DeskConfig, ElicitAction, ElicitRequest, ElicitResult, ElicitationContext, End, Inbox, InboxAnswer,
    InboxEntry, InboxError, MemoryInbox,
};
use serde_json::json;

use super::support::*;

/// Notes what is asked of it, and fails or hangs where a test wants that.
#[derive(Default)]
struct Watched {
    memory: MemoryInbox,
    log: Mutex<Vec<String>>,
    refuses: AtomicBool,
    hangs: Mutex<bool>,
    goes_on: Condvar,
}

impl Watched {
    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn hang(&self, hangs: bool) {
        *self.hangs.lock().unwrap() = hangs;
        self.goes_on.notify_all();
    }

    fn only(&self) -> InboxEntry {
        let open = self.memory.open();
        assert_eq!(open.len(), 1);
        open[0].clone()
    }
}

impl Inbox for Watched {
    fn publish(&self, entry: &InboxEntry) -> Result<(), InboxError> {
        drop(self.goes_on.wait_while(self.hangs.lock().unwrap(), |hangs| *hangs));
        if self.refuses.load(Ordering::SeqCst) {
            return Err(InboxError::new("the disk is full"));
        }
        self.note(format!("publish {}", entry.server));
        self.memory.publish(entry)
    }

    fn acknowledge(&self, id: &str, action: ElicitAction) -> Result<(), InboxError> {
        self.note(format!("acknowledge {action}"));
        self.memory.acknowledge(id, action)
    }

    fn fail(&self, id: &str, end: End) -> Result<(), InboxError> {
        self.note(format!("fail {end:?}"));
        self.memory.fail(id, end)
    }

    fn answers(&self, ids: &[&str]) -> Result<Vec<InboxAnswer>, InboxError> {
        self.memory.answers(ids)
    }

    fn set_expiry(&self, id: &str, expires_after: Option<Duration>) -> Result<(), InboxError> {
        self.memory.set_expiry(id, expires_after)
    }

    fn refuse(&self, id: &str, reason: &str) -> Result<(), InboxError> {
        assert!(self.memory.open().iter().any(|entry| entry.id == id) && reason.contains("name"));
        self.note("refuse".to_owned());
        Ok(())
    }
}

fn watched() -> (Arc<Watched>, DeskConfig) {
    let inbox = Arc::new(Watched::default());
    let config = DeskConfig::default().shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>);
    (inbox, config)
}

/// seed:S-30, seed:S-32: written down before it is shown, acknowledged when it is answered.
#[tokio::test(start_paused = true)]
async fn a_question_is_written_down_before_it_is_shown_and_ended_there_too() {
    let (inbox, config) = watched();
    let shelf = Arc::clone(&inbox);
    let handler = move |_: ElicitRequest, _: ElicitationContext| {
        shelf.note("shown".to_owned());
        async { named("Ada") }
    };
    let (_client, mut peer) = connected(builder().on_elicitation(handler).desk_config(config)).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["action"], "accept");
    settle().await;
    assert_eq!(inbox.log(), ["publish a byte stream", "shown", "acknowledge accept"]);
    assert!(inbox.memory.open().is_empty());
}

/// seed:S-30: what cannot be written down is cancelled and shown to nobody.
#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_written_down_is_cancelled_unseen() {
    let (inbox, config) = watched();
    inbox.refuses.store(true, Ordering::SeqCst);
    let (handler, shown) = unasked();
    let (builder, events) = recorded(builder());
    let (client, mut peer) = connected(builder.on_elicitation(handler).desk_config(config)).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"], json!({ "action": "cancel" }));
    assert_eq!(told(&events), ["asked", "not published", "ended Failed"]);
    settle().await;
    assert!(inbox.log().is_empty());
    assert_eq!(shown.load(Ordering::SeqCst), 0);
    assert_idle(&client);
}

/// Answers from elsewhere: one that breaks the form is handed back, the next one counts, and it is acknowledged.
#[tokio::test(start_paused = true)]
async fn an_answer_from_the_inbox_reaches_the_question() {
    let (inbox, config) = watched();
    let (_client, mut peer) = connected(builder().desk_config(config)).await;
    peer.send(form(1)).await;
    peer.expect_silence(SECOND).await;
    let entry = inbox.only();
    assert!(entry.expires_after.is_some_and(|after| after <= 180 * SECOND));
    let ElicitRequest::Form(asked) = entry.request().unwrap() else { panic!("a form") };
    assert_eq!(asked.message(), "Who?");
    assert!(inbox.memory.answer(&entry.id, ElicitResult::accept(serde_json::Map::new())));
    peer.expect_silence(SECOND).await;
    assert_eq!(inbox.log().last().unwrap(), "refuse");
    assert!(inbox.memory.answer(&entry.id, named("Ada")));
    assert_eq!(peer.receive().await["result"]["content"]["name"], "Ada");
    settle().await;
    assert_eq!(inbox.log(), ["publish a byte stream", "refuse", "acknowledge accept"]);
    assert!(!inbox.memory.answer(&entry.id, named("late")));
}

/// Other processes see that there is more time, and have it.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_given_more_time_has_it_in_the_inbox() {
    let (inbox, config) = watched();
    let (client, mut peer) = connected(builder().desk_config(config)).await;
    peer.send(form(1)).await;
    peer.expect_silence(100 * SECOND).await;
    let open = client.desk().open_questions();
    client.desk().extend(open[0].question, 600 * SECOND).unwrap();
    settle().await;
    let after = inbox.only().expires_after.unwrap();
    assert!(after > 599 * SECOND && after <= 600 * SECOND, "{after:?}");
    peer.expect_silence(500 * SECOND).await;
    assert!(inbox.memory.answer(&inbox.only().id, named("Ada")));
    assert_eq!(peer.receive().await["result"]["action"], "accept");
}

/// seed:S-37, seed:E21: ends without an answer are failures there, also where a handler has the question.
#[tokio::test(start_paused = true)]
async fn an_end_without_an_answer_is_a_failure_in_the_inbox() {
    let (inbox, config) = watched();
    let (_client, mut peer) = connected(builder().on_elicitation(never).desk_config(config)).await;
    peer.send(form(1)).await;
    assert_eq!(peer.receive().await["result"]["action"], "cancel");
    peer.send(form(2)).await;
    settle().await;
    peer.send(withdraw(2)).await;
    settle().await;
    assert_eq!(
        inbox.log(),
        ["publish a byte stream", "fail TimedOut", "publish a byte stream", "fail Withdrawn"]
    );
}

/// A store that hangs holds up neither calls nor the end of a question; what ended meanwhile never gets there.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_holds_up_nothing_else() {
    let (inbox, config) = watched();
    inbox.hang(true);
    let (client, mut peer) = connected(builder().on_elicitation(accept).desk_config(config)).await;
    peer.send(form(1)).await;
    peer.send(form(2)).await;
    peer.send(withdraw(2)).await;
    let call = call_tool(&client, "t");
    let request = peer.expect("tools/call").await;
    peer.answer(&request, json!({ "content": [] })).await;
    call.await.unwrap().unwrap();
    inbox.hang(false);
    let answer = peer.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["action"]), (&json!(1), &json!("accept")));
    client.close().await;
    while !inbox.memory.open().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(inbox.log(), ["publish a byte stream", "acknowledge accept"]);
}

/// Two answers at once: the first to reach the desk counts, and the other is none.
#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once_however_many_answer() {
    let (inbox, config) = watched();
    let (client, mut peer) = connected(builder().elicitation_stream().desk_config(config)).await;
    let mut questions = client.elicitations();
    peer.send(form(1)).await;
    let question = questions.next().await.unwrap();
    assert!(inbox.memory.answer(&inbox.only().id, named("far")));
    question.respond(named("near")).unwrap();
    assert_eq!(peer.receive().await["result"]["content"]["name"], "near");
    peer.expect_silence(SECOND).await;
    assert_eq!(inbox.log(), ["publish a byte stream", "acknowledge accept"]);
    assert_idle(&client);
}

/// Two desks of one process at one store, one answer at a time: no desk takes the other's, and no entry has the other's id.
#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_server_that_asked_and_no_other() {
    let inbox = Arc::new(MemoryInbox::new());
    let config = || DeskConfig::default().shared_inbox(Arc::clone(&inbox) as Arc<dyn Inbox>);
    let (_first, mut one) = connected(builder().desk_config(config())).await;
    let (_second, mut other) = connected(builder().desk_config(config())).await;
    let asks = |round, who: &str| {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        ask(round, json!({ "message": who, "requestedSchema": schema }))
    };
    for round in 0..4 {
        one.send(asks(round, "one")).await;
        other.send(asks(round, "other")).await;
        settle().await;
        let open = inbox.open();
        assert_eq!(open.len(), 2, "round {round}");
        for entry in open {
            let who = entry.request().unwrap().message().to_owned();
            assert!(inbox.answer(&entry.id, named(&who)));
        }
        for (peer, who) in [(&mut one, "one"), (&mut other, "other")] {
            let answer = peer.receive().await;
            assert_eq!(answer["result"]["content"]["name"], who, "round {round}");
        }
        settle().await;
        assert!(inbox.open().is_empty(), "round {round}");
    }
}
