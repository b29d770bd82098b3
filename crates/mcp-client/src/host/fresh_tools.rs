//! The tools of every server in one table that stays as new as the servers tell.
//!
//! One task keeps the table; for each connection it has another one that reads the list and follows its changes. What they read
//! comes to the keeper with the generation it belongs to, so that the list of a connection that is gone changes nothing.
//!
//! When a connection goes, its list is kept aside until the next one of that server has been read:
//!
//! ```text
//!                          read: replaced
//!                              ┌──┐
//!            read              │  v       connection gone
//! (nothing) ──────────────> in the table ─────────────────> departed ──> (nothing)
//!     read over a new connection ^                             │   removed, or no tools any more
//!                                └─────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_model::ServerFeature;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::event::{Generation, HostEvent, HostEvents};
use super::handle::Host;
use super::lists::Source;
use super::registry::Registry;
use super::tool_names::{NamedTool, ToolNames, ToolTable};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::spawning::spawn;
use mcp_transport::watched::{Watched, Watcher};

/// How many lists may lie before the keeper; who reads one more waits.
const MAX_NEWS: usize = 16;

/// A table of the tools of all connected servers, by unique names, that follows every change. Created by
/// [`Host::watch_tools`].
///
/// Cheap to clone; clones show the same table. When the last clone is dropped, nothing is followed any more. It keeps no
/// connection and no host open.
#[derive(Clone)]
pub struct FreshTools {
    tables: Watcher<Option<Arc<ToolTable>>>,
    keeper: Arc<Task>,
    wanted: Arc<Notify>,
}

/// A task that ends with its owner.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Host {
    /// A table of the tools of all connected servers, by unique names, that is updated when servers connect, disconnect, or
    /// report that their tools changed. Each list is followed as by [`List::watch`](crate::List::watch), and read again at
    /// most four times a second.
    ///
    /// Waits until the list of every server that is connected now has been read once or has failed. For each list
    /// [`HostLimits::list_timeout`](super::HostLimits::list_timeout) and [`max_list_bytes`](super::HostLimits::max_list_bytes)
    /// apply; subscribing to changes, which comes first, may take as long again. A server that is not connected has no tools
    /// in the table; they return under the same names once it is connected and its list has been read, and until then are
    /// [departed](ToolTable::departed). So of each server of the host at most one list is kept, which is within those limits,
    /// also while it is not connected; [`Host::remove`] lets go of it. If a list cannot be
    /// read, the table keeps the tools that it had and lists the error among its [`failures`](ToolTable::failures); the list
    /// is read again when the server reports a change. Must run inside a tokio runtime. Dropping the future ends it.
    ///
    /// ```no_run
    /// # use mcp_client::host::{Host, ToolNames};
    /// # async fn example(host: &Host) {
    /// let mut tools = host.watch_tools(ToolNames::default()).await;
    /// while let Some(table) = tools.changed().await {
    ///     println!("{} tools", table.len());
    /// }
    /// # }
    /// ```
    pub async fn watch_tools(&self, names: ToolNames) -> FreshTools {
        let registry = self.registry();
        let table = Watched::new(None);
        let mut tables = table.watcher();
        let (teller, news) = mpsc::channel(MAX_NEWS);
        let wanted = Arc::new(Notify::new());
        let keeper = Keeper {
            registry: Arc::downgrade(registry),
            // Before the first look at the connections: what changes in between must be told.
            events: self.events(),
            names,
            removals: registry.removals.watcher(),
            servers: BTreeMap::new(),
            departed: BTreeMap::new(),
            teller,
            news,
            table,
            wanted: Arc::clone(&wanted),
        };
        let keeper = Arc::new(Task(spawn(&Handle::current(), keeper.keep())));
        // It fails where the host ends meanwhile; the table is empty then.
        let _ = tables.when(Option::is_some).await;
        FreshTools { tables, keeper, wanted }
    }
}

impl FreshTools {
    /// The current table.
    pub fn current(&self) -> Arc<ToolTable> {
        self.tables.current().unwrap_or_default()
    }

    /// Waits for a table that this clone has not seen. The first call waits for the first change after [`Host::watch_tools`].
    /// Of several new tables only the latest may be seen. `None` once the host is closed or dropped, or once the runtime on
    /// which `watch_tools` ran has shut down: then the table no longer changes. Cancel safe.
    pub async fn changed(&mut self) -> Option<Arc<ToolTable>> {
        self.tables.changed().await.flatten()
    }

    /// Reads every list again soon, and subscribes again to servers that no longer report changes ([`ToolTable::unfollowed`]).
    /// Returns at once.
    pub fn refresh(&self) {
        self.wanted.notify_one();
    }
}

impl fmt::Debug for FreshTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.current();
        f.debug_struct("FreshTools")
            .field("tools", &table.len())
            .field("failures", &table.failures().len())
            .field("ended", &self.keeper.0.is_finished())
            .finish()
    }
}

/// Who keeps the table.
struct Keeper {
    registry: Weak<Registry>,
    events: HostEvents,
    removals: Watcher<()>,
    names: ToolNames,
    /// One for each connection whose server has tools.
    servers: BTreeMap<Arc<str>, Followed>,
    /// What servers of the host listed over their last connection, until that of the next one has been read. The tools of a list
    /// have one generation; an empty list is not kept.
    departed: BTreeMap<Arc<str>, Arc<[Arc<NamedTool>]>>,
    /// What each follower gets a clone of; it keeps the channel open.
    teller: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
    /// `None` until every list has been read once.
    table: Watched<Option<Arc<ToolTable>>>,
    wanted: Arc<Notify>,
}

/// The list of one connection.
struct Followed {
    generation: Generation,
    /// Whether the first table waits for its first reading.
    is_awaited: bool,
    known: Known,
    wanted: Arc<Notify>,
    _follower: Task,
}

/// What is known of a list. Nothing at first.
#[derive(Default)]
struct Known {
    tools: Arc<[Arc<NamedTool>]>,
    /// Whether the tools are what the server listed over this connection, be it nothing.
    is_read: bool,
    failure: Option<Error>,
    is_unfollowed: bool,
}

/// What a follower has to tell of its list.
struct News {
    server: Arc<str>,
    generation: Generation,
    known: Known,
}

impl Keeper {
    async fn keep(mut self) {
        self.look(true);
        self.publish();
        loop {
            let is_changed = tokio::select! {
                event = self.events.next() => match event {
                    None => {
                        self.servers.clear();
                        self.departed.clear();
                        return self.publish();
                    }
                    Some(HostEvent::State { .. } | HostEvent::Missed { .. }) => self.look(false),
                    Some(_) => false,
                },
                // Where the host is gone, its events are over too.
                Some(()) = self.removals.changed() => self.look(false),
                Some(news) = self.news.recv() => {
                    self.take(news);
                    // A table for all that is there, and not one for each.
                    while let Ok(news) = self.news.try_recv() {
                        self.take(news);
                    }
                    true
                }
                () = self.wanted.notified() => {
                    for followed in self.servers.values() {
                        followed.wanted.notify_one();
                    }
                    false
                }
            };
            if is_changed {
                self.publish();
            }
        }
    }

    /// Follows the connections that there are now, and no others. Whether that changes the table.
    fn look(&mut self, is_first: bool) -> bool {
        let Some(registry) = self.registry.upgrade() else { return false };
        let (connections, without_tools): (Vec<_>, Vec<_>) = registry
            .connections()
            .into_iter()
            .partition(|source| source.client.server().capabilities.declares(ServerFeature::Tools));
        let mut is_changed = false;
        for (server, followed) in std::mem::take(&mut self.servers) {
            let is_this =
                |source: &Source| source.server == server && source.generation == followed.generation;
            if connections.iter().any(is_this) {
                self.servers.insert(server, followed);
                continue;
            }
            is_changed = true;
            // One that ended before it was read leaves what its server listed before.
            if followed.known.is_read {
                self.departed.insert(server, followed.known.tools);
            }
        }
        let before = self.departed.len();
        let state = registry.lock();
        self.departed.retain(|server, tools| {
            // Not that of a server which was removed, although there may be another one of its name.
            let is_of_host = tools.first().is_some_and(|tool| state.has_server_of(server, tool.generation()));
            is_of_host && without_tools.iter().all(|source| source.server != *server)
        });
        drop(state);
        drop(registry);
        is_changed |= self.departed.len() != before;
        for source in connections {
            if !self.servers.contains_key(&source.server) {
                let server = Arc::clone(&source.server);
                let followed = self.follow(source, is_first);
                self.servers.insert(server, followed);
            }
        }
        is_changed
    }

    fn follow(&self, source: Source, is_awaited: bool) -> Followed {
        let Source { server, generation, client, limit, max_bytes } = source;
        let wanted = Arc::new(Notify::new());
        let follower = Follower {
            server,
            generation,
            names: self.names,
            limit,
            max_bytes,
            teller: self.teller.clone(),
            wanted: Arc::clone(&wanted),
        };
        let task = spawn(&Handle::current(), follower.follow(client));
        Followed { generation, is_awaited, known: Known::default(), wanted, _follower: Task(task) }
    }

    fn take(&mut self, news: News) {
        let followed = self.servers.get_mut(&news.server);
        let Some(followed) = followed.filter(|followed| followed.generation == news.generation) else {
            return;
        };
        followed.is_awaited = false;
        followed.known = news.known;
        if followed.known.is_read {
            self.departed.remove(&news.server);
        }
    }

    fn publish(&self) {
        // The first table is whole; no server that comes later holds it up.
        if self.table.current().is_none() && self.servers.values().any(|followed| followed.is_awaited) {
            return;
        }
        let mut table = ToolTable::default();
        for tools in self.departed.values() {
            table.depart(tools);
        }
        for (server, followed) in &self.servers {
            table.add(&followed.known.tools);
            if let Some(error) = &followed.known.failure {
                table.fail(Arc::clone(server), error.clone());
            }
            if followed.known.is_unfollowed {
                table.unfollow(Arc::clone(server));
            }
        }
        self.table.set(Some(Arc::new(table)));
    }
}

/// Who reads the list of one connection.
struct Follower {
    server: Arc<str>,
    generation: Generation,
    names: ToolNames,
    limit: Duration,
    max_bytes: usize,
    teller: mpsc::Sender<News>,
    wanted: Arc<Notify>,
}

impl Follower {
    /// Until the connection is over: the host says so too, and takes the tools out of the table.
    async fn follow(self, client: Client) {
        let mut tools: Arc<[Arc<NamedTool>]> = Arc::default();
        let mut is_read = false;
        'asked: loop {
            let list = client.list_tools().max_bytes(self.max_bytes).follow(self.limit).await;
            let Ok(mut list) = list else { return };
            let mut reads = 0;
            let mut state = list.current();
            loop {
                // Naming them is the same work again where they are the same tools.
                if state.reads != reads {
                    (reads, is_read) = (state.reads, true);
                    tools =
                        self.names.named(&self.server, self.generation, state.items.iter().cloned()).into();
                }
                let is_unfollowed = !state.followed;
                let failure = state.failure.as_deref().cloned();
                if !failure.as_ref().is_some_and(|error| error.kind() == ErrorKind::Closed) {
                    self.tell(Known { tools: Arc::clone(&tools), is_read, failure, is_unfollowed }).await;
                }
                state = loop {
                    tokio::select! {
                        changed = list.changed() => match changed {
                            Some(state) => break state,
                            None => return,
                        },
                        // From the start, where there is more to ask for than the list.
                        () = self.wanted.notified() => if is_unfollowed { continue 'asked } else { list.refresh() },
                    }
                };
            }
        }
    }

    async fn tell(&self, mut known: Known) {
        known.failure = known.failure.map(|error| error.at_server(&self.server));
        // The keeper ends its followers before itself.
        let _ = self
            .teller
            .send(News { server: Arc::clone(&self.server), generation: self.generation, known })
            .await;
    }
}
