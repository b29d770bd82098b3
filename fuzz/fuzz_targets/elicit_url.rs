//! Hands `elicit_url` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_fuzz::elicitation::elicit_url(data));
