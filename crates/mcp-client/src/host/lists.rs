//! The lists of every connected server, fetched at the same time.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_model::{
    ListPromptsRequestParams, ListResourceTemplatesRequestParams, ListResourcesRequestParams,
    ListToolsRequestParams, Paginated, Prompt, Resource, ResourceTemplate, ServerFeature, Tool, WithMeta,
};
use serde::Serialize;
use tokio::task::JoinSet;

use super::event::Generation;
use super::handle::Host;
use super::registry::{Phase, Registry};
use crate::client::Client;
use crate::error::{Called, Error};
use crate::requests::{List, ListedItem};
use crate::spawning::spawn_in;

/// The list of one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerList<T> {
    /// The name of the server.
    pub server: Arc<str>,
    /// The connection that it came over.
    pub generation: Generation,
    /// Its items, or the error.
    pub items: Result<Vec<T>, Error>,
}

impl Host {
    /// The tools of every connected server that declares tools, all pages, in the order of the servers' names. The servers are
    /// queried concurrently, and one that fails or hangs does not affect the others.
    ///
    /// [`HostLimits`](super::HostLimits) limits each list in time and size. Dropping the future cancels the calls.
    pub async fn list_tools(&self) -> Vec<ServerList<Tool>> {
        self.lists::<ListToolsRequestParams, _>(ServerFeature::Tools, |client| client.list_tools()).await
    }

    /// The prompts, as [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Vec<ServerList<Prompt>> {
        self.lists::<ListPromptsRequestParams, _>(ServerFeature::Prompts, |client| client.list_prompts())
            .await
    }

    /// The resources, as [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Vec<ServerList<Resource>> {
        self.lists::<ListResourcesRequestParams, _>(ServerFeature::Resources, |client| {
            client.list_resources()
        })
        .await
    }

    /// The resource templates, as [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Vec<ServerList<ResourceTemplate>> {
        self.lists::<ListResourceTemplatesRequestParams, _>(ServerFeature::Resources, |client| {
            client.list_resource_templates()
        })
        .await
    }

    async fn lists<R, T>(&self, feature: ServerFeature, list: fn(&Client) -> List<R>) -> Vec<ServerList<T>>
    where
        R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
        R::Result: ListedItem<Item = T> + Send + 'static,
        T: Send + 'static,
    {
        let mut asked = JoinSet::new();
        let lists: Arc<Mutex<Vec<ServerList<T>>>> = Arc::default();
        for Source { server, generation, client, limit, max_bytes } in self.registry().connections() {
            if !client.server().capabilities.declares(feature) {
                continue;
            }
            let list = list(&client).max_bytes(max_bytes);
            let lists = Arc::clone(&lists);
            spawn_in(&mut asked, async move {
                let items = tokio::time::timeout(limit, list.all()).await;
                let items = items.unwrap_or_else(|_| Err(Error::timed_out(limit)));
                let called = Called { method: Cow::Borrowed(R::METHOD), tool: None };
                let items = items.map_err(|error| error.at_server(&server).of(&called));
                let list = ServerList { server, generation, items };
                lists.lock().unwrap_or_else(PoisonError::into_inner).push(list);
            });
        }
        // Dropping the future drops the set, which ends its tasks and cancels their calls.
        while asked.join_next().await.is_some() {}
        let mut lists = std::mem::take(&mut *lists.lock().unwrap_or_else(PoisonError::into_inner));
        lists.sort_by(|a, b| a.server.cmp(&b.server));
        lists
    }
}

/// A connection to list, and what its list may take.
pub(super) struct Source {
    pub(super) server: Arc<str>,
    pub(super) generation: Generation,
    pub(super) client: Client,
    pub(super) limit: Duration,
    pub(super) max_bytes: usize,
}

impl Registry {
    /// The servers that are connected, in the order of their names.
    pub(super) fn connections(&self) -> Vec<Source> {
        let state = self.lock();
        let connected = state.servers.iter().filter_map(|(name, server)| match &server.phase {
            Phase::Connected(connected) => {
                let policy = server.connector.own_policy();
                Some(Source {
                    server: Arc::clone(name),
                    generation: server.generation?,
                    client: connected.client.clone(),
                    limit: policy.list_within(&self.limits),
                    max_bytes: policy.list_up_to(&self.limits),
                })
            }
            _ => None,
        });
        connected.collect()
    }
}
