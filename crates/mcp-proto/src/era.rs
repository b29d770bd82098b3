//! The two eras of the protocol, and how a client finds out which one a server belongs to.
//!
//! A modern server (2026-07-28) is spoken to at once, with everything about the client in each request. A legacy server
//! wants `initialize` first. `server/discover` tells them apart: only a modern server answers it. What its answer means
//! is decided in [`judge`] alone, a table without state.
//!
//! Spec: `basic/versioning` and the sections "Backward Compatibility" of the transports (2026-07-28).

use mcp_jsonrpc::ErrorCode;
use mcp_model::ProtocolVersion;
use serde::{Deserialize, Serialize};

use crate::exchange_failure::ExchangeFailure;

/// How the era of the server is detected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Probe with `server/discover`; use `initialize` if the answer shows a legacy server.
    Auto,
    /// Use the verdict of an earlier connection to the same server ([`ServerFacts::verdict`](crate::ServerFacts::verdict)). A
    /// legacy server is not probed. A modern one is probed with `server/discover`, with three times the probe timeout. A
    /// server that has changed its era is recognised by its answer and connected as what it is now; its new verdict is in the
    /// facts.
    Known(Verdict),
    /// `initialize` only.
    Legacy,
    /// This revision and no other: connecting to a server that does not speak it fails.
    Pinned(ProtocolVersion),
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// One ordered channel for everything, such as the pipes of a child process.
    Channel,
    /// One exchange for each message (Streamable HTTP).
    Exchanges,
}

/// One of the two eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// `initialize` and a session: 2024-11-05 to 2025-11-25.
    Legacy,
    /// No handshake; each request says everything: 2026-07-28.
    Modern,
}

/// The detected era of a server, and the reason. Plain data: a host may store it and pass it to the next connection to the
/// same server as [`Mode::Known`]. Let stored verdicts expire, because the server may be updated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verdict {
    /// The revision that is spoken.
    pub version: ProtocolVersion,
    /// Why.
    pub reason: VerdictReason,
}

impl Verdict {
    /// A verdict.
    pub const fn new(version: ProtocolVersion, reason: VerdictReason) -> Self {
        Self { version, reason }
    }

    /// The era of the server.
    pub const fn era(&self) -> Era {
        if self.version.is_modern() { Era::Modern } else { Era::Legacy }
    }
}

/// Why a server counts as modern or legacy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VerdictReason {
    /// The application configured it.
    Configured,
    /// It answered `server/discover` and supports a revision of this era.
    Discovered,
    /// Its process exited on `server/discover`.
    ExitedOnProbe,
    /// It refused `server/discover` and named revisions of this era.
    NamedVersions,
    /// It answered `server/discover` with another kind of result.
    OtherResult,
    /// It refused `server/discover` with this JSON-RPC error code.
    RefusedProbe(i64),
    /// It refused `server/discover` with this HTTP status.
    RefusedWithStatus(u16),
    /// It did not answer `server/discover` in time.
    SilentOnProbe,
    /// It refused the revision of `server/discover` without naming another.
    UnnamedVersions,
}

/// What became of a `server/discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    /// A `DiscoverResult` with the revisions in it that this client knows.
    Discovered(Vec<ProtocolVersion>),
    Failed(ExchangeFailure),
    /// Some other result; `typed`: it has a `resultType`, which only modern servers write.
    OtherResult {
        typed: bool,
    },
    /// An error object. `offered`: the known revisions in its data, `None` if it has no legible ones; `status`: the HTTP
    /// status that it came with.
    Refused {
        code: ErrorCode,
        offered: Option<Vec<ProtocolVersion>>,
        status: Option<u16>,
    },
    Silent,
}

/// What to do after a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The server is modern, and there is nothing in common.
    Incompatible,
    /// The server is legacy.
    Initialize { offer: ProtocolVersion, reason: VerdictReason },
    /// The server is modern.
    Modern(ProtocolVersion),
    /// Ask again under this revision.
    Reprobe(ProtocolVersion),
    /// Nothing is known: the failure is the outcome.
    Surface,
}

/// The tables of the specification. `reprobed`: the server was asked again already.
pub(crate) fn judge(wire: Wire, probed: &Probed, reprobed: bool) -> Next {
    use ProtocolVersion as V;
    let newest = |versions: &[V], modern: bool| {
        versions.iter().copied().filter(|version| version.is_modern() == modern).max()
    };
    let legacy = |reason| Next::Initialize { offer: V::LATEST_LEGACY, reason };
    match probed {
        Probed::Discovered(versions) => match (newest(versions, true), newest(versions, false)) {
            (Some(version), _) => Next::Modern(version),
            (None, Some(offer)) => Next::Initialize { offer, reason: VerdictReason::Discovered },
            (None, None) => Next::Incompatible,
        },
        Probed::OtherResult { typed: true } if wire == Wire::Exchanges => Next::Surface,
        Probed::OtherResult { .. } => legacy(VerdictReason::OtherResult),
        Probed::Refused { code, offered, .. } if *code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
            match offered.as_deref().map(|offered| (newest(offered, true), newest(offered, false))) {
                Some((Some(version), _)) if !reprobed => Next::Reprobe(version),
                Some((Some(_), _)) => Next::Surface,
                Some((None, Some(offer))) => Next::Initialize { offer, reason: VerdictReason::NamedVersions },
                Some((None, None)) => Next::Incompatible,
                None => legacy(VerdictReason::UnnamedVersions),
            }
        }
        Probed::Refused { code, .. }
            if [ErrorCode::HEADER_MISMATCH, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY].contains(code) =>
        {
            Next::Surface
        }
        Probed::Refused { status: Some(status), .. } if !tells_the_era(*status) => Next::Surface,
        Probed::Refused { code, .. } => legacy(VerdictReason::RefusedProbe(code.get())),
        Probed::Failed(ExchangeFailure::Status { status, .. }) if tells_the_era(*status) => {
            legacy(VerdictReason::RefusedWithStatus(*status))
        }
        // No other failure says anything about the era.
        Probed::Failed(_) => Next::Surface,
        // A pipe has no other sign of a server that waits for `initialize`. Over HTTP even a legacy server answers.
        Probed::Silent if wire == Wire::Channel => legacy(VerdictReason::SilentOnProbe),
        Probed::Silent => Next::Surface,
    }
}

/// Whether this status, without the error of a modern server, shows a legacy server. Wrong credentials, overload and
/// faults show nothing.
const fn tells_the_era(status: u16) -> bool {
    match status {
        401 | 403 | 408 | 429 => false,
        _ => status < 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProtocolVersion as V;

    const MODERN: V = V::V2026_07_28;
    const BOTH: [Wire; 2] = [Wire::Channel, Wire::Exchanges];

    fn refused(code: ErrorCode, offered: Option<&[V]>, status: Option<u16>) -> Probed {
        Probed::Refused { code, offered: offered.map(<[V]>::to_vec), status }
    }

    fn initialize(reason: VerdictReason) -> Next {
        Next::Initialize { offer: V::LATEST_LEGACY, reason }
    }

    fn check(row: &str, wires: &[Wire], probed: &Probed, expected: &Next) {
        for wire in wires {
            assert_eq!(judge(*wire, probed, false), *expected, "{row} on {wire:?}");
        }
    }

    /// protocol:S1, protocol:S2, protocol:H1, protocol:L-28, protocol:L-29
    #[test]
    fn an_answer_with_a_common_modern_revision_is_modern() {
        let discovered = |versions: &[V]| Probed::Discovered(versions.to_vec());
        check("S1", &BOTH, &discovered(&[V::V2025_11_25, MODERN]), &Next::Modern(MODERN));
        let legacy = Next::Initialize { offer: V::V2025_06_18, reason: VerdictReason::Discovered };
        check("S2", &BOTH, &discovered(&[V::V2024_11_05, V::V2025_06_18]), &legacy);
        check("S2", &BOTH, &discovered(&[]), &Next::Incompatible);
    }

    /// protocol:S3, protocol:S4, protocol:S5, protocol:S6, protocol:H4, protocol:H5, protocol:10.1
    #[test]
    fn a_refused_revision_is_asked_for_again_or_fallen_back_from_by_what_the_server_lists() {
        let refused =
            |offered: Option<&[V]>| refused(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, offered, Some(400));
        check("S3", &BOTH, &refused(Some(&[MODERN, V::V2025_11_25])), &Next::Reprobe(MODERN));
        let legacy = Next::Initialize { offer: V::V2025_06_18, reason: VerdictReason::NamedVersions };
        check("S4", &BOTH, &refused(Some(&[V::V2025_06_18])), &legacy);
        check("S5", &BOTH, &refused(Some(&[])), &Next::Incompatible);
        check("S6", &BOTH, &refused(None), &initialize(VerdictReason::UnnamedVersions));
        assert_eq!(
            judge(Wire::Channel, &refused(Some(&[MODERN])), true),
            Next::Surface,
            "a second time ends it"
        );
    }

    /// protocol:S7, protocol:H6, protocol:H7, protocol:L-35
    #[test]
    fn the_other_errors_of_modern_servers_are_no_reason_to_fall_back() {
        for code in [ErrorCode::HEADER_MISMATCH, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY] {
            check("S7", &BOTH, &refused(code, None, Some(400)), &Next::Surface);
        }
    }

    /// protocol:S8, protocol:H9, protocol:H10, protocol:H12, protocol:L-36
    /// field:FR-081
    #[test]
    fn any_other_error_shows_a_legacy_server() {
        for code in [-32601, -32602, -32600, -32000, -32001, 0] {
            for status in [None, Some(200), Some(400), Some(404)] {
                let expected = initialize(VerdictReason::RefusedProbe(code));
                check("S8", &BOTH, &refused(ErrorCode::new(code), None, status), &expected);
            }
        }
    }

    /// protocol:S9, protocol:H15
    #[test]
    fn silence_means_legacy_on_a_pipe_and_nothing_over_http() {
        check("S9", &[Wire::Channel], &Probed::Silent, &initialize(VerdictReason::SilentOnProbe));
        check("H15", &[Wire::Exchanges], &Probed::Silent, &Next::Surface);
    }

    /// protocol:S11, protocol:H2
    /// protocol:H3
    #[test]
    fn another_result_shows_a_legacy_server_unless_it_is_typed() {
        let other = initialize(VerdictReason::OtherResult);
        check("S11", &BOTH, &Probed::OtherResult { typed: false }, &other);
        check("S11", &[Wire::Channel], &Probed::OtherResult { typed: true }, &other);
        check("H2", &[Wire::Exchanges], &Probed::OtherResult { typed: true }, &Next::Surface);
    }

    /// protocol:H10, protocol:H11, protocol:H13, protocol:H14, protocol:H15, protocol:H16, protocol:10.4
    #[test]
    fn a_status_alone_shows_a_legacy_server_unless_it_is_about_something_else() {
        for status in [400, 404, 405, 406, 415, 422] {
            let expected = initialize(VerdictReason::RefusedWithStatus(status));
            check("H11", &BOTH, &Probed::Failed(ExchangeFailure::of_status(status)), &expected);
        }
        for status in [401, 403, 408, 429, 500, 502, 503] {
            check("H14", &BOTH, &Probed::Failed(ExchangeFailure::of_status(status)), &Next::Surface);
            check("H14", &BOTH, &refused(ErrorCode::INTERNAL_ERROR, None, Some(status)), &Next::Surface);
        }
        check("H16", &BOTH, &Probed::Failed(ExchangeFailure::Other), &Next::Surface);
    }

    #[test]
    fn a_verdict_survives_storage() {
        let verdict = Verdict::new(V::V2025_06_18, VerdictReason::RefusedProbe(-32601));
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(text, r#"{"version":"2025-06-18","reason":{"refusedProbe":-32601}}"#);
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
        assert_eq!(verdict.era(), Era::Legacy);
    }
}
