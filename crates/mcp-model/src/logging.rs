//! Log messages of the server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::open_enum::open_enum;
use crate::request::{notifications, requests};
use crate::{EmptyResult, lenient, methods};

open_enum! {
    /// How serious a log message is: the levels of RFC 5424.
    LoggingLevel {
        /// For developers.
        Debug = "debug",
        /// For the record.
        Info = "info",
        /// Normal but noteworthy.
        Notice = "notice",
        /// Something may be wrong.
        Warning = "warning",
        /// Something went wrong.
        Error = "error",
        /// A part does not work.
        Critical = "critical",
        /// Act at once.
        Alert = "alert",
        /// Nothing works.
        Emergency = "emergency",
    }
}

impl LoggingLevel {
    /// The levels that the specification defines, least serious first.
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
    /// The least serious level to send from now on.
    pub level: LoggingLevel,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { SetLevelRequestParams { level } sized { meta } }

impl SetLevelRequestParams {
    /// Asks for messages of this level and of more serious ones.
    #[must_use]
    pub fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None }
    }
}

/// Parameters of `notifications/message`.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageNotificationParams {
    /// How serious it is.
    pub level: LoggingLevel,
    /// The part of the server that speaks.
    #[serde(default, deserialize_with = "lenient::scalar", skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What it says: any JSON value, as raw JSON. Data of the peer: untrusted.
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
