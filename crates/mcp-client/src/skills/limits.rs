//! Limits for skills.

/// Limits on what a server can make this client hold and read for its skills.
///
/// The defaults of [`max_files`](Self::max_files) and [`max_skill_bytes`](Self::max_skill_bytes) are those that the extension
/// requires every host to support; a skill of exactly that size is loaded, a larger one is refused from its entry alone,
/// before any of it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillLimits {
    /// Files of one skill, `SKILL.md` included. Default 512, the extension's own limit. Above it the entry is refused.
    pub max_files: usize,
    /// Bytes of all files of one skill together. Default 16 MiB, the extension's own limit. Above it the entry is refused; for
    /// a dynamic skill, whose entry says no sizes, the read that would exceed it fails.
    pub max_skill_bytes: u64,
    /// Bytes of the frontmatter, both as JSON in an entry and as YAML in a file. Default 64 KiB, far above what authors
    /// write. Above it the entry or the file is refused.
    pub max_frontmatter_bytes: usize,
    /// Nesting depth of the frontmatter. Default 16. Above it the entry or the file is refused.
    pub max_frontmatter_depth: usize,
    /// Values in the YAML of one frontmatter. Default 4,096. Above it the file is refused.
    pub max_frontmatter_nodes: usize,
    /// Bytes of one URI. Default 2,048, as browsers and proxies bound it. Above it the entry or the request is refused.
    pub max_uri_bytes: usize,
    /// Nesting depth of folders below the skill's own. Default 32. Above it the entry or the request is refused.
    pub max_path_depth: usize,
    /// Skills of one list. Default 10,000. At the limit what was read is returned, and
    /// [`SkillList::complete`](super::SkillList::complete) says that there is more.
    pub max_skills: usize,
    /// Pages of one list. Default 1,000. At the limit as above.
    pub max_pages: usize,
    /// Bytes of the pages of one list. Default 64 MiB, four messages of the greatest default size. At the limit as above.
    pub max_list_bytes: usize,
    /// Whether skills are loaded whose entry is `"dynamic"`, so that there is no digest to verify them with. Default: no. The
    /// extension lets a host decline them; if this is on, only the frontmatter is verified.
    pub allow_dynamic: bool,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self {
            max_files: 512,
            max_skill_bytes: 16 * 1024 * 1024,
            max_frontmatter_bytes: 64 * 1024,
            max_frontmatter_depth: 16,
            max_frontmatter_nodes: 4096,
            max_uri_bytes: 2048,
            max_path_depth: 32,
            max_skills: 10_000,
            max_pages: 1000,
            max_list_bytes: 64 * 1024 * 1024,
            allow_dynamic: false,
        }
    }
}
