//! A message that owns its parts.

use std::{borrow::Cow, sync::Arc};

use crate::{
    ErrorObject, ErrorObjectRef, ErrorResponse, Message, Notification, RawJson, RawRef, Request, RequestId,
    Response,
};

/// A [`Message`] that owns its parts, to keep it or to move it to another task.
///
/// ```
/// use std::sync::Arc;
///
/// use mcp_jsonrpc::{DecodeLimits, Incoming, decode};
///
/// let text = Arc::new(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1.50}}"#.to_owned());
/// let Ok(Incoming::Single(message)) = decode(&text, &DecodeLimits::default()) else {
///     panic!("one message");
/// };
/// let owned = message.to_shared(&text);
/// std::thread::spawn(move || assert_eq!(owned.as_message().method(), Some("ping"))).join().unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedMessage(Owned);

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Request(RequestId, Method, Option<RawJson>),
    Notification(Method, Option<RawJson>),
    Response(RequestId, RawJson),
    Error(Option<RequestId>, ErrorObject),
}

/// `Debug` shows it as [`Message`] does.
#[derive(Clone, PartialEq)]
struct Method(Box<str>);

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", crate::Untrusted::capped(&self.0).quoted())
    }
}

impl Message<'_> {
    /// Copies the parts, with one allocation for each.
    #[must_use]
    pub fn to_owned(&self) -> OwnedMessage {
        self.keep(None)
    }

    /// Shares the text that params, result and error data are in, without copying them; see [`RawRef::to_shared`].
    #[must_use]
    pub fn to_shared(&self, text: &Arc<String>) -> OwnedMessage {
        self.keep(Some(text))
    }

    fn keep(&self, text: Option<&Arc<String>>) -> OwnedMessage {
        let keep = |raw: RawRef<'_>| text.map_or_else(|| raw.to_owned(), |text| raw.to_shared(text));
        let method = |method: &str| Method(method.into());
        OwnedMessage(match self {
            Self::Request(request) => {
                Owned::Request(request.id.clone(), method(&request.method), request.params.map(keep))
            }
            Self::Notification(told) => Owned::Notification(method(&told.method), told.params.map(keep)),
            Self::Response(response) => Owned::Response(response.id.clone(), keep(response.result)),
            Self::Error(refused) => {
                let ErrorObjectRef { code, message, data } = &refused.error;
                let error =
                    ErrorObject { code: *code, message: message.as_ref().into(), data: data.map(keep) };
                Owned::Error(refused.id.clone(), error)
            }
        })
    }
}

impl OwnedMessage {
    /// The message, borrowed.
    #[must_use]
    pub fn as_message(&self) -> Message<'_> {
        match &self.0 {
            Owned::Request(id, method, params) => Message::Request(Request {
                id: id.clone(),
                method: Cow::Borrowed(&method.0),
                params: params.as_ref().map(RawJson::as_raw_ref),
            }),
            Owned::Notification(method, params) => Message::Notification(Notification {
                method: Cow::Borrowed(&method.0),
                params: params.as_ref().map(RawJson::as_raw_ref),
            }),
            Owned::Response(id, result) => {
                Message::Response(Response { id: id.clone(), result: result.as_raw_ref() })
            }
            Owned::Error(id, error) => Message::Error(ErrorResponse { id: id.clone(), error: error.into() }),
        }
    }
}
