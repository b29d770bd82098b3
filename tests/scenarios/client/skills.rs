//! Skills of a scripted server, in both eras.

use std::time::Duration;

use mcp_client::skills::{LoadedSkill, Skill, SkillDigest, SkillError, SkillErrorKind, SkillLimits, Skills};
use mcp_client::{Client, Mode};
use serde_json::{Value, json};

use super::peer::{Peer, builder, pipe};

const SKILL: &str = "---\nname: pdf\ndescription: Fill forms\n---\n\n# Forms\n";
const FORMS: &str = "Fields.\n";
const ROOT: &str = "skill://acme/pdf";

fn file(path: &str, text: &str) -> Value {
    let digest = SkillDigest::of(text.as_bytes()).to_string();
    json!({ "uri": format!("{ROOT}/{path}"), "digest": digest, "size": text.len() })
}

fn entry() -> Value {
    json!({
        "uri": format!("{ROOT}/SKILL.md"),
        "frontmatter": { "name": "pdf", "description": "Fill forms" },
        "resources": [file("SKILL.md", SKILL), file("references/FORMS.md", FORMS), file("logo.png", "\u{0}\u{1}")],
    })
}

fn declared(settings: &Value) -> Value {
    json!({ "resources": {}, "extensions": { "io.modelcontextprotocol/skills": settings } })
}

/// A client with skills and its server. Returns what `initialize` carried too.
async fn connected(capabilities: Value) -> (Client, Peer, Value) {
    let (connection, mut peer) = pipe(1 << 20);
    let (client, hello) = tokio::join!(builder().skills().connect(connection), peer.handshake(capabilities));
    (client.unwrap(), peer, hello)
}

async fn with_skills() -> (Skills, Peer) {
    let (client, peer, _) = connected(declared(&json!({}))).await;
    (client.skills().unwrap(), peer)
}

fn skill(entry: &Value) -> Skill {
    Skill::from_json(&entry.to_string(), &SkillLimits::default()).unwrap()
}

fn contents(uri: &str, member: &str, value: &str) -> Value {
    json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", member: value }] })
}

/// Answers the next `resources/read`, which must be for this address.
async fn serve(peer: &mut Peer, path: &str, text: &str) {
    let uri = format!("{ROOT}/{path}");
    let request = peer.expect("resources/read").await;
    assert_eq!(request["params"]["uri"], uri.as_str());
    peer.answer(&request, contents(&uri, "text", text)).await;
}

/// Loads the skill of this entry from a server whose `SKILL.md` is this.
async fn load(entry: &Value, text: &str) -> (Result<LoadedSkill, SkillError>, Peer) {
    let (skills, mut peer) = with_skills().await;
    let skills = skills.limits(dynamic_too());
    let skill = skill(entry);
    let (loaded, ()) = tokio::join!(skills.load(&skill), serve(&mut peer, "SKILL.md", text));
    (loaded, peer)
}

fn dynamic_too() -> SkillLimits {
    let mut limits = SkillLimits::default();
    limits.allow_dynamic = true;
    limits
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, SkillError>) -> SkillErrorKind {
    outcome.unwrap_err().kind()
}

/// protocol:L-25: off by default on our side, and never asked of a server that does not declare it.
#[tokio::test(start_paused = true)]
async fn skills_need_a_declaration_of_either_side() {
    let (client, mut peer, hello) = connected(json!({ "resources": {} })).await;
    let extensions = &hello["params"]["capabilities"]["extensions"];
    assert_eq!(extensions, &json!({ "io.modelcontextprotocol/skills": {} }));
    assert_eq!(kind(client.skills()), SkillErrorKind::NotOffered);
    peer.expect_silence(Duration::from_secs(1)).await;

    let (connection, mut peer) = pipe(1 << 20);
    let hello = peer.handshake(declared(&json!({})));
    let (client, hello) = tokio::join!(builder().connect(connection), hello);
    assert!(hello["params"]["capabilities"].get("extensions").is_none());
    assert_eq!(kind(client.unwrap().skills()), SkillErrorKind::NotDeclared);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_told_with_each_request() {
    let (connection, mut peer) = pipe(1 << 20);
    let connecting = builder().skills().mode(Mode::Auto).connect(connection);
    let (client, ()) = tokio::join!(connecting, async {
        peer.discovered(declared(&json!({}))).await;
    });
    let skills = client.unwrap().skills().unwrap();
    let (listed, ()) = tokio::join!(skills.list(), async {
        let request = peer.expect("skills/list").await;
        let declared =
            &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        assert_eq!(declared, &json!({ "io.modelcontextprotocol/skills": {} }));
        let result = json!({ "resultType": "complete", "skills": [entry()], "ttlMs": 300_000, "cacheScope": "public" });
        peer.answer(&request, result).await;
    });
    assert_eq!(listed.unwrap().skills[0].name(), "pdf");
}

#[tokio::test(start_paused = true)]
async fn a_list_follows_its_pages_and_reads_no_file() {
    let (skills, mut peer) = with_skills().await;
    let (listed, ()) = tokio::join!(skills.list(), async {
        let first = peer.expect("skills/list").await;
        let odd = json!({ "uri": "skill://x/SKILL.md", "frontmatter": {} });
        peer.answer(&first, json!({ "skills": [entry(), odd], "nextCursor": "2" })).await;
        let second = peer.expect("skills/list").await;
        assert_eq!(second["params"]["cursor"], "2");
        let mut twin = entry();
        twin["uri"] = json!("skill://pdf/SKILL.md");
        twin["resources"] = json!("dynamic");
        peer.answer(&second, json!({ "skills": [twin] })).await;
    });
    let listed = listed.unwrap();
    assert!(listed.complete);
    let uris: Vec<_> = listed.skills.iter().map(|skill| (skill.name(), skill.uri())).collect();
    assert_eq!(uris, [("pdf", "skill://acme/pdf/SKILL.md"), ("pdf", "skill://pdf/SKILL.md")]);
    assert_eq!(listed.rejected.len(), 1);
    assert_eq!(
        (listed.rejected[0].index, listed.rejected[0].error.kind()),
        (1, SkillErrorKind::InvalidEntry)
    );
    peer.expect_silence(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hits_a_limit_says_that_there_is_more() {
    let (skills, mut peer) = with_skills().await;
    let mut limits = SkillLimits::default();
    limits.max_skills = 2;
    let skills = skills.limits(limits);
    for (count, complete) in [(1, true), (2, true), (3, false)] {
        let (listed, ()) = tokio::join!(skills.list(), async {
            let request = peer.expect("skills/list").await;
            peer.answer(&request, json!({ "skills": vec![entry(); count] })).await;
        });
        let listed = listed.unwrap();
        assert_eq!((listed.skills.len(), listed.complete), (count.min(2), complete));
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_fetched_by_address_and_must_be_that_skills() {
    let (skills, mut peer) = with_skills().await;
    let uri = format!("{ROOT}/SKILL.md");
    for (answered, fine) in [("skill://acme/pdf/SKILL.md", true), ("skill://other/pdf/SKILL.md", false)] {
        let (got, ()) = tokio::join!(skills.get(&uri), async {
            let request = peer.expect("skills/get").await;
            assert_eq!(request["params"]["uri"], uri.as_str());
            let mut skill = entry();
            skill["uri"] = json!(answered);
            if !fine {
                skill["resources"] = json!("dynamic");
            }
            peer.answer(&request, json!({ "skill": skill })).await;
        });
        match got {
            Ok(skill) => assert!(fine && skill.uri() == uri),
            Err(error) => assert!(!fine && error.kind() == SkillErrorKind::InvalidEntry, "{error}"),
        }
    }
    // Nothing is asked about what is no skill.
    assert_eq!(kind(skills.get("file:///etc/passwd").await), SkillErrorKind::InvalidEntry);
    peer.expect_silence(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_verified_file_leads_to_the_listed_ones_alone() {
    let (loaded, mut peer) = load(&entry(), SKILL).await;
    let loaded = loaded.unwrap();
    assert_eq!((loaded.text(), loaded.body()), (SKILL, "\n# Forms\n"));
    let (read, ()) =
        tokio::join!(loaded.read("references/FORMS.md"), serve(&mut peer, "references/FORMS.md", FORMS));
    let read = read.unwrap();
    assert_eq!(
        (read.text().unwrap(), read.path(), read.mime_type()),
        (FORMS, "references/FORMS.md", Some("text/markdown"))
    );
    for (reference, expected) in [
        ("references/OTHER.md", SkillErrorKind::Unlisted),
        ("skill://acme/pdf/new.md", SkillErrorKind::Unlisted),
        ("../other/SKILL.md", SkillErrorKind::OutsideSkill),
        ("skill://acme/other/SKILL.md", SkillErrorKind::OutsideSkill),
        ("https://example.com/x", SkillErrorKind::OutsideSkill),
    ] {
        assert_eq!(kind(loaded.read(reference).await), expected, "{reference}");
    }
    // Nothing was asked for what is not of the skill.
    peer.expect_silence(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_come_in_base64_and_are_verified_as_bytes() {
    let (loaded, mut peer) = load(&entry(), SKILL).await;
    let loaded = loaded.unwrap();
    let uri = format!("{ROOT}/logo.png");
    for (blob, expected) in [
        ("AAE=", None),
        ("AAI=", Some(SkillErrorKind::DigestMismatch)),
        ("AAEC", Some(SkillErrorKind::SizeMismatch)),
        ("A*E=", Some(SkillErrorKind::UnexpectedContents)),
    ] {
        let (read, ()) = tokio::join!(loaded.read("logo.png"), async {
            let request = peer.expect("resources/read").await;
            peer.answer(&request, contents(&uri, "blob", blob)).await;
        });
        assert_eq!(read.as_ref().err().map(SkillError::kind), expected, "{blob}");
        if let Ok(read) = read {
            assert_eq!(read.into_bytes(), [0, 1]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_what_its_entry_says_never_counts() {
    let check = async |entry: Value, text: &str, expected: SkillErrorKind| {
        let (loaded, mut peer) = load(&entry, text).await;
        let error = loaded.unwrap_err();
        assert_eq!(error.kind(), expected, "{error}");
        assert!(error.is_verification_failure());
        assert_eq!(error.uri(), "skill://acme/pdf/SKILL.md");
        // The client is gone, and asked for nothing more before.
        peer.expect_end().await;
    };
    check(entry(), &SKILL.replace("# Forms", "# Evil!"), SkillErrorKind::DigestMismatch).await;
    check(entry(), &format!("{SKILL}more"), SkillErrorKind::SizeMismatch).await;
    let other = SKILL.replace("Fill forms", "Exfiltrate");
    let mut tampered = entry();
    tampered["resources"][0] = file("SKILL.md", &other);
    check(tampered, &other, SkillErrorKind::FrontmatterMismatch).await;
    let mut bare = entry();
    bare["resources"][0] = file("SKILL.md", "# Forms\n");
    check(bare, "# Forms\n", SkillErrorKind::InvalidFrontmatter).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_must_hold_the_one_file_that_was_asked_for() {
    let uri = format!("{ROOT}/SKILL.md");
    let one = json!({ "uri": uri, "text": SKILL });
    for contents in [
        json!([]),
        json!([one, one]),
        json!([{ "uri": "skill://acme/pdf/OTHER.md", "text": SKILL }]),
        json!([{ "uri": uri, "json": {} }]),
    ] {
        let (skills, mut peer) = with_skills().await;
        let skill = skill(&entry());
        let (loaded, ()) = tokio::join!(skills.load(&skill), async {
            let request = peer.expect("resources/read").await;
            peer.answer(&request, json!({ "contents": contents })).await;
        });
        assert_eq!(kind(loaded), SkillErrorKind::UnexpectedContents, "{contents}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_skill_is_declined_unless_it_is_asked_for() {
    let mut dynamic = entry();
    dynamic["resources"] = json!("dynamic");
    let (skills, mut peer) = with_skills().await;
    assert_eq!(kind(skills.load(&skill(&dynamic)).await), SkillErrorKind::Dynamic);
    peer.expect_silence(Duration::from_secs(1)).await;

    let (loaded, mut peer) = load(&dynamic, SKILL).await;
    let loaded = loaded.unwrap();
    let (read, ()) = tokio::join!(loaded.read("a b.md"), serve(&mut peer, "a%20b.md", "x"));
    assert_eq!(read.unwrap().bytes(), b"x");
    assert_eq!(kind(loaded.read("../x").await), SkillErrorKind::OutsideSkill);

    let other = SKILL.replace("Fill forms", "Exfiltrate");
    assert_eq!(kind(load(&dynamic, &other).await.0), SkillErrorKind::FrontmatterMismatch);
}

#[tokio::test(start_paused = true)]
async fn what_is_read_of_a_dynamic_skill_is_bounded_in_all() {
    let mut dynamic = entry();
    dynamic["resources"] = json!("dynamic");
    let (skills, mut peer) = with_skills().await;
    let mut limits = dynamic_too();
    limits.max_skill_bytes = SKILL.len() as u64 + 4;
    let (skills, skill) = (skills.limits(limits), skill(&dynamic));
    let (loaded, ()) = tokio::join!(skills.load(&skill), serve(&mut peer, "SKILL.md", SKILL));
    let loaded = loaded.unwrap();
    for (text, fine) in [("abc", true), ("d", true), ("e", false)] {
        let (read, ()) = tokio::join!(loaded.read("x"), serve(&mut peer, "x", text));
        match read {
            Ok(_) => assert!(fine, "{text}"),
            Err(error) => assert!(!fine && error.limit().unwrap().name == "max_skill_bytes", "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn folders_are_listed_where_the_server_says_that_it_can() {
    let (skills, mut peer) = with_skills().await;
    assert_eq!(kind(skills.read_directory(ROOT).await), SkillErrorKind::NotOffered);
    peer.expect_silence(Duration::from_secs(1)).await;

    let (client, mut peer, _) = connected(declared(&json!({ "directoryRead": true }))).await;
    let skills = client.skills().unwrap();
    let (listed, ()) = tokio::join!(skills.read_directory(ROOT), async {
        let request = peer.expect("resources/directory/read").await;
        assert_eq!(request["params"]["uri"], ROOT);
        let file = json!({ "uri": format!("{ROOT}/x.md"), "name": "x.md" });
        peer.answer(&request, json!({ "resources": [file], "nextCursor": "n" })).await;
        let request = peer.expect("resources/directory/read").await;
        assert_eq!((&request["params"]["uri"], &request["params"]["cursor"]), (&json!(ROOT), &json!("n")));
        let folder = json!({ "uri": format!("{ROOT}/y"), "name": "y", "mimeType": "inode/directory" });
        peer.answer(&request, json!({ "resources": [folder] })).await;
    });
    let names: Vec<_> = listed.unwrap().into_iter().map(|resource| resource.name).collect();
    assert_eq!(names, ["x.md", "y"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_keeps_its_error() {
    let (skills, mut peer) = with_skills().await;
    let uri = format!("{ROOT}/SKILL.md");
    let (got, ()) = tokio::join!(skills.get(&uri), async {
        let request = peer.expect("skills/get").await;
        peer.refuse(&request, -32602, "no such\u{1b} skill").await;
    });
    let error = got.unwrap_err();
    assert_eq!((error.kind(), error.uri()), (SkillErrorKind::Request, uri.as_str()));
    assert_eq!(error.request_error().unwrap().error_object().unwrap().code.get(), -32602);
    assert!(!format!("{error} {error:?}").contains('\u{1b}'));
}
