//! The events of a connection.

use std::sync::Arc;

use mcp_elicitation::ElicitRequest;
use mcp_jsonrpc::{RawJson, RequestId};
use mcp_model::{LoggingMessageNotificationParams, ProgressNotificationParams, SubscriptionFilter};

use crate::call::CallId;
use crate::diagnostic::Diagnostic;
use crate::error::CallError;
use crate::tasks::TaskUpdate;
use crate::urls_required::UrlsRequired;

/// An event of the connection, in the order of arrival.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A call ended. Exactly one for each [`CallId`] that was not forgotten.
    CallEnded {
        /// The call.
        call: CallId,
        /// Its result, raw, or why there is none.
        outcome: Result<RawJson, CallError>,
    },
    /// The deadline of a call has changed ([`Connection::call_deadline`](crate::Connection::call_deadline)): the user has
    /// answered what was asked in the middle of it.
    CallDeadlineMoved {
        /// The call.
        call: CallId,
    },
    /// A call has nothing on the wire for a while, and goes on by itself at another time than before
    /// ([`Connection::call_deadline`](crate::Connection::call_deadline)).
    CallPaused {
        /// The call.
        call: CallId,
    },
    /// The server reports that a URL elicitation is complete (`notifications/elicitation/complete`).
    ElicitationComplete {
        /// The opaque id given by the server.
        elicitation_id: String,
    },
    /// An irregularity that ended nothing.
    Diagnostic(Diagnostic),
    /// A list of the server changed.
    ListChanged(ListKind),
    /// The server logged a message.
    Log(LoggingMessageNotificationParams),
    /// A notification that this library has no type for.
    OtherNotification {
        /// Its method.
        method: String,
        /// Its params, raw.
        params: Option<RawJson>,
    },
    /// Progress of a call.
    Progress {
        /// The call.
        call: CallId,
        /// What the server said.
        progress: ProgressNotificationParams,
    },
    /// The handshake is complete: ordinary calls are allowed from now on.
    Ready,
    /// A subscribed resource changed.
    ResourceUpdated {
        /// The resource's URI, as the server wrote it.
        uri: String,
    },
    /// The server had lost the session, and a new one is open. Cursors and subscriptions that the application made by itself
    /// in the old session are void; log level and subscriptions made through this connection are being restored.
    SessionRenewed,
    /// A subscription is active ([`Connection::listen`](crate::Connection::listen)).
    Subscribed {
        /// The subscription.
        call: CallId,
        /// What the server grants, possibly less than was requested.
        granted: SubscriptionFilter,
    },
    /// A request of the server that the application must answer with [`Connection::answer`](crate::Connection::answer).
    ServerRequest(ServerRequest),
    /// An open request of the server no longer needs an answer; answering it is refused from now on.
    ServerRequestEnded {
        /// The question.
        request: ServerRequestId,
        /// Why.
        reason: EndReason,
    },
    /// A call became a task, or its task changed. The first such event precedes any further request about the task.
    Task {
        /// The call.
        call: CallId,
        /// The status of the task.
        update: Box<TaskUpdate>,
    },
    /// The server refused a call until URL elicitations have happened; the call is paused for them.
    UrlsRequired(UrlsRequired),
    /// A call that was paused for URL elicitations ended: they are not needed any more.
    UrlsRequiredEnded {
        /// The call.
        call: CallId,
    },
}

/// Which list changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListKind {
    /// `prompts/list`
    Prompts,
    /// `resources/list` and `resources/templates/list`
    Resources,
    /// `tools/list`
    Tools,
}

/// The id of a server request. Unlike the JSON-RPC id, which the server chooses, it is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestId(pub(crate) u64);

/// A request of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The handle to answer it with.
    pub id: ServerRequestId,
    /// Its JSON-RPC id, for logs.
    pub wire_id: RequestId,
    /// The call on whose own stream it came, where the transport can tell (Streamable HTTP).
    pub related_call: Option<CallId>,
    /// The [`CallOptions::route`](crate::CallOptions::route) of the call in the middle of which it is asked: of the
    /// related call; where the transport cannot tell that (a shared channel), of the calls that wait for their answer, if
    /// all of them have the same.
    pub route: Option<Arc<str>>,
    /// The content.
    pub input: InputRequest,
}

/// A request that a server may make of the application. (`mcp_model::InputRequest` is one entry of a result in its wire form.)
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputRequest {
    /// `elicitation/create`, already checked.
    Elicit(ElicitRequest),
    /// `sampling/createMessage`, params raw.
    CreateMessage(RawJson),
}

/// Why a server request no longer needs an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The call in the middle of which it was asked has ended.
    CallEnded,
    /// The connection ended.
    Closed,
    /// Nobody answered within [`Config::server_request_timeout`](crate::Config::server_request_timeout).
    TimedOut,
    /// The server withdrew it (`notifications/cancelled`).
    Withdrawn,
}

/// The application's answer to a request of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// To [`InputRequest::Elicit`]. It is validated against the request; an invalid one is sent as `cancel` and reported as a
    /// diagnostic.
    Elicit(mcp_elicitation::ElicitResult),
    /// A refusal or failure, as the error object that goes on the wire.
    Error(mcp_jsonrpc::ErrorObject),
    /// Any other result, raw.
    Result(RawJson),
}
