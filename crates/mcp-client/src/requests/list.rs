//! Paginated lists (utilities, "Pagination").

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use mcp_jsonrpc::RawJson;
use mcp_model::{
    List as ModelList, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    Page, Paginated, Prompt, Resource, ResourceTemplate, Tool, WithMeta,
};
use mcp_proto::ListKind;
use serde::Serialize;
use serde_json::{Map, Value};

use super::walk::{Asking, Step, Walk};
use super::{Written, decode_by};
use crate::client::Client;
use crate::error::Error;

/// A list of the server that has not been requested yet.
///
/// Get all items with [`all`](Self::all), iterate over its [`pages`](Self::pages), or request one [`page`](Self::page).
#[derive(Clone)]
#[must_use = "a list is asked for by `all`, `pages` or `page`"]
pub struct List<R> {
    client: Client,
    first: R,
    asking: Asking,
}

impl<R> List<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    pub(crate) fn new(client: &Client, first: R) -> Self {
        Self { client: client.clone(), first, asking: Asking::new(R::Result::arrived) }
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Bypasses the cache for each page; see [`Call::fresh`](crate::Call::fresh).
    pub fn fresh(mut self) -> Self {
        self.asking.fresh = true;
        self
    }

    /// The timeout for each page, in place of the client's `request_timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.asking.timeout = Some(timeout);
        self
    }

    /// Adds members to the `_meta` of the request for each page, as [`Call::meta`](crate::Call::meta) does.
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.asking.meta.get_or_insert_default().extend(meta);
        self
    }

    /// The maximum number of pages. Default 1,000. At the limit what was read is returned, with a diagnostic.
    pub fn max_pages(mut self, pages: usize) -> Self {
        self.asking.max_pages = pages;
        self
    }

    /// The maximum number of bytes of all pages. Default 64 MiB, four messages of the default maximum size. The page that
    /// exceeds it is kept and is the last, with a diagnostic.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.asking.max_bytes = bytes;
        self
    }

    /// The pages one by one, each requested on demand.
    pub fn pages(self) -> Pages<R> {
        let Self { client, first, asking } = self;
        let params = move |cursor: Option<&str>| {
            let mut params = first.clone();
            if let Some(cursor) = cursor {
                params.set_cursor(Some(cursor.to_owned()));
            }
            Written::of(&mut params)
        };
        Pages { walk: Walk::new(client, R::METHOD, Box::new(params), asking), page: PhantomData }
    }

    /// One page as the server sent it: the first, or the one of the cursor in the request. `next_cursor` says whether there
    /// are more.
    ///
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) if the result is not a page.
    pub async fn page(self) -> Result<R::Result, Error> {
        let Self { client, first, asking } = self;
        let mut call = client.request(first);
        asking.set_up(&mut call.untyped);
        call.await
    }

    /// The items of all pages.
    ///
    /// If the server no longer knows its own cursor, the whole list is requested again, once. If it repeats a cursor, or
    /// exceeds [`max_pages`](Self::max_pages) or [`max_bytes`](Self::max_bytes), the list ends there, with a diagnostic. An
    /// item that cannot be read is left out and reported as a diagnostic.
    ///
    /// Dropping the future cancels the current request.
    ///
    /// # Errors
    ///
    /// The error of the first page that fails; the pages before it are discarded, because an incomplete list is not the list.
    pub async fn all(self) -> Result<Vec<<R::Result as ListedItem>::Item>, Error> {
        let mut all = Vec::new();
        let mut pages = self.pages();
        loop {
            match pages.walk.step().await? {
                Step::Page(raw) => {
                    let page = pages.take_in(raw)?;
                    let (items, rejected) = page.into_list().into_parts();
                    all.extend(items);
                    pages.walk.report(&rejected);
                }
                Step::Restart => all.clear(),
                Step::End => return Ok(all),
            }
        }
    }
}

impl<R> fmt::Debug for List<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("timeout", &self.asking.timeout)
            .field("fresh", &self.asking.fresh)
            .field("max_pages", &self.asking.max_pages)
            .field("max_bytes", &self.asking.max_bytes)
            .finish_non_exhaustive()
    }
}

/// The pages of a list.
pub struct Pages<R> {
    walk: Walk,
    page: PhantomData<fn() -> R>,
}

impl<R> Pages<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    /// The next page; `None` after the last. A page that failed to arrive is requested again by the next call; one that
    /// arrived and cannot be read is not. Cancel safe: a dropped call counts as a page that did not arrive.
    ///
    /// # Errors
    ///
    /// Those of a call, and [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) if the result is not a page.
    pub async fn next(&mut self) -> Result<Option<R::Result>, Error> {
        let Some(raw) = self.walk.arrival().await? else { return Ok(None) };
        self.take_in(raw).map(Some)
    }

    /// The next page as raw JSON, with every member the server sent; otherwise as [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Result<Option<RawJson>, Error> {
        let Some(raw) = self.walk.arrival().await? else { return Ok(None) };
        self.walk.take_raw(raw).map(Some)
    }

    /// Reads a page that arrived. Once, where it can be read: its cursor is among what is read.
    fn take_in(&mut self, raw: RawJson) -> Result<R::Result, Error> {
        match decode_by(R::METHOD, &raw, R::read_result) {
            Ok(page) => {
                self.walk.read_up_to(raw.as_str().len(), page.next_cursor());
                Ok(page)
            }
            Err(error) => {
                self.walk.take_raw(raw)?;
                Err(self.walk.here(error))
            }
        }
    }
}

impl<R> fmt::Debug for Pages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("read", &self.walk.read).finish_non_exhaustive()
    }
}

/// A result that is a page of a list.
pub trait ListedItem: Page + serde::de::DeserializeOwned {
    /// What the list is a list of.
    type Item;

    /// Whose notices of changes are about it.
    fn kind() -> ListKind;

    /// Looks at a page that arrived, before it is read. For the client's own lists.
    #[doc(hidden)]
    fn arrived(_: &Client, _: &RawJson) {}

    /// The items of this page, and a report of those that could not be read.
    fn into_list(self) -> ModelList<Self::Item>;
}

impl ListedItem for ListToolsResult {
    type Item = Tool;

    fn kind() -> ListKind {
        ListKind::Tools
    }

    #[cfg(feature = "schema")]
    fn arrived(client: &Client, page: &RawJson) {
        if let (Some(checks), Ok(page)) = (client.output_checks(), page.parse::<Self>()) {
            checks.learn(&page.tools);
        }
    }

    fn into_list(self) -> ModelList<Tool> {
        self.tools
    }
}

impl ListedItem for ListResourcesResult {
    type Item = Resource;

    fn kind() -> ListKind {
        ListKind::Resources
    }

    fn into_list(self) -> ModelList<Resource> {
        self.resources
    }
}

impl ListedItem for ListResourceTemplatesResult {
    type Item = ResourceTemplate;

    fn kind() -> ListKind {
        ListKind::Resources
    }

    fn into_list(self) -> ModelList<ResourceTemplate> {
        self.resource_templates
    }
}

impl ListedItem for ListPromptsResult {
    type Item = Prompt;

    fn kind() -> ListKind {
        ListKind::Prompts
    }

    fn into_list(self) -> ModelList<Prompt> {
        self.prompts
    }
}
