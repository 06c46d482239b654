//! What a tool prints.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jp_fuzz::tool_output(bytes));
