use serde_json::json;

use super::*;

fn root(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{properties}}}"#)
}

fn suffixes(schema: &str) -> Result<Vec<String>, ToolHeadersError> {
    ToolHeaders::from_schema(schema)
        .map(|headers| headers.headers.into_iter().map(|header| header.suffix).collect())
}

/// protocol:H-45, protocol:H-47
#[test]
fn annotations_on_plain_properties_count() {
    let check = |schema: &str, expected: &[&str]| assert_eq!(suffixes(schema).unwrap(), expected, "{schema}");
    check("{}", &[]);
    check("true", &[]);
    check(&root(r#"{"a":{"type":"string","x-mcp-header":"Region"}}"#), &["Region"]);
    check(
        &root(r#"{"a":{"type":"integer","x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"b!#$"}}"#),
        &["A", "b!#$"],
    );
    // A header named like a standard one is the server's choice.
    check(&root(r#"{"a":{"type":"string","x-mcp-header":"Method"}}"#), &["Method"]);
    let nested = root(r#"{"a":{"type":"string","x-mcp-header":"Deep"}}"#);
    check(&root(&format!(r#"{{"o":{nested}}}"#)), &["Deep"]);
    // A property may have the annotation's name, and data may look like one.
    check(&root(r#"{"x-mcp-header":{"type":"string"}}"#), &[]);
    for data in ["const", "default", "enum", "examples"] {
        check(&root(&format!(r#"{{"a":{{"{data}":[{{"x-mcp-header":"X"}}]}}}}"#)), &[]);
    }
    check(r#"{"$defs":{"x-mcp-header":{"type":"string"}}}"#, &[]);
}

/// protocol:H-45, protocol:H-46, protocol:H-47
#[test]
fn every_other_annotation_makes_the_tool_invalid() {
    let check = |schema: &str, expected| assert_eq!(suffixes(schema).unwrap_err(), expected, "{schema}");
    for name in
        [r#""""#, "1", "null", "[]", r#""a b""#, r#""a\n""#, r#""a:b""#, r#""é""#, r#""a/b""#, r#""a\u0000""#]
    {
        let schema = root(&format!(r#"{{"p":{{"type":"string","x-mcp-header":{name}}}}}"#));
        check(&schema, ToolHeadersError::BadName { property: "p".to_owned() });
    }
    for declared in [
        r#""type":"number","#,
        r#""type":["string"],"#,
        r#""type":"object","#,
        r#""type":"array","#,
        r#""type":"null","#,
        "",
    ] {
        let schema = root(&format!(r#"{{"p":{{{declared}"x-mcp-header":"A"}}}}"#));
        check(&schema, ToolHeadersError::BadType { property: "p".to_owned() });
    }
    let twice = root(
        r#"{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}"#,
    );
    check(&twice, ToolHeadersError::Duplicate { header: "REGION".to_owned() });

    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    check(annotated, ToolHeadersError::Misplaced);
    for around in [
        r#"{"items":@}"#,
        r#"{"prefixItems":[@]}"#,
        r#"{"contains":@}"#,
        r#"{"additionalProperties":@}"#,
        r#"{"unevaluatedProperties":@}"#,
        r#"{"patternProperties":{"^a":@}}"#,
        r#"{"propertyNames":@}"#,
        r#"{"$defs":{"d":@}}"#,
        r#"{"definitions":{"d":@}}"#,
        r#"{"dependentSchemas":{"d":@}}"#,
        r#"{"oneOf":[@]}"#,
        r#"{"anyOf":[{"properties":{"p":@}}]}"#,
        r#"{"allOf":[@]}"#,
        r#"{"not":@}"#,
        r#"{"if":@}"#,
        r#"{"then":{"properties":{"p":@}}}"#,
        r#"{"else":@}"#,
        r#"{"x-unknown":{"deep":[@]}}"#,
    ] {
        let schema = around.replace('@', annotated);
        check(&schema, ToolHeadersError::Misplaced);
        check(&root(&format!(r#"{{"p":{schema}}}"#)), ToolHeadersError::Misplaced);
    }
    check("{", ToolHeadersError::NotJson);

    let many: Vec<String> =
        (0..=64).map(|at| format!(r#""p{at}":{{"type":"string","x-mcp-header":"h{at}"}}"#)).collect();
    check(&root(&format!("{{{}}}", many.join(","))), ToolHeadersError::TooMany { limit: 64 });
    assert_eq!(suffixes(&root(&format!("{{{}}}", many[..64].join(",")))).unwrap().len(), 64);
}

/// protocol:H-48, protocol:H-49
#[test]
fn arguments_become_text_at_their_exact_path() {
    let schema = root(
        r#"{"s":{"type":"string","x-mcp-header":"S"},"o":{"type":"object","properties":{"i":{"type":"integer","x-mcp-header":"I"}}},"b":{"type":"boolean","x-mcp-header":"B"}}"#,
    );
    let headers = ToolHeaders::from_schema(&schema).unwrap();
    let check = |arguments: &str, expected: &[(&str, &str)]| {
        let mut params = headers.params(arguments).unwrap();
        params.sort();
        let params: Vec<(&str, &str)> =
            params.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(params, expected, "{arguments}");
    };
    check("{}", &[]);
    check("null", &[]);
    check(r#"{"s":null,"o":null,"b":null}"#, &[]);
    check(r#"{"s":"","o":{"i":42},"b":false}"#, &[("B", "false"), ("I", "42"), ("S", "")]);
    check(r#"{"s":"a\nb","o":{"i":-7},"b":true}"#, &[("B", "true"), ("I", "-7"), ("S", "a\nb")]);
    check(r#"{"i":1,"o":{"s":"x"}}"#, &[]);
    check(r#"{"s":["a"],"o":[{"i":1}],"b":{}}"#, &[]);
    check(r#"{"o":{"i":9007199254740991}}"#, &[("I", "9007199254740991")]);
    check(r#"{"o":{"i":-9007199254740991}}"#, &[("I", "-9007199254740991")]);
    check(r#"{"o":{"i":42.0}}"#, &[("I", "42")]);
    for number in ["9007199254740992", "-9007199254740992", "18446744073709551615", "1e300", "-1e300", "0.5"]
    {
        let arguments = format!(r#"{{"o":{{"i":{number}}}}}"#);
        let expected = ToolHeadersError::NotSafeInteger { header: "I".to_owned() };
        assert_eq!(headers.params(&arguments).unwrap_err(), expected, "{number}");
    }
    assert_eq!(headers.params("{").unwrap_err(), ToolHeadersError::NotJson);
}

#[test]
fn a_hostile_name_is_shown_escaped() {
    let schema = root("{\"\\u001b[2J\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}");
    assert!(!suffixes(&schema).unwrap_err().to_string().contains('\u{1b}'));
}

/// Names are kept, so that their length counts: a deep schema repeats them for each annotation.
#[test]
fn long_ways_to_annotated_properties_are_refused() {
    let schema = |name: &str| {
        let leaf = |header: &str| json!({"type": "string", "x-mcp-header": header});
        let inner = json!({"type": "object", "properties": {"a": leaf("A"), "b": leaf("B")}});
        json!({"type": "object", "properties": {name: inner}}).to_string()
    };
    assert!(ToolHeaders::from_schema(&schema(&"n".repeat(8 * 1024 - 2))).is_ok());
    let refused = ToolHeaders::from_schema(&schema(&"n".repeat(8 * 1024 - 1)));
    assert_eq!(refused, Err(ToolHeadersError::TooLong { limit: 16 * 1024 }));
}
