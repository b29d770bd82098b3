//! Hands `sse_encode_roundtrip` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::sse::sse_encode_roundtrip(data));
