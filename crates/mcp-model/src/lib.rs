#![doc = include_str!("../README.md")]
//!
//! # Reading, case by case
//!
//! | input | result |
//! |---|---|
//! | an unknown member | ignored; kept in capabilities (`other`), whose set is open |
//! | an unknown value of an enumeration | kept in its `Other` |
//! | content of an unknown type, or a malformed block | kept in order as [`ContentBlock::Unknown`] |
//! | a malformed item of a list | set aside in [`List::rejected`] with position, reason and raw JSON |
//! | a hint of the wrong shape (annotations, icons, `size`, `ttlMs`, `cacheScope`, ...) | counts as absent |
//! | a negative, fractional or huge count | 0, cut, saturated |
//! | `null` for an optional member, or for a list | absent; empty |
//! | `null` for `structuredContent` | a value: `Some` |
//! | a required member that is missing, or of the wrong shape | an error |
//!
//! Pass a result of 2026-07-28 to [`inspect_result_type`] before reading it as a type.
//!
//! Everything that comes from a server is untrusted: names, descriptions, annotations, icons, instructions, log messages, content,
//! and what the server says about itself.
//!
//! # Writing, case by case
//!
//! Optional members that are absent are left out. Where a revision lacks a member, `for_version` leaves it out.
//!
//! # Metadata
//!
//! `_meta` is raw JSON in every type. [`MetaObject`] parses or builds it; [`meta`] has the keys and their grammar.

#![forbid(unsafe_code)]

mod cache;
mod client_capabilities;
mod completion;
mod confidential;
mod content;
mod discover;
mod error_data;
mod icon;
mod identifier;
mod implementation;
mod initialize;
mod input;
mod json;
mod lenient;
mod list;
mod logging;
pub mod meta;
pub mod methods;
mod number;
mod open_enum;
mod progress;
mod prompt;
mod request;
mod resource;
mod result;
mod roots;
mod sampling;
mod server_capabilities;
mod settings;
mod subscription;
mod task;
mod text;
mod tool;
mod trace;
mod version;

pub use self::cache::CacheScope;
pub use self::client_capabilities::{
    ClientCapabilities, ClientFeature, ClientTaskRequests, ClientTasksCapability, ElicitationCapability,
    RootsCapability, SamplingCapability, TaskElicitation, TaskSampling,
};
pub use self::completion::{
    CompleteRequestParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference, PromptReference, ResourceTemplateReference,
};
pub use self::content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, MAX_CONTENT_BLOCKS,
    ResourceLink, Role, SamplingMessageContentBlock, TextContent, ToolResultContent, ToolUseContent,
    UnknownContent,
};
pub use self::discover::{DiscoverRequestParams, DiscoverResult};
pub use self::error_data::{
    MissingRequiredClientCapabilityData, ResourceNotFoundData, UnsupportedProtocolVersionData,
};
pub use self::icon::{Icon, IconTheme};
pub use self::identifier::{ProgressToken, RequestId};
pub use self::implementation::Implementation;
pub use self::initialize::{
    InitializeRequestParams, InitializeResult, InitializedNotificationParams, PingRequestParams,
};
pub use self::input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use self::json::{FromJson, ToJson};
pub use self::list::{List, MAX_LIST_ITEMS, RejectedItem};
pub use self::logging::{LoggingLevel, LoggingMessageNotificationParams, SetLevelRequestParams};
pub use self::meta::MetaObject;
pub use self::progress::{CancelledNotificationParams, ProgressNotificationParams};
pub use self::prompt::{
    GetPromptRequestParams, GetPromptResult, ListPromptsRequestParams, ListPromptsResult, Prompt,
    PromptArgument, PromptListChangedNotificationParams, PromptMessage,
};
pub use self::request::{Notification, Page, Paginated, Request, WithMeta};
pub use self::resource::{
    BlobResourceContents, ListResourceTemplatesRequestParams, ListResourceTemplatesResult,
    ListResourcesRequestParams, ListResourcesResult, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceContents, ResourceListChangedNotificationParams, ResourceTemplate,
    ResourceUpdatedNotificationParams, SubscribeRequestParams, TextResourceContents, UnknownResourceContents,
    UnsubscribeRequestParams,
};
pub use self::result::{EmptyResult, ResultType, inspect_result_type};
pub use self::roots::{ListRootsRequestParams, ListRootsResult, Root, RootsListChangedNotificationParams};
pub use self::sampling::{
    CreateMessageRequestParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingContent, SamplingMessage, StopReason, ToolChoice, ToolChoiceMode, ToolMessageFault,
};
pub use self::server_capabilities::{
    ListChangedCapability, ResourcesCapability, ServerCapabilities, ServerFeature, ServerTaskRequests,
    ServerTasksCapability, TaskTools,
};
pub use self::settings::Settings;
pub use self::subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
    SubscriptionsListenResult, subscription_id,
};
pub use self::task::{
    CancelTaskRequestParams, CancelTaskResult, CreateTaskResult, GetTaskPayloadRequestParams,
    GetTaskPayloadResult, GetTaskRequestParams, GetTaskResult, ListTasksRequestParams, ListTasksResult,
    RelatedTaskMetadata, Task, TaskMetadata, TaskNotificationParams, TaskStatus,
    TaskStatusNotificationParams, UpdateTaskRequestParams,
};
pub use self::tool::{
    CallToolRequestParams, CallToolResult, ListToolsRequestParams, ListToolsResult, TaskSupport, Tool,
    ToolAnnotations, ToolExecution, ToolHints, ToolListChangedNotificationParams,
};
pub use self::trace::{InvalidTraceContext, TraceContext};
pub use self::version::{NotInVersion, ProtocolVersion, UnknownVersion};
