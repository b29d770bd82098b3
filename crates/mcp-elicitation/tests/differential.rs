//! Answers checked by the crate and by an obvious twin that reads the JSON text of the schema each time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop there"
)]

use std::collections::BTreeSet;

use mcp_elicitation::{ElicitRequest, ElicitResult, Revision};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Strings with one, two and four bytes a character, and what formats accept and refuse.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{0,4}",
        "[é😀]{0,3}",
        Just("user@example.com".to_owned()),
        Just("https://example.com/".to_owned()),
        Just("2024-02-29".to_owned()),
        Just("2024-02-29T10:00:00Z".to_owned()),
    ]
}

/// Numbers that a twin can compare exactly: integers up to the ends of `i64`, and halves.
fn number() -> impl Strategy<Value = Value> {
    let edges = [
        i64::MIN,
        i64::MAX,
        9_007_199_254_740_991,
        9_007_199_254_740_992,
        9_007_199_254_740_993,
        -9_007_199_254_740_993,
    ];
    prop_oneof![
        (-3..4_i64).prop_map(Value::from),
        (-6..7_i32).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        prop::sample::select(edges.to_vec()).prop_map(Value::from),
        Just(Value::from(u64::MAX)),
    ]
}

fn options() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abc]", 1..4)
}

fn property() -> impl Strategy<Value = Value> {
    let count = || prop::option::of(0..4_u64);
    let format = prop::option::of(prop::sample::select(vec!["email", "uri", "date", "date-time", "phone"]));
    let string = (count(), count(), format).prop_map(|(min, max, format)| {
        let mut schema = json!({"type": "string"});
        set(&mut schema, "minLength", min);
        set(&mut schema, "maxLength", max);
        set(&mut schema, "format", format);
        schema
    });
    let bound = || prop::option::of(number());
    let numeric = (prop::bool::ANY, bound(), bound(), bound(), bound()).prop_map(
        |(integer, min, max, above, below)| {
            let mut schema = json!({"type": if integer { "integer" } else { "number" }});
            set(&mut schema, "minimum", min);
            set(&mut schema, "maximum", max);
            set(&mut schema, "exclusiveMinimum", above);
            set(&mut schema, "exclusiveMaximum", below);
            schema
        },
    );
    let select = (options(), prop::bool::ANY).prop_map(|(options, titled)| {
        if titled {
            json!({"type": "string", "oneOf": titles(&options)})
        } else {
            json!({"type": "string", "enum": options})
        }
    });
    let multi = (options(), 0..3, count(), count(), prop::option::of(prop::bool::ANY)).prop_map(
        |(options, shape, min, max, unique)| {
            let items = match shape {
                0 => json!({"type": "string", "enum": options}),
                1 => json!({"anyOf": titles(&options)}),
                _ => json!({"oneOf": titles(&options)}),
            };
            let mut schema = json!({"type": "array", "items": items});
            set(&mut schema, "minItems", min);
            set(&mut schema, "maxItems", max);
            set(&mut schema, "uniqueItems", unique);
            schema
        },
    );
    prop_oneof![3 => string, 3 => numeric, 1 => Just(json!({"type": "boolean"})), 2 => select, 3 => multi]
}

fn titles(options: &[String]) -> Value {
    options.iter().map(|option| json!({"const": option, "title": format!("Title {option}")})).collect()
}

fn set(schema: &mut Value, keyword: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        schema[keyword] = value.into();
    }
}

fn value() -> impl Strategy<Value = Value> {
    let items = prop_oneof![8 => "[abcd]".prop_map(Value::from), 1 => Just(json!(1)), 1 => Just(json!(null))];
    prop_oneof![
        4 => text().prop_map(Value::from),
        4 => number(),
        2 => prop::bool::ANY.prop_map(Value::from),
        2 => "[abcd]".prop_map(Value::from),
        4 => prop::collection::vec(items, 0..5).prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!({"a": 1})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let properties = prop::collection::btree_map("[a-d/~é]", property(), 0..5);
    (properties, prop::collection::vec(0..5_usize, 0..3), prop::option::of(prop::bool::ANY)).prop_map(
        |(properties, required, additional)| {
            let names: Vec<String> = properties.keys().cloned().collect();
            let required: Vec<&String> = required.iter().filter_map(|index| names.get(*index)).collect();
            let mut schema = json!({"type": "object", "properties": properties, "required": required});
            set(&mut schema, "additionalProperties", additional);
            schema
        },
    )
}

/// Everything that is wrong with a content, as `pointer rule`.
fn twin(schema: &Value, content: &Map<String, Value>) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    let properties = schema["properties"].as_object().unwrap();
    let pointer = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    for name in schema["required"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        if !content.contains_key(name) {
            wrong.insert(format!("{} required", pointer(name)));
        }
    }
    for (name, value) in content {
        let at = pointer(name);
        match properties.get(name) {
            Some(property) => twin_value(property, value, &at, &mut wrong),
            None if schema["additionalProperties"] == json!(false) => {
                wrong.insert(format!("{at} additionalProperties"));
            }
            None => {
                let strings = |items: &Vec<Value>| items.iter().all(Value::is_string);
                if value.is_null()
                    || value.is_object()
                    || value.as_array().is_some_and(|items| !strings(items))
                {
                    wrong.insert(format!("{at} type"));
                }
            }
        }
    }
    wrong
}

fn twin_value(property: &Value, value: &Value, at: &str, wrong: &mut BTreeSet<String>) {
    let mut expect = |holds: bool, rule: &str| {
        if !holds {
            wrong.insert(format!("{at} {rule}"));
        }
    };
    let allowed = |source: &Value| -> Vec<Value> {
        match (&source["enum"], &source["oneOf"], &source["anyOf"]) {
            (Value::Array(values), _, _) => values.clone(),
            (_, Value::Array(titled), _) | (_, _, Value::Array(titled)) => {
                titled.iter().map(|option| option["const"].clone()).collect()
            }
            _ => Vec::new(),
        }
    };
    match property["type"].as_str().unwrap() {
        "string" => {
            let Some(text) = value.as_str() else { return expect(false, "type") };
            let options = allowed(property);
            if !options.is_empty() {
                return expect(options.contains(value), "enum");
            }
            let length = text.chars().fold(0, |count, _| count + 1);
            expect(property["minLength"].as_u64().is_none_or(|min| length >= min), "minLength");
            expect(property["maxLength"].as_u64().is_none_or(|max| length <= max), "maxLength");
            let shape = match property["format"].as_str() {
                Some("email") => text == "user@example.com",
                Some("uri") => text == "https://example.com/",
                Some("date") => text == "2024-02-29",
                Some("date-time") => text == "2024-02-29T10:00:00Z",
                _ => true,
            };
            expect(shape, "format");
        }
        "boolean" => expect(value.is_boolean(), "type"),
        "array" => {
            let Some(items) = value.as_array() else { return expect(false, "type") };
            expect(property["minItems"].as_u64().is_none_or(|min| items.len() as u64 >= min), "minItems");
            expect(property["maxItems"].as_u64().is_none_or(|max| items.len() as u64 <= max), "maxItems");
            let options = allowed(&property["items"]);
            for (index, item) in items.iter().enumerate() {
                let at = format!("{at}/{index}");
                if !item.is_string() {
                    wrong.insert(format!("{at} type"));
                } else if !options.contains(item) {
                    wrong.insert(format!("{at} enum"));
                }
                let is_repeated = item.is_string() && items[..index].contains(item);
                if property["uniqueItems"] == json!(true) && is_repeated {
                    wrong.insert(format!("{at} uniqueItems"));
                }
            }
        }
        kind => {
            if !value.is_number() {
                return expect(false, "type");
            }
            let number = halves(value);
            expect(kind == "number" || number % 2 == 0, "type");
            let bound = |keyword: &str| property.get(keyword).map(halves);
            expect(bound("minimum").is_none_or(|bound| number >= bound), "minimum");
            expect(bound("maximum").is_none_or(|bound| number <= bound), "maximum");
            expect(bound("exclusiveMinimum").is_none_or(|bound| number > bound), "exclusiveMinimum");
            expect(bound("exclusiveMaximum").is_none_or(|bound| number < bound), "exclusiveMaximum");
        }
    }
}

/// Twice the value, exactly.
fn halves(value: &Value) -> i128 {
    let text = value.to_string();
    match text.split_once('.') {
        None => text.parse::<i128>().unwrap() * 2,
        Some((whole, fraction)) => {
            let half = i128::from(fraction == "5");
            let whole: i128 = whole.parse().unwrap();
            if text.starts_with('-') { whole * 2 - half } else { whole * 2 + half }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    // seed:E24 protocol:E-04
    #[test]
    fn the_twin_finds_the_same_faults(
        schema in schema(),
        values in prop::collection::vec(value(), 5),
        extra in prop::option::of(("[x-z]", value())),
        omit in prop::collection::vec(prop::bool::weighted(0.3), 5),
    ) {
        let params = json!({"message": "m", "requestedSchema": schema}).to_string();
        let request = ElicitRequest::parse(&params, Revision::V2025_11_25).unwrap();
        let names = schema["properties"].as_object().unwrap().keys();
        let mut content: Map<String, Value> = names
            .zip(values)
            .zip(omit)
            .filter(|(_, omit)| !omit)
            .map(|((name, value), _)| (name.clone(), value))
            .collect();
        content.extend(extra);
        let expected = twin(&schema, &content);
        let found = match request.check(ElicitResult::accept(content.clone())) {
            Ok(result) => {
                let sent = result.content.unwrap();
                prop_assert_eq!(sent.len(), content.len());
                for (name, value) in &sent {
                    if value.is_number() {
                        prop_assert_eq!(halves(value), halves(&content[name]));
                    } else {
                        prop_assert_eq!(value, &content[name]);
                    }
                }
                BTreeSet::new()
            }
            Err(error) => {
                error.violations().iter().map(|v| format!("{} {}", v.pointer, v.rule)).collect()
            }
        };
        prop_assert_eq!(found, expected, "{}", params);
    }

    #[test]
    fn a_date_is_a_day_that_the_calendar_has(year in 0..10_000_i64, month in 0..15_i64, day in 0..34_i64) {
        let text = format!("{year:04}-{month:02}-{day:02}");
        let params = r#"{"message": "m", "requestedSchema": {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}}"#;
        let request = ElicitRequest::parse(params, Revision::V2025_11_25).unwrap();
        let content = json!({"d": text}).as_object().unwrap().clone();
        let is_accepted = request.check(ElicitResult::accept(content)).is_ok();
        prop_assert_eq!(is_accepted, calendar_has(year, month, day), "{}", text);
    }

    #[test]
    fn any_text_as_params_gives_a_request_or_faults(params in "\\PC{0,60}", revision in 0..3_usize) {
        if let Err(error) = ElicitRequest::parse(&params, Revision::ALL[revision]) {
            prop_assert!(!error.violations().is_empty());
        }
    }
}

/// Counts the days one by one from the first of January.
fn calendar_has(year: i64, month: i64, day: i64) -> bool {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if leap {
        lengths[1] = 29;
    }
    usize::try_from(month - 1)
        .ok()
        .and_then(|index| lengths.get(index))
        .is_some_and(|length| (1..=*length).contains(&day))
}
