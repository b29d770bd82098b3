#![doc = include_str!("../README.md")]
//!
//! # The three layers
//!
//! 1. **Data**: [`ElicitRequest::parse`] reads the `params` of `elicitation/create`, or says everything that is
//!    wrong with it; [`ElicitRequest::check`] fills an answer with defaults and says everything that is wrong with
//!    it; [`UrlPolicy::examine`] judges a URL.
//! 2. **A form**: [`Form`] holds the values that a person has entered so far.
//! 3. **Bookkeeping**: [`Elicitations`] keeps the open questions of all servers of a host, with time as an argument.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use mcp_elicitation::{
//!     ElicitRequest, ElicitResult, ElicitationLimits, Elicitations, Event, Form, ReplyBody, RequestRules, Revision,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let params = r#"{"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {
//! #     "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"}}}}"#;
//! let mut open = Elicitations::new(ElicitationLimits::default());
//! let connection = open.open_connection("paint-server", RequestRules::new(Revision::V2025_11_25));
//!
//! // The server's request with id 7 arrives.
//! let now = Instant::now();
//! open.handle_request(now, connection, 7, params);
//! let Some(Event::Asked(asked)) = open.poll_event() else { panic!("a question") };
//! assert_eq!(asked.server, "paint-server");
//!
//! // A person looks at it, and answers.
//! open.shown(asked.question)?;
//! let answer = match &*asked.request {
//!     ElicitRequest::Form(request) => {
//!         let mut form = Form::new(request);
//!         form.set_text("colour", "red")?;
//!         form.submit()?
//!     }
//!     _ => ElicitResult::decline(),
//! };
//! open.answer(now + Duration::from_secs(5), asked.question, answer)?;
//!
//! // What to send back.
//! let reply = open.poll_reply().ok_or("a reply")?;
//! assert_eq!((reply.connection, reply.key), (connection, 7));
//! let ReplyBody::Result(result) = reply.body else { panic!("a result") };
//! assert_eq!(serde_json::to_string(&result)?, r#"{"action":"accept","content":{"colour":"red"}}"#);
//! # Ok(())
//! # }
//! ```
//!
//! # What is decided here, where the specification leaves room
//!
//! - Only what has a meaning in the flat subset is checked. `$ref`, composition, nested objects and free arrays are
//!   refused with a pointer; every other unknown keyword and `format` is kept and changes nothing. The common
//!   `exclusiveMinimum`, `exclusiveMaximum`, `uniqueItems` and `pattern` are honoured where they appear.
//! - Further members of an answer pass unless the schema says `additionalProperties: false`.
//! - Lengths count Unicode code points. Integers in the range of `i64` and `u64` are exact; an integer literal beyond
//!   is the nearest 64-bit float, as `serde_json` reads it.
//! - An `elicitationId` that ended, in whatever way, is never asked again: an old completion must not authorise a new
//!   retry.
//! - Text for people is safe to show as it comes out of the accessors. Names and option values are exact.

#![forbid(unsafe_code)]

mod batch;
mod error;
mod form;
mod format;
mod inbox;
mod json;
mod limits;
mod machine;
mod number;
mod path;
mod pattern;
mod reader;
mod request;
#[cfg(test)]
mod request_tests;
mod result;
mod revision;
mod schema;
mod text;
mod url;
mod violation;

pub use self::{
    batch::{RetryPermit, URL_ELICITATION_REQUIRED, UrlBatch},
    error::{AnswerError, RequestError},
    form::{Form, UnknownField},
    inbox::{Inbox, InboxAnswer, InboxEntry, InboxError, InboxParams, MemoryInbox},
    limits::{Modes, RequestLimits, RequestRules},
    machine::{
        Asked, ConnectionId, DeferReason, ElicitationLimits, Elicitations, End, Event, FlowId, FlowOutcome,
        Misuse, Origin, QuestionId, QuestionState, Refusal, Reply, ReplyBody, Wait, WaiterId,
    },
    request::{ElicitRequest, FormRequest, UrlRequest},
    result::{ElicitAction, ElicitResult},
    revision::{Revision, UnknownRevision},
    schema::{
        BooleanField, Choice, Field, FieldKind, FormSchema, Format, MultiSelectField, NumberField,
        SelectField, StringField,
    },
    text::Untrusted,
    url::{SafeUrl, UrlPolicy, UrlRefusal, UrlReport, UrlVerdict, UrlWarning},
    violation::{Rule, Violation},
};
