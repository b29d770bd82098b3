//! A JSON-RPC message to post, with the facts that its HTTP head needs.

use std::fmt;

use bytes::Bytes;
use mcp_jsonrpc::RequestId;

/// One JSON-RPC message to POST (spec: one message per POST).
///
/// `Debug` shows the size of the body, not its text.
#[derive(Clone)]
#[non_exhaustive]
pub struct Post {
    /// The encoded message. Shared, not copied, when a redirect makes it necessary to send it again.
    pub body: Bytes,
    /// The kind of the message, which decides what is accepted as its response.
    pub kind: PostKind,
    /// The routing headers that mirror the message.
    pub head: RequestHead,
    /// Whether a broken response stream may be resumed by GET with `Last-Event-ID`. True for legacy revisions from 2025-03-26,
    /// false for 2026-07-28, where a lost stream loses its request.
    pub resumable: bool,
}

impl Post {
    /// A request whose response stream may be resumed unless `head` belongs to the modern era.
    #[must_use]
    pub fn request(body: Bytes, id: RequestId, head: RequestHead) -> Self {
        let resumable = !head.is_modern();
        Self { body, kind: PostKind::Request { id, establishes_session: false }, head, resumable }
    }

    /// The legacy `initialize` request: sent without session id and version header, and the only one whose response may
    /// name a session.
    #[must_use]
    pub fn initialize(body: Bytes, id: RequestId) -> Self {
        Self {
            body,
            kind: PostKind::Request { id, establishes_session: true },
            head: RequestHead::default(),
            resumable: true,
        }
    }

    /// A notification: any 2xx accepts it.
    #[must_use]
    pub fn notification(body: Bytes, head: RequestHead) -> Self {
        Self { body, kind: PostKind::Notification, head, resumable: false }
    }

    /// The answer to a request of the server (legacy revisions only): any 2xx accepts it.
    #[must_use]
    pub fn response(body: Bytes, head: RequestHead) -> Self {
        Self { body, kind: PostKind::Response, head, resumable: false }
    }
}

/// The progress of a posted message, as [`HttpConnection::post_watched`](super::HttpConnection::post_watched) reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Departure {
    /// A connection is open, and bytes of the message may be sent from now on.
    Leaves,
    /// No byte of the message was sent after all; it waits for another connection.
    Stays,
}

/// What a posted message is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostKind {
    /// A notification; its HTTP response carries nothing.
    Notification,
    /// A request; its HTTP response carries the JSON-RPC response.
    Request {
        /// The id that the response must echo.
        id: RequestId,
        /// Whether this is the legacy `initialize`, whose response may name a session.
        establishes_session: bool,
    },
    /// A response to a request of the server; its HTTP response carries nothing.
    Response,
}

/// The MCP headers of a message, before encoding.
///
/// Legacy revisions use only `protocol_version`. A head with a `method` belongs to the modern era (2026-07-28): no
/// session id is sent with it, and nothing is resumed.
///
/// `Debug` leaves the user's own text out: the name and the values of the parameters.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestHead {
    /// `MCP-Protocol-Version`: the negotiated revision, or the one in the message's `_meta`.
    pub protocol_version: Option<String>,
    /// `Mcp-Method`: the method of the message.
    pub method: Option<String>,
    /// `Mcp-Name`: the tool, prompt, resource or task that the message names, as plain text. It is encoded here when it
    /// is not safe in a header.
    pub name: Option<String>,
    /// `Mcp-Param-*`: suffix and plain text of each tool parameter that the server wants mirrored. Encoded as `name`.
    pub params: Vec<(String, String)>,
}

impl RequestHead {
    /// The head of a legacy message after `initialize`.
    #[must_use]
    pub fn legacy(protocol_version: impl Into<String>) -> Self {
        Self { protocol_version: Some(protocol_version.into()), ..Self::default() }
    }

    /// The head of a modern message.
    #[must_use]
    pub fn modern(protocol_version: impl Into<String>, method: impl Into<String>) -> Self {
        Self {
            protocol_version: Some(protocol_version.into()),
            method: Some(method.into()),
            ..Self::default()
        }
    }

    /// Whether the modern routing headers are in use.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.method.is_some()
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("body_bytes", &self.body.len())
            .field("kind", &self.kind)
            .field("head", &self.head)
            .field("resumable", &self.resumable)
            .finish()
    }
}

impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<&str> = self.params.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("RequestHead")
            .field("protocol_version", &self.protocol_version)
            .field("method", &self.method)
            .field("has_name", &self.name.is_some())
            .field("params", &params)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// auth:SEC-14
    #[test]
    fn nothing_of_the_users_own_is_shown() {
        let mut head = RequestHead::modern("2026-07-28", "tools/call");
        head.name = Some("canary".to_owned());
        head.params = vec![("Region".to_owned(), "canary".to_owned())];
        let post = Post::request(Bytes::from_static(b"{\"canary\":1}"), RequestId::Integer(1), head);
        let shown = format!("{post:?}");
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("tools/call") && shown.contains("Region"), "{shown}");
    }
}
