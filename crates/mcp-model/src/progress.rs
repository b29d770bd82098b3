//! Progress of a request, and its cancellation.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::request::notifications;
use crate::{ProgressToken, ProtocolVersion, RequestId, lenient, methods, number};

/// Parameters of `notifications/progress`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressNotificationParams {
    /// The progress token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far; increases with each notification, in a unit that the sender chooses.
    #[serde(serialize_with = "number::write")]
    pub progress: f64,
    /// The total, if known.
    #[serde(default, deserialize_with = "lenient::scalar")]
    #[serde(serialize_with = "number::write_some", skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A description of the progress (2025-03-26 and later). Untrusted.
    #[serde(default, deserialize_with = "lenient::scalar", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { ProgressNotificationParams { progress_token, progress, total, message } sized { meta } }

impl ProgressNotificationParams {
    /// Progress of the request with this token.
    #[must_use]
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self { progress_token: progress_token.into(), progress, total: None, message: None, meta: None }
    }

    /// The progress from 0 to 1, if the total is known and positive.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.progress / total).clamp(0.0, 1.0))
    }

    /// Keeps only the members that the revision defines.
    #[must_use]
    pub fn for_version(mut self, version: ProtocolVersion) -> Self {
        if version < ProtocolVersion::V2025_03_26 {
            self.message = None;
        }
        self
    }
}

/// Parameters of `notifications/cancelled`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledNotificationParams {
    /// The cancelled request. Under 2025-11-25 a peer may leave it out; the notification then has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The reason. Untrusted.
    #[serde(default, deserialize_with = "lenient::scalar", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Additional metadata, as raw JSON.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

crate::confidential::debug! { CancelledNotificationParams { request_id, reason } sized { meta } }

impl CancelledNotificationParams {
    /// Cancels the request with this id.
    #[must_use]
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), reason: None, meta: None }
    }

    /// Adds a reason.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

notifications! {
    ProgressNotificationParams => methods::NOTIFICATIONS_PROGRESS;
    CancelledNotificationParams => methods::NOTIFICATIONS_CANCELLED;
}
