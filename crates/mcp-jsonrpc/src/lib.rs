#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer_scan;
mod awaited;
mod code;
mod decode;
mod decode_error;
mod depth;
pub mod encode;
mod envelope;
mod error_object;
mod id;
mod in_flight;
mod key;
mod limits;
mod lines;
mod members;
mod message;
mod owned;
mod plain;
mod raw;
mod reader;
mod scan;
mod token;
mod untrusted;

pub use answer_scan::AnswerScan;
pub use awaited::{Awaited, decode_awaited};
pub use code::{CodeRange, ErrorCode};
pub use decode::{decode, decode_slice};
pub use decode_error::{DecodeError, DecodeErrorKind, Shape};
pub use encode::{EncodeError, EncodeErrorKind};
pub use error_object::{ErrorObject, ErrorObjectRef};
pub use id::RequestId;
pub use in_flight::{Full, InFlight, Removed};
pub use limits::DecodeLimits;
pub use lines::{Line, LineDecoder, LineLimits};
pub use message::{ErrorResponse, Incoming, Message, Notification, Request, Response};
pub use owned::OwnedMessage;
pub use plain::{PlainAnswer, plain_answer};
pub use raw::{ParseError, RawJson, RawRef};
pub use untrusted::Untrusted;
