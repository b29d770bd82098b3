//! Why a text is not a valid message, at which position, and which call it would have answered.

use std::fmt;

use crate::{ErrorCode, RequestId};

/// The text is not a valid message ([`decode`](crate::decode)).
///
/// It affects this text only: the stream can be read further. If [`id`](Self::id) is known and [`shape`](Self::shape) is
/// [`Shape::Response`], that call has failed, and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    offset: usize,
    shape: Shape,
    id: Option<RequestId>,
}

/// What kind of message an invalid text appears to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// It has a `method`: a request or notification of the peer. The id, if any, is the peer's, and no call of this side is affected.
    Request,
    /// It has no `method` (or a null one beside a result or error), and `jsonrpc`, `result` or an `error` object: the id, if any, is
    /// that of a call of this side.
    Response,
    /// Unknown: the error came before it could be determined, it has the members of both, or it is an object with nothing but an
    /// `id`, such as a line of a log.
    Unknown,
}

/// What is wrong. [`as_str`](Self::as_str) is the name in `snake_case`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A batch has more items than the limit; those within it were delivered.
    BatchTooLong {
        /// [`DecodeLimits::max_batch_items`](crate::DecodeLimits::max_batch_items).
        limit: usize,
    },
    /// A response has both `result` and `error`.
    BothResultAndError,
    /// An unescaped control character in a string.
    ControlCharacter,
    /// A member of the envelope occurs twice.
    DuplicateKey {
        /// The member.
        key: &'static str,
    },
    /// A batch without items.
    EmptyBatch,
    /// An id that is a number with a fraction or an exponent.
    FractionalId,
    /// An integer id outside the range of `i64`.
    IdOutOfRange,
    /// A string id longer than the limit.
    IdTooLong {
        /// Its length after unescaping.
        bytes: usize,
        /// [`DecodeLimits::max_id_bytes`](crate::DecodeLimits::max_id_bytes).
        limit: usize,
    },
    /// `error` is not an object with an integer `code` and a string `message`.
    InvalidError,
    /// An invalid escape sequence in a string.
    InvalidEscape,
    /// `id` is neither an integer nor a string.
    InvalidId,
    /// `method` is not a string.
    InvalidMethod,
    /// `params` is neither an object nor an array.
    InvalidParams,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// A lone surrogate in an escape sequence.
    LoneSurrogate,
    /// `method` together with `result` or `error`.
    MethodWithResult,
    /// A closing bracket that does not match the opening one.
    MismatchedBracket,
    /// A `result` without `id`.
    MissingId,
    /// No `jsonrpc` member, as in most log lines that are JSON.
    MissingVersion,
    /// No `method`, no `result` and no `error`.
    NeitherResultNorError,
    /// The id is `null`, and one is required.
    NullId,
    /// Valid JSON, but neither an object nor an array.
    NotAnObject,
    /// Not JSON.
    Syntax,
    /// Nested deeper than the limit.
    TooDeep {
        /// [`DecodeLimits::max_depth`](crate::DecodeLimits::max_depth), at most 127.
        limit: usize,
    },
    /// Longer than the limit.
    TooLarge {
        /// Its length.
        bytes: usize,
        /// [`DecodeLimits::max_bytes`](crate::DecodeLimits::max_bytes).
        limit: usize,
    },
    /// Text other than white space after the message.
    TrailingBytes,
    /// The text ends before the message is complete.
    UnexpectedEnd,
    /// `jsonrpc` is not `"2.0"`.
    WrongVersion,
}

impl DecodeErrorKind {
    /// The code of the error response to send (JSON-RPC 2.0, section 5.1): "parse error" if the text is not JSON, otherwise
    /// "invalid request".
    #[must_use]
    pub const fn wire_code(self) -> ErrorCode {
        match self {
            Self::ControlCharacter
            | Self::InvalidEscape
            | Self::InvalidUtf8
            | Self::LoneSurrogate
            | Self::MismatchedBracket
            | Self::Syntax
            | Self::TrailingBytes
            | Self::UnexpectedEnd => ErrorCode::PARSE_ERROR,
            _ => ErrorCode::INVALID_REQUEST,
        }
    }

    /// The name in `snake_case`, for machine-readable output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BatchTooLong { .. } => "batch_too_long",
            Self::BothResultAndError => "both_result_and_error",
            Self::ControlCharacter => "control_character",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::EmptyBatch => "empty_batch",
            Self::FractionalId => "fractional_id",
            Self::IdOutOfRange => "id_out_of_range",
            Self::IdTooLong { .. } => "id_too_long",
            Self::InvalidError => "invalid_error",
            Self::InvalidEscape => "invalid_escape",
            Self::InvalidId => "invalid_id",
            Self::InvalidMethod => "invalid_method",
            Self::InvalidParams => "invalid_params",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::LoneSurrogate => "lone_surrogate",
            Self::MethodWithResult => "method_with_result",
            Self::MismatchedBracket => "mismatched_bracket",
            Self::MissingId => "missing_id",
            Self::MissingVersion => "missing_version",
            Self::NeitherResultNorError => "neither_result_nor_error",
            Self::NotAnObject => "not_an_object",
            Self::NullId => "null_id",
            Self::Syntax => "syntax",
            Self::TooDeep { .. } => "too_deep",
            Self::TooLarge { .. } => "too_large",
            Self::TrailingBytes => "trailing_bytes",
            Self::UnexpectedEnd => "unexpected_end",
            Self::WrongVersion => "wrong_version",
        }
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BatchTooLong { limit } => write!(f, "batch of more than {limit} messages"),
            Self::BothResultAndError => f.write_str("response with both result and error"),
            Self::ControlCharacter => f.write_str("unescaped control character in a string"),
            Self::DuplicateKey { key } => write!(f, "member {key} comes twice"),
            Self::EmptyBatch => f.write_str("batch without messages"),
            Self::FractionalId => f.write_str("id is a number but not written as an integer"),
            Self::IdOutOfRange => f.write_str("integer id exceeds 64 bits"),
            Self::IdTooLong { bytes, limit } => write!(f, "id of {bytes} bytes exceeds the limit of {limit}"),
            Self::InvalidError => f.write_str("error is no object with an integer code and a string message"),
            Self::InvalidEscape => f.write_str("invalid escape in a string"),
            Self::InvalidId => f.write_str("id is neither an integer nor a string"),
            Self::InvalidMethod => f.write_str("method is no string"),
            Self::InvalidParams => f.write_str("params is neither an object nor an array"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::LoneSurrogate => f.write_str("escaped surrogate without its other half"),
            Self::MethodWithResult => f.write_str("method together with result or error"),
            Self::MismatchedBracket => f.write_str("closing bracket of the wrong kind"),
            Self::MissingId => f.write_str("result without id"),
            Self::MissingVersion => f.write_str("no jsonrpc member"),
            Self::NeitherResultNorError => f.write_str("neither method nor result nor error"),
            Self::NotAnObject => f.write_str("neither an object nor a batch"),
            Self::NullId => f.write_str("id is null"),
            Self::Syntax => f.write_str("not JSON"),
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "message of {bytes} bytes exceeds the limit of {limit}")
            }
            Self::TrailingBytes => f.write_str("more text after the message"),
            Self::UnexpectedEnd => f.write_str("text ends inside the message"),
            Self::WrongVersion => f.write_str("jsonrpc is not \"2.0\""),
        }
    }
}

impl DecodeError {
    pub(crate) fn new(fault: Fault, shape: Shape, id: Option<RequestId>) -> Self {
        Self { kind: fault.kind, offset: fault.offset, shape, id }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// The position, in bytes from the start of the text. For a missing member it is the end of the envelope.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The id of the message, if it is unambiguous. A whole number in a forbidden notation (`1.0`) counts; two different ids do
    /// not.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// What kind of message the text appears to be, which determines whose [`id`](Self::id) it is.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl std::error::Error for DecodeError {}

/// A kind with its place; becomes a [`DecodeError`] once the rest of the envelope was searched for an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: DecodeErrorKind,
    pub(crate) offset: usize,
}

impl Fault {
    pub(crate) fn new(kind: DecodeErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }
}

impl From<Fault> for DecodeError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, Shape::Unknown, None)
    }
}
