//! Tasks: requests that outlive their answer.

use serde::{Deserialize, Serialize};

/// Makes a request a task (2025-11-25 only).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How long the receiver should keep the task after its creation, in milliseconds; `None` leaves it the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// A task that is kept as long as the receiver likes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A task that is kept for so many milliseconds after its creation.
    #[must_use]
    pub fn kept_for_ms(ttl: u64) -> Self {
        Self { ttl: Some(ttl) }
    }
}
