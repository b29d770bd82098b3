//! Paginated lists (utilities, "Pagination").

use std::collections::HashSet;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use mcp_jsonrpc::{ErrorCode, RawJson};
use mcp_model::{
    List as ModelList, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    Page, Paginated, Prompt, Resource, ResourceTemplate, Tool, WithMeta,
};
use mcp_proto::{Diagnostic, DiagnosticKind, ListKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, Reading, decode};
use crate::client::Client;
use crate::error::Error;
use crate::event::ClientEvent;

/// How many pages are followed at most, unless [`List::max_pages`] says otherwise.
const MAX_PAGES: usize = 1000;

/// How many bytes of pages are followed at most, unless [`List::max_bytes`] says otherwise.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A list of the server that has not been asked for yet.
///
/// Take [`all`](Self::all) of it, or go through its [`pages`](Self::pages). Awaited itself it gives **one page**, the first
/// or the one behind its cursor, which of a server that pages is a part of the list.
#[derive(Clone)]
#[must_use = "a list is asked for when it is awaited"]
pub struct List<R> {
    client: Client,
    first: R,
    timeout: Option<Duration>,
    meta: Option<Map<String, Value>>,
    fresh: bool,
    max_pages: usize,
    max_bytes: usize,
}

impl<R> List<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    pub(crate) fn new(client: &Client, first: R) -> Self {
        Self {
            client: client.clone(),
            first,
            timeout: None,
            meta: None,
            fresh: false,
            max_pages: MAX_PAGES,
            max_bytes: MAX_BYTES,
        }
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Asks the server for each page, even where one is kept that it called fresh; see [`Call::fresh`].
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// How long to wait for each page, instead of the client's `request_timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds members to the `_meta` of the request for each page, as [`Call::meta`] does.
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta.get_or_insert_default().extend(meta);
        self
    }

    /// How many pages to follow at most. Default 1,000. What was read by then is kept, and a diagnostic says so.
    pub fn max_pages(mut self, pages: usize) -> Self {
        self.max_pages = pages;
        self
    }

    /// How many bytes of pages to read at most. Default 64 MiB, four messages of the greatest default size. The page that
    /// exceeds it is kept and is the last, and a diagnostic says so.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The call for one page.
    fn page(&self, params: R) -> Call<R::Result> {
        self.set_up(self.client.request(params))
    }

    /// Sets the call for one page up as the list is.
    fn set_up<T>(&self, mut call: Call<T>) -> Call<T> {
        if let Some(meta) = &self.meta {
            call = call.meta(meta.clone());
        }
        #[cfg(feature = "schema")]
        if self.client.output_checks().is_some() {
            let client = self.client.clone();
            call = call.inspected(move |page| {
                R::Result::arrived(&client, page);
                Ok(())
            });
        }
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        if self.fresh { call.fresh() } else { call }
    }

    /// The pages one by one, each fetched when it is asked for.
    pub fn pages(self) -> Pages<R> {
        Pages { list: self, cursor: Next::First, seen: HashSet::new(), read: 0, bytes: 0 }
    }

    /// The items of all pages.
    ///
    /// A server that no longer knows a cursor of its own is asked for the whole list again, once. One that repeats a cursor,
    /// or goes beyond [`max_pages`](Self::max_pages) or [`max_bytes`](Self::max_bytes), is asked no further: what was read is
    /// returned, and a diagnostic says so. An item that cannot be read is left out and reported as a diagnostic.
    ///
    /// Dropping the future cancels the request for the page that is on its way.
    ///
    /// # Errors
    ///
    /// The error of the first page that fails; the pages before it are given up, because a list with a hole is not
    /// the list.
    pub async fn all(self) -> Result<Vec<<R::Result as ListedItem>::Item>, Error> {
        let mut again = Some(self.clone().fresh());
        let mut pages = self.pages();
        let mut all = Vec::new();
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) => match again.take().filter(|_| pages.has_outlived_its_cursor(&error)) {
                    Some(list) => {
                        (pages, all) = (list.pages(), Vec::new());
                        continue;
                    }
                    None => return Err(error),
                },
            };
            let (items, rejected) = page.into_list().into_parts();
            all.extend(items);
            for item in rejected {
                let at = item.index();
                let what = mcp_transport::Untrusted::new(item.reason(), 200).to_string();
                pages.diagnose(DiagnosticKind::UnreadableItem, format!("{} item {at}: {what}", R::METHOD));
            }
        }
        Ok(all)
    }
}

impl<R> IntoFuture for List<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    type Output = Result<R::Result, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let first = self.first.clone();
            self.page(first).await
        })
    }
}

impl<R> fmt::Debug for List<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("timeout", &self.timeout)
            .field("fresh", &self.fresh)
            .field("max_pages", &self.max_pages)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// The pages of a list.
pub struct Pages<R> {
    list: List<R>,
    cursor: Next,
    /// Cursors followed so far, to notice one that comes again.
    seen: HashSet<String>,
    read: usize,
    bytes: usize,
}

enum Next {
    First,
    Cursor(String),
    Done,
}

impl<R> Pages<R>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    /// The next page; `None` after the last. A page that failed to arrive is asked for again by the next call; one that arrived
    /// and cannot be read is not. Cancel safe: a dropped call is the same as a page that did not arrive.
    ///
    /// # Errors
    ///
    /// Those of a call, [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) where what came is no page.
    pub async fn next(&mut self) -> Result<Option<R::Result>, Error> {
        let Some(raw) = self.next_raw().await? else { return Ok(None) };
        R::Result::read_page(R::METHOD, raw).map(Some)
    }

    /// The next page as raw JSON, with every member the server sent; otherwise as [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn next_raw(&mut self) -> Result<Option<RawJson>, Error> {
        let mut params = self.list.first.clone();
        match &self.cursor {
            Next::Done => return Ok(None),
            Next::First => {}
            Next::Cursor(cursor) => params.set_cursor(Some(cursor.clone())),
        }
        if self.read >= self.list.max_pages {
            let limit = self.list.max_pages;
            self.diagnose(DiagnosticKind::TooManyPages, format!("{} has more than {limit} pages", R::METHOD));
            self.cursor = Next::Done;
            return Ok(None);
        }
        let call = self.list.client.request_as(params, Reading::RAW);
        let raw = self.list.set_up(call).await?;
        self.read += 1;
        self.bytes = self.bytes.saturating_add(raw.as_str().len());
        self.cursor = self.follow(&raw)?;
        Ok(Some(raw))
    }

    /// Whether the server refused a cursor that it gave itself ("Pagination", "Error Handling").
    fn has_outlived_its_cursor(&self, error: &Error) -> bool {
        matches!(self.cursor, Next::Cursor(_))
            && error.error_object().is_some_and(|object| object.code == ErrorCode::INVALID_PARAMS)
    }

    /// Where the page leads. Only an absent or `null` cursor ends a list: the empty string is a cursor like any
    /// other. A cursor that was followed before would lead in circles.
    fn follow(&mut self, raw: &RawJson) -> Result<Next, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cursor {
            next_cursor: Option<String>,
        }
        let page: Cursor = raw.parse().map_err(|source| Error::unreadable_result(R::METHOD, source))?;
        let Some(cursor) = page.next_cursor else { return Ok(Next::Done) };
        let limit = self.list.max_bytes;
        if self.bytes > limit {
            self.diagnose(
                DiagnosticKind::TooManyPages,
                format!("the pages of {} are longer than {limit} bytes", R::METHOD),
            );
            return Ok(Next::Done);
        }
        if !self.seen.insert(cursor.clone()) {
            self.diagnose(
                DiagnosticKind::RepeatedCursor,
                format!("{} gave the same cursor twice", R::METHOD),
            );
            return Ok(Next::Done);
        }
        Ok(Next::Cursor(cursor))
    }

    fn diagnose(&self, kind: DiagnosticKind, message: String) {
        self.list.client.driver().emit(ClientEvent::Diagnostic(Diagnostic::new(kind, message)));
    }
}

impl<R> fmt::Debug for Pages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("read", &self.read).finish_non_exhaustive()
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

    /// Reads a page. The client's own lists do that in this crate, so that it is not compiled again in each that lists.
    ///
    /// # Errors
    ///
    /// Where it is no page.
    #[doc(hidden)]
    fn read_page(method: &str, page: RawJson) -> Result<Self, Error> {
        decode(method, page)
    }

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

    fn read_page(method: &str, page: RawJson) -> Result<Self, Error> {
        decode(method, page)
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

    fn read_page(method: &str, page: RawJson) -> Result<Self, Error> {
        decode(method, page)
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

    fn read_page(method: &str, page: RawJson) -> Result<Self, Error> {
        decode(method, page)
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

    fn read_page(method: &str, page: RawJson) -> Result<Self, Error> {
        decode(method, page)
    }

    fn into_list(self) -> ModelList<Prompt> {
        self.prompts
    }
}
