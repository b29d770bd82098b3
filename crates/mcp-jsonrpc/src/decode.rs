//! Decodes text into messages.

use crate::{
    AnswerScan, DecodeError, DecodeErrorKind, DecodeLimits, Incoming, Message, Shape, decode_error::Fault,
    envelope, reader::Reader,
};

/// Decodes one message or batch.
///
/// Members may be in any order; unknown ones are ignored (keys are case-sensitive, so `ID` is unknown); `params` and
/// `error` that are `null` count as absent. An integer id costs no allocation; a string id, a method with escapes, and
/// a batch cost one each.
///
/// The envelope is validated completely. Of params, result and error data only the structure is checked; see
/// [`RawRef`](crate::RawRef).
///
/// # Errors
/// [`DecodeError`], with the id of the message if it could be read.
///
/// ```
/// use mcp_jsonrpc::{DecodeLimits, Incoming, Message, decode};
///
/// let text = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#;
/// let Ok(Incoming::Single(Message::Response(response))) = decode(text, &DecodeLimits::default()) else {
///     panic!("a response");
/// };
/// assert_eq!(response.id, 7.into());
/// assert_eq!(response.result.as_str(), r#"{"tools":[]}"#);
///
/// let refused = decode(r#"{"jsonrpc":"1.0","result":{},"id":8}"#, &DecodeLimits::default()).unwrap_err();
/// assert_eq!(refused.id(), Some(&8.into()));
/// assert_eq!(refused.to_string(), r#"jsonrpc is not "2.0" at byte 11"#);
/// ```
pub fn decode<'a>(text: &'a str, limits: &DecodeLimits) -> Result<Incoming<'a>, DecodeError> {
    check_size(text.len(), limits)?;
    let mut reader = Reader { text, pos: 0, limits, fault: None };
    reader.space();
    match reader.peek() {
        Some(b'{') => {
            let message = envelope::message(&mut reader, 0)?;
            reader.space();
            if reader.pos == text.len() {
                return Ok(Incoming::Single(message));
            }
            let shape = match message {
                Message::Request(_) | Message::Notification(_) => Shape::Request,
                Message::Response(_) | Message::Error(_) => Shape::Response,
            };
            let fault = Fault::new(DecodeErrorKind::TrailingBytes, reader.pos);
            Err(DecodeError::new(fault, shape, message.id().cloned()))
        }
        Some(b'[') => batch(&mut reader).map(Incoming::Batch),
        _ => Err(not_an_object(&mut reader).into()),
    }
}

/// [`decode`] for bytes, which must be valid UTF-8.
///
/// # Errors
/// As [`decode`]; invalid UTF-8 is an error with the id that an [`AnswerScan`] finds.
pub fn decode_slice<'a>(bytes: &'a [u8], limits: &DecodeLimits) -> Result<Incoming<'a>, DecodeError> {
    check_size(bytes.len(), limits)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => decode(text, limits),
        Err(error) => {
            let fault = Fault::new(DecodeErrorKind::InvalidUtf8, error.valid_up_to());
            Err(match AnswerScan::of(bytes).answer_to() {
                Some(id) => DecodeError::new(fault, Shape::Response, Some(id.clone())),
                None => fault.into(),
            })
        }
    }
}

fn check_size(bytes: usize, limits: &DecodeLimits) -> Result<(), Fault> {
    if bytes <= limits.max_bytes {
        return Ok(());
    }
    Err(Fault::new(DecodeErrorKind::TooLarge { bytes, limit: limits.max_bytes }, limits.max_bytes))
}

type Items<'a> = Vec<Result<Message<'a>, DecodeError>>;

/// Reads the array at the reader's place.
///
/// What can be read is delivered: a fault of the array itself comes last, after the messages before it. Where not one
/// message was readable, and none names a call that it fails, the text is refused as a whole (most likely it is a log
/// line that begins with a bracket).
fn batch<'a>(reader: &mut Reader<'a, '_>) -> Result<Items<'a>, DecodeError> {
    let start = reader.pos;
    let mut items = Items::new();
    reader.pos += 1;
    reader.space();
    if reader.peek() == Some(b']') {
        return Err(Fault::new(DecodeErrorKind::EmptyBatch, start).into());
    }
    match batch_items(reader, &mut items) {
        Ok(()) => Ok(items),
        Err(last) if items.iter().any(concerns_somebody) => {
            items.push(Err(last));
            Ok(items)
        }
        Err(last) => {
            let first = items.into_iter().find_map(Result::err);
            // A cut-off answer is told by the item it breaks off in.
            let no_json =
                first.filter(|error| error.kind() == DecodeErrorKind::Syntax && last.id().is_none());
            Err(no_json.unwrap_or(last))
        }
    }
}

/// Whether leaving this item out would lose a message, or let a call wait in vain.
fn concerns_somebody(item: &Result<Message<'_>, DecodeError>) -> bool {
    item.as_ref().err().is_none_or(|error| error.shape() == Shape::Response && error.id().is_some())
}

fn batch_items<'a>(reader: &mut Reader<'a, '_>, items: &mut Items<'a>) -> Result<(), DecodeError> {
    let limit = reader.limits.max_batch_items;
    loop {
        if items.len() >= limit {
            return Err(Fault::new(DecodeErrorKind::BatchTooLong { limit }, reader.pos).into());
        }
        let start = reader.pos;
        let mut item = match reader.peek() {
            Some(b'{') => envelope::message(reader, 1),
            _ => Err(Fault::new(DecodeErrorKind::NotAnObject, start).into()),
        };
        if let Err(error) = &mut item {
            // Wherever reading stopped, the next item begins behind this one.
            reader.pos = start;
            if let Err(fault) = reader.value(1) {
                // The text ends inside this item. What was read of it still tells whose answer is lost.
                let scalar = error.kind() == DecodeErrorKind::NotAnObject;
                return Err(if scalar { fault.into() } else { error.clone() });
            }
            if let Some(fault) = reader.fault.take()
                && error.kind() == DecodeErrorKind::NotAnObject
            {
                *error = fault.into();
            }
        }
        items.push(item);
        reader.space();
        match reader.peek() {
            Some(b',') => reader.pos += 1,
            Some(b']') => break,
            _ => return Err(reader.unexpected().into()),
        }
        reader.space();
    }
    reader.pos += 1;
    reader.space();
    if reader.pos < reader.text.len() {
        return Err(Fault::new(DecodeErrorKind::TrailingBytes, reader.pos).into());
    }
    Ok(())
}

/// Tells other JSON from text that is no JSON.
fn not_an_object(reader: &mut Reader<'_, '_>) -> Fault {
    let start = reader.pos;
    match reader.value(0) {
        Err(fault) => fault,
        Ok(_) => {
            reader.space();
            match reader.fault {
                Some(fault) => fault,
                None if reader.pos < reader.text.len() => Fault::new(DecodeErrorKind::Syntax, start),
                None => Fault::new(DecodeErrorKind::NotAnObject, start),
            }
        }
    }
}
