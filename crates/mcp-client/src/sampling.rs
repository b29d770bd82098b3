//! How the application lends its model to servers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_jsonrpc::{ErrorObject, RawJson, RequestId};

/// Answers `sampling/createMessage`: shows the request to a person, asks the model and brings back what it said.
///
/// Params and result are raw JSON: `CreateMessageRequestParams` and `CreateMessageResult` of [`model`](crate::model) read
/// and write them. A closure `async |params, context| ...` is a handler too. Each request runs on a task of its own; when
/// nobody waits for the answer any more, the future is dropped.
///
/// An `Err` refuses: a legacy server gets the error object (code -1 where the user said no), a call of the modern era ends
/// with it as [`InputRefused`](crate::ErrorKind::InputRefused), and nobody is told.
pub trait SamplingHandler: Send + Sync + 'static {
    /// Answers one request.
    fn create_message(
        &self,
        params: RawJson,
        context: SamplingContext,
    ) -> impl Future<Output = Result<RawJson, ErrorObject>> + Send;
}

impl<F, Fut> SamplingHandler for F
where
    F: Fn(RawJson, SamplingContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawJson, ErrorObject>> + Send,
{
    fn create_message(
        &self,
        params: RawJson,
        context: SamplingContext,
    ) -> impl Future<Output = Result<RawJson, ErrorObject>> + Send {
        self(params, context)
    }
}

/// Who asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SamplingContext {
    /// What the application connected to: the program and its arguments, or the URL.
    pub server: String,
    /// The id the server gave the request, for logs.
    pub request_id: RequestId,
}

/// The handler behind a pointer; the trait itself is not object safe.
pub(crate) trait ErasedSampling: Send + Sync {
    fn create_message(
        &self,
        params: RawJson,
        context: SamplingContext,
    ) -> Pin<Box<dyn Future<Output = Result<RawJson, ErrorObject>> + Send + '_>>;
}

impl<H: SamplingHandler> ErasedSampling for H {
    fn create_message(
        &self,
        params: RawJson,
        context: SamplingContext,
    ) -> Pin<Box<dyn Future<Output = Result<RawJson, ErrorObject>> + Send + '_>> {
        Box::pin(SamplingHandler::create_message(self, params, context))
    }
}

impl fmt::Debug for dyn ErasedSampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SamplingHandler")
    }
}
