//! Calls: the builder of a request and its future.

mod list;
mod methods;
mod suspend;
mod task;
mod walk;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_jsonrpc::{ParseError, RawJson, RawRef};
use mcp_model::{ProgressNotificationParams, Request, WithMeta};
use mcp_proto::{CacheUse, CallOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::driver::{CallResult, ProgressFn, ReadResult};
use crate::error::{Called, Error, ServerLabel};

pub(crate) use task::{Decode, Parts};

pub use list::{List, ListedItem, Pages};
pub use suspend::Outcome;
use suspend::Resumed;

/// Looks at a raw result.
pub(crate) type InspectFn = Box<dyn FnOnce(&RawJson) -> Result<(), Error> + Send>;

/// A call that has not been sent yet. Await it to send it and to get its result.
///
/// Dropping the future before it is done cancels the call: if the request may have been sent, the server gets
/// `notifications/cancelled` (in the modern era over HTTP, the response stream is closed instead). What the server did until
/// then is unknown.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<T> {
    pub(crate) untyped: Untyped,
    reading: Reading<T>,
}

/// A call without the type of its value. What does not need the type is done with this, so that it is compiled in this crate,
/// once, and not in each crate that makes a call.
pub(crate) struct Untyped {
    client: Client,
    called: Called,
    params: Result<Option<RawJson>, Error>,
    pub(crate) options: CallOptions,
    on_progress: Option<ProgressFn>,
    /// Looks at the result before it is read, and may refuse it.
    pub(crate) inspect: Option<InspectFn>,
    /// It was suspended before, and goes on.
    resumed: Option<Box<Resumed>>,
}

impl<T> Call<T> {
    /// How long to wait for the answer, in place of the client's `request_timeout`. Progress does not extend it unless
    /// [`reset_on_progress`](Self::reset_on_progress) is set. The time is paused while the user answers what the server asks
    /// in the middle of the call; then it continues, or starts anew if the answers go out in a new request (2026-07-28).
    /// [`max_total`](Self::max_total) is not paused.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.untyped.options.timeout = timeout;
        self
    }

    /// The time limit of the call with everything in it, whatever its [`timeout`](Self::timeout), progress, and the time the
    /// user takes for answers. Default: that of the client ([`ClientBuilder::max_total`](crate::ClientBuilder::max_total)), or
    /// else 30 minutes, or the timeout if that is longer. If set several times, here or with
    /// [`reset_on_progress`](Self::reset_on_progress), the shortest counts.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        let options = &mut self.untyped.options;
        options.max_total = Some(options.max_total.map_or(max_total, |said| said.min(max_total)));
        self
    }

    /// Restarts the timeout with each progress notification, up to [`max_total`](Self::max_total). Requests progress.
    pub fn reset_on_progress(mut self, max_total: Duration) -> Self {
        self.untyped.options.reset_on_progress = true;
        self.untyped.options.progress = true;
        self.max_total(max_total)
    }

    /// Requests progress and calls `listener` with each notification, on the task that awaits the call.
    pub fn on_progress(mut self, listener: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.untyped.options.progress = true;
        self.untyped.on_progress = Some(Box::new(listener));
        self
    }

    /// Bypasses the cache, and stores the new result in it. Only lists and resources of the modern era are cached at all, see
    /// [`ClientBuilder::cache`](crate::ClientBuilder::cache).
    pub fn fresh(mut self) -> Self {
        self.untyped.options.cache = CacheUse::Refresh;
        self
    }

    /// Bypasses the cache, and does not store the result in it.
    pub fn uncached(mut self) -> Self {
        self.untyped.options.cache = CacheUse::Never;
        self
    }

    /// A key for the originator of this call, one turn of an agent, say: elicitations in the middle of it go to the handler of
    /// this key ([`Desk::route`](crate::Desk::route)), if it can be determined that they belong to this call.
    pub fn elicitation_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.untyped.options.route = Some(key.into());
        self
    }

    /// Disables retries for this call; see [`ClientBuilder::retry`](crate::ClientBuilder::retry).
    pub fn no_retry(mut self) -> Self {
        self.untyped.options.retry = false;
        self
    }

    /// Adds members to the `_meta` of the request. Members that the protocol defines are not overwritten.
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.untyped.add_meta(meta);
        self
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        let Reading { lent, owned: decode } = self.reading;
        CallFuture { sent: self.untyped.start(lent), decode, value: PhantomData }
    }
}

type CallResultFuture = Pin<Box<dyn Future<Output = Result<CallResult, Error>> + Send>>;

/// A call on its way, without the type of its value.
struct Sent {
    result: CallResultFuture,
    called: Called,
    server: Option<ServerLabel>,
}

impl Untyped {
    fn new(client: &Client, method: Cow<'static, str>, params: Result<Option<RawJson>, Error>) -> Self {
        Self {
            client: client.clone(),
            called: Called { method, tool: None },
            params,
            options: client.request_options(),
            on_progress: None,
            inspect: None,
            resumed: None,
        }
    }

    /// With params that were written without their `_meta`.
    fn written(client: &Client, method: Cow<'static, str>, params: Written) -> Self {
        let Written { params, meta } = params;
        let mut call = Self::new(client, method, params);
        match meta {
            Some(Ok(meta)) => call.add_meta(meta),
            Some(Err(error)) => call.params = Err(error),
            None => {}
        }
        call
    }

    fn add_meta(&mut self, meta: Map<String, Value>) {
        self.options.meta.get_or_insert_default().extend(meta);
    }

    /// The tool that it calls, where it calls one.
    pub(crate) fn tool_name(&self) -> Option<Arc<str>> {
        if self.called.tool.is_some() || self.called.method != mcp_model::methods::TOOLS_CALL {
            return self.called.tool.clone();
        }
        let params = match (&self.resumed, &self.params) {
            (Some(resumed), _) => resumed.call.params.as_ref(),
            (None, params) => params.as_ref().ok()?.as_ref(),
        };
        let [name] = params?.as_raw_ref().members(["name"]).ok()?;
        name?.parse::<String>().ok().map(Arc::from)
    }

    fn start(self, lent: Option<ReadResult>) -> Sent {
        let Self { client, called, params, mut options, on_progress, inspect, resumed } = self;
        client.end_by_default(&mut options);
        let method = called.method.clone();
        let server = client.driver().identity().server().cloned();
        // Who inspects a result wants it raw.
        let read = lent.filter(|_| inspect.is_none());
        let result = Box::pin(async move {
            // Opened here, so that what it takes is not carried along while it is driven.
            let driver = client.driver();
            let begun = match resumed {
                Some(resumed) => {
                    params?;
                    let Resumed { call, answers } = *resumed;
                    driver.begin_again(&call, answers, &options, read)?
                }
                None => driver.begin(&method, params?.as_ref(), &options, read)?,
            };
            let result = driver.finish(begun, on_progress).await;
            // The client lives as long as its calls: dropping the last handle would end the connection under them.
            drop(client);
            match (inspect, result?) {
                (Some(inspect), CallResult::Raw(raw)) => inspect(&raw).map(|()| CallResult::Raw(raw)),
                (_, result) => Ok(result),
            }
        });
        Sent { result, called, server }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.untyped.called.method)
            .field("options", &self.untyped.options)
            .finish_non_exhaustive()
    }
}

/// The future of a [`Call`].
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture<T> {
    sent: Sent,
    decode: Decode<T>,
    value: PhantomData<fn() -> T>,
}

impl<T: 'static> Future for CallFuture<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match ready!(self.sent.result.as_mut().poll(context)) {
            Ok(CallResult::Raw(raw)) => (self.decode)(&self.sent.called.method, raw),
            Ok(CallResult::Read(value)) => match value.downcast() {
                Ok(value) => Ok(*value),
                Err(_) => unreachable!("both functions of a `Reading` make the same type"),
            },
            Err(error) => Err(error),
        };
        let Sent { called, server, .. } = &self.sent;
        Poll::Ready(result.map_err(|error| error.at(server.as_ref()).of(called)))
    }
}

impl<T> fmt::Debug for CallFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").field("method", &self.sent.called.method).finish_non_exhaustive()
    }
}

impl Client {
    /// Sends any request that the specification defines, by the type of its params.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// use mcp_client::model::ReadResourceRequestParams;
    /// let read = client.request(ReadResourceRequestParams::new("file:///etc/motd")).await?;
    /// # drop(read); Ok(()) }
    /// ```
    pub fn request<R>(&self, mut params: R) -> Call<R::Result>
    where
        R: Request + WithMeta + Serialize,
        R::Result: Send + 'static,
    {
        self.request_of(&mut params)
    }

    /// Takes the `_meta` out of the params, and leaves the rest.
    fn request_of<R>(&self, params: &mut R) -> Call<R::Result>
    where
        R: Request + WithMeta + Serialize,
        R::Result: Send + 'static,
    {
        let untyped = Untyped::written(self, Cow::Borrowed(R::METHOD), Written::of(params));
        Call { untyped, reading: Reading::of_request::<R>() }
    }

    /// Sends any request, and returns its result as raw JSON.
    ///
    /// `params` must serialise to a JSON object; its `_meta` member, if any, is kept. `()` and `None` send no params.
    pub fn request_raw(&self, method: impl Into<Cow<'static, str>>, params: impl Serialize) -> Call<RawJson> {
        let params = Written::of_text(serde_json::value::to_raw_value(&params));
        Call { untyped: Untyped::written(self, method.into(), params), reading: Reading::RAW }
    }
}

/// The params of a request as JSON, and their `_meta` apart.
struct Written {
    params: Result<Option<RawJson>, Error>,
    meta: Option<Result<Map<String, Value>, Error>>,
}

impl Written {
    fn of<R: Request + WithMeta + Serialize>(params: &mut R) -> Self {
        let meta = params.meta().map(read_meta);
        params.set_meta(None);
        Self { params: written(params.write_params()), meta }
    }

    fn of_text(params: serde_json::Result<Box<RawValue>>) -> Self {
        let text = match written(params) {
            Ok(Some(text)) if text.as_str().starts_with('{') => text,
            Ok(Some(text)) if text.as_str() == "null" => return Self { params: Ok(None), meta: None },
            Ok(_) => {
                let params = Err(Error::misuse(mcp_proto::Misuse::ParamsNotAnObject));
                return Self { params, meta: None };
            }
            params => return Self { params, meta: None },
        };
        let object = text.as_raw_ref();
        if !object.has_member("_meta").is_ok_and(|has| has) {
            return Self { params: Ok(Some(text)), meta: None };
        }
        // One that is `null` is taken for absent here, and is no object in any case.
        let meta = object.members(["_meta"]).ok().and_then(|[meta]| meta?.as_str().parse().ok());
        let params = object.with_members(&[("_meta", None)]).map(Some).map_err(|_| unserializable());
        Self { params, meta: Some(meta.ok_or_else(no_meta)) }
    }
}

fn written(text: serde_json::Result<Box<RawValue>>) -> Result<Option<RawJson>, Error> {
    text.map(|text| Some(RawJson::from(text))).map_err(|_| unserializable())
}

fn read_meta(meta: &RawValue) -> Result<Map<String, Value>, Error> {
    meta.get().parse().map_err(|_| no_meta())
}

fn unserializable() -> Error {
    Error::misuse(mcp_proto::Misuse::Unserializable)
}

fn no_meta() -> Error {
    Error::misuse_because("_meta must be a JSON object")
}

/// How a result becomes what the caller wants.
struct Reading<T> {
    /// Whoever receives the result reads it at once, out of the received text. If there is no such function, or it gives
    /// nothing, the other one reads the result raw, in the task of the caller.
    lent: Option<ReadResult>,
    owned: Decode<T>,
}

impl<T: Send + 'static> Reading<T> {
    fn of_request<R: Request<Result = T>>() -> Self {
        Self { lent: Some(|text| lent(text, R::read_result)), owned: decode::<R> }
    }

    /// As a type that says itself how it is read.
    fn typed() -> Self
    where
        T: DeserializeOwned,
    {
        Self {
            lent: Some(|text| lent::<T>(text, |text| serde_json::from_str(text))),
            owned: |method, raw| decode_by(method, &raw, |text| serde_json::from_str(text)),
        }
    }
}

impl Reading<RawJson> {
    const RAW: Self = Self { lent: None, owned: valid };

    /// Only bracketed: for what is read as a type before anybody else sees it.
    const UNREAD: Self = Self { lent: None, owned: |_, raw| Ok(raw) };
}

/// Reads JSON text as a type.
type Read<T> = fn(&str) -> serde_json::Result<T>;

/// Exactly when [`decode_by`] succeeds.
fn lent<T: Send + 'static>(text: &str, read: Read<T>) -> Option<Box<dyn Any + Send>> {
    if !text.starts_with('{') {
        return None;
    }
    Some(Box::new(read(text).ok()?))
}

/// Reads the result of a request of this type.
fn decode<R: Request>(method: &str, raw: RawJson) -> Result<R::Result, Error> {
    decode_by(method, &raw, R::read_result)
}

fn decode_by<T>(method: &str, raw: &RawJson, read: Read<T>) -> Result<T, Error> {
    object(raw)
        .and_then(|raw| raw.parse_with(read))
        .map_err(|source| Error::unreadable_result(method, source))
}

/// A derived reader would also take an array, member by member.
fn object(raw: &RawJson) -> Result<RawRef<'_>, ParseError> {
    let text = raw.as_raw_ref();
    if raw.as_str().starts_with('{') { Ok(text) } else { text.members([]).map(|[]| text) }
}

/// The decoder of envelopes has only bracketed a result; what is handed on must be JSON throughout.
fn valid(method: &str, raw: RawJson) -> Result<RawJson, Error> {
    match raw.as_raw_ref().validate() {
        Ok(()) => Ok(raw),
        Err(source) => Err(Error::unreadable_result(method, source)),
    }
}
