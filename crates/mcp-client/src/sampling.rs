//! How the application lends its model to servers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_jsonrpc::{ErrorObject, RawJson, RequestId};

use crate::driver::spans::label;

/// Answers `sampling/createMessage`: shows the request to a person, asks the model and brings back what it said.
///
/// Params and result are raw JSON: `CreateMessageRequestParams` and `CreateMessageResult` of [`model`](crate::model) read
/// and write them. A closure `async |params, context| ...` is a handler too. Each request runs on a task of its own; when
/// nobody waits for the answer any more, the future is dropped.
///
/// Tools and tool messages only come where [`ClientBuilder::sampling_with_tools`](crate::ClientBuilder::sampling_with_tools)
/// declared them, and then keep the rules for them. The answer is written as the revision has it: a list of blocks becomes
/// its one block before 2025-11-25, and what cannot be said there, or uses tools that were not offered, is not sent.
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
#[derive(Clone)]
#[non_exhaustive]
pub struct SamplingContext {
    /// What the application connected to: the program and its arguments, or the URL.
    pub server: String,
    /// The id the server gave the request, for logs.
    pub request_id: RequestId,
    /// The most tokens to sample, `maxTokens` of the params: the model must keep to it. An answer that is longer than any
    /// tokenizer could make of so many is not sent. `None` where the server gave none.
    pub max_tokens: Option<u64>,
}

impl SamplingContext {
    pub(crate) fn new(server: String, request_id: RequestId, params: &RawJson) -> Self {
        Self { server, request_id, max_tokens: mcp_proto::max_tokens(params) }
    }
}

/// Shows of the server its host or its program alone.
impl fmt::Debug for SamplingContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplingContext")
            .field("server", &label(&self.server))
            .field("request_id", &self.request_id)
            .field("max_tokens", &self.max_tokens)
            .finish()
    }
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
