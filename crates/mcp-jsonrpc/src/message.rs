//! The four kinds of message, with their parts still inside the received text.

use std::{borrow::Cow, fmt};

use crate::{DecodeError, ErrorObjectRef, RawRef, RequestId, Untrusted};

/// What one received text holds.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 knows a message and a batch of them, nothing else")]
pub enum Incoming<'a> {
    /// One message.
    Single(Message<'a>),
    /// An array of messages, which revision 2025-03-26 allows and the later ones do not. Each item stands for itself:
    /// one that is refused does not touch its neighbours.
    Batch(Vec<Result<Message<'a>, DecodeError>>),
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 knows these four")]
pub enum Message<'a> {
    /// The peer asks and waits for an answer.
    Request(Request<'a>),
    /// The peer tells and waits for nothing. It is never answered.
    Notification(Notification<'a>),
    /// The peer answers with a result.
    Response(Response<'a>),
    /// The peer answers with an error, or reports a fault that it cannot tie to a request.
    Error(ErrorResponse<'a>),
}

/// A request from the peer. Its id is from the peer's own numbers and has nothing to do with ids of our calls.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// To be repeated in the answer, type and value.
    pub id: RequestId,
    /// What is asked; borrowed unless it has escapes.
    pub method: Cow<'a, str>,
    /// An object or an array; `null` counts as absent.
    pub params: Option<RawRef<'a>>,
}

/// A notification from the peer.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// What is told; borrowed unless it has escapes.
    pub method: Cow<'a, str>,
    /// An object or an array; `null` counts as absent.
    pub params: Option<RawRef<'a>>,
}

/// An answer to a call of ours.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Response<'a> {
    /// The id of the call.
    pub id: RequestId,
    /// Any JSON value.
    pub result: RawRef<'a>,
}

/// An error answer to a call of ours.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorResponse<'a> {
    /// The id of the call. None when the peer left it out or wrote `null`, because it could not read ours: over HTTP
    /// it then answers the request that it came back for, on stdio it concerns no call in particular.
    pub id: Option<RequestId>,
    /// What went wrong.
    pub error: ErrorObjectRef<'a>,
}

impl Message<'_> {
    /// The id, where there is one.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Request(request) => Some(&request.id),
            Self::Notification(_) => None,
            Self::Response(response) => Some(&response.id),
            Self::Error(response) => response.id.as_ref(),
        }
    }

    /// The method, where there is one.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(notification) => Some(&notification.method),
            Self::Response(_) | Self::Error(_) => None,
        }
    }
}

/// The method is capped, and the params show their length only.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("id", &self.id)
            .field("method", &format_args!("{}", Untrusted::quoted(&self.method)))
            .field("params", &self.params)
            .finish()
    }
}

/// The method is capped, and the params show their length only.
impl fmt::Debug for Notification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification")
            .field("method", &format_args!("{}", Untrusted::quoted(&self.method)))
            .field("params", &self.params)
            .finish()
    }
}
