//! Asking for entries: `skills/list`, `skills/get` and `resources/directory/read`.

use std::fmt;

use mcp_model::{CacheScope, List as ModelList, Page, Paginated, Request, Resource, ResultType, WithMeta};
use mcp_proto::ListKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Skills;
use super::entry::Skill;
use super::error::SkillError;
use crate::requests::{List, ListedItem};

macro_rules! params {
    ($name:ident, $method:literal, $result:ty) => {
        impl Request for $name {
            const METHOD: &'static str = $method;
            type Result = $result;
        }

        impl WithMeta for $name {
            fn meta(&self) -> Option<&RawValue> {
                self.meta.as_deref()
            }

            fn set_meta(&mut self, meta: Option<Box<RawValue>>) {
                self.meta = meta;
            }
        }
    };
}

/// Parameters of `skills/list`.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ListSkillsRequestParams {
    /// Where to go on: the `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

params!(ListSkillsRequestParams, "skills/list", ListSkillsResult);

impl Paginated for ListSkillsRequestParams {
    fn set_cursor(&mut self, cursor: Option<String>) {
        self.cursor = cursor;
    }
}

/// A page of `skills/list`, its entries unread.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListSkillsResult {
    /// The entries; see [`Skill::from_json`].
    pub skills: ModelList<Box<RawValue>>,
    /// Where the list goes on.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// How long the page may be taken for fresh, in milliseconds.
    #[serde(default)]
    pub ttl_ms: Option<Box<RawValue>>,
    /// Who may be shown it from a cache.
    #[serde(default)]
    pub cache_scope: Option<CacheScope>,
    /// How to read the result.
    #[serde(default)]
    pub result_type: Option<ResultType>,
}

impl Page for ListSkillsResult {
    fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }
}

impl ListedItem for ListSkillsResult {
    type Item = Box<RawValue>;

    fn kind() -> ListKind {
        ListKind::Resources
    }

    fn into_list(self) -> ModelList<Box<RawValue>> {
        self.skills
    }
}

/// Parameters of `skills/get`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GetSkillRequestParams {
    /// The address of the skill's `SKILL.md`.
    pub uri: String,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl GetSkillRequestParams {
    /// Asks for the skill with this `SKILL.md`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), meta: None }
    }
}

params!(GetSkillRequestParams, "skills/get", GetSkillResult);

/// The result of `skills/get`, its entry unread.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The entry; see [`Skill::from_json`].
    pub skill: Box<RawValue>,
}

/// Parameters of `resources/directory/read`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ReadResourceDirectoryRequestParams {
    /// The address of the folder, without a slash at the end.
    pub uri: String,
    /// Where to go on: the `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl ReadResourceDirectoryRequestParams {
    /// Asks for what is in this folder.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), cursor: None, meta: None }
    }
}

params!(ReadResourceDirectoryRequestParams, "resources/directory/read", ReadResourceDirectoryResult);

impl Paginated for ReadResourceDirectoryRequestParams {
    fn set_cursor(&mut self, cursor: Option<String>) {
        self.cursor = cursor;
    }
}

/// A page of `resources/directory/read`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceDirectoryResult {
    /// The files and folders; a folder has the type `inode/directory`.
    pub resources: ModelList<Resource>,
    /// Where the list goes on.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

impl Page for ReadResourceDirectoryResult {
    fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }
}

impl ListedItem for ReadResourceDirectoryResult {
    type Item = Resource;

    fn kind() -> ListKind {
        ListKind::Resources
    }

    fn into_list(self) -> ModelList<Resource> {
        self.resources
    }
}

/// The skills that a server lists. It may serve others: an empty list proves nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkillList {
    /// The skills whose entries keep the rules, in the server's order. Names may occur twice: tell such skills apart by their
    /// addresses, never prefer one silently.
    pub skills: Vec<Skill>,
    /// The entries that do not, and why.
    pub rejected: Vec<RejectedSkill>,
    /// Whether all pages were read. `false` where a limit or a repeated cursor ended the list before its end.
    pub complete: bool,
}

/// An entry that does not count.
#[derive(Clone)]
#[non_exhaustive]
pub struct RejectedSkill {
    /// Its position among all entries, from 0.
    pub index: usize,
    /// Why.
    pub error: std::sync::Arc<SkillError>,
}

impl fmt::Debug for RejectedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedSkill")
            .field("index", &self.index)
            .field("error", &self.error.to_string())
            .finish()
    }
}

impl Skills {
    /// The entries of all pages. No file of a skill is read.
    ///
    /// An entry that breaks a rule is set aside in [`SkillList::rejected`]; it does not cost the others.
    ///
    /// # Errors
    ///
    /// [`Request`](super::SkillErrorKind::Request) where a page fails; the pages before it are given up.
    pub async fn list(&self) -> Result<SkillList, SkillError> {
        let limits = &self.limits;
        let list = List::new(&self.client, ListSkillsRequestParams::default());
        let mut pages = list.max_pages(limits.max_pages).max_bytes(limits.max_list_bytes).pages();
        let mut listed = SkillList { skills: Vec::new(), rejected: Vec::new(), complete: true };
        let mut index = 0;
        loop {
            let page = pages.next().await.map_err(Self::request_failed(""))?;
            let Some(page) = page else { return Ok(listed) };
            // The pages end after this one; whether the server has more is what its cursor says.
            listed.complete = page.next_cursor.is_none();
            for raw in &page.skills {
                if index >= limits.max_skills {
                    listed.complete = false;
                    return Ok(listed);
                }
                match Skill::from_json(raw.get(), limits) {
                    Ok(skill) => listed.skills.push(skill),
                    Err(error) => {
                        listed.rejected.push(RejectedSkill { index, error: std::sync::Arc::new(error) });
                    }
                }
                index += 1;
            }
        }
    }
}
