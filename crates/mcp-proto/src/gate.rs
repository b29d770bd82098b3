//! Which methods a negotiated connection allows: the revision must have them and the server must have declared what
//! they need.

use mcp_model::{ProtocolVersion, ServerCapabilities, ServerFeature, methods};

use crate::error::Misuse;

/// Whether `method` may be sent on a connection that negotiated `version` with a server that declared `capabilities`.
/// A method of no specification (an extension's, a vendor's) is not gated.
pub(crate) fn check(
    method: &str,
    version: ProtocolVersion,
    capabilities: &ServerCapabilities,
) -> Result<(), Misuse> {
    if method == methods::INITIALIZE {
        return Err(Misuse::Reserved { method: method.to_owned() });
    }
    if !methods::standing(method, version).is_for_client() {
        return Err(Misuse::NotInRevision { method: method.to_owned(), version });
    }
    match ServerFeature::required_by(method, version) {
        Some(feature) if !capabilities.declares(feature) => {
            Err(Misuse::NotDeclaredByServer { method: method.to_owned(), feature })
        }
        _ => Ok(()),
    }
}

/// Whether the application may send this notification.
pub(crate) fn check_notification(
    method: &str,
    version: ProtocolVersion,
    offers_roots: bool,
) -> Result<(), Misuse> {
    match method {
        methods::NOTIFICATIONS_INITIALIZED | methods::NOTIFICATIONS_CANCELLED => {
            Err(Misuse::Reserved { method: method.to_owned() })
        }
        methods::NOTIFICATIONS_ROOTS_LIST_CHANGED if !offers_roots => {
            Err(Misuse::NotDeclaredByClient { capability: "roots" })
        }
        // A modern client sends none of the protocol's own.
        methods::NOTIFICATIONS_ROOTS_LIST_CHANGED | methods::NOTIFICATIONS_PROGRESS
            if version.is_modern() =>
        {
            Err(Misuse::NotInRevision { method: method.to_owned(), version })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProtocolVersion as V;

    fn declared(json: &str) -> ServerCapabilities {
        serde_json::from_str(json).unwrap()
    }

    /// protocol:L-09, protocol:L-13, seed:E17
    #[test]
    fn a_method_needs_the_capability_the_server_declared() {
        let case = |method: &str, capabilities: &str, missing: Option<ServerFeature>| {
            let expected = match missing {
                None => Ok(()),
                Some(feature) => Err(Misuse::NotDeclaredByServer { method: method.to_owned(), feature }),
            };
            assert_eq!(check(method, V::V2025_11_25, &declared(capabilities)), expected, "{method}");
        };
        case("tools/list", r#"{"tools":{}}"#, None);
        case("tools/call", "{}", Some(ServerFeature::Tools));
        case("resources/list", r#"{"tools":{}}"#, Some(ServerFeature::Resources));
        case("resources/subscribe", r#"{"resources":{}}"#, Some(ServerFeature::ResourcesSubscribe));
        case("resources/subscribe", r#"{"resources":{"subscribe":true}}"#, None);
        case("prompts/get", "{}", Some(ServerFeature::Prompts));
        case("logging/setLevel", "{}", Some(ServerFeature::Logging));
        case("completion/complete", "{}", Some(ServerFeature::Completions));
        case("ping", "{}", None);
    }

    /// protocol:L-14
    #[test]
    fn the_first_revision_serves_completions_without_a_capability() {
        assert_eq!(check("completion/complete", V::V2024_11_05, &declared("{}")), Ok(()));
        assert!(check("completion/complete", V::V2025_03_26, &declared("{}")).is_err());
    }

    #[test]
    fn a_method_the_revision_lacks_is_refused_and_a_vendor_method_is_not() {
        let all = declared(r#"{"logging":{},"tasks":{"list":{}}}"#);
        let lacks = |method: &str, version| {
            let refused = check(method, version, &all);
            assert_eq!(refused, Err(Misuse::NotInRevision { method: method.to_owned(), version }));
        };
        lacks("logging/setLevel", V::V2026_07_28);
        lacks("server/discover", V::V2025_11_25);
        lacks("tasks/list", V::V2025_06_18);
        lacks("sampling/createMessage", V::V2025_11_25);
        assert_eq!(check("tasks/list", V::V2025_11_25, &all), Ok(()));
        assert_eq!(check("vendor/thing", V::V2025_11_25, &all), Ok(()));
    }

    /// protocol:L-05, protocol:C-01
    #[test]
    fn what_the_connection_sends_by_itself_is_refused() {
        let reserved = |method: &str| Err(Misuse::Reserved { method: method.to_owned() });
        assert_eq!(check("initialize", V::V2025_11_25, &declared("{}")), reserved("initialize"));
        for method in ["notifications/initialized", "notifications/cancelled"] {
            assert_eq!(check_notification(method, V::V2025_11_25, true), reserved(method));
        }
        let changed = "notifications/roots/list_changed";
        assert_eq!(
            check_notification(changed, V::V2025_11_25, false),
            Err(Misuse::NotDeclaredByClient { capability: "roots" })
        );
        assert_eq!(check_notification(changed, V::V2025_11_25, true), Ok(()));
        assert_eq!(check_notification("notifications/vendor", V::V2025_11_25, false), Ok(()));
    }

    /// protocol:N-02, protocol:RT-03
    #[test]
    fn a_modern_client_sends_no_notification_of_the_protocol() {
        for method in ["notifications/roots/list_changed", "notifications/progress"] {
            let refused = Misuse::NotInRevision { method: method.to_owned(), version: V::V2026_07_28 };
            assert_eq!(check_notification(method, V::V2026_07_28, true), Err(refused));
        }
        assert_eq!(check_notification("notifications/vendor", V::V2026_07_28, true), Ok(()));
    }
}
