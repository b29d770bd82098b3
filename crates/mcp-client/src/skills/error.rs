//! Why a skill or a file of it cannot be used.

use std::fmt;

use mcp_transport::Untrusted;

use crate::error::{Error, Limit};

/// How much of a URI or a name of the server is shown, in bytes.
const MAX_SHOWN: usize = 200;

/// Why a skill or a file of it cannot be used: what is wrong, with which file, and which limit was hit.
///
/// `Display` is one line. What it shows of the server's words is cut, and control characters are escaped.
pub struct SkillError {
    inner: Box<Inner>,
}

struct Inner {
    kind: SkillErrorKind,
    /// The skill or file that it is about, as the server or the caller wrote it.
    uri: String,
    /// Our own words.
    what: String,
    limit: Option<Limit>,
    source: Option<Error>,
}

/// What kind of failure a [`SkillError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkillErrorKind {
    /// The file's bytes do not have the digest that the entry says.
    DigestMismatch,
    /// The skill's content is generated, so it cannot be verified, and
    /// [`SkillLimits::allow_dynamic`](super::SkillLimits::allow_dynamic) is off.
    Dynamic,
    /// The file's frontmatter differs from the entry's.
    FrontmatterMismatch,
    /// The entry of a skill breaks a rule of the extension.
    InvalidEntry,
    /// The file's frontmatter is missing or is not a plain YAML mapping.
    InvalidFrontmatter,
    /// A limit of this client was hit; [`SkillError::limit`] says which.
    LimitExceeded,
    /// This client did not declare the extension. Nothing was sent.
    NotDeclared,
    /// The server did not declare the extension, or not the part of it that was asked for. Nothing was sent.
    NotOffered,
    /// A reference leads out of the skill, or is none. Nothing was sent.
    OutsideSkill,
    /// The request failed; the [`Error`] is the source.
    Request,
    /// The file does not have the size that the entry says.
    SizeMismatch,
    /// The answer does not hold the one file that was asked for.
    UnexpectedContents,
    /// The file is not among those that the entry lists. Nothing was sent.
    Unlisted,
}

impl SkillErrorKind {
    /// The name in `snake_case`, for machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DigestMismatch => "digest_mismatch",
            Self::Dynamic => "dynamic",
            Self::FrontmatterMismatch => "frontmatter_mismatch",
            Self::InvalidEntry => "invalid_entry",
            Self::InvalidFrontmatter => "invalid_frontmatter",
            Self::LimitExceeded => "limit_exceeded",
            Self::NotDeclared => "not_declared",
            Self::NotOffered => "not_offered",
            Self::OutsideSkill => "outside_skill",
            Self::Request => "request",
            Self::SizeMismatch => "size_mismatch",
            Self::UnexpectedContents => "unexpected_contents",
            Self::Unlisted => "unlisted",
        }
    }
}

impl SkillError {
    pub(crate) fn new(kind: SkillErrorKind, uri: &str, what: impl Into<String>) -> Self {
        let uri = uri.to_owned();
        Self { inner: Box::new(Inner { kind, uri, what: what.into(), limit: None, source: None }) }
    }

    pub(crate) fn limit_exceeded(uri: &str, name: &'static str, value: u64, what: impl Into<String>) -> Self {
        let mut error = Self::new(SkillErrorKind::LimitExceeded, uri, what);
        error.inner.limit = Some(Limit { name, value });
        error
    }

    pub(crate) fn request(uri: &str, source: Error) -> Self {
        let mut error = Self::new(SkillErrorKind::Request, uri, "the request failed");
        error.inner.limit = source.limit();
        error.inner.source = Some(source);
        error
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> SkillErrorKind {
        self.inner.kind
    }

    /// The URI that it is about: of the skill, or of the file. Untrusted.
    pub fn uri(&self) -> &str {
        &self.inner.uri
    }

    /// The limit that was hit.
    pub fn limit(&self) -> Option<Limit> {
        self.inner.limit
    }

    /// The failed request.
    pub fn request_error(&self) -> Option<&Error> {
        self.inner.source.as_ref()
    }

    /// Whether what came is not what the entry described: corrupted, tampered with, or changed since the entry was fetched.
    /// [`Skills::get`](super::Skills::get) fetches the entry anew; an approval that was given to the old one is void if it
    /// differs.
    pub fn is_verification_failure(&self) -> bool {
        use SkillErrorKind as K;
        matches!(
            self.inner.kind,
            K::DigestMismatch
                | K::SizeMismatch
                | K::FrontmatterMismatch
                | K::InvalidFrontmatter
                | K::Unlisted
        )
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { uri, what, .. } = &*self.inner;
        if uri.is_empty() {
            return f.write_str(what);
        }
        write!(f, "{}: {what}", Untrusted::new(uri, MAX_SHOWN))
    }
}

impl fmt::Debug for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillError")
            .field("kind", &self.inner.kind)
            .field("message", &self.to_string())
            .field("limit", &self.inner.limit)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl std::error::Error for SkillError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_ref().map(|error| error as _)
    }
}

/// Text of a server within our own words: quoted, cut, control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    Untrusted::new(text, MAX_SHOWN).quoted().to_string()
}
