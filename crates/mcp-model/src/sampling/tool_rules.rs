//! The rules for tool calls and their results in a sampling conversation (2025-11-25 and later).
//!
//! Section "Sampling with tools": a user message with tool results has no other content, and every tool call has its result in the
//! next message, a user message.

use std::collections::HashSet;
use std::fmt;

use super::SamplingMessage;
use crate::{Role, SamplingMessageContentBlock};

/// A violation of the rules for tool messages, with the position of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolMessageFault {
    /// A message has tool results and other content.
    Mixed {
        /// The message, counted from 0.
        message: usize,
    },
    /// A message has tool calls, and the next one does not have all their results.
    Unanswered {
        /// The message with the calls, counted from 0.
        message: usize,
    },
    /// A message has the result of a tool call that the previous message does not have.
    Unasked {
        /// The message with the result, counted from 0.
        message: usize,
    },
}

impl fmt::Display for ToolMessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mixed { message } => write!(f, "message {message} mixes tool results with other content"),
            Self::Unanswered { message } => write!(f, "message {message} has tool calls without results"),
            Self::Unasked { message } => write!(f, "message {message} has tool results without calls"),
        }
    }
}

impl std::error::Error for ToolMessageFault {}

pub(super) fn check(messages: &[SamplingMessage]) -> Result<(), ToolMessageFault> {
    let mut open = HashSet::new();
    for (message, SamplingMessage { role, content, .. }) in messages.iter().enumerate() {
        let blocks = content.blocks();
        let answered: HashSet<&str> = blocks.iter().filter_map(outcome).collect();
        if !answered.is_empty() {
            if *role != Role::User || !blocks.iter().all(|block| outcome(block).is_some()) {
                return Err(ToolMessageFault::Mixed { message });
            }
            if !answered.is_subset(&open) {
                return Err(ToolMessageFault::Unasked { message });
            }
        }
        if !open.is_subset(&answered) {
            return Err(ToolMessageFault::Unanswered { message: message.saturating_sub(1) });
        }
        open = blocks.iter().filter_map(call).collect();
    }
    if open.is_empty() { Ok(()) } else { Err(ToolMessageFault::Unanswered { message: messages.len() - 1 }) }
}

fn outcome(block: &SamplingMessageContentBlock) -> Option<&str> {
    match block {
        SamplingMessageContentBlock::ToolResult(outcome) => Some(&outcome.tool_use_id),
        _ => None,
    }
}

fn call(block: &SamplingMessageContentBlock) -> Option<&str> {
    match block {
        SamplingMessageContentBlock::ToolUse(call) => Some(&call.id),
        _ => None,
    }
}
