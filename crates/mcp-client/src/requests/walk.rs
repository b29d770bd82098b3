//! The way through the pages of a list, whatever it is a list of. Nothing here is generic, so that it is compiled in this
//! crate, once, and not in each crate that lists.

use std::borrow::Cow;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use mcp_jsonrpc::{ErrorCode, RawJson, RawRef};
use mcp_model::RejectedItem;
use mcp_proto::{CacheUse, Diagnostic, DiagnosticKind};
use serde_json::{Map, Value};

use super::{Call, Reading, Untyped, Written, valid};
use crate::client::Client;
use crate::error::{Called, Error};

/// How many pages are followed at most, unless [`List::max_pages`](super::List::max_pages) says otherwise.
const MAX_PAGES: usize = 1000;

/// How many bytes of pages are followed at most, unless [`List::max_bytes`](super::List::max_bytes) says otherwise.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// How each page is asked for, and how many are.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) timeout: Option<Duration>,
    pub(super) meta: Option<Map<String, Value>>,
    pub(super) fresh: bool,
    pub(super) max_pages: usize,
    pub(super) max_bytes: usize,
    /// Looks at a page that arrived.
    #[cfg_attr(
        not(feature = "schema"),
        expect(dead_code, reason = "only checks of schemas learn from pages")
    )]
    arrived: fn(&Client, &RawJson),
}

impl Asking {
    pub(super) const fn new(arrived: fn(&Client, &RawJson)) -> Self {
        Self { timeout: None, meta: None, fresh: false, max_pages: MAX_PAGES, max_bytes: MAX_BYTES, arrived }
    }

    /// Sets the call for one page up.
    pub(super) fn set_up(&self, call: &mut Untyped) {
        if let Some(meta) = &self.meta {
            call.add_meta(meta.clone());
        }
        #[cfg(feature = "schema")]
        if call.client.output_checks().is_some() {
            let (client, arrived) = (call.client.clone(), self.arrived);
            call.inspect = Some(Box::new(move |page| {
                arrived(&client, page);
                Ok(())
            }));
        }
        if let Some(timeout) = self.timeout {
            call.options.timeout = timeout;
        }
        if self.fresh {
            call.options.cache = CacheUse::Refresh;
        }
    }
}

/// Writes the params for the page behind a cursor.
type WritePage = Box<dyn Fn(Option<&str>) -> Written + Send + Sync>;

/// How far one has come.
pub(super) struct Walk {
    client: Client,
    method: &'static str,
    params: WritePage,
    asking: Asking,
    cursor: Next,
    /// Cursors followed so far, to notice one that comes again.
    seen: HashSet<String>,
    pub(super) read: usize,
    bytes: usize,
    restarted: bool,
}

/// What the next page of a list comes to.
pub(super) enum Step {
    /// A page, to be taken in.
    Page(RawJson),
    /// The list begins anew: the pages so far are void.
    Restart,
    /// There is none.
    End,
}

enum Next {
    First,
    Cursor(String),
    Done,
}

impl Walk {
    pub(super) fn new(client: Client, method: &'static str, params: WritePage, asking: Asking) -> Self {
        Self {
            client,
            method,
            params,
            asking,
            cursor: Next::First,
            seen: HashSet::new(),
            read: 0,
            bytes: 0,
            restarted: false,
        }
    }

    /// Goes on to the next page; from a cursor that the server no longer knows, though it is its own, back to the first
    /// page, once.
    pub(super) fn step(&mut self) -> Pin<Box<dyn Future<Output = Result<Step, Error>> + Send + '_>> {
        Box::pin(async {
            match self.arrival().await {
                Ok(Some(page)) => Ok(Step::Page(page)),
                Ok(None) => Ok(Step::End),
                Err(error) if !self.restarted && self.has_outlived_its_cursor(&error) => {
                    self.restart();
                    Ok(Step::Restart)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// The error of a page that came, and that it is that of this list. Nobody asks whether a list was carried out.
    pub(super) fn here(&self, error: Error) -> Error {
        let called = Called { method: Cow::Borrowed(self.method), tool: None };
        self.client.driver().here(error).of(&called).or_outcome_known(true)
    }

    /// Tells of items that could not be read.
    pub(super) fn report(&self, rejected: &[RejectedItem]) {
        for item in rejected {
            let at = item.index();
            let what = mcp_transport::Untrusted::new(item.reason(), 200).to_string();
            self.diagnose(DiagnosticKind::UnreadableItem, format!("{} item {at}: {what}", self.method));
        }
    }

    /// The next page, as it came. It is asked for again until it is taken in, read ([`read_up_to`](Self::read_up_to)) or raw
    /// ([`take_raw`](Self::take_raw)): nobody has looked whether it is JSON.
    pub(super) async fn arrival(&mut self) -> Result<Option<RawJson>, Error> {
        let cursor = match &self.cursor {
            Next::Done => return Ok(None),
            Next::First => None,
            Next::Cursor(cursor) => Some(cursor.as_str()),
        };
        let limit = self.asking.max_pages;
        if self.read >= limit {
            self.diagnose(
                DiagnosticKind::TooManyPages,
                format!("{} has more than {limit} pages", self.method),
            );
            self.cursor = Next::Done;
            return Ok(None);
        }
        let params = (self.params)(cursor);
        let mut untyped = Untyped::written(&self.client, Cow::Borrowed(self.method), params);
        self.asking.set_up(&mut untyped);
        Call { untyped, reading: Reading::UNREAD }.await.map(Some)
    }

    /// The page that arrived was read: it has so many bytes and leads to `next`.
    pub(super) fn read_up_to(&mut self, bytes: usize, next: Option<&str>) {
        self.read += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.cursor = self.follow(next);
    }

    /// The page that arrived is handed on raw, or could not be read: finds out where it leads by itself. Where it is no JSON it has not
    /// arrived.
    pub(super) fn take_raw(&mut self, raw: RawJson) -> Result<RawJson, Error> {
        let raw = valid(self.method, raw).map_err(|error| self.here(error))?;
        let cursor = raw.as_raw_ref().members(["nextCursor"]);
        match cursor.and_then(|[cursor]| cursor.map(RawRef::string).transpose()) {
            Ok(next) => self.read_up_to(raw.as_str().len(), next.as_deref()),
            Err(source) => {
                self.read += 1;
                self.bytes = self.bytes.saturating_add(raw.as_str().len());
                return Err(self.here(Error::unreadable_result(self.method, source)));
            }
        }
        Ok(raw)
    }

    /// Goes back to the first page, and asks the server for each.
    fn restart(&mut self) {
        self.restarted = true;
        self.asking.fresh = true;
        self.cursor = Next::First;
        self.seen.clear();
        (self.read, self.bytes) = (0, 0);
    }

    /// Whether the server refused a cursor that it gave itself ("Pagination", "Error Handling").
    fn has_outlived_its_cursor(&self, error: &Error) -> bool {
        matches!(self.cursor, Next::Cursor(_))
            && error.error_object().is_some_and(|object| object.code == ErrorCode::INVALID_PARAMS)
    }

    /// Where the page leads. Only an absent or `null` cursor ends a list: the empty string is a cursor like any
    /// other. A cursor that was followed before would lead in circles.
    fn follow(&mut self, cursor: Option<&str>) -> Next {
        let Some(cursor) = cursor else { return Next::Done };
        let limit = self.asking.max_bytes;
        if self.bytes > limit {
            self.diagnose(
                DiagnosticKind::TooManyPages,
                format!("the pages of {} are longer than {limit} bytes", self.method),
            );
            return Next::Done;
        }
        if !self.seen.insert(cursor.to_owned()) {
            self.diagnose(
                DiagnosticKind::RepeatedCursor,
                format!("{} gave the same cursor twice", self.method),
            );
            return Next::Done;
        }
        Next::Cursor(cursor.to_owned())
    }

    fn diagnose(&self, kind: DiagnosticKind, message: String) {
        let diagnostic = Diagnostic::new(kind, message);
        self.client.driver().with(|core, _| core.report(diagnostic));
    }
}
