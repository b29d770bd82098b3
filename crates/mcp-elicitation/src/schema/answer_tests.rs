use serde_json::{Value, json};

use super::tests::{one, parse_schema, rules};
use crate::{ElicitResult, FormRequest, Revision, Rule};

fn answer(form: &FormRequest, value: &Value) -> Vec<(String, Rule)> {
    let content = json!({"p": value}).as_object().unwrap().clone();
    match form.check(ElicitResult::accept(content)) {
        Ok(_) => Vec::new(),
        Err(error) => error.violations().iter().map(|v| (v.pointer.clone(), v.rule)).collect(),
    }
}

// seed:E24 protocol:E-04
/// What it takes to say the message in another language.
#[test]
fn a_violation_has_the_numbers_of_its_message() {
    for (schema, answer, limit, actual) in [
        (json!({"type": "string", "minLength": 2}), json!("é"), json!(2), Some(1)),
        (json!({"type": "string", "maxLength": 3}), json!("😀😀😀😀"), json!(3), Some(4)),
        (json!({"type": "number", "minimum": 1.5}), json!(1), json!(1.5), None),
        (json!({"type": "integer", "maximum": 3}), json!(4), json!(3), None),
        (json!({"type": "string", "format": "email"}), json!("x"), json!(null), None),
    ] {
        let form = one(&schema);
        let violations = form.schema().fields()[0].violations(&answer);
        let [violation] = &violations[..] else { panic!("one: {violations:?}") };
        let found = violation.limit().cloned().map_or(json!(null), Value::Number);
        assert_eq!((found, violation.actual()), (limit, actual), "{schema}");
        for number in
            violation.limit().map(ToString::to_string).into_iter().chain(actual.map(|n: u64| n.to_string()))
        {
            assert!(violation.message.contains(&number), "{}", violation.message);
        }
        // What `validate` prints has these members and no more.
        let printed = serde_json::to_value(violation).unwrap();
        assert_eq!(printed.as_object().unwrap().len(), 3, "{printed}");
    }
    let options = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 2});
    let violations = one(&options).schema().fields()[0].violations(&json!(["a"]));
    assert_eq!((violations[0].limit(), violations[0].actual()), (Some(&2.into()), Some(1)));
}

#[test]
fn all_violations_of_an_answer_are_listed_with_pointers() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["a", "b", "c"], "properties": {
        "a": {"type": "string", "minLength": 3, "format": "email"},
        "b": {"type": "integer", "minimum": 1},
        "c": {"type": "boolean"},
        "d": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "minItems": 4},
        "e/~": {"type": "string", "enum": ["x"]},
    }});
    let form = parse_schema(&schema, Revision::V2026_07_28).unwrap();
    let content =
        json!({"a": "q", "b": 0.5, "d": ["x", "z", 1], "e/~": "w", "f": 1}).as_object().unwrap().clone();
    let error = form.check(ElicitResult::accept(content)).unwrap_err();
    let expected = [
        ("/a", Rule::MinLength),
        ("/a", Rule::Format),
        ("/b", Rule::Type),
        ("/b", Rule::Minimum),
        ("/c", Rule::Required),
        ("/d", Rule::MinItems),
        ("/d/1", Rule::Enum),
        ("/d/2", Rule::Type),
        ("/e~1~0", Rule::Enum),
        ("/f", Rule::AdditionalProperties),
    ];
    assert_eq!(rules(error.violations()), expected);
}

#[test]
fn a_value_of_the_wrong_type_is_told_what_it_must_be() {
    for (schema, expected) in [
        (json!({"type": "string"}), "must be a string"),
        (json!({"type": "string", "enum": ["a"]}), "must be a string"),
        (json!({"type": "integer"}), "must be an integer"),
        (json!({"type": "number"}), "must be a number"),
        (json!({"type": "boolean"}), "must be a boolean"),
        (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), "must be a list of strings"),
    ] {
        let form = one(&schema);
        let content = json!({"p": {}}).as_object().unwrap().clone();
        let error = form.check(ElicitResult::accept(content)).unwrap_err();
        assert_eq!(error.violations()[0].message, expected, "{schema}");
    }
}

#[test]
fn single_values_against_single_fields() {
    let email = json!({"type": "string", "format": "email"});
    let cases = [
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!("é"), vec![Rule::MinLength]),
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!("😀😀"), vec![]),
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!("😀😀😀"), vec![]),
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!("😀😀😀😀"), vec![Rule::MaxLength]),
        // Four code points, though a person sees one sign.
        (json!({"type": "string", "maxLength": 3}), json!("e\u{301}\u{301}\u{301}"), vec![Rule::MaxLength]),
        (json!({"type": "string"}), json!(5), vec![Rule::Type]),
        (json!({"type": "string"}), json!(null), vec![Rule::Type]),
        (json!({"type": "string"}), json!(["a"]), vec![Rule::Type]),
        (json!({"type": "string", "pattern": "^a+$"}), json!("aab"), vec![Rule::Pattern]),
        (json!({"type": "string", "pattern": "(?=x)"}), json!("anything"), vec![]),
        (email.clone(), json!("a@b.example"), vec![]),
        (email, json!("a@"), vec![Rule::Format]),
        (json!({"type": "string", "format": "uri"}), json!("https://a.example/"), vec![]),
        (json!({"type": "string", "format": "uri"}), json!("/relative"), vec![Rule::Format]),
        (json!({"type": "string", "format": "date"}), json!("2024-02-30"), vec![Rule::Format]),
        (json!({"type": "string", "format": "date"}), json!("2024-02-29"), vec![]),
        (json!({"type": "string", "format": "date-time"}), json!("2024-02-29T10:00:00"), vec![Rule::Format]),
        (json!({"type": "string", "format": "date-time"}), json!("2024-02-29T10:00:00Z"), vec![]),
        (json!({"type": "number", "minimum": 0.5, "maximum": 1.5}), json!(0.5), vec![]),
        (json!({"type": "number", "minimum": 0.5, "maximum": 1.5}), json!(0.49), vec![Rule::Minimum]),
        (json!({"type": "number", "minimum": 0.5, "maximum": 1.5}), json!(1.51), vec![Rule::Maximum]),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!(0),
            vec![Rule::ExclusiveMinimum],
        ),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!(1.0),
            vec![Rule::ExclusiveMaximum],
        ),
        (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), json!(0.5), vec![]),
        (json!({"type": "number"}), json!("5"), vec![Rule::Type]),
        (json!({"type": "number"}), json!(true), vec![Rule::Type]),
        (json!({"type": "integer"}), json!(5.5), vec![Rule::Type]),
        (json!({"type": "integer"}), json!(5.0), vec![]),
        (json!({"type": "integer"}), json!("5"), vec![Rule::Type]),
        (json!({"type": "integer", "minimum": 0.5}), json!(0), vec![Rule::Minimum]),
        (
            json!({"type": "integer", "maximum": 9_007_199_254_740_992_i64}),
            json!(9_007_199_254_740_993_i64),
            vec![Rule::Maximum],
        ),
        (json!({"type": "integer", "minimum": u64::MAX}), json!(u64::MAX - 1), vec![Rule::Minimum]),
        (json!({"type": "boolean"}), json!("true"), vec![Rule::Type]),
        (json!({"type": "boolean"}), json!(0), vec![Rule::Type]),
        (json!({"type": "string", "enum": ["a"]}), json!("A"), vec![Rule::Enum]),
        (json!({"type": "string", "enum": ["a"]}), json!(["a"]), vec![Rule::Type]),
        // protocol:E-02: values, never titles.
        (json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), json!("A"), vec![Rule::Enum]),
        (json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}), json!("A"), vec![Rule::Enum]),
        (
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
            json!(["A"]),
            vec![Rule::Enum],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 1}),
            json!([]),
            vec![Rule::MinItems],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 1}),
            json!(["a", "b"]),
            vec![Rule::MaxItems],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 1}),
            json!(["b"]),
            vec![],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "uniqueItems": true}),
            json!(["a", "b"]),
            vec![],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}),
            json!(["a", "a"]),
            vec![],
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "uniqueItems": true}),
            json!(["a", "a"]),
            vec![Rule::UniqueItems],
        ),
        (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), json!("a"), vec![Rule::Type]),
    ];
    for (property, value, expected) in cases {
        let form = one(&property);
        let found: Vec<Rule> = answer(&form, &value).into_iter().map(|(_, rule)| rule).collect();
        assert_eq!(found, expected, "{property} {value}");
    }
}

// protocol:E-01 seed:E24
#[test]
fn omitted_fields_are_filled_with_their_defaults_on_accept() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
        "nothing": {"type": "string"},
    }});
    let form = parse_schema(&schema, Revision::V2025_11_25).unwrap();
    let all = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": true});
    for answer in [ElicitResult::accept_url(), ElicitResult::accept(serde_json::Map::new())] {
        let result = form.check(answer).unwrap();
        assert_eq!(result.content.map(Value::Object), Some(all.clone()));
    }
    let given = json!({"name": "Ada", "verified": false}).as_object().unwrap().clone();
    let content = form.check(ElicitResult::accept(given)).unwrap().content.unwrap();
    assert_eq!(
        Value::Object(content),
        json!({"name": "Ada", "age": 30, "score": 95.5, "status": "active", "verified": false})
    );
}

#[test]
fn a_default_that_breaks_the_fields_own_rules_is_not_sent() {
    let form = one(&json!({"type": "string", "minLength": 5, "default": "abc"}));
    let result = form.check(ElicitResult::accept_url()).unwrap();
    assert_eq!(result.content, Some(serde_json::Map::new()));
}

// protocol:10.14 protocol:E-03
#[test]
fn numbers_travel_as_they_are() {
    let form = one(&json!({"type": "number"}));
    let integer = one(&json!({"type": "integer"}));
    let sent = |form: &FormRequest, text: &str| {
        let content = serde_json::from_str(&format!(r#"{{"p": {text}}}"#)).unwrap();
        serde_json::to_string(&form.check(ElicitResult::accept(content)).unwrap().content).unwrap()
    };
    assert_eq!(sent(&form, "95.5"), r#"{"p":95.5}"#);
    assert_eq!(sent(&form, "5.0"), r#"{"p":5.0}"#);
    assert_eq!(sent(&integer, "5.0"), r#"{"p":5}"#);
    assert_eq!(sent(&integer, "9007199254740993"), r#"{"p":9007199254740993}"#);
    assert_eq!(sent(&integer, "18446744073709551615"), r#"{"p":18446744073709551615}"#);
    assert_eq!(sent(&integer, "-9223372036854775808"), r#"{"p":-9223372036854775808}"#);
    let default = one(&json!({"type": "integer", "default": 5.0})).check(ElicitResult::accept_url()).unwrap();
    assert_eq!(serde_json::to_string(&default.content).unwrap(), r#"{"p":5}"#);
}

#[test]
fn further_members_of_an_answer_follow_the_schema() {
    let extra = json!({"x": "text", "y": ["a"], "z": 1}).as_object().unwrap().clone();
    for open in [json!({}), json!({"additionalProperties": true}), json!({"additionalProperties": {}})] {
        let mut schema = json!({"type": "object", "properties": {}});
        schema.as_object_mut().unwrap().extend(open.as_object().unwrap().clone());
        let form = parse_schema(&schema, Revision::V2025_11_25).unwrap();
        assert!(!form.schema().is_closed());
        assert_eq!(form.check(ElicitResult::accept(extra.clone())).unwrap().content, Some(extra.clone()));
        for bad in [json!({"x": null}), json!({"x": {}}), json!({"x": [1]})] {
            let error = form.check(ElicitResult::accept(bad.as_object().unwrap().clone())).unwrap_err();
            assert_eq!(rules(error.violations()), [("/x", Rule::Type)]);
        }
    }
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let form = parse_schema(&closed, Revision::V2025_11_25).unwrap();
    assert!(form.schema().is_closed());
    let error = form.check(ElicitResult::accept(extra)).unwrap_err();
    assert_eq!(error.violations().len(), 3);
}
