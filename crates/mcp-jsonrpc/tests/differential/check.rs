//! One text, judged by the decoder and by the reference.

use mcp_jsonrpc::{
    Awaited, DecodeError, DecodeErrorKind, DecodeLimits, Incoming, Message, RawRef, decode, decode_awaited,
    decode_slice, plain_answer,
};

use super::reference::{self, Verdict};

/// Panics when the decoder sees something else in these bytes than the reference does.
///
/// Valid JSON has to be judged alike, part for part. What is no valid JSON may be accepted only where the fault lies in
/// a part that stays raw or is skipped.
pub(crate) fn check(bytes: &[u8]) {
    let limits = DecodeLimits::default();
    let outcome = decode_slice(bytes, &limits);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(outcome.is_err(), "invalid UTF-8");
        return;
    };
    assert_eq!(outcome, decode(text, &limits), "{text}");
    let awaited = decode_awaited::<serde_json::Value>(text, &limits);
    assert_eq!(awaited, outcome.clone().map(in_two_passes), "{text}");
    if let Some(plain) = plain_answer(text, &limits)
        && serde_json::from_str::<serde_json::Value>(plain.result).is_ok()
    {
        match &outcome {
            Ok(Incoming::Single(Message::Response(response))) => {
                assert_eq!((&response.id, response.result.as_str()), (&plain.id, plain.result), "{text}");
            }
            // Nobody counted the depth, which is one too many with the envelope.
            other => assert!(
                other.as_ref().is_err_and(|error| matches!(error.kind(), DecodeErrorKind::TooDeep { .. })),
                "{text}"
            ),
        }
    }
    let offset = outcome.as_ref().err().map_or(0, DecodeError::offset);
    assert!(offset <= bytes.len(), "{text}");
    if let Some(expected) = reference::judge(text) {
        assert_eq!(ours(outcome), expected, "{text}");
    } else if let Ok(incoming) = &outcome {
        let batch = matches!(incoming, Incoming::Batch(_));
        let excused = raw_parts(&outcome).iter().any(|raw| raw.validate().is_err());
        // An answer has no use for params, and so does not look into them.
        let answer = matches!(incoming, Incoming::Single(Message::Response(_) | Message::Error(_)));
        let skipped = has_unknown_member(text) || (answer && text.contains("\"params\""));
        assert!(batch || excused || skipped, "{text}");
    }
}

fn in_two_passes(incoming: Incoming<'_>) -> Awaited<'_, serde_json::Value> {
    match incoming {
        Incoming::Single(Message::Response(response)) => match response.result.parse() {
            Ok(result) => Awaited::Response { id: response.id, result },
            Err(error) => Awaited::Mismatch { id: response.id, error },
        },
        other => Awaited::Other(other),
    }
}

fn ours(outcome: Result<Incoming<'_>, DecodeError>) -> Vec<Verdict> {
    match outcome {
        Ok(Incoming::Single(message)) => vec![of_message(&message)],
        Ok(Incoming::Batch(items)) => {
            let one = |item: &Result<Message<'_>, DecodeError>| match item {
                Ok(message) => of_message(message),
                Err(error) => of_error(error),
            };
            std::iter::once(Verdict::Batch).chain(items.iter().map(one)).collect()
        }
        Err(error) => vec![of_error(&error)],
    }
}

fn of_message(message: &Message<'_>) -> Verdict {
    let own = |raw: RawRef<'_>| raw.as_str().to_owned();
    match message {
        Message::Request(request) => Verdict::Request {
            id: request.id.clone(),
            method: request.method.to_string(),
            params: request.params.map(own),
        },
        Message::Notification(note) => {
            Verdict::Notification { method: note.method.to_string(), params: note.params.map(own) }
        }
        Message::Response(response) => {
            Verdict::Response { id: response.id.clone(), result: own(response.result) }
        }
        Message::Error(response) => Verdict::Error {
            id: response.id.clone(),
            code: response.error.code.get(),
            message: response.error.message.to_string(),
            data: response.error.data.map(own),
        },
    }
}

fn of_error(error: &DecodeError) -> Verdict {
    Verdict::Refused { id: error.id().cloned() }
}

/// Every raw part of what was decoded.
fn raw_parts<'a>(outcome: &Result<Incoming<'a>, DecodeError>) -> Vec<RawRef<'a>> {
    let of = |message: &Message<'a>| match message {
        Message::Request(request) => request.params,
        Message::Notification(note) => note.params,
        Message::Response(response) => Some(response.result),
        Message::Error(response) => response.error.data,
    };
    match outcome {
        Ok(Incoming::Single(message)) => of(message).into_iter().collect(),
        Ok(Incoming::Batch(items)) => items.iter().flatten().filter_map(of).collect(),
        Err(_) => Vec::new(),
    }
}

/// Whether the message has a member that the decoder skips, in the envelope or in the error object: such a member is
/// bracketed and not looked into.
fn has_unknown_member(text: &str) -> bool {
    let (mut depth, mut member, mut rest) = (0_usize, "", text);
    while let Some(at) = rest.find(['"', '{', '[', '}', ']']) {
        let (token, behind) = rest.split_at(at).1.split_at(1);
        rest = behind;
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {
                let mut escaped = false;
                let end = rest.find(|c| {
                    c == '"' && !escaped || {
                        escaped = c == '\\' && !escaped;
                        false
                    }
                });
                let (string, behind) = rest.split_at(end.unwrap_or(rest.len()));
                rest = behind.get(1..).unwrap_or_default();
                if !rest.trim_start().starts_with(':') {
                    continue;
                }
                let known: &[&str] = match depth {
                    1 => {
                        member = string;
                        &["jsonrpc", "id", "method", "params", "result", "error"]
                    }
                    2 if member == "error" => &["code", "message", "data"],
                    _ => continue,
                };
                if !known.contains(&string) {
                    return true;
                }
            }
        }
    }
    false
}
