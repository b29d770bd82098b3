//! Hands `line_framing` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::jsonrpc::line_framing(data));
