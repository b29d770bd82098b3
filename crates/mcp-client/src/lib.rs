#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod builder;
mod canonical;
mod client;
mod close_reason;
mod defaults;
mod desk;
mod driver;
mod elicitation;
mod endpoint;
mod error;
mod event;
mod event_queue;
mod extension;
mod fingerprint;
mod fresh_list;
#[cfg(feature = "host")]
pub mod host;
mod identity;
mod requests;
mod sampling;
#[cfg(feature = "schema")]
pub mod schema;
mod sha256_text;
#[cfg(feature = "skills")]
pub mod skills;
mod spawning;
mod structured;
mod subscription;
mod tasks;
mod telling;

pub use builder::ClientBuilder;
pub use client::{Client, Closed};
pub use close_reason::CloseReason;
pub use desk::{
    AnyElicitationHandler, Desk, DeskConfig, ElicitationEvent, ElicitationRoute, Elicitations, OpenQuestion,
    PendingElicitation, WaitingCall,
};
pub use elicitation::{ElicitReply, ElicitationContext, ElicitationHandler};
pub use endpoint::Endpoint;
pub use error::{Error, ErrorKind, ErrorReport, Limit};
pub use event::{ClientEvent, Events};
pub use fingerprint::{InvalidFingerprint, ToolFingerprint, tool_fingerprint};
pub use fresh_list::{FreshList, ListState};
pub use mcp_elicitation::{
    AnswerError, Choice, DeferReason, ElicitAction, ElicitRequest, ElicitResult, ElicitationLimits, End,
    Field, FieldKind, FlowId, FlowOutcome, Form, FormRequest, FormSchema, Inbox, InboxAnswer, InboxEntry,
    InboxError, MemoryInbox, Misuse as DeskMisuse, QuestionId, QuestionState, Refusal, RequestLimits,
    Revision, SafeUrl, Untrusted, UrlPolicy, UrlRequest, UrlWarning,
};
pub use mcp_jsonrpc::{DecodeLimits, ErrorCode, ErrorObject, RawJson, RequestId};
pub use mcp_model as model;
pub use mcp_proto::{
    Answer, CacheConfig, CacheUse, Diagnostic, DiagnosticKind, ElicitationSupport, Era, InputRequest, Limits,
    ListKind, Mode, RetryConfig, ServerFacts, StoredTask, SuspendedCall, TaskConfig, TaskError, TaskUpdate,
    UnreadableQuestion, Verdict, VerdictReason,
};
#[cfg(feature = "http")]
pub use mcp_transport::http::HttpServer;
pub use mcp_transport::stdio::{LineConnection, StdioServer};
pub use mcp_transport::{self as transport, ProcessExit, TlsFailure};
pub use requests::{Call, CallFuture, List, ListedItem, Outcome, Pages};
pub use sampling::{SamplingContext, SamplingHandler};
pub use structured::{StructuredError, read_structured};
pub use subscription::{Change, Subscription};
pub use tasks::{Task, TaskCall};
