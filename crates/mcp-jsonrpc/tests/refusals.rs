//! How each refusal is named, told and answered on the wire.

use mcp_jsonrpc::{DecodeError, DecodeLimits, ErrorCode, Incoming, decode_slice};

/// The refusal of the message, or of the last item of a batch; `None` where it was taken.
fn refusal(message: &[u8], limits: &DecodeLimits) -> Option<DecodeError> {
    match decode_slice(message, limits) {
        Err(error) => Some(error),
        Ok(Incoming::Batch(mut items)) => items.pop()?.err(),
        Ok(_) => None,
    }
}

// What is no JSON is a parse error, everything else an invalid request.
#[test]
fn each_refusal_has_a_name_a_text_and_a_code() {
    const PARSE: ErrorCode = ErrorCode::PARSE_ERROR;
    const INVALID: ErrorCode = ErrorCode::INVALID_REQUEST;
    let limits = DecodeLimits::default().with_max_id_bytes(4).with_max_depth(3).with_max_batch_items(1);
    let two = br#"[{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","method":"m"}]"#;
    let cases: &[(&[u8], &str, &str, ErrorCode)] = &[
        (two, "batch_too_long", "batch of more than 1 messages", INVALID),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            "both_result_and_error",
            "response with both result and error",
            INVALID,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\t\"}",
            "control_character",
            "unescaped control character in a string",
            PARSE,
        ),
        (br#"{"jsonrpc":"2.0","id":1,"id":1,"result":1}"#, "duplicate_key", "member id comes twice", INVALID),
        (b"[]", "empty_batch", "batch without messages", INVALID),
        (
            br#"{"jsonrpc":"2.0","id":1.5,"result":1}"#,
            "fractional_id",
            "id is a number but not written as an integer",
            INVALID,
        ),
        (
            br#"{"jsonrpc":"2.0","id":18446744073709551616,"result":1}"#,
            "id_out_of_range",
            "integer id exceeds 64 bits",
            INVALID,
        ),
        (
            br#"{"jsonrpc":"2.0","id":"12345","result":1}"#,
            "id_too_long",
            "id of 5 bytes exceeds the limit of 4",
            INVALID,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#,
            "invalid_error",
            "error is no object with an integer code and a string message",
            INVALID,
        ),
        (br#"{"jsonrpc":"2.0","method":"\x"}"#, "invalid_escape", "invalid escape in a string", PARSE),
        (
            br#"{"jsonrpc":"2.0","id":[],"result":1}"#,
            "invalid_id",
            "id is neither an integer nor a string",
            INVALID,
        ),
        (br#"{"jsonrpc":"2.0","method":7}"#, "invalid_method", "method is no string", INVALID),
        (
            br#"{"jsonrpc":"2.0","method":"m","params":7}"#,
            "invalid_params",
            "params is neither an object nor an array",
            INVALID,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"\xFF\"}", "invalid_utf8", "invalid UTF-8", PARSE),
        (
            br#"{"jsonrpc":"2.0","method":"\ud800"}"#,
            "lone_surrogate",
            "escaped surrogate without its other half",
            PARSE,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            "method_with_result",
            "method together with result or error",
            INVALID,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":[}}"#,
            "mismatched_bracket",
            "closing bracket of the wrong kind",
            PARSE,
        ),
        (br#"{"jsonrpc":"2.0","result":1}"#, "missing_id", "result without id", INVALID),
        (br#"{"level":"info"}"#, "missing_version", "no jsonrpc member", INVALID),
        (
            br#"{"jsonrpc":"2.0","id":1}"#,
            "neither_result_nor_error",
            "neither method nor result nor error",
            INVALID,
        ),
        (b"7", "not_an_object", "neither an object nor a batch", INVALID),
        (br#"{"jsonrpc":"2.0","id":null,"result":1}"#, "null_id", "id is null", INVALID),
        (b"server ready", "syntax", "not JSON", PARSE),
        (b"7 tools are registered", "syntax", "not JSON", PARSE),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":[[[[]]]]}"#,
            "too_deep",
            "nested deeper than 3 levels",
            INVALID,
        ),
        (br#"{"jsonrpc":"2.0","method":"m"}7"#, "trailing_bytes", "more text after the message", PARSE),
        (br#"{"jsonrpc":"2.0","method":"#, "unexpected_end", "text ends inside the message", PARSE),
        (br#"{"jsonrpc":"1.0","method":"m"}"#, "wrong_version", "jsonrpc is not \"2.0\"", INVALID),
    ];
    for (message, name, text, code) in cases {
        let shown = String::from_utf8_lossy(message);
        let error = refusal(message, &limits).unwrap_or_else(|| panic!("{shown} was taken"));
        assert_eq!((error.kind().as_str(), error.kind().to_string().as_str()), (*name, *text), "{shown}");
        assert_eq!(error.kind().wire_code(), *code, "{shown}");
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let too_large = refusal(b"{}", &DecodeLimits::default().with_max_bytes(1)).expect("a refusal");
    assert_eq!(too_large.kind().as_str(), "too_large");
    assert_eq!(too_large.kind().to_string(), "message of 2 bytes exceeds the limit of 1");
}
