//! Bytes as an events file, of which a model gets its view.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_checks::view(bytes));
