//! Bytes as an events file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_checks::events_json(bytes));
