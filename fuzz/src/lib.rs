//! What the fuzz targets do, as functions of bytes: they compile in normal builds, and `cargo test` replays the corpora through
//! them.
//!
//! A body panics when the code under test is wrong. [`TARGETS`] names every one; a file in `fuzz_targets/` of the same name hands
//! it to libFuzzer, and `corpus/<name>/` holds the inputs that are worth keeping: one for each case of the grammar, and one for
//! each mistake that was ever found.

pub mod elicitation;
pub mod host;
pub mod jsonrpc;
pub mod session;
pub mod sse;

/// Runs one input.
pub type Body = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Body)] = &[
    ("elicit_answer", elicitation::elicit_answer),
    ("elicit_ops", elicitation::elicit_ops),
    ("elicit_schema", elicitation::elicit_schema),
    ("elicit_url", elicitation::elicit_url),
    ("jsonrpc_decode", jsonrpc::jsonrpc_decode),
    ("jsonrpc_roundtrip", jsonrpc::jsonrpc_roundtrip),
    ("line_framing", jsonrpc::line_framing),
    ("servers_config", host::servers_config),
    ("session_ops", session::session_ops),
    ("sse_bytes", sse::sse_bytes),
    ("sse_encode_roundtrip", sse::sse_encode_roundtrip),
];
