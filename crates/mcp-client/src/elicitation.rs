//! How the application answers the questions of servers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_elicitation::{ElicitRequest, ElicitResult};
use mcp_jsonrpc::RequestId;

/// Answers elicitations: shows the question to a person and brings back what they chose.
///
/// A closure that gives a future is a handler too. What it captures it lends to each question by a clone:
///
/// ```
/// # use mcp_client::{Client, ElicitRequest, ElicitResult, ElicitationContext};
/// # let (dialogs, _dialogs) = std::sync::mpsc::channel::<String>();
/// let builder = Client::builder("my-app", "1.0").on_elicitation(
///     move |question: ElicitRequest, _: ElicitationContext| {
///         let dialogs = dialogs.clone();
///         async move {
///             let shown = dialogs.send(question.message().to_owned());
///             if shown.is_ok() { ElicitResult::decline() } else { ElicitResult::cancel() }
///         }
///     },
/// );
/// # drop(builder);
/// ```
///
/// Each question runs on a task of its own. When the
/// server withdraws the question, the connection ends or
/// [`server_request_timeout`](crate::ClientBuilder::server_request_timeout) passes, the future is dropped: close
/// the dialog in its destructor. A handler that panics counts as `cancel`.
///
/// What comes back is checked against the requested schema, omitted fields are filled with their defaults on
/// accept, and an answer that does not fit goes to the server as `cancel`, with a diagnostic. Nothing is ever opened
/// or fetched here: for a URL the handler shows the whole URL and its host, asks, and opens it in the user's own
/// browser after consent (elicitation, "Safe URL Handling").
pub trait ElicitationHandler: Send + Sync + 'static {
    /// Answers one question.
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitResult> + Send;
}

impl<F, Fut> ElicitationHandler for F
where
    F: Fn(ElicitRequest, ElicitationContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ElicitResult> + Send,
{
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitResult> + Send {
        self(request, context)
    }
}

impl<H: ElicitationHandler> ElicitationHandler for std::sync::Arc<H> {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitResult> + Send {
        ElicitationHandler::elicit(&**self, request, context)
    }
}

/// Who asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElicitationContext {
    /// What the application connected to: the program and its arguments, or the URL. Not what the server calls
    /// itself, which proves nothing.
    pub server: String,
    /// The id the server gave the question, for logs.
    pub request_id: RequestId,
}

/// The handler behind a pointer; the trait itself is not object safe.
pub(crate) trait ErasedHandler: Send + Sync {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> Pin<Box<dyn Future<Output = ElicitResult> + Send + '_>>;
}

impl<H: ElicitationHandler> ErasedHandler for H {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> Pin<Box<dyn Future<Output = ElicitResult> + Send + '_>> {
        Box::pin(ElicitationHandler::elicit(self, request, context))
    }
}

impl fmt::Debug for dyn ErasedHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}
