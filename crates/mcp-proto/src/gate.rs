//! Which methods a negotiated connection allows: the revision must have them and the server must have declared what
//! they need.

use mcp_model::{ProtocolVersion, ServerCapabilities};

use crate::error::Misuse;

/// One row of the method table: since and until which revision, and the capability it needs.
struct Row {
    method: &'static str,
    since: ProtocolVersion,
    until: Option<ProtocolVersion>,
    capability: Option<(&'static str, fn(&ServerCapabilities) -> bool)>,
}

const fn row(
    method: &'static str,
    since: ProtocolVersion,
    until: Option<ProtocolVersion>,
    capability: Option<(&'static str, fn(&ServerCapabilities) -> bool)>,
) -> Row {
    Row { method, since, until, capability }
}

use ProtocolVersion as V;

const LEGACY: Option<V> = Some(V::V2025_11_25);

/// Requests that a client may send. A method that is not listed (an extension's, a vendor's) is not gated.
const METHODS: &[Row] = &[
    row("ping", V::V2024_11_05, LEGACY, None),
    row("tools/list", V::V2024_11_05, None, Some(("tools", ServerCapabilities::has_tools))),
    row("tools/call", V::V2024_11_05, None, Some(("tools", ServerCapabilities::has_tools))),
    row("resources/list", V::V2024_11_05, None, Some(("resources", ServerCapabilities::has_resources))),
    row("resources/templates/list", V::V2024_11_05, None, Some(("resources", ServerCapabilities::has_resources))),
    row("resources/read", V::V2024_11_05, None, Some(("resources", ServerCapabilities::has_resources))),
    row(
        "resources/subscribe",
        V::V2024_11_05,
        LEGACY,
        Some(("resources.subscribe", ServerCapabilities::has_resource_subscriptions)),
    ),
    row(
        "resources/unsubscribe",
        V::V2024_11_05,
        LEGACY,
        Some(("resources.subscribe", ServerCapabilities::has_resource_subscriptions)),
    ),
    row("prompts/list", V::V2024_11_05, None, Some(("prompts", ServerCapabilities::has_prompts))),
    row("prompts/get", V::V2024_11_05, None, Some(("prompts", ServerCapabilities::has_prompts))),
    row("completion/complete", V::V2024_11_05, None, Some(("completions", ServerCapabilities::has_completions))),
    row("logging/setLevel", V::V2024_11_05, LEGACY, Some(("logging", ServerCapabilities::has_logging))),
];

/// Whether `method` may be sent on a connection that negotiated `version` with a server that declared `capabilities`.
pub(crate) fn check(
    method: &str,
    version: ProtocolVersion,
    capabilities: &ServerCapabilities,
) -> Result<(), Misuse> {
    let Some(row) = METHODS.iter().find(|row| row.method == method) else { return Ok(()) };
    if version < row.since || row.until.is_some_and(|until| version > until) {
        return Err(Misuse::NotInRevision { method: method.to_owned(), version });
    }
    // The first revision has no `completions` capability: a server may serve the method without declaring it.
    if method == "completion/complete" && version == V::V2024_11_05 {
        return Ok(());
    }
    match row.capability {
        Some((capability, declared)) if !declared(capabilities) => {
            Err(Misuse::NotDeclaredByServer { method: method.to_owned(), capability })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(json: &str) -> ServerCapabilities {
        serde_json::from_str(json).unwrap()
    }

    /// protocol:L-09, protocol:L-13, seed:E17
    #[test]
    fn a_method_needs_the_capability_the_server_declared() {
        let tools_only = declared(r#"{"tools":{}}"#);
        assert_eq!(check("tools/list", V::V2025_11_25, &tools_only), Ok(()));
        assert_eq!(
            check("resources/list", V::V2025_11_25, &tools_only),
            Err(Misuse::NotDeclaredByServer { method: "resources/list".into(), capability: "resources" })
        );
        let no_subscribe = declared(r#"{"resources":{}}"#);
        assert_eq!(
            check("resources/subscribe", V::V2025_11_25, &no_subscribe),
            Err(Misuse::NotDeclaredByServer {
                method: "resources/subscribe".into(),
                capability: "resources.subscribe"
            })
        );
        let subscribe = declared(r#"{"resources":{"subscribe":true}}"#);
        assert_eq!(check("resources/subscribe", V::V2025_11_25, &subscribe), Ok(()));
    }

    /// protocol:L-14
    #[test]
    fn the_first_revision_serves_completions_without_a_capability() {
        let none = declared("{}");
        assert_eq!(check("completion/complete", V::V2024_11_05, &none), Ok(()));
        assert!(check("completion/complete", V::V2025_03_26, &none).is_err());
    }

    #[test]
    fn a_method_the_revision_lacks_is_refused_and_a_vendor_method_is_not() {
        let all = declared(r#"{"logging":{}}"#);
        assert_eq!(
            check("logging/setLevel", V::V2026_07_28, &all),
            Err(Misuse::NotInRevision { method: "logging/setLevel".into(), version: V::V2026_07_28 })
        );
        assert_eq!(check("vendor/thing", V::V2025_11_25, &all), Ok(()));
    }
}
