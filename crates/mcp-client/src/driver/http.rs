//! Driving Streamable HTTP: each call drives its own exchange; answers and notices are posted in the background.

use std::fmt;
use std::sync::Arc;

use mcp_jsonrpc::{PlainAnswer, RequestId};
use mcp_proto::{ExchangeFailure, Head, Limits, Origin, Transmit, TransmitKind};
use mcp_transport::ErrorKind;
pub(crate) use mcp_transport::http::RequestHead as SessionHead;
use mcp_transport::http::{Departure, Exchange, HttpConnection, Post, RequestHead};
pub(super) use mcp_transport::http::{SseReceiver, SseSender};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::notices::Notices;
use super::open_call::Sent;
use super::seeking::Seeking;
use super::standing_stream::Signs;
pub(crate) use super::standing_stream::spawn_stream_reader;
use super::{Driver, OpenCall, ProgressFn};
use crate::error::Error;
use crate::spawning::spawn;
use mcp_transport::watched::Watched;

/// A connection to one MCP endpoint.
#[derive(Debug)]
pub(crate) struct HttpLink {
    pub(super) connection: HttpConnection,
    background: Arc<Places>,
    /// For requests of the core's own. Not among the others: a server may want an answer before it gives one.
    own: Semaphore,
    notices: Notices,
    /// The notices that calls were given up, on their way.
    courtesies: Arc<()>,
    max_notices: usize,
    pub(super) seeking: Seeking,
    pub(super) signs: Arc<Signs>,
}

impl HttpLink {
    pub(crate) fn new(connection: HttpConnection, limits: &Limits) -> Self {
        Self {
            notices: Notices::new(connection.clone()),
            connection,
            background: Arc::new(Places::new(limits.max_background_posts)),
            own: semaphore(limits.max_background_posts),
            courtesies: Arc::default(),
            max_notices: limits.max_waiting_notices,
            seeking: Seeking::default(),
            signs: Arc::default(),
        }
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
        let (request, sent) = (request_of(&transmit), Sent::of(&transmit));
        // What no caller paces is bounded in number instead; not a handshake, of which there is one, and which others may wait for.
        let _place = if call.is_own && sent == Sent::Request {
            tokio::select! {
                biased;
                place = self.own.acquire() => place.ok(),
                () = call.over() => return Ok(()),
            }
        } else {
            None
        };
        let Some(mut exchange) = self.posted(call, request.as_ref(), transmit).await? else { return Ok(()) };
        call.answered_with(exchange.status());
        self.signs.note();
        let mut take = |answer: &PlainAnswer<'_>| call.driver.take(answer, Some(call.id));
        loop {
            tokio::select! {
                biased;
                received = exchange.next_or_take(&mut take) => match received {
                    Ok(Some(received)) => call.driver.handle(Origin::Exchange(call.id), received),
                    Ok(None) => return call.exchange_ended(),
                    Err(error) => return refused(call, request.as_ref(), sent, error),
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

    /// Posts the request of a call. `None` if the call ended before it was answered, or knows how it goes on without an answer.
    ///
    /// No `async fn`, which would keep the message once more.
    fn posted(
        &self,
        call: &OpenCall,
        request: Option<&RequestId>,
        transmit: Transmit,
    ) -> impl Future<Output = Result<Option<Exchange>, Error>> + Send {
        let mut given_up = false;
        let sent = Sent::of(&transmit);
        async move {
            let mut watch = |departure| departs(call, request, departure, &mut given_up);
            tokio::select! {
                biased;
                posted = self.connection.post_watched(post(transmit), &mut watch) => match posted {
                    Ok(exchange) => Ok(Some(exchange)),
                    Err(_) if given_up => Ok(None),
                    Err(error) => refused(call, request, sent, error).map(|()| None),
                },
                () = call.over() => Ok(None),
            }
        }
    }

    /// Posts a message that has no answer and waits until it was accepted.
    pub(crate) async fn deliver(&self, transmit: Transmit) -> Result<(), mcp_transport::Error> {
        deliver(&self.connection, transmit).await
    }

    /// Posts what ends the handshake of a new session, as long as that is waited for.
    pub(crate) async fn confirm(&self, call: &OpenCall, transmit: Transmit) -> Result<(), Error> {
        let delivered = tokio::select! {
            biased;
            delivered = self.deliver(transmit) => delivered,
            () = call.over() => return Ok(()),
        };
        let Err(error) = delivered else {
            call.driver.with(|core, now| {
                // It may have been given up a moment ago, and another one be on its way to the same end.
                if core.is_open(call.id) {
                    core.handle_initialized_delivered(now);
                }
            });
            return Ok(());
        };
        let failure = failure_of(&error);
        if call.driver.with(|core, now| core.handle_initialized_failed(now, call.id, failure)) {
            return Ok(());
        }
        call.failed(Sent::Handshake, error)
    }

    /// Posts what the application said, each when the one before is accepted or lost.
    pub(crate) fn post_in_order(&self, driver: &Arc<Driver>, transmit: Transmit) {
        self.notices.put(driver, transmit);
    }

    /// Has a new session made for what waits for one.
    #[expect(clippy::unused_self, reason = "the same calls as without HTTP")]
    pub(crate) fn seek(&self, driver: &Arc<Driver>) {
        driver.seek();
    }

    pub(crate) fn takes_notices(&self) -> bool {
        self.notices.waiting() < self.max_notices
    }

    pub(crate) fn post_in_background(&self, driver: &Arc<Driver>, transmit: Transmit) {
        let is_courtesy = transmit.kind == TransmitKind::Notification && transmit.owner.is_none();
        let courtesy = is_courtesy.then(|| Arc::clone(&self.courtesies));
        if is_courtesy && Arc::strong_count(&self.courtesies) > self.max_notices.saturating_mul(2) {
            return tracing::debug!("a notification was not sent because the server does not accept any");
        }
        let connection = self.connection.clone();
        let background = Arc::clone(&self.background);
        let weak = Arc::downgrade(driver);
        let posting = async move {
            let Some(_place) = background.take().await else { return };
            if let Err(error) = deliver(&connection, transmit).await {
                tracing::debug!(%error, "a message was not accepted by the server");
                if let Some(driver) = weak.upgrade() {
                    driver.seek_after(&error);
                }
            }
            drop(courtesy);
        };
        spawn(&driver.runtime, posting);
    }

    pub(crate) async fn background_room(&self) {
        self.background.room().await;
    }

    /// Ends the session, if there is one. The server may refuse that; the connection is gone for us all the same.
    pub(crate) async fn close(&self, head: RequestHead) {
        self.notices.clear();
        if let Err(error) = self.connection.delete_session(head).await {
            tracing::debug!(%error, "the server did not end the session");
        }
    }
}

fn semaphore(places: usize) -> Semaphore {
    Semaphore::new(places.min(Semaphore::MAX_PERMITS))
}

/// Places for posts of the background.
struct Places {
    free: Semaphore,
    freed: Watched<()>,
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("free", &self.free.available_permits()).finish_non_exhaustive()
    }
}

/// One of them, until it is dropped.
struct Place<'a> {
    permit: Option<SemaphorePermit<'a>>,
    freed: &'a Watched<()>,
}

impl Places {
    fn new(places: usize) -> Self {
        Self { free: semaphore(places), freed: Watched::new(()) }
    }

    /// For tasks of our own only: a place is kept for who waits for one, whether or not it is polled.
    async fn take(&self) -> Option<Place<'_>> {
        let permit = self.free.acquire().await.ok()?;
        Some(Place { permit: Some(permit), freed: &self.freed })
    }

    /// Waits until one is free, and leaves it.
    async fn room(&self) {
        if self.free.available_permits() > 0 {
            return;
        }
        // Made before looking again: it is told of every later change.
        let mut freed = self.freed.watcher();
        while self.free.available_permits() == 0 {
            freed.changed().await;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit = None;
        self.freed.set(());
    }
}

/// The id of the request that is sent, if it is one.
fn request_of(transmit: &Transmit) -> Option<RequestId> {
    match &transmit.kind {
        TransmitKind::Request { id, .. } => Some(id.clone()),
        _ => None,
    }
}

/// A call's message is somewhere on its way. Until there is a connection nothing has left, and a call that ends before that
/// has done nothing. Whether it may go; where not, `given_up` is noted.
fn departs(call: &OpenCall, request: Option<&RequestId>, departure: Departure, given_up: &mut bool) -> bool {
    let Some(request) = request else { return true };
    *given_up = !call.driver.departs(request, departure);
    !*given_up
}

/// What came of a call's message on the HTTP+SSE transport.
pub(super) enum Posted {
    Done(Result<(), mcp_transport::Error>),
    /// Nobody waited for its answer any more before it left.
    GivenUp,
}

/// Posts the request of a call on the HTTP+SSE transport, while the call is open.
pub(super) async fn post_call(sender: &SseSender, call: &OpenCall, transmit: Transmit) -> Posted {
    let mut given_up = false;
    let request = request_of(&transmit);
    let mut watch = |departure| departs(call, request.as_ref(), departure, &mut given_up);
    match sender.send_watched(transmit.message, &mut watch).await {
        Err(_) if given_up => Posted::GivenUp,
        posted => Posted::Done(posted),
    }
}

/// The exchange of a request failed. The core may know how its call goes on: in a new session, or with a legacy handshake.
fn refused(
    call: &OpenCall,
    request: Option<&RequestId>,
    sent: Sent,
    error: mcp_transport::Error,
) -> Result<(), Error> {
    let failure = failure_of(&error);
    let goes_on = |request: &RequestId| {
        call.driver.with(|core, now| core.handle_exchange_failed(now, request, failure))
    };
    if request.is_some_and(goes_on) {
        return Ok(());
    }
    if call.is_own {
        call.driver.seek_after(&error);
    }
    call.failed(sent, error)
}

/// The failure of an exchange, in the words of the core.
fn failure_of(error: &mcp_transport::Error) -> ExchangeFailure {
    match (error.kind(), error.status()) {
        (ErrorKind::Connect, _) if !error.outcome_unknown() => ExchangeFailure::NotSent,
        (ErrorKind::ConnectionLost, _) => ExchangeFailure::ConnectionLost,
        // A server that had begun to answer may have carried it out before it lost the session.
        (ErrorKind::SessionLost, _) if !error.outcome_unknown() => ExchangeFailure::SessionLost,
        (ErrorKind::Status, Some(status)) => {
            let explained = error.body_error().is_some();
            ExchangeFailure::Status { status, retry_after: error.retry_after(), explained }
        }
        (
            ErrorKind::LimitExceeded
            | ErrorKind::Misuse
            | ErrorKind::PeerMisbehaved
            | ErrorKind::Tls(_)
            | ErrorKind::Unauthorized,
            _,
        ) => ExchangeFailure::Refused,
        _ => ExchangeFailure::Other,
    }
}

pub(super) async fn deliver(
    connection: &HttpConnection,
    transmit: Transmit,
) -> Result<(), mcp_transport::Error> {
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

pub(super) fn head(head: Head) -> RequestHead {
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
    /// Notes where a request is on its way. Whether it may go: nobody waits for its answer any more otherwise.
    fn departs(&self, request: &RequestId, departure: Departure) -> bool {
        let core = &mut self.lock().core;
        match departure {
            Departure::Leaves => core.handle_dispatched(request),
            _ => {
                core.handle_held_back(request);
                true
            }
        }
    }

    /// What a request outside of any call carries beside its message.
    pub(crate) fn head(&self) -> RequestHead {
        head(self.lock().core.session_head())
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use super::*;

    /// A call that waits for room and is not polled any more keeps no place from those who post.
    #[tokio::test]
    async fn who_waits_for_room_takes_no_place() {
        let places = Places::new(1);
        let place = places.take().await.unwrap();
        let mut kept = pin!(places.room());
        assert!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(place);
        let posting = tokio::time::timeout(Duration::from_secs(5), places.take()).await;
        assert!(posting.is_ok(), "the place is kept for one that does not come");
        drop(posting);
        kept.await;
    }

    /// Counts how often it is woken, and panics then.
    struct Panics(Arc<AtomicUsize>);

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose");
        }
    }

    /// Calls of the application wait for room, each with a waker of its own.
    #[tokio::test]
    async fn whoever_waits_for_room_is_woken_whatever_the_wakers_of_others_do() {
        let places = Places::new(1);
        let place = places.take().await.unwrap();
        let woken = Arc::<AtomicUsize>::default();
        let waker = Waker::from(Arc::new(Panics(Arc::clone(&woken))));
        let mut waits: Vec<_> = (0..64).map(|_| Box::pin(places.room())).collect();
        let mut poll = || -> Vec<bool> {
            let context = &mut Context::from_waker(&waker);
            waits.iter_mut().map(|wait| wait.as_mut().poll(context).is_ready()).collect()
        };
        assert_eq!(poll(), [false; 64]);
        drop(place);
        assert_eq!(woken.load(Ordering::Relaxed), 64);
        assert_eq!(poll(), [true; 64]);
    }
}
