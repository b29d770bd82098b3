//! What is awaited one after another, polled as a `Stream` around it does.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_client::model::SubscriptionFilter;
use mcp_client::{Change, Client, Desk, ListKind, PendingElicitation};
use serde_json::json;

use super::peer::{Peer, builder, connected, pipe};
use crate::elicitation::support::{form, named, settle};

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once. Whether the waker is woken after that is counted.
fn poll_once<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> (Poll<T>, Arc<Counting>) {
    let counting = Arc::<Counting>::default();
    let waker = Waker::from(Arc::clone(&counting));
    (poll(&mut Context::from_waker(&waker)), counting)
}

fn is_woken(counting: &Counting) -> bool {
    counting.0.load(Ordering::SeqCst) > 0
}

fn list_changed(kind: &str) -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{kind}/list_changed") })
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_polled_wakes_who_polled_it_last() {
    let (connection, mut peer) = pipe(1 << 20);
    let offered = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
    let (client, _) = tokio::join!(builder().connect(connection), peer.handshake(offered));
    let client: Client = client.unwrap();
    let mut wanted = SubscriptionFilter::new();
    wanted.tools_list_changed = Some(true);
    let mut changes = client.subscription(wanted).await.unwrap();

    let (nothing, first) = poll_once(|context| changes.poll_next(context));
    assert!(nothing.is_pending());
    let (nothing, second) = poll_once(|context| changes.poll_next(context));
    assert!(nothing.is_pending());
    peer.send(list_changed("tools")).await;
    peer.send(list_changed("prompts")).await;
    settle().await;
    assert!(is_woken(&second) && !is_woken(&first));
    let (change, _) = poll_once(|context| changes.poll_next(context));
    assert!(matches!(change, Poll::Ready(Ok(Some(Change::List(ListKind::Tools))))), "{change:?}");
    // What it does not want is passed over.
    let (nothing, third) = poll_once(|context| changes.poll_next(context));
    assert!(nothing.is_pending());

    // Who awaits it instead misses nothing, and its end is told once.
    peer.send(list_changed("tools")).await;
    assert_eq!(changes.next().await.unwrap(), Some(Change::List(ListKind::Tools)));
    drop(peer);
    let ended = poll_fn(|context| changes.poll_next(context)).await;
    assert_eq!(ended.unwrap_err().kind().as_str(), "closed");
    let (over, _) = poll_once(|context| changes.poll_next(context));
    assert!(matches!(over, Poll::Ready(Ok(None))), "{over:?}");
    drop(third);
}

async fn asked(peer: &mut Peer, id: u64) {
    peer.send(form(id)).await;
    settle().await;
}

fn taken(polled: Poll<Option<PendingElicitation>>) -> PendingElicitation {
    match polled {
        Poll::Ready(Some(question)) => question,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_polled_for_wake_who_polled_last_and_none_is_lost() {
    let (client, mut peer) = connected(builder().elicitation_stream()).await;
    let mut questions = client.elicitations();
    let (nothing, first) = poll_once(|context| questions.poll_next(context));
    assert!(nothing.is_pending());
    let (nothing, second) = poll_once(|context| questions.poll_next(context));
    assert!(nothing.is_pending());
    asked(&mut peer, 1).await;
    assert!(is_woken(&second) && !is_woken(&first));
    asked(&mut peer, 2).await;
    for id in [1, 2] {
        let (question, _) = poll_once(|context| questions.poll_next(context));
        taken(question).respond(named("Ada")).unwrap();
        assert_eq!(peer.receive().await["id"], id);
    }
    // A wait that was given up, in either way, takes nothing with it.
    assert!(tokio::time::timeout(std::time::Duration::from_secs(1), questions.next()).await.is_err());
    let (nothing, third) = poll_once(|context| questions.poll_next(context));
    assert!(nothing.is_pending());
    asked(&mut peer, 3).await;
    assert!(is_woken(&third));
    questions.next().await.unwrap().respond(named("Ada")).unwrap();
    assert_eq!(peer.receive().await["id"], 3);

    let (nothing, last) = poll_once(|context| questions.poll_next(context));
    assert!(nothing.is_pending());
    drop(peer);
    settle().await;
    assert!(is_woken(&last));
    let (over, _) = poll_once(|context| questions.poll_next(context));
    assert!(matches!(over, Poll::Ready(None)), "{over:?}");
}

/// The questions of a desk are there as long as it is.
#[tokio::test(start_paused = true)]
async fn the_questions_of_a_desk_do_not_end_with_a_connection() {
    let desk = Desk::default();
    let mut questions = desk.elicitations();
    let (_client, mut peer) = connected(builder().desk(&desk, "srv")).await;
    asked(&mut peer, 1).await;
    let (question, _) = poll_once(|context| questions.poll_next(context));
    drop(taken(question));
    drop(peer);
    settle().await;
    let (nothing, _) = poll_once(|context| questions.poll_next(context));
    assert!(nothing.is_pending());
}
