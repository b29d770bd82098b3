//! The configuration of a store.

use std::time::Duration;

/// Limits of a store. They hold for what this process writes; the file may hold what others wrote under their own.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a call waits for another process that writes. Default 5 s, far above what a write takes.
    pub busy_timeout: Duration,
    /// Open questions of all processes together. Default 1,024, more than anybody answers. One more is refused.
    pub max_open_questions: usize,
    /// Calls that are put away. Default 1,024. One more is refused.
    pub max_calls: usize,
    /// Bytes of one question's params. Default 1 MiB, far above any form. A larger one is refused.
    pub max_question_bytes: usize,
    /// Bytes of one answer as JSON. Default 1 MiB. A larger one is refused.
    pub max_answer_bytes: usize,
    /// Bytes of one call's data. Default 16 MiB, the largest default size of a message. A larger one is refused.
    pub max_call_bytes: usize,
    /// How many ended questions and calls are remembered, without what was in them, so that a late answer is told what
    /// became of its question. Default 1,000; the oldest go first.
    pub max_ended: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(5),
            max_open_questions: 1024,
            max_calls: 1024,
            max_question_bytes: 1024 * 1024,
            max_answer_bytes: 1024 * 1024,
            max_call_bytes: 16 * 1024 * 1024,
            max_ended: 1000,
        }
    }
}
