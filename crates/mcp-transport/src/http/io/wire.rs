//! One HTTP/1.1 connection, driven by whoever is using it.
//!
//! hyper expects its connection to be polled by a task of its own. Here the task that waits for the response polls it
//! together with the response: no task is woken on the way, and dropping the exchange closes the socket.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::bell::Bell;
use super::body::RequestBody;
use super::stream::Stream;
use crate::http::config::HttpLimits;

/// The smallest buffer hyper works with.
const MIN_BUFFER_BYTES: usize = 8 * 1024;

pub(crate) struct Wire {
    sender: SendRequest<RequestBody>,
    connection: Connection<TokioIo<Stream>, RequestBody>,
    /// The connection has ended and must not be polled again.
    ended: bool,
    /// Why it ended, until somebody asks.
    error: Option<hyper::Error>,
    bell: Bell,
}

/// A request on its way, until the head of its response has come.
///
/// On the heap, and nothing but this is kept of the request: it would make everything that waits for it several times as large.
pub(crate) type Sent = Pin<Box<dyn Future<Output = Answered> + Send>>;

type Answered = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>;

/// A request that got no response head.
pub(crate) struct SendError {
    pub(crate) error: hyper::Error,
    /// No byte of it was written.
    pub(crate) is_unsent: bool,
    /// The server said that it has not processed it and will not.
    pub(crate) is_refused: bool,
}

impl Wire {
    pub(crate) async fn handshake(stream: Stream, limits: &HttpLimits) -> Result<Box<Self>, hyper::Error> {
        let head_bytes = limits.max_head_bytes.max(MIN_BUFFER_BYTES);
        let mut builder = http1::Builder::new();
        builder.max_buf_size(head_bytes).max_header_size(head_bytes);
        // hyper's own bound, kept on the stack unless it is set.
        if limits.max_headers != 100 {
            builder.max_headers(limits.max_headers);
        }
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        // Large, and moved with every exchange.
        Ok(Box::new(Self { sender, connection, ended: false, error: None, bell: Bell::new() }))
    }

    /// Hands over a request, of which nothing is sent before it is polled.
    pub(crate) fn send(&mut self, request: Request<RequestBody>) -> Sent {
        Box::pin(self.sender.try_send_request(request))
    }

    /// Sends it and waits for the head of its response. After one that is not polled to its end the connection is unusable.
    pub(crate) fn poll_sent(
        &mut self,
        sent: &mut Sent,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Incoming>, SendError>> {
        let Self { connection, ended, error, bell, .. } = self;
        let result = bell.poll(cx, |cx| {
            drive(connection, ended, error, cx);
            sent.as_mut().poll(cx)
        });
        result.map_err(|mut failed| {
            let is_unsent = failed.take_message().is_some();
            SendError { error: failed.into_error(), is_unsent, is_refused: false }
        })
    }

    /// The next piece of a response body; `None` is its end. Trailers are passed over.
    pub(crate) fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        let Self { connection, ended, error, bell, .. } = self;
        bell.poll(cx, |cx| {
            loop {
                // Asking first tells hyper that the next piece is wanted; only then does driving the connection read it.
                let mut frame = Pin::new(&mut *body).poll_frame(cx);
                if frame.is_pending() {
                    drive(connection, ended, error, cx);
                    frame = Pin::new(&mut *body).poll_frame(cx);
                }
                match ready!(frame) {
                    Some(Ok(frame)) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Poll::Ready(Some(Ok(bytes)));
                        }
                    }
                    // The connection knows the cause better than its body.
                    Some(Err(failed)) => return Poll::Ready(Some(Err(error.take().unwrap_or(failed)))),
                    None => return Poll::Ready(None),
                }
            }
        })
    }

    /// What came and was not understood, once nothing more is done with the connection.
    pub(crate) fn into_unread(self) -> Bytes {
        self.connection.into_parts().read_buf
    }

    /// Whether another request can be sent now, after looking at what the peer did meanwhile.
    pub(crate) fn is_ready(&mut self) -> bool {
        let Self { connection, ended, error, bell, .. } = self;
        // Nobody waits: it is asked once, right before a request is sent.
        let nobody = Context::from_waker(Waker::noop());
        let _: Poll<()> = bell.poll(&nobody, |cx| {
            drive(connection, ended, error, cx);
            Poll::Pending
        });
        !self.ended && self.sender.is_ready()
    }

    /// Lets go of the task that used it last: its waker would keep all of its memory for as long as the connection is idle, and
    /// wake it when the server closes.
    pub(crate) fn forget_task(&self) {
        self.bell.forget_task();
    }
}

fn drive(
    connection: &mut Connection<TokioIo<Stream>, RequestBody>,
    ended: &mut bool,
    error: &mut Option<hyper::Error>,
    cx: &mut Context<'_>,
) {
    if !*ended && let Poll::Ready(result) = Pin::new(connection).poll(cx) {
        *ended = true;
        *error = result.err();
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("ended", &self.ended).finish_non_exhaustive()
    }
}
