//! Bytes as an events file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jp_fuzz::events_json(bytes));
