use proptest::prelude::*;

use super::*;

fn limits() -> SkillLimits {
    SkillLimits::default()
}

fn root(uri: &str) -> Root {
    Root::of(uri, &limits()).unwrap()
}

#[test]
fn the_folder_gives_a_skill_its_name() {
    let check = |uri: &str, folder: &str, name: &str| {
        assert_eq!(root(uri), Root { uri: folder.to_owned(), name: name.to_owned() });
    };
    check("skill://git-workflow/SKILL.md", "skill://git-workflow", "git-workflow");
    check("skill://acme/billing/refunds/SKILL.md", "skill://acme/billing/refunds", "refunds");
    check("github://owner/repo/skills/refunds/SKILL.md", "github://owner/repo/skills/refunds", "refunds");
    check("skill://%63af%C3%A9/SKILL.md", "skill://%63af%C3%A9", "caf\u{e9}");
}

#[test]
fn an_address_that_is_no_skills_is_refused() {
    for uri in [
        "",
        "SKILL.md",
        "skill:pdf/SKILL.md",
        "://pdf/SKILL.md",
        "1skill://pdf/SKILL.md",
        "skill://SKILL.md",
        "skill:///SKILL.md",
        "skill://pdf/skill.md",
        "skill://pdf/SKILL.md/",
        "skill://pdf/SKILL.md?x=1",
        "skill://pdf/SKILL.md#top",
        "skill://pdf?a/SKILL.md",
        "skill://pdf/../x/SKILL.md",
        "skill://pdf/%2e%2E/x/SKILL.md",
        "skill://pdf/./SKILL.md",
        "skill://pdf//SKILL.md",
        "skill://a\\b/SKILL.md",
        "skill://a%5Cb/SKILL.md",
        "skill://a%2Fb/SKILL.md",
        "skill://a%00/SKILL.md",
        "skill://a\n/SKILL.md",
        "skill://a%/SKILL.md",
        "skill://a%f/SKILL.md",
        "skill://a%ff/SKILL.md",
    ] {
        let error = Root::of(uri, &limits()).unwrap_err();
        assert_eq!(error.kind(), SkillErrorKind::InvalidEntry, "{uri:?}: {error}");
    }
}

#[test]
fn a_file_lies_below_the_folder_of_its_skill() {
    let skill = root("skill://pdf/SKILL.md");
    let check = |uri: &str, expected: Option<&str>| {
        let found = skill.path_of(uri, &limits());
        assert_eq!(found.as_deref().ok(), expected, "{uri:?}: {found:?}");
        if let Err(error) = found {
            assert_eq!(error.kind(), SkillErrorKind::OutsideSkill, "{uri:?}");
        }
    };
    check("skill://pdf/SKILL.md", Some("SKILL.md"));
    check("skill://pdf/references/FORMS.md", Some("references/FORMS.md"));
    check("skill://pdf/a%20b.md", Some("a b.md"));
    check("skill://pdf/..a/b..", Some("..a/b.."));
    for outside in [
        "skill://pdf",
        "skill://pdf/",
        "skill://pdf2/SKILL.md",
        "skill://PDF/SKILL.md",
        "other://pdf/SKILL.md",
        "skill://pdf/../other/SKILL.md",
        "skill://pdf/%2e%2e/other/SKILL.md",
        "skill://pdf/.%2e/other",
        "skill://pdf/a//b",
        "skill://pdf/a/",
        "skill://pdf/a%2f..%2f..%2fb",
        "skill://pdf/a%5c..%5cb",
        "skill://pdf/a?x",
        "skill://pdf/a#x",
        "skill://pdf/a%0ab",
        "file:///etc/passwd",
        "/etc/passwd",
    ] {
        check(outside, None);
    }
}

#[test]
fn a_reference_is_resolved_from_the_folder_of_the_skill() {
    let skill = root("skill://acme/billing/refunds/SKILL.md");
    let check = |reference: &str, expected: Option<&str>| {
        let found = skill.resolve(reference, &limits());
        assert_eq!(found.as_deref().ok(), expected, "{reference:?}: {found:?}");
    };
    check("references/GUIDE.md", Some("references/GUIDE.md"));
    check("./references/./GUIDE.md", Some("references/GUIDE.md"));
    check("a/../b.md", Some("b.md"));
    check("a b.md", Some("a b.md"));
    check("a%20b.md", Some("a b.md"));
    check("GUIDE.md#part", Some("GUIDE.md"));
    check("skill://acme/billing/refunds/x.md", Some("x.md"));
    for outside in [
        "",
        ".",
        "#part",
        "..",
        "../SKILL.md",
        "a/../../b.md",
        "/etc/passwd",
        "//host/x",
        "a//b",
        "x?y",
        "..\\x",
        "%2e%2e/x",
        "skill://acme/billing/other/SKILL.md",
        "https://example.com/x",
    ] {
        check(outside, None);
    }
}

#[test]
fn long_addresses_and_deep_paths_hit_their_limits_exactly() {
    let mut limits = limits();
    (limits.max_uri_bytes, limits.max_path_depth) = (40, 2);
    let skill = root("skill://pdf/SKILL.md");
    let at = format!("skill://pdf/{}", "a".repeat(28));
    assert!(skill.path_of(&at, &limits).is_ok());
    let error = skill.path_of(&format!("{at}a"), &limits).unwrap_err();
    assert_eq!(error.limit().map(|limit| (limit.name, limit.value)), Some(("max_uri_bytes", 40)));
    assert!(Root::of(&format!("skill://{}/SKILL.md", "a".repeat(24)), &limits).is_err());
    assert!(skill.resolve("a/b/c", &limits).is_ok());
    let error = skill.resolve("a/b/c/d", &limits).unwrap_err();
    assert_eq!(error.limit().map(|limit| (limit.name, limit.value)), Some(("max_path_depth", 2)));
}

#[test]
fn names_follow_the_rules_of_agent_skills() {
    let check = |name: &str, expected: bool| assert_eq!(is_name(name), expected, "{name:?}");
    for name in ["a", "pdf-processing", "2024", "caf\u{e9}", &"a".repeat(64)] {
        check(name, true);
    }
    for name in ["", "-a", "a-", "a--b", "PDF", "a b", "a_b", "a/b", "a.b", &"a".repeat(65)] {
        check(name, false);
    }
}

proptest! {
    /// Whatever the reference, its path stays below the folder, and its address leads back to it.
    #[test]
    fn no_reference_leads_out_of_a_skill(reference in "([a-zA-Z0-9. %_\\\\/#?\u{e9}:-]|\\.\\./|%2e|%2f|\n){0,40}") {
        let skill = root("skill://x/pdf/SKILL.md");
        if let Ok(path) = skill.resolve(&reference, &limits()) {
            prop_assert!(!path.is_empty() && !path.starts_with('/') && !path.contains(['\\', '\n', '\0']), "{}", path);
            prop_assert!(path.split('/').all(|segment| !matches!(segment, "" | "." | "..")), "{}", path);
            let uri = skill.join(&path);
            prop_assert_eq!(skill.path_of(&uri, &limits()).unwrap(), path);
        }
    }

    #[test]
    fn no_address_panics(uri in ".{0,60}") {
        let _ = Root::of(&uri, &limits());
        let _ = root("skill://pdf/SKILL.md").path_of(&uri, &limits());
        let _ = root("skill://pdf/SKILL.md").path_of(&format!("skill://pdf/{uri}"), &limits());
    }
}
