use serde_json::{Value, json};

use crate::{
    ElicitRequest, FieldKind, FormRequest, Format, Modes, RequestError, RequestLimits, RequestRules,
    Revision, Rule, Violation,
};

fn form_params(schema: &Value) -> String {
    json!({"message": "m", "requestedSchema": schema}).to_string()
}

pub(super) fn parse_schema(schema: &Value, revision: Revision) -> Result<FormRequest, RequestError> {
    match ElicitRequest::parse(&form_params(schema), revision)? {
        ElicitRequest::Form(form) => Ok(form),
        ElicitRequest::Url(_) => panic!("a form"),
    }
}

/// A form with one property `p`.
pub(super) fn one(property: &Value) -> FormRequest {
    let schema = json!({"type": "object", "properties": {"p": property}});
    parse_schema(&schema, Revision::V2025_11_25).unwrap()
}

pub(super) fn rules(violations: &[Violation]) -> Vec<(&str, Rule)> {
    violations.iter().map(|v| (v.pointer.as_str(), v.rule)).collect()
}

/// The first violation of a request whose schema has one property `p`.
fn refusal(property: &Value, revision: Revision) -> (String, Rule) {
    let schema = json!({"type": "object", "properties": {"p": property}});
    let error = parse_schema(&schema, revision).expect_err(&property.to_string());
    let first = error.violations()[0].clone();
    (first.pointer, first.rule)
}

// protocol:E-01 protocol:E-03 field:FR-135
#[test]
fn every_kind_of_field_is_read() {
    let properties = r#"{
        "z": {"type": "string", "title": "Z", "description": "d", "minLength": 1, "maxLength": 3, "format": "email", "default": "x"},
        "n": {"type": "number", "minimum": 0.5, "maximum": 1e3, "default": 95.5},
        "i": {"type": "integer", "minimum": -1, "default": 7},
        "b": {"type": "boolean", "default": false},
        "s1": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "s2": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}], "default": "a"},
        "m1": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2, "default": ["a"]},
        "m2": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "default": ["b", "a"]},
        "m3": {"type": "array", "items": {"oneOf": [{"const": "a", "title": "A"}]}},
        "l": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}
    }"#;
    let params = format!(
        r#"{{"mode": "form", "message": "m", "requestedSchema": {{"$schema": "x", "type": "object", "properties": {properties}, "required": ["z", "l"]}}}}"#
    );
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let ElicitRequest::Form(form) = ElicitRequest::parse(&params, revision).unwrap() else {
            panic!("a form")
        };
        let schema = form.schema();
        let names: Vec<_> = schema.fields().iter().map(crate::Field::name).collect();
        assert_eq!(names, ["z", "n", "i", "b", "s1", "s2", "m1", "m2", "m3", "l"]);
        let required: Vec<_> =
            schema.fields().iter().filter(|f| f.is_required()).map(crate::Field::name).collect();
        assert_eq!(required, ["z", "l"]);
        // `x` is no email address.
        let expected =
            json!({"n": 95.5, "i": 7, "b": false, "s1": "b", "s2": "a", "m1": ["a"], "m2": ["b", "a"]});
        assert_eq!(Value::Object(form.defaults()), expected);

        let z = schema.field("z").unwrap();
        assert_eq!((z.title(), z.label(), z.description()), (Some("Z"), "Z".to_owned(), Some("d")));
        let FieldKind::String(text) = z.kind() else { panic!("text") };
        assert_eq!((text.min_length(), text.max_length()), (Some(1), Some(3)));
        assert_eq!((text.format(), text.default_value()), (Some(&Format::Email), Some("x")));
        let FieldKind::Number(number) = schema.field("n").unwrap().kind() else { panic!("number") };
        assert!(!number.is_integer());
        assert_eq!(number.minimum().unwrap().to_string(), "0.5");
        assert_eq!(number.maximum().unwrap().as_f64(), Some(1000.0));
        assert_eq!(number.default_value().unwrap().as_f64(), Some(95.5));
        let FieldKind::Number(integer) = schema.field("i").unwrap().kind() else { panic!("integer") };
        assert!(integer.is_integer());
        let FieldKind::Boolean(boolean) = schema.field("b").unwrap().kind() else { panic!("boolean") };
        assert_eq!(boolean.default_value(), Some(false));
        for (name, titles) in
            [("s1", [None, None]), ("s2", [Some("A"), Some("B")]), ("l", [Some("A"), Some("B")])]
        {
            let FieldKind::Select(select) = schema.field(name).unwrap().kind() else { panic!("select") };
            let choices: Vec<_> = select.choices().iter().map(|c| (c.value(), c.title())).collect();
            assert_eq!(choices, [("a", titles[0]), ("b", titles[1])], "{name}");
        }
        for (name, count) in [("m1", 2), ("m2", 2), ("m3", 1)] {
            let FieldKind::MultiSelect(multi) = schema.field(name).unwrap().kind() else { panic!("multi") };
            assert_eq!(multi.choices().len(), count, "{name}");
            assert!(!multi.unique_items());
        }
        let FieldKind::MultiSelect(multi) = schema.field("m1").unwrap().kind() else { panic!("multi") };
        assert_eq!((multi.min_items(), multi.max_items()), (Some(1), Some(2)));
        assert_eq!(multi.default_value().unwrap(), ["a"]);
    }
}

/// What a front end is told of a field, in a few words: its limits, its default.
fn told(property: &Value) -> String {
    let form = one(property);
    let number = |bound: Option<&serde_json::Number>| bound.map(ToString::to_string);
    match form.schema().fields()[0].kind() {
        FieldKind::String(field) => {
            format!("{:?} {:?} {:?}", field.min_length(), field.max_length(), field.default_value())
        }
        FieldKind::Number(field) => {
            let inclusive = [number(field.minimum()), number(field.maximum())];
            let exclusive = [number(field.exclusive_minimum()), number(field.exclusive_maximum())];
            format!("{inclusive:?} {exclusive:?} {:?}", number(field.default_value()))
        }
        FieldKind::Boolean(field) => format!("{:?}", field.default_value()),
        FieldKind::Select(field) => format!("{:?}", field.default_value()),
        FieldKind::MultiSelect(field) => {
            let (min, max) = (field.min_items(), field.max_items());
            format!("{min:?} {max:?} {} {:?}", field.unique_items(), field.default_value())
        }
    }
    .replace("Some(", "")
    .replace([')', '"'], "")
}

#[test]
fn a_front_end_is_told_every_limit_and_default_and_none_that_is_not_there() {
    for (property, expected) in [
        (json!({"type": "string", "minLength": 2, "maxLength": 5, "default": "abc"}), "2 5 abc"),
        (json!({"type": "string"}), "None None None"),
        (json!({"type": "number", "minimum": 2, "maximum": 9, "default": 3}), "[2, 9] [None, None] 3"),
        (json!({"type": "number", "exclusiveMinimum": 2, "exclusiveMaximum": 9}), "[None, None] [2, 9] None"),
        (json!({"type": "boolean", "default": true}), "true"),
        (json!({"type": "boolean"}), "None"),
        (json!({"type": "string", "enum": ["a", "b"], "default": "b"}), "b"),
        (json!({"type": "string", "enum": ["a", "b"]}), "None"),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 2, "maxItems": 5,
                "uniqueItems": true, "default": ["a", "b"]}),
            "2 5 true [a, b]",
        ),
        (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), "None None false None"),
    ] {
        assert_eq!(told(&property), expected, "{property}");
    }
}

/// What is outside of the subset is named as what it is.
#[test]
fn a_field_outside_of_the_subset_is_told_why() {
    let (new, old) = (Revision::V2025_11_25, Revision::V2025_06_18);
    let list = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    for (property, revision, expected) in [
        (list, old, "arrays are not in the schema subset of 2025-06-18"),
        (json!({"type": "object"}), new, "nested objects are not allowed, forms are flat"),
        (json!({"type": "null"}), new, "the null type is outside the flat schema subset of elicitation"),
        (json!({"type": "file"}), new, "unknown type"),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            new,
            "items must list options, free arrays are not allowed",
        ),
        (
            json!({"type": "array", "items": {"enum": ["a"], "anyOf": []}}),
            new,
            "only one of `enum`, `anyOf` and `oneOf`",
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let error = parse_schema(&schema, revision).unwrap_err();
        assert_eq!(error.violations()[0].message, expected, "{property}");
    }
}

#[test]
fn as_many_names_may_be_required_as_there_may_be_properties() {
    let mut two = RequestRules::new(Revision::V2025_11_25);
    two.limits.max_properties = 2;
    for (required, fits) in [(r#"["a", "b"]"#, true), (r#"["a", "b", "a"]"#, false), (r#"["a"]"#, true)] {
        let params = format!(
            r#"{{"message": "m", "requestedSchema": {{"type": "object", "required": {required}, "properties": {{"a": {{"type": "boolean"}}, "b": {{"type": "boolean"}}}}}}}}"#
        );
        let violations = ElicitRequest::parse_with(&params, &two).err();
        let found = violations.as_ref().map(|error| rules(error.violations()));
        assert_eq!(found, (!fits).then(|| vec![("/requestedSchema/required", Rule::Limit)]), "{required}");
    }
}

// protocol:5.2
#[test]
fn schemas_outside_of_the_flat_subset_are_refused_with_a_pointer() {
    let new = Revision::V2025_11_25;
    let cases = [
        (json!({"type": "object", "properties": {}}), "/type", Rule::Subset),
        (json!({"type": "array", "items": {"type": "string"}}), "/items", Rule::Subset),
        (json!({"type": "array", "items": {"type": "number", "enum": [1]}}), "/items/type", Rule::Subset),
        (json!({"type": "array", "items": {"type": "object"}}), "/items/type", Rule::Subset),
        (json!({"type": "array"}), "/items", Rule::Required),
        (json!({"type": "array", "items": {"enum": ["a"]}}), "/items/type", Rule::Required),
        (json!({"type": "array", "items": []}), "/items", Rule::Type),
        (json!({"type": "array", "items": {"$ref": "#/x"}}), "/items/$ref", Rule::Subset),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"], "anyOf": []}}),
            "/items",
            Rule::Subset,
        ),
        (json!({"type": "null"}), "/type", Rule::Subset),
        (json!({"type": "strin"}), "/type", Rule::Subset),
        (json!({"type": ["string", "null"]}), "/type", Rule::Subset),
        (json!({"type": 7}), "/type", Rule::Type),
        (json!({"type": null}), "/type", Rule::Type),
        (json!({}), "/type", Rule::Required),
        (json!({"enum": ["a"]}), "/type", Rule::Required),
        (json!({"$ref": "#/$defs/x"}), "/$ref", Rule::Subset),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "/anyOf", Rule::Subset),
        (json!({"type": "string", "$ref": "#"}), "/$ref", Rule::Subset),
        (json!({"type": "string", "allOf": []}), "/allOf", Rule::Subset),
        (json!({"type": "string", "not": {}}), "/not", Rule::Subset),
        (json!({"type": "string", "if": {}}), "/if", Rule::Subset),
        (json!({"type": "string", "anyOf": [{"const": "a", "title": "A"}]}), "/anyOf", Rule::Subset),
        (json!({"type": "number", "oneOf": [{"const": "a", "title": "A"}]}), "/oneOf", Rule::Subset),
        (json!({"type": "boolean", "enum": [true]}), "/enum", Rule::Subset),
        (json!({"type": "integer", "enum": [1]}), "/enum", Rule::Subset),
        (
            json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}),
            "/oneOf",
            Rule::Subset,
        ),
        (json!(true), "", Rule::Type),
        (json!("string"), "", Rule::Type),
    ];
    for (property, pointer, rule) in cases {
        let pointer = format!("/requestedSchema/properties/p{pointer}");
        assert_eq!(refusal(&property, new), (pointer, rule), "{property}");
    }
}

#[test]
fn keywords_with_wrong_values_are_refused_with_a_pointer() {
    let cases = [
        (json!({"type": "string", "minLength": -1}), "/minLength", Rule::Value),
        (json!({"type": "string", "minLength": 1.5}), "/minLength", Rule::Value),
        (json!({"type": "string", "maxLength": "5"}), "/maxLength", Rule::Type),
        (json!({"type": "string", "format": 1}), "/format", Rule::Type),
        (json!({"type": "string", "pattern": []}), "/pattern", Rule::Type),
        (json!({"type": "string", "title": 1}), "/title", Rule::Type),
        (json!({"type": "string", "description": null}), "/description", Rule::Type),
        (json!({"type": "string", "default": 1}), "/default", Rule::Default),
        (json!({"type": "string", "default": null}), "/default", Rule::Default),
        (json!({"type": "number", "minimum": "0"}), "/minimum", Rule::Type),
        (json!({"type": "number", "exclusiveMaximum": "0"}), "/exclusiveMaximum", Rule::Type),
        (json!({"type": "number", "default": "1"}), "/default", Rule::Default),
        (json!({"type": "integer", "default": 1.5}), "/default", Rule::Default),
        (json!({"type": "boolean", "default": "true"}), "/default", Rule::Default),
        (json!({"type": "string", "enum": "a"}), "/enum", Rule::Type),
        (json!({"type": "string", "enum": []}), "/enum", Rule::Enum),
        (json!({"type": "string", "enum": ["a", 1]}), "/enum/1", Rule::Type),
        (json!({"type": "string", "enum": ["a"], "enumNames": "A"}), "/enumNames", Rule::Type),
        (json!({"type": "string", "enum": ["a"], "enumNames": [1]}), "/enumNames/0", Rule::Type),
        (json!({"type": "string", "enum": ["a"], "default": "b"}), "/default", Rule::Default),
        (json!({"type": "string", "oneOf": [{"const": "a"}]}), "/oneOf/0/title", Rule::Required),
        (json!({"type": "string", "oneOf": [{"title": "a"}]}), "/oneOf/0/const", Rule::Required),
        (json!({"type": "string", "oneOf": [{"const": 1, "title": "a"}]}), "/oneOf/0/const", Rule::Type),
        (json!({"type": "string", "oneOf": ["a"]}), "/oneOf/0", Rule::Type),
        (
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "A"}),
            "/default",
            Rule::Default,
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": "a"}),
            "/default",
            Rule::Default,
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["b"]}),
            "/default",
            Rule::Default,
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": -1}),
            "/minItems",
            Rule::Value,
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": 1}),
            "/uniqueItems",
            Rule::Type,
        ),
    ];
    for (property, pointer, rule) in cases {
        let pointer = format!("/requestedSchema/properties/p{pointer}");
        assert_eq!(refusal(&property, Revision::V2025_11_25), (pointer, rule), "{property}");
    }
}

#[test]
fn numbers_that_no_float_holds_are_refused() {
    for (keyword, rule) in
        [("minimum", Rule::Value), ("exclusiveMaximum", Rule::Value), ("default", Rule::Default)]
    {
        let params = format!(
            r#"{{"message": "m", "requestedSchema": {{"type": "object", "properties": {{"p": {{"type": "number", "{keyword}": 1e999}}}}}}}}"#
        );
        let error = ElicitRequest::parse(&params, Revision::V2025_11_25).unwrap_err();
        let pointer = format!("/requestedSchema/properties/p/{keyword}");
        assert_eq!(rules(error.violations()), [(pointer.as_str(), rule)]);
    }
}

#[test]
fn the_object_around_the_fields_is_checked_too() {
    let cases = [
        (json!({"properties": {}}), "/type", Rule::Required),
        (json!({"type": "array", "properties": {}}), "/type", Rule::Type),
        (json!({"type": "object"}), "/properties", Rule::Required),
        (json!({"type": "object", "properties": []}), "/properties", Rule::Type),
        (json!({"type": "object", "properties": {}, "required": "a"}), "/required", Rule::Type),
        (json!({"type": "object", "properties": {}, "required": ["a"]}), "/required/0", Rule::Required),
        (json!({"type": "object", "properties": {}, "required": [1]}), "/required/0", Rule::Type),
        (json!({"type": "object", "properties": {}, "$schema": 1}), "/$schema", Rule::Type),
        (json!({"type": "object", "properties": {}, "allOf": []}), "/allOf", Rule::Subset),
        (
            json!({"type": "object", "properties": {}, "patternProperties": {}}),
            "/patternProperties",
            Rule::Subset,
        ),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            "/additionalProperties",
            Rule::Subset,
        ),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": 1}),
            "/additionalProperties",
            Rule::Type,
        ),
        (json!("a string"), "", Rule::Type),
        (json!(null), "", Rule::Type),
    ];
    for (schema, pointer, rule) in cases {
        let error = parse_schema(&schema, Revision::V2025_11_25).expect_err(&schema.to_string());
        assert_eq!(
            rules(error.violations())[0],
            (format!("/requestedSchema{pointer}").as_str(), rule),
            "{schema}"
        );
    }
}

// protocol:5.1
#[test]
fn the_oldest_revision_has_neither_arrays_nor_titled_options_nor_other_defaults() {
    let old = Revision::V2025_06_18;
    let p = "/requestedSchema/properties/p";
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
    assert_eq!(refusal(&titled, old), (format!("{p}/oneOf"), Rule::Subset));
    let multi = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    assert_eq!(refusal(&multi, old), (format!("{p}/type"), Rule::Subset));
    // Defaults other than booleans are unknown keywords there: kept, not used, not judged.
    let schema = json!({"type": "object", "properties": {
        "b": {"type": "boolean", "default": true},
        "s": {"type": "string", "default": 5},
        "n": {"type": "number", "default": 5},
        "e": {"type": "string", "enum": ["a"], "enumNames": ["A"], "default": "zzz"},
    }});
    let form = parse_schema(&schema, old).unwrap();
    assert_eq!(Value::Object(form.defaults()), json!({"b": true}));
    assert!(form.schema().field("s").unwrap().raw().get().contains("default"));
}

// field:FR-137
#[test]
fn unknown_keywords_and_formats_are_annotations() {
    let cases = [
        (json!({"type": "integer", "format": "int32", "x-order": 1, "multipleOf": 5}), json!(7)),
        (json!({"type": "string", "format": "phone", "x": {"type": "object"}}), json!("+1")),
        (json!({"type": "string", "examples": [1], "$comment": "c", "readOnly": true}), json!("x")),
        (json!({"type": "number", "exclusiveMinimum": true, "minimum": 1}), json!(1)),
        (json!({"type": "boolean", "minimum": "what"}), json!(true)),
    ];
    for (property, value) in cases {
        let form = one(&property);
        assert_eq!(form.schema().field("p").unwrap().violations(&value), [], "{property}");
        let raw: Value = serde_json::from_str(form.schema().field("p").unwrap().raw().get()).unwrap();
        assert_eq!(raw, property);
    }
    let form = one(&json!({"type": "string", "format": "ph\u{1b}one"}));
    let FieldKind::String(text) = form.schema().field("p").unwrap().kind() else { panic!("text") };
    assert_eq!(text.format().unwrap().as_str(), "ph\\u{1b}one");
    for name in ["email", "uri", "date", "date-time"] {
        let form = one(&json!({"type": "string", "format": name}));
        let FieldKind::String(text) = form.schema().field("p").unwrap().kind() else { panic!("text") };
        assert_eq!(text.format().unwrap().as_str(), name);
        assert!(!matches!(text.format(), Some(Format::Other(_))));
    }
}

#[test]
fn duplicate_members_are_refused_wherever_they_are() {
    let duplicates = [
        (r#"{"message": "a", "message": "b", "requestedSchema": {}}"#, "/message"),
        (
            r#"{"message": "a", "requestedSchema": {"type": "object", "type": "x", "properties": {}}}"#,
            "/requestedSchema/type",
        ),
        (
            r#"{"message": "a", "requestedSchema": {"type": "object", "properties": {"p": {"type": "string"}, "p": {"type": "number"}}}}"#,
            "/requestedSchema/properties/p",
        ),
    ];
    for (params, pointer) in duplicates {
        let error = ElicitRequest::parse(params, Revision::V2025_11_25).unwrap_err();
        assert_eq!(rules(error.violations()), [(pointer, Rule::DuplicateMember)]);
    }
}

#[test]
fn titles_of_options_that_do_not_match_their_values_are_not_shown() {
    let form = one(&json!({"type": "string", "enum": ["a", "b"], "enumNames": ["Only one"]}));
    let FieldKind::Select(select) = form.schema().field("p").unwrap().kind() else { panic!("select") };
    assert_eq!(select.choices().iter().map(crate::Choice::label).collect::<Vec<_>>(), ["a", "b"]);
}

// auth:SEC-15
#[test]
fn texts_for_people_are_safe_to_show_and_names_stay_exact() {
    let form = one(
        &json!({"type": "string", "title": "a\u{1b}[2J", "description": "\u{202e}b", "enum": ["x\u{7}"], "enumNames": ["y\u{8}"]}),
    );
    let field = form.schema().field("p").unwrap();
    assert_eq!(field.title(), Some("a\\u{1b}[2J"));
    assert_eq!(field.description(), Some("\\u{202e}b"));
    let FieldKind::Select(select) = field.kind() else { panic!("select") };
    assert_eq!(select.choices()[0].value(), "x\u{7}");
    assert_eq!(select.choices()[0].label(), "y\\u{8}");
    let schema = json!({"type": "object", "properties": {"n\u{1b}": {"type": "string", "enum": ["\u{1b}"]}}});
    let form = parse_schema(&schema, Revision::V2025_11_25).unwrap();
    let field = &form.schema().fields()[0];
    assert_eq!((field.name(), field.label().as_str()), ("n\u{1b}", "n\\u{1b}"));
    let FieldKind::Select(select) = field.kind() else { panic!("select") };
    assert_eq!(select.choices()[0].label(), "\\u{1b}");
}

/// Builds `params` of a given size and says which limit refuses them.
fn limited(limits: RequestLimits, params: &str) -> Option<Rule> {
    let rules = RequestRules::new(Revision::V2025_11_25).limits(limits);
    ElicitRequest::parse_with(params, &rules).err().map(|error| error.violations()[0].rule)
}

// Every limit below, at and above itself.
#[test]
fn limits_hold_below_at_and_above() {
    type Set = fn(&mut RequestLimits);
    let list = |count: usize| (0..count).map(|n| format!("o{n}")).collect::<Vec<_>>();
    let wrap = |property: Value| form_params(&json!({"type": "object", "properties": {"p": property}}));
    let params_of = |kind: &str, size: usize| {
        match kind {
        "message" => json!({"message": "é".repeat(size), "requestedSchema": {"type": "object", "properties": {}}}).to_string(),
        "properties" => {
            let properties: serde_json::Map<_, _> =
                list(size).into_iter().map(|name| (name, json!({"type": "boolean"}))).collect();
            form_params(&json!({"type": "object", "properties": properties}))
        }
        "name" => form_params(&json!({"type": "object", "properties": {"é".repeat(size): {"type": "boolean"}}})),
        "options" => wrap(json!({"type": "string", "enum": list(size)})),
        "option" => wrap(json!({"type": "string", "enum": ["é".repeat(size)]})),
        "text" => wrap(json!({"type": "string", "description": "é".repeat(size)})),
        "pattern" => wrap(json!({"type": "string", "pattern": "é".repeat(size)})),
        "id" => json!({"message": "m", "mode": "url", "url": "https://a.example/", "elicitationId": "é".repeat(size)}).to_string(),
        _ => {
            let params = form_params(&json!({"type": "object", "properties": {}}));
            format!("{params}{}", " ".repeat(size.saturating_sub(params.len())))
        }
    }
    };
    let cases: [(&str, usize, Set); 9] = [
        ("message", 5, |l| l.max_message_chars = 5),
        ("properties", 3, |l| l.max_properties = 3),
        ("name", 4, |l| l.max_name_chars = 4),
        ("options", 3, |l| l.max_options = 3),
        ("option", 4, |l| l.max_option_chars = 4),
        ("text", 6, |l| l.max_text_chars = 6),
        ("pattern", 4, |l| l.max_pattern_chars = 4),
        ("id", 4, |l| l.max_elicitation_id_chars = 4),
        ("params", 200, |l| l.max_params_bytes = 200),
    ];
    for (kind, limit, set) in cases {
        let mut limits = RequestLimits::default();
        set(&mut limits);
        assert_eq!(limited(limits.clone(), &params_of(kind, limit - 1)), None, "{kind} below");
        assert_eq!(limited(limits.clone(), &params_of(kind, limit)), None, "{kind} at");
        assert_eq!(limited(limits, &params_of(kind, limit + 1)), Some(Rule::Limit), "{kind} above");
    }
}

#[test]
fn patterns_beyond_the_limit_of_a_form_are_not_checked() {
    let property = json!({"type": "string", "pattern": "^a+$"});
    let schema = json!({"type": "object", "properties": {"p1": property, "p2": property, "p3": property}});
    let mut limits = RequestLimits::default();
    for (limit, checked) in
        [(11, [true, true, false]), (8, [true, true, false]), (7, [true, false, false]), (12, [true; 3])]
    {
        limits.max_checked_pattern_chars = limit;
        let rules = RequestRules::new(Revision::V2025_11_25).limits(limits.clone());
        let Ok(ElicitRequest::Form(form)) = ElicitRequest::parse_with(&form_params(&schema), &rules) else {
            panic!("a form")
        };
        let is_checked = |field: &crate::Field| match field.kind() {
            FieldKind::String(text) => text.pattern() == Some("^a+$") && text.pattern_is_checked(),
            _ => false,
        };
        assert_eq!(form.schema().fields().iter().map(is_checked).collect::<Vec<_>>(), checked, "{limit}");
        for (field, checked) in form.schema().fields().iter().zip(checked) {
            assert_eq!(field.violations(&json!("b")).is_empty(), !checked);
        }
    }
}

#[test]
fn a_flood_of_faults_is_reported_in_part() {
    let properties: serde_json::Map<_, _> = (0..100).map(|n| (format!("p{n}"), json!({}))).collect();
    let error = parse_schema(&json!({"type": "object", "properties": properties}), Revision::V2025_11_25)
        .unwrap_err();
    assert_eq!(error.violations().len(), 32);
    assert!(error.to_string().ends_with("(and 31 more)"), "{error}");
}

#[test]
fn nullable_fields_are_read_only_on_demand() {
    let nullable = [
        (
            json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}], "default": null, "title": "T"}),
            true,
        ),
        (json!({"anyOf": [{"type": "null"}, {"type": "string", "title": "t"}], "title": "T"}), true),
        (json!({"oneOf": [{"type": "string"}, {"type": "null"}], "title": "T"}), true),
        (json!({"type": ["string", "null"], "default": null, "title": "T"}), true),
        (json!({"type": ["null", "string"], "default": "abc", "title": "T"}), true),
        (json!({"type": ["string", "integer"]}), false),
        (json!({"type": ["null", "null"]}), false),
        (json!({"type": ["string"]}), false),
        (json!({"type": "string", "default": null}), false),
        (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), false),
        (json!({"anyOf": [{"type": "object"}, {"type": "null"}]}), false),
        (json!({"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}), false),
    ];
    for (property, is_readable) in nullable {
        refusal(&property, Revision::V2025_11_25);
        let params = form_params(&json!({"type": "object", "properties": {"p": property}}));
        let rules = RequestRules::new(Revision::V2025_11_25).allow_nullable_fields(true);
        let request = ElicitRequest::parse_with(&params, &rules);
        assert_eq!(request.is_ok(), is_readable, "{property}");
        if let Ok(ElicitRequest::Form(form)) = request {
            let field = form.schema().field("p").unwrap();
            assert!(matches!(field.kind(), FieldKind::String(_)), "{property}");
            assert_eq!(field.title(), Some("T"));
            assert_eq!(rules_of(field, &json!(null)), [Rule::Type]);
            assert_eq!(field.default_value(), property["default"].as_str().map(Value::from));
        }
    }
}

fn rules_of(field: &crate::Field, value: &Value) -> Vec<Rule> {
    field.violations(value).into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn modes_that_are_not_declared_are_refused() {
    let form = form_params(&json!({"type": "object", "properties": {}}));
    let rules = RequestRules::new(Revision::V2025_11_25).modes(Modes::URL);
    let error = ElicitRequest::parse_with(&form, &rules).unwrap_err();
    assert_eq!((error.violations()[0].rule, error.wire_code()), (Rule::Mode, -32602));
}
