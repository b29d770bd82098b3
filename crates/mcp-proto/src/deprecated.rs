//! Features that 2026-07-28 still has and means to drop ("Deprecated Features"): they work where they are declared, and
//! whoever listens to diagnostics is told once a connection that one is in use.

use mcp_model::ProtocolVersion;

use crate::connection::Connection;
use crate::diagnostic::DiagnosticKind;

/// A feature that is going to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeprecatedFeature {
    Logging,
    Roots,
    Sampling,
}

impl DeprecatedFeature {
    const fn in_use(self) -> &'static str {
        match self {
            Self::Logging => "log levels are in use",
            Self::Roots => "the server asks for roots",
            Self::Sampling => "the server asks for samples of a model",
        }
    }
}

impl Connection {
    /// The feature is in use. Said where the revision calls it deprecated, the first time.
    pub(crate) fn note_deprecated(&mut self, feature: DeprecatedFeature) {
        if self.phase.modern().is_some() && !self.deprecated_in_use.contains(&feature) {
            self.deprecated_in_use.push(feature);
            let since = ProtocolVersion::V2026_07_28.as_str();
            let message = format!("{}, which is deprecated since {since}", feature.in_use());
            self.diagnose(DiagnosticKind::DeprecatedFeature, message);
        }
    }
}
