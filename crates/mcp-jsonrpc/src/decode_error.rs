//! Why a text is not a message, where, and which call it would have concerned.

use std::fmt;

use crate::{ErrorCode, RequestId};

/// Refusal of a text by [`decode`](crate::decode).
///
/// It concerns this text only: the stream it came on is still in step. When [`id`](Self::id) is known and
/// [`shape`](Self::shape) says that the text was a response, exactly that call has failed; nothing else has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    offset: usize,
    shape: Shape,
    id: Option<RequestId>,
}

/// What a refused text tried to be, as far as it could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// It has a `method`: the id, if any, is the peer's own, and no call of ours is concerned.
    Request,
    /// It has no `method` (or a null one beside an answer), and `jsonrpc`, `result` or an `error` object: the id, if any,
    /// is that of a call of ours.
    Response,
    /// Nothing is known: reading ended before it showed, it has the members of both, or it is an object that merely has
    /// an `id`, such as a line of a log.
    Unknown,
}

/// What is wrong. The snake case name is [`as_str`](Self::as_str).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A batch has more items than the limit; the ones before it were delivered.
    BatchTooLong {
        /// [`DecodeLimits::max_batch_items`](crate::DecodeLimits::max_batch_items).
        limit: usize,
    },
    /// A response has `result` and `error`.
    BothResultAndError,
    /// A raw control character (NUL included) in a string; JSON wants it escaped.
    ControlCharacter,
    /// A member that the envelope defines comes twice.
    DuplicateKey {
        /// The member.
        key: &'static str,
    },
    /// An array without items.
    EmptyBatch,
    /// A number with a fraction or an exponent as id.
    FractionalId,
    /// An integer id that does not fit 64 bits.
    IdOutOfRange,
    /// A string id longer than the limit.
    IdTooLong {
        /// Its length after unescaping.
        bytes: usize,
        /// [`DecodeLimits::max_id_bytes`](crate::DecodeLimits::max_id_bytes).
        limit: usize,
    },
    /// `error` is no object with an integer `code` and a string `message`.
    InvalidError,
    /// A backslash that no JSON escape begins with.
    InvalidEscape,
    /// `id` is neither an integer nor a string.
    InvalidId,
    /// `method` is no string.
    InvalidMethod,
    /// `params` is neither an object nor an array.
    InvalidParams,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// An escaped surrogate without its other half.
    LoneSurrogate,
    /// `method` together with `result` or `error`.
    MethodWithResult,
    /// A closing bracket of the wrong kind.
    MismatchedBracket,
    /// A result without `id`.
    MissingId,
    /// No `jsonrpc` member. Most log lines that happen to be JSON end here.
    MissingVersion,
    /// No `method`, no `result` and no `error`.
    NeitherResultNorError,
    /// The id is null where one is required.
    NullId,
    /// JSON, but neither an object nor a batch.
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
    /// Something other than white space after the message.
    TrailingBytes,
    /// The text ends inside the message.
    UnexpectedEnd,
    /// `jsonrpc` is not `"2.0"`.
    WrongVersion,
}

impl DecodeErrorKind {
    /// The code of the error response that a receiver owes for this (JSON-RPC 2.0, section 5.1): parse error for what is
    /// no JSON, invalid request for everything that is.
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
            Self::InvalidUtf8 => f.write_str("invalid utf-8"),
            Self::LoneSurrogate => f.write_str("escaped surrogate without its other half"),
            Self::MethodWithResult => f.write_str("method together with result or error"),
            Self::MismatchedBracket => f.write_str("closing bracket of the wrong kind"),
            Self::MissingId => f.write_str("result without id"),
            Self::MissingVersion => f.write_str("no jsonrpc member"),
            Self::NeitherResultNorError => f.write_str("neither method nor result nor error"),
            Self::NotAnObject => f.write_str("neither an object nor a batch"),
            Self::NullId => f.write_str("id is null"),
            Self::Syntax => f.write_str("not json"),
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

    /// Where, in bytes from the start of the text. For a member that is missing this is the end of the envelope.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The id that the text carries, when it could be read without doubt. An integral number in a forbidden notation
    /// (`1.0`) counts; two different ids do not.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// What the text tried to be, and so whose [`id`](Self::id) it is.
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
