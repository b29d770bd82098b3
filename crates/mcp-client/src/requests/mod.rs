//! One call, from the method that names it to the value it brings back.

mod list;
mod methods;
mod suspend;
mod task;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_jsonrpc::RawJson;
use mcp_model::{ProgressNotificationParams, Request, WithMeta};
use mcp_proto::{CacheUse, CallOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::driver::{CallResult, ProgressFn, ReadResult};
use crate::error::{Error, Place};

pub(crate) use task::{Decode, Parts};

pub use list::{List, ListedItem, Pages};
pub use suspend::Outcome;
use suspend::Resumed;

/// Looks at a raw result.
pub(crate) type InspectFn = Box<dyn FnOnce(&RawJson) -> Result<(), Error> + Send>;

/// A call that has not been sent yet. Await it to send it and to get its result.
///
/// Dropping the future before it is done cancels the call: if the request may have left, the server is told with
/// `notifications/cancelled`. What the server did by then stays unknown.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<T> {
    client: Client,
    method: Cow<'static, str>,
    params: Result<Option<RawJson>, Error>,
    pub(crate) options: CallOptions,
    on_progress: Option<ProgressFn>,
    /// Looks at the result before it is read, and may refuse it.
    pub(crate) inspect: Option<InspectFn>,
    /// It was suspended before, and goes on.
    resumed: Option<Box<Resumed>>,
    /// Of which server of a host it is.
    place: Option<Box<Place>>,
    reading: Reading<T>,
}

impl<T> Call<T> {
    /// How long to wait for the answer, instead of the client's `request_timeout`. Progress does not extend it unless
    /// [`reset_on_progress`](Self::reset_on_progress) says so. While people answer what the server asks in the middle of the
    /// call it stands still, up to [`max_total`](Self::max_total); afterwards it goes on where it stood.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self
    }

    /// The hard end of the call, however long people think in the middle of it. Default 30 minutes; a longer
    /// [`timeout`](Self::timeout) wins, but where progress renews that.
    pub fn max_total(mut self, max_total: Duration) -> Self {
        self.options.max_total = max_total;
        self
    }

    /// Lets each progress notification start the timeout anew, up to `max_total` in all. Asks for progress.
    pub fn reset_on_progress(mut self, max_total: Duration) -> Self {
        self.options.reset_on_progress = true;
        self.options.max_total = max_total;
        self.options.progress = true;
        self
    }

    /// Asks for progress and calls `listener` with each, on the task that awaits the call.
    pub fn on_progress(mut self, listener: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.options.progress = true;
        self.on_progress = Some(Box::new(listener));
        self
    }

    /// Asks the server even where a result is kept that it called fresh, and keeps the new one in its place. Only lists and
    /// read resources of the modern era are kept at all, see [`ClientBuilder::cache`](crate::ClientBuilder::cache).
    pub fn fresh(mut self) -> Self {
        self.options.cache = CacheUse::Refresh;
        self
    }

    /// Asks the server in any case, and does not keep the result.
    pub fn uncached(mut self) -> Self {
        self.options.cache = CacheUse::Never;
        self
    }

    /// Names who makes this call, say one turn of an agent: questions that the server asks in the middle of it go to the
    /// handler of this key ([`Desk::route`](crate::Desk::route)), where it can be told that they belong to it.
    pub fn elicitation_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.options.route = Some(key.into());
        self
    }

    /// Does not try the call again where that would be safe; see [`ClientBuilder::retry`](crate::ClientBuilder::retry).
    pub fn no_retry(mut self) -> Self {
        self.options.retry = false;
        self
    }

    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(Box::new(place));
        self
    }

    /// Adds members to the request's `_meta`. Members that the protocol owns are not overwritten.
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.options.meta.get_or_insert_default().extend(meta);
        self
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        let Self { client, method, params, options, on_progress, inspect, resumed, place, reading } = self;
        let name = method.clone();
        let Reading { lent, owned: decode } = reading;
        // Who inspects a result wants it raw.
        let read = lent.filter(|_| inspect.is_none());
        let untyped = Untyped { client, method, params, options, on_progress, inspect, resumed, read };
        CallFuture { result: untyped.start(), method: name, place, decode, value: PhantomData }
    }
}

type CallResultFuture = Pin<Box<dyn Future<Output = Result<CallResult, Error>> + Send>>;

/// A call without the type of its value.
struct Untyped {
    client: Client,
    method: Cow<'static, str>,
    params: Result<Option<RawJson>, Error>,
    options: CallOptions,
    on_progress: Option<ProgressFn>,
    inspect: Option<InspectFn>,
    resumed: Option<Box<Resumed>>,
    read: Option<ReadResult>,
}

impl Untyped {
    /// Not generic, so that everything below is compiled in this crate, once, and not in each crate that makes a call.
    fn start(self) -> CallResultFuture {
        let Self { client, method, params, options, on_progress, inspect, resumed, read } = self;
        Box::pin(async move {
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
        })
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The future of a [`Call`].
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture<T> {
    result: CallResultFuture,
    method: Cow<'static, str>,
    place: Option<Box<Place>>,
    decode: Decode<T>,
    value: PhantomData<fn() -> T>,
}

impl<T: 'static> Future for CallFuture<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.result.as_mut().poll(context).map(|result| match result? {
            CallResult::Raw(raw) => (self.decode)(&self.method, raw),
            CallResult::Read(value) => match value.downcast() {
                Ok(value) => Ok(*value),
                Err(_) => unreachable!("both functions of a `Reading` make the same type"),
            },
        });
        match &self.place {
            Some(place) => polled.map_err(|error: Error| error.at(place)),
            None => polled,
        }
    }
}

impl<T> fmt::Debug for CallFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Client {
    /// Any request that the specification defines, by the type of its params.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// use mcp_client::model::ReadResourceRequestParams;
    /// let read = client.request(ReadResourceRequestParams::new("file:///etc/motd")).await?;
    /// # drop(read); Ok(()) }
    /// ```
    pub fn request<R>(&self, params: R) -> Call<R::Result>
    where
        R: Request + WithMeta + Serialize,
        R::Result: Send + 'static,
    {
        self.request_as(params, Reading::typed())
    }

    fn request_as<R, T>(&self, mut params: R, reading: Reading<T>) -> Call<T>
    where
        R: Request + WithMeta + Serialize,
    {
        let meta = params.meta().map(|meta| serde_json::from_str::<Map<String, Value>>(meta.get()));
        params.set_meta(None);
        let text = RawJson::from_serialize(&params).map(Some);
        let mut call = self.call_with(Cow::Borrowed(R::METHOD), text.map_err(unserializable), reading);
        match meta {
            Some(Ok(meta)) => return call.meta(meta),
            Some(Err(_)) => call.params = Err(Error::misuse_because("_meta must be a JSON object")),
            None => {}
        }
        call
    }

    /// Any request at all, with its result as raw JSON.
    ///
    /// `params` must serialise to a JSON object; its `_meta` member, if any, is kept. `()` and `None` send no params.
    pub fn request_raw(&self, method: impl Into<Cow<'static, str>>, params: impl Serialize) -> Call<RawJson> {
        let (params, meta) = match serde_json::to_value(&params) {
            Ok(Value::Null) => (Ok(None), None),
            Ok(Value::Object(mut object)) => {
                let meta = object.remove("_meta");
                (RawJson::from_serialize(&object).map(Some).map_err(unserializable), meta)
            }
            Ok(_) => (Err(Error::misuse(mcp_proto::Misuse::ParamsNotAnObject)), None),
            Err(_) => (Err(Error::misuse(mcp_proto::Misuse::Unserializable)), None),
        };
        let mut call = self.call_with(method.into(), params, Reading::RAW);
        match meta {
            Some(Value::Object(meta)) => return call.meta(meta),
            Some(_) => call.params = Err(Error::misuse_because("_meta must be a JSON object")),
            None => {}
        }
        call
    }

    fn call_with<T>(
        &self,
        method: Cow<'static, str>,
        params: Result<Option<RawJson>, Error>,
        reading: Reading<T>,
    ) -> Call<T> {
        Call {
            client: self.clone(),
            method,
            params,
            options: self.request_options(),
            on_progress: None,
            inspect: None,
            resumed: None,
            place: None,
            reading,
        }
    }
}

/// How a result becomes what the caller wants.
struct Reading<T> {
    /// Whoever receives the result reads it at once, out of the received text. If there is no such function, or it gives
    /// nothing, the other one reads the result raw, in the task of the caller.
    lent: Option<ReadResult>,
    owned: Decode<T>,
}

impl<T: DeserializeOwned + Send + 'static> Reading<T> {
    fn typed() -> Self {
        Self { lent: Some(read::<T>), owned: decode }
    }
}

impl Reading<RawJson> {
    const RAW: Self = Self { lent: None, owned: valid };
}

/// Exactly when [`decode`] succeeds.
fn read<T: DeserializeOwned + Send + 'static>(text: &str) -> Option<Box<dyn Any + Send>> {
    let value: T = if text.starts_with('{') { serde_json::from_str(text).ok()? } else { return None };
    Some(Box::new(value))
}

fn decode<T: DeserializeOwned>(method: &str, raw: RawJson) -> Result<T, Error> {
    // A derived reader would also take an array, member by member.
    let object =
        if raw.as_str().starts_with('{') { Ok(()) } else { raw.parse::<Map<String, Value>>().map(drop) };
    object.and_then(|()| raw.parse()).map_err(|source| Error::unreadable_result(method, source))
}

/// The decoder of envelopes has only bracketed a result; what is handed on must be JSON throughout.
fn valid(method: &str, raw: RawJson) -> Result<RawJson, Error> {
    match raw.as_raw_ref().validate() {
        Ok(()) => Ok(raw),
        Err(source) => Err(Error::unreadable_result(method, source)),
    }
}

fn unserializable(_: mcp_jsonrpc::ParseError) -> Error {
    Error::misuse(mcp_proto::Misuse::Unserializable)
}
