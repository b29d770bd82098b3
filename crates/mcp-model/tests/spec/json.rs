//! What is compiled here for reading and writing gives what `serde_json` gives, and no request of a client goes without.
//!
//! Every type reads every text: the official examples, values made of each definition of each revision's schema, and the same
//! with members that are wrong, missing or twice. Most do not fit; then both refuse them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use mcp_model::methods::{self, standing};
use mcp_model::*;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};

use crate::examples::examples;
use crate::schema::Schema;

/// Makes a value of a schema: the smallest, or one with everything, in which the choices fall on other branches each time.
struct Maker<'a> {
    schema: &'a Schema,
    /// 0 for the smallest.
    pick: usize,
}

impl Maker<'_> {
    fn make(&self, schema: &Value, depth: usize) -> Value {
        if let Some(path) = schema["$ref"].as_str() {
            let name = path.rsplit('/').next().unwrap();
            return self.make(self.schema.definition(name), depth + 1);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = Map::new();
            for part in parts {
                whole.extend(self.make(part, depth).as_object().cloned().unwrap_or_default());
            }
            return Value::Object(whole);
        }
        for choices in [&schema["anyOf"], &schema["enum"]] {
            if let Some(choices) = choices.as_array() {
                let choice = &choices[self.pick % choices.len()];
                return if schema["enum"].is_array() { choice.clone() } else { self.make(choice, depth) };
            }
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.pick % kinds.len()].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("string") => {
                json!(["text", "", "https://example.com/a?b=\u{e9}\"\\", "dGV4dA=="][self.pick % 4])
            }
            Some("integer") => json!([7, 0, -1, 9_007_199_254_740_991_i64][self.pick % 4]),
            Some("number") => json!([0.5, 0.0, 1.0, 1e-9][self.pick % 4]),
            Some("boolean") => json!(self.pick.is_multiple_of(2)),
            Some("null") => Value::Null,
            Some("array") if self.pick == 0 || depth > 6 => json!([]),
            Some("array") => json!([self.make(&schema["items"], depth + 1)]),
            _ if schema["properties"].is_object() => self.object(schema, depth),
            _ if depth > 6 => json!({}),
            _ => json!({ "any": self.pick }),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let members = schema["properties"].as_object().unwrap().iter();
        let made =
            members.filter(|(name, _)| required.contains(&name.as_str()) || (self.pick > 0 && depth <= 6));
        made.map(|(name, member)| (name.clone(), self.make(member, depth + 1))).collect()
    }
}

/// What a message carries, beside the whole of it.
fn parts(value: Value) -> Vec<Value> {
    let inner = ["/params", "/result", "/error/data"];
    let mut parts: Vec<Value> = inner.iter().filter_map(|at| value.pointer(at).cloned()).collect();
    parts.push(value);
    parts
}

/// The text of an object with one member wrong, missing or twice, a text for each member; and texts that are cut or too long.
fn spoiled(value: &Value, texts: &mut BTreeSet<String>) {
    let text = value.to_string();
    texts.insert(format!(" {text}\n"));
    texts.insert(format!("{text} x"));
    texts.extend(text.get(..text.len() / 2).map(str::to_owned));
    let Some(members) = value.as_object() else { return };
    texts.insert(Value::Array(members.values().cloned().collect()).to_string());
    let wrong = [json!(null), json!(7), json!("text"), json!([]), json!({}), json!(true), json!(-0.5)];
    for (at, name) in members.keys().enumerate() {
        let mut other = members.clone();
        match (at + text.len()) % (wrong.len() + 1) {
            kind if kind < wrong.len() => drop(other.insert(name.clone(), wrong[kind].clone())),
            _ => drop(other.remove(name)),
        }
        texts.insert(Value::Object(other).to_string());
    }
    if let Some((name, value)) = members.iter().next() {
        texts.insert(format!("{{{}:{value},{}", json!(name), &text[1..]));
    }
}

fn texts() -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for value in examples().into_iter().flat_map(|(.., value)| parts(value)) {
        texts.insert(value.to_string());
        spoiled(&value, &mut texts);
    }
    for version in ProtocolVersion::ALL {
        let schema = Schema::of(version);
        for name in schema.names() {
            for pick in 0..4 {
                let made = Maker { schema: &schema, pick }.make(schema.definition(name), 0);
                for value in parts(made) {
                    texts.insert(value.to_string());
                    if pick == 1 {
                        spoiled(&value, &mut texts);
                    }
                }
            }
        }
    }
    texts
}

/// What is read and what is refused, by us and by `serde_json`; how often it was read.
fn agree<T: DeserializeOwned + Debug>(
    texts: &BTreeSet<String>,
    read: fn(&str) -> serde_json::Result<T>,
    mut and: impl FnMut(T, T),
) -> usize {
    let name = std::any::type_name::<T>();
    let mut fitting = 0;
    for text in texts {
        match (read(text), serde_json::from_str::<T>(text)) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{name}: {text}");
                fitting += 1;
                and(ours, theirs);
            }
            // A struct of the protocol is an object, and no array of its members.
            (Err(ours), Ok(_)) => {
                let ours = ours.to_string();
                let is_sequence = ours.contains("invalid type: sequence, expected struct")
                    || ours.contains("invalid type: sequence, expected an object");
                assert!(is_sequence && text.contains('['), "{name}: {ours}: {text}");
            }
            // In words of their own: what is read member by member is refused with the name of the member and no line. What is
            // JSON is refused for what it holds; of two faults of what is none, either may be met first.
            (Err(ours), Err(theirs)) => {
                let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
                let is_alike = ours.is_data() || ours.to_string() == theirs.to_string();
                assert!(is_alike || !is_json, "{name}: {ours} and not {theirs}: {text}");
            }
            (ours, theirs) => panic!("{name}: {text}: {ours:?} and not {theirs:?}"),
        }
    }
    fitting
}

/// A type that is only read by [`FromJson`].
fn reads<T: FromJson + DeserializeOwned + Debug>(texts: &BTreeSet<String>) -> usize {
    agree(texts, T::from_json, |_, _| ())
}

/// A type that is read by it and can be written; its debug output may hide what the text shows.
fn reads_whole<T: FromJson + DeserializeOwned + Serialize + Debug>(texts: &BTreeSet<String>) -> usize {
    agree(texts, T::from_json, |ours: T, theirs| {
        assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
    })
}

/// A type that is written by [`ToJson`].
fn writes<T: ToJson + DeserializeOwned + Serialize + Debug>(texts: &BTreeSet<String>) -> usize {
    agree(
        texts,
        |text| serde_json::from_str(text),
        |value: T, _| {
            assert_eq!(value.to_json().unwrap().get(), serde_json::to_string(&value).unwrap());
        },
    )
}

/// A request that a client sends: params that are written, a result that is read, both compiled in this crate.
fn asks<R>(texts: &BTreeSet<String>) -> (&'static str, usize, usize)
where
    R: Request + ToJson + DeserializeOwned + Serialize + Debug,
    R::Result: FromJson + Debug,
{
    let read = agree(texts, R::read_result, |_, _| ());
    let written = agree(
        texts,
        |text| serde_json::from_str(text),
        |params: R, _| {
            let text = serde_json::to_string(&params).unwrap();
            assert_eq!(params.write_params().unwrap().get(), text);
            assert_eq!(params.to_json().unwrap().get(), text);
        },
    );
    (R::METHOD, written, read)
}

macro_rules! each {
    ($check:ident($texts:expr): $( $name:ident )+) => {
        [$( (stringify!($name), $check::<$name>($texts)), )+]
    };
}

#[test]
fn what_is_compiled_here_reads_and_writes_as_serde_json_does() {
    let texts = texts();
    assert!(texts.len() > 3000, "only {} texts", texts.len());
    let read = each! { reads(&texts):
        CancelTaskResult CreateTaskResult GetTaskResult ListTasksResult
    };
    let read_whole = each! { reads_whole(&texts):
        CallToolResult CancelledNotificationParams CompleteResult CreateMessageRequestParams CreateMessageResult
        DiscoverResult EmptyResult GetPromptResult Implementation InputRequest InputRequiredResult ListPromptsResult
        ListResourceTemplatesResult ListResourcesResult ListToolsResult LoggingMessageNotificationParams
        ProgressNotificationParams ReadResourceResult ServerCapabilities
        SubscriptionsAcknowledgedNotificationParams UnsupportedProtocolVersionData
    };
    let written = each! { writes(&texts):
        ClientCapabilities CreateMessageResult EmptyResult GetTaskPayloadRequestParams Implementation
        InitializeRequestParams ListRootsResult SubscriptionsListenRequestParams TaskMetadata
    };
    for (name, fitting) in read.into_iter().chain(read_whole).chain(written) {
        assert!(fitting >= 3, "{name}: only {fitting} texts fit it");
        assert!(fitting < texts.len(), "{name}: every text fits it");
    }
}

/// Requests of a client whose result it reads in another way than by a type.
const READ_OTHERWISE: [&str; 5] = [
    methods::INITIALIZE,
    methods::SERVER_DISCOVER,
    methods::SUBSCRIPTIONS_LISTEN,
    methods::TASKS_RESULT,
    methods::TASKS_UPDATE,
];

#[test]
fn no_request_of_a_client_is_compiled_elsewhere() {
    let texts = texts();
    let asked = [
        asks::<CallToolRequestParams>(&texts),
        asks::<CancelTaskRequestParams>(&texts),
        asks::<CompleteRequestParams>(&texts),
        asks::<GetPromptRequestParams>(&texts),
        asks::<GetTaskRequestParams>(&texts),
        asks::<ListPromptsRequestParams>(&texts),
        asks::<ListResourceTemplatesRequestParams>(&texts),
        asks::<ListResourcesRequestParams>(&texts),
        asks::<ListTasksRequestParams>(&texts),
        asks::<ListToolsRequestParams>(&texts),
        asks::<PingRequestParams>(&texts),
        asks::<ReadResourceRequestParams>(&texts),
        asks::<SetLevelRequestParams>(&texts),
        asks::<SubscribeRequestParams>(&texts),
        asks::<UnsubscribeRequestParams>(&texts),
    ];
    for (method, written, read) in asked {
        assert!(written >= 3 && read >= 3, "{method}: {written} params and {read} results");
    }
    let known: BTreeSet<&str> = asked.iter().map(|(method, ..)| *method).chain(READ_OTHERWISE).collect();
    let sent = methods::ALL.iter().filter(|method| {
        !method.starts_with("notifications/")
            && ProtocolVersion::ALL.into_iter().any(|version| standing(method, version).is_for_client())
    });
    let sent: BTreeSet<&str> = sent.copied().collect();
    assert_eq!(known, sent);
}

/// A page of tools is read in one pass where each of them is well-formed, and otherwise item by item: with the same outcome.
#[test]
fn a_page_of_tools_is_the_same_whatever_is_in_it() {
    const ITEMS: [&str; 12] = [
        r#"{"name":"t","inputSchema":{"type":"object"}}"#,
        r#"{ "inputSchema" : { "a" : [ 1, {} ] } , "name" : "\u00e9", "title":"T", "description":null, "other":[{}] }"#,
        r#"{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":7,"title":"x"},"icons":5,"execution":[]}"#,
        r#"{"name":"t","inputSchema":{},"outputSchema":{"type":"string"},"_meta":{"k":1e999}}"#,
        r#"{"name":"t","inputSchema":[]}"#,
        r#"{"name":"t"}"#,
        r#"{"name":"t","name":"u","inputSchema":{}}"#,
        r#"["t",null,null,{}]"#,
        r#"{"name":"\ud800","inputSchema":{}}"#,
        "null",
        "7",
        r#"{"name":"t","inputSchema":{"#,
    ];
    const REST: [&str; 7] = [
        "",
        r#","nextCursor":"c","ttlMs":-3,"cacheScope":"public","resultType":"complete","_meta":{"m":1},"more":[]"#,
        r#","nextCursor":null,"ttlMs":"x","cacheScope":4,"resultType":{},"_meta":null"#,
        r#","nextCursor":5"#,
        r#","tools":[]"#,
        r#","ttlMs":1.5}x"#,
        ",",
    ];
    let texts: BTreeSet<String> = ITEMS
        .iter()
        .flat_map(|first| ITEMS.iter().map(move |second| format!("[{first},{second}]")))
        .chain(["null", "[]", "[,]", "{}", "7", "[[]]"].map(str::to_owned))
        .flat_map(|tools| REST.map(|rest| format!(r#"{{"tools":{tools}{rest}}}"#)))
        .collect();
    let fitting = agree(&texts, ListToolsResult::from_json, |ours: ListToolsResult, theirs| {
        assert_eq!(ours.tools.rejected().len(), theirs.tools.rejected().len());
        assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
    });
    assert!(fitting > 300 && fitting < texts.len(), "{fitting} of {}", texts.len());

    let page = |tools: usize| {
        let text = format!(r#"{{"tools":[{}]}}"#, vec![ITEMS[0]; tools].join(","));
        ListToolsResult::from_json(&text).map(|page| page.tools.len())
    };
    assert_eq!(page(MAX_LIST_ITEMS).unwrap(), MAX_LIST_ITEMS);
    assert!(page(MAX_LIST_ITEMS + 1).is_err());
}
