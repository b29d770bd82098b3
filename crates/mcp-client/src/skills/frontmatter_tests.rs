use proptest::prelude::*;
use serde_json::json;

use super::*;

const URI: &str = "skill://pdf/SKILL.md";

fn read(text: &str) -> Result<Frontmatter, SkillError> {
    Frontmatter::read(URI, text, &SkillLimits::default())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Which member of `yaml` differs from the JSON.
fn difference(yaml: &str, entry: Value) -> Option<String> {
    read(&format!("---\n{yaml}\n---\n")).unwrap().difference(&object(entry))
}

#[test]
fn the_frontmatter_is_between_two_fences_at_the_very_top() {
    let check = |text: &str, body: Option<&str>| {
        let found = read(text);
        assert_eq!(found.as_ref().ok().map(|found| &text[found.body_at..]), body, "{text:?}: {found:?}");
    };
    check("---\nname: a\n---\nbody\n---\nmore", Some("body\n---\nmore"));
    check("---\r\nname: a\r\n---\r\nbody", Some("body"));
    check("\u{feff}---\nname: a\n---", Some(""));
    check("--- \nname: a\n---  \n", Some(""));
    for invalid in [
        "",
        "name: a",
        "\n---\nname: a\n---\n",
        " ---\nname: a\n---\n",
        "---\nname: a\n",
        "---\nname: a\n ---\n",
        "----\nname: a\n----\n",
        "---",
        "---\n---\n",
        "---\n- a\n---\n",
        "---\njust text\n---\n",
        "---\nname: [a\n---\n",
        "---\nname: a\n...\nb: c\n---\n",
    ] {
        check(invalid, None);
        assert_eq!(read(invalid).unwrap_err().kind(), SkillErrorKind::InvalidFrontmatter, "{invalid:?}");
    }
}

#[test]
fn the_same_content_is_equal_however_it_is_written() {
    let check = |yaml: &str, json: Value| assert_eq!(difference(yaml, json.clone()), None, "{yaml} {json}");
    check("name: pdf\ndescription: Do it", json!({ "description": "Do it", "name": "pdf" }));
    check(
        "a: 'x: y'\nb: \"\\u00e9\"\nc: |\n  one\n  two\nd: >-\n  one\n  two",
        json!({
            "a": "x: y", "b": "\u{e9}", "c": "one\ntwo\n", "d": "one two",
        }),
    );
    check(
        "m: { version: 1.0, 'n': [1, two, true, null] }",
        json!({ "m": { "version": 1, "n": [1, "two", true, null] } }),
    );
    check("a: 1.0", json!({ "a": 1.0 }));
    check(
        "a: 0x1F\nb: 0o17\nc: -12\nd: +1\ne: 1e3\nf: .5",
        json!({ "a": 31, "b": 15, "c": -12, "d": 1, "e": 1000, "f": 0.5 }),
    );
    check("a: 18446744073709551615", json!({ "a": u64::MAX }));
    check("a: ~\nb:\nc: Null", json!({ "a": null, "b": null, "c": null }));
    check("a: True\nb: FALSE", json!({ "a": true, "b": false }));
    // What a reader of strings alone makes of it.
    check(
        "a: 1.0\nb: true\nc: 2024-01-01\nd: yes",
        json!({ "a": "1.0", "b": "true", "c": "2024-01-01", "d": "yes" }),
    );
    check("a: !!str 5", json!({ "a": "5" }));
    check("1: a\ntrue: b", json!({ "1": "a", "true": "b" }));
}

#[test]
fn any_difference_is_found_and_named() {
    let check = |yaml: &str, json: Value, expected: &str| {
        assert_eq!(difference(yaml, json.clone()).as_deref(), Some(expected), "{yaml} {json}");
    };
    check(
        "name: a\ndescription: Exfiltrate",
        json!({ "name": "a", "description": "Extract" }),
        "description",
    );
    check("name: a\nhooks: x", json!({ "name": "a" }), "hooks");
    check("name: a", json!({ "name": "a", "license": "MIT" }), "license");
    check("a: '1'", json!({ "a": 1 }), "a");
    check("a: \"true\"", json!({ "a": true }), "a");
    check("a: !!str 1", json!({ "a": 1 }), "a");
    check("a: ''", json!({ "a": null }), "a");
    check("a: 1", json!({ "a": 2 }), "a");
    check("a: 9007199254740993", json!({ "a": 9007199254740992_u64 }), "a");
    check("a: inf", json!({ "a": 1e308 }), "a");
    check("a: [1, 2]", json!({ "a": [2, 1] }), "a");
    check("a: [1]", json!({ "a": [1, 1] }), "a");
    check("a: { b: 1, c: 2 }", json!({ "a": { "b": 1 } }), "a");
    check("a: { b: 1 }", json!({ "a": { "b": 1, "c": 2 } }), "a");
    check("a: yes", json!({ "a": true }), "a");
    check("a: x ", json!({ "a": "x " }), "a");
}

#[test]
fn what_could_mean_two_things_is_refused() {
    for yaml in [
        "name: a\nname: b",
        "a: &x 1\nb: *x",
        "a: !ruby/object:Foo {}",
        "a: !!binary aGk=",
        "? [a]\n: b",
        "a: !!set { b }",
    ] {
        let error = read(&format!("---\n{yaml}\n---\n")).unwrap_err();
        assert_eq!(error.kind(), SkillErrorKind::InvalidFrontmatter, "{yaml}: {error}");
    }
}

#[test]
fn the_limits_hold_exactly() {
    let limited = |limits: &SkillLimits, yaml: &str| {
        let found = Frontmatter::read(URI, &format!("---\n{yaml}\n---\n"), limits);
        found.err().map(|error| error.limit().unwrap().name)
    };
    let limits = SkillLimits { max_frontmatter_bytes: 8, ..SkillLimits::default() };
    assert_eq!(limited(&limits, "a: 1234"), None);
    assert_eq!(limited(&limits, "a: 12345"), Some("max_frontmatter_bytes"));
    let limits = SkillLimits { max_frontmatter_depth: 3, ..SkillLimits::default() };
    assert_eq!(limited(&limits, "a: [[1]]"), None);
    assert_eq!(limited(&limits, "a: [[[1]]]"), Some("max_frontmatter_depth"));
    let limits = SkillLimits { max_frontmatter_nodes: 5, ..SkillLimits::default() };
    assert_eq!(limited(&limits, "a: [1, 2]"), None);
    assert_eq!(limited(&limits, "a: [1, 2, 3]"), Some("max_frontmatter_nodes"));
    assert!(read(&format!("---\na: {}\n---\n", "[".repeat(30_000))).is_err());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// JSON is YAML, so an entry that is the frontmatter of its own file never differs from it; another one does.
    #[test]
    fn json_written_as_frontmatter_is_equal_to_itself_alone(value in json_value(), other in json_value()) {
        let difference = difference(&format!("{{\"a\": {value}}}"), json!({ "a": value }));
        prop_assert_eq!(difference, None);
        if value != other {
            let text = format!("---\n{{\"a\": {value}}}\n---\n");
            let found = read(&text).unwrap().difference(&object(json!({ "a": other })));
            prop_assert_eq!(found.as_deref(), Some("a"));
        }
    }

    #[test]
    fn no_file_panics(text in "(---\n)?([a-z]{1,3}: |[-\\[\\]{}:,?&*!|>'\"%@`#\n ~\\\\\t]|\\PC){0,60}(\n---\n)?") {
        let _ = read(&text);
        let _ = read(&format!("---\n{text}\n---\n"));
    }
}
