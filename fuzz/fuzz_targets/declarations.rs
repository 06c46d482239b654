//! Text as something to attach.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz_checks::declarations(text));
