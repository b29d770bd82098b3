//! Hands `session_ops` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::session::session_ops(data));
