//! Which words of a declaration stand for which feature, and what is asked of a server before a method.

use mcp_model::{
    ClientCapabilities, ClientFeature as C, ElicitationCapability, ProtocolVersion, ServerCapabilities,
    ServerFeature as S,
};

const SERVER: &[S] = &[
    S::Completions,
    S::Logging,
    S::Prompts,
    S::PromptsListChanged,
    S::Resources,
    S::ResourcesListChanged,
    S::ResourcesSubscribe,
    S::Tasks,
    S::TasksCancel,
    S::TasksList,
    S::TasksToolsCall,
    S::Tools,
    S::ToolsListChanged,
];

const CLIENT: &[C] = &[
    C::Elicitation,
    C::ElicitationForm,
    C::ElicitationUrl,
    C::Roots,
    C::RootsListChanged,
    C::Sampling,
    C::SamplingContext,
    C::SamplingTools,
    C::TasksElicitation,
    C::TasksSampling,
];

/// Each declaration stands for these features and for no other.
#[test]
fn a_server_has_what_it_declares_and_nothing_else() {
    for (json, declared) in [
        ("{}", &[][..]),
        (r#"{"completions":{}}"#, &[S::Completions]),
        (r#"{"logging":{}}"#, &[S::Logging]),
        (r#"{"prompts":{}}"#, &[S::Prompts]),
        (r#"{"prompts":{"listChanged":false}}"#, &[S::Prompts]),
        (r#"{"prompts":{"listChanged":true}}"#, &[S::Prompts, S::PromptsListChanged]),
        (r#"{"resources":{"listChanged":true}}"#, &[S::Resources, S::ResourcesListChanged]),
        (r#"{"resources":{"subscribe":true}}"#, &[S::Resources, S::ResourcesSubscribe]),
        (r#"{"tools":{}}"#, &[S::Tools]),
        (r#"{"tools":{"listChanged":true}}"#, &[S::Tools, S::ToolsListChanged]),
        (r#"{"tasks":{}}"#, &[S::Tasks]),
        (r#"{"tasks":{"list":{},"cancel":{}}}"#, &[S::Tasks, S::TasksCancel, S::TasksList]),
        (r#"{"tasks":{"requests":{"tools":{}}}}"#, &[S::Tasks]),
        (r#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#, &[S::Tasks, S::TasksToolsCall]),
        (r#"{"vendor":{"tools":{}}}"#, &[]),
    ] {
        let capabilities: ServerCapabilities = serde_json::from_str(json).unwrap();
        let found: Vec<S> =
            SERVER.iter().copied().filter(|feature| capabilities.declares(*feature)).collect();
        assert_eq!(found, declared, "{json}");
    }
    let extended: ServerCapabilities = serde_json::from_str(r#"{"extensions":{"a/b":{}}}"#).unwrap();
    assert!(extended.declares_extension("a/b") && !extended.declares_extension("a/c"));
}

/// An elicitation that names no mode means forms.
#[test]
fn a_client_offers_what_it_declares_and_nothing_else() {
    for (json, declared) in [
        ("{}", &[][..]),
        (r#"{"roots":{}}"#, &[C::Roots]),
        (r#"{"roots":{"listChanged":true}}"#, &[C::Roots, C::RootsListChanged]),
        (r#"{"sampling":{}}"#, &[C::Sampling]),
        (r#"{"sampling":{"tools":{}}}"#, &[C::Sampling, C::SamplingTools]),
        (r#"{"sampling":{"context":{}}}"#, &[C::Sampling, C::SamplingContext]),
        (r#"{"elicitation":{}}"#, &[C::Elicitation, C::ElicitationForm]),
        (r#"{"elicitation":{"url":{}}}"#, &[C::Elicitation, C::ElicitationUrl]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, &[C::Elicitation, C::ElicitationForm, C::ElicitationUrl]),
        (r#"{"tasks":{"requests":{"elicitation":{}}}}"#, &[]),
        (r#"{"tasks":{"requests":{"elicitation":{"create":{}}}}}"#, &[C::TasksElicitation]),
        (r#"{"tasks":{"requests":{"sampling":{"createMessage":{}}}}}"#, &[C::TasksSampling]),
    ] {
        let capabilities: ClientCapabilities = serde_json::from_str(json).unwrap();
        let found: Vec<C> =
            CLIENT.iter().copied().filter(|feature| capabilities.declares(*feature)).collect();
        assert_eq!(found, declared, "{json}");
    }
    let both = serde_json::to_string(&ElicitationCapability::form_and_url()).unwrap();
    assert_eq!(both, r#"{"form":{},"url":{}}"#);
}

/// Tasks are gated by the capability of 2025-11-25 and, later, by an extension, which this does not know.
#[test]
fn each_method_asks_for_its_feature_where_the_revision_has_one() {
    const OLD: ProtocolVersion = ProtocolVersion::V2024_11_05;
    const TASKS: ProtocolVersion = ProtocolVersion::V2025_11_25;
    const MODERN: ProtocolVersion = ProtocolVersion::V2026_07_28;
    for (method, version, feature) in [
        ("tools/call", OLD, Some(S::Tools)),
        ("resources/templates/list", MODERN, Some(S::Resources)),
        ("resources/unsubscribe", TASKS, Some(S::ResourcesSubscribe)),
        ("prompts/get", OLD, Some(S::Prompts)),
        ("completion/complete", OLD, None),
        ("completion/complete", TASKS, Some(S::Completions)),
        ("logging/setLevel", TASKS, Some(S::Logging)),
        ("tasks/get", TASKS, Some(S::Tasks)),
        ("tasks/result", TASKS, Some(S::Tasks)),
        ("tasks/list", TASKS, Some(S::TasksList)),
        ("tasks/cancel", TASKS, Some(S::TasksCancel)),
        ("tasks/get", MODERN, None),
        ("tasks/cancel", MODERN, None),
        ("ping", TASKS, None),
        ("vendor/x", TASKS, None),
    ] {
        assert_eq!(S::required_by(method, version), feature, "{method} {version:?}");
    }
}

/// The tasks of 2026-07-28 are an extension, which no capability gates.
#[test]
fn methods_of_tasks_need_their_capability_in_the_revision_that_has_it() {
    use mcp_model::methods;

    for (method, feature) in [
        (methods::TASKS_GET, S::Tasks),
        (methods::TASKS_RESULT, S::Tasks),
        (methods::TASKS_LIST, S::TasksList),
        (methods::TASKS_CANCEL, S::TasksCancel),
    ] {
        assert_eq!(S::required_by(method, ProtocolVersion::V2025_11_25), Some(feature), "{method}");
        assert_eq!(S::required_by(method, ProtocolVersion::V2026_07_28), None, "{method}");
    }
}
