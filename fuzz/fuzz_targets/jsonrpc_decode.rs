//! Hands `jsonrpc_decode` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::jsonrpc::jsonrpc_decode(data));
