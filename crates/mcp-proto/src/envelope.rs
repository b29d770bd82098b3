//! Writing our messages: the application's params with the protocol's `_meta` in front.

use mcp_jsonrpc::{RawJson, RawRef, RequestId, encode};
use mcp_model::{MetaObject, meta, methods};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::error::Misuse;

/// The params of one request.
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    /// The application's params: a JSON object without `_meta`.
    pub(crate) rest: Option<&'a RawJson>,
    /// The application's `_meta`.
    pub(crate) meta: Option<&'a Map<String, Value>>,
    /// What the protocol wants in `_meta` of each request (modern era).
    pub(crate) protocol: Option<&'a MetaObject>,
    /// Asks for progress under this token.
    pub(crate) progress_token: Option<&'a RequestId>,
}

/// The member of this name, where it is a string.
pub(crate) fn string_member(object: RawRef<'_>, name: &str) -> Option<String> {
    let [member] = object.members([name]).ok()?;
    member?.string().ok()
}

/// Writes a request into the emptied buffer.
pub(crate) fn request(
    buffer: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: &Params<'_>,
) -> Result<(), Misuse> {
    buffer.clear();
    let text = object_text(params.rest)?;
    if params.rest.is_some_and(|rest| has_meta(rest.as_raw_ref())) {
        return Err(Misuse::MetaInParams);
    }
    for key in params.meta.into_iter().flat_map(Map::keys) {
        meta::check_key(key).map_err(Misuse::InvalidKey)?;
    }
    if params.meta.is_none() && params.progress_token.is_none() && params.protocol.is_none() {
        return encode::request(buffer, id, method, params.rest).map_err(|_| Misuse::Unserializable);
    }
    encode::request(buffer, id, method, Some(&OnlyMeta { meta: Meta(params) }))
        .map_err(|_| Misuse::Unserializable)?;
    match params.rest {
        Some(rest) if !text.is_some_and(is_empty_object) => append_members(buffer, rest),
        _ => Ok(()),
    }
}

/// Writes a notification into the emptied buffer.
pub(crate) fn notification(
    buffer: &mut Vec<u8>,
    method: &str,
    params: Option<&RawJson>,
) -> Result<(), Misuse> {
    buffer.clear();
    object_text(params)?;
    encode::notification(buffer, method, params).map_err(|_| Misuse::Unserializable)
}

/// Writes the notice that a request of ours is given up.
pub(crate) fn cancelled(buffer: &mut Vec<u8>, id: &RequestId, reason: Option<&str>) -> Result<(), Misuse> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        request_id: &'a RequestId,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    }
    buffer.clear();
    encode::notification(
        buffer,
        methods::NOTIFICATIONS_CANCELLED,
        Some(&Cancelled { request_id: id, reason }),
    )
    .map_err(|_| Misuse::Unserializable)
}

fn object_text(params: Option<&RawJson>) -> Result<Option<&str>, Misuse> {
    match params.map(|params| params.as_str().trim_ascii()) {
        Some(text) if text.starts_with('{') => Ok(Some(text)),
        Some(_) => Err(Misuse::ParamsNotAnObject),
        None => Ok(None),
    }
}

/// Whether this text of an object has `_meta` among its own members.
fn has_meta(object: RawRef<'_>) -> bool {
    // Hardly any has, and most of those only deeper down.
    object.as_str().contains("\"_meta\"") && object.has_member("_meta").unwrap_or(false)
}

fn is_empty_object(object: &str) -> bool {
    object
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .is_some_and(|text| text.trim_ascii().is_empty())
}

/// Puts the members of `object`, which has some, behind those of the params object that the message in `buffer` ends
/// with. The text is copied, not parsed into values.
fn append_members(buffer: &mut Vec<u8>, object: &RawJson) -> Result<(), Misuse> {
    // The ends of the params object and of the envelope; the object brings one of them along.
    buffer.truncate(buffer.len().saturating_sub(2));
    let start = buffer.len();
    serde_json::to_writer(&mut *buffer, object).map_err(|_| Misuse::Unserializable)?;
    let mut added = buffer.iter_mut().skip(start);
    if let Some(brace) = added.next() {
        *brace = b',';
    }
    // A line ends a message on some transports. Outside of a string it is white space, inside it would not be JSON.
    for byte in added.filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    buffer.push(b'}');
    Ok(())
}

#[derive(Serialize)]
struct OnlyMeta<'a> {
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

struct Meta<'a>(&'a Params<'a>);

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Params { meta, protocol, progress_token, .. } = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in meta.iter().copied().flatten() {
            // Asking for progress is the client's business: it must know the token to find the call.
            let ours = key == meta::PROGRESS_TOKEN
                || protocol.is_some_and(|protocol| protocol.get(key).is_some() && key != meta::LOG_LEVEL);
            if !ours {
                map.serialize_entry(key, value)?;
            }
        }
        for (key, value) in protocol.iter().flat_map(|protocol| protocol.iter()) {
            // The level of one call goes before that of the connection.
            if key != meta::LOG_LEVEL || !meta.is_some_and(|meta| meta.contains_key(key)) {
                map.serialize_entry(key, value)?;
            }
        }
        if let Some(token) = progress_token {
            map.serialize_entry("progressToken", token)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(rest: Option<&str>, meta: Option<Value>, token: bool) -> String {
        let id = RequestId::Integer(7);
        let rest = rest.map(|text| RawJson::from_text(text.to_owned()).unwrap());
        let meta = meta.map(|meta| meta.as_object().unwrap().clone());
        let params = Params {
            rest: rest.as_ref(),
            meta: meta.as_ref(),
            progress_token: token.then_some(&id),
            ..Params::default()
        };
        let mut buffer = b"left over".to_vec();
        request(&mut buffer, &id, "m", &params).unwrap();
        String::from_utf8(buffer).unwrap()
    }

    /// protocol:J-11, protocol:P-01
    #[test]
    fn params_are_left_out_when_there_is_nothing_to_say() {
        assert_eq!(written(None, None, false), r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#);
        assert_eq!(
            written(None, None, true),
            r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":7}}}"#
        );
    }

    /// protocol:J-27, protocol:T-03
    #[test]
    fn meta_is_put_in_front_of_the_members_and_no_line_end_is_written() {
        let check = |rest: &str, params: &str| {
            let text = written(Some(rest), Some(json!({"a": 1, "progressToken": "mine"})), true);
            assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{params}}}"#));
        };
        check("{}", r#"{"_meta":{"a":1,"progressToken":7}}"#);
        check(" { } ", r#"{"_meta":{"a":1,"progressToken":7}}"#);
        check(r#" {"x":1} "#, r#"{"_meta":{"a":1,"progressToken":7},"x":1}"#);
        check(r#"{ "x" : 1 }"#, r#"{"_meta":{"a":1,"progressToken":7}, "x" : 1 }"#);
        check(r#"{"x":{"_meta":{}}}"#, r#"{"_meta":{"a":1,"progressToken":7},"x":{"_meta":{}}}"#);
        check(r#"{"x":"}"}"#, r#"{"_meta":{"a":1,"progressToken":7},"x":"}"}"#);
        check("{\n\"x\":\r\n1}", r#"{"_meta":{"a":1,"progressToken":7}, "x":  1}"#);
    }

    /// protocol:J-27: two members of one name would leave it to the peer which of them counts.
    #[test]
    fn params_that_bring_their_own_meta_are_refused() {
        for (text, refused) in [
            (r#"{"_meta":{"progressToken":1}}"#, true),
            (r#"{"a":1, "_meta" : null}"#, true),
            (r#"{"a":{"_meta":{}}}"#, false),
            (r#"{"a":"\"_meta\""}"#, false),
        ] {
            let rest = RawJson::from_text(text.to_owned()).unwrap();
            let params = Params { rest: Some(&rest), ..Params::default() };
            let written = request(&mut Vec::new(), &RequestId::Integer(1), "m", &params);
            assert_eq!(written, if refused { Err(Misuse::MetaInParams) } else { Ok(()) }, "{text}");
        }
    }

    /// Params passed on from a received message are only known to be bracketed.
    #[test]
    fn params_that_are_no_json_inside_are_refused() {
        let received = r#"{"jsonrpc":"2.0","method":"m","params":{"a":nul}}"#;
        let decoded = mcp_jsonrpc::decode(received, &mcp_jsonrpc::DecodeLimits::default()).unwrap();
        let mcp_jsonrpc::Incoming::Single(mcp_jsonrpc::Message::Notification(notification)) = decoded else {
            panic!("a notification")
        };
        let rest = notification.params.unwrap().to_owned();
        let id = RequestId::Integer(1);
        for token in [None, Some(&id)] {
            let params = Params { rest: Some(&rest), progress_token: token, ..Params::default() };
            assert_eq!(request(&mut Vec::new(), &id, "m", &params), Err(Misuse::Unserializable));
        }
        assert_eq!(notification_text(&rest), Err(Misuse::Unserializable));
    }

    fn notification_text(params: &RawJson) -> Result<(), Misuse> {
        notification(&mut Vec::new(), "m", Some(params))
    }

    #[test]
    fn params_that_are_no_object_are_refused() {
        for text in ["[1]", "1", "\"x\"", "null"] {
            let rest = RawJson::from_text(text.to_owned()).unwrap();
            let params = Params { rest: Some(&rest), ..Params::default() };
            let refused = request(&mut Vec::new(), &RequestId::Integer(1), "m", &params);
            assert_eq!(refused, Err(Misuse::ParamsNotAnObject), "{text}");
            assert_eq!(
                notification(&mut Vec::new(), "m", Some(&rest)),
                Err(Misuse::ParamsNotAnObject),
                "{text}"
            );
        }
    }
}
