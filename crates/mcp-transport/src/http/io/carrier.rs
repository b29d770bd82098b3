//! What carries an exchange: an HTTP/1.1 connection of its own, or a stream of a shared HTTP/2 one.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;

use super::body::RequestBody;
#[cfg(feature = "http2")]
use super::multiplex::Lane;
use super::wire::{SendError, Wire};

#[derive(Debug)]
pub(crate) enum Carrier {
    Wire(Box<Wire>),
    #[cfg(feature = "http2")]
    Lane(Lane),
}

impl Carrier {
    /// Sends a request and waits for the head of its response. Dropping the future gives the exchange up; drop the carrier
    /// too.
    pub(crate) fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + Send {
        // Not awaited here and there: the request would be kept once more in each place, long after it was handed over.
        let mut sent = match self {
            Self::Wire(wire) => wire.send(request),
            #[cfg(feature = "http2")]
            Self::Lane(lane) => lane.send(request),
        };
        poll_fn(move |cx| match self {
            Self::Wire(wire) => wire.poll_sent(&mut sent, cx),
            #[cfg(feature = "http2")]
            Self::Lane(lane) => lane.poll_sent(&mut sent, cx),
        })
    }

    /// The next piece of a response body; `None` is its end. Trailers are passed over.
    pub(crate) fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        match self {
            Self::Wire(wire) => wire.poll_piece(body, cx),
            #[cfg(feature = "http2")]
            Self::Lane(_) => super::multiplex::poll_piece(body, cx),
        }
    }

    /// The connection, if it is the exchange's own.
    #[cfg_attr(not(feature = "http2"), expect(clippy::unnecessary_wraps, reason = "one kind of two"))]
    pub(crate) fn into_wire(self) -> Option<Box<Wire>> {
        match self {
            Self::Wire(wire) => Some(wire),
            #[cfg(feature = "http2")]
            Self::Lane(_) => None,
        }
    }

    /// Whether requests name their authority in their own target, and not in `Host`.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            Self::Wire(_) => false,
            #[cfg(feature = "http2")]
            Self::Lane(_) => true,
        }
    }
}
