//! A skill whose `SKILL.md` was verified, and the files that it leads to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_model::{ReadResourceResult, ResourceContents};

use super::Skills;
use super::digest::SkillDigest;
use super::entry::{Skill, SkillFile};
use super::error::{SkillError, SkillErrorKind, shown};
use super::frontmatter::Frontmatter;
use super::path::SKILL_FILE;
use crate::error::as_u64;

/// A skill whose `SKILL.md` was fetched and verified: the host acts on it as long as it holds this, under the entry that it was
/// loaded from. Only its own files can be read through it, and only from its own server.
#[derive(Clone)]
pub struct LoadedSkill {
    skills: Skills,
    skill: Skill,
    text: Arc<str>,
    body_at: usize,
    /// Bytes read so far, where no entry says how many there are.
    read_bytes: Arc<AtomicU64>,
}

/// A file of a skill, verified.
#[derive(Clone)]
pub struct SkillContent {
    uri: String,
    path: String,
    mime_type: Option<String>,
    bytes: Vec<u8>,
}

impl LoadedSkill {
    pub(super) async fn load(skills: Skills, skill: Skill) -> Result<Self, SkillError> {
        if skill.is_dynamic() && !skills.limits.allow_dynamic {
            let what = "the content of the skill is generated and cannot be verified";
            return Err(SkillError::new(SkillErrorKind::Dynamic, skill.uri(), what));
        }
        let read_bytes = Arc::new(AtomicU64::new(0));
        let listed = skill.file(SKILL_FILE);
        let fetched = fetch(&skills, &skill, skill.uri(), SKILL_FILE.to_owned(), listed, &read_bytes).await?;
        let text = fetched.text()?;
        let frontmatter = Frontmatter::read(skill.uri(), text, &skills.limits)?;
        if let Some(key) = frontmatter.difference(skill.frontmatter()) {
            let what =
                format!("the frontmatter of the file differs from that of the entry in {}", shown(&key));
            return Err(SkillError::new(SkillErrorKind::FrontmatterMismatch, skill.uri(), what));
        }
        let (text, body_at) = (Arc::from(text), frontmatter.body_at);
        Ok(Self { skills, skill, text, body_at, read_bytes })
    }

    /// The entry that this was loaded from.
    pub fn skill(&self) -> &Skill {
        &self.skill
    }

    /// The whole of `SKILL.md`. Untrusted input to a model; tag it with the server that it comes from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stands in `SKILL.md` behind the frontmatter. Untrusted, as above.
    pub fn body(&self) -> &str {
        self.text.get(self.body_at..).unwrap_or_default()
    }

    /// Fetches a file of this skill and verifies it. `reference` is a path as `SKILL.md` writes it (`references/FORMS.md`),
    /// taken from the skill's folder, or the file's full address.
    ///
    /// # Errors
    ///
    /// [`OutsideSkill`](SkillErrorKind::OutsideSkill) and [`Unlisted`](SkillErrorKind::Unlisted), and then nothing was sent;
    /// otherwise as for [`Skills::load`].
    pub async fn read(&self, reference: &str) -> Result<SkillContent, SkillError> {
        let path = self.skill.root.resolve(reference, &self.skills.limits)?;
        let listed = self.skill.file(&path);
        if listed.is_none() && !self.skill.is_dynamic() {
            let what = "the file is not among those that the entry lists";
            return Err(SkillError::new(SkillErrorKind::Unlisted, reference, what));
        }
        let uri = listed.map_or_else(|| self.skill.root.join(&path), |file| file.uri.clone());
        fetch(&self.skills, &self.skill, &uri, path, listed, &self.read_bytes).await
    }
}

impl SkillContent {
    /// The file's address.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Its path below the skill's folder; see [`SkillFile::path`].
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The type that the server gives it. Untrusted.
    pub fn mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// Its bytes. Untrusted.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its text. Untrusted.
    ///
    /// # Errors
    ///
    /// [`UnexpectedContents`](SkillErrorKind::UnexpectedContents) where it is not UTF-8.
    pub fn text(&self) -> Result<&str, SkillError> {
        std::str::from_utf8(&self.bytes).map_err(|_| {
            SkillError::new(SkillErrorKind::UnexpectedContents, &self.uri, "the file is no UTF-8 text")
        })
    }
}

/// Fetches one file and verifies size and digest. Nothing of it is seen by anyone before.
async fn fetch(
    skills: &Skills,
    skill: &Skill,
    uri: &str,
    path: String,
    listed: Option<&SkillFile>,
    read_bytes: &AtomicU64,
) -> Result<SkillContent, SkillError> {
    // From the server and no cache: a copy from before the entry changed would fail although the server is right.
    let answer = skills.client.read_resource(uri).uncached().await.map_err(Skills::request_failed(uri))?;
    let (mime_type, bytes) = only_contents(uri, answer)?;
    let size = as_u64(bytes.len());
    match listed {
        Some(file) => verify(file, &bytes)?,
        None => {
            let limit = skills.limits.max_skill_bytes;
            let total = read_bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size);
            if total > limit {
                let what = format!("{total} bytes read of the skill exceed the limit of {limit} bytes");
                return Err(SkillError::limit_exceeded(skill.uri(), "max_skill_bytes", limit, what));
            }
        }
    }
    Ok(SkillContent { uri: uri.to_owned(), path, mime_type, bytes })
}

fn verify(file: &SkillFile, bytes: &[u8]) -> Result<(), SkillError> {
    let size = as_u64(bytes.len());
    if size != file.size {
        let what = format!("the file has {size} bytes, and the entry says {}", file.size);
        return Err(SkillError::new(SkillErrorKind::SizeMismatch, &file.uri, what));
    }
    if SkillDigest::of(bytes) != file.digest {
        let what = "the file does not have the digest that the entry says";
        return Err(SkillError::new(SkillErrorKind::DigestMismatch, &file.uri, what));
    }
    Ok(())
}

/// The one piece of contents that an answer must hold, with the address that was asked for.
fn only_contents(uri: &str, answer: ReadResourceResult) -> Result<(Option<String>, Vec<u8>), SkillError> {
    let unexpected = |what: &str| SkillError::new(SkillErrorKind::UnexpectedContents, uri, what);
    let mut contents = answer.contents.into_iter();
    let (Some(only), None) = (contents.next(), contents.next()) else {
        return Err(unexpected("the answer does not hold one file"));
    };
    if only.uri() != Some(uri) {
        return Err(unexpected("the answer holds another file"));
    }
    match only {
        ResourceContents::Text(text) => Ok((text.mime_type, text.text.into_bytes())),
        ResourceContents::Blob(blob) => {
            let bytes = STANDARD.decode(&blob.blob).map_err(|_| unexpected("the file is no base64"))?;
            Ok((blob.mime_type, bytes))
        }
        _ => Err(unexpected("the file is neither text nor bytes")),
    }
}

impl fmt::Debug for LoadedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedSkill")
            .field("skill", &self.skill)
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SkillContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillContent")
            .field("uri", &self.uri)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}
