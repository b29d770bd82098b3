//! Everything in any order: each question of the server gets at most one answer, none is left open, and every place is
//! given back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::{
    Client, Desk, DeskConfig, ElicitReply, ElicitRequest, ElicitResult, ElicitationContext,
    ElicitationLimits, Elicitations, PendingElicitation, QuestionId,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::*;

#[derive(Clone, Debug)]
enum Step {
    Form { to: usize, id: u8 },
    Url { to: usize, id: u8, elicitation: u8 },
    Withdraw { to: usize, id: u8 },
    Complete { to: usize, elicitation: u8 },
    Call { to: usize, elicitations: Vec<u8> },
    DropCall,
    Take,
    Respond { accept: bool },
    LetGo,
    Drop,
    ByName { accept: bool },
    Continue,
    Pass(u64),
    Close { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (to, id, elicitation) = (0..2_usize, 0..4_u8, 0..6_u8);
    prop_oneof![
        4 => (to.clone(), id.clone()).prop_map(|(to, id)| Step::Form { to, id }),
        3 => (to.clone(), id.clone(), elicitation.clone())
            .prop_map(|(to, id, elicitation)| Step::Url { to, id, elicitation }),
        2 => (to.clone(), id).prop_map(|(to, id)| Step::Withdraw { to, id }),
        3 => (to.clone(), elicitation.clone()).prop_map(|(to, elicitation)| Step::Complete { to, elicitation }),
        2 => (to.clone(), prop::collection::vec(elicitation, 1..3))
            .prop_map(|(to, elicitations)| Step::Call { to, elicitations }),
        1 => Just(Step::DropCall),
        4 => Just(Step::Take),
        4 => any::<bool>().prop_map(|accept| Step::Respond { accept }),
        1 => Just(Step::LetGo),
        1 => Just(Step::Drop),
        1 => any::<bool>().prop_map(|accept| Step::ByName { accept }),
        1 => Just(Step::Continue),
        2 => (0..120_u64).prop_map(Step::Pass),
        1 => to.prop_map(|which| Step::Close { which }),
    ]
}

/// One server, with what it has asked and was answered.
struct Side {
    client: Option<Client>,
    peer: Peer,
    asked: HashMap<String, u32>,
    answered: HashMap<String, u32>,
    calls: Vec<tokio::task::JoinHandle<Result<Value, mcp_client::Error>>>,
}

impl Side {
    async fn open(desk: &Desk, server: &str) -> Self {
        let (client, peer) = connected(builder().desk(desk, server)).await;
        Self {
            client: Some(client),
            peer,
            asked: HashMap::new(),
            answered: HashMap::new(),
            calls: Vec::new(),
        }
    }

    /// Reads what the client sent: answers are counted, calls are refused for the URLs that are wanted of them.
    async fn read(&mut self, elicitations: &[u8]) {
        while let Ok(Some(message)) =
            tokio::time::timeout(Duration::from_millis(1), self.peer.try_receive()).await
        {
            if message["method"].is_null() {
                *self.answered.entry(message["id"].to_string()).or_default() += 1;
            } else if message["method"] == "tools/call" {
                let entries: Vec<Value> = elicitations.iter().map(|id| url_params(&id.to_string())).collect();
                let data = json!({ "elicitations": entries });
                let error = json!({ "code": -32042, "message": "m", "data": data });
                self.peer.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).await;
            }
        }
    }
}

struct World {
    desk: Desk,
    sides: Vec<Side>,
    listener: Elicitations,
    hand: Vec<PendingElicitation>,
    names: Vec<QuestionId>,
}

impl World {
    async fn open() -> Self {
        let limits = ElicitationLimits::default().max_concurrent(4).max_concurrent_per_server(3);
        let desk = Desk::new(DeskConfig::default().limits(limits));
        // Every third question is put off, every third passed on, every third answered at once.
        let turn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        desk.set_handler(move |request: ElicitRequest, _: ElicitationContext| {
            let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move {
                match turn % 4 {
                    0 => ElicitReply::Defer,
                    1 => ElicitReply::Pass,
                    2 => std::future::pending().await,
                    _ => ElicitReply::Answer(answer(&request, true)),
                }
            }
        });
        let sides = vec![Side::open(&desk, "a").await, Side::open(&desk, "a:b").await];
        let listener = desk.elicitations();
        Self { desk, sides, listener, hand: Vec::new(), names: Vec::new() }
    }

    async fn act(&mut self, step: Step) {
        let mut wanted = Vec::new();
        match step {
            Step::Form { to, id } => self.ask(to, form(id)).await,
            Step::Url { to, id, elicitation } => self.ask(to, url(id, &elicitation.to_string())).await,
            Step::Withdraw { to, id } => self.send(to, withdraw(id)).await,
            Step::Complete { to, elicitation } => self.send(to, complete(&elicitation.to_string())).await,
            Step::Call { to, elicitations } => {
                let side = &mut self.sides[to];
                if let Some(client) = &side.client {
                    side.calls.push(call_tool(client, "t"));
                }
                wanted = elicitations;
            }
            Step::DropCall => self.sides.iter_mut().for_each(|side| {
                side.calls.pop().into_iter().for_each(|call| call.abort());
            }),
            Step::Take => {
                let next = tokio::time::timeout(Duration::from_millis(1), self.listener.next()).await;
                self.hand.extend(next.ok().flatten());
            }
            Step::Respond { accept } => {
                if let Some(question) = self.hand.pop() {
                    let _ = question.respond(answer(question.request(), accept));
                }
            }
            Step::LetGo => self.names.extend(self.hand.pop().map(PendingElicitation::defer)),
            Step::Drop => drop(self.hand.pop()),
            Step::ByName { accept } => {
                if let Some(name) = self.names.pop() {
                    let open = self.desk.open_questions();
                    if let Some(open) = open.iter().find(|open| open.question == name) {
                        self.desk.respond(name, answer(&open.request, accept)).unwrap();
                    }
                }
            }
            Step::Continue => {
                for call in self.desk.waiting_calls() {
                    let _ = self.desk.continue_call(call.wait);
                }
            }
            Step::Pass(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Step::Close { which } => {
                if let Some(client) = self.sides[which].client.take() {
                    // The end of its input is all that this peer needs.
                    let side = &mut self.sides[which];
                    tokio::join!(client.close(), async { while side.peer.try_receive().await.is_some() {} });
                    assert_eq!(
                        self.desk
                            .open_questions()
                            .iter()
                            .filter(|open| &*open.server == ["a", "a:b"][which])
                            .count(),
                        0
                    );
                }
            }
        }
        for side in &mut self.sides {
            side.read(&wanted).await;
        }
        assert!(self.desk.open_questions().len() <= 4);
    }

    async fn ask(&mut self, to: usize, question: Value) {
        if self.sides[to].client.is_some() {
            *self.sides[to].asked.entry(question["id"].to_string()).or_default() += 1;
            self.sides[to].peer.send(question).await;
        }
    }

    async fn send(&mut self, to: usize, message: Value) {
        if self.sides[to].client.is_some() {
            self.sides[to].peer.send(message).await;
        }
    }

    /// Lets everybody's time pass, and looks whether anything is left.
    async fn end(mut self) {
        self.hand.clear();
        tokio::time::sleep(Duration::from_secs(4_000)).await;
        for side in &mut self.sides {
            side.read(&[]).await;
            for (id, answers) in &side.answered {
                let asked = side.asked.get(id).copied().unwrap_or_default();
                assert!(*answers <= asked, "{answers} answers to {asked} questions of the id {id}");
            }
            for call in side.calls.drain(..) {
                assert!(call.is_finished(), "a call is left");
            }
        }
        assert!(self.desk.open_questions().is_empty(), "a question is left");
        assert!(self.desk.waiting_calls().is_empty(), "a waiting call is left");
        // The places are free again: as many as the limit fit.
        let (client, mut peer) = connected(builder().elicitation_stream().desk(&self.desk, "new")).await;
        drop(self.listener);
        self.desk.clear_handler();
        for id in 0..3 {
            peer.send(form(id)).await;
        }
        settle().await;
        assert_eq!(self.desk.open_questions().len(), 3);
        drop(client);
    }
}

fn answer(request: &ElicitRequest, accept: bool) -> ElicitResult {
    match (request, accept) {
        (_, false) => ElicitResult::decline(),
        (ElicitRequest::Url(_), true) => ElicitResult::accept_url(),
        _ => named("Ada"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// seed:B17, seed:E22, seed:S-26, seed:S-48, seed:S-52
    #[test]
    fn whatever_happens_each_question_ends_once_and_nothing_is_left(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::open().await;
            for step in steps {
                world.act(step).await;
            }
            world.end().await;
        });
    }
}
