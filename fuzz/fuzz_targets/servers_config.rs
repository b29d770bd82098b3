//! Hands `servers_config` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::host::servers_config(data));
