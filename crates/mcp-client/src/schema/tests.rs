use serde_json::{Value, json};

use super::{OutputSchema, SchemaError, SchemaLimits};

fn compile(schema: &Value) -> Result<OutputSchema, SchemaError> {
    OutputSchema::new(&schema.to_string(), &SchemaLimits::default())
}

fn check(schema: &Value, value: &Value) -> Result<(), SchemaError> {
    compile(schema).and_then(|schema| schema.check(value))
}

/// Pointers into value and schema of each violation.
fn violations(schema: &Value, value: &Value) -> Vec<(String, String)> {
    match check(schema, value) {
        Ok(()) => Vec::new(),
        Err(SchemaError::Violated { violations, .. }) => {
            violations.into_iter().map(|violation| (violation.pointer, violation.schema_pointer)).collect()
        }
        Err(error) => panic!("{error}"),
    }
}

fn is_unusable(schema: &Value) -> bool {
    matches!(compile(schema), Err(SchemaError::Unusable { .. }))
}

fn limit<T: std::fmt::Debug>(outcome: Result<T, SchemaError>) -> &'static str {
    match outcome.unwrap_err() {
        SchemaError::LimitExceeded(limit) => limit.name,
        other => panic!("{other}"),
    }
}

/// protocol:TL-05
#[test]
fn every_violation_is_listed_with_its_places() {
    let schema = json!({
        "type": "object", "required": ["a", "c"],
        "properties": { "a": { "type": "number" }, "b": { "type": "array", "items": { "type": "string" } } },
    });
    assert!(violations(&schema, &json!({ "a": 1, "b": ["x"], "c": null })).is_empty());
    let mut found = violations(&schema, &json!({ "a": "1", "b": ["x", 2] }));
    found.sort();
    let expected = [("", "/required"), ("/a", "/properties/a/type"), ("/b/1", "/properties/b/items/type")];
    assert_eq!(found, expected.map(|(value, schema)| (value.to_owned(), schema.to_owned())));
}

/// protocol:J-34, protocol:J-35
#[test]
fn the_declared_dialect_is_used_and_an_unknown_one_refused() {
    let tuple = |dialect: Option<&str>, keyword: &str| {
        let mut schema = json!({ keyword: [{ "type": "string" }] });
        if let Some(dialect) = dialect {
            schema["$schema"] = json!(dialect);
        }
        schema
    };
    let value = json!([1]);
    assert!(check(&tuple(None, "prefixItems"), &value).is_err());
    assert!(
        check(&tuple(Some("https://json-schema.org/draft/2020-12/schema"), "prefixItems"), &value).is_err()
    );
    assert!(check(&tuple(Some("http://json-schema.org/draft-07/schema#"), "prefixItems"), &value).is_ok());
    assert!(check(&tuple(Some("http://json-schema.org/draft-07/schema#"), "items"), &value).is_err());
    for odd in [json!("https://example.com/my-dialect"), json!(""), json!(7)] {
        assert!(is_unusable(&json!({ "$schema": odd, "type": "object" })), "{odd}");
    }
}

/// protocol:J-36, protocol:J-37: nothing is fetched, and the schema does not count as one that allows everything.
#[test]
fn a_reference_to_the_outside_makes_a_schema_unusable() {
    for target in [
        "http://127.0.0.1:9/x",
        "https://example.com/s.json#/a",
        "file:///etc/passwd",
        "other.json",
        "//x/y",
        "",
    ] {
        assert!(is_unusable(&json!({ "properties": { "a": { "$ref": target } } })), "{target}");
    }
    assert!(is_unusable(&json!({ "$dynamicRef": "https://example.com/#x" })));
    assert!(is_unusable(&json!({ "allOf": [{ "$id": "https://example.com/x", "type": "object" }] })));
    // Data that looks like a reference is none.
    assert!(
        check(
            &json!({ "const": { "$ref": "https://example.com/" } }),
            &json!({ "$ref": "https://example.com/" })
        )
        .is_ok()
    );
    assert!(compile(&json!({ "properties": { "$ref": { "type": "string" } } })).is_ok());
}

/// field:FR-131
#[test]
fn a_recursive_schema_checks_real_trees_and_a_dangling_reference_is_found() {
    let tree = json!({
        "$ref": "#/$defs/Node",
        "$defs": { "Node": {
            "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } } },
        } },
    });
    let leaf = json!({ "name": "x" });
    assert!(
        check(&tree, &json!({ "name": "a", "children": [leaf, { "name": "b", "children": [leaf] }] }))
            .is_ok()
    );
    let found = violations(&tree, &json!({ "name": "a", "children": [{ "name": "b", "children": [{}] }] }));
    assert_eq!(found[0].0, "/children/0/children/0");
    assert!(is_unusable(&json!({ "$ref": "#/$defs/Missing" })));
    assert!(is_unusable(&json!({ "type": "no such type" })));
    assert!(is_unusable(&json!([])));
}

#[test]
fn a_schema_that_goes_in_a_circle_is_refused_and_not_followed() {
    for circle in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "anyOf": [{ "type": "null" }, { "$ref": "#" }] }),
    ] {
        let outcome = check(&circle, &json!({ "a": 1 }));
        assert!(matches!(outcome, Err(SchemaError::Unusable { .. })), "{circle}: {outcome:?}");
    }
}

/// protocol:J-38
#[test]
fn the_size_of_a_schema_is_bounded() {
    let with = |set: fn(&mut SchemaLimits)| {
        let mut limits = SchemaLimits::default();
        set(&mut limits);
        limits
    };
    let text = json!({ "properties": { "a": { "pattern": "x" }, "b": { "pattern": "y" } } }).to_string();
    let bytes = text.len();
    assert!(
        OutputSchema::new(&text, &SchemaLimits { max_schema_bytes: bytes, ..SchemaLimits::default() })
            .is_ok()
    );
    let outcome =
        OutputSchema::new(&text, &SchemaLimits { max_schema_bytes: bytes - 1, ..SchemaLimits::default() });
    assert_eq!(limit(outcome), "max_schema_bytes");
    // Four levels of values, four objects, two patterns.
    assert!(OutputSchema::new(&text, &with(|limits| limits.max_schema_depth = 4)).is_ok());
    assert_eq!(
        limit(OutputSchema::new(&text, &with(|limits| limits.max_schema_depth = 3))),
        "max_schema_depth"
    );
    assert!(OutputSchema::new(&text, &with(|limits| limits.max_subschemas = 4)).is_ok());
    assert_eq!(limit(OutputSchema::new(&text, &with(|limits| limits.max_subschemas = 3))), "max_subschemas");
    assert!(OutputSchema::new(&text, &with(|limits| limits.max_patterns = 2)).is_ok());
    assert_eq!(limit(OutputSchema::new(&text, &with(|limits| limits.max_patterns = 1))), "max_patterns");
    let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(5000), "}".repeat(5000));
    assert!(OutputSchema::new(&deep, &SchemaLimits::default()).is_err());
}

/// protocol:J-38
#[test]
fn regular_expressions_take_linear_time_and_bounded_memory() {
    let schema = compile(&json!({ "pattern": "^(a+)+$" })).unwrap();
    let begun = std::time::Instant::now();
    assert!(schema.check(&json!("a".repeat(50_000) + "b")).is_err());
    // A backtracking engine would not come back at all.
    assert!(begun.elapsed().as_secs() < 20);
    assert!(is_unusable(&json!({ "pattern": "a{1000}{1000}{1000}" })));
    assert!(is_unusable(&json!({ "pattern": "(a)\\1" })));
    assert!(is_unusable(&json!({ "patternProperties": { "(?=x)": {} } })));
}

/// protocol:J-38: two references side by side double the work with each level of the value.
#[test]
fn work_that_grows_without_bound_is_refused_before_it_is_done() {
    let both = json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] });
    let schema = compile(&json!({ "properties": { "a": both } })).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({ "a": value }));
    assert!(schema.check(&nested(10)).is_ok());
    assert_eq!(limit(schema.check(&nested(60))), "max_evaluations");
    let wide = json!({ "items": { "properties": { "a": { "enum": (0..2000).collect::<Vec<_>>() } } } });
    assert_eq!(limit(check(&wide, &json!(vec![json!({ "a": 1 }); 1000]))), "max_evaluations");
    assert!(check(&wide, &json!(vec![json!({ "a": 1 }); 100])).is_ok());
    // A chain, one link for each level.
    let limits = SchemaLimits { max_evaluation_depth: 20, ..SchemaLimits::default() };
    let chain = json!({ "properties": { "a": { "$ref": "#" } } }).to_string();
    let chain = OutputSchema::new(&chain, &limits).unwrap();
    assert!(chain.check(&nested(9)).is_ok());
    assert_eq!(limit(chain.check(&nested(10))), "max_evaluation_depth");
}

#[test]
fn what_goes_deep_is_checked_all_the_same() {
    let chain: serde_json::Map<String, Value> =
        (0..400).map(|at| (format!("d{at}"), json!({ "$ref": format!("#/$defs/d{}", at + 1) }))).collect();
    let mut schema = json!({ "$ref": "#/$defs/d0", "$defs": chain });
    schema["$defs"]["d400"] = json!({ "type": "string" });
    let schema = compile(&schema).unwrap();
    assert!(schema.check(&json!("x")).is_ok());
    assert!(matches!(schema.check(&json!(1)), Err(SchemaError::Violated { .. })));
}

#[test]
fn an_error_lists_so_many_violations_and_says_that_there_are_more() {
    let schema = json!({ "items": { "type": "string" } }).to_string();
    let limits = SchemaLimits { max_violations: 3, ..SchemaLimits::default() };
    let schema = OutputSchema::new(&schema, &limits).unwrap();
    for (count, listed, more) in [(2, 2, false), (3, 3, false), (4, 3, true), (25_000, 1, true)] {
        let Err(SchemaError::Violated { violations, more: said }) = schema.check(&json!(vec![1; count]))
        else {
            panic!("{count} numbers are no strings")
        };
        assert_eq!((violations.len(), said), (listed, more), "{count}");
    }
}

#[test]
fn what_an_error_shows_is_cut_and_escaped_and_never_the_value() {
    let schema = json!({ "properties": { "a\u{1b}[2J": { "enum": ["x".repeat(5000)] } } });
    let error = check(&schema, &json!({ "a\u{1b}[2J": "canary" })).unwrap_err();
    let shown = error.to_string();
    assert!(!shown.contains(['\u{1b}', '\n']) && shown.len() < 2000, "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn formats_are_notes_and_boolean_schemas_work() {
    assert!(check(&json!({ "format": "email" }), &json!("no address")).is_ok());
    assert!(OutputSchema::new("true", &SchemaLimits::default()).unwrap().check(&json!(1)).is_ok());
    assert!(OutputSchema::new("false", &SchemaLimits::default()).unwrap().check(&json!(1)).is_err());
    assert!(check(&json!({ "type": "null" }), &json!(null)).is_ok());
}

/// An object with so many members that mean nothing.
fn padding(members: usize) -> Value {
    Value::Object((0..members).map(|at| (format!("x{at}"), json!({}))).collect())
}

fn steps(schema: &Value, value: &Value) -> u64 {
    super::cost::of(schema, value, &SchemaLimits::default()).unwrap().steps
}

/// Counting is work too: what a schema refers to is found once, and not with each part of the value.
#[test]
fn what_a_schema_applies_is_found_out_once_however_long_the_value_is() {
    let named = |reference: &str, name: &str| {
        let mut defs = padding(4000);
        defs["z"] = json!({ name: "x", "type": "integer" });
        json!({ "items": { reference: "#x" }, "$defs": defs })
    };
    let mut wide = padding(4000);
    wide["type"] = json!("integer");
    let schemas = [
        named("$ref", "$anchor"),
        named("$dynamicRef", "$dynamicAnchor"),
        json!({ "items": { "$ref": format!("#/$defs/{}", "x".repeat(4000)) }, "$defs": { "x".repeat(4000): true } }),
        json!({ "items": wide }),
    ];
    for schema in &schemas {
        let [few, many] = [100, 20_000].map(|items| steps(schema, &Value::Array(vec![json!(0); items])));
        assert!(many - few <= 2 * 19_900, "{few} {many}");
        assert!(check(schema, &json!([1, 2])).is_ok());
    }
    for reference in ["$ref", "$dynamicRef"] {
        let name = if reference == "$ref" { "$anchor" } else { "$dynamicAnchor" };
        assert_eq!(violations(&named(reference, name), &json!([1, "x"])).len(), 1);
    }
    // As many references as there may be, to one name.
    let schema = Value::Array((0..4000).map(|_| json!({ "$ref": "#x" })).collect());
    let schema = json!({ "allOf": schema, "$defs": { "z": { "$anchor": "x" } } });
    assert!(steps(&schema, &json!(0)) < 30_000, "{}", steps(&schema, &json!(0)));
}

/// Names that are looked up are no visits, but not free either.
#[test]
fn looking_for_members_is_bounded() {
    let names = |count: usize| Value::Object((0..count).map(|at| (format!("y{at}"), json!(0))).collect());
    let schema = json!({ "items": { "allOf": vec![json!({ "properties": padding(100) }); 40] } });
    let value = |items: usize| Value::Array(vec![names(100); items]);
    let outcome = |items| super::cost::of(&schema, &value(items), &SchemaLimits::default());
    assert!(outcome(1000).is_ok());
    assert_eq!(limit(outcome(3000)), "max_evaluations");
}
