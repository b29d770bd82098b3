//! Every definition of every schema is either one of our types or on a list that says why not, and every method of
//! every schema stands in our table with the right sender.

use std::collections::{BTreeMap, BTreeSet};

use mcp_model::ProtocolVersion;
use mcp_model::methods::{self, Standing};
use serde_json::Value;

use crate::schema::Schema;

/// Types of this crate under the very name of the specification. That they exist is checked by the compiler below.
macro_rules! ours {
    ($( $name:ident )+) => {
        $( const _: fn(mcp_model::$name) = |_| (); )+
        const OURS: &[&str] = &[$( stringify!($name), )+];
    };
}

ours! {
    Annotations AudioContent BlobResourceContents CallToolRequestParams CallToolResult CancelTaskResult
    CancelledNotificationParams ClientCapabilities CompleteRequestParams CompleteResult ContentBlock
    CreateMessageRequestParams CreateMessageResult CreateTaskResult DiscoverResult EmbeddedResource EmptyResult
    GetPromptRequestParams GetPromptResult GetTaskPayloadResult GetTaskResult Icon ImageContent Implementation
    InitializeRequestParams InitializeResult InputRequest InputRequests InputRequiredResult InputResponses
    ListPromptsResult ListResourceTemplatesResult ListResourcesResult ListRootsResult ListTasksResult ListToolsResult
    LoggingLevel LoggingMessageNotificationParams MetaObject ModelHint ModelPreferences ProgressNotificationParams
    ProgressToken Prompt PromptArgument PromptMessage PromptReference ReadResourceRequestParams ReadResourceResult
    RelatedTaskMetadata RequestId Resource ResourceContents ResourceLink ResourceTemplate ResourceTemplateReference
    ResourceUpdatedNotificationParams ResultType Role Root SamplingMessage SamplingMessageContentBlock
    ServerCapabilities SetLevelRequestParams SubscribeRequestParams SubscriptionFilter
    SubscriptionsAcknowledgedNotificationParams SubscriptionsListenRequestParams SubscriptionsListenResult Task
    TaskMetadata TaskStatus TaskStatusNotificationParams TextContent TextResourceContents Tool ToolAnnotations
    ToolChoice ToolExecution ToolResultContent ToolUseContent UnsubscribeRequestParams
}

/// Definitions that are there under another name or in another form.
const ELSEWHERE: &[(&str, &str)] = &[
    ("Annotated", "`annotations` of each type"),
    ("BaseMetadata", "`name` and `title` of each type"),
    ("CacheableResult", "`ttl_ms` and `cache_scope` of each result"),
    ("Cursor", "`String`"),
    ("GetTaskPayloadRequest", "`GetTaskPayloadRequestParams`"),
    ("Icons", "`icons` of each type"),
    ("InputResponse", "raw JSON in `InputResponses`"),
    ("InputResponseRequestParams", "`input_responses` and `request_state` of each type"),
    ("JSONArray", "raw JSON"),
    ("JSONObject", "`Settings` or raw JSON"),
    ("JSONValue", "raw JSON"),
    ("MissingRequiredClientCapabilityError", "`MissingRequiredClientCapabilityData`"),
    ("NotificationMetaObject", "`MetaObject`, `subscription_id`"),
    ("NotificationParams", "one type per method"),
    ("PaginatedRequest", "`Paginated`"),
    ("PaginatedRequestParams", "one type per method"),
    ("PaginatedResult", "`next_cursor` of each result, `Page`"),
    ("RequestMetaObject", "`MetaObject::for_request`"),
    ("RequestParams", "one type per method"),
    ("ResourceReference", "`ResourceTemplateReference`"),
    ("ResourceRequestParams", "`ReadResourceRequestParams` and its like"),
    ("Result", "`result_type` and `meta` of each result"),
    ("ResultMetaObject", "`MetaObject`"),
    ("SubscriptionsListenResultMetaObject", "`MetaObject`, `subscription_id`"),
    ("TaskAugmentedRequestParams", "`task` of each type"),
    ("UnsupportedProtocolVersionError", "`UnsupportedProtocolVersionData`"),
];

/// Definitions that belong to JSON-RPC, or only group others.
const ENVELOPES: &[&str] = &[
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "Error",
    "HeaderMismatchError",
    "InternalError",
    "InvalidParamsError",
    "InvalidRequestError",
    "MethodNotFoundError",
    "Notification",
    "ParseError",
    "Request",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
];

/// Definitions of elicitation, which has a crate of its own.
fn is_elicitation(name: &str) -> bool {
    name.starts_with("Elicit")
        || name == "URLElicitationRequiredError"
        || name == "PrimitiveSchemaDefinition"
        || name.ends_with("Schema")
}

#[test]
fn every_definition_is_ours_or_accounted_for() {
    let mut used = BTreeSet::new();
    for version in ProtocolVersion::ALL {
        let schema = Schema::of(version);
        for name in schema.names() {
            let listed = OURS.contains(&name)
                || ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == name)
                || ENVELOPES.contains(&name);
            let accounted = listed
                || is_elicitation(name)
                || name.starts_with("JSONRPC")
                || name.ends_with("ResultResponse")
                || method_of(schema.definition(name)).is_some();
            assert!(accounted, "{version}: {name}");
            if listed {
                used.insert(name.to_owned());
            }
        }
    }
    for name in OURS.iter().chain(ENVELOPES).chain(ELSEWHERE.iter().map(|(name, _)| name)) {
        assert!(used.contains(*name), "{name} is in no schema");
    }
}

/// The method of a request or notification.
fn method_of(definition: &Value) -> Option<&str> {
    definition.get("properties")?.get("method")?.get("const")?.as_str()
}

/// The methods of a union such as `ClientRequest`.
fn methods_of(schema: &Schema, union: &str) -> BTreeSet<String> {
    let Some(definition) = schema.names().find(|name| *name == union).map(|name| schema.definition(name))
    else {
        return BTreeSet::new();
    };
    let branches = definition.get("anyOf").and_then(Value::as_array).cloned();
    let branches = branches.unwrap_or_else(|| vec![definition.clone()]);
    let mut methods = BTreeSet::new();
    for branch in &branches {
        let target = branch.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let method = target.map_or_else(|| method_of(branch), |name| method_of(schema.definition(name)));
        methods.insert(method.unwrap_or_else(|| panic!("{union} has a branch without method")).to_owned());
    }
    methods
}

/// protocol:8: the table of methods, against the unions of each schema.
#[test]
fn every_method_stands_as_the_schema_says() {
    for version in ProtocolVersion::ALL {
        let schema = Schema::of(version);
        let mut client = methods_of(&schema, "ClientRequest");
        client.extend(methods_of(&schema, "ClientNotification"));
        let mut server = methods_of(&schema, "ServerRequest");
        server.extend(methods_of(&schema, "ServerNotification"));
        let embedded = methods_of(&schema, "InputRequest");
        let mut expected = BTreeMap::new();
        for method in methods::ALL {
            let standing = match (client.remove(*method), server.remove(*method), embedded.contains(*method))
            {
                (true, true, _) => Standing::BothWays,
                (true, false, _) => Standing::ClientToServer,
                (false, true, _) => Standing::ServerToClient,
                (false, false, true) => Standing::Embedded,
                (false, false, false) => match methods::standing(method, version) {
                    // The extension's methods are in no schema of the core.
                    extension @ Standing::Extension(_) => extension,
                    _ => Standing::Absent,
                },
            };
            expected.insert(*method, standing);
        }
        assert!(client.is_empty() && server.is_empty(), "{version}: not in the table: {client:?} {server:?}");
        for (method, expected) in expected {
            assert_eq!(methods::standing(method, version), expected, "{method} under {version}");
        }
    }
}
