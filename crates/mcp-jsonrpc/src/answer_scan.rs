//! Finds the id in a response that cannot be kept or decoded, while its bytes arrive.

use memchr::memchr2;

use crate::{
    RequestId,
    token::{Number, StringToken},
};

/// Finds the id of the call that a JSON text answers, in pieces of any size and with constant memory.
///
/// For texts that cannot be decoded because they are too long or contain invalid UTF-8. It returns an id only if that is
/// certain: the whole text is one object with matching brackets, which has `id` exactly once, an integer or a string, a `result` or an
/// `error` object, and no `method`. Text in strings and nested values that looks like an id is ignored.
///
/// ```
/// use mcp_jsonrpc::AnswerScan;
///
/// let mut scan = AnswerScan::new();
/// scan.push(br#"{"result":{"text":"\"id\":1 xxx"#);
/// scan.push(br#"xxxxx"},"jsonrpc":"2.0","id":7}"#);
/// assert_eq!(scan.answer_to(), Some(&7.into()));
/// ```
#[derive(Clone, Debug)]
pub struct AnswerScan {
    state: State,
    /// The token that is being read: a key, or the id.
    token: Vec<u8>,
    id: Option<RequestId>,
    /// A `result`, or an `error` that is an object.
    answers: bool,
}

/// ```text
/// Start ──'{'──> Key ──> Colon ──> Value ──> String, Scalar, Nested ──> Next ──'}'──> End
///                 ^                                                      │
///                 └────────────────────────── ',' ───────────────────────┘
/// ```
///
/// Whatever does not fit leads to `Lost`, and nothing leads out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Before a key. An object without members ends here, but no answer does.
    Key,
    /// Inside a string at the top level.
    String {
        role: Role,
        escaped: bool,
    },
    Colon(Member),
    Value(Member),
    /// A number or a bare word.
    Scalar {
        is_id: bool,
    },
    Nested(Nested),
    Next,
    End,
    Lost,
}

/// What a string at the top level is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Id,
    Key,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Error,
    Id,
    Other,
    Result,
}

/// The place inside a nested value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nested {
    /// One bit for each open bracket, innermost lowest: one for an object. The leading one marks the end.
    kinds: u128,
    in_string: bool,
    escaped: bool,
}

/// The longest key and id that are looked at, in bytes as they stand. The ids of an ordinary client are numbers; every key
/// of the envelope fits even if each of its letters is escaped.
const MAX_TOKEN_BYTES: usize = 256;

impl Default for AnswerScan {
    fn default() -> Self {
        Self::new()
    }
}

impl AnswerScan {
    /// A scan at the start of a text. Allocates nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: State::Start, token: Vec::new(), id: None, answers: false }
    }

    /// Scans a whole text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut scan = Self::new();
        scan.push(text);
        scan
    }

    /// Scans the next piece of the text.
    pub fn push(&mut self, mut piece: &[u8]) {
        while let Some((&byte, rest)) = piece.split_first() {
            piece = match self.state {
                State::Lost => return,
                State::Nested(nested) => self.nested(nested, piece),
                State::String { role: Role::Other, escaped: false } => {
                    // The long stretches are here: nothing else can end them.
                    let at = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
                    match piece.get(at..).and_then(<[u8]>::split_first) {
                        Some((&byte, rest)) => {
                            self.step(byte);
                            rest
                        }
                        None => return,
                    }
                }
                _ => {
                    self.step(byte);
                    rest
                }
            };
        }
    }

    /// The id of the call that the text answers, if the text is complete and the id certain.
    #[must_use]
    pub fn answer_to(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.state == State::End && self.answers)
    }

    /// One byte outside of nested values.
    fn step(&mut self, byte: u8) {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.state = match self.state {
            State::Start | State::Key | State::Colon(_) | State::Value(_) | State::Next | State::End
                if space =>
            {
                return;
            }
            State::Start if byte == b'{' => State::Key,
            State::Key if byte == b'"' => self.begin_string(Role::Key),
            State::String { role, escaped } => self.string(role, escaped, byte),
            State::Colon(member) if byte == b':' => State::Value(member),
            State::Value(member) => self.value(member, byte),
            State::Scalar { is_id } => self.scalar(is_id, byte, space),
            State::Next => Self::next(byte),
            _ => State::Lost,
        };
    }

    fn next(byte: u8) -> State {
        match byte {
            b',' => State::Key,
            b'}' => State::End,
            _ => State::Lost,
        }
    }

    fn begin_string(&mut self, role: Role) -> State {
        self.token.clear();
        if role != Role::Other {
            self.token.push(b'"');
        }
        State::String { role, escaped: false }
    }

    fn string(&mut self, role: Role, escaped: bool, byte: u8) -> State {
        let ends = byte == b'"' && !escaped;
        if role != Role::Other {
            if self.token.len() < MAX_TOKEN_BYTES {
                self.token.push(byte);
            } else if role == Role::Id {
                return State::Lost;
            }
        }
        if !ends {
            return State::String { role, escaped: byte == b'\\' && !escaped };
        }
        match role {
            Role::Other => State::Next,
            Role::Key => self.end_key(),
            Role::Id => match self.token_text() {
                Some(id) => self.found(RequestId::from(id)),
                None => State::Lost,
            },
        }
    }

    /// What the string token spells; None if it is no JSON string.
    fn token_text(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.token).ok()?;
        let (token, end) = StringToken::read(text, 0).ok()?;
        if end != text.len() {
            return None;
        }
        token.decode().ok().map(std::borrow::Cow::into_owned)
    }

    fn end_key(&mut self) -> State {
        if self.token.len() >= MAX_TOKEN_BYTES {
            return State::Colon(Member::Other);
        }
        match self.token_text().as_deref() {
            Some("id") => State::Colon(Member::Id),
            Some("result") => State::Colon(Member::Result),
            Some("error") => State::Colon(Member::Error),
            // A question of the peer: its id is its own.
            Some("method") | None => State::Lost,
            Some(_) => State::Colon(Member::Other),
        }
    }

    fn value(&mut self, member: Member, byte: u8) -> State {
        self.answers |= member == Member::Result || (member == Member::Error && byte == b'{');
        let is_id = member == Member::Id;
        match byte {
            b'"' => self.begin_string(if is_id { Role::Id } else { Role::Other }),
            // Such an id is none.
            b'{' | b'[' if is_id => State::Lost,
            b'{' | b'[' => State::Nested(Nested {
                kinds: 0b10 | u128::from(byte == b'{'),
                in_string: false,
                escaped: false,
            }),
            b',' | b'}' | b']' | b':' => State::Lost,
            _ => {
                self.token.clear();
                self.scalar(is_id, byte, false)
            }
        }
    }

    fn scalar(&mut self, is_id: bool, byte: u8, space: bool) -> State {
        if space || matches!(byte, b',' | b'}') {
            if is_id {
                match Number::read(&self.token, 0) {
                    Some((Number::Integer(id), end)) if end == self.token.len() => {
                        if self.found(RequestId::Integer(id)) == State::Lost {
                            return State::Lost;
                        }
                    }
                    _ => return State::Lost,
                }
            }
            return if space { State::Next } else { Self::next(byte) };
        }
        if is_id {
            if self.token.len() >= MAX_TOKEN_BYTES {
                return State::Lost;
            }
            self.token.push(byte);
        }
        State::Scalar { is_id }
    }

    fn found(&mut self, id: RequestId) -> State {
        match self.id.replace(id) {
            // Two of them: not even the same twice is beyond doubt.
            Some(_) => State::Lost,
            None => State::Next,
        }
    }

    /// Follows a nested value through the piece; gives what lies behind it.
    fn nested<'a>(&mut self, mut nested: Nested, mut piece: &'a [u8]) -> &'a [u8] {
        while let Some((&byte, rest)) = piece.split_first() {
            piece = rest;
            if nested.in_string {
                if nested.escaped {
                    nested.escaped = false;
                    continue;
                }
                match byte {
                    b'"' => nested.in_string = false,
                    b'\\' => nested.escaped = true,
                    _ => {
                        let skipped = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
                        piece = piece.get(skipped..).unwrap_or_default();
                    }
                }
                continue;
            }
            match byte {
                b'"' => nested.in_string = true,
                b'{' | b'[' => {
                    if nested.kinds.leading_zeros() == 0 {
                        // Deeper than any message may be.
                        self.state = State::Lost;
                        return &[];
                    }
                    nested.kinds = nested.kinds << 1 | u128::from(byte == b'{');
                }
                b'}' | b']' => {
                    if (nested.kinds & 1 == 1) != (byte == b'}') {
                        self.state = State::Lost;
                        return &[];
                    }
                    nested.kinds >>= 1;
                    if nested.kinds == 1 {
                        self.state = State::Next;
                        return piece;
                    }
                }
                _ => {}
            }
        }
        self.state = State::Nested(nested);
        &[]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{DecodeLimits, Incoming, Message, decode};

    fn found(text: &[u8]) -> Option<RequestId> {
        AnswerScan::of(text).answer_to().cloned()
    }

    // seed:B30, protocol:T-05, auth:LIM-08
    #[test]
    fn only_an_id_beyond_doubt_is_found() {
        let seven = Some(RequestId::from(7));
        for (text, expected) in [
            (&br#"{"jsonrpc":"2.0","id":7,"result":{}}"#[..], &seven),
            (br#"{"result":{"id":1,"a":["}",{"id":2}]},"jsonrpc":"2.0","id":7}"#, &seven),
            (br#" { "id" : 7 , "error" : { "code" : 1 , "message" : "" } } "#, &seven),
            (br#"{"\u0069d":7,"result":"\\\"id\":8"}"#, &seven),
            (b"{\"id\":7,\"result\":\"\xff\xfe\"}", &seven),
            (b"{\"result\":[\"\xff\\\"\"],\"id\":7}\r", &seven),
            (br#"{"result":"{\"id\":8}","id":7}"#, &seven),
            (br#"{"id":7,"result":null}"#, &seven),
            (br#"{"id":"a\n","result":1}"#, &Some(RequestId::from("a\n"))),
            (br#"{"id":7,"method":"m","result":1}"#, &None),
            (br#"{"id":7,"m\u0065thod":"m","result":1}"#, &None),
            (br#"{"id":7,"params":{"result":1}}"#, &None),
            (br#"{"id":7,"error":"no such file"}"#, &None),
            (br#"{"id":7,"id":7,"result":1}"#, &None),
            (br#"{"id":7,"result":1,"id":8}"#, &None),
            (br#"{"id":7.0,"result":1}"#, &None),
            (br#"{"id":7e0,"result":1}"#, &None),
            (br#"{"id":null,"result":1}"#, &None),
            (br#"{"id":[7],"result":1}"#, &None),
            (br#"{"id":99999999999999999999,"result":1}"#, &None),
            (br#"{"result":{"id":7}}"#, &None),
            (br#"{"result":"\"id\":7,"}"#, &None),
            (br#"[{"id":7,"result":1}]"#, &None),
            (br#"{"id":7,"result":{]}"#, &None),
            (br#"{"id":7,"result":[}}"#, &None),
            (br#"{"id":7,"result":{"a":"}"#, &None),
            (br#"{"id":7,"result":1"#, &None),
            (br#"{"id":7,"result":1}}"#, &None),
            (br#"{"id":7,"result":1}{"id":8,"result":1}"#, &None),
            (br#"{"id":7 "result":1}"#, &None),
            (br#"{"id":7,,"result":1}"#, &None),
            (br#"{id:7,"result":1}"#, &None),
            (br#"{"x":,"id":7,"result":1}"#, &None),
            (br#"{"x":},"id":7,"result":1}"#, &None),
            (br#"{"x":],"id":7,"result":1}"#, &None),
            (br#"{xa":1,"id":7,"result":1}"#, &None),
            (br#"{"id"=7,"result":1}"#, &None),
            (br#"{"id":7x,"result":1}"#, &None),
            (br#"{"id":7,"result":1,}"#, &None),
            (br#"{"id":{},"id":7,"result":1}"#, &None),
            (br#"log {"id":7,"result":1}"#, &None),
            (br#"["id":7,"result":1}"#, &None),
            (b"{\"id\":7,\"\xff\":1,\"result\":1}", &None),
            (b"", &None),
            (b"{}", &None),
        ] {
            assert_eq!(&found(text), expected, "{}", String::from_utf8_lossy(text));
        }
        let deep = |depth: usize| {
            let text = format!("{{\"id\":7,\"result\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            found(text.as_bytes())
        };
        assert_eq!((deep(127), deep(128)), (seven, None));
        let id = |bytes| found(format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(bytes)).as_bytes());
        // Its quotes count.
        assert!([253, 254].into_iter().all(|bytes| id(bytes).is_some()) && id(255).is_none());
        let key = format!(r#"{{"{}":1,"id":7,"result":1}}"#, "k".repeat(5000));
        assert_eq!(found(key.as_bytes()), Some(7.into()));
    }

    #[test]
    fn memory_stays_bounded() {
        let mut scan = AnswerScan::new();
        scan.push(b"{\"");
        for _ in 0..1000 {
            scan.push(&[b'k'; 1000]);
        }
        assert!(scan.token.capacity() <= 2 * MAX_TOKEN_BYTES);
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(serde_json::Value::from),
            "[a\"\\\\{}\\[\\]id:,é]{0,8}".prop_map(serde_json::Value::from),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("id|result|method|\"|[a-c]", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Against the decoder, on whole and on damaged texts, however they are cut.
        #[test]
        fn what_is_found_is_what_the_decoder_finds(
            value in json(),
            id in any::<i64>(),
            id_last in any::<bool>(),
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cut in 1usize..40,
        ) {
            let text = if id_last {
                format!(r#"{{"result":{value},"jsonrpc":"2.0","id":{id}}}"#)
            } else {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{value}}}"#)
            };
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let mut scan = AnswerScan::new();
            bytes.chunks(cut).for_each(|piece| scan.push(piece));
            let whole = AnswerScan::of(&bytes);
            prop_assert_eq!(scan.answer_to(), whole.answer_to());
            if damage.is_none() {
                prop_assert_eq!(whole.answer_to(), Some(&RequestId::from(id)));
            } else if let Ok(text) = std::str::from_utf8(&bytes)
                && let Some(found) = whole.answer_to()
            {
                match decode(text, &DecodeLimits::default()) {
                    Ok(Incoming::Single(message @ (Message::Response(_) | Message::Error(_)))) => {
                        prop_assert_eq!(message.id(), Some(found));
                    }
                    Ok(other) => prop_assert!(false, "{other:?}"),
                    Err(error) => prop_assert!(error.id().is_none_or(|id| id == found), "{error}"),
                }
            }
        }
    }
}
