//! The connection to one server: a handle that any number of tasks may use at once.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use mcp_jsonrpc::DecodeLimits;
use tokio::time;

use super::config::{Config, HttpTimeouts};
use super::core::exchange::ExchangeCore;
use super::core::headers::Template;
use super::core::listen::{self, ListenCore};
use super::core::session::{SessionId, SessionSlot};
use super::core::target::Target;
use super::core::{classify, fault};
use super::credentials::{Credentials, Refused};
use super::event_stream::EventStream;
use super::exchange::Exchange;
use super::io::clock::now;
use super::io::open::{Boxed, Opened, Outgoing, Watch, open};
use super::io::pool::Pool;
use super::joint::{Joint, WeakJoint};
use super::post::{Departure, Post, PostKind, RequestHead};
use super::sse_channel::{SseReceiver, SseSender, open_channel};
use crate::{Error, ErrorKind};

/// What everything that belongs to one connection shares.
pub(crate) struct Shared {
    pub(crate) target: Target,
    pub(crate) template: Template,
    pub(crate) config: Arc<Config>,
    pub(crate) decode_limits: DecodeLimits,
    pub(crate) session: SessionSlot,
    pub(crate) pool: Arc<Pool>,
    /// The end of the session, while somebody waits for it.
    pub(crate) ending: Mutex<WeakJoint<Result<(), Error>>>,
}

/// A connection to a server: one session, one pool of keep-alive sockets. Cloning gives another handle to the same one.
///
/// Idle sockets are closed after a while ([`HttpTimeouts::pool_idle`](super::HttpTimeouts::pool_idle)), and all of them with
/// the last handle. Nothing runs in the background while no exchange is under way.
#[derive(Clone)]
pub struct HttpConnection {
    shared: Arc<Shared>,
}

impl HttpConnection {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Posts one message and waits for the response head; the [`Exchange`] then yields what follows.
    ///
    /// The session id is attached to everything but `initialize` and modern messages. Concurrent posts are independent
    /// of each other.
    ///
    /// # Errors
    ///
    /// `Connect`, `ConnectionLost`, `Timeout` (only where a deadline is set), `LimitExceeded`, `Unauthorized`
    /// (401, and 403 unless its body may hold a JSON-RPC error), `SessionLost` (it counts as lost from then on, and
    /// `initialize` opens a new one), `Status`, `PeerMisbehaved` (a redirect that is not followed, 202 to a request, a response
    /// that is no MCP answer), `Misuse` (a routing header that cannot be sent). [`Error::outcome_unknown`] tells whether the message may have been processed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket it was using. The message may have been processed.
    pub async fn post(&self, post: Post) -> Result<Exchange, Error> {
        self.post_watched(post, &mut |_| true).await
    }

    /// As [`post`](Self::post), and reports to `watch` whether the message has been sent: while a connection is opened, or
    /// credentials are fetched, no byte of it has. On [`Departure::Leaves`] it returns whether the message may still be sent;
    /// it is called right before the first byte is written, on the polling task, and never holds up other messages of the
    /// connection.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post); `Closed` if `watch` did not allow the message to be sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket it was using. The message may have been processed if the last report to
    /// `watch` was [`Departure::Leaves`].
    pub async fn post_watched(
        &self,
        post: Post,
        watch: &mut (dyn FnMut(Departure) -> bool + Send),
    ) -> Result<Exchange, Error> {
        self.posting(post, watch).await
    }

    /// Opens the GET stream on which a legacy server may send messages of its own. Open it only after `initialized` was
    /// accepted. `None` means that the server offers none, which is allowed.
    ///
    /// # Errors
    ///
    /// `Connect`, `ConnectionLost`, `Timeout`, `LimitExceeded`, `Status` for 5xx, 408 and 429, `Unauthorized` for 401 and for a
    /// 403 with a challenge, and `SessionLost` for a 400 in the words of the official SDKs. Every other refusal means `None`: a 404 may
    /// be about a lost session, but only a POST tells for certain.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    pub async fn open_stream(&self, head: RequestHead) -> Result<Option<EventStream>, Error> {
        self.opening_stream(head).await
    }

    /// Tries the transport of 2024-11-05 on the same URL: a GET whose event stream begins with an `endpoint` event. `None`
    /// means that there is no such stream. Meant for a server that refused `initialize` by 400, 404 or 405 without a modern
    /// JSON-RPC error.
    ///
    /// # Errors
    ///
    /// As [`open_stream`](Self::open_stream), which waits no longer than [`HttpTimeouts::head`](super::HttpTimeouts::head) here;
    /// `PeerMisbehaved` if the endpoint is no URL of the same origin.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    pub async fn open_sse_channel(&self) -> Result<Option<(SseSender, SseReceiver)>, Error> {
        self.opening_sse_channel().await
    }

    /// How long the steps of its requests may take.
    pub fn timeouts(&self) -> &HttpTimeouts {
        &self.shared.config.timeouts
    }

    /// Ends the session, if there is one, with a DELETE that takes at most
    /// [`HttpTimeouts::close`](super::HttpTimeouts::close). Concurrent callers share one DELETE, whichever of them is polled, and
    /// all get its result. A server that does not let clients end sessions (405) or has ended it already (404) causes no error.
    ///
    /// # Errors
    ///
    /// As `post`; the session is forgotten in any case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the last of the futures closes the socket. The session is forgotten here; the server may or may not know.
    pub async fn delete_session(&self, head: RequestHead) -> Result<(), Error> {
        self.deleting_session(head).await
    }

    /// Whether the server has opened a session that is not known to be lost.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.shared.session.is_open()
    }

    /// See [`Boxed`].
    fn posting<'a>(&'a self, post: Post, watch: Watch<'a>) -> Boxed<'a, Exchange> {
        // All that is made before the first await is made out here: the future would keep what it is made from as well.
        let shared = &self.shared;
        let Post { body, kind, head, resumable } = post;
        let fields = match kind {
            PostKind::Request { establishes_session: true, .. } => Ok(shared.template.initialize()),
            _ if head.is_modern() => shared.template.post(&head, None),
            _ => shared.template.post(&head, shared.session.current()),
        };
        let fields = match fields {
            Ok(fields) => fields,
            Err(bad) => return Box::pin(ready(Err(fault::bad_header(&bad)))),
        };
        let timeouts = &shared.config.timeouts;
        let deadline = match kind {
            PostKind::Request { .. } => timeouts.request_head,
            PostKind::Notification | PostKind::Response => Some(timeouts.head),
        };
        let mut outgoing = Outgoing { method: Method::POST, fields, body };
        let mut core = ExchangeCore::new(kind, resumable && !head.is_modern(), &shared.config);
        Box::pin(async move {
            let opened = shared.open_at(&shared.target, &mut outgoing, deadline, watch).await?;
            let result = core.handle_head(now(), opened.head());
            if let Err(error) = result {
                shared.note_lost_session(&error, opened.session.as_ref());
                shared.pool.put(opened.connection.wire, Some(opened.connection.body));
                return Err(error);
            }
            Ok(Exchange::new(Arc::clone(shared), core, head, opened.connection, opened.session))
        })
    }

    fn opening_stream(&self, head: RequestHead) -> Boxed<'_, Option<EventStream>> {
        Box::pin(async move {
            let shared = &self.shared;
            let mut outgoing = shared.get(&head, shared.session.current(), "")?;
            let opened = shared.open(&mut outgoing, shared.config.timeouts.request_head).await?;
            let opened = opened.read_refusal(&shared.config).await;
            let judged = listen::judge(opened.head(), &shared.config);
            match judged {
                Ok(listen::Opened::Stream) => {
                    let core = ListenCore::new(now(), &shared.config);
                    Ok(Some(EventStream::new(
                        Arc::clone(shared),
                        core,
                        head,
                        opened.connection,
                        opened.session,
                    )))
                }
                other => {
                    shared.pool.put(opened.connection.wire, Some(opened.connection.body));
                    other.map(|_| None)
                }
            }
        })
    }

    fn opening_sse_channel(&self) -> Boxed<'_, Option<(SseSender, SseReceiver)>> {
        Box::pin(async move {
            let deadline = self.shared.config.timeouts.head;
            match time::timeout(deadline, open_channel(&self.shared)).await {
                Ok(channel) => channel,
                Err(_) => Err(fault::timeout("the first event of the stream", deadline)),
            }
        })
    }

    fn deleting_session(&self, head: RequestHead) -> Boxed<'_, ()> {
        Box::pin(async move {
            let ending = {
                let mut ending = self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner);
                match self.shared.session.take() {
                    Some(session) => {
                        let joint = Joint::new(delete_session(Arc::clone(&self.shared), head, session));
                        *ending = joint.downgrade();
                        Some(joint)
                    }
                    None => ending.get(),
                }
            };
            match ending {
                Some(ending) => ending.wait().await.unwrap_or_else(|| Err(fault::lost(None))),
                None => Ok(()),
            }
        })
    }
}

async fn delete_session(shared: Arc<Shared>, head: RequestHead, session: SessionId) -> Result<(), Error> {
    let fields = shared.template.delete(&head, session).map_err(|bad| fault::bad_header(&bad))?;
    let mut outgoing = Outgoing { method: Method::DELETE, fields, body: Bytes::new() };
    let close = shared.config.timeouts.close;
    let opened = match time::timeout(close, shared.open(&mut outgoing, None)).await {
        Ok(opened) => opened?,
        Err(_) => return Err(fault::timeout("the end of the session", close)),
    };
    let head = opened.head();
    let result = match classify::classify(classify::Asked::Deletion, head.facts()) {
        classify::Verdict::Accepted => Ok(()),
        classify::Verdict::Unauthorized => Err(head.unauthorized(shared.config.limits.max_challenge_bytes)),
        _ => Err(head.refusal().error(None)),
    };
    shared.pool.put(opened.connection.wire, Some(opened.connection.body));
    result
}

impl fmt::Debug for HttpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnection")
            .field("target", &self.shared.target)
            .field("has_session", &self.has_session())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Sends a request to the MCP endpoint, with credentials where there is a provider.
    pub(crate) async fn open(
        &self,
        outgoing: &mut Outgoing<'_>,
        deadline: Option<Duration>,
    ) -> Result<Opened, Error> {
        self.open_at(&self.target, outgoing, deadline, &mut |_| true).await
    }

    /// The same to a URL of the same origin, and tells `watch` where the request is.
    pub(crate) async fn open_at(
        &self,
        target: &Target,
        outgoing: &mut Outgoing<'_>,
        deadline: Option<Duration>,
        watch: Watch<'_>,
    ) -> Result<Opened, Error> {
        match &self.config.credentials.0 {
            None => open(&self.pool, &self.config, target, outgoing, deadline, watch).await,
            Some(provider) => {
                Box::pin(self.open_authorized(&**provider, target, outgoing, deadline, watch)).await
            }
        }
    }

    /// Sends a request, and once more if it is refused and the provider then knows better credentials.
    async fn open_authorized(
        &self,
        credentials: &dyn Credentials,
        target: &Target,
        outgoing: &mut Outgoing<'_>,
        deadline: Option<Duration>,
        watch: Watch<'_>,
    ) -> Result<Opened, Error> {
        let authorization = credentials.authorization().await.map_err(fault::no_credentials)?;
        outgoing.authorize(authorization.as_deref())?;
        let opened = open(&self.pool, &self.config, target, outgoing, deadline, &mut *watch).await?;
        let head = opened.head();
        let is_refused = match head.status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => head.facts().has_challenge,
            _ => false,
        };
        if !is_refused {
            return Ok(opened);
        }
        let challenges = fault::challenges(head.headers, self.config.limits.max_challenge_bytes);
        let status = head.status.as_u16();
        let refused = Refused { status, challenges: &challenges, authorization: authorization.as_deref() };
        if !credentials.refused(refused).await.map_err(fault::no_credentials)? {
            return Ok(opened);
        }
        self.pool.put(opened.connection.wire, Some(opened.connection.body));
        let authorization = credentials.authorization().await.map_err(fault::no_credentials)?;
        outgoing.authorize(authorization.as_deref())?;
        open(&self.pool, &self.config, target, outgoing, deadline, watch).await
    }

    /// A GET that listens, or resumes after `cursor`.
    pub(crate) fn get(
        &self,
        head: &RequestHead,
        session: Option<SessionId>,
        cursor: &str,
    ) -> Result<Outgoing<'_>, Error> {
        let fields = self.template.get(head, session, cursor);
        let fields = fields.map_err(|bad| fault::bad_header(&bad))?;
        Ok(Outgoing { method: Method::GET, fields, body: Bytes::new() })
    }

    /// Takes the session that a request carried for lost, if that is what failed it.
    pub(crate) fn note_lost_session(&self, error: &Error, session: Option<&SessionId>) {
        if error.kind() == ErrorKind::SessionLost
            && let Some(session) = session
        {
            self.session.mark_lost(session);
        }
    }
}
