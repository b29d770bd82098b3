//! The capabilities that a client declares.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::TASKS_EXTENSION;
use crate::settings::capabilities;
use crate::{ProtocolVersion, Settings};

/// The client's capabilities, of every revision.
///
/// Under a legacy revision they are declared once, in `initialize`; from 2026-07-28 on they are in the `_meta` of each request. Set
/// what the application supports; [`ClientCapabilities::for_version`] leaves out what a revision lacks. Reading them (from an error
/// that names what is missing) is as lenient as for [`ServerCapabilities`](crate::ServerCapabilities).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Non-standard capabilities by name.
    pub experimental: BTreeMap<String, Settings>,
    /// The client can list roots.
    pub roots: Option<RootsCapability>,
    /// The client supports sampling.
    pub sampling: Option<SamplingCapability>,
    /// The client supports elicitation (2025-06-18 and later).
    pub elicitation: Option<ElicitationCapability>,
    /// The client can run requests from the server as tasks (2025-11-25 only).
    pub tasks: Option<ClientTasksCapability>,
    /// Extensions by identifier (2026-07-28; an open member before); the identifiers need a prefix, see
    /// [`meta::is_extension_id`](crate::meta::is_extension_id).
    pub extensions: BTreeMap<String, Settings>,
    /// All other members, as raw JSON, because the set is open. Sent under every revision.
    pub other: BTreeMap<String, Box<RawValue>>,
}

impl ClientCapabilities {
    /// Nothing declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only what the revision defines, in the revision's shape.
    ///
    /// A capability that loses its last mode is not declared at all: an elicitation capability for URLs only is left out under
    /// 2025-06-18, where it would mean forms.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        let detailed = version >= ProtocolVersion::V2025_11_25;
        Self {
            experimental: self.experimental,
            roots: self.roots.map(|roots| RootsCapability {
                list_changed: roots.list_changed.filter(|_| version.is_legacy()),
            }),
            sampling: self
                .sampling
                .map(|sampling| if detailed { sampling } else { SamplingCapability::default() }),
            elicitation: match self.elicitation {
                Some(modes) if detailed => Some(modes),
                Some(modes) if version >= ProtocolVersion::V2025_06_18 && modes.serves_form() => {
                    Some(ElicitationCapability::default())
                }
                _ => None,
            },
            tasks: self.tasks.filter(|_| version == ProtocolVersion::V2025_11_25),
            // The legacy revisions name no extensions, but their set of capabilities is open, and extensions that servers
            // of that era know (apps, skills) are declared in `initialize` (SEP-2133). Tasks are not: 2025-11-25 has its own.
            extensions: {
                let mut extensions = self.extensions;
                if version.is_legacy() {
                    extensions.remove(TASKS_EXTENSION);
                }
                extensions
            },
            other: self.other,
        }
    }

    /// Whether the feature is declared.
    #[must_use]
    pub fn declares(&self, feature: ClientFeature) -> bool {
        let requests = || self.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        match feature {
            ClientFeature::Elicitation => self.elicitation.is_some(),
            ClientFeature::ElicitationForm => {
                self.elicitation.as_ref().is_some_and(ElicitationCapability::serves_form)
            }
            ClientFeature::ElicitationUrl => {
                self.elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some())
            }
            ClientFeature::Roots => self.roots.is_some(),
            ClientFeature::RootsListChanged => {
                self.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true))
            }
            ClientFeature::Sampling => self.sampling.is_some(),
            ClientFeature::SamplingContext => {
                self.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some())
            }
            ClientFeature::SamplingTools => {
                self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
            }
            ClientFeature::TasksElicitation => requests()
                .and_then(|requests| requests.elicitation.as_ref())
                .is_some_and(|elicitation| elicitation.create.is_some()),
            ClientFeature::TasksSampling => requests()
                .and_then(|requests| requests.sampling.as_ref())
                .is_some_and(|sampling| sampling.create_message.is_some()),
        }
    }

    /// Whether the extension is declared.
    #[must_use]
    pub fn declares_extension(&self, id: &str) -> bool {
        self.extensions.contains_key(id)
    }
}

capabilities!(ClientCapabilities { roots, sampling, elicitation, tasks });

/// A feature that a client may declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientFeature {
    /// Elicitation in at least one mode.
    Elicitation,
    /// Elicitation by form; an empty elicitation object declares it.
    ElicitationForm,
    /// Elicitation by URL.
    ElicitationUrl,
    /// Listing roots.
    Roots,
    /// Notifications when the list of roots changes.
    RootsListChanged,
    /// Sampling.
    Sampling,
    /// Sampling with `includeContext`.
    SamplingContext,
    /// Sampling with tools.
    SamplingTools,
    /// Elicitation as a task (2025-11-25).
    TasksElicitation,
    /// Sampling as a task (2025-11-25).
    TasksSampling,
}

/// Settings of the roots capability.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RootsCapability {
    /// Legacy revisions: the client sends a notification when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl RootsCapability {
    /// Roots, with or without change notifications.
    #[must_use]
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed: list_changed.then_some(true) }
    }
}

/// Settings of the sampling capability; the members exist since 2025-11-25.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingCapability {
    /// The client supports `includeContext`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Settings>,
    /// The client supports `tools` and `toolChoice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Settings>,
}

impl SamplingCapability {
    /// Plain sampling: neither context inclusion nor tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds tool use.
    #[must_use]
    pub fn with_tools(mut self) -> Self {
        self.tools = Some(Settings::empty());
        self
    }

    /// Adds context inclusion.
    #[must_use]
    pub fn with_context(mut self) -> Self {
        self.context = Some(Settings::empty());
        self
    }
}

/// Settings of the elicitation capability; the members exist since 2025-11-25, and `{}` means forms only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// The client supports form mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Settings>,
    /// The client supports URL mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Settings>,
}

impl ElicitationCapability {
    /// Forms only, written as the empty object, which means forms in every revision with elicitation.
    #[must_use]
    pub fn form_only() -> Self {
        Self::default()
    }

    /// URLs only.
    #[must_use]
    pub fn url_only() -> Self {
        Self { form: None, url: Some(Settings::empty()) }
    }

    /// Forms and URLs.
    #[must_use]
    pub fn form_and_url() -> Self {
        Self { form: Some(Settings::empty()), url: Some(Settings::empty()) }
    }

    /// Whether form mode is supported: declared, or implied because no mode is declared.
    #[must_use]
    pub fn serves_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }
}

/// Settings of the client's tasks capability (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientTasksCapability {
    /// The client answers `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Settings>,
    /// The client answers `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Settings>,
    /// The requests that may be run as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ClientTaskRequests>,
}

/// The server requests that a client can run as tasks (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientTaskRequests {
    /// Sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<TaskSampling>,
    /// Elicitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<TaskElicitation>,
}

/// Which sampling requests can be tasks (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskSampling {
    /// `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_message: Option<Settings>,
}

/// Which elicitation requests can be tasks (2025-11-25).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskElicitation {
    /// `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Settings>,
}
