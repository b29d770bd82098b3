//! Model Context Protocol elicitation: request and answer validation, defaults, URL safety, state machine.

#![forbid(unsafe_code)]

mod error;
mod format;
mod json;
mod limits;
mod number;
mod path;
mod pattern;
mod reader;
mod request;
mod result;
mod revision;
mod schema;
mod text;
mod url;
mod violation;

pub use self::{
    error::{AnswerError, RequestError},
    limits::{Modes, RequestLimits, RequestRules},
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
