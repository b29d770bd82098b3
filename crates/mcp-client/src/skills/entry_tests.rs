use proptest::prelude::*;
use serde_json::json;

use super::*;

fn digest(text: &str) -> String {
    SkillDigest::of(text.as_bytes()).to_string()
}

fn entry() -> Value {
    json!({
        "uri": "skill://acme/pdf/SKILL.md",
        "frontmatter": { "name": "pdf", "description": "Fill forms", "license": "MIT", "metadata": { "v": "1" } },
        "resources": [
            { "uri": "skill://acme/pdf/SKILL.md", "digest": digest("a"), "size": 1 },
            { "uri": "skill://acme/pdf/references/FORMS.md", "digest": digest("bc"), "size": 2 },
        ],
    })
}

fn read(entry: &Value) -> Result<Skill, SkillError> {
    Skill::from_json(&entry.to_string(), &SkillLimits::default())
}

/// The entry with one thing changed.
fn with(pointer: &str, value: Value) -> Value {
    let mut entry = entry();
    *entry.pointer_mut(pointer).unwrap() = value;
    entry
}

#[test]
fn an_entry_tells_everything_before_anything_is_read() {
    let skill = read(&entry()).unwrap();
    assert_eq!((skill.uri(), skill.root_uri()), ("skill://acme/pdf/SKILL.md", "skill://acme/pdf"));
    assert_eq!((skill.name(), skill.description()), ("pdf", "Fill forms"));
    assert_eq!(skill.frontmatter()["license"], "MIT");
    assert_eq!((skill.total_bytes(), skill.is_dynamic()), (Some(3), false));
    let file = skill.file("references/FORMS.md").unwrap();
    assert_eq!((file.size, file.digest), (2, SkillDigest::of(b"bc")));
    assert!(skill.file("FORMS.md").is_none());
    let skill = read(&with("/resources", json!("dynamic"))).unwrap();
    assert_eq!((skill.is_dynamic(), skill.total_bytes(), skill.content_digest()), (true, None, None));
    assert!(skill.files().is_none() && skill.file("SKILL.md").is_none());
}

#[test]
fn an_entry_that_breaks_a_rule_is_refused() {
    let check = |entry: Value, kind: SkillErrorKind| {
        let error = read(&entry).unwrap_err();
        assert_eq!(error.kind(), kind, "{entry}: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    };
    let invalid = SkillErrorKind::InvalidEntry;
    for odd in [json!(null), json!([]), json!(1), json!({}), json!({ "uri": "skill://pdf/SKILL.md" })] {
        check(odd, invalid);
    }
    check(with("/uri", json!("skill://acme/pdf/README.md")), invalid);
    check(with("/uri", json!("skill://acme/other/SKILL.md")), invalid);
    check(with("/frontmatter", json!([])), invalid);
    check(with("/frontmatter/name", json!("PDF")), invalid);
    check(with("/frontmatter/name", json!(1)), invalid);
    check(with("/frontmatter/name", json!("")), invalid);
    check(with("/frontmatter/description", json!(null)), invalid);
    check(with("/frontmatter/description", json!("")), invalid);
    for odd in [json!(null), json!("Dynamic"), json!({}), json!(true), json!(["dynamic"]), json!([])] {
        check(with("/resources", odd), invalid);
    }
    check(with("/resources/0/uri", json!("skill://acme/pdf/other.md")), invalid);
    check(with("/resources/1/uri", json!("skill://acme/pdf/SKILL.md")), invalid);
    check(with("/resources/1/uri", json!("skill://acme/pdf/SKILL%2emd")), invalid);
    check(with("/resources/1/uri", json!("skill://acme/other/x.md")), SkillErrorKind::OutsideSkill);
    check(with("/resources/1/uri", json!("skill://acme/pdf/../x.md")), SkillErrorKind::OutsideSkill);
    check(with("/resources/1/uri", json!("file:///etc/passwd")), SkillErrorKind::OutsideSkill);
    check(with("/resources/1/digest", json!("sha256:00")), invalid);
    check(with("/resources/1/digest", json!("md5:00")), invalid);
    for size in [json!(-1), json!(1.5), json!("2"), json!(null)] {
        check(with("/resources/1/size", size), invalid);
    }
    let mut entry = entry();
    entry.as_object_mut().unwrap().remove("resources");
    check(entry, invalid);
}

#[test]
fn each_limit_holds_exactly() {
    let limit = |limits: &SkillLimits, entry: &Value| {
        let error = Skill::from_json(&entry.to_string(), limits).err()?;
        assert_eq!(error.kind(), SkillErrorKind::LimitExceeded, "{error}");
        error.limit().map(|limit| limit.name)
    };
    let mut limits = SkillLimits::default();
    (limits.max_files, limits.max_skill_bytes) = (2, 3);
    assert_eq!(limit(&limits, &entry()), None);
    limits.max_files = 1;
    assert_eq!(limit(&limits, &entry()), Some("max_files"));
    (limits.max_files, limits.max_skill_bytes) = (2, 2);
    assert_eq!(limit(&limits, &entry()), Some("max_skill_bytes"));
    let huge = with("/resources/1/size", json!(u64::MAX));
    assert_eq!(limit(&SkillLimits::default(), &huge), Some("max_skill_bytes"));
    let bytes = entry()["frontmatter"].to_string().len();
    let mut limits = SkillLimits { max_frontmatter_bytes: bytes, ..SkillLimits::default() };
    assert_eq!(limit(&limits, &entry()), None);
    limits.max_frontmatter_bytes -= 1;
    assert_eq!(limit(&limits, &entry()), Some("max_frontmatter_bytes"));
    let mut limits = SkillLimits { max_frontmatter_depth: 2, ..SkillLimits::default() };
    assert_eq!(limit(&limits, &entry()), None);
    limits.max_frontmatter_depth = 1;
    assert_eq!(limit(&limits, &entry()), Some("max_frontmatter_depth"));
    let deep = with("/frontmatter/metadata", json!("x"))
        .to_string()
        .replace("\"x\"", &("[".repeat(9999) + &"]".repeat(9999)));
    assert!(Skill::from_json(&deep, &SkillLimits::default()).is_err());
}

#[test]
fn the_largest_skill_that_every_host_must_take_is_taken() {
    let each = 16 * 1024 * 1024 / 512;
    let name = |at| if at == 0 { "SKILL.md".to_owned() } else { format!("f{at}") };
    let files: Vec<Value> = (0..512)
        .map(|at| json!({ "uri": format!("skill://acme/pdf/{}", name(at)), "digest": digest("x"), "size": each }))
        .collect();
    assert_eq!(read(&with("/resources", json!(files))).unwrap().total_bytes(), Some(16 * 1024 * 1024));
}

#[test]
fn an_approval_is_bound_to_every_file_and_not_to_their_order() {
    let bound = |entry: &Value| read(entry).unwrap().content_digest().unwrap();
    let before = bound(&entry());
    let mut turned = entry();
    turned["resources"].as_array_mut().unwrap().reverse();
    assert_eq!(bound(&turned), before);
    assert_ne!(bound(&with("/resources/1/digest", json!(digest("x")))), before);
    assert_ne!(bound(&with("/resources/1/uri", json!("skill://acme/pdf/references/FORM.md"))), before);
    let mut fewer = entry();
    fewer["resources"].as_array_mut().unwrap().pop();
    assert_ne!(bound(&fewer), before);
}

proptest! {
    #[test]
    fn no_entry_panics(text in "\\PC{0,80}", uri in "(skill://)?[a-z%/.]{0,12}(/SKILL.md)?") {
        let _ = Skill::from_json(&text, &SkillLimits::default());
        let _ = read(&with("/uri", json!(uri)));
        let _ = read(&with("/resources/1/uri", json!(uri)));
    }
}
