//! Error codes: any integer, constants for the defined codes, and rules for the others.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The `code` of a JSON-RPC error: any integer.
///
/// A peer may send any integer; the constants are the codes that JSON-RPC and the MCP specification define. Local errors (a
/// timeout, a closed transport, a limit) have no code, so that they cannot be mistaken for errors of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(i64);

/// Who may assign a code. See [`ErrorCode::range`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeRange {
    /// Outside -32768 to -32000: free for applications.
    Application,
    /// -32768 to -32100: reserved by JSON-RPC, whose five standard codes lie here.
    JsonRpc,
    /// -32019 to -32000: used by old implementations for various purposes. Only -32002 is defined.
    Legacy,
    /// -32099 to -32020: allocated by the MCP specification.
    Mcp,
}

impl ErrorCode {
    /// The peer could not parse the JSON text.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist, or is not available.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// An internal error of the peer.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// A resource does not exist. Revisions up to 2025-11-25; reserved and not to be sent from 2026-07-28 on.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// URL elicitation required. Revision 2025-11-25; reserved and not to be sent from 2026-07-28 on.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// An HTTP header does not match the body. From 2026-07-28 on.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a capability that the client did not declare. From 2026-07-28 on.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The peer does not support the protocol version of the request. From 2026-07-28 on.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// The user refused a sampling request. Sent by clients, revisions up to 2025-11-25.
    pub const USER_REJECTED: Self = Self(-1);

    /// A code with this number.
    #[must_use]
    pub const fn new(code: i64) -> Self {
        Self(code)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The range that the code is in.
    #[must_use]
    pub const fn range(self) -> CodeRange {
        match self.0 {
            -32768..=-32100 => CodeRange::JsonRpc,
            -32099..=-32020 => CodeRange::Mcp,
            -32019..=-32000 => CodeRange::Legacy,
            _ => CodeRange::Application,
        }
    }

    /// The name of the code in JSON-RPC or a revision of the MCP specification, in lowercase, for logs.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::PARSE_ERROR => "parse error",
            Self::INVALID_REQUEST => "invalid request",
            Self::METHOD_NOT_FOUND => "method not found",
            Self::INVALID_PARAMS => "invalid params",
            Self::INTERNAL_ERROR => "internal error",
            Self::RESOURCE_NOT_FOUND => "resource not found",
            Self::URL_ELICITATION_REQUIRED => "URL elicitation required",
            Self::HEADER_MISMATCH => "header mismatch",
            Self::MISSING_REQUIRED_CLIENT_CAPABILITY => "missing required client capability",
            Self::UNSUPPORTED_PROTOCOL_VERSION => "unsupported protocol version",
            Self::USER_REJECTED => "user rejected",
            _ => return None,
        })
    }

    /// Whether a receiver may interpret this code, and an implementation may send it in some revision: a defined code, or one outside
    /// the reserved ranges. For the newest revision exclude the ones that [are retired](Self::is_retired).
    ///
    /// False for every reserved code that no revision defines. The specification forbids interpreting -32019 to -32000 (except
    /// -32002), which old servers used for unrelated errors; undefined codes of the other reserved ranges have no meaning yet.
    #[must_use]
    pub const fn has_meaning(self) -> bool {
        matches!(self.range(), CodeRange::Application) || self.name().is_some()
    }

    /// Whether the code is defined only in revisions before 2026-07-28 and must not be sent from then on
    /// (-32002 and -32042; both stay reserved).
    #[must_use]
    pub const fn is_retired(self) -> bool {
        matches!(self, Self::RESOURCE_NOT_FOUND | Self::URL_ELICITATION_REQUIRED)
    }

    /// Whether an application may define this code: only outside -32768 to -32000.
    #[must_use]
    pub const fn may_allocate(self) -> bool {
        matches!(self.range(), CodeRange::Application)
    }
}

impl From<i64> for ErrorCode {
    fn from(code: i64) -> Self {
        Self(code)
    }
}

/// The number, followed by the name if it has one: `-32601 (method not found)`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: i64, range: CodeRange, meaning: bool, allocate: bool) {
        let code = ErrorCode::new(code);
        assert_eq!(code.range(), range, "{code}");
        assert_eq!(code.has_meaning(), meaning, "{code}");
        assert_eq!(code.may_allocate(), allocate, "{code}");
    }

    // protocol:J-17, protocol:J-18, protocol:J-19, protocol:J-22
    #[test]
    fn ranges_decide_who_may_use_a_code() {
        use CodeRange::{Application, JsonRpc, Legacy, Mcp};
        for (code, range, meaning, allocate) in [
            (-32769, Application, true, true),
            (-32768, JsonRpc, false, false),
            (-32700, JsonRpc, true, false),
            (-32603, JsonRpc, true, false),
            (-32602, JsonRpc, true, false),
            (-32601, JsonRpc, true, false),
            (-32600, JsonRpc, true, false),
            (-32599, JsonRpc, false, false),
            (-32100, JsonRpc, false, false),
            (-32099, Mcp, false, false),
            (-32042, Mcp, true, false),
            (-32023, Mcp, false, false),
            (-32022, Mcp, true, false),
            (-32021, Mcp, true, false),
            (-32020, Mcp, true, false),
            (-32019, Legacy, false, false),
            (-32003, Legacy, false, false),
            (-32002, Legacy, true, false),
            (-32001, Legacy, false, false),
            (-32000, Legacy, false, false),
            (-31999, Application, true, true),
            (-1, Application, true, true),
            (0, Application, true, true),
            (i64::MIN, Application, true, true),
            (i64::MAX, Application, true, true),
        ] {
            check(code, range, meaning, allocate);
        }
    }

    // protocol:J-20
    #[test]
    fn two_codes_are_retired_from_2026_07_28_on() {
        let retired: Vec<i64> = (-32768..=0).filter(|code| ErrorCode::new(*code).is_retired()).collect();
        assert_eq!(retired, [-32042, -32002]);
    }

    #[test]
    fn display_names_known_codes() {
        assert_eq!(ErrorCode::METHOD_NOT_FOUND.to_string(), "-32601 (method not found)");
        assert_eq!(ErrorCode::new(-32001).to_string(), "-32001");
        assert_eq!(ErrorCode::USER_REJECTED.to_string(), "-1 (user rejected)");
    }
}
