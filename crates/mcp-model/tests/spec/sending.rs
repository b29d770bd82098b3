//! Everything a client sends is what the schema of the revision allows, and nothing beyond it: each message is built
//! as full as the types can be, cut by `for_version`, and held against the revision's definition.

use std::collections::BTreeMap;

use mcp_model::methods::Standing;
use mcp_model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::schema::Schema;

fn raw(value: Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).unwrap()
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn capabilities() -> ClientCapabilities {
    read(json!({
        "experimental": { "com.example/x": { "a": 1 } },
        "roots": { "listChanged": true },
        "sampling": { "context": {}, "tools": {} },
        "elicitation": { "form": {}, "url": {} },
        "tasks": {
            "list": {}, "cancel": {},
            "requests": { "sampling": { "createMessage": {} }, "elicitation": { "create": {} } },
        },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    }))
}

fn client_info() -> Implementation {
    read(json!({
        "name": "n", "title": "t", "version": "1", "description": "d", "websiteUrl": "https://example.com/",
        "icons": [{ "src": "data:,", "mimeType": "image/png", "sizes": ["any"], "theme": "dark" }],
    }))
}

fn responses() -> Option<InputResponses> {
    let answer = CreateMessageResult::new("m", SamplingMessageContentBlock::text("x"));
    let roots = ListRootsResult::new(vec![Root::new("file:///a")]);
    Some(BTreeMap::from([
        ("k".to_owned(), serde_json::value::to_raw_value(&answer).unwrap()),
        ("l".to_owned(), serde_json::value::to_raw_value(&roots).unwrap()),
    ]))
}

struct Checker {
    version: ProtocolVersion,
    schema: Schema,
    checked: usize,
}

impl Checker {
    fn holds(&mut self, definition: &str, value: &Value) {
        if let Err(reason) = self.schema.check(definition, value) {
            panic!("{}: {definition}: {reason}\n{value:#}", self.version);
        }
        self.checked += 1;
    }

    /// Legacy definitions before 2025-11-25 leave the envelope out.
    fn envelope(&self, method: &str, params: Value, id: Option<i64>) -> Value {
        let mut message = json!({ "method": method, "params": params });
        if self.version >= ProtocolVersion::V2025_11_25 {
            message["jsonrpc"] = "2.0".into();
            if let Some(id) = id {
                message["id"] = id.into();
            }
        }
        message
    }

    fn request<P: Request + WithMeta + Serialize>(&mut self, definition: &str, mut params: P) {
        if !matches!(
            methods::standing(P::METHOD, self.version),
            Standing::ClientToServer | Standing::BothWays
        ) {
            assert!(
                !self.schema.names().any(|name| name == definition),
                "{definition} under {}",
                self.version
            );
            return;
        }
        let mut meta = match self.version.is_modern() {
            true => MetaObject::for_request(self.version, &capabilities(), Some(&client_info())).unwrap(),
            false => MetaObject::new(),
        };
        meta.insert(meta::PROGRESS_TOKEN, &ProgressToken::from("p")).unwrap();
        params.set_meta(Some(meta.to_raw().unwrap()));
        let mut params = serde_json::to_value(&params).unwrap();
        if self.version < ProtocolVersion::V2025_11_25 {
            // There `_meta` is a member of every request's `params`, said once at `Request` and not repeated.
            let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
            self.holds("Request", &json!({ "method": P::METHOD, "params": { "_meta": meta } }));
        }
        let message = self.envelope(P::METHOD, params, Some(1));
        self.holds(definition, &message);
        self.holds("ClientRequest", &message);
    }

    fn notification<P: Notification + Serialize>(&mut self, definition: &str, params: P) {
        if !matches!(
            methods::standing(P::METHOD, self.version),
            Standing::ClientToServer | Standing::BothWays
        ) {
            return;
        }
        let message = self.envelope(P::METHOD, serde_json::to_value(&params).unwrap(), None);
        self.holds(definition, &message);
        self.holds("ClientNotification", &message);
    }
}

fn check_all(version: ProtocolVersion) -> usize {
    let mut checker = Checker { version, schema: Schema::of(version), checked: 0 };
    checker.holds("ClientCapabilities", &serde_json::to_value(capabilities().for_version(version)).unwrap());
    checker.holds("Implementation", &serde_json::to_value(client_info().for_version(version)).unwrap());
    requests(&mut checker);
    notifications(&mut checker);
    results(&mut checker);
    checker.checked
}

fn requests(checker: &mut Checker) {
    let version = checker.version;
    checker
        .request("InitializeRequest", InitializeRequestParams::new(version, capabilities(), client_info()));
    checker.request("PingRequest", PingRequestParams::new());
    checker.request("DiscoverRequest", DiscoverRequestParams::new());
    checker.request("ListToolsRequest", ListToolsRequestParams::new());
    checker.request("ListToolsRequest", ListToolsRequestParams::after(""));
    checker.request("ListResourcesRequest", ListResourcesRequestParams::after("c"));
    checker.request("ListResourceTemplatesRequest", ListResourceTemplatesRequestParams::after("c"));
    checker.request("ListPromptsRequest", ListPromptsRequestParams::after("c"));
    checker.request("ListTasksRequest", ListTasksRequestParams::after("c"));
    let mut call = CallToolRequestParams::new("t").with_arguments(&json!({ "a": [null] })).unwrap();
    call.task = Some(TaskMetadata::kept_for_ms(5));
    call.input_responses = responses();
    call.request_state = Some("s".into());
    checker.request("CallToolRequest", call.for_version(version));
    let mut get = GetPromptRequestParams::new("p").with_argument("a", "v");
    get.input_responses = responses();
    get.request_state = Some("s".into());
    checker.request("GetPromptRequest", get.for_version(version));
    let mut resource = ReadResourceRequestParams::new("a:b");
    resource.input_responses = responses();
    resource.request_state = Some("s".into());
    checker.request("ReadResourceRequest", resource.for_version(version));
    checker.request("SubscribeRequest", SubscribeRequestParams::new("a:b"));
    checker.request("UnsubscribeRequest", UnsubscribeRequestParams::new("a:b"));
    checker.request("SetLevelRequest", SetLevelRequestParams::new(LoggingLevel::Notice));
    for reference in [
        CompletionReference::resource("a:{b}"),
        read(json!({ "type": "ref/prompt", "name": "p", "title": "P" })),
    ] {
        let complete = CompleteRequestParams::new(reference, "a", "v").with_resolved("b", "w");
        checker.request("CompleteRequest", complete.for_version(version));
    }
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    filter.prompts_list_changed = Some(true);
    filter.resources_list_changed = Some(true);
    filter.resource_subscriptions = Some(vec!["a:b".into()]);
    checker.request("SubscriptionsListenRequest", SubscriptionsListenRequestParams::new(filter));
    if version == ProtocolVersion::V2025_11_25 {
        checker.request("GetTaskRequest", without_meta(GetTaskRequestParams::new("t")));
        checker.request("GetTaskPayloadRequest", without_meta(GetTaskPayloadRequestParams::new("t")));
        checker.request("CancelTaskRequest", without_meta(CancelTaskRequestParams::new("t")));
    }
}

fn notifications(checker: &mut Checker) {
    let version = checker.version;
    checker.notification("InitializedNotification", InitializedNotificationParams::new());
    checker.notification("RootsListChangedNotification", RootsListChangedNotificationParams::new());
    let cancelled = CancelledNotificationParams::new("").with_reason("r");
    checker.notification("CancelledNotification", cancelled);
    if version.is_legacy() {
        let mut progress = ProgressNotificationParams::new(0, 0.5);
        progress.total = Some(1.0);
        progress.message = Some("m".into());
        checker.notification("ProgressNotification", progress.for_version(version));
    }
}

fn results(checker: &mut Checker) {
    let version = checker.version;
    if version.is_legacy() {
        // The answer to `ping`. A modern client answers no request.
        checker.holds("EmptyResult", &serde_json::to_value(EmptyResult::new()).unwrap());
    }
    let mut root = Root::new("file:///a").with_name("a");
    root.meta = Some(raw(json!({ "k": 1 })));
    let mut roots = ListRootsResult::new(vec![root]);
    roots.meta = Some(raw(json!({ "k": 1 })));
    checker.holds("ListRootsResult", &serde_json::to_value(roots.for_version(version)).unwrap());
    let mut sent = 0;
    for content in contents() {
        let mut result = CreateMessageResult::new("m", content).with_stop_reason(StopReason::EndTurn);
        result.meta = Some(raw(json!({ "k": 1 })));
        if let Ok(result) = result.for_version(version) {
            checker.holds("CreateMessageResult", &serde_json::to_value(result).unwrap());
            sent += 1;
        }
    }
    assert!(sent >= 3, "{version}: only {sent} contents can be sent");
}

fn contents() -> Vec<SamplingContent> {
    let annotated = json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z" });
    let block = |mut value: Value| -> SamplingMessageContentBlock {
        value["_meta"] = json!({ "k": 1 });
        read(value)
    };
    let text = || block(json!({ "type": "text", "text": "x", "annotations": annotated }));
    let data =
        |kind: &str| block(json!({ "type": kind, "data": "", "mimeType": "a/b", "annotations": annotated }));
    let call = || block(json!({ "type": "tool_use", "id": "i", "name": "n", "input": {} }));
    let outcome = json!({ "type": "tool_result", "toolUseId": "i", "content": [], "structuredContent": {} });
    vec![
        text().into(),
        data("image").into(),
        data("audio").into(),
        vec![text()].into(),
        vec![text(), call()].into(),
        call().into(),
        block(outcome).into(),
    ]
}

/// `tasks/*` of 2025-11-25 take nothing but the id (the schema names no `_meta` there).
fn without_meta<P>(params: P) -> NoMeta<P> {
    NoMeta(params)
}

#[derive(Serialize)]
#[serde(transparent)]
struct NoMeta<P>(P);

impl<P: Request> Request for NoMeta<P> {
    const METHOD: &'static str = P::METHOD;
    type Result = P::Result;
}

impl<P> WithMeta for NoMeta<P> {
    fn meta(&self) -> Option<&RawValue> {
        None
    }

    fn set_meta(&mut self, _: Option<Box<RawValue>>) {}
}

#[test]
fn what_we_send_under_2024_11_05_is_allowed() {
    assert!(check_all(ProtocolVersion::V2024_11_05) > 40);
}

#[test]
fn what_we_send_under_2025_03_26_is_allowed() {
    assert!(check_all(ProtocolVersion::V2025_03_26) > 40);
}

#[test]
fn what_we_send_under_2025_06_18_is_allowed() {
    assert!(check_all(ProtocolVersion::V2025_06_18) > 40);
}

#[test]
fn what_we_send_under_2025_11_25_is_allowed() {
    assert!(check_all(ProtocolVersion::V2025_11_25) > 40);
}

#[test]
fn what_we_send_under_2026_07_28_is_allowed() {
    assert!(check_all(ProtocolVersion::V2026_07_28) > 30);
}

/// Each member is sent from the revision on that brought it, and until the one that took it away.
#[test]
fn what_a_revision_defines_is_not_cut() {
    use ProtocolVersion as V;
    for version in V::ALL {
        let check = |value: Value, members: &[(&str, bool)]| {
            for (pointer, expected) in members {
                assert_eq!(
                    value.pointer(pointer).is_some(),
                    *expected,
                    "{pointer} of {value} under {version}"
                );
            }
        };
        let (legacy, modern) = (version.is_legacy(), version.is_modern());
        let (second, third, fourth) =
            (version >= V::V2025_03_26, version >= V::V2025_06_18, version >= V::V2025_11_25);
        let mut progress = ProgressNotificationParams::new(0, 0.5);
        progress.message = Some("m".into());
        check(serde_json::to_value(progress.for_version(version)).unwrap(), &[("/message", second)]);
        let mut root = Root::new("file:///a").with_name("a");
        root.meta = Some(raw(json!({})));
        let mut roots = ListRootsResult::new(vec![root]);
        roots.meta = Some(raw(json!({})));
        check(
            serde_json::to_value(roots.for_version(version)).unwrap(),
            &[("/roots/0/name", true), ("/roots/0/_meta", third), ("/_meta", legacy)],
        );
        check(
            serde_json::to_value(client_info().for_version(version)).unwrap(),
            &[("/title", third), ("/description", fourth), ("/icons", fourth), ("/websiteUrl", fourth)],
        );
        let answers = [("/inputResponses", modern), ("/requestState", modern)];
        let mut call = CallToolRequestParams::new("t");
        call.task = Some(TaskMetadata::kept_for_ms(5));
        call.input_responses = responses();
        call.request_state = Some("s".into());
        let call = serde_json::to_value(call.for_version(version)).unwrap();
        check(call.clone(), &answers);
        check(call, &[("/task/ttl", version == V::V2025_11_25)]);
        let mut get = GetPromptRequestParams::new("p").with_argument("a", "v");
        get.input_responses = responses();
        get.request_state = Some("s".into());
        let get = serde_json::to_value(get.for_version(version)).unwrap();
        check(get.clone(), &answers);
        check(get, &[("/arguments/a", true)]);
        let mut resource = ReadResourceRequestParams::new("a:b");
        resource.input_responses = responses();
        resource.request_state = Some("s".into());
        check(serde_json::to_value(resource.for_version(version)).unwrap(), &answers);
        let reference = read(json!({ "type": "ref/prompt", "name": "p", "title": "P" }));
        let complete = CompleteRequestParams::new(reference, "a", "v").with_resolved("b", "w");
        check(
            serde_json::to_value(complete.for_version(version)).unwrap(),
            &[("/ref/name", true), ("/ref/title", third), ("/context/arguments/b", third)],
        );
    }
}

/// protocol:L-01: members of a later revision are not sent to an earlier one.
#[test]
fn an_offer_holds_what_its_revision_defines() {
    let offer = |version| {
        let params = InitializeRequestParams::new(version, capabilities(), client_info());
        serde_json::to_value(params).unwrap()
    };
    let first = offer(ProtocolVersion::V2024_11_05);
    assert_eq!(first["clientInfo"], json!({ "name": "n", "version": "1" }));
    assert_eq!(
        first["capabilities"],
        json!({ "experimental": { "com.example/x": { "a": 1 } }, "roots": { "listChanged": true }, "sampling": {} })
    );
    let third = offer(ProtocolVersion::V2025_06_18);
    assert_eq!(third["clientInfo"], json!({ "name": "n", "title": "t", "version": "1" }));
    assert_eq!(third["capabilities"]["elicitation"], json!({}));
    // protocol:L-02: a handshake never offers a modern version.
    let modern = offer(ProtocolVersion::V2026_07_28);
    assert_eq!(modern["protocolVersion"], "2025-11-25");
    assert!(modern["capabilities"]["tasks"].is_object());
    assert!(modern["capabilities"].get("extensions").is_none());
}

/// protocol:L-16: declaring a capability without a mode to serve would be a false promise.
#[test]
fn url_elicitation_alone_is_not_declared_where_only_forms_exist() {
    let mut capabilities = ClientCapabilities::new();
    capabilities.elicitation = Some(ElicitationCapability::url_only());
    for version in ProtocolVersion::ALL {
        let declared = capabilities.clone().for_version(version).declares(ClientFeature::Elicitation);
        assert_eq!(declared, version >= ProtocolVersion::V2025_11_25, "{version}");
    }
    let forms = ElicitationCapability::form_only();
    assert_eq!(serde_json::to_string(&forms).unwrap(), "{}");
    capabilities.elicitation = Some(forms);
    assert!(capabilities.declares(ClientFeature::ElicitationForm));
    assert!(!capabilities.declares(ClientFeature::ElicitationUrl));
}

/// protocol:L-19, protocol:L-20
#[test]
fn modern_metadata_carries_version_capabilities_and_name() {
    let version = ProtocolVersion::V2026_07_28;
    let meta = MetaObject::for_request(version, &ClientCapabilities::new(), None).unwrap();
    let expected = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(serde_json::to_value(&meta).unwrap(), expected);
    let meta = MetaObject::for_request(version, &capabilities(), Some(&client_info())).unwrap();
    assert_eq!(meta.read::<Implementation>(meta::CLIENT_INFO).unwrap().name, "n");
    let declared: ClientCapabilities = meta.read(meta::CLIENT_CAPABILITIES).unwrap();
    assert!(declared.declares_extension(meta::TASKS_EXTENSION));
    assert!(!declared.declares(ClientFeature::RootsListChanged));
}
