//! Every rule of the envelope, one case a line.

use mcp_jsonrpc::{DecodeLimits, Incoming, Message, RequestId, Shape, decode, decode_slice};

/// One line that says everything about an outcome.
fn show(outcome: Result<Incoming<'_>, mcp_jsonrpc::DecodeError>) -> String {
    match outcome {
        Ok(Incoming::Single(message)) => show_message(&message),
        Ok(Incoming::Batch(items)) => {
            let items: Vec<_> =
                items.iter().map(|item| item.as_ref().map_or_else(show_error, show_message)).collect();
            format!("batch [{}]", items.join("; "))
        }
        Err(error) => show_error(&error),
    }
}

fn show_message(message: &Message<'_>) -> String {
    let params = |params: Option<mcp_jsonrpc::RawRef<'_>>| {
        params.map(|raw| format!(" {}", raw.as_str())).unwrap_or_default()
    };
    match message {
        Message::Request(request) => {
            format!("request {} {}{}", request.id, request.method, params(request.params))
        }
        Message::Notification(note) => format!("notification {}{}", note.method, params(note.params)),
        Message::Response(response) => format!("response {} {}", response.id, response.result.as_str()),
        Message::Error(response) => {
            let id = response.id.as_ref().map_or("-".to_owned(), RequestId::to_string);
            let error = &response.error;
            format!("error {id} {} {:?}{}", error.code.get(), error.message, params(error.data))
        }
    }
}

fn show_error(error: &mcp_jsonrpc::DecodeError) -> String {
    let shape = match error.shape() {
        Shape::Request => "request",
        Shape::Response => "response",
        _ => "unknown",
    };
    let id = error.id().map_or("-".to_owned(), RequestId::to_string);
    format!("refused {} @{} {shape} {id}", error.kind().as_str(), error.offset())
}

fn check(text: &str, expected: &str) {
    check_with(text, &DecodeLimits::default(), expected);
}

fn check_with(text: &str, limits: &DecodeLimits, expected: &str) {
    let shown = text.get(..300).unwrap_or(text);
    assert_eq!(show(decode(text, limits)), expected, "{shown}");
    assert_eq!(show(decode_slice(text.as_bytes(), limits)), expected, "{shown}");
}

#[test]
fn a_message_tells_its_method_where_it_has_one() {
    for (text, method) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some("ping")),
        (r#"{"jsonrpc":"2.0","method":"\u0070ing"}"#, Some("ping")),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"ping"}}"#, None),
    ] {
        let Ok(Incoming::Single(message)) = decode(text, &DecodeLimits::default()) else {
            panic!("{text} was refused")
        };
        assert_eq!(message.method(), method, "{text}");
    }
}

#[test]
fn debug_shows_the_method_and_the_length_of_params() {
    for (text, shown) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"login","params":{"token":"s3cret"}}"#,
            r#"Request { id: Integer(1), method: "login", params: Some(RawRef(18 bytes)) }"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"login","params":{"token":"s3cret"}}"#,
            r#"Notification { method: "login", params: Some(RawRef(18 bytes)) }"#,
        ),
    ] {
        let Ok(Incoming::Single(message)) = decode(text, &DecodeLimits::default()) else {
            panic!("{text} was refused")
        };
        assert!(format!("{message:?}").contains(shown), "{message:?}");
    }
}

// protocol:J-01, protocol:J-05, protocol:J-06, protocol:J-09, protocol:J-10
#[test]
fn the_four_kinds_are_told_apart() {
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
        (r#"{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"a":[1]}}"#, r#"request "a" x/y {"a":[1]}"#),
        (r#"{"jsonrpc":"2.0","method":"n","params":{}}"#, "notification n {}"),
        (r#"{"jsonrpc":"2.0","id":3,"result":{"ok":true}}"#, r#"response 3 {"ok":true}"#),
        (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "response 3 {}"),
        (r#"{"jsonrpc":"2.0","id":3,"result":null}"#, "response 3 null"),
        (r#"{"jsonrpc":"2.0","id":3,"result":"s\""}"#, r#"response 3 "s\"""#),
        (r#"{"jsonrpc":"2.0","id":3,"result":-1.5e3}"#, "response 3 -1.5e3"),
        (r#"{"jsonrpc":"2.0","id":3,"result":[]}"#, "response 3 []"),
        (r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"m"}}"#, r#"error 3 -1 "m""#),
        (
            r#"{"jsonrpc":"2.0","id":3,"error":{"message":"m\n","data":{"u":1},"code":5,"more":[]}}"#,
            r#"error 3 5 "m\n" {"u":1}"#,
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn members_come_in_any_order_with_any_space_and_unknown_ones_are_ignored() {
    for (text, expected) in [
        (r#"{"result":{"a":1},"id":9,"jsonrpc":"2.0"}"#, r#"response 9 {"a":1}"#),
        (r#"{"params":[1],"method":"m","id":9,"jsonrpc":"2.0"}"#, "request 9 m [1]"),
        (" \t\r\n{ \"jsonrpc\" : \"2.0\" ,\n\"id\"\t:\t1 , \"result\" : { } } \r\n", "response 1 { }"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"x":{"id":2},"y":"}","z":[null,true]}"#, "response 1 1"),
        (r#"{"jsonrpc":"2.0","x":1,"x":2,"ID":7,"Result":{},"id":1,"result":{}}"#, "response 1 {}"),
        (r#"{"\u006asonrpc":"2\u002e0","\u0069d":1,"m\u0065thod":"a\/b"}"#, "request 1 a/b"),
        (r#"{"jsonrpc":"2.0","\u0000":1,"method":"\u0041\uD83D\uDE00"}"#, "notification A😀"),
        (r#"{"jsonrpc":"2.0","":1,"method":""}"#, "notification "),
    ] {
        check(text, expected);
    }
}

// field:FR-107, field:FR-114
#[test]
fn optional_members_may_be_missing_or_null() {
    for (text, expected) in [
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#,
            "notification notifications/tools/list_changed",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"srv-9","method":"vendor/unknown","params":[1,2]}"#,
            r#"request "srv-9" vendor/unknown [1,2]"#,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, "response 1 {}"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","error":null}"#, "request 1 m"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":null}}"#, r#"error 1 1 """#),
    ] {
        check(text, expected);
    }
}

// protocol:J-07, protocol:J-08, field:FR-103
#[test]
fn errors_may_lack_the_id_or_have_a_null_one() {
    for (text, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
            r#"error - -32700 "Parse error""#,
        ),
        (r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"x"}}"#, r#"error - -32603 "x""#),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "refused null_id @39 response -"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "refused missing_id @29 response -"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "refused null_id @40 request -"),
    ] {
        check(text, expected);
    }
}

// protocol:J-02, protocol:J-12, seed:E20, field:FR-101, field:FR-109
#[test]
fn ids_are_integers_or_strings_and_keep_their_type() {
    let cases = [
        ("1", "response 1 {}"),
        ("\"1\"", "response \"1\" {}"),
        ("0", "response 0 {}"),
        ("\"0\"", "response \"0\" {}"),
        ("-7", "response -7 {}"),
        ("\"\"", "response \"\" {}"),
        ("9007199254740991", "response 9007199254740991 {}"),
        ("9007199254740993", "response 9007199254740993 {}"),
        ("9223372036854775807", "response 9223372036854775807 {}"),
        ("-9223372036854775808", "response -9223372036854775808 {}"),
        ("\"\\u00e9\\n\"", "response \"é\\n\" {}"),
        ("9223372036854775808", "refused id_out_of_range @22 response -"),
        ("123456789012345678901234567890", "refused id_out_of_range @22 response -"),
        ("1.0", "refused fractional_id @22 response 1"),
        ("-2.00", "refused fractional_id @22 response -2"),
        ("-0", "refused fractional_id @22 response 0"),
        ("1.5", "refused fractional_id @22 response -"),
        ("1e0", "refused fractional_id @22 response -"),
        ("true", "refused invalid_id @22 response -"),
        ("{}", "refused invalid_id @22 response -"),
        ("[1]", "refused invalid_id @22 response -"),
        ("NaN", "refused syntax @22 response -"),
        ("01", "refused syntax @22 response -"),
        ("\"\\ud800\"", "refused lone_surrogate @23 response -"),
        ("\"\\x\"", "refused invalid_escape @23 response -"),
    ];
    for (id, expected) in cases {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#), expected);
    }
}

// seed:B28, seed:E28
#[test]
fn invalid_envelopes_are_refused_with_the_id_of_the_call() {
    for (text, expected) in [
        (r#"{"jsonrpc":"1.0","id":4,"result":{}}"#, "refused wrong_version @11 response 4"),
        (r#"{"jsonrpc":2.0,"id":4,"result":{}}"#, "refused wrong_version @11 response 4"),
        (r#"{"result":{},"id":4,"jsonrpc":null}"#, "refused wrong_version @30 response 4"),
        (r#"{"id":4,"result":{}}"#, "refused missing_version @20 response 4"),
        (r#"{"JSONRPC":"2.0","id":4,"result":{}}"#, "refused missing_version @36 response 4"),
        (r#"{"jsonrpc":"2.0","id":4}"#, "refused neither_result_nor_error @24 response 4"),
        (r#"{"jsonrpc":"2.0","id":4,"error":null}"#, "refused neither_result_nor_error @37 response 4"),
        (
            r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{"code":1,"message":""}}"#,
            "refused both_result_and_error @68 response 4",
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":"m","result":{}}"#, "refused method_with_result @49 unknown 4"),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"m","error":{"code":1,"message":""}}"#,
            "refused method_with_result @69 unknown 4",
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":7}"#, "refused invalid_method @33 request 4"),
        (r#"{"jsonrpc":"2.0","id":4,"method":null}"#, "refused invalid_method @33 request 4"),
        (r#"{"jsonrpc":"2.0","id":4,"method":null,"result":{}}"#, "refused invalid_method @33 response 4"),
        (
            r#"{"method":null,"error":{"code":1,"message":""},"jsonrpc":"2.0","id":4}"#,
            "refused invalid_method @10 response 4",
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":7,"result":{}}"#, "refused invalid_method @33 unknown 4"),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"m","method":null,"result":{}}"#,
            "refused duplicate_key @37 unknown 4",
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":"m","params":1}"#, "refused invalid_params @46 request 4"),
        (r#"{"jsonrpc":"2.0","id":4,"method":"m","params":"{}"}"#, "refused invalid_params @46 request 4"),
        (r#"{"level":"info","msg":"started"}"#, "refused missing_version @32 unknown -"),
        ("{}", "refused missing_version @2 unknown -"),
        ("[]", "refused empty_batch @0 unknown -"),
        ("42", "refused not_an_object @0 unknown -"),
        ("\"{}\"", "refused not_an_object @0 unknown -"),
        ("null", "refused not_an_object @0 unknown -"),
        (" true ", "refused not_an_object @1 unknown -"),
    ] {
        check(text, expected);
    }
}

// Loggers write the id of the request that they serve into their lines, also to standard output.
#[test]
fn a_line_of_a_log_that_has_an_id_answers_nothing() {
    for (text, expected) in [
        (r#"{"id":3,"msg":"x"}"#, "refused missing_version @18 unknown 3"),
        (r#"{"id":3,"error":null}"#, "refused missing_version @21 unknown 3"),
        (r#"{"level":"error","error":"no such file","id":3}"#, "refused invalid_error @25 unknown 3"),
        (r#"{"error":404,"id":3}"#, "refused invalid_error @9 unknown 3"),
        (r#"{"id":3,"error":["a"]}"#, "refused invalid_error @16 unknown 3"),
        (r#"{"id":"3","id":"3"}"#, "refused duplicate_key @10 unknown \"3\""),
        (r#"[{"id":3,"msg":"x"}]"#, "batch [refused missing_version @19 unknown 3]"),
        // These can only have been meant as answers.
        (r#"{"id":3,"error":{}}"#, "refused invalid_error @16 response 3"),
        (r#"{"id":3,"error":{"code":1,"message":"m"}}"#, "refused missing_version @41 response 3"),
        (r#"{"id":3,"result":null}"#, "refused missing_version @22 response 3"),
        (r#"{"jsonrpc":"1.0","id":3}"#, "refused wrong_version @11 response 3"),
        (r#"{"jsonrpc":"2.0","id":3,"msg":"x"}"#, "refused neither_result_nor_error @34 response 3"),
        (r#"{"jsonrpc":"2.0","id":3,"error":"x"}"#, "refused invalid_error @32 response 3"),
    ] {
        check(text, expected);
    }
}

// protocol:J-09, seed:B28
#[test]
fn error_objects_are_checked_in_full() {
    let cases = [
        ("1", "refused invalid_error @32 response 4"),
        ("\"no\"", "refused invalid_error @32 response 4"),
        ("[]", "refused invalid_error @32 response 4"),
        ("{}", "refused invalid_error @32 response 4"),
        (r#"{"code":1}"#, "refused invalid_error @32 response 4"),
        (r#"{"message":"m"}"#, "refused invalid_error @32 response 4"),
        (r#"{"code":"1","message":"m"}"#, "refused invalid_error @40 response 4"),
        (r#"{"code":1.0,"message":"m"}"#, "refused invalid_error @40 response 4"),
        (r#"{"code":1e3,"message":"m"}"#, "refused invalid_error @40 response 4"),
        (r#"{"code":9223372036854775808,"message":"m"}"#, "refused invalid_error @40 response 4"),
        (r#"{"code":null,"message":"m"}"#, "refused invalid_error @40 response 4"),
        (r#"{"code":1,"message":{"a":1}}"#, "refused invalid_error @52 response 4"),
        (r#"{"code":1,"message":null}"#, "refused invalid_error @52 response 4"),
        (r#"{"code":1,"message":"\udc00"}"#, "refused lone_surrogate @53 response 4"),
        (r#"{"code":1,"message":"m","code":2}"#, "refused duplicate_key @56 response 4"),
        (r#"{"code":1,"message":"m","message":"m"}"#, "refused duplicate_key @56 response 4"),
        (r#"{"code":1,"message":"m","data":null,"data":1}"#, "refused duplicate_key @68 response 4"),
        (r#"{"code":1,"message":"m","x":1,"x":1}"#, r#"error 4 1 "m""#),
        (r#"{"code":-32042,"message":"m","data":"d"}"#, r#"error 4 -32042 "m" "d""#),
    ];
    for (error, expected) in cases {
        check(&format!(r#"{{"jsonrpc":"2.0","id":4,"error":{error}}}"#), expected);
        // The id behind the fault is found as well.
        let moved = format!(r#"{{"error":{error},"jsonrpc":"2.0","id":4}}"#);
        let outcome = show(decode(&moved, &DecodeLimits::default()));
        let (kind, id) = (expected.split(' ').nth(1), outcome.ends_with(" response 4"));
        assert_eq!(outcome.split(' ').nth(1), kind, "{moved}");
        assert!(id || outcome.starts_with("error 4 "), "{moved}");
    }
}

// field:FR-112
#[test]
fn duplicate_members_are_refused() {
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"result":{}}"#, "refused duplicate_key @17 response 1"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "refused duplicate_key @24 response -"),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#, "refused duplicate_key @24 response 1"),
        (r#"{"jsonrpc":"2.0","id":1,"\u0069d":"1","result":{}}"#, "refused duplicate_key @24 response -"),
        (r#"{"jsonrpc":"2.0","id":null,"id":1,"result":{}}"#, "refused duplicate_key @27 response -"),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"id":2,"result":{}}"#, "refused duplicate_key @24 response -"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#, "refused duplicate_key @35 response 1"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":null,"error":null}"#,
            "refused duplicate_key @48 response 1",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"a"}"#, "refused duplicate_key @37 request 1"),
        (
            r#"{"jsonrpc":"2.0","method":"a","params":null,"params":{}}"#,
            "refused duplicate_key @44 request -",
        ),
    ] {
        check(text, expected);
    }
}

// field:FR-112, field:FR-001
#[test]
fn broken_json_is_refused_where_it_breaks() {
    for (text, expected) in [
        ("", "refused unexpected_end @0 unknown -"),
        ("   ", "refused unexpected_end @3 unknown -"),
        ("Widget server v1.0 started OK", "refused syntax @0 unknown -"),
        ("[mcp] tools requested", "refused syntax @1 unknown -"),
        ("[12:00:01] ready", "refused syntax @3 unknown -"),
        ("Content-Length: 87", "refused syntax @0 unknown -"),
        ("{", "refused unexpected_end @1 unknown -"),
        ("{\"jsonrpc\"", "refused unexpected_end @10 unknown -"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a":"#, "refused unexpected_end @38 response 7"),
        (r#"{"jsonrpc":"2.0","id":7,"result":"abc"#, "refused unexpected_end @37 response 7"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}"#, "refused unexpected_end @35 response 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m""#, "refused unexpected_end @36 request 7"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}} x"#, "refused trailing_bytes @37 response 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m"}{"#, "refused trailing_bytes @37 request 7"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},}"#, "refused syntax @36 response 7"),
        (r#"{"jsonrpc":"2.0","id":7 "result":{}}"#, "refused syntax @24 unknown 7"),
        (r#"{"jsonrpc":"2.0","id":7,,"result":{}}"#, "refused syntax @24 unknown 7"),
        (r#"{,"jsonrpc":"2.0"}"#, "refused syntax @1 unknown -"),
        (r#"{"jsonrpc":"2.0","id":7,"result":NaN}"#, "refused syntax @33 response 7"),
        (r#"{"result":NaN,"id":7,"jsonrpc":"2.0"}"#, "refused syntax @10 response 7"),
        (r#"{"result":-Infinity,"id":7,"jsonrpc":"2.0"}"#, "refused syntax @10 response 7"),
        (r#"{"result":nul,"id":7,"jsonrpc":"2.0"}"#, "refused syntax @10 response 7"),
        (r#"{"result":{"a":[1}},"id":7,"jsonrpc":"2.0"}"#, "refused mismatched_bracket @17 response 7"),
        (r#"{"jsonrpc":"2.0","result":[1},"id":7}"#, "refused mismatched_bracket @28 response 7"),
        (r#"{'jsonrpc':'2.0'}"#, "refused syntax @1 unknown -"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}]"#, "refused syntax @35 response 7"),
        (r#"{jsonrpc:"2.0"}"#, "refused syntax @1 unknown -"),
        ("\u{feff}{}", "refused syntax @0 unknown -"),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\0\"}", "refused control_character @35 request 7"),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\nb\"}", "refused control_character @35 request 7"),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\u{b}\"method\":\"a\"}", "refused syntax @24 unknown 7"),
        ("{\"jsonrpc\":\"2.0\",\"id\":7\0,\"method\":\"a\"}", "refused syntax @23 unknown 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"\ud83d"}"#, "refused lone_surrogate @34 request 7"),
        (r#"{"jsonrpc":"2.0","\ud83d":1,"id":7,"method":"m"}"#, "refused lone_surrogate @18 request 7"),
    ] {
        check(text, expected);
    }
}

// field:FR-112
#[test]
fn faults_inside_raw_parts_are_left_to_the_typed_decode() {
    for result in [r#"{"x":NaN}"#, r#"{"a" 1}"#, r#"["\ud800"]"#, "[1,]", "{\"a\":\"\0\"}", r#"["\u0000"]"#] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":5,"result":{result}}}"#), &format!("response 5 {result}"));
    }
}

// field:FR-005
#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let text = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"\xb0\xa1\"}";
    let refused = show(decode_slice(text, &DecodeLimits::default()));
    assert_eq!(refused, "refused invalid_utf8 @34 response 3");
    let text = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\xb0\xa1\"}";
    let refused = show(decode_slice(text, &DecodeLimits::default()));
    assert_eq!(refused, "refused invalid_utf8 @34 unknown -");
}

// seed:B34, field:FR-112
#[test]
fn depth_is_limited_without_recursion_and_the_id_behind_it_is_found() {
    let message = |depth: usize| {
        format!(r#"{{"jsonrpc":"2.0","result":{}{},"id":6}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1))
    };
    let defaults = DecodeLimits::default();
    assert!(show(decode(&message(126), &defaults)).starts_with("response 6 "));
    assert!(show(decode(&message(127), &defaults)).starts_with("response 6 "));
    check(&message(128), "refused too_deep @152 response 6");
    check(&message(100_000), "refused too_deep @152 response 6");
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":6,"result":{}"#, "{\"a\":[".repeat(1_000_000)),
        "refused unexpected_end @6000033 response 6",
    );
    let shallow = DecodeLimits::default().with_max_depth(2);
    check_with(&message(2), &shallow, "response 6 []");
    check_with(&message(3), &shallow, "refused too_deep @27 response 6");
    check_with(
        r#"{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"","data":1}}"#,
        &shallow,
        r#"error 6 1 "" 1"#,
    );
    check_with(
        r#"{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"","data":[]}}"#,
        &shallow,
        "refused too_deep @62 response 6",
    );
    check_with(r#"{"jsonrpc":"2.0","method":"[[[[{{{{"}"#, &shallow, "notification [[[[{{{{");
    // What the limits allow the typed decoder can follow; more cannot be asked for.
    let deepest = message(127);
    let boundless = DecodeLimits::default().with_max_depth(usize::MAX);
    let Ok(Incoming::Single(Message::Response(response))) = decode(&deepest, &boundless) else { panic!() };
    response.result.parse::<serde_json::Value>().unwrap();
    check_with(&message(128), &boundless, "refused too_deep @152 response 6");
}

// seed:B33
#[test]
fn size_is_limited_below_at_and_above() {
    let text = r#"{"jsonrpc":"2.0","method":"m"}"#;
    let len = text.len();
    check_with(text, &DecodeLimits::default().with_max_bytes(len + 1), "notification m");
    check_with(text, &DecodeLimits::default().with_max_bytes(len), "notification m");
    check_with(text, &DecodeLimits::default().with_max_bytes(len - 1), "refused too_large @29 unknown -");
    let error = decode(text, &DecodeLimits::default().with_max_bytes(29)).unwrap_err();
    assert_eq!(error.to_string(), "message of 30 bytes exceeds the limit of 29 at byte 29");
}

#[test]
fn string_ids_are_limited_below_at_and_above() {
    let limits = DecodeLimits::default().with_max_id_bytes(3);
    let message = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":1}}"#);
    check_with(&message("ab"), &limits, "response \"ab\" 1");
    check_with(&message("a\\u00e9"), &limits, "response \"aé\" 1");
    check_with(&message("abcd"), &limits, "refused id_too_long @22 response -");
    check_with(&message("\\u00e9\\u00e9"), &limits, "refused id_too_long @22 response -");
}

// protocol:J-14, seed:E28
#[test]
fn batches_are_read_item_by_item() {
    let limits = DecodeLimits::default().with_max_batch_items(3);
    for (text, expected) in [
        (r#" [ {"jsonrpc":"2.0","id":1,"result":{}} ] "#, "batch [response 1 {}]"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":"1","method":"r"}]"#,
            "batch [response 1 {}; notification m; request \"1\" r]",
        ),
        (
            r#"[{"jsonrpc":"1.0","id":1,"result":{}},7,{"jsonrpc":"2.0","id":2,"result":{}}]"#,
            "batch [refused wrong_version @12 response 1; refused not_an_object @38 unknown -; response 2 {}]",
        ),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{},},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
            "batch [refused syntax @37 response 1; response 2 {}]",
        ),
        ("[[]]", "batch [refused not_an_object @1 unknown -]"),
        ("[1,2]", "batch [refused not_an_object @1 unknown -; refused not_an_object @3 unknown -]"),
        ("[1,]", "refused syntax @3 unknown -"),
        ("[1 2]", "refused syntax @3 unknown -"),
        ("[", "refused unexpected_end @1 unknown -"),
        ("[1", "refused unexpected_end @2 unknown -"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"res"#,
            "batch [response 1 {}; refused unexpected_end @66 unknown 2]",
        ),
        // The call whose answer is cut off, and those whose broken answers came before the cut, fail at once.
        (r#"[{"jsonrpc":"2.0","id":1,"result":["#, "refused unexpected_end @35 response 1"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"a":"#,
            "batch [response 1 {}; refused unexpected_end @76 response 2]",
        ),
        (
            r#"[{"jsonrpc":"1.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":["#,
            "batch [refused wrong_version @12 response 1; refused unexpected_end @72 response 2]",
        ),
        (
            r#"[{"jsonrpc":"1.0","id":1,"result":{}}] x"#,
            "batch [refused wrong_version @12 response 1; refused trailing_bytes @39 unknown -]",
        ),
        (r#"[{"level":"info","id":3}] ready"#, "refused trailing_bytes @26 unknown -"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}] x"#,
            "batch [response 1 {}; refused trailing_bytes @39 unknown -]",
        ),
        (
            r#"[{"jsonrpc":"2.0","method":"a"},1,2,{"jsonrpc":"2.0","method":"b"}]"#,
            "batch [notification a; refused not_an_object @32 unknown -; refused not_an_object @34 unknown -; \
             refused batch_too_long @36 unknown -]",
        ),
        ("[1,2,3,4]", "refused batch_too_long @7 unknown -"),
        (
            r#"[{"result":[[1}],"id":1,"jsonrpc":"2.0"},{"jsonrpc":"2.0","method":"a"}]"#,
            "batch [refused mismatched_bracket @14 response 1; notification a]",
        ),
    ] {
        check_with(text, &limits, expected);
    }
}

#[test]
fn batches_count_as_a_level() {
    let limits = DecodeLimits::default().with_max_depth(3);
    check_with(r#"[{"jsonrpc":"2.0","id":1,"result":[]}]"#, &limits, "batch [response 1 []]");
    check_with(
        r#"[{"jsonrpc":"2.0","id":1,"result":[[]]}]"#,
        &limits,
        "batch [refused too_deep @35 response 1]",
    );
}

// seed:E18, field:FR-146
#[test]
fn a_request_with_the_id_of_a_call_is_still_a_request() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#,
        "request 1 elicitation/create {}",
    );
}

#[test]
fn parts_are_borrowed_from_the_text() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#;
    let Ok(Incoming::Single(Message::Request(request))) = decode(text, &DecodeLimits::default()) else {
        panic!()
    };
    assert!(matches!(request.method, std::borrow::Cow::Borrowed(_)));
    let inside = text.as_bytes().as_ptr_range();
    assert!(inside.contains(&request.params.unwrap().as_str().as_ptr()));
}

#[test]
fn debug_of_a_message_is_short_whatever_the_peer_sends() {
    let long = "m".repeat(10_000);
    for text in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{long}","params":["{long}"]}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"{long}","params":["{long}"]}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","error":{{"code":1,"message":"{long}","data":"{long}"}}}}"#),
    ] {
        let shown = format!("{:?}", decode(&text, &DecodeLimits::default()).unwrap());
        assert!(shown.len() < 400, "{} bytes", shown.len());
    }
}
