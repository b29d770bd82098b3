//! Where the files of a skill may lie: addresses below the folder of its `SKILL.md`, and references between them.
//!
//! A path is compared and handed out percent-decoded. What could leave the folder, or be read as another path by a file system
//! or a second decoder, is refused rather than repaired: empty, `.` and `..` segments, slashes and backslashes in disguise,
//! control characters, queries and fragments.

use super::SkillLimits;
use super::error::{SkillError, SkillErrorKind, shown};
use crate::error::as_u64;

/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// The folder of a skill, and the name that the folder gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The address of the folder, without a slash at the end.
    pub(crate) uri: String,
    /// The last segment of the folder's path, percent-decoded.
    pub(crate) name: String,
}

impl Root {
    /// The folder of the skill whose `SKILL.md` is at this address.
    pub(crate) fn of(skill_uri: &str, limits: &SkillLimits) -> Result<Self, SkillError> {
        let invalid = |what: &str| SkillError::new(SkillErrorKind::InvalidEntry, skill_uri, what);
        check_length(skill_uri, limits)?;
        let (scheme, rest) =
            skill_uri.split_once("://").ok_or_else(|| invalid("the address has no scheme"))?;
        if !is_scheme(scheme) {
            return Err(invalid("the scheme of the address is invalid"));
        }
        if rest.contains(['?', '#']) {
            return Err(invalid("the address has a query or a fragment"));
        }
        let folder = rest
            .strip_suffix(SKILL_FILE)
            .and_then(|folder| folder.strip_suffix('/'))
            .ok_or_else(|| invalid("the address does not end with /SKILL.md"))?;
        let mut name = String::new();
        for segment in folder.split('/') {
            name = decode_segment(segment).map_err(|why| invalid(&format!("its address has {why}")))?;
        }
        let uri = format!("{scheme}://{folder}");
        Ok(Self { uri, name })
    }

    /// The path, below this folder, of the file at this address.
    pub(crate) fn path_of(&self, file_uri: &str, limits: &SkillLimits) -> Result<String, SkillError> {
        check_length(file_uri, limits)?;
        let outside = |what: String| SkillError::new(SkillErrorKind::OutsideSkill, file_uri, what);
        let below = file_uri
            .strip_prefix(self.uri.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| outside(format!("the file is not below {}", shown(&self.uri))))?;
        if below.contains(['?', '#']) {
            return Err(outside("the address has a query or a fragment".to_owned()));
        }
        let mut segments = Vec::new();
        for segment in below.split('/') {
            segments.push(decode_segment(segment).map_err(|why| outside(format!("its path has {why}")))?);
        }
        check_depth(&segments, file_uri, limits)?;
        Ok(segments.join("/"))
    }

    /// The path that a reference in a file of this skill means. References are taken from the skill's folder, whichever file
    /// they stand in, as the extension wants it. A full address is one of its own server's.
    pub(crate) fn resolve(&self, reference: &str, limits: &SkillLimits) -> Result<String, SkillError> {
        if reference.contains("://") {
            return self.path_of(reference, limits);
        }
        check_length(reference, limits)?;
        let outside = |what: String| SkillError::new(SkillErrorKind::OutsideSkill, reference, what);
        // A link into a section of a file names the file.
        let path = reference.split_once('#').map_or(reference, |(path, _)| path);
        if path.is_empty() || path.starts_with('/') || path.contains('?') {
            return Err(outside("a reference is a relative path".to_owned()));
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            match segment {
                "." => {}
                ".." => {
                    segments.pop().ok_or_else(|| outside("the path leads out of the skill".to_owned()))?;
                }
                segment => {
                    segments
                        .push(decode_segment(segment).map_err(|why| outside(format!("its path has {why}")))?);
                }
            }
        }
        if segments.is_empty() {
            return Err(outside("the path names no file".to_owned()));
        }
        check_depth(&segments, reference, limits)?;
        Ok(segments.join("/"))
    }

    /// The address of a path below this folder, for a skill whose entry lists no addresses.
    pub(crate) fn join(&self, path: &str) -> String {
        let mut uri = format!("{}/", self.uri);
        for byte in path.bytes() {
            match byte {
                b'/' | b'-' | b'_' | b'.' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
                | b',' | b';' | b'=' | b':' | b'@' => uri.push(char::from(byte)),
                byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

/// Whether the text is a skill's name by the rules of Agent Skills: 1 to 64 lowercase letters, digits and single hyphens,
/// none of these at an end.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.chars().count())
        && text.chars().all(|c| c == '-' || (c.is_alphanumeric() && !c.is_uppercase()))
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
}

fn check_length(uri: &str, limits: &SkillLimits) -> Result<(), SkillError> {
    let limit = limits.max_uri_bytes;
    if uri.len() <= limit {
        return Ok(());
    }
    let what = format!("an address of {} bytes exceeds the limit of {limit} bytes", uri.len());
    Err(SkillError::limit_exceeded(uri, "max_uri_bytes", as_u64(limit), what))
}

fn check_depth(segments: &[String], uri: &str, limits: &SkillLimits) -> Result<(), SkillError> {
    let (depth, limit) = (segments.len().saturating_sub(1), limits.max_path_depth);
    if depth <= limit {
        return Ok(());
    }
    let what = format!("{depth} folders within each other exceed the limit of {limit}");
    Err(SkillError::limit_exceeded(uri, "max_path_depth", as_u64(limit), what))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// One segment of a path, percent-decoded once; the error says what is wrong with it.
fn decode_segment(segment: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err("a percent sign that encodes nothing");
        };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'/'));
    }
    let text = String::from_utf8(bytes).map_err(|_| "an encoded byte that is no UTF-8")?;
    match text.as_str() {
        "" => Err("an empty segment"),
        "." | ".." => Err("a dot segment"),
        text if text.contains(['/', '\\']) => Err("a slash in disguise, or a backslash"),
        text if text.chars().any(char::is_control) => Err("a control character"),
        _ => Ok(text),
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
