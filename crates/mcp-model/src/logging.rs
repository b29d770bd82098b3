//! Log messages of the server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::open_enum::open_enum;
use crate::request::{notifications, requests};
use crate::{EmptyResult, lenient, methods};

open_enum! {
    /// The severity of a log message: the levels of RFC 5424.
    LoggingLevel {
        /// Debug: information for developers.
        Debug = "debug",
        /// Informational.
        Info = "info",
        /// Notice: normal but significant.
        Notice = "notice",
        /// Warning.
        Warning = "warning",
        /// Error.
        Error = "error",
        /// Critical: a component has failed.
        Critical = "critical",
        /// Alert: action is required immediately.
        Alert = "alert",
        /// Emergency: the system is unusable.
        Emergency = "emergency",
    }
}

impl LoggingLevel {
    /// The levels that the specification defines, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The position in [`LoggingLevel::ALL`]: 0 for debug, 7 for emergency; `None` for an unknown level.
    #[must_use]
    pub fn severity(&self) -> Option<usize> {
        Self::ALL.iter().position(|level| level == self)
    }
}

/// Parameters of `logging/setLevel` (legacy revisions).
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelRequestParams {
    /// The least severe level that the server should send.
    pub level: LoggingLevel,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SetLevelRequestParams { level } sized { meta } }

impl SetLevelRequestParams {
    /// Requests messages of this level and of more severe ones.
    #[must_use]
    pub fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None }
    }
}

/// Parameters of `notifications/message`.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageNotificationParams {
    /// Its severity.
    pub level: LoggingLevel,
    /// The name of the logger.
    #[serde(default, deserialize_with = "lenient::scalar", skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The content: any JSON value, as raw JSON. Untrusted.
    pub data: Box<RawValue>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { LoggingMessageNotificationParams { level, logger, data } sized { meta } }

requests! {
    SetLevelRequestParams => methods::LOGGING_SET_LEVEL, EmptyResult;
}

notifications! {
    LoggingMessageNotificationParams => methods::NOTIFICATIONS_MESSAGE;
}
