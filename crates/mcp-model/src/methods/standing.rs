//! Which revisions define which methods, and who sends them.

use super::*;
use crate::ProtocolVersion;
use crate::meta::TASKS_EXTENSION;

/// How a revision defines a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Another revision defines it, this one does not.
    Absent,
    /// Either side sends it.
    BothWays,
    /// The client sends it.
    ClientToServer,
    /// The server sends it in `inputRequests`, never as a message of its own.
    Embedded,
    /// The extension of this identifier defines it.
    Extension(&'static str),
    /// The server sends it.
    ServerToClient,
    /// No revision defines it.
    Unknown,
}

impl Standing {
    /// Whether the revision allows a client to send the method. True for methods that no revision defines.
    #[must_use]
    pub fn is_for_client(self) -> bool {
        matches!(self, Self::BothWays | Self::ClientToServer | Self::Extension(_) | Self::Unknown)
    }
}

/// Looks up how the revision defines the method.
///
/// ```
/// use mcp_model::ProtocolVersion;
/// use mcp_model::methods::{self, Standing};
///
/// assert_eq!(methods::standing(methods::PING, ProtocolVersion::V2025_11_25), Standing::BothWays);
/// assert_eq!(methods::standing(methods::PING, ProtocolVersion::V2026_07_28), Standing::Absent);
/// assert_eq!(methods::standing("vendor/method", ProtocolVersion::V2026_07_28), Standing::Unknown);
/// ```
#[must_use]
pub fn standing(method: &str, version: ProtocolVersion) -> Standing {
    use ProtocolVersion::{V2025_06_18, V2025_11_25};

    let when = |exists: bool, standing: Standing| if exists { standing } else { Standing::Absent };
    match method {
        TOOLS_LIST
        | TOOLS_CALL
        | RESOURCES_LIST
        | RESOURCES_TEMPLATES_LIST
        | RESOURCES_READ
        | PROMPTS_LIST
        | PROMPTS_GET
        | COMPLETION_COMPLETE => Standing::ClientToServer,
        INITIALIZE
        | RESOURCES_SUBSCRIBE
        | RESOURCES_UNSUBSCRIBE
        | LOGGING_SET_LEVEL
        | NOTIFICATIONS_INITIALIZED
        | NOTIFICATIONS_ROOTS_LIST_CHANGED => when(version.is_legacy(), Standing::ClientToServer),
        SERVER_DISCOVER | SUBSCRIPTIONS_LISTEN => when(version.is_modern(), Standing::ClientToServer),
        PING => when(version.is_legacy(), Standing::BothWays),
        ROOTS_LIST | SAMPLING_CREATE_MESSAGE => asked_by_server(version),
        ELICITATION_CREATE if version < V2025_06_18 => Standing::Absent,
        ELICITATION_CREATE => asked_by_server(version),
        TASKS_GET | TASKS_CANCEL if version.is_modern() => Standing::Extension(TASKS_EXTENSION),
        TASKS_GET | TASKS_CANCEL | TASKS_RESULT | TASKS_LIST | NOTIFICATIONS_TASKS_STATUS => {
            when(version == V2025_11_25, Standing::BothWays)
        }
        TASKS_UPDATE | NOTIFICATIONS_TASKS => when(version.is_modern(), Standing::Extension(TASKS_EXTENSION)),
        NOTIFICATIONS_CANCELLED => Standing::BothWays,
        NOTIFICATIONS_PROGRESS if version.is_legacy() => Standing::BothWays,
        NOTIFICATIONS_PROGRESS
        | NOTIFICATIONS_MESSAGE
        | NOTIFICATIONS_TOOLS_LIST_CHANGED
        | NOTIFICATIONS_PROMPTS_LIST_CHANGED
        | NOTIFICATIONS_RESOURCES_LIST_CHANGED
        | NOTIFICATIONS_RESOURCES_UPDATED => Standing::ServerToClient,
        NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED => when(version.is_modern(), Standing::ServerToClient),
        NOTIFICATIONS_ELICITATION_COMPLETE => when(version == V2025_11_25, Standing::ServerToClient),
        _ => Standing::Unknown,
    }
}

fn asked_by_server(version: ProtocolVersion) -> Standing {
    if version.is_legacy() { Standing::ServerToClient } else { Standing::Embedded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_method_is_known_in_some_revision() {
        for method in ALL {
            let standings = ProtocolVersion::ALL.map(|version| standing(method, version));
            assert!(standings.iter().all(|standing| *standing != Standing::Unknown), "{method}");
            assert!(standings.iter().any(|standing| *standing != Standing::Absent), "{method}");
        }
    }

    #[test]
    fn a_client_sends_its_own_and_unknown_methods_only() {
        let check = |method: &str, version: ProtocolVersion, expected: bool| {
            assert_eq!(standing(method, version).is_for_client(), expected, "{method} under {version}");
        };
        check(TOOLS_CALL, ProtocolVersion::V2026_07_28, true);
        check(TASKS_UPDATE, ProtocolVersion::V2026_07_28, true);
        check(TASKS_UPDATE, ProtocolVersion::V2025_11_25, false);
        check(TASKS_GET, ProtocolVersion::V2026_07_28, true);
        check(TASKS_GET, ProtocolVersion::V2025_06_18, false);
        check(INITIALIZE, ProtocolVersion::V2026_07_28, false);
        check(ROOTS_LIST, ProtocolVersion::V2025_11_25, false);
        check(ROOTS_LIST, ProtocolVersion::V2026_07_28, false);
        check("vendor/x", ProtocolVersion::V2024_11_05, true);
    }
}
