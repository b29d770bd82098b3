//! The four kinds of messages; their parts borrow from the received text.

use std::{borrow::Cow, fmt};

use crate::{DecodeError, ErrorObjectRef, RawRef, RequestId, Untrusted};

/// A message or a batch.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 knows a message and a batch of them, nothing else")]
pub enum Incoming<'a> {
    /// One message.
    Single(Message<'a>),
    /// A batch, which only revision 2025-03-26 allows. An invalid item does not affect the others.
    Batch(Vec<Result<Message<'a>, DecodeError>>),
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 knows these four")]
pub enum Message<'a> {
    /// A request, which requires a response.
    Request(Request<'a>),
    /// A notification, which has no response.
    Notification(Notification<'a>),
    /// A response with a result.
    Response(Response<'a>),
    /// A response with an error, or an error without a request.
    Error(ErrorResponse<'a>),
}

/// A request from the peer. Its id is the peer's and unrelated to the ids of this side's calls.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The id, to be repeated in the response, with the same type and value.
    pub id: RequestId,
    /// The method; borrowed unless it has escapes.
    pub method: Cow<'a, str>,
    /// The params: an object or an array; `null` counts as absent.
    pub params: Option<RawRef<'a>>,
}

/// A notification from the peer.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// The method; borrowed unless it has escapes.
    pub method: Cow<'a, str>,
    /// The params: an object or an array; `null` counts as absent.
    pub params: Option<RawRef<'a>>,
}

/// A response with a result to a call of this side.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Response<'a> {
    /// The id of the call.
    pub id: RequestId,
    /// The result: any JSON value.
    pub result: RawRef<'a>,
}

/// A response with an error to a call of this side.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorResponse<'a> {
    /// The id of the call. `None` if the peer could not read it and left it out or wrote `null`: over HTTP the error then belongs to
    /// the request of that exchange, over stdio to no particular call.
    pub id: Option<RequestId>,
    /// The error object.
    pub error: ErrorObjectRef<'a>,
}

impl Message<'_> {
    /// The id, if there is one.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request(request) => Some(&request.id),
            Self::Notification(_) => None,
            Self::Response(response) => Some(&response.id),
            Self::Error(response) => response.id.as_ref(),
        }
    }

    /// The method, if there is one.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(notification) => Some(&notification.method),
            Self::Response(_) | Self::Error(_) => None,
        }
    }
}

/// The method is truncated, and only the length of the params is shown.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("id", &self.id)
            .field("method", &format_args!("{}", Untrusted::capped(&self.method).quoted()))
            .field("params", &self.params)
            .finish()
    }
}

/// The method is truncated, and only the length of the params is shown.
impl fmt::Debug for Notification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification")
            .field("method", &format_args!("{}", Untrusted::capped(&self.method).quoted()))
            .field("params", &self.params)
            .finish()
    }
}
