//! Sampling handlers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_jsonrpc::{ErrorObject, RawJson, RequestId};

use crate::driver::spans::label;

/// Answers `sampling/createMessage`: shows the request to the user, asks the model and returns its answer.
///
/// Params and result are raw JSON: `CreateMessageRequestParams` and `CreateMessageResult` of [`model`](crate::model) read and
/// write them. A closure `async |params, context| ...` is a handler too. Each request runs on a task of its own; the future is
/// dropped when the answer is no longer needed.
///
/// Tools and tool messages only occur if [`ClientBuilder::sampling_with_tools`](crate::ClientBuilder::sampling_with_tools)
/// declared them; they have been checked then. The answer is converted to the protocol revision: before 2025-11-25 a list with
/// one block becomes that block. An answer that the revision cannot express, or that uses tools that were not offered, is
/// replaced by a refusal.
///
/// An `Err` refuses: a legacy server gets the error object (use code -1 if the user declined); a call of the modern era fails
/// with it as [`InputRefused`](crate::ErrorKind::InputRefused), and the server is not informed.
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

/// The context of a request.
#[derive(Clone)]
#[non_exhaustive]
pub struct SamplingContext {
    /// The name that the application gave the server, or what it connected to: the program and its arguments, or the URL without its
    /// query. Not what the server calls itself, which proves nothing.
    pub server: String,
    /// The JSON-RPC id of the request, for logs.
    pub request_id: RequestId,
    /// `maxTokens` of the params: the most tokens that the model may generate. An answer that is longer than any tokenizer
    /// could make of that many tokens is not sent. `None` if the server gave none.
    pub max_tokens: Option<u64>,
}

impl SamplingContext {
    pub(crate) fn new(server: String, request_id: RequestId, params: &RawJson) -> Self {
        Self { server, request_id, max_tokens: mcp_proto::max_tokens(params) }
    }
}

/// Shows only the host or the program of the server.
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
