//! Every official example of 2026-07-28 whose type is ours reads as that type and comes back the same.

use std::collections::BTreeMap;

use mcp_model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema::{Schema, vectors};

/// How to read a value of a definition and write it again; `Err` says what was lost or refused.
pub(crate) type RoundTrip = fn(&Value) -> Result<Value, String>;

fn plain<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    // By way of text, as from a peer: raw JSON cannot be lent out of a `Value`.
    let typed: T = serde_json::from_str(&value.to_string()).map_err(|error| error.to_string())?;
    serde_json::to_value(&typed).map_err(|error| error.to_string())
}

/// A request or notification: the envelope is not ours, the parameters are.
fn params<T: DeserializeOwned + Serialize>(method: &'static str, value: &Value) -> Result<Value, String> {
    if value["method"] != method {
        return Err(format!("method {} instead of {method}", value["method"]));
    }
    let mut value = value.clone();
    if let Some(params) = value.get_mut("params") {
        *params = plain::<T>(params)?;
    }
    Ok(value)
}

fn request<T: Request + DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    params::<T>(T::METHOD, value)
}

fn notification<T: Notification + DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    params::<T>(T::METHOD, value)
}

/// A response: the envelope is not ours, the result is.
fn response<T: Request>(value: &Value) -> Result<Value, String>
where
    T::Result: Serialize,
{
    let mut value = value.clone();
    let result = value.get_mut("result").ok_or("no result")?;
    *result = plain::<T::Result>(result)?;
    Ok(value)
}

/// An error: the envelope and the error object are not ours, its data is.
fn error_data<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let mut value = value.clone();
    let data = value.pointer_mut("/error/data").ok_or("no data")?;
    *data = plain::<T>(data)?;
    Ok(value)
}

macro_rules! table {
    ($( $name:literal => $round_trip:expr, )+) => {
        BTreeMap::from([$( ($name, $round_trip as RoundTrip), )+])
    };
}

pub(crate) fn ours() -> BTreeMap<&'static str, RoundTrip> {
    table! {
        "AudioContent" => plain::<AudioContent>,
        "BlobResourceContents" => plain::<BlobResourceContents>,
        "CallToolRequest" => request::<CallToolRequestParams>,
        "CallToolRequestParams" => plain::<CallToolRequestParams>,
        "CallToolResult" => plain::<CallToolResult>,
        "CallToolResultResponse" => response::<CallToolRequestParams>,
        "CancelledNotification" => notification::<CancelledNotificationParams>,
        "CancelledNotificationParams" => plain::<CancelledNotificationParams>,
        "ClientCapabilities" => plain::<ClientCapabilities>,
        "CompleteRequest" => request::<CompleteRequestParams>,
        "CompleteRequestParams" => plain::<CompleteRequestParams>,
        "CompleteResult" => plain::<CompleteResult>,
        "CompleteResultResponse" => response::<CompleteRequestParams>,
        "CreateMessageRequest" => request::<CreateMessageRequestParams>,
        "CreateMessageRequestParams" => plain::<CreateMessageRequestParams>,
        "CreateMessageResult" => plain::<CreateMessageResult>,
        "DiscoverRequest" => request::<DiscoverRequestParams>,
        "DiscoverResult" => plain::<DiscoverResult>,
        "DiscoverResultResponse" => response::<DiscoverRequestParams>,
        "EmbeddedResource" => plain::<EmbeddedResource>,
        "GetPromptRequest" => request::<GetPromptRequestParams>,
        "GetPromptRequestParams" => plain::<GetPromptRequestParams>,
        "GetPromptResult" => plain::<GetPromptResult>,
        "GetPromptResultResponse" => response::<GetPromptRequestParams>,
        "ImageContent" => plain::<ImageContent>,
        "InputRequests" => plain::<InputRequests>,
        "InputRequiredResult" => plain::<InputRequiredResult>,
        "InputResponses" => plain::<InputResponses>,
        "ListPromptsRequest" => request::<ListPromptsRequestParams>,
        "ListPromptsResult" => plain::<ListPromptsResult>,
        "ListPromptsResultResponse" => response::<ListPromptsRequestParams>,
        "ListResourceTemplatesRequest" => request::<ListResourceTemplatesRequestParams>,
        "ListResourceTemplatesResult" => plain::<ListResourceTemplatesResult>,
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplatesRequestParams>,
        "ListResourcesRequest" => request::<ListResourcesRequestParams>,
        "ListResourcesResult" => plain::<ListResourcesResult>,
        "ListResourcesResultResponse" => response::<ListResourcesRequestParams>,
        "ListRootsRequest" => request::<ListRootsRequestParams>,
        "ListRootsResult" => plain::<ListRootsResult>,
        "ListToolsRequest" => request::<ListToolsRequestParams>,
        "ListToolsResult" => plain::<ListToolsResult>,
        "ListToolsResultResponse" => response::<ListToolsRequestParams>,
        "LoggingMessageNotification" => notification::<LoggingMessageNotificationParams>,
        "LoggingMessageNotificationParams" => plain::<LoggingMessageNotificationParams>,
        "MissingRequiredClientCapabilityError" => error_data::<MissingRequiredClientCapabilityData>,
        "ModelPreferences" => plain::<ModelPreferences>,
        "PaginatedRequestParams" => plain::<ListToolsRequestParams>,
        "ProgressNotification" => notification::<ProgressNotificationParams>,
        "ProgressNotificationParams" => plain::<ProgressNotificationParams>,
        "PromptListChangedNotification" => notification::<PromptListChangedNotificationParams>,
        "ReadResourceRequest" => request::<ReadResourceRequestParams>,
        "ReadResourceResult" => plain::<ReadResourceResult>,
        "ReadResourceResultResponse" => response::<ReadResourceRequestParams>,
        "Resource" => plain::<Resource>,
        "ResourceLink" => plain::<ResourceLink>,
        "ResourceListChangedNotification" => notification::<ResourceListChangedNotificationParams>,
        "ResourceUpdatedNotification" => notification::<ResourceUpdatedNotificationParams>,
        "ResourceUpdatedNotificationParams" => plain::<ResourceUpdatedNotificationParams>,
        "Root" => plain::<Root>,
        "SamplingMessage" => plain::<SamplingMessage>,
        "ServerCapabilities" => plain::<ServerCapabilities>,
        "SubscriptionsAcknowledgedNotification" => notification::<SubscriptionsAcknowledgedNotificationParams>,
        "SubscriptionsListenRequest" => request::<SubscriptionsListenRequestParams>,
        "SubscriptionsListenResult" => plain::<SubscriptionsListenResult>,
        "SubscriptionsListenResultResponse" => response::<SubscriptionsListenRequestParams>,
        "TextContent" => plain::<TextContent>,
        "TextResourceContents" => plain::<TextResourceContents>,
        "Tool" => plain::<Tool>,
        "ToolListChangedNotification" => notification::<ToolListChangedNotificationParams>,
        "ToolResultContent" => plain::<ToolResultContent>,
        "ToolUseContent" => plain::<ToolUseContent>,
        "UnsupportedProtocolVersionError" => error_data::<UnsupportedProtocolVersionData>,
    }
}

/// Examples of the elicitation types and of plain JSON-RPC errors, which other crates own.
const NOT_OURS: &[&str] = &[
    "BooleanSchema",
    "ElicitRequest",
    "ElicitRequestFormParams",
    "ElicitRequestURLParams",
    "ElicitResult",
    "HeaderMismatchError",
    "InternalError",
    "InvalidParamsError",
    "MethodNotFoundError",
    "NumberSchema",
    "ParseError",
    "StringSchema",
    "TitledMultiSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
];

pub(crate) fn examples() -> Vec<(String, String, Value)> {
    let mut examples = Vec::new();
    let folder = vectors(ProtocolVersion::V2026_07_28).join("examples");
    for definition in std::fs::read_dir(folder).unwrap() {
        let definition = definition.unwrap();
        for example in std::fs::read_dir(definition.path()).unwrap() {
            let path = example.unwrap().path();
            let value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            examples.push((definition.file_name().to_string_lossy().into_owned(), file, value));
        }
    }
    examples.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
    examples
}

#[test]
fn every_example_reads_as_its_type_and_comes_back_the_same() {
    let ours = ours();
    let mut seen = 0;
    for (definition, file, value) in examples() {
        if NOT_OURS.contains(&definition.as_str()) {
            continue;
        }
        let round_trip =
            ours.get(definition.as_str()).unwrap_or_else(|| panic!("{definition} is in no table"));
        let back = round_trip(&value).unwrap_or_else(|reason| panic!("{definition}/{file}: {reason}"));
        assert_eq!(back, value, "{definition}/{file}");
        seen += 1;
    }
    assert!(seen > 100, "only {seen} examples were found");
}

/// The two tables name every definition that has examples, and nothing else.
#[test]
fn the_tables_match_the_folders() {
    let folders: std::collections::BTreeSet<_> =
        examples().into_iter().map(|(definition, ..)| definition).collect();
    let listed = ours().into_keys().chain(NOT_OURS.iter().copied()).map(str::to_owned).collect();
    assert_eq!(folders, listed);
}

/// The checker agrees with the official examples, so what it says about our own messages means something.
#[test]
fn the_checker_accepts_every_official_example() {
    let schema = Schema::of(ProtocolVersion::V2026_07_28);
    let mut flawed = FLAWED.to_vec();
    for (definition, file, value) in examples() {
        let flaw = flawed.iter().position(|(name, _)| *name == file).map(|place| flawed.swap_remove(place).1);
        match (schema.check(&definition, &value), flaw) {
            (Ok(()), None) => {}
            (Err(reason), Some(flaw)) if reason.contains(flaw) => {}
            (verdict, flaw) => panic!("{definition}/{file}: {verdict:?}, expected flaw: {flaw:?}"),
        }
    }
}

/// Official examples that break the official schema.
const FLAWED: &[(&str, &str)] = &[
    // An embedded request has no id.
    ("list-roots-request.json", "`id` is not defined"),
    ("read-resource-result-response.json", "`cacheScope` is missing"),
];
