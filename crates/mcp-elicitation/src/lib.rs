//! Model Context Protocol elicitation: request and answer validation, defaults, URL safety, state machine.

#![forbid(unsafe_code)]

mod batch;
mod error;
mod form;
mod format;
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
