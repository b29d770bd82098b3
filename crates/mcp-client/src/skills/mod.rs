//! Skills that a server serves: folders of instructions for a model, listed, loaded and verified.
//!
//! The extension `io.modelcontextprotocol/skills` (SEP-2640). It is off until [`ClientBuilder::skills`] declares it, and nothing
//! is asked of a server that does not declare it too.
//!
//! ```text
//!   Skills ──list, get──> Skill ──load──> LoadedSkill ──read──> SkillContent
//!                         the entry        SKILL.md,             another file,
//!                         nothing is read  verified              verified
//! ```
//!
//! Each step needs the one before it, so that no file is fetched ahead of need and none is reached from one that was not
//! verified. What is verified: the size and the digest of each file against its entry, the frontmatter of `SKILL.md` field by
//! field, and that a file is one of those the entry lists.
//!
//! # What stays with the host
//!
//! A digest that fits shows that entry and file belong together. It is not a ground for trust: both come from the same server. Skill
//! content is untrusted input to a model, and the rules of the extension bind the host that loads it: tell the model and the
//! user from which server it comes, by a label of the host's own; ask before a skill is loaded, and bind an approval that is kept
//! to [`Skill::content_digest`]; grant nothing that a frontmatter asks for; run nothing that a skill says without approval; key
//! everything by server *and* URI. This module holds its own part of that: a [`Skills`] reads from its own server alone.
//!
//! ```no_run
//! use mcp_client::{Client, HttpServer};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("my-app", "1.0").skills().connect(HttpServer::new("https://mcp.example.com/mcp")?).await?;
//! let skills = client.skills()?;
//! for skill in &skills.list().await?.skills {
//!     println!("{} from this server: {}", skill.name(), skill.description());
//! }
//! let skill = skills.get("skill://pdf-processing/SKILL.md").await?;
//! // Here the host asks its user, and keeps `skill.content_digest()` with a yes.
//! let loaded = skills.load(&skill).await?;
//! let forms = loaded.read("references/FORMS.md").await?;
//! println!("{}\n{}", loaded.body(), forms.text()?);
//! # Ok(()) }
//! ```
//!
//! [`ClientBuilder::skills`]: crate::ClientBuilder::skills

mod digest;
mod entry;
mod error;
mod frontmatter;
mod limits;
mod listing;
mod loaded;
mod path;

use mcp_model::{Resource, Settings};
use serde::Deserialize;

pub use digest::{InvalidDigest, SkillDigest};
pub use entry::{Skill, SkillFile};
pub use error::{SkillError, SkillErrorKind};
pub use limits::SkillLimits;
pub use listing::{
    GetSkillRequestParams, GetSkillResult, ListSkillsRequestParams, ListSkillsResult,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, RejectedSkill, SkillList,
};
pub use loaded::{LoadedSkill, SkillContent};

use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::error::Error;

/// The identifier of the extension.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

impl ClientBuilder {
    /// Declares the skills extension. Default: not declared, and [`Client::skills`] is refused.
    pub fn skills(self) -> Self {
        self.extension_settings(SKILLS_EXTENSION, Settings::empty())
    }
}

impl Client {
    /// The skills of this server. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`NotDeclared`](SkillErrorKind::NotDeclared) without [`ClientBuilder::skills`],
    /// [`NotOffered`](SkillErrorKind::NotOffered) where the server did not declare the extension.
    pub fn skills(&self) -> Result<Skills, SkillError> {
        if !self.driver().declares_extension(SKILLS_EXTENSION) {
            let what = "this client did not declare the skills extension";
            return Err(SkillError::new(SkillErrorKind::NotDeclared, "", what));
        }
        let Some(settings) = self.server().capabilities.extensions.get(SKILLS_EXTENSION) else {
            let what = "the server does not declare the skills extension";
            return Err(SkillError::new(SkillErrorKind::NotOffered, "", what));
        };
        let directory_read = settings.parse::<ServerSettings>().is_ok_and(|settings| settings.directory_read);
        Ok(Skills { client: self.clone(), limits: SkillLimits::default(), directory_read })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerSettings {
    #[serde(default)]
    directory_read: bool,
}

/// The skills of one server. Cheap to clone; it keeps the connection.
///
/// Dropping the future of a method, here or of a [`LoadedSkill`], cancels the request that is under way.
#[derive(Clone, Debug)]
pub struct Skills {
    client: Client,
    limits: SkillLimits,
    directory_read: bool,
}

impl Skills {
    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: SkillLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether the server lists directories ([`read_directory`](Self::read_directory)).
    pub fn can_read_directories(&self) -> bool {
        self.directory_read
    }

    /// The entry of the skill whose `SKILL.md` is at this address, whether the server lists it or not. Reads no file.
    ///
    /// # Errors
    ///
    /// [`Request`](SkillErrorKind::Request) where the server serves no such skill, and the errors of
    /// [`Skill::from_json`]. [`InvalidEntry`](SkillErrorKind::InvalidEntry) also where it is the entry of another skill.
    pub async fn get(&self, uri: &str) -> Result<Skill, SkillError> {
        // Nothing is asked about an address that can be no skill's.
        path::Root::of(uri, &self.limits)?;
        let params = GetSkillRequestParams::new(uri);
        let answer = self.client.request(params).await.map_err(|error| SkillError::request(uri, error))?;
        let skill = Skill::from_json(answer.skill.get(), &self.limits)?;
        if skill.uri() != uri {
            let what = "the server answered with the entry of another skill";
            return Err(SkillError::new(SkillErrorKind::InvalidEntry, uri, what));
        }
        Ok(skill)
    }

    /// Fetches the `SKILL.md` of a skill and verifies it. Nothing else is fetched.
    ///
    /// # Errors
    ///
    /// A [verification failure](SkillError::is_verification_failure), [`Dynamic`](SkillErrorKind::Dynamic),
    /// [`LimitExceeded`](SkillErrorKind::LimitExceeded), [`UnexpectedContents`](SkillErrorKind::UnexpectedContents),
    /// [`Request`](SkillErrorKind::Request).
    pub async fn load(&self, skill: &Skill) -> Result<LoadedSkill, SkillError> {
        LoadedSkill::load(self.clone(), skill.clone()).await
    }

    /// The files and folders directly within a folder, as the server says now. For a skill with a list of files this is no
    /// more than a hint: what is not in its entry cannot be read, until [`get`](Self::get) has fetched the entry anew.
    ///
    /// # Errors
    ///
    /// [`NotOffered`](SkillErrorKind::NotOffered) where the server did not declare `directoryRead`; nothing was sent then.
    /// [`Request`](SkillErrorKind::Request), for a URI that is not a folder too.
    pub async fn read_directory(&self, uri: &str) -> Result<Vec<Resource>, SkillError> {
        if !self.directory_read {
            let what = "the server does not list directories";
            return Err(SkillError::new(SkillErrorKind::NotOffered, uri, what));
        }
        let params = ReadResourceDirectoryRequestParams::new(uri);
        let listed = crate::requests::List::new(&self.client, params)
            .max_pages(self.limits.max_pages)
            .max_bytes(self.limits.max_list_bytes)
            .all();
        listed.await.map_err(|error| SkillError::request(uri, error))
    }

    fn request_failed(uri: &str) -> impl Fn(Error) -> SkillError + '_ {
        move |error| SkillError::request(uri, error)
    }
}
