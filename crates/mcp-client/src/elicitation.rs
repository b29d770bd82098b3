//! How the application answers the questions of servers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_elicitation::{ElicitRequest, ElicitResult, Misuse, QuestionId};
use mcp_jsonrpc::RequestId;

use crate::desk::{Desk, PendingElicitation};
use crate::driver::spans::label;

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
/// Each question runs on a task of its own. When the server withdraws the question, the connection ends or the question's
/// time passes, the future is dropped: close the dialog in its destructor. A handler that panics counts as `cancel`.
///
/// A handler that itself does what ends its question (answers it at the desk, or closes the connection with
/// [`Client::close`](crate::Client::close)) is not dropped for that: it runs on, and what it gives is of no use any more. This
/// holds for what its own task does, not for what it has another task do, as
/// [`Host::disconnect`](crate::host::Host::disconnect) does.
///
/// What comes back is checked against the requested schema, omitted fields are filled with their defaults on
/// accept, and an answer that does not fit goes to the server as `cancel`, with a diagnostic. Nothing is ever opened
/// or fetched here: for a URL the handler shows the whole URL and its host, asks, and opens it in the user's own
/// browser after consent (elicitation, "Safe URL Handling").
///
/// An [`ElicitReply`] can also put a question off, or pass it on; a closure may give one, or the [`ElicitResult`] itself.
pub trait ElicitationHandler: Send + Sync + 'static {
    /// Answers one question. An [`ElicitResult`] becomes a reply with `into()`.
    fn elicit(
        &self,
        request: ElicitRequest,
        context: ElicitationContext,
    ) -> impl Future<Output = ElicitReply> + Send;

    /// How long a question that this handler gets may stay open from when it gets it; then it ends as `cancel`. `None`, the
    /// default: as long as the connection ([`server_request_timeout`](crate::ClientBuilder::server_request_timeout)) or the
    /// desk says.
    ///
    /// The time stays with a question that the handler puts off ([`ElicitReply::Defer`]). It does not bind the next one where
    /// the handler passes the question on ([`ElicitReply::Pass`]): that one's own time, or the one of the connection or the
    /// desk, begins then.
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

/// What a handler does with a question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitReply {
    /// Answers it.
    Answer(ElicitResult),
    /// Puts it off: it stays open until its time is up, for whoever took it ([`ElicitationContext::take`]), for a listener
    /// ([`Client::elicitations`](crate::Client::elicitations)) or for the desk's inbox. Where nobody took it and nobody else
    /// is there, it is declined at once, as with [`Pass`](Self::Pass): no server waits for an answer that nobody gives.
    ///
    /// To keep a [`QuestionId`] does not hold the question, as nobody can know of it. To answer by name later,
    /// take the question and let go of it: `context.take().map(PendingElicitation::defer)` gives its id, and the question
    /// stays open for [`Desk::respond`].
    Defer,
    /// Has nothing to do with it: the next one is asked, and where there is none, the server gets `decline`.
    Pass,
}

impl From<ElicitResult> for ElicitReply {
    fn from(answer: ElicitResult) -> Self {
        Self::Answer(answer)
    }
}

/// Who asks, and how.
#[derive(Clone)]
#[non_exhaustive]
pub struct ElicitationContext {
    /// What the application connected to: the program and its arguments, or the URL, or the name that the application gave
    /// the server. Not what the server calls itself, which proves nothing.
    pub server: String,
    /// The id the server gave the question, for logs. `url-required:` and the `elicitationId` for one that a call needs.
    pub request_id: RequestId,
    /// Names the question at its [`Desk`].
    pub question: QuestionId,
    /// The [`elicitation_key`](crate::Call::elicitation_key) of the call in the middle of which it is asked.
    pub key: Option<Arc<str>>,
    /// When the question ends as `cancel`; `None` is never.
    pub deadline: Option<Instant>,
    pub(crate) desk: Desk,
}

impl ElicitationContext {
    /// Takes the question out of the hands of the handler, which then gives [`ElicitReply::Defer`]: whoever gets the value
    /// answers. `None` if the question has ended.
    pub fn take(&self) -> Option<PendingElicitation> {
        self.desk.take(self.question)
    }

    /// Leaves the question open for `time` from now, where it would end before: the user is typing. See [`Desk::extend`];
    /// [`deadline`](Self::deadline) stays what it was when the handler got the question.
    ///
    /// # Errors
    /// [`Misuse::UnknownQuestion`](crate::DeskMisuse::UnknownQuestion) if it has ended.
    pub fn extend(&self, time: Duration) -> Result<Option<Instant>, Misuse> {
        self.desk.extend(self.question, time)
    }
}

/// Shows of the server its host or its program alone.
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
