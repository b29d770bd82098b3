//! The entry of a skill: what the server says of it before anything of it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hmac_sha256::Hash as Sha256;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::SkillLimits;
use super::digest::SkillDigest;
use super::error::{SkillError, SkillErrorKind, shown};
use super::frontmatter::depth_exceeded;
use super::path::{Root, SKILL_FILE, is_name};
use crate::error::as_u64;

/// A skill as its entry describes it. The entry has been validated; nothing of the skill has been read.
///
/// All of it comes from the server and proves nothing. A name is a label, not an identity: a skill is identified by the host's
/// own name for the server together with [`uri`](Self::uri), and two skills may have the same name.
#[derive(Clone)]
pub struct Skill {
    pub(super) uri: String,
    pub(super) root: Root,
    frontmatter: Map<String, Value>,
    files: Option<Vec<SkillFile>>,
}

/// A file of a skill, as its entry lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// The file's address, as the server wrote it.
    pub uri: String,
    /// Its path below the skill's folder: relative, percent-decoded, without empty or dot segments, backslashes or control
    /// characters. What an operating system reserves beyond that is for whoever writes files to check.
    pub path: String,
    /// The digest of its bytes.
    pub digest: SkillDigest,
    /// The number of its bytes.
    pub size: u64,
}

/// The entry as it is on the wire.
#[derive(Deserialize)]
struct Wire<'a> {
    uri: String,
    #[serde(borrow)]
    frontmatter: &'a RawValue,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireFile {
    uri: String,
    digest: String,
    size: u64,
}

impl Skill {
    /// Reads one entry, as `skills/list` and `skills/get` give it.
    ///
    /// # Errors
    ///
    /// [`InvalidEntry`](SkillErrorKind::InvalidEntry) where it breaks a rule of the extension,
    /// [`OutsideSkill`](SkillErrorKind::OutsideSkill) where it lists a file that is not below its folder,
    /// [`LimitExceeded`](SkillErrorKind::LimitExceeded).
    pub fn from_json(entry: &str, limits: &SkillLimits) -> Result<Self, SkillError> {
        let wire: Wire<'_> = serde_json::from_str(entry).map_err(|_| {
            SkillError::new(SkillErrorKind::InvalidEntry, "", "a skill needs uri and frontmatter")
        })?;
        let root = Root::of(&wire.uri, limits)?;
        let frontmatter = read_frontmatter(&wire, &root, limits)?;
        let files = read_files(&wire, &root, limits)?;
        Ok(Self { uri: wire.uri, root, frontmatter, files })
    }

    /// The address of its `SKILL.md`.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The address of its folder, without a slash at the end.
    pub fn root_uri(&self) -> &str {
        &self.root.uri
    }

    /// Its name, which is also the last segment of its folder. Not unique.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// What it is for. Text of the server: untrusted.
    pub fn description(&self) -> &str {
        self.text("description")
    }

    fn text(&self, key: &str) -> &str {
        self.frontmatter.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole frontmatter. Untrusted; members that would widen what a model may do, such as `allowed-tools`, ask for a
    /// grant and are none.
    pub fn frontmatter(&self) -> &Map<String, Value> {
        &self.frontmatter
    }

    /// All its files, `SKILL.md` included; `None` if its content is generated, so that it cannot be verified.
    pub fn files(&self) -> Option<&[SkillFile]> {
        self.files.as_deref()
    }

    /// Whether its content is generated, so that there is no list of files and no digest.
    pub fn is_dynamic(&self) -> bool {
        self.files.is_none()
    }

    /// The bytes of all its files together; `None` for a dynamic skill.
    pub fn total_bytes(&self) -> Option<u64> {
        Some(self.files.as_ref()?.iter().map(|file| file.size).sum())
    }

    /// The file at this path below the skill's folder.
    pub fn file(&self, path: &str) -> Option<&SkillFile> {
        self.files.as_ref()?.iter().find(|file| file.path == path)
    }

    /// What an approval of this skill is to be bound to: a digest over the address and digest of every file, in the order of
    /// the addresses. It changes with any file that is changed, added or removed, and not with their order in the entry. A
    /// dynamic skill has none, so no approval of it can be kept.
    pub fn content_digest(&self) -> Option<SkillDigest> {
        let files: BTreeSet<_> = self.files.as_ref()?.iter().map(|file| (&file.uri, file.digest)).collect();
        let mut hasher = Sha256::new();
        for (uri, digest) in files {
            // The length first, so that no address can pretend to be two.
            hasher.update(as_u64(uri.len()).to_be_bytes());
            hasher.update(uri.as_bytes());
            hasher.update(digest.as_bytes());
        }
        Some(SkillDigest::from_bytes(hasher.finalize()))
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skill")
            .field("uri", &self.uri)
            .field("files", &self.files.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

fn read_frontmatter(
    wire: &Wire<'_>,
    root: &Root,
    limits: &SkillLimits,
) -> Result<Map<String, Value>, SkillError> {
    let uri = &wire.uri;
    let invalid = |what: &str| SkillError::new(SkillErrorKind::InvalidEntry, uri, what);
    let (bytes, limit) = (wire.frontmatter.get().len(), limits.max_frontmatter_bytes);
    if bytes > limit {
        let what = format!("frontmatter of {bytes} bytes exceeds the limit of {limit} bytes");
        return Err(SkillError::limit_exceeded(uri, "max_frontmatter_bytes", as_u64(limit), what));
    }
    let members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(wire.frontmatter.get()).map_err(|_| invalid("its frontmatter is no object"))?;
    let depth = depth(wire.frontmatter.get());
    if depth > limits.max_frontmatter_depth {
        return Err(depth_exceeded(uri, limits.max_frontmatter_depth));
    }
    let mut frontmatter = Map::new();
    for (name, raw) in members {
        let value =
            serde_json::from_str(raw.get()).map_err(|_| invalid("its frontmatter is not readable"))?;
        frontmatter.insert(name, value);
    }
    let text = |key: &str| frontmatter.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(name) = text("name") else { return Err(invalid("its frontmatter has no name")) };
    if text("description").is_none() {
        return Err(invalid("its frontmatter has no description"));
    }
    if !is_name(name) {
        return Err(invalid(&format!("{} is no name of a skill", shown(name))));
    }
    if name != root.name {
        let what = format!("its name {} is not that of its folder, {}", shown(name), shown(&root.name));
        return Err(invalid(&what));
    }
    Ok(frontmatter)
}

fn read_files(
    wire: &Wire<'_>,
    root: &Root,
    limits: &SkillLimits,
) -> Result<Option<Vec<SkillFile>>, SkillError> {
    let uri = &wire.uri;
    let invalid = |what: &str| SkillError::new(SkillErrorKind::InvalidEntry, uri, what);
    let neither = || invalid("its resources are neither a list nor \"dynamic\"");
    let raw = wire.resources.ok_or_else(|| invalid("it has no resources"))?.get();
    if !raw.starts_with('[') {
        return match serde_json::from_str::<String>(raw) {
            Ok(word) if word == "dynamic" => Ok(None),
            _ => Err(neither()),
        };
    }
    // Not copied, and counted before any of them is looked at.
    let raws: Vec<&RawValue> = serde_json::from_str(raw).map_err(|_| neither())?;
    let (count, limit) = (raws.len(), limits.max_files);
    if count > limit {
        let what = format!("{count} files exceed the limit of {limit}");
        return Err(SkillError::limit_exceeded(uri, "max_files", as_u64(limit), what));
    }
    let mut files = Vec::with_capacity(count);
    let (mut uris, mut paths) = (BTreeSet::new(), BTreeSet::new());
    let mut total: u64 = 0;
    for raw in raws {
        let file: WireFile =
            serde_json::from_str(raw.get()).map_err(|_| invalid("a file of it lacks uri, digest or size"))?;
        let digest = file
            .digest
            .parse()
            .map_err(|error| SkillError::new(SkillErrorKind::InvalidEntry, &file.uri, format!("{error}")))?;
        let path = root.path_of(&file.uri, limits)?;
        if !uris.insert(file.uri.clone()) || !paths.insert(path.clone()) {
            return Err(SkillError::new(SkillErrorKind::InvalidEntry, &file.uri, "the file is listed twice"));
        }
        total = total.saturating_add(file.size);
        files.push(SkillFile { uri: file.uri, path, digest, size: file.size });
    }
    let limit = limits.max_skill_bytes;
    if total > limit {
        let what = format!("{total} bytes of files exceed the limit of {limit} bytes");
        return Err(SkillError::limit_exceeded(uri, "max_skill_bytes", limit, what));
    }
    if !files.iter().any(|file| file.uri == *uri && file.path == SKILL_FILE) {
        return Err(invalid("its own SKILL.md is not among its files"));
    }
    Ok(Some(files))
}

/// How many collections lie within each other in this JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
