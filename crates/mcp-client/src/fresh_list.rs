//! Lists that stay as new as the server tells.
//!
//! ```text
//!               notice of a change, Restored, Missed, refresh()
//!   Resting ───────────────────────────────────────────────────> Reading ──read, nothing new was told──> Resting
//!      ▲                                                         │  ▲   │
//!      │                                                         │  └───┘ told of a change meanwhile: once more,
//!      └── failed: the old list stays, and says why ─────────────┘        not before `MIN_PAUSE` is over
//! ```
//!
//! There is one reading at a time, however many notices arrive. Nothing is read because time has passed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_model::{Paginated, ServerFeature, SubscriptionFilter, WithMeta};
use mcp_proto::ListKind;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::event::{ClientEvent, Events};
use crate::requests::{List, ListedItem};
use crate::spawning::spawn;
use crate::subscription::{Change, Subscription};
use mcp_transport::watched::{Watched, Watcher};

/// The least time between the end of one reading and the beginning of the next. A server that tells of changes without
/// end has its list read four times a second, and not as fast as it can.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// A list of the server that is read again when the server reports a change. Created by [`List::watch`].
///
/// Cheap to clone; clones show the same list. It keeps the connection open. When the last clone is dropped, its subscription
/// ends and nothing more is read.
pub struct FreshList<T> {
    states: Watcher<Arc<ListState<T>>>,
    shared: Arc<Shared>,
}

/// The current state of a watched list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListState<T> {
    /// The items of the last complete reading.
    pub items: Arc<[T]>,
    /// The number of complete readings; at least 1, as [`List::watch`] waits for the first.
    pub reads: u64,
    /// Why the latest attempt to read the list, or to follow its changes, failed; the items may then be out of date. The next
    /// successful reading clears it.
    pub failure: Option<Arc<Error>>,
    /// Whether the server reports changes. If not, only [`FreshList::refresh`] updates the items.
    pub followed: bool,
}

struct Shared {
    wanted: Arc<Notify>,
    task: AbortHandle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<R> List<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
    <R::Result as ListedItem>::Item: Send + Sync + 'static,
{
    /// Reads the whole list, and reads it again whenever the server reports a change. Notifications that arrive during a
    /// reading lead to one more reading after it, however many they are. Timeout and limits of this list apply to each
    /// reading. If the server does not report changes, or refuses the subscription, the list stays as it is; see
    /// [`ListState::followed`].
    ///
    /// Dropping the future ends it.
    ///
    /// # Errors
    ///
    /// Those of the first reading, and of the connection if that ends meanwhile.
    pub async fn watch(self) -> Result<FreshList<<R::Result as ListedItem>::Item>, Error> {
        let list = self.fresh();
        // Before it is read: what changes in between must be told.
        let (subscription, failure) = match list.subscribe().await {
            Ok(subscription) => (subscription, None),
            Err(error)
                if matches!(error.kind(), ErrorKind::Closed | ErrorKind::Tls | ErrorKind::Transport) =>
            {
                return Err(error);
            }
            Err(error) => (None, Some(error)),
        };
        let items = list.clone().all().await?;
        Ok(list.keep(subscription, Some(items), failure, None))
    }

    /// As [`watch`](Self::watch), but the first attempt to read or follow the list may fail like any later one, and none takes longer
    /// than `limit`. It fails where the connection is over.
    #[cfg(feature = "host")]
    pub(crate) async fn follow(
        self,
        limit: Duration,
    ) -> Result<FreshList<<R::Result as ListedItem>::Item>, Error> {
        let list = self.fresh();
        let subscribed = tokio::time::timeout(limit, list.subscribe()).await;
        let (subscription, unfollowed) = match subscribed.unwrap_or_else(|_| Err(Error::timed_out(limit))) {
            Ok(subscription) => (subscription, None),
            Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
            Err(error) => (None, Some(error)),
        };
        let (items, unread) = match list.clone().all_within(Some(limit)).await {
            Ok(items) => (Some(items), None),
            Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
            Err(error) => (None, Some(error)),
        };
        Ok(list.keep(subscription, items, unread.or(unfollowed), Some(limit)))
    }

    /// Asks to be told of changes; `None` where the server tells of none.
    async fn subscribe(&self) -> Result<Option<Subscription>, Error> {
        let client = self.client();
        let (feature, filter) = changes(R::Result::kind());
        if !client.server().capabilities.declares(feature) {
            return Ok(None);
        }
        let subscription = client.subscription(filter.clone()).await?;
        Ok(Some(subscription).filter(|given| filter.missing_from(given.granted()).is_empty()))
    }

    async fn all_within(
        self,
        limit: Option<Duration>,
    ) -> Result<Vec<<R::Result as ListedItem>::Item>, Error> {
        match limit {
            Some(limit) => {
                let read = tokio::time::timeout(limit, self.all()).await;
                read.unwrap_or_else(|_| Err(Error::timed_out(limit)))
            }
            None => self.all().await,
        }
    }

    /// Starts who keeps the list. `items`: `None` where it could not be read yet.
    fn keep(
        self,
        subscription: Option<Subscription>,
        items: Option<Vec<<R::Result as ListedItem>::Item>>,
        failure: Option<Error>,
        limit: Option<Duration>,
    ) -> FreshList<<R::Result as ListedItem>::Item> {
        let client = self.client().clone();
        let state = ListState {
            reads: u64::from(items.is_some()),
            items: items.unwrap_or_default().into(),
            failure: failure.map(Arc::new),
            followed: subscription.is_some(),
        };
        let source = subscription.map_or_else(|| Source::Connection(client.events()), Source::Subscription);
        let state = Watched::new(Arc::new(state));
        let states = state.watcher();
        let wanted = Arc::new(Notify::new());
        let keeper =
            Keeper { list: self, limit, source, state, wanted: Arc::clone(&wanted), read: Instant::now() };
        let task = spawn(client.driver().runtime(), keeper.keep());
        FreshList { states, shared: Arc::new(Shared { wanted, task }) }
    }
}

impl<T> FreshList<T> {
    /// The current state.
    pub fn current(&self) -> Arc<ListState<T>> {
        self.states.current()
    }

    /// Waits for a state that this clone has not seen: after another reading, after a failed one, or when changes are no
    /// longer followed. The first call waits for the first event after [`List::watch`]. Of several new states only the latest
    /// may be seen. `None` once the connection has ended. Cancel safe.
    pub async fn changed(&mut self) -> Option<Arc<ListState<T>>> {
        self.states.changed().await
    }

    /// Reads the list again soon, as if the server had reported a change. Returns at once.
    pub fn refresh(&self) {
        self.shared.wanted.notify_one();
    }
}

struct Keeper<R>
where
    R: Paginated + WithMeta,
    R::Result: ListedItem,
{
    list: List<R>,
    /// How long a reading may take with all its pages.
    limit: Option<Duration>,
    source: Source,
    state: Watched<Arc<ListState<<R::Result as ListedItem>::Item>>>,
    wanted: Arc<Notify>,
    /// When the newest reading ended.
    read: Instant,
}

/// Where a list hears of what happens.
enum Source {
    Subscription(Subscription),
    /// The server tells of no changes; the connection may end all the same.
    Connection(Events),
}

/// What a list has to do with a word of the server.
enum Told {
    Changed,
    /// The connection is over.
    End,
    Nothing,
}

impl<R> Keeper<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
    <R::Result as ListedItem>::Item: Send + Sync + 'static,
{
    async fn keep(mut self) {
        while self.rest().await {
            loop {
                match self.read().await {
                    Told::Changed => {}
                    Told::End => return,
                    Told::Nothing => break,
                }
            }
        }
    }

    /// Waits for a reason to read the list. `false`: there will be none any more.
    async fn rest(&mut self) -> bool {
        loop {
            match self.told().await {
                Told::Changed => return true,
                Told::End => return false,
                Told::Nothing => {}
            }
        }
    }

    /// Reads the list, and tells whether it must be read again.
    async fn read(&mut self) -> Told {
        tokio::time::sleep_until(self.read + MIN_PAUSE).await;
        // What changes before the stream of a new session stands is told to nobody.
        self.list.client().driver().stream_known().await;
        // What was told until now is covered by this reading.
        loop {
            let told = tokio::select! {
                biased;
                told = self.told() => told,
                () = std::future::ready(()) => break,
            };
            if matches!(told, Told::End) {
                return Told::End;
            }
        }
        let mut reading = Box::pin(self.list.clone().all_within(self.limit));
        let mut again = false;
        let outcome = loop {
            tokio::select! {
                biased;
                told = self.told() => match told {
                    Told::Changed => again = true,
                    Told::End => return Told::End,
                    Told::Nothing => {}
                },
                outcome = &mut reading => break outcome,
            }
        };
        drop(reading);
        self.read = Instant::now();
        let closed = matches!(&outcome, Err(error) if error.kind() == ErrorKind::Closed);
        self.publish(|state| match outcome {
            Ok(items) => {
                state.items = items.into();
                state.reads += 1;
                state.failure = None;
            }
            Err(error) => state.failure = Some(Arc::new(error)),
        });
        match (closed, again) {
            (true, _) => Told::End,
            (false, true) => Told::Changed,
            (false, false) => Told::Nothing,
        }
    }

    /// The next word of the server or of the application. Cancel safe.
    async fn told(&mut self) -> Told {
        let subscription = match &mut self.source {
            Source::Subscription(subscription) => subscription,
            Source::Connection(_) if self.list.client().is_closed() => return Told::End,
            Source::Connection(events) => {
                return tokio::select! {
                    biased;
                    () = self.wanted.notified() => Told::Changed,
                    event = events.next() => match event {
                        None | Some(ClientEvent::Closed { .. }) => Told::End,
                        Some(_) => Told::Nothing,
                    },
                };
            }
        };
        let failure = tokio::select! {
            biased;
            () = self.wanted.notified() => return Told::Changed,
            change = subscription.next() => match change {
                Ok(Some(Change::List(_) | Change::Missed { .. } | Change::Restored)) => return Told::Changed,
                Ok(Some(_)) => return Told::Nothing,
                Ok(None) => None,
                Err(error) => Some(Arc::new(error)),
            },
        };
        let client = self.list.client();
        let over = client.is_closed();
        self.source = Source::Connection(client.events());
        self.publish(|state| {
            state.followed = false;
            state.failure = failure.or(state.failure.take());
        });
        if over { Told::End } else { Told::Nothing }
    }

    fn publish(&self, change: impl FnOnce(&mut ListState<<R::Result as ListedItem>::Item>)) {
        // Nobody else changes it.
        let ListState { items, reads, failure, followed } = &*self.state.current();
        let mut next = ListState {
            items: Arc::clone(items),
            reads: *reads,
            failure: failure.clone(),
            followed: *followed,
        };
        change(&mut next);
        self.state.set(Arc::new(next));
    }
}

/// What a server declares that tells of changes of such a list, and how they are asked for.
fn changes(list: ListKind) -> (ServerFeature, SubscriptionFilter) {
    let mut filter = SubscriptionFilter::new();
    let feature = match list {
        ListKind::Prompts => {
            filter.prompts_list_changed = Some(true);
            ServerFeature::PromptsListChanged
        }
        ListKind::Resources => {
            filter.resources_list_changed = Some(true);
            ServerFeature::ResourcesListChanged
        }
        _ => {
            filter.tools_list_changed = Some(true);
            ServerFeature::ToolsListChanged
        }
    };
    (feature, filter)
}

impl<T> Clone for FreshList<T> {
    fn clone(&self) -> Self {
        Self { states: self.states.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for FreshList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.current();
        f.debug_struct("FreshList")
            .field("items", &state.items.len())
            .field("reads", &state.reads)
            .field("failed", &state.failure.is_some())
            .field("followed", &state.followed)
            .finish()
    }
}
