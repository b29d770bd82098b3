//! Driving Streamable HTTP: each call drives its own exchange; answers and notices are posted in the background; one
//! task reads the standing stream of the session.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_jsonrpc::PlainAnswer;
use mcp_proto::{CallId, ExchangeFailure, Failure, Head, Origin, Transmit, TransmitKind};
use mcp_transport::ErrorKind;
use mcp_transport::http::{Departure, HttpConnection, Post, RequestHead};
pub(super) use mcp_transport::http::{SseReceiver, SseSender};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

use super::{Driver, OpenCall, ProgressFn};
use crate::error::Error;

/// Answers and notices posted at the same time. When all are under way, the streams are read no further until one
/// is done.
const BACKGROUND_POSTS: usize = 64;

/// A connection to one MCP endpoint.
#[derive(Debug)]
pub(crate) struct HttpLink {
    connection: HttpConnection,
    background: Arc<Semaphore>,
}

impl HttpLink {
    pub(crate) fn new(connection: HttpConnection) -> Self {
        Self { connection, background: Arc::new(Semaphore::new(BACKGROUND_POSTS)) }
    }

    /// Posts the request of a call and reads what comes back until the call is over or the exchange is.
    pub(crate) async fn exchange(
        &self,
        call: &OpenCall,
        transmit: Transmit,
        on_progress: &mut Option<ProgressFn>,
    ) -> Result<(), Error> {
        if !call.is_open() {
            return Ok(());
        }
        // Until there is a connection nothing has left, and a call that ends before that has done nothing.
        let mut given_up = false;
        let mut watch = |departure| match departure {
            Departure::Leaves => {
                given_up = !call.dispatched();
                !given_up
            }
            _ => {
                call.held_back();
                true
            }
        };
        let posted = tokio::select! {
            biased;
            posted = self.connection.post_watched(post(transmit), &mut watch) => posted,
            () = call.over() => return Ok(()),
        };
        let mut exchange = match posted {
            Ok(exchange) => exchange,
            Err(_) if given_up => return Ok(()),
            Err(error) => return refused(call, error),
        };
        call.answered_with(exchange.status());
        let mut take = |answer: &PlainAnswer<'_>| call.driver.take(answer);
        loop {
            tokio::select! {
                biased;
                received = exchange.next_or_take(&mut take) => match received {
                    Ok(Some(received)) => call.driver.handle(Origin::Exchange(call.id), received),
                    Ok(None) => return call.exchange_ended(),
                    Err(error) => return refused(call, error),
                },
                () = call.stirred() => {}
            }
            while let Some(progress) = call.progress() {
                if let Some(listener) = on_progress {
                    listener(progress);
                }
            }
            if call.is_settled() {
                return Ok(());
            }
            // A server that takes no more of our answers holds up what it says, and never the end of a call.
            tokio::select! {
                biased;
                () = call.driver.background_room() => {}
                () = call.over() => return Ok(()),
            }
        }
    }

    /// Posts a message that has no answer and waits until it was accepted.
    pub(crate) async fn deliver(&self, transmit: Transmit) -> Result<(), Error> {
        deliver(&self.connection, transmit).await.map_err(Error::transport_failed)
    }

    pub(crate) fn post_in_background(&self, driver: &Arc<Driver>, transmit: Transmit) {
        let connection = self.connection.clone();
        let background = Arc::clone(&self.background);
        let runtime = driver.runtime.clone();
        let driver = Arc::downgrade(driver);
        runtime.spawn(async move {
            let Ok(_place) = background.acquire().await else { return };
            let posted = match transmit.owner {
                Some(call) => {
                    let posted = converse(&connection, transmit, &driver, call).await;
                    // One that got no answer will get none: what waits for it must not wait for its deadline.
                    if let Some(driver) = driver.upgrade() {
                        driver.with(|core, _| core.cancel(call, None));
                    }
                    posted
                }
                None => deliver(&connection, transmit).await,
            };
            if let Err(error) = posted {
                tracing::debug!(%error, "a message was not accepted by the server");
            }
        });
    }

    pub(crate) async fn background_room(&self) {
        // The place is given back at once: this only waits while all of them are taken.
        let _ = self.background.acquire().await;
    }

    /// Ends the session, if there is one. The server may refuse that; the connection is gone for us all the same.
    pub(crate) async fn close(&self, head: RequestHead) {
        if let Err(error) = self.connection.delete_session(head).await {
            tracing::debug!(%error, "the session was not ended by the server");
        }
    }
}

/// How long a new connection waits for its standing stream. A server may say something right after the handshake, and
/// one that has no stream to say it on may lose it. A server that answers the GET only with its first message costs
/// each connection this wait.
const STREAM_WAIT: Duration = Duration::from_millis(250);

/// Starts the task that reads the standing stream, if the server has one, and gives it a moment to be there.
pub(crate) async fn spawn_stream_reader(driver: &Arc<Driver>, link: &HttpLink) -> AbortHandle {
    let (opened, is_open) = oneshot::channel();
    let reader =
        tokio::spawn(read_stream(Arc::downgrade(driver), link.connection.clone(), opened)).abort_handle();
    let _ = tokio::time::timeout(STREAM_WAIT, is_open).await;
    reader
}

async fn read_stream(driver: Weak<Driver>, connection: HttpConnection, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    loop {
        // Boxed, as most of what it needs is of no use to a server that has no such stream.
        Box::pin(read_session_stream(&driver, &connection, &mut opened)).await;
        // Whatever ended it: a new session has a stream of its own.
        drop(opened.take());
        let Some(driver) = driver.upgrade() else { return };
        driver.renewed().await;
    }
}

/// Reads the standing stream of one session to its end.
async fn read_session_stream(
    driver: &Weak<Driver>,
    connection: &HttpConnection,
    opened: &mut Option<oneshot::Sender<()>>,
) {
    let Some(head) = driver.upgrade().map(|driver| driver.head()) else { return };
    let mut stream = match connection.open_stream(head).await {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => return tracing::debug!(%error, "the server's standing stream could not be opened"),
    };
    if let Some(opened) = opened.take() {
        // Nobody waits any more if that took too long.
        let _ = opened.send(());
    }
    loop {
        let received = stream.next().await;
        let Some(driver) = driver.upgrade() else { return };
        match received {
            Ok(Some(received)) => driver.handle(Origin::Channel, received),
            Ok(None) => return,
            // Calls go on without the stream; what the server says outside of them is lost from here on.
            Err(error) => return tracing::debug!(%error, "the server's standing stream ended"),
        }
        driver.background_room().await;
    }
}

/// Posts a request of the core's own, for which no task of a caller waits, and hands over what comes back.
async fn converse(
    connection: &HttpConnection,
    transmit: Transmit,
    driver: &Weak<Driver>,
    call: CallId,
) -> Result<(), mcp_transport::Error> {
    let mut exchange = connection.post(post(transmit)).await?;
    while let Some(received) = exchange.next().await? {
        let Some(driver) = driver.upgrade() else { break };
        driver.handle(Origin::Exchange(call), received);
    }
    Ok(())
}

/// The exchange of a call failed. The core may know how the call goes on: in a new session, or with a legacy handshake.
fn refused(call: &OpenCall, error: mcp_transport::Error) -> Result<(), Error> {
    let failure = match (error.kind(), error.status()) {
        (ErrorKind::SessionLost, _) => ExchangeFailure::SessionLost,
        (ErrorKind::Status, Some(status)) => ExchangeFailure::Status(status),
        (
            ErrorKind::LimitExceeded
            | ErrorKind::Misuse
            | ErrorKind::PeerMisbehaved
            | ErrorKind::Unauthorized,
            _,
        ) => ExchangeFailure::Refused,
        _ => ExchangeFailure::Other,
    };
    let goes_on =
        call.exchange_failed(failure) || on_the_way(&error).is_some_and(|failure| call.retried(failure));
    if goes_on { Ok(()) } else { call.failed(error) }
}

/// What happened to a request on its way, where it is that which failed.
fn on_the_way(error: &mcp_transport::Error) -> Option<Failure> {
    match (error.kind(), error.status()) {
        (ErrorKind::Connect, _) if !error.outcome_unknown() => Some(Failure::NotSent),
        (ErrorKind::ConnectionLost, _) => Some(Failure::Lost),
        // With an error object it is an answer of the server, and answers are for the caller.
        (ErrorKind::Status, Some(status)) if error.body_error().is_none() => {
            Some(Failure::Status { status, retry_after: error.retry_after() })
        }
        _ => None,
    }
}

async fn deliver(connection: &HttpConnection, transmit: Transmit) -> Result<(), mcp_transport::Error> {
    let mut exchange = connection.post(post(transmit)).await?;
    while exchange.next().await?.is_some() {}
    Ok(())
}

fn post(transmit: Transmit) -> Post {
    let head = head(transmit.head);
    match transmit.kind {
        TransmitKind::Request { id, establishes_session: true, .. } => Post::initialize(transmit.message, id),
        TransmitKind::Request { id, resumable, .. } => {
            let mut post = Post::request(transmit.message, id, head);
            post.resumable = resumable;
            post
        }
        TransmitKind::Response => Post::response(transmit.message, head),
        _ => Post::notification(transmit.message, head),
    }
}

fn head(head: Head) -> RequestHead {
    let mut written = RequestHead::default();
    written.protocol_version = head.protocol_version.map(|version| version.as_str().to_owned());
    if let Some(routing) = head.routing {
        written.method = Some(routing.method);
        written.name = routing.name;
        written.params = routing.params;
    }
    written
}

impl Driver {
    /// What a request outside of any call carries beside its message.
    pub(crate) fn head(&self) -> RequestHead {
        head(self.lock().core.session_head())
    }
}
