//! Elicitation handlers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicitation::{ElicitRequest, ElicitResult, Misuse, QuestionId};
use mcp_jsonrpc::RequestId;

use crate::desk::{Desk, PendingElicitation};
use crate::driver::spans::label;

/// Answers elicitations: shows the question to the user and returns the answer.
///
/// A closure that returns a future is a handler too. Clone what it captures for each question:
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
/// Each question runs on a task of its own. If the server withdraws the question, the connection ends or the question times
/// out, the future is dropped: close the dialog in its destructor. A handler that panics counts as `cancel`.
///
/// A handler that ends its own question (answers it at the desk, or closes the connection with
/// [`Client::close`](crate::Client::close)) is not dropped: it runs on, and its return value is ignored. This applies to what
/// its own task does, not to what it has another task do, as [`Host::disconnect`](crate::host::Host::disconnect) does.
///
/// The answer is validated against the requested schema, and on accept omitted fields are filled with their defaults. An
/// invalid answer is sent as `cancel`, with a diagnostic. This library never opens or fetches a URL: for URL mode the handler
/// shows the whole URL and its host, asks, and after consent opens it in the user's own browser (elicitation, "Safe URL
/// Handling").
///
/// An [`ElicitReply`] can also defer a question, or pass it on; a closure may return one, or an [`ElicitResult`].
pub trait ElicitationHandler: Send + Sync + 'static {
    /// Answers one question. An [`ElicitResult`] becomes a reply with `into()`.
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitReply> + Send;

    /// How long a question may stay open once this handler has it; then it ends as `cancel`. `None`, the default: as long as
    /// the connection ([`server_request_timeout`](crate::ClientBuilder::server_request_timeout)) or the desk says.
    ///
    /// The time continues to count for a question that the handler defers ([`ElicitReply::Defer`]). If the handler passes the
    /// question on ([`ElicitReply::Pass`]), the timeout of the next handler, or that of the connection or the desk, begins
    /// then.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl<F, Fut> ElicitationHandler for F
where
    F: Fn(ElicitRequest, ElicitationContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Into<ElicitReply>> + Send,
{
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitReply> + Send {
        let answering = self(request, context);
        async move { answering.await.into() }
    }
}

impl<H: ElicitationHandler> ElicitationHandler for Arc<H> {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitReply> + Send {
        ElicitationHandler::elicit(&**self, request, context)
    }

    fn timeout(&self) -> Option<Duration> {
        ElicitationHandler::timeout(&**self)
    }
}

/// The decision of a handler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitReply {
    /// Answer it.
    Answer(ElicitResult),
    /// Defer it, reported as [`Deferred`](crate::ElicitationEvent::Deferred): it stays open until its time has passed, for whoever
    /// took it ([`ElicitationContext::take`]), for a listener ([`Client::elicitations`](crate::Client::elicitations)) or for the desk's
    /// inbox. If nobody took it and there is neither, it is declined at once, as with [`Pass`](Self::Pass).
    ///
    /// Keeping its [`QuestionId`] does not count as taking it. To answer it by id later, take and release it:
    /// `context.take().map(PendingElicitation::defer)` returns the id, and the question stays open for [`Desk::respond`].
    Defer,
    /// Do not handle it: the next handler is asked; if there is none, the server gets `decline`.
    Pass,
}

impl From<ElicitResult> for ElicitReply {
    fn from(answer: ElicitResult) -> Self {
        Self::Answer(answer)
    }
}

/// The context of a question.
#[derive(Clone)]
#[non_exhaustive]
pub struct ElicitationContext {
    /// The name that the application gave the server, or what it connected to: the program and its arguments, or the URL without its
    /// query. Not the server's own name, which proves nothing.
    pub server: String,
    /// The JSON-RPC id of the request, for logs; `url-required:` and the `elicitationId` for a URL that a call requires.
    pub request_id: RequestId,
    /// The id of the question at its [`Desk`].
    pub question: QuestionId,
    /// The [`elicitation_key`](crate::Call::elicitation_key) of the call that it belongs to, if known.
    pub key: Option<Arc<str>>,
    /// When the question ends as `cancel`; `None`: never.
    pub deadline: Option<Instant>,
    pub(crate) desk: Desk,
}

impl ElicitationContext {
    /// Takes the question from the handler, which then returns [`ElicitReply::Defer`]: the holder of the value answers. `None`
    /// if the question has ended.
    pub fn take(&self) -> Option<PendingElicitation> {
        self.desk.take(self.question)
    }

    /// Keeps the question open for at least `time` from now. See [`Desk::extend`]; [`deadline`](Self::deadline) does not
    /// change.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownQuestion`](crate::DeskMisuse::UnknownQuestion) if it has ended.
    pub fn extend(&self, time: Duration) -> Result<Option<Instant>, Misuse> {
        self.desk.extend(self.question, time)
    }
}

/// Shows only the host or the program of the server.
impl fmt::Debug for ElicitationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitationContext")
            .field("server", &label(&self.server))
            .field("request_id", &self.request_id)
            .field("question", &self.question)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The handler behind a pointer; the trait itself is not object safe.
pub(crate) trait ErasedHandler: Send + Sync {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> Pin<Box<dyn Future<Output = ElicitReply> + Send + '_>>;
}

impl<H: ElicitationHandler> ErasedHandler for H {
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> Pin<Box<dyn Future<Output = ElicitReply> + Send + '_>> {
        Box::pin(ElicitationHandler::elicit(self, request, context))
    }
}

impl fmt::Debug for dyn ErasedHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}
