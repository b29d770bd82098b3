//! The members of one message, collected in whatever order they come, and what they make together.
//!
//! A fault that leaves the structure intact (a wrong version, a duplicate key, a value of the wrong type) is noted, and
//! reading goes on to the end of the envelope, because the id may come last. A fault of the structure ends it.

use std::borrow::Cow;

use crate::{
    DecodeError, DecodeErrorKind, ErrorCode, ErrorObjectRef, ErrorResponse, Message, Notification, RawRef,
    Request, RequestId, Response, Shape, decode_error::Fault, key::Key, reader::Reader, token::Number,
};

/// Decodes the object at the reader's place, which lies `outer` levels deep.
pub(crate) fn message<'a>(reader: &mut Reader<'a, '_>, outer: usize) -> Result<Message<'a>, DecodeError> {
    let mut envelope = Envelope::default();
    let read = envelope.read(reader, outer + 1);
    let fault = reader.fault.take().or(read.err());
    match fault {
        None => envelope.finish(reader.pos),
        Some(fault) => Err(envelope.refuse(fault)),
    }
}

#[derive(Default)]
struct Envelope<'a> {
    /// One bit for each [`Member`] that was read.
    seen: u8,
    /// The closing brace was reached.
    complete: bool,
    /// A `method` was read that is not null.
    named: bool,
    id: Id,
    method: Option<Cow<'a, str>>,
    params: Option<RawRef<'a>>,
    result: Option<RawRef<'a>>,
    error: Option<ErrorObjectRef<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Version = 1,
    Id = 2,
    Method = 4,
    Params = 8,
    Result = 16,
    Error = 32,
    /// An `error` that is not null.
    SomeError = 64,
    /// An `error` that is an object.
    ErrorObject = 128,
}

#[derive(Default)]
enum Id {
    #[default]
    Absent,
    Null,
    Valid(RequestId),
    /// Refused, with what can be said of it.
    Invalid(Option<RequestId>),
}

impl<'a> Envelope<'a> {
    fn read(&mut self, reader: &mut Reader<'a, '_>, depth: usize) -> Result<(), Fault> {
        let mut more = reader.enter_object(depth);
        while more {
            let offset = reader.pos;
            match self.member(reader, offset)? {
                Some(Member::Version) => version(reader, depth)?,
                Some(Member::Id) => self.id(reader, depth)?,
                Some(Member::Method) => {
                    self.named |= !reader.rest().starts_with(b"null");
                    self.method = method(reader, depth)?;
                }
                Some(Member::Params) => self.params = params(reader, depth)?,
                Some(Member::Result) => self.result = Some(reader.value(depth)?),
                Some(Member::Error) => {
                    if !reader.null() {
                        self.seen |= Member::SomeError as u8;
                        if reader.peek() == Some(b'{') {
                            self.seen |= Member::ErrorObject as u8;
                        }
                        self.error = error_object(reader, depth)?;
                    }
                }
                Some(Member::SomeError | Member::ErrorObject) | None => {
                    reader.value(depth)?;
                }
            }
            more = reader.next_member()?;
        }
        self.complete = true;
        Ok(())
    }

    /// Reads a key; None for one that the envelope does not define.
    fn member(&mut self, reader: &mut Reader<'a, '_>, offset: usize) -> Result<Option<Member>, Fault> {
        let (member, key) = match Key::read(reader)? {
            Key::Jsonrpc => (Member::Version, "jsonrpc"),
            Key::Id => (Member::Id, "id"),
            Key::Method => (Member::Method, "method"),
            Key::Params => (Member::Params, "params"),
            Key::Result => (Member::Result, "result"),
            Key::Error => (Member::Error, "error"),
            Key::Code | Key::Data | Key::Message | Key::Other => return Ok(None),
        };
        if self.has(member) {
            reader.note(DecodeErrorKind::DuplicateKey { key }, offset);
        }
        self.seen |= member as u8;
        Ok(Some(member))
    }

    fn has(&self, member: Member) -> bool {
        self.seen & member as u8 != 0
    }

    fn id(&mut self, reader: &mut Reader<'a, '_>, depth: usize) -> Result<(), Fault> {
        let id = read_id(reader, depth)?;
        self.id = match std::mem::take(&mut self.id) {
            Id::Absent => id,
            // A second id was noted as a duplicate; it only confirms the first one or makes it doubtful.
            earlier => Id::Invalid(earlier.into_known().filter(|earlier| id.known() == Some(earlier))),
        };
        Ok(())
    }

    /// Judges a message whose members are each in order.
    fn finish(self, end: usize) -> Result<Message<'a>, DecodeError> {
        use DecodeErrorKind::{
            BothResultAndError, MethodWithResult, MissingId, MissingVersion, NeitherResultNorError, NullId,
        };
        let kind = if !self.has(Member::Version) {
            MissingVersion
        } else {
            match (self.method, self.result, self.error, self.id) {
                (Some(method), None, None, Id::Valid(id)) => {
                    return Ok(Message::Request(Request { id, method, params: self.params }));
                }
                (Some(method), None, None, Id::Absent) => {
                    return Ok(Message::Notification(Notification { method, params: self.params }));
                }
                (None, Some(result), None, Id::Valid(id)) => {
                    return Ok(Message::Response(Response { id, result }));
                }
                (None, None, Some(error), id) => {
                    return Ok(Message::Error(ErrorResponse { id: id.into_known(), error }));
                }
                (method, result, error, id) => {
                    let kind = match (&method, &result, &error, &id) {
                        (Some(_), None, None, _) | (None, Some(_), None, Id::Null) => NullId,
                        (Some(_), ..) => MethodWithResult,
                        (None, Some(_), Some(_), _) => BothResultAndError,
                        (None, Some(_), None, _) => MissingId,
                        (None, None, ..) => NeitherResultNorError,
                    };
                    let rest = Envelope { method, result, error, id, ..self };
                    return Err(rest.refuse(Fault::new(kind, end)));
                }
            }
        };
        Err(self.refuse(Fault::new(kind, end)))
    }

    fn refuse(self, fault: Fault) -> DecodeError {
        // Loggers write lines like `{"level":"error","error":"no such file","id":3}`: without the version, an error counts
        // as an answer only in the form that the protocol gives it.
        let versioned = self.has(Member::Version);
        let answers = self.has(Member::Result)
            || (self.has(Member::SomeError) && (versioned || self.has(Member::ErrorObject)));
        let shape = match (self.has(Member::Method), answers) {
            (true, false) => Shape::Request,
            (false, true) => Shape::Response,
            // Some peers write each member they know of, null where it has no value.
            (true, true) if !self.named => Shape::Response,
            // Read to its end, a message of the protocol without a method can only have been meant as an answer.
            (false, false) if self.complete && versioned => Shape::Response,
            _ => Shape::Unknown,
        };
        DecodeError::new(fault, shape, self.id.into_known())
    }
}

impl Id {
    fn known(&self) -> Option<&RequestId> {
        match self {
            Self::Absent | Self::Null => None,
            Self::Valid(id) => Some(id),
            Self::Invalid(id) => id.as_ref(),
        }
    }

    fn into_known(self) -> Option<RequestId> {
        match self {
            Self::Absent | Self::Null => None,
            Self::Valid(id) => Some(id),
            Self::Invalid(id) => id,
        }
    }
}

fn version(reader: &mut Reader<'_, '_>, depth: usize) -> Result<(), Fault> {
    let offset = reader.pos;
    if reader.rest().starts_with(b"\"2.0\"") {
        reader.pos += 5;
        return Ok(());
    }
    match reader.peek() {
        Some(b'"') => match reader.string()?.decode() {
            Ok(version) if version == "2.0" => {}
            Ok(_) => reader.note(DecodeErrorKind::WrongVersion, offset),
            Err(fault) => reader.note(fault.kind, fault.offset),
        },
        _ => {
            reader.value(depth)?;
            reader.note(DecodeErrorKind::WrongVersion, offset);
        }
    }
    Ok(())
}

fn read_id(reader: &mut Reader<'_, '_>, depth: usize) -> Result<Id, Fault> {
    let offset = reader.pos;
    if let Some(number) = reader.number() {
        let (kind, known) = match number {
            Number::Integer(value) => return Ok(Id::Valid(RequestId::Integer(value))),
            Number::Huge => (DecodeErrorKind::IdOutOfRange, None),
            Number::Fraction(value) => (DecodeErrorKind::FractionalId, value.map(RequestId::Integer)),
        };
        reader.note(kind, offset);
        return Ok(Id::Invalid(known));
    }
    if reader.peek() == Some(b'"') {
        let limit = reader.limits.max_id_bytes;
        let kind = match reader.string()?.decode() {
            Ok(id) if id.len() <= limit => return Ok(Id::Valid(RequestId::String(id.into()))),
            Ok(id) => Fault::new(DecodeErrorKind::IdTooLong { bytes: id.len(), limit }, offset),
            Err(fault) => fault,
        };
        reader.note(kind.kind, kind.offset);
        return Ok(Id::Invalid(None));
    }
    if reader.null() {
        return Ok(Id::Null);
    }
    reader.value(depth)?;
    reader.note(DecodeErrorKind::InvalidId, offset);
    Ok(Id::Invalid(None))
}

fn method<'a>(reader: &mut Reader<'a, '_>, depth: usize) -> Result<Option<Cow<'a, str>>, Fault> {
    text(reader, depth, DecodeErrorKind::InvalidMethod)
}

/// Reads a string that is decoded; anything else is noted as `otherwise`.
fn text<'a>(
    reader: &mut Reader<'a, '_>,
    depth: usize,
    otherwise: DecodeErrorKind,
) -> Result<Option<Cow<'a, str>>, Fault> {
    let offset = reader.pos;
    if reader.peek() != Some(b'"') {
        reader.value(depth)?;
        reader.note(otherwise, offset);
        return Ok(None);
    }
    match reader.string()?.decode() {
        Ok(text) => Ok(Some(text)),
        Err(fault) => {
            reader.note(fault.kind, fault.offset);
            Ok(None)
        }
    }
}

fn params<'a>(reader: &mut Reader<'a, '_>, depth: usize) -> Result<Option<RawRef<'a>>, Fault> {
    let offset = reader.pos;
    let structured = matches!(reader.peek(), Some(b'{' | b'['));
    if reader.null() {
        return Ok(None);
    }
    let value = reader.value(depth)?;
    if !structured {
        reader.note(DecodeErrorKind::InvalidParams, offset);
    }
    Ok(Some(value))
}

/// Reads the `error` member, which lies `depth` levels deep and is not null.
fn error_object<'a>(reader: &mut Reader<'a, '_>, depth: usize) -> Result<Option<ErrorObjectRef<'a>>, Fault> {
    let start = reader.pos;
    let invalid = DecodeErrorKind::InvalidError;
    if reader.peek() != Some(b'{') {
        reader.value(depth)?;
        reader.note(invalid, start);
        return Ok(None);
    }
    let inner = depth + 1;
    let (mut code, mut message, mut data) = (None, None, None);
    let (mut seen_code, mut seen_message, mut seen_data) = (false, false, false);
    let mut more = reader.enter_object(inner);
    while more {
        let offset = reader.pos;
        let duplicate = match Key::read(reader)? {
            Key::Code => {
                code = error_code(reader, inner)?;
                std::mem::replace(&mut seen_code, true).then_some("error.code")
            }
            Key::Message => {
                message = text(reader, inner, invalid)?;
                std::mem::replace(&mut seen_message, true).then_some("error.message")
            }
            Key::Data => {
                data = if reader.null() { None } else { Some(reader.value(inner)?) };
                std::mem::replace(&mut seen_data, true).then_some("error.data")
            }
            _ => {
                reader.value(inner)?;
                None
            }
        };
        if let Some(key) = duplicate {
            reader.note(DecodeErrorKind::DuplicateKey { key }, offset);
        }
        more = reader.next_member()?;
    }
    match (code, message) {
        (Some(code), Some(message)) => Ok(Some(ErrorObjectRef { code, message, data })),
        _ => {
            // Missing; a wrong one was noted where it stands.
            reader.note(invalid, start);
            Ok(None)
        }
    }
}

fn error_code(reader: &mut Reader<'_, '_>, depth: usize) -> Result<Option<ErrorCode>, Fault> {
    let offset = reader.pos;
    let number = reader.number();
    if let Some(Number::Integer(code)) = number {
        return Ok(Some(ErrorCode::new(code)));
    }
    if number.is_none() {
        reader.value(depth)?;
    }
    reader.note(DecodeErrorKind::InvalidError, offset);
    Ok(None)
}
