//! Resources that a server offers, and their contents.

mod contents;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::contents::{
    BlobResourceContents, ResourceContents, TextResourceContents, UnknownResourceContents,
};
use crate::list::Capped;
use crate::request::{bare_params, notifications, paginated_params, paginated_results, requests};
use crate::{
    Annotations, CacheScope, EmptyResult, Icon, InputResponses, List, MAX_LIST_ITEMS, ProtocolVersion,
    ResultType, lenient, methods,
};

/// A resource that the server offers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI of the resource.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { Resource { uri, name, title, description, mime_type, size, icons, annotations } sized { meta } }

impl Resource {
    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A template for resources that the server offers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// Its name, for programs.
    pub name: String,
    /// A display name (2025-06-18 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type of all its resources, if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Icons (2025-11-25 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub icons: Option<List<Icon>>,
    /// Annotations. Untrusted.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ResourceTemplate { uri_template, name, title, description, mime_type, icons, annotations } sized { meta } }

impl ResourceTemplate {
    /// The name to display: the title if there is one, else the name.
    #[must_use]
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

paginated_params! {
    /// Parameters of `resources/list`.
    ListResourcesRequestParams;
    /// Parameters of `resources/templates/list`.
    ListResourceTemplatesRequestParams;
}

paginated_results! {
    /// Result of `resources/list`: one page.
    ListResourcesResult {
        /// The resources of this page; malformed ones are in its [`List::rejected`].
        resources: Resource
    }
    /// Result of `resources/templates/list`: one page.
    ListResourceTemplatesResult {
        /// The templates of this page; malformed ones are in its [`List::rejected`].
        resource_templates: ResourceTemplate
    }
}

/// Parameters of `resources/read`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceRequestParams {
    /// The URI of the resource.
    pub uri: String,
    /// The input responses, in a retry after `input_required` (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the `input_required` result, unchanged (2026-07-28 and later).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl ReadResourceRequestParams {
    /// Requests the resource with this URI.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), input_responses: None, request_state: None, meta: None }
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(self, version: ProtocolVersion) -> Self {
        Self {
            uri: self.uri,
            input_responses: self.input_responses.filter(|_| version.is_modern()),
            request_state: self.request_state.filter(|_| version.is_modern()),
            meta: self.meta,
        }
    }
}

impl fmt::Debug for ReadResourceRequestParams {
    /// Shows neither the input responses, which may be personal, nor the state.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadResourceRequestParams")
            .field("uri", &self.uri)
            .field("input_responses", &self.input_responses.as_ref().map(BTreeMap::len))
            .field("request_state_bytes", &self.request_state.as_ref().map(String::len))
            .finish_non_exhaustive()
    }
}

/// Result of `resources/read`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents; several if the URI stands for several resources. Malformed ones are
    /// [`ResourceContents::Unknown`].
    #[serde(deserialize_with = "capped")]
    pub contents: Vec<ResourceContents>,
    /// How long the contents are fresh, in milliseconds (2026-07-28 and later); negative counts as 0.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may get a cached copy of it (2026-07-28 and later).
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The `resultType`: how to read the result (2026-07-28 and later).
    #[serde(default, deserialize_with = "lenient::result_type", skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ReadResourceResult { contents, ttl_ms, cache_scope, result_type } sized { meta } }

/// Reads contents in one pass: they can be large, and none is refused. The limit is that of lists.
fn capped<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ResourceContents>, D::Error> {
    deserializer.deserialize_any(Capped::new(MAX_LIST_ITEMS, "resource contents"))
}

/// Defines parameters that hold an address.
macro_rules! uri_params {
    ($( $(#[$attribute:meta])* $name:ident; )+) => { $(
        $(#[$attribute])*
        #[derive(Clone, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            /// The URI of the resource.
            pub uri: String,
            /// Additional metadata, as raw JSON.
            #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
            pub meta: Option<Box<RawValue>>,
        }

        $crate::confidential::debug! { $name { uri } sized { meta } }

        impl $name {
            /// For the resource with this URI.
            #[must_use]
            pub fn new(uri: impl Into<String>) -> Self {
                Self { uri: uri.into(), meta: None }
            }
        }
    )+ };
}

uri_params! {
    /// Parameters of `resources/subscribe` (legacy revisions).
    SubscribeRequestParams;
    /// Parameters of `resources/unsubscribe` (legacy revisions).
    UnsubscribeRequestParams;
    /// Parameters of `notifications/resources/updated`. The URI may be that of a sub-resource of a subscribed one.
    ResourceUpdatedNotificationParams;
}

bare_params! {
    /// Parameters of `notifications/resources/list_changed`.
    ResourceListChangedNotificationParams;
}

requests! {
    ListResourcesRequestParams => methods::RESOURCES_LIST, ListResourcesResult;
    ListResourceTemplatesRequestParams => methods::RESOURCES_TEMPLATES_LIST, ListResourceTemplatesResult;
    ReadResourceRequestParams => methods::RESOURCES_READ, ReadResourceResult;
    SubscribeRequestParams => methods::RESOURCES_SUBSCRIBE, EmptyResult;
    UnsubscribeRequestParams => methods::RESOURCES_UNSUBSCRIBE, EmptyResult;
}

notifications! {
    ResourceUpdatedNotificationParams => methods::NOTIFICATIONS_RESOURCES_UPDATED;
    ResourceListChangedNotificationParams => methods::NOTIFICATIONS_RESOURCES_LIST_CHANGED;
}
