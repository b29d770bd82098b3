//! Incremental, size-capped Server-Sent-Events parser, encoder and reconnect schedule.

#![forbid(unsafe_code)]
