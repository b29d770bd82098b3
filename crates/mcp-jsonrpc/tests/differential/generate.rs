//! Texts near the envelope: valid JSON with the right and the wrong members, and ways to break it.

use proptest::{prelude::*, sample::select};

/// One message or a batch of them, valid JSON throughout.
pub(crate) fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => object(),
        2 => proptest::collection::vec(prop_oneof![8 => object(), 1 => any_value()], 0..5)
            .prop_map(|items| format!("[{}]", items.join(","))),
        1 => any_value(),
    ]
}

fn object() -> impl Strategy<Value = String> {
    let shaped = (shape(), proptest::collection::vec(member(), 0..2), any::<u64>(), space());
    shaped.prop_map(|(mut members, extra, seed, space)| {
        members.extend(extra);
        shuffle(&mut members, seed);
        format!("{space}{{{space}{}{space}}}{space}", members.join(&format!("{space},{space}")))
    })
}

/// The members of a message that is right, mostly.
fn shape() -> impl Strategy<Value = Vec<String>> {
    let version = Just("\"jsonrpc\":\"2.0\"".to_owned()).boxed();
    let id = id().prop_map(|id| format!("\"id\":{id}")).boxed();
    let method = string().prop_map(|method| format!("\"method\":{method}")).boxed();
    let params = any_value().prop_map(|value| format!("\"params\":{value}")).boxed();
    let result = any_value().prop_map(|value| format!("\"result\":{value}")).boxed();
    let error = error().prop_map(|value| format!("\"error\":{value}")).boxed();
    prop_oneof![
        (version.clone(), id.clone(), method.clone(), params.clone())
            .prop_map(|(a, b, c, d)| vec![a, b, c, d]),
        (version.clone(), method, params).prop_map(|(a, b, c)| vec![a, b, c]),
        (version.clone(), id.clone(), result).prop_map(|(a, b, c)| vec![a, b, c]),
        (version.clone(), id, error.clone()).prop_map(|(a, b, c)| vec![a, b, c]),
        (version, error).prop_map(|(a, b)| vec![a, b]),
        proptest::collection::vec(member(), 0..6),
    ]
}

/// Any member, with the key spelled in some way.
fn member() -> impl Strategy<Value = String> {
    let keys = [
        "jsonrpc",
        "id",
        "method",
        "params",
        "result",
        "error",
        "ID",
        "Method",
        "idx",
        "",
        "x",
        "\\u0069d",
        "res\\u0075lt",
        "\\ud83d",
        "\\\"id\\\"",
    ];
    let value = prop_oneof![any_value(), id(), error(), Just("\"2.0\"".to_owned()), Just("null".to_owned())];
    (select(keys.to_vec()), value, space())
        .prop_map(|(key, value, space)| format!("\"{key}\"{space}:{space}{value}"))
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..10_i64).prop_map(|id| id.to_string()),
        1 => any::<i64>().prop_map(|id| id.to_string()),
        2 => string(),
        2 => select(vec![
            "0", "-0", "1.0", "-0.0", "2.50", "1e2", "9223372036854775808", "-9223372036854775809", "null", "true",
            "[]", "{\"id\":1}", "\"1\"", "\"\\u0031\"", "9007199254740993",
        ])
        .prop_map(str::to_owned),
    ]
}

fn error() -> impl Strategy<Value = String> {
    let code = prop_oneof![
        4 => any::<i32>().prop_map(|code| code.to_string()),
        1 => select(vec!["1.0", "\"1\"", "null", "1e2", "-0", "99999999999999999999"]).prop_map(str::to_owned),
    ];
    let whole =
        (code, string(), any_value(), 0..7_usize).prop_map(|(code, message, data, form)| match form {
            0 => format!(r#"{{"code":{code}}}"#),
            1 => format!(r#"{{"message":{message}}}"#),
            2 => format!(r#"{{"code":{code},"message":{message},"code":{code}}}"#),
            3 => format!(r#"{{"data":{data},"message":{message},"code":{code}}}"#),
            4 => format!(r#"{{ "code" : {code} , "message" : {message} , "x" : {data} }}"#),
            5 => format!(r#"{{"code":{code},"message":{data}}}"#),
            _ => format!(r#"{{"code":{code},"message":{message}}}"#),
        });
    prop_oneof![8 => whole, 1 => any_value(), 1 => Just("null".to_owned())]
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z/]{0,8}",
        1 => select(vec![
            "\\\"", "\\\\", "\\/", "\\n", "\\u0000", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\udc00\\ud800", "é😀",
            "{", "}]", "[", ":,",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        12 => proptest::collection::vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat())),
        1 => (60..140_usize, "[x\\\\]{1}").prop_map(|(len, fill)| format!("\"{}\"", fill.repeat(2 * len))),
        1 => Just(format!("\"{}\"", "i".repeat(1024))),
        1 => Just(format!("\"{}\"", "i".repeat(1025))),
    ]
}

fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec![
            "null",
            "true",
            "false",
            "0",
            "-1.5e-3",
            "1e400",
            "18446744073709551615",
            "{}",
            "[]",
            "[ ]"
        ])
        .prop_map(str::to_owned),
        string(),
    ];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            proptest::collection::vec((string(), inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    let deep = (120..130_usize).prop_map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    prop_oneof![20 => nested, 1 => deep]
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t ")]
}

fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for i in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        items.swap(i, (seed >> 33) as usize % (i + 1));
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Cut,
    Double,
    Insert(u8),
    Remove,
    Replace(u8),
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let byte = prop_oneof![select(b"\"\\{}[]:,.-0e \n\x00\xc3\xff".to_vec()), any::<u8>()];
    prop_oneof![
        Just(Mutation::Cut),
        Just(Mutation::Double),
        Just(Mutation::Remove),
        byte.clone().prop_map(Mutation::Insert),
        byte.prop_map(Mutation::Replace),
    ]
}

pub(crate) fn mutate(bytes: &mut Vec<u8>, place: prop::sample::Index, mutation: Mutation) {
    if bytes.is_empty() {
        return;
    }
    let at = place.index(bytes.len());
    match mutation {
        Mutation::Cut => bytes.truncate(at),
        Mutation::Double => bytes.extend_from_within(at..),
        Mutation::Insert(byte) => bytes.insert(at, byte),
        Mutation::Remove => {
            bytes.remove(at);
        }
        Mutation::Replace(byte) => {
            bytes.splice(at..=at, [byte]);
        }
    }
}
